//! A week of the simulated site (`cardhour_books::demo`), told minute by minute, in which what is ended ends.
//!
//! The site's rows are of a quarter hour where nothing changed in it; a real collector tells each tick. So a row is cut into the minutes that it is made
//! of: rates stay, amounts are split, as its own documentation says they were joined. When a job is ended, its rows stop, and what its cards said is
//! from then on what those who are left make them do.

use cardhour_books::attempt::Attempt;
use cardhour_books::demo::{CLUSTER, Deed, demo_site};
use cardhour_books::observed::Seen;
use cardhour_domain::{
    Activity, AttemptKey, CardShare, HolderKind, Interval, JobState, Millijoules, Milliwatts, Month, Name, Observation,
    Percent, Reading, Sample, SeenDevice, Timestamp, Watch,
};
use std::collections::BTreeMap;

pub const MINUTE: i64 = 60_000;
pub const DAYS: i64 = 7;

/// What nodes told in one minute, by node.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub samples: Vec<Sample>,
    pub activity: Vec<Activity>,
    pub observations: Vec<Observation>,
    pub watches: Vec<Watch>,
}

pub struct Site {
    pub week: Interval,
    pub deeds: BTreeMap<AttemptKey, Deed>,
    pub devices: Vec<SeenDevice>,
    pub least_power_mw: BTreeMap<Name, i64>,
    /// Who a holder is, and what it pays with: of its first row.
    holders: BTreeMap<AttemptKey, Observation>,
    samples: Vec<Vec<Sample>>,
    activity: Vec<Vec<Activity>>,
    observations: Vec<Observation>,
    watches: Vec<Watch>,
    /// What was ended, and when.
    pub ended: BTreeMap<AttemptKey, Timestamp>,
}

impl Site {
    /// A week of it that begins with its eighth day: a node fails in it, and a collector is away for an hour.
    pub fn new(seed: u64) -> Self {
        let site = demo_site(seed, Month::new(2026, 6).unwrap());
        let start = site.months[1].interval(site.zone).start().checked_add_ms(7 * 24 * 60 * MINUTE).unwrap();
        let week = Interval::new(start, start.checked_add_ms(DAYS * 24 * 60 * MINUTE).unwrap()).unwrap();
        // A day before it too, so that what runs at its start is known.
        let before = Interval::new(start.checked_add_ms(-60 * MINUTE).unwrap(), week.end()).unwrap();
        let minutes = (before.length_ms() / MINUTE) as usize;
        let mut of = Self {
            week,
            deeds: site.deeds().into_iter().map(|deed| (deed.seen_as.clone(), deed)).collect(),
            devices: Vec::new(),
            least_power_mw: BTreeMap::new(),
            holders: BTreeMap::new(),
            samples: vec![Vec::new(); minutes],
            activity: vec![Vec::new(); minutes],
            observations: Vec::new(),
            watches: Vec::new(),
            ended: BTreeMap::new(),
        };
        for spool in site.spools() {
            of.devices.extend(spool.rows.devices);
            for sample in spool.rows.samples {
                if let Some(power) = sample.power_mw.seen() {
                    let least = of.least_power_mw.entry(sample.card_uuid.clone()).or_insert(power.0);
                    *least = power.0.min(*least);
                }
                for minute in minutes_of(before, sample.during) {
                    of.samples[minute].push(sample.clone());
                }
            }
            for row in spool.rows.activity {
                for minute in minutes_of(before, row.during) {
                    of.activity[minute].push(row.clone());
                }
            }
            for seen in spool.rows.observations {
                of.holders.entry(seen.holder.key()).or_insert_with(|| seen.clone());
                if seen.during.overlap(before).is_some() {
                    of.observations.push(seen);
                }
            }
            of.watches.extend(spool.rows.watches.into_iter().filter(|watch| watch.during.overlap(before).is_some()));
        }
        of
    }

    /// One in whose place another comes.
    pub fn empty_like() -> Self {
        let week = Interval::new(Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(1)).unwrap();
        Self {
            week,
            deeds: BTreeMap::new(),
            devices: Vec::new(),
            least_power_mw: BTreeMap::new(),
            holders: BTreeMap::new(),
            samples: Vec::new(),
            activity: Vec::new(),
            observations: Vec::new(),
            watches: Vec::new(),
            ended: BTreeMap::new(),
        }
    }

    fn minute(&self, at: Timestamp) -> usize {
        ((at.ms_since(self.week.start()) + 60 * MINUTE) / MINUTE) as usize
    }

