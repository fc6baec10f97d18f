//! From the books to what breaks the sharing rule: who had parts of a card at the same time, hour by hour, and what came of that.
//!
//! Records say whose an attempt is, nodes which devices it had (`cardhour_books::observed`); processes tell memory and work of each. The judge is
//! [`audit_card`] of `cardhour-scheduler-core`. What lasts over several hours comes out once, with its worst hour.
//!
//! A tenant is a project of an org: who has none is everybody's stranger. Nothing in the books tells MPS from time-slicing, and the rule treats both alike: both
//! are called `time_slice`.
//!
//! Start at [`isolation`]. Does not: read tables, tell anybody, stop anything.

use cardhour_books::attempt::Attempt;
use cardhour_books::holdings::{Claim, ClaimSource};
use cardhour_books::observed::{Joined, Seen, join, watched};
use cardhour_domain::{
    Activity, AttemptKey, CardShare, EventKind, Gap, HolderKind, Interval, JobState, Name, NodeEvent, Percent, Reading,
    SeenDevice, Timestamp,
};
use cardhour_scheduler_core::sharing::{
    AuditLimits, Breach, Finding, HolderEnd, Mode, ObservedCard, ObservedHolder, Party, Severity, Violation, XidSeen,
    audit_card,
};
use cardhour_scheduler_core::work_class::WorkClass;
use std::collections::{BTreeMap, BTreeSet};

/// A node sees a holder up to a tick longer than it is there, and the next one may be there already. Unit: milliseconds.
const CHANGING_HANDS_MS: i64 = 60_000;
/// So much later than the last proof of life of those on a card an Xid or an end may be told. Unit: milliseconds.
const TOLD_LATE_MS: i64 = 180_000;
/// Memory and work are judged by the hour, so that a bad hour doesn't vanish in a quiet week. Unit: milliseconds.
const WINDOW_MS: i64 = 3_600_000;
const MIB: i64 = 1 << 20;

/// What the books know of some time.
#[derive(Clone, Copy, Debug)]
pub struct IsolationInput<'a> {
    /// Which. Rows may tell of some minutes after it as well, so that what goes on there isn't taken for over.
    pub during: Interval,
    /// Attempts of the records that held cards in it.
    pub attempts: &'a [Attempt],
    /// Whom nodes saw.
    pub seen: &'a Seen,
    /// What holders' processes did.
    pub activity: &'a [Activity],
    /// What happened to cards.
    pub events: &'a [NodeEvent],
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Isolation {
    /// What breaks the rule or can't be prevented by it, gravest first, then by card and time.
    pub incidents: Vec<Incident>,
    /// Cards that somebody looked at for holders.
    pub looked_at: BTreeSet<Name>,
    /// Cards that several held at once.
    pub shared: BTreeSet<Name>,
    /// Holders of those of which memory or work wasn't seen.
    pub not_judged: BTreeSet<AttemptKey>,
}

/// One violation over an unbroken time, or one advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Between tenants or against the rule, or within one tenant.
    pub severity: Severity,
    /// The node.
    pub node: Option<Name>,
    /// The card.
    pub card_uuid: Name,
    /// From the first hour in which it was so to the last, as far as they were on the card then.
    pub during: Interval,
    /// What, at its worst.
    pub violation: Violation,
    /// Who is at fault, or the first of two that may not share; none where no process was named.
    pub holder: Option<Concerned>,
    /// Who else was concerned.
    pub others: Vec<Concerned>,
}

/// A holder with its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Concerned {
    /// Its key.
    pub key: AttemptKey,
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
}

impl Concerned {
    /// `org/project`, as far as it is known.
    pub fn tenant(&self) -> Option<Name> {
        match (&self.org, &self.project) {
            (Some(org), Some(project)) => Some(format!("{org}/{project}").into()),
            (None, project) => project.clone(),
            // An org has many tenants: which of them it is nobody knows.
            (Some(_), None) => None,
        }
    }

    /// For people: its job, tenant and user.
    pub fn words(&self) -> String {
        let tenant = self.tenant().unwrap_or_else(|| "(unowned)".into());
        let user = self.user.as_ref().map(|user| format!(", {user}")).unwrap_or_default();
        format!("{} is of {tenant}{user}", self.key.job())
    }
}

