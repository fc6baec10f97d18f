//! Text of dcgm-exporter or nvidia_gpu_exporter, as a scrape of `/metrics` gives it.

use super::exposition;
use super::gathering::Gathering;
use super::look::Told;
use super::pods::Pods;
use super::quantity;
use super::{MetricsError, Readout, Setting, metric};
use crate::attempt::Rejected;
use crate::import::readers::lines::Lines;
use crate::import::time::{Unit, scaled_ms};
use cardhour_domain::Timestamp;

/// One scrape.
#[derive(Clone, Copy, Debug)]
pub struct Scrape<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// When it was made. A timestamp in the text goes before it.
    pub at: Option<Timestamp>,
}

/// Reads scrapes, best all of an import together: whether `pod` names the owner or the exporter shows only in the whole (R22).
///
/// A line that can't be read is rejected, one of another metric passed over. Lines are counted in each scrape. Errors: a value without a
/// time.
pub fn read(scrapes: &[Scrape], setting: &Setting) -> Result<Readout, MetricsError> {
    let (readout, rejected) = read_each(scrapes, setting)?;
    Ok(Readout { rejected: rejected.into_iter().flatten().collect(), ..readout })
}

/// The same, with what was rejected of each scrape apart.
pub fn read_each(scrapes: &[Scrape], setting: &Setting) -> Result<(Readout, Vec<Vec<Rejected>>), MetricsError> {
    let mut gathering = Gathering::new(setting, Told::Instant);
    let mut all_rejected = Vec::new();
    for (i, scrape) in scrapes.iter().enumerate() {
        let mut rejected = Vec::new();
        // OpenMetrics, which ends so, counts in seconds.
        let unit = match scrape.text.trim_ascii_end().ends_with(b"# EOF") {
            true => Unit::Seconds,
            false => Unit::Milliseconds,
        };
        let mut lines = Lines::new(scrape.text, 0);
        while let Some(line) = lines.next_written() {
            let bytes = lines.text(&line);
            let mut reject = |reason: String| {
                let row = String::from_utf8_lossy(bytes).into_owned();
                rejected.push(Rejected { line: line.number, row, field: String::new(), reason });
            };
            let Ok(text) = std::str::from_utf8(bytes) else {
                reject("is not UTF-8".to_owned());
                continue;
            };
            let sample = match exposition::read(text) {
                Ok(Some(sample)) => sample,
                Ok(None) => continue,
                Err(why) => {
                    reject(why.to_owned());
                    continue;
                }
            };
            let Some(metric) = metric::find(sample.name) else { continue };
            let at = match sample.timestamp {
                None => scrape.at.ok_or(MetricsError::NoTime { scrape: i, line: line.number })?,
                Some(written) => match scaled_ms(written, unit).map(Timestamp::from_unix_ms) {
                    Some(at) if at.unix_ms() >= 0 && at.to_utc().is_some() => match setting.refusal(at) {
                        Some(why) => {
                            reject(why);
                            continue;
                        }
                        None => at,
                    },
                    _ => {
                        reject(format!("{written:?} is no timestamp after 1970"));
                        continue;
                    }
                },
            };
            if let Some(series) = gathering.series(&sample.labels, metric) {
                gathering.add(&series, at, quantity::of_series(sample.value));
            }
        }
        all_rejected.push(rejected);
    }
    let mut readout = gathering.readout(&Pods::default());
    if readout.looks.is_empty() {
        readout.notes.push("no metric of a card that is read here".to_owned());
    }
    Ok((readout, all_rejected))
}
