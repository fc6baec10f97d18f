//! ISO weeks, and some whole days in a row: the spans of a checkpoint, cut by the rules of the zone (LED-9).

use cardhour_domain::{Interval, Month, Timestamp, Zone};
use chrono::{Datelike, NaiveDate, Weekday};
use std::fmt;
use std::str::FromStr;

/// Some whole local days in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days {
    /// The first.
    pub first: NaiveDate,
    /// The first after.
    pub end: NaiveDate,
}

impl Days {
    /// Those of a month.
    pub fn of_month(month: Month) -> Self {
        Self { first: month.first_date(), end: month.next().first_date() }
    }

    /// Their stretch in `zone`: 167, 168 or 169 hours for a week, in most zones.
    pub fn interval(self, zone: Zone) -> Interval {
        Interval::new(zone.start_of_day(self.first), zone.start_of_day(self.end)).expect("a day at least")
    }

    /// Whether a day is one of them.
    pub fn contains(self, day: NaiveDate) -> bool {
        self.first <= day && day < self.end
    }
}

/// An ISO week: Monday to Sunday; the year's first is the one that holds 4 January (ISO 8601).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Week {
    monday: NaiveDate,
}

/// A text that is no week.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no week: write 2026-W20, of an ISO year with that many weeks")]
pub struct WeekError(pub String);

impl Week {
    /// The week that holds a day; none at the end of the calendar.
    pub fn of(day: NaiveDate) -> Option<Self> {
        let monday = day.checked_sub_days(chrono::Days::new(u64::from(day.weekday().num_days_from_monday())))?;
        monday.checked_add_days(chrono::Days::new(7)).map(|_| Self { monday })
    }

    /// The last week that was over at `at`. None at the end of the calendar.
    pub fn last_whole(at: Timestamp, zone: Zone) -> Option<Self> {
        Self::of(zone.date(at)?)?.before(1)
    }

    /// Some weeks earlier; none at the end of the calendar.
    pub fn before(self, weeks: u32) -> Option<Self> {
        Self::of(self.monday.checked_sub_days(chrono::Days::new(7 * u64::from(weeks)))?)
    }

    /// Its seven days.
    pub fn days(self) -> Days {
        Days { first: self.monday, end: self.monday + chrono::Days::new(7) }
    }
}

/// `2026-W20`.
impl fmt::Display for Week {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let week = self.monday.iso_week();
        write!(f, "{:04}-W{:02}", week.year(), week.week())
    }
}

impl FromStr for Week {
    type Err = WeekError;

    fn from_str(text: &str) -> Result<Self, WeekError> {
        let monday = || {
            let (year, week) = text.split_once("-W")?;
            let digits = |part: &str, many: usize| part.len() == many && part.bytes().all(|b| b.is_ascii_digit());
            if !digits(year, 4) || !digits(week, 2) {
                return None;
            }
            NaiveDate::from_isoywd_opt(year.parse().ok()?, week.parse().ok()?, Weekday::Mon)
        };
        monday().and_then(Self::of).ok_or_else(|| WeekError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a calendar: Monday 11 May 2026 begins week 20. 1 January 2027 is a Friday, so that it is in week 53 of 2026; 2027 begins on 4 January.
    #[test]
    fn a_week_begins_on_monday_and_belongs_to_its_iso_year() {
        let week = |text: &str| text.parse::<Week>().unwrap();
        assert_eq!(week("2026-W20").days().first.to_string(), "2026-05-11");
        assert_eq!(Week::of("2026-05-17".parse().unwrap()), Some(week("2026-W20")));
        assert_eq!(Week::of("2027-01-01".parse().unwrap()).unwrap().to_string(), "2026-W53");
        assert_eq!(week("2027-W01").days().first.to_string(), "2027-01-04");
        assert_eq!(week("2027-W01").before(1), Some(week("2026-W53")));
        for text in ["2026-20", "2026-W54", "2026-W00", "2025-W53", "W20", "2026-W2", "", "+026-W20"] {
            assert!(text.parse::<Week>().is_err(), "{text}");
        }
    }

    /// New York set its clocks on by an hour on Sunday 8 March 2026 and back on Sunday 1 November: 7 × 24 less one, and one more.
    #[test]
    fn a_week_with_a_change_of_clocks_has_167_or_169_hours() {
        let zone = Zone::parse("America/New_York").unwrap();
        let hours = |text: &str| text.parse::<Week>().unwrap().days().interval(zone).length_ms() / 3_600_000;
        assert_eq!((hours("2026-W10"), hours("2026-W44"), hours("2026-W20")), (167, 169, 168));
    }

    /// Shanghai is eight hours ahead: Sunday 17 May 2026 16:00 UTC is Monday there, and week 20 is over.
    #[test]
    fn the_last_week_is_one_that_is_over_in_the_zone() {
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        let last = |at: &str| Week::last_whole(Timestamp::parse_rfc3339(at).unwrap(), zone).unwrap().to_string();
        assert_eq!(last("2026-05-17T15:59:59Z"), "2026-W19");
        assert_eq!(last("2026-05-17T16:00:00Z"), "2026-W20");
    }
}