impl Isolation {
    /// With what was found in the time right after: what goes on is one incident.
    #[must_use]
    pub fn followed_by(mut self, later: Self) -> Self {
        for next in later.incidents {
            let same = Same::of(&next.violation);
            let goes_on = |one: &&mut Incident| {
                one.card_uuid == next.card_uuid
                    && one.during.start() <= next.during.start()
                    && next.during.start() <= one.during.end()
                    && Same::of(&one.violation) == same
            };
            match self.incidents.iter_mut().find(goes_on) {
                Some(one) => {
                    let end = one.during.end().max(next.during.end());
                    let during = Interval::new(one.during.start(), end).expect("it grew");
                    if (one.severity, &one.violation) < (next.severity, &next.violation) {
                        *one = next;
                    }
                    one.during = during;
                }
                None => self.incidents.push(next),
            }
        }
        self.looked_at.extend(later.looked_at);
        self.shared.extend(later.shared);
        self.not_judged.extend(later.not_judged);
        self.sort();
        self
    }

    fn sort(&mut self) {
        self.incidents.sort_by(|a, b| {
            let key = |incident: &Incident| (incident.card_uuid.clone(), incident.during, incident.violation.clone());
            b.severity.cmp(&a.severity).then_with(|| key(a).cmp(&key(b)))
        });
    }
}

impl Incident {
    /// What it says to the operator, with its evidence.
    pub fn words(&self) -> String {
        let Self { severity, card_uuid, during, violation, .. } = self;
        let (severity, during, violation) = (*severity, *during, violation.clone());
        let finding = Finding { card_uuid: card_uuid.clone(), during, severity, violation };
        let owners: Vec<String> = self.holder.iter().chain(&self.others).map(Concerned::words).collect();
        format!("{}, {} to {}; {}", finding.words(), during.start(), during.end(), owners.join("; "))
    }

    /// What kind it is, as tables and labels call it.
    pub const fn kind(&self) -> &'static str {
        match self.violation {
            Violation::Rule(_) => "sharing_rule",
            Violation::MemoryOverShare { .. } => "memory_over_share",
            Violation::FaultHitNeighbours { .. } => "xid_hit_neighbours",
            Violation::BusyNeighbour { .. } => "busy_neighbour",
        }
    }
}

/// What was found in an hour, or less.
type Hour = (Interval, Severity, Violation);

/// Everything that is wrong with how cards were shared. The same for the same rows in any order.
pub fn isolation(input: &IsolationInput<'_>) -> Isolation {
    let joined = join(input.attempts.iter().filter_map(Claim::of).collect(), input.seen);
    let books = Gathered::of(input, &joined);
    let looks = watched(&input.seen.watches);
    let looked_at = looks.iter().filter(|(_, looks)| looks.iter().any(|look| look.overlap(input.during).is_some()));
    let mut out = Isolation { looked_at: looked_at.map(|(card, _)| card.clone()).collect(), ..Isolation::default() };
    let mut found: BTreeMap<(Name, Same), Vec<Hour>> = BTreeMap::new();
    for (card_uuid, stretches) in books.by_card() {
        let shared = shared(&stretches);
        if !shared.is_empty() {
            out.shared.insert(card_uuid.clone());
        }
        for window in shared.iter().flat_map(|shared| hours(*shared)) {
            let card = books.observed(card_uuid, &stretches, window);
            let audit =
                audit_card(&card, &AuditLimits { hit_within_ms: 2 * CHANGING_HANDS_MS, ..AuditLimits::default() });
            out.not_judged.extend(audit.not_judged);
            for finding in audit.findings {
                let same = (card_uuid.clone(), Same::of(&finding.violation));
                found.entry(same).or_default().push((window, finding.severity, finding.violation));
            }
        }
    }
    for ((card_uuid, _), mut hours) in found {
        hours.sort();
        for run in runs(hours) {
            out.incidents.push(books.incident(&card_uuid, run));
        }
    }
    out.sort();
    out
}

/// By which two findings of different hours are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Same {
    Rule(BTreeSet<AttemptKey>),
    Memory(AttemptKey),
    Fault(XidSeen),
    Busy(AttemptKey),
}

impl Same {
    fn of(violation: &Violation) -> Self {
        match violation {
            Violation::Rule(_) => Self::Rule(concerned(violation).into_iter().collect()),
            Violation::MemoryOverShare { holder, .. } => Self::Memory(holder.clone()),
            Violation::FaultHitNeighbours { xid, .. } => Self::Fault(xid.clone()),
            Violation::BusyNeighbour { holder, .. } => Self::Busy(holder.clone()),
        }
    }
}

