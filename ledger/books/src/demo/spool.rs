//! What the collectors of the simulated nodes spooled: rows as a real one writes them.
//!
//! A node looks every 15 seconds. A sample is the mean from one look to the next, whoever had the card, an activity a holder's part of that; looks that
//! found the same are one row, of a quarter hour at most. An observation says who was seen on a card, cut at midnights as real segments are: the scheduler
//! and the hub tell the second at which they gave and took it. Start at [`spool`].

use super::CLUSTER;
use super::clock::Clock;
use super::habit::{Doing, Habit, LOOK_S, TICK_S};
use super::people::PROJECTS;
use super::pool::{Closure, NODES, Why};
use super::power::Model;
use super::schedule::Run;
use super::sessions::Session;
use super::tenants::{Card, House, Moment, Tenant, Whose};
use super::work::{Queue, Request};
use cardhour_domain::{
    Activity, AttemptKey, CardShare, EnergyBasis, EventKind, Gap, Holder, HolderKind, HolderSource, Interval,
    Millijoules, Milliwatts, Name, NodeEvent, Observation, Owner, Percent, Reading, Sample, SampleSource, SeenDevice,
    Timestamp, UseBasis, Watch,
};
use std::collections::BTreeMap;

/// What one node spooled in one week.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpool {
    /// What its cards said.
    pub samples: Vec<Sample>,
    /// What their holders' processes did.
    pub activity: Vec<Activity>,
    /// Who was seen on which card.
    pub observations: Vec<Observation>,
    /// When it looked.
    pub watches: Vec<Watch>,
    /// What it has.
    pub devices: Vec<SeenDevice>,
    /// What happened.
    pub events: Vec<NodeEvent>,
}

/// What the world is made of, as far as nodes tell of it.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// What was asked.
    pub requests: &'a [Request],
    /// Who ran.
    pub runs: &'a [Run],
    /// The notebooks.
    pub sessions: &'a [Session],
    /// What was out.
    pub closures: &'a [Closure],
    /// By closure, the place of the card that was lost.
    pub lost: &'a [Option<usize>],
    /// Who had which card.
    pub house: &'a House,
    /// When.
    pub clock: &'a Clock,
}

/// What of a card's memory one takes that waits for its data: its batches are small. Unit: thousandths.
const STARVED_MEMORY_MILLI: i64 = 340;

/// How many UTC days are in one segment. Real ones are of a quarter hour to a day: a file a day and node would be most of what a demo costs.
const SEGMENT_DAYS: i32 = 7;

/// By node and week, in that order.
pub fn spool(scene: &Scene<'_>) -> Weeks {
    let mut weeks = BTreeMap::new();
    let seen: Vec<SeenTenant> = scene.house.tenants.iter().map(|tenant| scene.seen(tenant)).collect();
    for card in &scene.house.cards {
        let (node, uuid) = (NODES[card.node].name.into(), card.uuid.as_str().into());
        let teller = Teller { scene, card, node, uuid, seen: &seen };
        teller.who(&mut weeks);
        teller.what(&mut weeks);
    }
    for node in 0..NODES.len() {
        events(scene, node, &mut weeks);
    }
    weeks
}

fn day(at_s: i64) -> i32 {
    Timestamp::from_unix_s(at_s).utc_day()
}

fn of_week(weeks: &mut Weeks, node: usize, at_s: i64) -> &mut NodeSpool {
    weeks.entry((node, day(at_s).div_euclid(SEGMENT_DAYS))).or_default()
}

/// The parts of a stretch that lie in one UTC day each.
fn by_day(from_s: i64, to_s: i64) -> impl Iterator<Item = Interval> {
    (day(from_s)..=day(to_s - 1)).filter_map(move |day| {
        let (start, end) = (Timestamp::from_utc_day(day), Timestamp::from_utc_day(day + 1));
        Clock::stretch(from_s, to_s)?.overlap(Interval::new(start, end)?)
    })
}

