//! What is seen of a job at an instant, from rows of the books: the [`Observation`]s of the lease machine.
//!
//! A job is judged by its own horizon: the last moment up to which all of its cards that are read were read, since nodes deliver at different times.
//! Once that is older than the policy allows, it moves on without them, and the job is unseen. What isn't there is missing and never quiet:
//! a card without a row says nothing; a holder without a row of its processes is at rest only where its node looked for holders at that time.

use crate::round::RoundInput;
use crate::who::{HeldDevice, RunningJob, Sightings};
use cardhour_books::telemetry::{DeviceTick, PowerRange, Readings, Telemetry};
use cardhour_domain::{Activity, AttemptKey, Gap, Interval, Name, Percent, Reading, Sample, Timestamp, UseBasis};
use cardhour_scheduler_core::lease::{
    Attribution, CardNow, CardReading, Check, CheckpointSigns, Observation, OptOut, Presence, ProcessReading, Release,
    ReportedPhase,
};
use std::collections::{BTreeMap, BTreeSet};

/// The label by which a job says that it doesn't use its cards yet: `setting-up`, `loading-data`, `checkpointing`.
pub const PHASE_LABEL: &str = "cardhour-phase";

/// A node sees a holder up to a tick before it looks again: after this it isn't there any more. Unit: milliseconds.
const GONE_AFTER_MS: i64 = 60_000;

/// How long ago a job may have been seen on its cards for that to be proof. Unit: milliseconds.
const PROVEN_MS: i64 = 120_000;

/// What cards and processes did, ready to be asked by job.
pub(crate) struct Looks<'a> {
    pub sightings: Sightings<'a>,
    telemetry: Telemetry,
    activity: BTreeMap<(Name, AttemptKey), Vec<&'a Activity>>,
    /// The newest sample of each device that names a holder.
    named: BTreeMap<&'a Name, &'a Sample>,
    memory_bytes: BTreeMap<&'a Name, i64>,
}

/// One tick of a device that a job holds, as the machine takes it.
pub(crate) struct Glimpse {
    pub device: Name,
    pub during: Interval,
    pub observation: Observation,
}

impl<'a> Looks<'a> {
    /// Of all devices that jobs hold.
    pub fn of(input: &RoundInput<'a>, jobs: &BTreeMap<AttemptKey, RunningJob>) -> Self {
        let held: BTreeSet<&Name> = jobs.values().flat_map(|job| job.devices.keys()).collect();
        let mut readings = Readings::default();
        let mut named: BTreeMap<&Name, &Sample> = BTreeMap::new();
        for sample in input.samples.iter().filter(|sample| held.contains(&sample.device_uuid)) {
            readings.add_sample(sample);
            if sample.attempt_key.is_some() {
                let newest = named.entry(&sample.device_uuid).or_insert(sample);
                let order = |sample: &Sample| (sample.during.end(), sample.attempt_key.clone());
                if order(newest) < order(sample) {
                    *newest = sample;
                }
            }
        }
        let mut memory: BTreeMap<&Name, (Timestamp, i64)> = BTreeMap::new();
        for device in &input.seen.devices {
            readings.add_device(device);
            if let Some(bytes) = device.memory_bytes {
                let newest = memory.entry(&device.device_uuid).or_insert((device.at, bytes));
                *newest = (*newest).max((device.at, bytes));
            }
        }
        let (mut telemetry, _) = readings.settle();
        for (card, range) in &mut telemetry.power {
            if let Some(least_mw) = input.least_power_mw.get(card) {
                let idle_mw = range.idle_mw.min((*least_mw).max(0));
                *range = PowerRange { idle_mw, ..*range };
            }
        }
        let mut activity: BTreeMap<_, Vec<&Activity>> = BTreeMap::new();
        for row in input.activity {
            activity.entry((row.device_uuid.clone(), row.holder.clone())).or_default().push(row);
        }
        for rows in activity.values_mut() {
            rows.sort_by_key(|row| row.during);
        }
        let memory_bytes = memory.into_iter().map(|(device, (_, bytes))| (device, bytes)).collect();
        Self { sightings: Sightings::of(input), telemetry, activity, named, memory_bytes }
    }

    /// Up to which moment a job can be judged.
    pub fn horizon(&self, job: &RunningJob, input: &RoundInput<'_>) -> Timestamp {
        let last = |(device, held): (&Name, &HeldDevice)| self.ticks(device, held).last().map(|tick| tick.during.end());
        let own = job.devices.iter().filter_map(last).min();
        let oldest = Timestamp::from_unix_ms(input.at.unix_ms() - input.policy.stale_after_ms);
        own.map_or(oldest, |own| own.max(oldest)).min(input.at)
    }

