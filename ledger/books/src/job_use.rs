//! What each attempt's cards and processes did, tick by tick: how busy the multiprocessors were and how that spread, and whether a resting card's processes were at work.
//!
//! Of a tick counts what its device's only holder did; where several held it, nothing tells their work apart. Start at [`note`]. Does not: judge, read tables.

use crate::advice::HeldDevices;
use cardhour_domain::{Activity, AttemptKey, Name, Percent, Sample};
use std::collections::BTreeMap;

/// A card under this rests: the floor of idleness (design §4.4). Unit: thousandths of a percent.
const RESTS_UNDER_THOUSANDTHS: i32 = 2_000;
/// Processes from this on compute. Unit: thousandths of a core.
const COMPUTES_FROM_MILLI: i64 = 50;
/// Processes from this on read or write. Unit: bytes a second.
const READS_FROM_BYTES_PER_S: i64 = 1_000_000;

/// What one attempt did in the time that was looked at. Unit of all times: milliseconds a card, summed over its cards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobUse {
    /// How long its cards told how busy they were, by whole percents, rounded up.
    by_percent: BTreeMap<i32, i64>,
    /// Activity × time. Unit: thousandths of a percent × milliseconds.
    weighed: i128,
    /// The most memory that was in use on one card. Unit: bytes.
    pub memory_peak_bytes: Option<i64>,
    /// A card worked.
    pub working_ms: i64,
    /// It rested, and the processes read or wrote.
    pub rested_for_io_ms: i64,
    /// It rested, and the processes computed without reading or writing.
    pub rested_for_cpu_ms: i64,
}

impl JobUse {
    /// How long it was seen.
    pub fn seen_ms(&self) -> i64 {
        self.by_percent.values().sum()
    }

    /// How busy it was on average; none of one that was never seen.
    pub fn mean(&self) -> Option<Percent> {
        let seen = i128::from(self.seen_ms());
        (seen > 0).then(|| i32::try_from(self.weighed / seen).ok().and_then(Percent::from_thousandths)).flatten()
    }

    /// What it stays under for so much of the time, in whole percents.
    pub fn quantile(&self, percent: i64) -> Option<Percent> {
        let least = i128::from(self.seen_ms()) * i128::from(percent);
        let mut sum = 0;
        let found = self.by_percent.iter().find(|(_, ms)| {
            sum += i128::from(**ms) * 100;
            sum >= least
        });
        found.and_then(|(percent, _)| Percent::from_thousandths(percent * 1000))
    }
}

impl JobUse {
    /// From how long its cards were busy by how many whole percents, for who knows it otherwise. Unit: milliseconds.
    pub fn of_percents(percents: &[(i32, i64)]) -> Self {
        let mut used = Self::default();
        for (percent, ms) in percents {
            *used.by_percent.entry(*percent).or_default() += ms;
            used.weighed += i128::from(*percent) * 1000 * i128::from(*ms);
        }
        used
    }
}