impl Scene<'_> {
    /// A tenant as a node sees it: a Slurm job by its control group, a notebook as the pod that its hub started.
    fn seen(&self, tenant: &Tenant) -> SeenTenant {
        let project = &PROJECTS[tenant.project];
        let cluster = || Name::from(CLUSTER);
        let started_at = Some(Timestamp::from_unix_s(tenant.start_s));
        let (holder, user, queue, class) = match tenant.whose {
            Whose::Run(run) => {
                let run = &self.runs[run];
                let request = &self.requests[run.request];
                let shown = request.task.map(|(task, _)| format!("{}_{task}", run.array_job).into());
                let holder = Holder {
                    kind: HolderKind::SlurmJob,
                    cluster: cluster(),
                    job_id: run.job.to_string().into(),
                    shown_id: shown,
                    run: format!("b{}", tenant.start_s).into(),
                    started_at,
                };
                (holder, request.user, request.queue.name(), class(request.queue))
            }
            Whose::Session(session) => {
                let session = &self.sessions[session];
                let holder = Holder {
                    kind: HolderKind::Pod,
                    cluster: cluster(),
                    job_id: format!("notebooks/{}", session.id).into(),
                    shown_id: Some(session.id.as_str().into()),
                    run: format!("uid{:016x}", tenant.doer.salt).into(),
                    started_at,
                };
                (holder, session.user, "notebook", class(Queue::Dev))
            }
        };
        let owner = Owner {
            org: Some(project.org.into()),
            project: Some(project.name.into()),
            user: Some(user.into()),
            queue: Some(queue.into()),
            class: Some(class.into()),
            ..Owner::default()
        };
        SeenTenant { key: holder.key(), holder, owner }
    }
}

/// A tenant as its node names it, and its class.
pub fn seen_as(scene: &Scene<'_>, tenant: &Tenant) -> (Holder, &'static str) {
    let class = match tenant.whose {
        Whose::Run(run) => class(scene.requests[scene.runs[run].request].queue),
        Whose::Session(_) => class(Queue::Dev),
    };
    (scene.seen(tenant).holder, class)
}

/// A tenant as a node sees it.
struct SeenTenant {
    holder: Holder,
    owner: Owner,
    key: AttemptKey,
}

const fn class(queue: Queue) -> &'static str {
    match queue {
        Queue::Infer => "inference",
        Queue::Dev => "development",
        Queue::Train => "training",
        Queue::Batch => "batch",
    }
}

struct Teller<'a> {
    scene: &'a Scene<'a>,
    card: &'a Card,
    node: Name,
    uuid: Name,
    seen: &'a [SeenTenant],
}

type Weeks = BTreeMap<(usize, i32), NodeSpool>;

