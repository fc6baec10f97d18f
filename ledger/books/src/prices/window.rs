//! A window of local time with a factor of its own, such as off-peak.

use cardhour_domain::{Interval, Name, Zone, ZoneError};
use chrono::{Datelike, Days, NaiveDate, NaiveTime, Timelike};

const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const MINUTES_A_DAY: u32 = 24 * 60;
const MINUTES_A_WEEK: u32 = 7 * MINUTES_A_DAY;

/// A window of local time that comes back on some days of the week.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its name; prices give their factor under it.
    pub name: Name,
    /// The days on which it begins, Monday first.
    pub days: [bool; 7],
    /// When it begins.
    pub from: NaiveTime,
    /// When it ends: on the next day unless it is after `from`. The same time is a whole day.
    pub to: NaiveTime,
}

impl Window {
    /// The window that begins on `date`; none when that isn't one of its days, or when clocks jump over all of it.
    ///
    /// By the zone's rules: over a night in which clocks go back it is an hour longer. Errors: an edge that isn't on a
    /// quarter hour of UTC (LED-7).
    pub fn on(&self, date: NaiveDate, zone: Zone) -> Result<Option<Interval>, ZoneError> {
        if !self.days[date.weekday().num_days_from_monday() as usize] {
            return Ok(None);
        }
        let last = if self.to <= self.from { date.checked_add_days(Days::new(1)) } else { Some(date) };
        let start = zone.quarter_hour(date.and_time(self.from))?;
        let Some(last) = last else { return Ok(None) };
        Ok(Interval::new(start, zone.quarter_hour(last.and_time(self.to))?))
    }

    /// Whether both claim some time of some day.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.week().any(|(from, length)| {
            other.week().any(|(start, long)| {
                (start + MINUTES_A_WEEK - from) % MINUTES_A_WEEK < length
                    || (from + MINUTES_A_WEEK - start) % MINUTES_A_WEEK < long
            })
        })
    }

    /// Its stretches of a week by the clock on the wall. Unit: (minute of the week it begins in, minutes long).
    fn week(&self) -> impl Iterator<Item = (u32, u32)> {
        let minute = |time: NaiveTime| time.num_seconds_from_midnight() / 60;
        let length = (minute(self.to) + MINUTES_A_DAY - minute(self.from)) % MINUTES_A_DAY;
        let length = if length == 0 { MINUTES_A_DAY } else { length };
        let days = (0u32..).zip(self.days).filter(|(_, begins)| *begins);
        days.map(move |(day, _)| (day * MINUTES_A_DAY + minute(self.from), length))
    }

    /// Its days as `parse_days` reads them: `mon,tue,sun`.
    pub fn days_text(&self) -> String {
        let names: Vec<_> =
            DAY_NAMES.iter().zip(self.days).filter(|(_, begins)| *begins).map(|(name, _)| *name).collect();
        names.join(",")
    }
}

/// Reads `mon-sun`, `sat,sun` or `fri-mon,wed`; none for anything else.
pub(super) fn parse_days(text: &str) -> Option<[bool; 7]> {
    let day = |name: &str| DAY_NAMES.iter().position(|known| name.trim().eq_ignore_ascii_case(known));
    let mut days = [false; 7];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (day(first)?, day(last)?),
            None => (day(part)?, day(part)?),
        };
        let span = (last + 7 - first) % 7;
        for i in 0..=span {
            days[(first + i) % 7] = true;
        }
    }
    Some(days)
}

/// Reads `22:00`; `24:00` is midnight. None for anything else.
pub(super) fn parse_time(text: &str) -> Option<NaiveTime> {
    let (hour, minute) = text.split_once(':')?;
    let digits =
        |part: &str| (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse().ok())?;
    match (digits(hour)?, digits(minute)?) {
        (24, 0) => Some(NaiveTime::MIN),
        (hour, minute) => NaiveTime::from_hms_opt(hour, minute, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(days: &str, from: &str, to: &str) -> Window {
        Window {
            name: "w".into(),
            days: parse_days(days).unwrap(),
            from: parse_time(from).unwrap(),
            to: parse_time(to).unwrap(),
        }
    }

    #[track_caller]
    fn check_hours(zone: &str, date: (i32, u32, u32), from: &str, to: &str, hours: i64) {
        let date = NaiveDate::from_ymd_opt(date.0, date.1, date.2).unwrap();
        let stretch = window("mon-sun", from, to).on(date, Zone::parse(zone).unwrap()).unwrap().unwrap();
        assert_eq!(stretch.length_ms(), hours * 3_600_000);
    }

    /// By hand, New York: on 2017-11-05 at 06:00Z clocks went from 02:00 to 01:00. The night from 4 November 22:00 (-04, 02:00Z)
    /// to 08:00 (-05, 13:00Z) has 11 hours; that of 2018-03-11 (-05, 03:00Z to -04, 12:00Z) has 9.
    #[test]
    fn a_night_is_longer_when_clocks_go_back_and_shorter_when_they_go_on() {
        check_hours("America/New_York", (2017, 11, 4), "22:00", "08:00", 11);
        check_hours("America/New_York", (2017, 11, 3), "22:00", "08:00", 10);
        check_hours("America/New_York", (2018, 3, 10), "22:00", "08:00", 9);
        check_hours("Asia/Shanghai", (2017, 11, 4), "22:00", "08:00", 10);
    }

    #[test]
    fn the_same_time_twice_is_a_whole_day() {
        check_hours("Asia/Shanghai", (2026, 3, 7), "00:00", "24:00", 24);
        check_hours("Asia/Shanghai", (2026, 3, 7), "06:00", "06:00", 24);
    }

    #[test]
    fn days_are_those_on_which_it_begins() {
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        let weekend = window("sat,sun", "22:00", "08:00");
        // 2026-03-06 was a Friday.
        let on = |day| weekend.on(NaiveDate::from_ymd_opt(2026, 3, day).unwrap(), zone).unwrap();
        assert_eq!(on(6), None);
        assert_eq!(on(8).unwrap().end().to_string(), "2026-03-09T00:00:00Z");
        assert_eq!(on(9), None);
        assert_eq!(window("fri-mon,wed", "22:00", "08:00").days_text(), "mon,wed,fri,sat,sun");
    }

    #[test]
    fn windows_overlap_over_midnight_and_over_the_end_of_the_week() {
        let night = window("mon-sun", "22:00", "08:00");
        assert!(night.overlaps(&window("wed", "07:45", "09:00")));
        assert!(!night.overlaps(&window("wed", "08:00", "22:00")));
        assert!(window("sun", "22:00", "08:00").overlaps(&window("mon", "07:00", "07:15")));
        assert!(!window("sat", "22:00", "08:00").overlaps(&window("mon", "07:00", "07:15")));
    }

    #[test]
    fn words_that_are_no_days_or_times_are_refused() {
        for text in ["", "monday", "mon-", "mon;tue", "every"] {
            assert_eq!(parse_days(text), None, "{text}");
        }
        for text in ["8:00", "24:15", "22", "22:60", "22:00:00", "+2:00"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
