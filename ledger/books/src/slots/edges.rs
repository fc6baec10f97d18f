//! The instants at which something about time changes: a month, a day, a price, a window.
//!
//! Found by walking the calendar, two conversions of a local time a day at most, rather than by asking for each of the
//! 35,000 quarter hours of a year what it is.

use super::Era;
use crate::prices::PriceBook;
use cardhour_domain::{Interval, Month, Timestamp, Zone, ZoneError};
use chrono::{Days, NaiveDate, NaiveTime};

/// What is so between two edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Now {
    pub month: Option<Month>,
    pub effective_at: Option<Timestamp>,
    pub window: Option<usize>,
    pub view_month: Option<Month>,
    pub view_day: Option<NaiveDate>,
    pub era: Era,
}

/// What changes at an edge.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// A billing month begins.
    Month(Month),
    /// A month of the view begins.
    ViewMonth(Month),
    /// A day of the view begins.
    ViewDay(NaiveDate),
    /// A price begins.
    Price(Timestamp),
    /// A window begins or ends.
    Window(Option<usize>),
    /// The range begins or ends.
    Era(Era),
}

/// Edges in any order, over some whole months.
pub(super) struct Edges {
    covers: Interval,
    changes: Vec<(Timestamp, Change)>,
}

impl Edges {
    pub fn new(covers: Interval) -> Self {
        Self { covers, changes: Vec::new() }
    }

    /// Months of `zone`, each as the change that `of` makes of it.
    pub fn months(&mut self, zone: Zone, of: fn(Month) -> Change) -> Result<(), ZoneError> {
        let mut month = self.first_date(zone, 0).and_then(|date| zone.month(zone.start_of_day(date)));
        while let Some(this) = month {
            let start = zone.quarter_hour(this.first_date().and_time(NaiveTime::MIN))?;
            if start >= self.covers.end() {
                break;
            }
            self.changes.push((start, of(this)));
            month = Some(this.next());
        }
        Ok(())
    }

    /// Days of `zone`.
    pub fn days(&mut self, zone: Zone) -> Result<(), ZoneError> {
        let mut date = self.first_date(zone, 0);
        while let Some(this) = date {
            let start = zone.quarter_hour(this.and_time(NaiveTime::MIN))?;
            if start >= self.covers.end() {
                break;
            }
            self.changes.push((start, Change::ViewDay(this)));
            date = this.checked_add_days(Days::new(1));
        }
        Ok(())
    }

    /// Where the range that is shown begins and ends.
    pub fn eras(&mut self, range: Interval) {
        self.changes.push((range.start(), Change::Era(Era::Shown)));
        self.changes.push((range.end(), Change::Era(Era::After)));
    }

    /// Where prices begin, and where windows begin and end, by the book's zone.
    pub fn prices(&mut self, book: &PriceBook) -> Result<(), ZoneError> {
        self.changes.extend(book.edges().iter().map(|&edge| (edge, Change::Price(edge))));
        let mut stretches = Vec::new();
        for (i, window) in book.windows().iter().enumerate() {
            // A window that began two days before may still last: it is at most a day long, and a change of clocks.
            let mut date = self.first_date(book.zone(), 2);
            while let Some(this) = date {
                let stretch = window.on(this, book.zone())?;
                if book.zone().start_of_day(this) >= self.covers.end() {
                    break;
                }
                stretches.extend(stretch.and_then(|stretch| book.in_force(i, stretch)).map(|stretch| (stretch, i)));
                date = this.checked_add_days(Days::new(1));
            }
        }
        // An end stands before a beginning at the same instant, since each stretch is pushed whole and in order.
        stretches.sort();
        for (stretch, window) in stretches {
            self.changes.push((stretch.start(), Change::Window(Some(window))));
            self.changes.push((stretch.end(), Change::Window(None)));
        }
        Ok(())
    }

    /// The local date `days_before` the start of the time that is cut.
    fn first_date(&self, zone: Zone, days_before: u64) -> Option<NaiveDate> {
        zone.date(self.covers.start())?.checked_sub_days(Days::new(days_before))
    }

    /// The stretches between edges, in order, without gaps, over all of `covers`.
    pub fn stretches(mut self) -> impl Iterator<Item = (Interval, Now)> {
        // Stable: of several changes of one kind at one instant (a day that was left out, a window that follows another),
        // the one pushed last holds.
        self.changes.sort_by_key(|(at, _)| *at);
        let mut now =
            Now { month: None, effective_at: None, window: None, view_month: None, view_day: None, era: Era::Before };
        let (mut at, mut next) = (self.covers.start(), 0);
        std::iter::from_fn(move || {
            while let Some((_, change)) = self.changes.get(next).filter(|(edge, _)| *edge <= at) {
                match *change {
                    Change::Month(month) => now.month = Some(month),
                    Change::ViewMonth(month) => now.view_month = Some(month),
                    Change::ViewDay(day) => now.view_day = Some(day),
                    Change::Price(edge) => now.effective_at = Some(edge),
                    Change::Window(window) => now.window = window,
                    Change::Era(era) => now.era = era,
                }
                next += 1;
            }
            let end = self.changes.get(next).map_or(self.covers.end(), |(edge, _)| (*edge).min(self.covers.end()));
            let stretch = Interval::new(at, end)?;
            at = end;
            Some((stretch, now))
        })
    }
}