impl Teller<'_> {
    /// Who was seen on the card, and when somebody looked.
    fn who(&self, weeks: &mut Weeks) {
        for (from_s, to_s) in &self.card.read {
            for during in by_day(*from_s, *to_s) {
                let watch =
                    Watch { during, node: self.node.clone(), cluster: CLUSTER.into(), card_uuid: self.uuid.clone() };
                of_week(weeks, self.card.node, during.start().unix_ms() / 1000).watches.push(watch);
            }
        }
        for &index in &self.card.tenants {
            let tenant = &self.scene.house.tenants[index];
            let SeenTenant { holder, owner, .. } = &self.seen[index];
            let source = if holder.kind == HolderKind::Pod { HolderSource::Kubelet } else { HolderSource::PrologMap };
            for (from_s, to_s) in &self.card.read {
                let (from_s, to_s) = (tenant.start_s.max(*from_s), tenant.end_s.min(*to_s));
                if to_s <= from_s {
                    continue;
                }
                for during in by_day(from_s, to_s) {
                    let seen = Observation {
                        during,
                        node: self.node.clone(),
                        card_uuid: self.uuid.clone(),
                        device_uuid: self.uuid.clone(),
                        mig_profile: None,
                        share: Some(CardShare::from_parts(CardShare::PARTS_PER_CARD / 1000 * tenant.share_milli)),
                        source,
                        holder: holder.clone(),
                        owner: owner.clone(),
                    };
                    of_week(weeks, self.card.node, during.start().unix_ms() / 1000).observations.push(seen);
                }
            }
        }
    }

    /// What the card said, tick by tick, and what its holders did.
    fn what(&self, weeks: &mut Weeks) {
        let Scene { house, clock, .. } = *self.scene;
        let mut was_read = false;
        house.ticks(self.card, clock, |tick_s, moments| {
            let is_read = self.card.is_read(tick_s);
            // Of a card that is lost in a tick, the node says why it has nothing of it; after that it isn't there.
            let is_just_lost = was_read && !is_read && self.is_lost_at(tick_s);
            was_read = is_read;
            if !is_read && !is_just_lost {
                return;
            }
            let of_week = of_week(weeks, self.card.node, tick_s);
            if is_just_lost {
                let during = Clock::stretch(tick_s, tick_s + TICK_S).expect("a tick is longer than nothing");
                of_week.samples.push(self.gone(during));
                return;
            }
            for span in spans(moments) {
                self.tell(span, tick_s, moments, of_week);
            }
        });
    }

    /// What was read of one stretch of a tick: means over it, whoever had the card.
    fn tell(&self, (from_s, to_s): (i64, i64), tick_s: i64, moments: &[Moment], of_week: &mut NodeSpool) {
        let Scene { house, clock, .. } = *self.scene;
        let model = Model::of(&NODES[self.card.node]);
        let mut sums = Sums { length_s: to_s - from_s, ..Sums::default() };
        let mut on: BTreeMap<usize, (i64, Doing)> = BTreeMap::new();
        for moment in moments {
            let length_s = moment.within_s(from_s, to_s);
            if length_s == 0 {
                continue;
            }
            let doings = || moment.tenants.iter().map(|tenant| house.doing(*tenant, tick_s, clock));
            sums.energy_mj += length_s * model.power_mw(doings());
            for (tenant, doing) in moment.tenants.iter().zip(doings()) {
                sums.add(length_s, &doing);
                on.entry(*tenant).or_insert((0, doing)).0 += length_s;
            }
        }
        let during = Clock::stretch(from_s, to_s).expect("a stretch between two looks");
        let at_end = moments.iter().find(|moment| moment.start_s < to_s && to_s <= moment.end_s);
        let at_end = at_end.map(|moment| moment.tenants.as_slice()).unwrap_or_default();
        let holder = if let [tenant] = at_end { Some(self.seen[*tenant].key.clone()) } else { None };
        of_week.samples.push(self.sample(during, &sums, at_end, holder));
        for (tenant, (length_s, doing)) in on {
            let mut own = Sums { length_s: to_s - from_s, ..Sums::default() };
            own.add(length_s, &doing);
            let is_there = at_end.contains(&tenant);
            of_week.activity.push(Activity {
                during,
                node: self.node.clone(),
                card_uuid: self.uuid.clone(),
                device_uuid: self.uuid.clone(),
                holder: self.seen[tenant].key.clone(),
                processes: i64::from(is_there),
                sm_active_pct: Reading::Seen(own.percent(own.busy)),
                mem_used_bytes: Reading::Seen(self.memory(if is_there { std::slice::from_ref(&tenant) } else { &[] })),
                cpu_ms: Reading::Seen(length_s * doing.cpu_milli),
                io_bytes: Reading::Seen(length_s * doing.io),
                is_attended: Reading::Seen(doing.is_attended),
            });
        }
    }

    /// Of a card that fell off the bus: a row that says why there is nothing.
    fn gone(&self, during: Interval) -> Sample {
        let lost = Gap::CardLost;
        Sample {
            sm_active_pct: Reading::Missing(lost),
            mem_active_pct: Reading::Missing(lost),
            media_active_pct: Reading::Missing(lost),
            mem_used_bytes: Reading::Missing(lost),
            nvlink_bytes: Reading::Missing(lost),
            pcie_bytes: Reading::Missing(lost),
            power_mw: Reading::Missing(lost),
            energy_mj: Reading::Missing(lost),
            temperature_c: Reading::Missing(lost),
            ..self.sample(during, &Sums { length_s: TICK_S, ..Sums::default() }, &[], None)
        }
    }

    fn sample(&self, during: Interval, sums: &Sums, tenants: &[usize], holder: Option<AttemptKey>) -> Sample {
        let model = Model::of(&NODES[self.card.node]);
        let power_mw = sums.energy_mj / sums.length_s;
        let height_milli = (power_mw - model.idle_mw).max(0) * 1000 / model.range_mw();
        Sample {
            during,
            card_uuid: self.uuid.clone(),
            device_uuid: self.uuid.clone(),
            node: self.node.clone(),
            attempt_key: holder,
            sm_active_pct: Reading::Seen(sums.percent(sums.busy)),
            use_basis: if model.has_gpm { UseBasis::Gpm } else { UseBasis::DutyCycle },
            mem_active_pct: Reading::Seen(sums.percent(sums.memory)),
            media_active_pct: Reading::Seen(sums.percent(0)),
            mem_used_bytes: Reading::Seen(self.memory(tenants)),
            nvlink_bytes: Reading::Seen(sums.nvlink),
            pcie_bytes: Reading::Seen(sums.pcie),
            power_mw: Reading::Seen(Milliwatts(power_mw)),
            energy_mj: Reading::Seen(Millijoules(sums.energy_mj)),
            energy_basis: EnergyBasis::Counter,
            temperature_c: Reading::Seen(31 + 38 * height_milli / 1000),
            source: SampleSource::Collector,
        }
    }

    /// What tenants keep in the card's memory, whatever they do: a framework takes most of it at once, but for one whose batches are small. Unit: bytes.
    fn memory(&self, tenants: &[usize]) -> i64 {
        let whole = i64::from(NODES[self.card.node].card_memory_gib) << 30;
        let is_starved = |tenant: usize| self.scene.house.tenants[tenant].doer.habit == Habit::Starved;
        let parts = match tenants {
            [alone] if is_starved(*alone) => STARVED_MEMORY_MILLI,
            tenants => [0, 640, 780, 850].get(tenants.len()).copied().unwrap_or(890),
        };
        whole / 1000 * parts
    }

    fn is_lost_at(&self, tick_s: i64) -> bool {
        let lost = self.scene.closures.iter().zip(self.scene.lost);
        lost.filter(|(closure, place)| closure.node == self.card.node && **place == Some(self.card.place))
            .any(|(closure, _)| closure.start_s < tick_s + TICK_S && tick_s < closure.end_s)
    }
}

