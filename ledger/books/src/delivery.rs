//! What is delivered by schedule, and when: which weeks and months are due at an instant (LED-9).
//!
//! ```text
//! Schedule ─ due_at ─► the instant at which a week or month is to be delivered, by the rules of the billing zone
//!     │
//!     └─ owed ─► of the periods since the first that is owed: those to deliver now, those that wait and for what, those given up
//! ```
//!
//! A period is delivered once. A month of statements has two [`Edition`]s at most: a draft, where the site asks for drafts, and the month as it was
//! closed.
//!
//! Start at [`Owed::of`]. Does not: make or put a file, know the clock, remember anything.

use crate::checkpoint::{Days, Week, WeekError};
use cardhour_domain::{Interval, Month, Timestamp, Zone, ZoneError};
use chrono::{Datelike, NaiveDate, NaiveTime, Weekday};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How many periods of one delivery are made up at most, the latest: a year of months, a quarter of weeks. What a service that was gone for longer
/// missed is asked for by hand.
pub const MOST_MISSED: usize = 12;

/// When something is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Each week, of the week before.
    Weekly {
        /// On which day.
        weekday: Weekday,
        /// At which local time.
        time: NaiveTime,
    },
    /// Each month, of the month before.
    Monthly {
        /// On which day, 1 to 31; in a shorter month on its last.
        day: u32,
        /// At which local time.
        time: NaiveTime,
    },
}

/// What a delivery is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// A week.
    Week(Week),
    /// A month.
    Month(Month),
}

/// Which version of a term's figures. Stability: its name stands in the table `deliveries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edition {
    /// Of an open month, whose figures can change.
    Draft,
    /// As it stays: of a closed month, or of what has no drafts.
    Final,
}

/// Whether a month has to be closed before it is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It is delivered as it stands, once: reports.
    Any,
    /// It waits for the month's closing.
    Closed,
    /// As it stands when it is due, and again when it is closed.
    DraftsToo,
}

/// Why a term that is due isn't delivered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Its month isn't closed.
    ForClosing,
    /// The books don't speak of it yet.
    ForBooks,
}

/// What is known at the time of a look.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// When.
    pub now: Timestamp,
    /// The billing zone.
    pub zone: Zone,
    /// The first term that is owed; none: it is looked for the first time, and the latest that is due is the first. One of
    /// another length than the schedule's is none.
    pub since: Option<Term>,
    /// What was delivered.
    pub done: &'a BTreeSet<(Term, Edition)>,
    /// The months that are closed.
    pub closed: &'a BTreeSet<Month>,
    /// The time that the books speak of; none of empty ones.
    pub books: Option<Interval>,
}

/// What is owed of one delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owed {
    /// To be delivered now, oldest first.
    pub due: Vec<(Term, Edition)>,
    /// Due by the clock, and waiting.
    pub waiting: Vec<(Term, Waits)>,
    /// Missed so long ago that they are not made up.
    pub given_up: Vec<Term>,
}

