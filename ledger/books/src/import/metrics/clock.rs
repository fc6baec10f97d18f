//! Times of a log whose rows follow each other.

use super::look::Device;
use crate::import::time::{Moment, TimeError, TimeReader};
use cardhour_domain::Timestamp;
use std::collections::BTreeMap;

/// Reads the times of one log, row after row.
///
/// When clocks are set back an hour comes twice. A log goes on through both: of the two instants the earlier is meant until the log has
/// passed it (LED-9).
pub struct Clock {
    reader: TimeReader,
    last: BTreeMap<Device, Timestamp>,
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
                if last.is_some_and(|last| last > first) {
                    second
                } else {
                    first
                }
            }
        };
        self.last.insert(device.clone(), last.map_or(at, |last| last.max(at)));
        Ok(Some(at))
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

    #[test]
    fn both_ways_in_which_nvidia_smi_writes_times_are_known() {
        assert_eq!(of_smi("2026/07/14 08:12:53.353"), "2026-07-14 08:12:53.353");
        assert_eq!(of_smi("Fri May  3 11:54:37 2024"), "2024-05-03 11:54:37");
        assert_eq!(of_smi("soon"), "soon");
    }
}