/// Who is at fault, then the others.
fn concerned(violation: &Violation) -> Vec<AttemptKey> {
    let of = |first: Option<&AttemptKey>, others: &BTreeSet<AttemptKey>| {
        first.into_iter().chain(others.iter().filter(|other| Some(*other) != first)).cloned().collect()
    };
    match violation {
        Violation::Rule(Breach::WholeCardOnly { holder, other, .. } | Breach::AcrossTenants { holder, other, .. }) => {
            vec![holder.clone(), other.clone()]
        }
        Violation::MemoryOverShare { holder, neighbours, .. } | Violation::BusyNeighbour { holder, neighbours, .. } => {
            of(Some(holder), neighbours)
        }
        Violation::FaultHitNeighbours { xid, hit, .. } => of(xid.holder.as_ref(), hit),
    }
}

/// An unbroken time over which a holder surely had a device.
#[derive(Clone, Debug)]
struct Stretch<'a> {
    claim: &'a Claim,
    device_uuid: &'a Name,
    during: Interval,
}

struct Gathered<'a> {
    input: IsolationInput<'a>,
    joined: &'a Joined,
    owners: BTreeMap<&'a AttemptKey, (Concerned, Option<WorkClass>)>,
    machines: BTreeSet<AttemptKey>,
    devices: BTreeMap<&'a Name, &'a SeenDevice>,
    activity: BTreeMap<(&'a Name, AttemptKey), Vec<&'a Activity>>,
    ends: Vec<HolderEnd>,
}

impl<'a> Gathered<'a> {
    fn of(input: &IsolationInput<'a>, joined: &'a Joined) -> Self {
        let class = |class: Option<&Name>| class.and_then(|class| WorkClass::from_name(class));
        let mut owners = BTreeMap::new();
        for observed in &joined.attempts {
            let owner = &observed.owner;
            let (org, project, user) = (owner.org.clone(), owner.project.clone(), owner.user.clone());
            let who = Concerned { key: observed.key.clone(), org, project, user };
            owners.insert(&observed.key, (who, class(observed.class().as_ref())));
        }
        for attempt in input.attempts {
            let (org, project, user) = (attempt.org.clone(), attempt.project.clone(), attempt.user.clone());
            let who = Concerned { key: attempt.key.clone(), org, project, user };
            owners.insert(&attempt.key, (who, class(attempt.class.as_ref())));
        }
        let of_machine = |seen: &&cardhour_domain::Observation| seen.holder.kind == HolderKind::VirtualMachine;
        let machines = input.seen.observations.iter().filter(of_machine);
        let machines = machines.map(|seen| joined.key_of(&seen.holder.key(), seen.during)).collect();
        let mut devices: BTreeMap<&Name, &SeenDevice> = BTreeMap::new();
        for device in &input.seen.devices {
            let newest = devices.entry(&device.device_uuid).or_insert(device);
            if newest.at < device.at {
                *newest = device;
            }
        }
        let mut activity: BTreeMap<_, Vec<&Activity>> = BTreeMap::new();
        for row in input.activity {
            activity.entry((&row.device_uuid, joined.key_of(&row.holder, row.during))).or_default().push(row);
        }
        let has_failed = |state| matches!(state, JobState::Failed | JobState::OutOfMemory | JobState::NodeFail);
        let end = |attempt: &Attempt| {
            let (at, has_failed) = (attempt.ended_at?, has_failed(attempt.state));
            Some(HolderEnd { at, holder: attempt.key.clone(), has_failed })
        };
        let ends = input.attempts.iter().filter_map(end).collect();
        Self { input: *input, joined, owners, machines, devices, activity, ends }
    }

    /// Who had which part of each card, in the time that is looked at, by holder and device.
    fn by_card(&self) -> BTreeMap<&'a Name, Vec<Stretch<'a>>> {
        let mut pieces: BTreeMap<(&Name, &Name, &AttemptKey), (&Claim, Vec<Interval>)> = BTreeMap::new();
        for claim in &self.joined.claims {
            let (Some(card), Some(device)) = (&claim.card_uuid, claim.device_uuid()) else { continue };
            if claim.source == ClaimSource::Releasing || claim.share.is_zero() {
                continue;
            }
            let (newest, all) = pieces.entry((card, device, &claim.key)).or_insert((claim, Vec::new()));
            if newest.during.end() < claim.during.end() {
                *newest = claim;
            }
            all.push(claim.during);
        }
        let mut by_card: BTreeMap<&Name, Vec<Stretch<'_>>> = BTreeMap::new();
        for ((card, device_uuid, _), (claim, all)) in pieces {
            let whole = Interval::union(all).into_iter();
            let whole = whole.filter_map(|during| settled(during)?.overlap(self.input.during));
            by_card.entry(card).or_default().extend(whole.map(|during| Stretch { claim, device_uuid, during }));
        }
        by_card
    }

