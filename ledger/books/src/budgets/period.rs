//! The period of a budget: whole billing months, so that bill, budget and alert speak of the same time (LED-9).

use cardhour_domain::{Interval, Month, Zone};
use chrono::Datelike;
use std::fmt;

/// How long a budget's period is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// A month.
    Month,
    /// Three months of the fiscal year.
    Quarter,
    /// A fiscal year.
    Year,
}

impl Every {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Month, Self::Quarter, Self::Year];

    /// What the file calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|every| every.name() == name)
    }

    /// How many months it has.
    pub const fn months(self) -> u32 {
        match self {
            Self::Month => 1,
            Self::Quarter => 3,
            Self::Year => 12,
        }
    }
}

/// Some whole months in a row, one of the periods that a fiscal year is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period {
    first: Month,
    /// The first month after.
    end: Month,
}

impl Period {
    /// The period that holds `month`, of a year that begins with the month of this number, 1 to 12.
    ///
    /// This is the one function that gives a period to budget and alert; its months are those of the bill. None where a year is out of the calendar's range.
    pub fn of(every: Every, fiscal_year_starts: u32, month: Month) -> Option<Self> {
        let date = month.first_date();
        let into_year = (date.month() + 12 - fiscal_year_starts) % 12;
        let first = moved(month, -i32::try_from(into_year % every.months()).ok()?)?;
        Some(Self { first, end: moved(first, i32::try_from(every.months()).ok()?)? })
    }

    /// Its first month.
    pub fn first(self) -> Month {
        self.first
    }

    /// The first month after it.
    pub fn end(self) -> Month {
        self.end
    }

    /// Whether a month is in it.
    pub fn contains(self, month: Month) -> bool {
        self.first <= month && month < self.end
    }

    /// How many periods of this length lie between the start of `earlier` and its own.
    pub fn since(self, earlier: Month) -> u32 {
        let months = |month: Month| {
            let date = month.first_date();
            date.year() * 12 + date.month0() as i32
        };
        let length = months(self.end) - months(self.first);
        u32::try_from((months(self.first) - months(earlier)).div_euclid(length)).unwrap_or(0)
    }

    /// Its stretch in `zone`: that of the bills of its months, one after the other.
    pub fn interval(self, zone: Zone) -> Interval {
        let (first, last) = (self.first.interval(zone), self.end.interval(zone));
        Interval::new(first.start(), last.start()).expect("a period has a month at least")
    }
}

/// `2026-03`, or `2026-04..2027-03`: its first and its last month.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match moved(self.end, -1) {
            Some(last) if last != self.first => write!(f, "..{last}"),
            _ => Ok(()),
        }
    }
}

/// The month some months later, or earlier; none out of the calendar's range.
fn moved(month: Month, months: i32) -> Option<Month> {
    let date = month.first_date();
    let count = date.year().checked_mul(12)?.checked_add(date.month0() as i32)?.checked_add(months)?;
    Month::new(count.div_euclid(12), count.rem_euclid(12) as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(every: Every, starts: u32, month: &str, expected: &str) {
        let period = Period::of(every, starts, Month::parse(month).unwrap()).unwrap();
        assert_eq!(period.to_string(), expected, "{} of a year from {starts} that holds {month}", every.name());
        assert!(period.contains(Month::parse(month).unwrap()));
    }

    /// Counted on a calendar. A year from April: April to June, July to September, October to December, January to March.
    #[test]
    fn quarters_and_years_are_those_of_the_fiscal_year() {
        check(Every::Month, 4, "2026-03", "2026-03");
        check(Every::Quarter, 1, "2026-03", "2026-01..2026-03");
        check(Every::Quarter, 4, "2026-03", "2026-01..2026-03");
        check(Every::Quarter, 4, "2026-12", "2026-10..2026-12");
        check(Every::Quarter, 2, "2026-01", "2025-11..2026-01");
        check(Every::Year, 1, "2026-12", "2026-01..2026-12");
        check(Every::Year, 4, "2026-03", "2025-04..2026-03");
        check(Every::Year, 4, "2026-04", "2026-04..2027-03");
    }

    /// Days × 24, by hand: New York's first quarter of 2026 has 90 days, and clocks go on by an hour on 8 March; its year 365 days, an hour lost and one won.
    #[test]
    fn a_period_is_as_long_as_its_zone_makes_it() {
        let zone = Zone::parse("America/New_York").unwrap();
        let hours = |every| {
            Period::of(every, 1, Month::parse("2026-03").unwrap()).unwrap().interval(zone).length_ms() / 3_600_000
        };
        assert_eq!(hours(Every::Month), 31 * 24 - 1);
        assert_eq!(hours(Every::Quarter), 90 * 24 - 1);
        assert_eq!(hours(Every::Year), 365 * 24);
    }

    #[test]
    fn periods_are_counted_from_a_month_on() {
        let period = Period::of(Every::Quarter, 4, Month::parse("2026-08").unwrap()).unwrap();
        assert_eq!(period.since(Month::parse("2026-07").unwrap()), 0);
        assert_eq!(period.since(Month::parse("2025-10").unwrap()), 3);
    }
}
