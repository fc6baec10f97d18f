//! Times of a log whose rows follow each other.

use super::look::Device;
use crate::import::time::{Moment, TimeError, TimeReader};
use cardhour_domain::Timestamp;
use std::collections::BTreeMap;

/// Reads the times of one log, row after row.
///
/// When clocks are set back an hour comes twice. A log goes on through both: of the two instants the earlier is meant until the log has
/// passed it (LED-9), or where it is nearer to the log's own step: an hourly log has a row in each.
pub struct Clock {
    reader: TimeReader,
    last: BTreeMap<Device, Last>,
}

/// The row before of one device.
#[derive(Clone, Copy)]
struct Last {
    at: Timestamp,
    /// The shortest distance between two rows so far; none before the second. Unit: milliseconds.
    step_ms: Option<i64>,
}

impl Clock {
    /// For a log of one way of writing times.
    pub fn new(reader: TimeReader) -> Self {
        Self { reader, last: BTreeMap::new() }
    }

    /// The instant of a row of `device`; none where there is none. Errors: no time.
    pub fn read(&mut self, device: &Device, text: &str) -> Result<Option<Timestamp>, TimeError> {
        let Some(moment) = self.reader.read(text)? else { return Ok(None) };
        let last = self.last.get(device).copied();
        let at = match moment {
            Moment::Once(at) => at,
            Moment::Twice(first, second) => {
                if last.is_some_and(|last| last.at > first || last.is_nearer(second, first)) { second } else { first }
            }
        };
        let since = last.map(|last| at.ms_since(last.at)).filter(|ms| *ms > 0);
        let step_ms = last.and_then(|last| last.step_ms).into_iter().chain(since).min();
        self.last.insert(device.clone(), Last { at: last.map_or(at, |last| last.at.max(at)), step_ms });
        Ok(Some(at))
    }
}

impl Last {
    /// Whether one instant is nearer to a step after this row than another.
    fn is_nearer(self, one: Timestamp, other: Timestamp) -> bool {
        let off = |at: Timestamp| self.step_ms.map(|step_ms| (at.ms_since(self.at) - step_ms).abs());
        off(one) < off(other)
    }
}

/// `2026/07/14 08:12:53.353` and `Mon Apr 24 16:22:39 2023`, as nvidia-smi writes times, in the order that [`TimeReader`] knows.
pub fn of_smi(text: &str) -> String {
    let text = text.trim();
    let bytes = text.as_bytes();
    if bytes.len() >= 10 && bytes[4] == b'/' && bytes[7] == b'/' {
        return text.replacen('/', "-", 2);
    }
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let [_, month, day, time, year] = words[..] else { return text.to_owned() };
    match MONTHS.iter().position(|name| *name == month) {
        Some(month) => format!("{year}-{:02}-{day:0>2} {time}", month + 1),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Zone;

    /// Source: IANA tz: Berlin's clocks went from 03:00 back to 02:00 on 2025-10-26 at 01:00 UTC.
    #[test]
    fn a_log_goes_on_through_an_hour_that_comes_twice() {
        let device = Device::card("n".into(), "GPU-1".into());
        let mut clock = Clock::new(TimeReader::in_zone(Zone::parse("Europe/Berlin").unwrap()));
        let mut read = |text: &str| clock.read(&device, &of_smi(text)).unwrap().unwrap().to_string();
        assert_eq!(read("2025/10/26 02:20:00.000"), "2025-10-26T00:20:00Z");
        assert_eq!(read("2025/10/26 02:50:00.000"), "2025-10-26T00:50:00Z");
        assert_eq!(read("2025/10/26 02:20:00.000"), "2025-10-26T01:20:00Z");
        assert_eq!(read("2025/10/26 02:20:00.000"), "2025-10-26T01:20:00Z");
        assert_eq!(read("2025/10/26 03:00:00.000"), "2025-10-26T02:00:00Z");
    }

    /// Every row is a little late: by the earlier instants two of them would be a third of a second apart, and an hour would be missing.
    #[test]
    fn an_hourly_log_has_a_row_in_each_of_the_two_hours() {
        let device = Device::card("n".into(), "GPU-1".into());
        let mut clock = Clock::new(TimeReader::in_zone(Zone::parse("Europe/Berlin").unwrap()));
        let mut read = |text: &str| clock.read(&device, &of_smi(text)).unwrap().unwrap().to_string();
        let told = ["00:30:00.0", "01:30:00.3", "02:30:00.6", "02:30:00.9", "03:30:01.2"]
            .map(|of_day| read(&format!("2025/10/26 {of_day}00")));
        let right =
            ["-25T22:30:00Z", "-25T23:30:00.300Z", "-26T00:30:00.600Z", "-26T01:30:00.900Z", "-26T02:30:01.200Z"];
        assert_eq!(told, right.map(|rest| format!("2025-10{rest}")));
    }

    #[test]
    fn both_ways_in_which_nvidia_smi_writes_times_are_known() {
        assert_eq!(of_smi("2026/07/14 08:12:53.353"), "2026-07-14 08:12:53.353");
        assert_eq!(of_smi("Fri May  3 11:54:37 2024"), "2024-05-03 11:54:37");
        assert_eq!(of_smi("soon"), "soon");
    }
}
