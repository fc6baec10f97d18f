//! Months and days, cut by the rules of a time zone.

use crate::{BUCKET_MS, Interval, Timestamp};
use chrono::{Datelike, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use chrono_tz::Tz;
use std::fmt;
use std::str::FromStr;

/// An IANA time zone by whose rules periods are cut (LED-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Zone(Tz);

/// A calendar month; with a [`Zone`] it is a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: i32,
    month: u32,
}

/// What is wrong with a zone, a month or a date.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ZoneError {
    /// No such zone.
    #[error("{0:?} is not an IANA time zone such as Asia/Shanghai")]
    Zone(String),
    /// Not a month.
    #[error("{0:?} is not a month such as 2026-03")]
    Month(String),
    /// The instant is not on a quarter hour of UTC.
    #[error("{local} in {zone} is {at}, which is not on a quarter hour of UTC")]
    NotAQuarterHour {
        /// The local time that was asked for.
        local: NaiveDateTime,
        /// In this zone.
        zone: String,
        /// Which instant it is.
        at: Timestamp,
    },
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Tz::UTC);

    /// By its IANA name. Errors: no such zone.
    pub fn parse(name: &str) -> Result<Self, ZoneError> {
        Tz::from_str(name).map(Self).map_err(|_| ZoneError::Zone(name.to_owned()))
    }

    /// Its IANA name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The instant of a local time: the earlier where it occurs twice, the first instant after where it doesn't exist.
    pub fn instant(self, local: NaiveDateTime) -> Timestamp {
        match self.0.from_local_datetime(&local) {
            LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Timestamp::from_unix_ms(at.timestamp_millis()),
            LocalResult::None => self.after_gap(local),
        }
    }

    /// Both instants of a local time that occurs twice, the earlier first; else the one of [`Self::instant`].
    pub fn instants(self, local: NaiveDateTime) -> (Timestamp, Timestamp) {
        match self.0.from_local_datetime(&local) {
            LocalResult::Ambiguous(a, b) => {
                let (a, b) = (a.timestamp_millis(), b.timestamp_millis());
                (Timestamp::from_unix_ms(a.min(b)), Timestamp::from_unix_ms(a.max(b)))
            }
            _ => (self.instant(local), self.instant(local)),
        }
    }

    /// The instant at which clocks jumped over `local`.
    ///
    /// A gap ends on the instant of the change. Searched by halving between an instant whose local time is before `local`
    /// and one whose is after; no zone ever jumped more than a day and a half.
    fn after_gap(self, local: NaiveDateTime) -> Timestamp {
        let guess = local.and_utc().timestamp_millis();
        let (mut before, mut after) = (guess - 40 * 3_600_000, guess + 40 * 3_600_000);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            match self.local(Timestamp::from_unix_ms(middle)) {
                Some(at) if at < local => before = middle,
                _ => after = middle,
            }
        }
        Timestamp::from_unix_ms(after)
    }

    /// The local time of an instant; none outside of chrono's range.
    pub fn local(self, at: Timestamp) -> Option<NaiveDateTime> {
        at.to_utc().map(|utc| utc.with_timezone(&self.0).naive_local())
    }

    /// The local date of an instant.
    pub fn date(self, at: Timestamp) -> Option<NaiveDate> {
        self.local(at).map(|local| local.date())
    }

    /// The month an instant falls in.
    pub fn month(self, at: Timestamp) -> Option<Month> {
        self.date(at).map(|date| Month { year: date.year(), month: date.month() })
    }

    /// The first instant of a local date.
    pub fn start_of_day(self, date: NaiveDate) -> Timestamp {
        self.instant(date.and_time(NaiveTime::MIN))
    }

    /// A local date: 23, 24 or 25 hours in most zones.
    pub fn day(self, date: NaiveDate) -> Option<Interval> {
        Interval::new(self.start_of_day(date), self.start_of_day(date.checked_add_days(Days::new(1))?))
    }

    /// The instant of a local time, which must be a quarter hour of UTC (LED-7). Errors: it isn't.
    pub fn quarter_hour(self, local: NaiveDateTime) -> Result<Timestamp, ZoneError> {
        let at = self.instant(local);
        if at.unix_ms().rem_euclid(BUCKET_MS) != 0 {
            return Err(ZoneError::NotAQuarterHour { local, zone: self.name().to_owned(), at });
        }
        Ok(at)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Month {
    /// From a year and a month of 1 to 12.
    pub fn new(year: i32, month: u32) -> Option<Self> {
        NaiveDate::from_ymd_opt(year, month, 1).map(|_| Self { year, month })
    }

    /// Reads `2026-03`. Errors: anything else.
    pub fn parse(text: &str) -> Result<Self, ZoneError> {
        let error = || ZoneError::Month(text.to_owned());
        let (year, month) = text.split_once('-').ok_or_else(error)?;
        if year.len() != 4 || month.len() != 2 || !text.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            return Err(error());
        }
        Self::new(year.parse().map_err(|_| error())?, month.parse().map_err(|_| error())?).ok_or_else(error)
    }

    /// The month after.
    pub fn next(self) -> Self {
        match self.month {
            12 => Self { year: self.year + 1, month: 1 },
            month => Self { year: self.year, month: month + 1 },
        }
    }

    /// Its first date.
    pub fn first_date(self) -> NaiveDate {
        NaiveDate::from_ymd_opt(self.year, self.month, 1).expect("checked when made")
    }

    /// Its stretch in `zone`: from its first instant to the next month's.
    pub fn interval(self, zone: Zone) -> Interval {
        Interval::new(zone.start_of_day(self.first_date()), zone.start_of_day(self.next().first_date()))
            .expect("a month is longer than any change of clocks")
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_month(zone: &str, month: &str, start: &str, hours: i64) {
        let stretch = Month::parse(month).unwrap().interval(Zone::parse(zone).unwrap());
        assert_eq!(stretch.start().to_string(), start, "{month} in {zone}");
        assert_eq!(stretch.length_ms(), hours * 3_600_000, "{month} in {zone}");
    }

    /// T01 and T04 of the field reports; the others counted on a calendar: days × 24, less or more the hour of the change.
    #[test]
    fn t01_t04_a_month_starts_and_ends_by_the_zones_rules() {
        check_month("Europe/Budapest", "2025-01", "2024-12-31T23:00:00Z", 744);
        check_month("Europe/Berlin", "2026-03", "2026-02-28T23:00:00Z", 743);
        check_month("America/New_York", "2017-11", "2017-11-01T04:00:00Z", 721);
        check_month("America/New_York", "2026-03", "2026-03-01T05:00:00Z", 743);
        check_month("Asia/Kathmandu", "2017-10", "2017-09-30T18:15:00Z", 744);
        check_month("Asia/Shanghai", "2026-02", "2026-01-31T16:00:00Z", 672);
    }

    /// Source: IANA tz, southamerica: Brazil's clocks went from 2017-10-15 00:00 to 01:00, so that day had no midnight.
    #[test]
    fn a_day_without_midnight_starts_after_the_gap() {
        let zone = Zone::parse("America/Sao_Paulo").unwrap();
        let day = zone.day(NaiveDate::from_ymd_opt(2017, 10, 15).unwrap()).unwrap();
        assert_eq!(day.start().to_string(), "2017-10-15T03:00:00Z");
        assert_eq!(day.length_ms(), 23 * 3_600_000);
    }

    #[test]
    fn a_time_that_occurs_twice_is_the_earlier() {
        let zone = Zone::parse("America/New_York").unwrap();
        let local = NaiveDate::from_ymd_opt(2017, 11, 5).unwrap().and_hms_opt(1, 30, 0).unwrap();
        assert_eq!(zone.instant(local).to_string(), "2017-11-05T05:30:00Z");
        assert_eq!(zone.instants(local).1.to_string(), "2017-11-05T06:30:00Z");
    }

    #[test]
    fn a_local_mean_time_is_no_quarter_hour() {
        // Source: IANA tz, africa: Monrovia kept −0:44:30 until 1972.
        let zone = Zone::parse("Africa/Monrovia").unwrap();
        let local = NaiveDate::from_ymd_opt(1971, 1, 1).unwrap().and_hms_opt(0, 0, 0).unwrap();
        assert!(matches!(zone.quarter_hour(local), Err(ZoneError::NotAQuarterHour { .. })));
    }

    #[test]
    fn words_that_are_no_month_or_zone_are_refused() {
        for text in ["2026-13", "2026-3", "26-03", "2026/03", "march"] {
            assert!(Month::parse(text).is_err(), "{text}");
        }
        assert!(Zone::parse("Asia/Atlantis").is_err());
    }

    proptest! {
        /// Law 7 of the field reports: the hours of twelve months add up to the hours of the year.
        #[test]
        fn months_meet_and_add_up_to_the_year(zone in prop::sample::select(chrono_tz::TZ_VARIANTS.to_vec()), year in 1975i32..2037) {
            let zone = Zone(zone);
            let mut month = Month::new(year, 1).unwrap();
            let start = month.interval(zone).start();
            let mut sum = 0;
            for _ in 0..12 {
                sum += month.interval(zone).length_ms();
                prop_assert_eq!(month.interval(zone).end(), month.next().interval(zone).start());
                month = month.next();
            }
            prop_assert_eq!(sum, month.interval(zone).start().ms_since(start));
        }

        #[test]
        fn every_instant_is_in_the_month_it_is_said_to_be(zone in prop::sample::select(chrono_tz::TZ_VARIANTS.to_vec()), s in 200_000_000i64..2_000_000_000) {
            let zone = Zone(zone);
            let at = Timestamp::from_unix_s(s);
            prop_assert!(zone.month(at).unwrap().interval(zone).contains(at));
        }
    }
}