/// A tick, cut at the looks around the instants at which tenants came or went: between them the same is found again and again.
fn spans(moments: &[Moment]) -> Vec<(i64, i64)> {
    let (Some(first), Some(last)) = (moments.first(), moments.last()) else { return Vec::new() };
    let mut cuts = vec![first.start_s, last.end_s];
    for moment in &moments[1..] {
        let look_s = moment.start_s.div_euclid(LOOK_S) * LOOK_S;
        cuts.push(look_s);
        if look_s < moment.start_s {
            cuts.push(look_s + LOOK_S);
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// What a device did over a stretch. Unit: thousandths × seconds, bytes, mJ.
#[derive(Default)]
struct Sums {
    length_s: i64,
    busy: i64,
    memory: i64,
    nvlink: i64,
    pcie: i64,
    energy_mj: i64,
}

impl Sums {
    fn add(&mut self, length_s: i64, doing: &Doing) {
        self.busy += length_s * doing.busy_milli;
        self.memory += length_s * doing.memory_milli;
        self.nvlink += length_s * doing.nvlink;
        self.pcie += length_s * doing.pcie;
    }

    /// A mean over the stretch, rounded down to a thousandth of a percent.
    fn percent(&self, milli_s: i64) -> Percent {
        let thousandths = i32::try_from(milli_s * 100 / self.length_s).unwrap_or(i32::MAX);
        Percent::from_thousandths(thousandths).expect("tenants of a card are no busier than it together")
    }
}

/// Starts of the collector with what it found, and what went wrong.
fn events(scene: &Scene<'_>, node: usize, weeks: &mut Weeks) {
    let name: Name = NODES[node].name.into();
    let cards = || scene.house.cards.iter().filter(|card| card.node == node);
    let event = |at_s: i64, kind, card: Option<&Card>, number, detail: Option<&str>| {
        let uuid: Option<Name> = card.map(|card| card.uuid.as_str().into());
        let at = Timestamp::from_unix_s(at_s);
        let detail = detail.map(Name::from);
        NodeEvent { at, node: name.clone(), card_uuid: uuid.clone(), device_uuid: uuid, kind, number, detail }
    };
    for (from_s, _) in &scene.house.watched[node] {
        of_week(weeks, node, *from_s).events.push(event(*from_s, EventKind::Started, None, None, None));
        let found = cards().map(|card| seen(*from_s, card));
        of_week(weeks, node, *from_s).devices.extend(found);
    }
    for (closure, lost) in scene.closures.iter().zip(scene.lost).filter(|(closure, _)| closure.node == node) {
        let Some(card) = lost.and_then(|place| cards().find(|card| card.place == place)) else { continue };
        if closure.why == Why::LostCard {
            let at_s = closure.start_s;
            let told = [
                event(at_s, EventKind::Xid, Some(card), Some(79), Some("GPU has fallen off the bus")),
                event(at_s, EventKind::CardLost, Some(card), Some(15), Some("NVML: GPU is lost")),
            ];
            of_week(weeks, node, at_s).events.extend(told);
            let back_s = closure.end_s;
            of_week(weeks, node, back_s).events.push(event(back_s, EventKind::CardFound, Some(card), None, None));
        }
    }
}

fn seen(at_s: i64, card: &Card) -> SeenDevice {
    let node = &NODES[card.node];
    let model = Model::of(node);
    let uuid: Name = card.uuid.as_str().into();
    SeenDevice {
        at: Timestamp::from_unix_s(at_s),
        node: node.name.into(),
        cluster: CLUSTER.into(),
        card_uuid: uuid.clone(),
        device_uuid: uuid,
        pci_bus_id: Some(format!("00000000:{:02x}:00.0", 0x18 + 0x11 * card.place).into()),
        model: Some(model.name.into()),
        memory_bytes: Some(i64::from(node.card_memory_gib) << 30),
        driver: Some("580.95.05".into()),
        mig_mode: None,
        mig_profile: None,
        share: CardShare::CARD,
        power_limit_mw: Some(model.limit_mw),
    }
}