    /// Every tick of a job's devices that ends before its horizon, by its end.
    pub fn glimpses(&self, job: &RunningJob, horizon: Timestamp, opt_outs: &Reading<Vec<OptOut>>) -> Vec<Glimpse> {
        let mut ticks: Vec<(Interval, &Name, &HeldDevice, &DeviceTick)> = Vec::new();
        for (device, held) in &job.devices {
            let until = self.ticks(device, held).iter().take_while(|tick| tick.during.end() < horizon);
            ticks.extend(until.map(|tick| (tick.during, device, held, tick)));
        }
        ticks.sort_by_key(|(during, device, ..)| (during.end(), during.start(), *device));
        let glimpse = |(during, device, held, tick): (Interval, &Name, &HeldDevice, &DeviceTick)| {
            let mut observation = self.empty(job, during.end(), during, opt_outs);
            let now = observation.cards.get_mut(device).expect("all devices of a job are among its cards");
            *now = self.card(job, device, held, tick);
            observation.processes = self.processes(job, [(device, held, Some(tick))].into_iter());
            Glimpse { device: device.clone(), during, observation }
        };
        ticks.into_iter().map(glimpse).collect()
    }

    /// All of a job at its horizon: each card's tick that reaches up to it.
    pub fn at_horizon(&self, job: &RunningJob, horizon: Timestamp, opt_outs: &Reading<Vec<OptOut>>) -> Observation {
        let last = Timestamp::from_unix_ms(horizon.unix_ms() - 1);
        let just = Interval::new(last, horizon).expect("a millisecond");
        let now = |(device, held)| {
            let tick = self.ticks(device, held).iter().find(|tick| tick.during.contains(last));
            (device, held, tick)
        };
        let now: Vec<(&Name, &HeldDevice, Option<&DeviceTick>)> = job.devices.iter().map(now).collect();
        let ticks = now.iter().filter_map(|(.., tick)| tick.map(|tick| tick.during));
        let during = ticks.reduce(|a, b| a.overlap(b).unwrap_or(just)).unwrap_or(just);
        let during = Interval::new(during.start(), horizon.min(during.end())).unwrap_or(just);
        let mut observation = self.empty(job, horizon, during, opt_outs);
        for (device, held, tick) in &now {
            if let Some(tick) = tick {
                observation.cards.insert((*device).clone(), self.card(job, device, held, tick));
            }
        }
        observation.processes = self.processes(job, now.into_iter());
        observation.attribution = self.attribution(job, horizon);
        observation.release = self.release(&job.told.devices, &job.told.seen_as);
        observation
    }

    /// Whether the devices that a job had are free: its node looked after it was last seen there, and it wasn't.
    pub fn release(&self, devices: &[(Name, Name)], seen_as: &[AttemptKey]) -> Reading<Release> {
        let mut release = Release::Free;
        for (card, device) in devices {
            let Some(look) = self.sightings.last_look(card) else { return Reading::Missing(Gap::NotRecorded) };
            let seen = self.sightings.last_seen(device, seen_as);
            if seen.is_some_and(|seen| look.ms_since(seen) < GONE_AFTER_MS) {
                release = Release::Held;
            }
        }
        if devices.is_empty() { Reading::Missing(Gap::NotRecorded) } else { Reading::Seen(release) }
    }

    /// Until when anybody looked for holders on a job's cards; none where nobody did.
    pub fn last_look(&self, devices: &[(Name, Name)]) -> Option<Timestamp> {
        devices.iter().map(|(card, _)| self.sightings.last_look(card)).min().flatten()
    }

    /// Of nothing that was read.
    fn empty(&self, job: &RunningJob, at: Timestamp, during: Interval, opt_outs: &Reading<Vec<OptOut>>) -> Observation {
        let card = |(device, held): (&Name, &HeldDevice)| {
            let now = CardNow { share: held.share, is_shared: false, reading: unseen(Gap::NotRecorded) };
            (device.clone(), now)
        };
        Observation {
            at,
            during,
            cards: job.devices.iter().map(card).collect(),
            processes: failed(Gap::NotRecorded),
            attribution: Attribution::Proven,
            opt_outs: opt_outs.clone(),
            extension_requests: Vec::new(),
            notice: None,
            checkpoint: CheckpointSigns { activity: Check::NotThere, done_at: None },
            reported_phase: reported(job),
            release: Reading::Missing(Gap::NotRecorded),
        }
    }

    fn ticks(&self, device_uuid: &Name, held: &HeldDevice) -> &[DeviceTick] {
        self.telemetry.device(&held.card_uuid, device_uuid)
    }