    /// What a node told of the minute that begins at `at`, by node.
    pub fn told(&self, at: Timestamp) -> BTreeMap<Name, Told> {
        let minute = Interval::new(at, at.checked_add_ms(MINUTE).unwrap()).unwrap();
        let mut told: BTreeMap<Name, Told> = BTreeMap::new();
        let mut rows: BTreeMap<&Name, Vec<&Activity>> = BTreeMap::new();
        for row in &self.activity[self.minute(at)] {
            rows.entry(&row.device_uuid).or_default().push(row);
        }
        for sample in &self.samples[self.minute(at)] {
            let Some(during) = sample.during.overlap(minute) else { continue };
            let beside: Vec<&Activity> = rows.get(&sample.device_uuid).into_iter().flatten().copied().collect();
            let beside: Vec<&Activity> =
                beside.into_iter().filter(|row| row.during.overlap(during).is_some()).collect();
            told.entry(sample.node.clone()).or_default().samples.push(self.cut_sample(sample, &beside, during));
        }
        for row in rows.values().flatten() {
            let during = row.during.overlap(minute);
            if let Some(during) = during.filter(|_| !self.is_ended(&row.holder, at)) {
                told.entry(row.node.clone()).or_default().activity.push(cut_activity(row, during));
            }
        }
        for seen in &self.observations {
            let end = self.ended.get(&seen.holder.key()).copied().unwrap_or(minute.end());
            let during = seen.during.overlap(minute);
            let during = during.and_then(|during| Interval::new(during.start(), during.end().min(end)));
            if let Some(during) = during {
                told.entry(seen.node.clone()).or_default().observations.push(Observation { during, ..seen.clone() });
            }
        }
        for watch in &self.watches {
            if let Some(during) = watch.during.overlap(minute) {
                told.entry(watch.node.clone()).or_default().watches.push(Watch { during, ..watch.clone() });
            }
        }
        told
    }

    pub fn is_ended(&self, key: &AttemptKey, at: Timestamp) -> bool {
        self.ended.get(key).is_some_and(|ended| *ended <= at)
    }

    /// What a card says over a part of a row, without those that were ended.
    fn cut_sample(&self, sample: &Sample, beside: &[&Activity], during: Interval) -> Sample {
        let gone: i32 = beside
            .iter()
            .filter(|row| self.is_ended(&row.holder, during.start()))
            .filter_map(|row| row.sm_active_pct.seen())
            .map(Percent::thousandths)
            .sum();
        let is_any_gone = beside.iter().any(|row| self.is_ended(&row.holder, during.start()));
        let amount = |reading: Reading<i64>| reading.map(|total| part(total, sample.during, during));
        let mut cut = Sample {
            during,
            nvlink_bytes: amount(sample.nvlink_bytes),
            pcie_bytes: amount(sample.pcie_bytes),
            energy_mj: sample.energy_mj.map(|energy| Millijoules(part(energy.0, sample.during, during))),
            ..sample.clone()
        };
        if is_any_gone {
            let left = |percent: Percent| Percent::from_thousandths((percent.thousandths() - gone).max(0)).unwrap();
            cut.sm_active_pct = cut.sm_active_pct.map(left);
            cut.attempt_key = None;
            let is_at_rest = cut.sm_active_pct.seen().is_some_and(|percent| percent.thousandths() < 500);
            if is_at_rest {
                cut.sm_active_pct = cut.sm_active_pct.map(|_| Percent::from_thousandths(0).unwrap());
                cut.mem_active_pct = cut.mem_active_pct.map(|_| Percent::from_thousandths(0).unwrap());
                cut.nvlink_bytes = cut.nvlink_bytes.map(|_| 0);
                cut.pcie_bytes = cut.pcie_bytes.map(|_| 0);
                let least = self.least_power_mw.get(&sample.card_uuid).copied().unwrap_or(0);
                cut.power_mw = cut.power_mw.map(|_| Milliwatts(least));
            }
        }
        cut
    }

    /// The records at an instant: Slurm's jobs that hold cards.
    pub fn records(&self, at: Timestamp) -> Vec<Attempt> {
        let runs = self.deeds.values().filter(|deed| {
            deed.kind == HolderKind::SlurmJob && deed.during.contains(at) && !self.is_ended(&deed.seen_as, at)
        });
        runs.filter_map(|deed| Some(self.record(deed, self.holders.get(&deed.seen_as)?, at))).collect()
    }