    fn observed(&self, card_uuid: &Name, stretches: &[Stretch<'a>], window: Interval) -> ObservedCard {
        let there: Vec<(&Stretch<'_>, Interval)> =
            stretches.iter().filter_map(|s| Some((s, s.during.overlap(window)?))).collect();
        let undeclared = |device: &Name| {
            let on_device = there.iter().filter(|(s, _)| s.device_uuid == device);
            let (declared, undeclared): (Vec<_>, Vec<_>) = on_device.partition(|(s, _)| s.claim.declared);
            let given: CardShare = declared.iter().map(|(s, _)| s.claim.share).sum();
            let whole = self.devices.get(device).map_or(CardShare::CARD, |device| device.share);
            whole.saturating_sub(given).split_evenly(undeclared.len().max(1))[0]
        };
        let holders = there.iter().map(|(stretch, during)| {
            let claim = stretch.claim;
            let share = if claim.declared { claim.share } else { undeclared(stretch.device_uuid) };
            self.holder(card_uuid, stretch, *during, share)
        });
        let late = Timestamp::from_unix_ms(window.end().unix_ms().saturating_add(TOLD_LATE_MS));
        let is_near = |at: Timestamp| window.start() <= at && at < late;
        let xid = |event: &NodeEvent| {
            let is_here = event.kind == EventKind::Xid && event.card_uuid.as_ref() == Some(card_uuid);
            let xid = u32::try_from(event.number?).ok().filter(|_| is_here && is_near(event.at))?;
            // The card itself names nobody: anyone on it may have caused it.
            let device_uuid = event.device_uuid.clone().filter(|device| device != card_uuid);
            Some(XidSeen { at: event.at, xid, holder: None, device_uuid })
        };
        ObservedCard {
            card_uuid: card_uuid.clone(),
            during: window,
            memory_mib: self.memory_mib(card_uuid).map_or(Reading::Missing(Gap::NotRecorded), Reading::Seen),
            holders: holders.collect(),
            xids: self.input.events.iter().filter_map(xid).collect(),
            ends: self.ends.iter().filter(|end| is_near(end.at)).cloned().collect(),
        }
    }

    fn holder(&self, card_uuid: &Name, stretch: &Stretch<'a>, during: Interval, share: CardShare) -> ObservedHolder {
        let (claim, device) = (stretch.claim, stretch.device_uuid);
        let is_slice = device != card_uuid;
        let mode = match () {
            () if is_slice => Mode::Mig,
            () if self.machines.contains(&claim.key) => Mode::Vgpu,
            () if claim.declared && claim.share == CardShare::CARD => Mode::Whole,
            () => Mode::TimeSlice,
        };
        let owner = self.owners.get(&claim.key);
        let of_device = self.devices.get(device).map_or(CardShare::CARD, |device| device.share);
        let rows = self.activity.get(&(device, claim.key.clone())).map(Vec::as_slice).unwrap_or_default();
        let rows: Vec<&Activity> = rows.iter().copied().filter(|row| row.during.overlap(during).is_some()).collect();
        let peak = rows.iter().filter_map(|row| row.mem_used_bytes.seen()).max();
        let unseen = Reading::Missing(Gap::NotRecorded);
        // A slice's memory isn't its compute share of the card's.
        let limit = self.memory_mib(device).filter(|_| is_slice && of_device.parts() > 0).map(|memory_mib| {
            let part = u128::from(memory_mib) * u128::from(share.parts().unsigned_abs());
            u64::try_from(part / u128::from(of_device.parts().unsigned_abs())).unwrap_or(u64::MAX)
        });
        ObservedHolder {
            party: Party {
                holder: claim.key.clone(),
                tenant: owner.and_then(|(who, _)| who.tenant()),
                class: owner.and_then(|(_, class)| *class),
                is_critical: false,
                mode,
                device_uuid: device.clone(),
            },
            during,
            share,
            memory_limit_mib: limit,
            memory_peak_mib: peak.map_or(Reading::Missing(Gap::NotRecorded), |bytes| Reading::Seen(mib(bytes))),
            sm_active: mean_sm(&rows, of_device).map_or(unseen, Reading::Seen),
        }
    }

    fn memory_mib(&self, device: &Name) -> Option<u64> {
        self.devices.get(device)?.memory_bytes.map(mib)
    }

    fn who(&self, key: &AttemptKey) -> Concerned {
        let unknown = || Concerned { key: key.clone(), org: None, project: None, user: None };
        self.owners.get(key).map_or_else(unknown, |(who, _)| who.clone())
    }

    fn incident(&self, card_uuid: &Name, run: Vec<Hour>) -> Incident {
        let first = run.iter().map(|(window, ..)| window.start()).min().expect("a run has an hour");
        let last = run.iter().map(|(window, ..)| window.end()).max().expect("a run has an hour");
        let (severity, violation) =
            run.into_iter().map(|(_, severity, violation)| (severity, violation)).max().expect("a run has an hour");
        let during = Interval::new(first, last).expect("an hour isn't empty");
        let keys = concerned(&violation);
        let names_culprit = !matches!(&violation, Violation::FaultHitNeighbours { xid, .. } if xid.holder.is_none());
        let mut who = keys.iter().map(|key| self.who(key));
        let holder = if names_culprit { who.next() } else { None };
        let others = who.collect();
        let node = self.devices.get(card_uuid).map(|device| device.node.clone());
        Incident { severity, node, card_uuid: card_uuid.clone(), during, violation, holder, others }
    }
}

fn mib(bytes: i64) -> u64 {
    (bytes / MIB).max(0).unsigned_abs()
}

/// The part of a stretch in which its holder was surely there; none of one that is too short for that.
fn settled(during: Interval) -> Option<Interval> {
    Interval::new(during.start(), Timestamp::from_unix_ms(during.end().unix_ms() - CHANGING_HANDS_MS))
}

/// When at least two were surely there, in order.
fn shared(stretches: &[Stretch<'_>]) -> Vec<Interval> {
    let mut sorted: Vec<(Interval, AttemptKey)> = stretches.iter().map(|s| (s.during, s.claim.key.clone())).collect();
    sorted.sort();
    let (mut open, mut both): (Vec<(Interval, AttemptKey)>, Vec<Interval>) = (Vec::new(), Vec::new());
    for (during, key) in sorted {
        open.retain(|(earlier, _)| earlier.end() > during.start());
        both.extend(open.iter().filter(|(_, other)| *other != key).filter_map(|(other, _)| other.overlap(during)));
        open.push((during, key));
    }
    Interval::union(both)
}

/// A stretch cut at whole hours of UTC.
fn hours(during: Interval) -> Vec<Interval> {
    let (mut at, end) = (during.start().unix_ms(), during.end().unix_ms());
    let mut hours = Vec::new();
    while at < end {
        let next = ((at.div_euclid(WINDOW_MS) + 1) * WINDOW_MS).min(end);
        hours.extend(Interval::new(Timestamp::from_unix_ms(at), Timestamp::from_unix_ms(next)));
        at = next;
    }
    hours
}

/// Hours that touch, together.
fn runs(hours: Vec<Hour>) -> Vec<Vec<Hour>> {
    let mut runs: Vec<Vec<Hour>> = Vec::new();
    for hour in hours {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|(last, ..)| hour.0.start() <= last.end()) => run.push(hour),
            _ => runs.push(vec![hour]),
        }
    }
    runs
}

/// A holder's own part of its card's multiprocessors, by time; none where no row tells it. Rounded down.
fn mean_sm(rows: &[&Activity], of_device: CardShare) -> Option<Percent> {
    let told = rows.iter().filter_map(|row| Some((row.sm_active_pct.seen()?, row.during.length_ms())));
    let (sum, length_ms) = told.fold((0i128, 0i128), |(sum, length), (sm, ms)| {
        (sum + i128::from(sm.thousandths()) * i128::from(ms), length + i128::from(ms))
    });
    let parts = i128::from(of_device.parts());
    let mean = sum.checked_div(length_ms)? * parts / i128::from(CardShare::PARTS_PER_CARD);
    Percent::from_thousandths(i32::try_from(mean).ok()?)
}

#[cfg(test)]
mod tests;