    fn card(&self, job: &RunningJob, device_uuid: &Name, held: &HeldDevice, tick: &DeviceTick) -> CardNow {
        let is_shared = self.sightings.others_on(device_uuid, &job.told.seen_as, tick.during);
        CardNow { share: held.share, is_shared, reading: self.reading(job, device_uuid, held, tick) }
    }

    fn reading(&self, job: &RunningJob, device_uuid: &Name, held: &HeldDevice, tick: &DeviceTick) -> CardReading {
        let not_read = Reading::Missing(Gap::NotRecorded);
        let of = |value: Option<Percent>| value.map_or(not_read, Reading::Seen);
        let (sm_active, duty_cycle) = match (tick.suspect, tick.use_basis) {
            // As the machine knows it: a counter that says nothing runs beside one that says all does (C04).
            (true, _) => (Reading::Seen(percent(0)), Reading::Seen(Percent::WHOLE)),
            (false, UseBasis::Gpm) => (of(tick.sm_active), not_read),
            (false, UseBasis::DutyCycle) => (not_read, of(tick.sm_active)),
        };
        let power = self.telemetry.power.get(&held.card_uuid).filter(|_| *device_uuid == held.card_uuid);
        let power = tick.power.zip(power).map(|(power, range)| part(range.height(power).into(), 100_000));
        let memory = tick.mem_used_bytes.zip(self.memory_bytes.get(device_uuid));
        let own = self
            .own_rows(job, device_uuid, middle(tick.during))
            .iter()
            .filter_map(|row| row.sm_active_pct.seen())
            .max();
        let per_s = |bytes: i64| per_second(bytes, tick.during).unsigned_abs();
        CardReading {
            sm_active,
            duty_cycle,
            memory_active: of(tick.mem_active),
            media_active: of(tick.media_active),
            // The collector counts a process that draws as somebody being there.
            graphics_processes: Reading::Missing(Gap::NotRecorded),
            link_bytes_per_s: tick.link_bytes.map_or(Reading::Missing(Gap::NotRecorded), |b| Reading::Seen(per_s(b))),
            power_above_idle: of(power),
            memory_used: of(memory.map(|(used, whole)| part(used.into(), (*whole).into()))),
            own_sm_active: of(own),
        }
    }

    /// What the job's processes did on a device at an instant, by all the names that nodes have for it.
    fn own_rows(&self, job: &RunningJob, device_uuid: &Name, at: Timestamp) -> Vec<&'a Activity> {
        let of_key = |key: &AttemptKey| self.activity.get(&(device_uuid.clone(), key.clone()));
        let rows = job.told.seen_as.iter().filter_map(of_key).flatten().copied();
        rows.filter(|row| row.during.contains(at)).collect()
    }

    /// What a job's processes did on some devices: the busiest counts, and what couldn't be looked at isn't at rest.
    fn processes<'d>(
        &self,
        job: &RunningJob,
        devices: impl Iterator<Item = (&'d Name, &'d HeldDevice, Option<&'d DeviceTick>)>,
    ) -> ProcessReading {
        let mut all = ProcessReading {
            cpu_milli_cores: Check::NotThere,
            io_bytes_per_s: Check::NotThere,
            terminal: Check::NotThere,
            kernel: Check::NotThere,
        };
        let mut blind: Option<Gap> = None;
        for (device, held, tick) in devices {
            let Some(tick) = tick else {
                blind = Some(Gap::CollectorDown);
                continue;
            };
            let at = middle(tick.during);
            let mut has_rows = false;
            for row in self.own_rows(job, device, at) {
                has_rows = true;
                let cpu = check(row.cpu_ms).map(|ms| per_second(ms, row.during));
                let cpu = cpu.map(|milli| u32::try_from(milli.max(0)).unwrap_or(u32::MAX));
                let io = check(row.io_bytes).map(|bytes| per_second(bytes, row.during).unsigned_abs());
                let there =
                    check(row.is_attended).map(|there| if there { Presence::Attended } else { Presence::Unattended });
                all.cpu_milli_cores = busier(all.cpu_milli_cores, cpu, &mut blind, |cpu| cpu);
                all.io_bytes_per_s = busier(all.io_bytes_per_s, io, &mut blind, |io| io);
                all.terminal = busier(all.terminal, there, &mut blind, |there| there == Presence::Attended);
            }
            // No process of it was on the device; or nobody looked.
            if !has_rows && !self.sightings.looked_at(&held.card_uuid, at) {
                blind = Some(Gap::NotRecorded);
            }
        }
        if let Some(gap) = blind {
            all.kernel = Check::Failed(gap);
        }
        all
    }

    /// Whether the job was seen on these very cards, by nodes that look for holders themselves (R22).
    fn attribution(&self, job: &RunningJob, at: Timestamp) -> Attribution {
        let unproven = |names: &str| Attribution::Unproven { names: names.into() };
        for (device, held) in &job.devices {
            let seen = self.sightings.last_seen(device, &job.told.seen_as);
            let looked = self.sightings.last_look(&held.card_uuid);
            if seen.is_none_or(|seen| at.ms_since(seen) > PROVEN_MS) {
                return unproven("(nobody)");
            }
            if looked.is_none_or(|looked| at.ms_since(looked) > PROVEN_MS) {
                return unproven("(labels alone: its node doesn't look for holders)");
            }
            let named = self.named.get(device).filter(|sample| at.ms_since(sample.during.end()) <= PROVEN_MS);
            let named = named.and_then(|sample| sample.attempt_key.as_ref());
            if let Some(named) = named.filter(|named| !job.told.seen_as.contains(named))
                && !self.sightings.others_on(device, &job.told.seen_as, Interval::new(ago(at), at).expect("some time"))
            {
                return unproven(named.as_str());
            }
        }
        Attribution::Proven
    }
}

