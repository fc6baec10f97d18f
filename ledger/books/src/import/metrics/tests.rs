//! What whole files of telemetry come to. Right answers come from the captures themselves, read by eye or by a calculation beside them.

mod captures;
mod laws;
mod prometheus;
mod scrape;
mod smi_log;
mod smi_xml;
mod table;

use super::{Readout, Setting, Telemetry};
use cardhour_domain::{Gap, Percent, Reading, Sample, Timestamp};

pub(super) fn setting() -> Setting {
    Setting { node: Some("n1".into()), ..Setting::of_cluster("lab") }
}

pub(super) fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

pub(super) fn pct(percent: i32) -> Reading<Percent> {
    Reading::Seen(Percent::from_thousandths(percent * 1000).unwrap())
}

pub(super) fn missing<T>(gap: Gap) -> Reading<T> {
    Reading::Missing(gap)
}

pub(super) fn of(readout: Readout) -> Telemetry {
    Telemetry::of([readout], &setting())
}

/// Seconds that samples cover.
pub(super) fn seconds(samples: &[Sample]) -> i64 {
    samples.iter().map(|sample| sample.during.length_ms()).sum::<i64>() / 1000
}

/// `from … to` of each sample, seconds of the day.
pub(super) fn stretches(samples: &[Sample]) -> Vec<(i64, i64)> {
    let second = |at: Timestamp| at.unix_ms().rem_euclid(86_400_000) / 1000;
    samples.iter().map(|sample| (second(sample.during.start()), second(sample.during.end()))).collect()
}
