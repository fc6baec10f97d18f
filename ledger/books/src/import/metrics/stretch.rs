//! From instants to stretches of time: how long what was read at an instant holds.
//!
//! What is read at an instant tells of the time before it: a duty cycle is of the driver's last sampling period, a counter grew since the
//! instant before, a mean was taken up to now. So the sample of an instant covers the time *since the instant before*, [before, at). Where
//! the instant before is more than three steps away, or there is none, it covers one step, [at − step, at): the hole is unseen, never
//! idle, and the first instant counts for one step.
//!
//! A step is given, or found: the median of the distances around an instant, so that a log that was started anew with another step has both. A
//! device with one instant has the step of the others; where no device has two, an instant covers one second, the longest period over which a driver
//! takes its values.

use super::energy::{self, Meter};
use super::look::{Device, Look, Signals};
use super::suspect;
use cardhour_domain::{Gap, Interval, Millijoules, Name, Reading, Sample, SampleSource, Timestamp};
use std::collections::BTreeMap;

/// The longest silence over which a reading is carried. Unit: steps.
const MOST_STEPS: i64 = 3;
/// How many distances before and after an instant's own have a say in its step.
const AROUND: usize = 7;
/// What an instant covers that stands alone. Unit: milliseconds.
const LONE_MS: i64 = 1_000;

/// Makes samples of looks.
///
/// `step_ms`: from one instant to the next; none to find it. `after`: instants up to it are only compared with. Shape: looks in any order, repeats allowed; samples by device, source and
/// time, which never overlap within a device and source. What two readers say of one device and instant counts once (K23, M15): first
/// that of the reader with the most instants, the others only where it is silent.
pub fn samples(looks: Vec<Look>, step_ms: Option<i64>, after: Option<Timestamp>) -> Vec<Sample> {
    let mut series: BTreeMap<(Device, SampleSource), Vec<Look>> = BTreeMap::new();
    for look in looks {
        series.entry((look.device.clone(), look.source)).or_default().push(look);
    }
    let series: Vec<Vec<Look>> = series.into_values().map(one_reader).collect();
    let distances: Vec<Vec<i64>> = series.iter().map(|looks| distances(looks)).collect();
    let others = median(distances.iter().filter_map(|of_one| median(of_one.clone())).collect());
    let mut samples = Vec::new();
    for (looks, distances) in series.into_iter().zip(distances) {
        let step_ms = |i: usize| step_ms.or_else(|| step_at(&distances, i)).or(others).unwrap_or(LONE_MS).max(1);
        of_device(&looks, step_ms, after, &mut samples);
    }
    samples
}

/// The step at the i-th instant; none where there is only one.
fn step_at(distances: &[i64], i: usize) -> Option<i64> {
    let own = i.saturating_sub(1);
    let around = own.saturating_sub(AROUND)..(own + AROUND + 1).min(distances.len());
    median(distances[around].to_vec())
}

/// The looks of one device and source in order of time, one an instant.
///
/// A field that the source has at some instants and not at others is missing there because nobody read it, not because there is none.
fn one_reader(looks: Vec<Look>) -> Vec<Look> {
    let mut counts: BTreeMap<Name, i64> = BTreeMap::new();
    let mut by_reader: BTreeMap<(Timestamp, Name), Look> = BTreeMap::new();
    for look in looks {
        match by_reader.entry((look.at, look.reader.clone())) {
            std::collections::btree_map::Entry::Occupied(mut same) => {
                same.get_mut().told = same.get().told.max(look.told);
                same.get_mut().signals.merge(&look.signals);
            }
            std::collections::btree_map::Entry::Vacant(free) => {
                *counts.entry(look.reader.clone()).or_default() += 1;
                free.insert(look);
            }
        }
    }
    let mut ranked: Vec<Look> = by_reader.into_values().collect();
    ranked.sort_by_cached_key(|look| (look.at, -counts[&look.reader], look.reader.clone()));
    let mut kept: Vec<Look> = Vec::with_capacity(ranked.len());
    for look in ranked {
        match kept.last_mut() {
            Some(last) if last.at == look.at => last.signals.fill(&look.signals),
            _ => kept.push(look),
        }
    }
    let mut ever = Signals::default();
    kept.iter().for_each(|look| ever.fill(&look.signals));
    let lacking = ever.lacking();
    kept.iter_mut().for_each(|look| look.signals.fill(&lacking));
    kept
}

fn distances(looks: &[Look]) -> Vec<i64> {
    looks.windows(2).map(|pair| pair[1].at.ms_since(pair[0].at)).collect()
}

/// The middle one, the smaller of two.
fn median(mut all: Vec<i64>) -> Option<i64> {
    let middle = all.len().checked_sub(1)? / 2;
    Some(*all.select_nth_unstable(middle).1)
}