fn ago(at: Timestamp) -> Timestamp {
    Timestamp::from_unix_ms(at.unix_ms() - PROVEN_MS)
}

fn middle(during: Interval) -> Timestamp {
    Timestamp::from_unix_ms(during.start().unix_ms() + during.length_ms() / 2)
}

/// Of an amount over some time. Rounded down.
fn per_second(amount: i64, during: Interval) -> i64 {
    let rate = i128::from(amount) * 1000 / i128::from(during.length_ms());
    i64::try_from(rate).unwrap_or(i64::MAX)
}

/// A part of a whole, rounded down, from 0 to 100 %.
fn part(part: i128, whole: i128) -> Percent {
    let thousandths = part.saturating_mul(Percent::WHOLE.thousandths().into()).checked_div(whole).unwrap_or(0);
    let thousandths = thousandths.clamp(0, Percent::WHOLE.thousandths().into());
    percent(i32::try_from(thousandths).expect("it was clamped"))
}

fn percent(thousandths: i32) -> Percent {
    Percent::from_thousandths(thousandths).expect("from 0 to 100 %")
}

/// A signal that this source doesn't have isn't there; one that it has and couldn't read has failed (R09, R13).
fn check<T>(reading: Reading<T>) -> Check<T> {
    match reading {
        Reading::Seen(value) => Check::Seen(value),
        Reading::Missing(Gap::NotSupported | Gap::NotRecorded) => Check::NotThere,
        Reading::Missing(
            gap @ (Gap::NoPermission
            | Gap::DriverError
            | Gap::TimedOut
            | Gap::Stale
            | Gap::Implausible
            | Gap::CountersTaken
            | Gap::CardLost
            | Gap::Asleep
            | Gap::CollectorDown),
        ) => Check::Failed(gap),
    }
}

/// The busier of two; that one couldn't be read is told apart.
fn busier<T: Copy, K: Ord>(a: Check<T>, b: Check<T>, blind: &mut Option<Gap>, key: impl Fn(T) -> K) -> Check<T> {
    if let Check::Failed(gap) = b {
        *blind = Some(gap);
    }
    match (a.seen(), b.seen()) {
        (Some(a), Some(b)) => Check::Seen(if key(a) >= key(b) { a } else { b }),
        (Some(value), None) | (None, Some(value)) => Check::Seen(value),
        (None, None) => Check::NotThere,
    }
}

fn unseen(gap: Gap) -> CardReading {
    let none = Reading::Missing(gap);
    CardReading {
        sm_active: none,
        duty_cycle: none,
        memory_active: none,
        media_active: none,
        graphics_processes: Reading::Missing(gap),
        link_bytes_per_s: Reading::Missing(gap),
        power_above_idle: none,
        memory_used: none,
        own_sm_active: none,
    }
}

fn failed(gap: Gap) -> ProcessReading {
    ProcessReading {
        cpu_milli_cores: Check::NotThere,
        io_bytes_per_s: Check::NotThere,
        terminal: Check::NotThere,
        kernel: Check::Failed(gap),
    }
}

fn reported(job: &RunningJob) -> Option<ReportedPhase> {
    match &**job.labels.get(PHASE_LABEL)? {
        "setting-up" => Some(ReportedPhase::SettingUp),
        "loading-data" => Some(ReportedPhase::LoadingData),
        "checkpointing" => Some(ReportedPhase::Checkpointing),
        _ => None,
    }
}