/// A text that is no term.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermError {
    /// Nor a week.
    #[error(transparent)]
    Week(#[from] WeekError),
    /// Nor a month.
    #[error(transparent)]
    Month(#[from] ZoneError),
}

impl Schedule {
    /// The instant from which on a term is to be delivered; none for a term of another length than the schedule's, and at the end of the calendar.
    ///
    /// A local time that occurs twice is the earlier, one that doesn't exist the first instant after.
    pub fn due_at(self, term: Term, zone: Zone) -> Option<Timestamp> {
        let local = match (self, term) {
            (Self::Weekly { weekday, time }, Term::Week(week)) => {
                let days = chrono::Days::new(u64::from(weekday.num_days_from_monday()));
                week.days().end.checked_add_days(days)?.and_time(time)
            }
            (Self::Monthly { day, time }, Term::Month(month)) => {
                let next = month.next();
                let last = next.next().first_date().pred_opt()?;
                last.with_day(day.clamp(1, last.day()))?.and_time(time)
            }
            (Self::Weekly { .. }, Term::Month(_)) | (Self::Monthly { .. }, Term::Week(_)) => return None,
        };
        Some(zone.instant(local))
    }

    /// The latest term that is due at `now`; none at the ends of the calendar.
    pub fn latest(self, now: Timestamp, zone: Zone) -> Option<Term> {
        let today = zone.date(now)?;
        let mut term = match self {
            Self::Weekly { .. } => Term::Week(Week::of(today)?),
            Self::Monthly { .. } => Term::Month(month_of(today)?),
        };
        // The one under way isn't over; that before it may have its day still to come.
        for _ in 0..3 {
            if self.due_at(term, zone)? <= now {
                return Some(term);
            }
            term = term.before()?;
        }
        None
    }

    /// The term that is due next, and when; none at the ends of the calendar.
    pub fn next(self, now: Timestamp, zone: Zone) -> Option<(Term, Timestamp)> {
        let term = self.latest(now, zone)?.after()?;
        Some((term, self.due_at(term, zone)?))
    }
}

impl Term {
    /// The one after it; none at the end of the calendar.
    pub fn after(self) -> Option<Self> {
        match self {
            Self::Week(week) => Week::of(week.days().end).map(Self::Week),
            Self::Month(month) => Some(Self::Month(month.next())),
        }
    }

    /// The one before it; none at the start of the calendar.
    pub fn before(self) -> Option<Self> {
        match self {
            Self::Week(week) => week.before(1).map(Self::Week),
            Self::Month(month) => month_of(month.first_date().pred_opt()?).map(Self::Month),
        }
    }

    /// Its stretch in `zone`.
    pub fn interval(self, zone: Zone) -> Interval {
        self.days().interval(zone)
    }

    /// Its days.
    pub fn days(self) -> Days {
        match self {
            Self::Week(week) => week.days(),
            Self::Month(month) => Days::of_month(month),
        }
    }
}

fn month_of(date: NaiveDate) -> Option<Month> {
    Month::new(date.year(), date.month())
}

/// `2026-W20`, or `2026-03`.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Week(week) => week.fmt(f),
            Self::Month(month) => month.fmt(f),
        }
    }
}

impl FromStr for Term {
    type Err = TermError;

    fn from_str(text: &str) -> Result<Self, TermError> {
        if text.contains('W') { Ok(Self::Week(text.parse()?)) } else { Ok(Self::Month(Month::parse(text)?)) }
    }
}

impl Edition {
    /// Its name in the table `deliveries`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Final => "final",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Draft, Self::Final].into_iter().find(|edition| edition.name() == name)
    }
}

impl Owed {
    /// What is owed of a delivery.
    ///
    /// Terms from the first that is owed to the latest that is due, at most [`MOST_MISSED`], but for those delivered. A term is delivered in its
    /// final edition alone where that is there; its draft is not made up then.
    pub fn of(schedule: Schedule, closing: Closing, look: &Look<'_>) -> Self {
        let Some(latest) = schedule.latest(look.now, look.zone) else { return Self::default() };
        // A delivery that was weekly and is monthly now begins anew.
        let is_like =
            |since: &Term| matches!((since, latest), (Term::Week(_), Term::Week(_)) | (Term::Month(_), Term::Month(_)));
        let since = look.since.filter(is_like).unwrap_or(latest);
        let mut terms = Vec::new();
        let mut next = Some(latest);
        while let Some(term) = next.filter(|term| *term >= since) {
            terms.push(term);
            next = term.before();
        }
        let mut owed = Self::default();
        for (age, term) in terms.into_iter().enumerate() {
            if look.done.contains(&(term, Edition::Final)) {
                continue;
            }
            if age >= MOST_MISSED {
                owed.given_up.push(term);
                continue;
            }
            if look.books.is_none_or(|books| books.end() <= term.interval(look.zone).start()) {
                owed.waiting.push((term, Waits::ForBooks));
                continue;
            }
            let is_closed = matches!(term, Term::Month(month) if look.closed.contains(&month));
            match closing {
                Closing::Any => owed.due.push((term, Edition::Final)),
                Closing::Closed | Closing::DraftsToo if is_closed => owed.due.push((term, Edition::Final)),
                Closing::DraftsToo if !look.done.contains(&(term, Edition::Draft)) => {
                    owed.due.push((term, Edition::Draft));
                }
                Closing::Closed | Closing::DraftsToo => owed.waiting.push((term, Waits::ForClosing)),
            }
        }
        owed.due.reverse();
        owed.waiting.reverse();
        owed.given_up.reverse();
        owed
    }
}

#[cfg(test)]
mod tests;