/// Adds ticks of cards and of the processes on them, in any order, each once: all of a device's tick in one call.
pub fn note(held: &HeldDevices, samples: &[Sample], activity: &[Activity], into: &mut BTreeMap<AttemptKey, JobUse>) {
    let mut processes: BTreeMap<(&Name, i64), (i64, i64)> = BTreeMap::new();
    for one in activity {
        let (Some(cpu), Some(io)) = (one.cpu_ms.seen(), one.io_bytes.seen()) else { continue };
        let (cpu_ms, io_bytes) = processes.entry((&one.device_uuid, one.during.start().unix_ms())).or_insert((0, 0));
        *cpu_ms += cpu;
        *io_bytes += io;
    }
    // Of several sources for one tick the best counts.
    let mut ticks: BTreeMap<(&Name, i64), &Sample> = BTreeMap::new();
    for sample in samples {
        let tick = ticks.entry((&sample.device_uuid, sample.during.start().unix_ms())).or_insert(sample);
        if sample.outranks(tick) {
            *tick = sample;
        }
    }
    for (tick, sample) in ticks {
        let Some(sm) = sample.sm_active_pct.seen() else { continue };
        let Some(holder) = held.only_holder(&sample.device_uuid, sample.during) else { continue };
        let length_ms = sample.during.length_ms();
        let job = into.entry(holder.clone()).or_default();
        *job.by_percent.entry((sm.thousandths() + 999) / 1000).or_default() += length_ms;
        job.weighed += i128::from(sm.thousandths()) * i128::from(length_ms);
        job.memory_peak_bytes = job.memory_peak_bytes.max(sample.mem_used_bytes.seen());
        if sm.thousandths() >= RESTS_UNDER_THOUSANDTHS {
            job.working_ms += length_ms;
        } else if let Some((cpu_ms, io_bytes)) = processes.get(&tick) {
            if i128::from(*io_bytes) * 1000 >= i128::from(READS_FROM_BYTES_PER_S) * i128::from(length_ms) {
                job.rested_for_io_ms += length_ms;
            } else if i128::from(*cpu_ms) * 1000 >= i128::from(COMPUTES_FROM_MILLI) * i128::from(length_ms) {
                job.rested_for_cpu_ms += length_ms;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::range;
    use cardhour_domain::{EnergyBasis, Gap, Interval, Reading, SampleSource, UseBasis};

    fn sample(during: Interval, percent: i32, bytes: i64) -> Sample {
        let missing = Gap::NotRecorded;
        Sample {
            during,
            card_uuid: "g0".into(),
            device_uuid: "g0".into(),
            node: "n1".into(),
            attempt_key: None,
            sm_active_pct: Reading::Seen(Percent::from_thousandths(percent * 1000).unwrap()),
            use_basis: UseBasis::Gpm,
            mem_active_pct: Reading::Missing(missing),
            media_active_pct: Reading::Missing(missing),
            mem_used_bytes: Reading::Seen(bytes),
            nvlink_bytes: Reading::Missing(missing),
            pcie_bytes: Reading::Missing(missing),
            power_mw: Reading::Missing(missing),
            energy_mj: Reading::Missing(missing),
            energy_basis: EnergyBasis::Counter,
            temperature_c: Reading::Missing(missing),
            source: SampleSource::Collector,
        }
    }

    fn activity(during: Interval, cpu_ms: i64, io_bytes: i64) -> Activity {
        Activity {
            during,
            node: "n1".into(),
            card_uuid: "g0".into(),
            device_uuid: "g0".into(),
            holder: AttemptKey::new("c", "a", ""),
            processes: 1,
            sm_active_pct: Reading::Missing(Gap::NotRecorded),
            mem_used_bytes: Reading::Missing(Gap::NotRecorded),
            cpu_ms: Reading::Seen(cpu_ms),
            io_bytes: Reading::Seen(io_bytes),
            is_attended: Reading::Seen(false),
        }
    }

    /// By hand, ticks of a quarter hour, 900 s: busy by 50 %, then at rest while 900 MB are read, at rest while 45 s of a core go by, and at rest without either. The mean is 12.5 %; three of four
    /// ticks are under 1 %, so that 95 of 100 lie under 50. The next tick is of two holders.
    #[test]
    fn a_resting_card_waits_for_what_its_processes_do() {
        let at = |from: &str, to: &str| range(&format!("2026-03-10T{from}"), &format!("2026-03-10T{to}"));
        let key = |job: &str| AttemptKey::new("c", job, "");
        let held = HeldDevices::new([
            ("g0".into(), at("12:00", "14:00"), key("a")),
            ("g0".into(), at("13:00", "14:00"), key("b")),
        ]);
        let ticks = [
            at("12:00", "12:15"),
            at("12:15", "12:30"),
            at("12:30", "12:45"),
            at("12:45", "13:00"),
            at("13:00", "13:15"),
        ];
        let samples: Vec<Sample> =
            ticks.iter().zip([50, 0, 0, 0, 90]).map(|(tick, percent)| sample(*tick, percent, 7)).collect();
        let activity =
            [activity(ticks[1], 900_000, 900_000_000), activity(ticks[2], 45_000, 0), activity(ticks[3], 44_999, 1)];
        let mut found = BTreeMap::new();
        note(&held, &samples, &activity, &mut found);
        assert_eq!(found.len(), 1, "what two hold is nobody's");
        let job = &found[&key("a")];
        let minutes = |ms: i64| ms / 60_000;
        assert_eq!(
            [job.seen_ms(), job.working_ms, job.rested_for_io_ms, job.rested_for_cpu_ms].map(minutes),
            [60, 15, 15, 15]
        );
        assert_eq!(job.mean().unwrap().to_string(), "12.5");
        assert_eq!([75, 95].map(|percent| job.quantile(percent).unwrap().to_string()), ["0", "50"]);
        assert_eq!(job.memory_peak_bytes, Some(7));
    }
}