fn of_device(looks: &[Look], step_ms: impl Fn(usize) -> i64, after: Option<Timestamp>, samples: &mut Vec<Sample>) {
    let mut meter = Meter::default();
    let mut before: Option<Timestamp> = None;
    for (i, look) in looks.iter().enumerate() {
        let step_ms = step_ms(i);
        let reached = before.filter(|before| look.at.ms_since(*before) <= step_ms.saturating_mul(MOST_STEPS));
        let start = reached.or_else(|| look.at.checked_add_ms(-step_ms));
        before = Some(look.at);
        let Some(during) = start.and_then(|start| Interval::new(start, look.at)) else { continue };
        // Made all the same where it doesn't count: the next one's counter has grown since.
        let sample = sample(look, during, reached, &mut meter);
        if after.is_none_or(|after| look.at > after) {
            samples.push(sample);
        }
    }
}

/// `reached`: the instant before, where the sample reaches back to it.
fn sample(look: &Look, during: Interval, reached: Option<Timestamp>, meter: &mut Meter) -> Sample {
    let signals = &look.signals;
    let (sm_active_pct, use_basis) = suspect::use_of(signals, look.told);
    let length_ms = during.length_ms();
    let grown = match (signals.energy_counter_mj, signals.energy_mj) {
        (Reading::Seen(counter), _) => {
            let since = meter.since();
            let grown = meter.grown(look.at, counter, signals.power_limit_mw);
            match grown.filter(|_| since.is_some() && since == reached) {
                Some(grown) => Reading::Seen(grown),
                None => Reading::Missing(Gap::CollectorDown),
            }
        }
        (Reading::Missing(Gap::NotRecorded), Reading::Seen(mj)) => since_before(mj, length_ms, reached, signals),
        (Reading::Missing(Gap::NotRecorded), Reading::Missing(gap)) | (Reading::Missing(gap), _) => {
            Reading::Missing(gap)
        }
    };
    let (energy_mj, energy_basis) = energy::of_stretch(grown, signals.power_mw, length_ms);
    if let (Reading::Missing(_), Reading::Seen(mj)) = (grown, energy_mj) {
        meter.estimated(mj);
    }
    Sample {
        during,
        card_uuid: look.device.card_uuid.clone(),
        device_uuid: look.device.device_uuid.clone(),
        node: look.device.node.clone(),
        attempt_key: None,
        sm_active_pct,
        use_basis,
        mem_active_pct: better(signals.mem_active_pct, signals.mem_duty_pct),
        media_active_pct: signals.media_active_pct,
        mem_used_bytes: signals.mem_used_bytes,
        nvlink_bytes: moved(signals.nvlink_sent, signals.nvlink_received, length_ms),
        pcie_bytes: moved(signals.pcie_sent, signals.pcie_received, length_ms),
        power_mw: signals.power_mw,
        energy_mj: energy_mj.map(Millijoules),
        energy_basis,
        temperature_c: signals.temperature_c,
        source: look.source,
    }
}

/// Energy that a source tells since the instant before: over a hole it is the hole's as well, and then not of this step alone.
fn since_before(mj: i64, length_ms: i64, reached: Option<Timestamp>, signals: &Signals) -> Reading<i64> {
    match reached {
        None => Reading::Missing(Gap::CollectorDown),
        Some(_) if i128::from(mj) > energy::most_mj(signals.power_limit_mw, length_ms) => {
            Reading::Missing(Gap::Implausible)
        }
        Some(_) => Reading::Seen(mj),
    }
}

/// What two rates moved over a time, both ways. Missing where either is: half of a sum is no sum.
fn moved(sent: Reading<i64>, received: Reading<i64>, length_ms: i64) -> Reading<i64> {
    match (sent, received) {
        (Reading::Seen(sent), Reading::Seen(received)) => {
            let bytes = (i128::from(sent) + i128::from(received)) * i128::from(length_ms) / 1000;
            i64::try_from(bytes).map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
        }
        (Reading::Missing(gap), _) | (_, Reading::Missing(gap)) => Reading::Missing(gap),
    }
}

/// The first where it is seen, else the second; of two reasons that of a source that has the field.
fn better<T: Copy>(first: Reading<T>, second: Reading<T>) -> Reading<T> {
    match (first, second) {
        (Reading::Seen(_), _) => first,
        (_, Reading::Seen(_)) | (Reading::Missing(Gap::NotRecorded), _) => second,
        _ => first,
    }
}

/// An instance shares the sensors of its card: power, energy and the bus are the card's, and its row has none (design §6).
pub fn without_board(signals: Signals) -> Signals {
    Signals {
        power_mw: Reading::Missing(Gap::NotSupported),
        power_limit_mw: Reading::Missing(Gap::NotSupported),
        energy_counter_mj: Reading::Missing(Gap::NotSupported),
        energy_mj: Reading::Missing(Gap::NotSupported),
        temperature_c: Reading::Missing(Gap::NotSupported),
        pcie_sent: Reading::Missing(Gap::NotSupported),
        pcie_received: Reading::Missing(Gap::NotSupported),
        nvlink_sent: Reading::Missing(Gap::NotSupported),
        nvlink_received: Reading::Missing(Gap::NotSupported),
        duty_cycle_pct: Reading::Missing(Gap::NotSupported),
        mem_duty_pct: Reading::Missing(Gap::NotSupported),
        media_active_pct: Reading::Missing(Gap::NotSupported),
        ..signals
    }
}