    fn record(&self, deed: &Deed, seen: &Observation, at: Timestamp) -> Attempt {
        let key = Self::record_key(deed);
        let is_suspended = deed.suspended.is_some_and(|during| during.contains(at));
        let state = if is_suspended { JobState::Suspended } else { JobState::Running };
        let mut attempt = Attempt::new(key, CLUSTER.into(), seen.holder.job_id.clone(), state);
        attempt.restart = Some(0);
        attempt.org = seen.owner.org.clone();
        attempt.project = seen.owner.project.clone();
        attempt.user = seen.owner.user.clone();
        attempt.queue = seen.owner.queue.clone();
        attempt.class = Some(deed.class.into());
        attempt.started_at = Some(deed.during.start());
        attempt.as_of = Some(at);
        attempt.cards = CardShare::from_cards(deed.card_uuids.len() as i64).unwrap();
        // Training writes a checkpoint when it is asked to.
        if deed.class == "training" {
            attempt.labels.insert("cardhour-checkpoint".into(), "USR1".into());
            attempt.labels.insert("cardhour-checkpoint-file".into(), "/shared/last".into());
        }
        attempt
    }

    /// The books' own key of a run of Slurm's.
    pub fn record_key(deed: &Deed) -> AttemptKey {
        match deed.kind {
            HolderKind::SlurmJob => {
                let job = deed.seen_as.job().rsplit_once('/').unwrap().1.to_owned();
                AttemptKey::new(CLUSTER, &job, &format!("db{}", deed.during.start().unix_ms() / 1000))
            }
            HolderKind::Pod | HolderKind::Session | HolderKind::Process | HolderKind::VirtualMachine => {
                deed.seen_as.clone()
            }
        }
    }

    /// Whose deed a key of the books is of.
    pub fn deed_of(&self, key: &AttemptKey) -> &Deed {
        self.deeds.values().find(|deed| Self::record_key(deed) == *key).expect("every job has its deed")
    }
}

impl Told {
    pub fn add(&mut self, other: Told) {
        self.samples.extend(other.samples);
        self.activity.extend(other.activity);
        self.observations.extend(other.observations);
        self.watches.extend(other.watches);
    }

    /// What ends after an instant, and what was seen as the tables give it.
    pub fn since(&mut self, at: Timestamp) {
        self.samples.retain(|row| row.during.end() > at);
        self.activity.retain(|row| row.during.end() > at);
        self.observations.retain(|row| row.during.end() > at);
        self.watches.retain(|row| row.during.end() > at);
    }
}

/// The minutes of a stretch, counted from its start, that a row lies in.
fn minutes_of(whole: Interval, during: Interval) -> std::ops::Range<usize> {
    let Some(inside) = during.overlap(whole) else { return 0..0 };
    let first = inside.start().ms_since(whole.start()) / MINUTE;
    let last = (inside.end().ms_since(whole.start()) + MINUTE - 1) / MINUTE;
    first as usize..last as usize
}

/// The part of an amount that falls into a piece of the time it is of, so that pieces add up.
fn part(total: i64, whole: Interval, piece: Interval) -> i64 {
    let before =
        |at: Timestamp| i128::from(total) * i128::from(at.ms_since(whole.start())) / i128::from(whole.length_ms());
    (before(piece.end()) - before(piece.start())) as i64
}

fn cut_activity(row: &Activity, during: Interval) -> Activity {
    let amount = |reading: Reading<i64>| reading.map(|total| part(total, row.during, during));
    Activity { during, cpu_ms: amount(row.cpu_ms), io_bytes: amount(row.io_bytes), ..row.clone() }
}

/// The rows as a round reads them: what meets is one row, as in a segment.
pub fn seen(told: &Told, devices: &[SeenDevice]) -> Seen {
    let mut observations: BTreeMap<(AttemptKey, &Name), (&Observation, Vec<Interval>)> = BTreeMap::new();
    for row in &told.observations {
        let of_holder = observations.entry((row.holder.key(), &row.device_uuid)).or_insert((row, Vec::new()));
        of_holder.1.push(row.during);
    }
    let mut watches: BTreeMap<&Name, (&Watch, Vec<Interval>)> = BTreeMap::new();
    for row in &told.watches {
        watches.entry(&row.card_uuid).or_insert((row, Vec::new())).1.push(row.during);
    }
    let joined = |(row, all): (&Observation, Vec<Interval>)| {
        let row = row.clone();
        Interval::union(all).into_iter().map(move |during| Observation { during, ..row.clone() })
    };
    let watched = |(row, all): (&Watch, Vec<Interval>)| {
        let row = row.clone();
        Interval::union(all).into_iter().map(move |during| Watch { during, ..row.clone() })
    };
    Seen {
        observations: observations.into_values().flat_map(joined).collect(),
        watches: watches.into_values().flat_map(watched).collect(),
        devices: devices.to_vec(),
    }
}
