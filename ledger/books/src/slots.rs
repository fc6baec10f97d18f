//! Slots: the buckets of time that no figure of a report tells apart.
//!
//! A quarter hour matters to a bill only through its billing month, the prices that have begun, and the price window it
//! lies in; to a view also through the day or month it is shown under. Buckets alike in all of that are one slot, so that
//! a year of usage folds into a few dozen cells an attempt at most, and nothing is lost: time sums are exact (LED-7).
//!
//! Start at [`Slots::new`]. Does not: read prices' amounts, hold usage.

mod edges;

use crate::prices::PriceBook;
use cardhour_domain::{BUCKET_MS, Interval, Month, Timestamp, Zone, ZoneError};
use chrono::NaiveDate;
use edges::{Change, Edges};
use rustc_hash::FxHashMap;

/// Longer spans than any ledger's are slips of the pen in a date. Unit: buckets, about 239 years.
const MOST_BUCKETS: i64 = 1 << 23;

/// A cut that a report's grouping asks for, beside those that money needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewCut {
    /// The zone of the days and months shown.
    pub zone: Zone,
    /// Whether days are told apart.
    pub by_day: bool,
    /// Whether months of `zone` are told apart.
    pub by_month: bool,
}

/// Where a slot lies to the range that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// Before it, in a month that it cuts.
    Before,
    /// In it.
    Shown,
    /// After it, in a month that it cuts.
    After,
}

/// A set of buckets that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The billing month.
    pub month: Month,
    /// The latest instant at which some price of the book began, at or before these buckets; none before the first, or without a book.
    pub effective_at: Option<Timestamp>,
    /// The window of the price book, as an index into its windows.
    pub window: Option<usize>,
    /// The month shown, in the view's zone; none when months aren't told apart.
    pub view_month: Option<Month>,
    /// The day shown, in the view's zone; none when days aren't told apart.
    pub view_day: Option<NaiveDate>,
    /// Whether it is in the range that was asked for.
    pub era: Era,
    /// From its first bucket to its last: it need not hold every bucket between.
    pub span: Interval,
}

/// The slot of every bucket of some whole billing months.
#[derive(Clone, Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    /// Slot of each bucket from the start of `covers`.
    table: Vec<u32>,
    covers: Interval,
    shown: Interval,
    billing_zone: Zone,
    view: Option<ViewCut>,
}

/// Why time can't be cut into slots.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SlotsError {
    /// The range begins or ends inside a bucket, and usage isn't known finer than that.
    #[error("{0} is not on a quarter hour of UTC: usage is kept by quarter hours")]
    NotAQuarterHour(Timestamp),
    /// A month, day or window of the zone is off the quarter hour (LED-7).
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// Longer than a ledger can be.
    #[error("{} to {} is longer than a ledger can be: is a date wrong?", .0.start(), .0.end())]
    TooLong(Interval),
}

impl Slots {
    /// Cuts the whole billing months that `range` touches.
    ///
    /// Whole months, because money is rounded on the whole month's leaf even where a part of it is shown (LED-6): what is
    /// loaded for a report is [`Self::covers`], and [`Slot::era`] says what of it to show. Errors: a range that isn't on
    /// quarter hours or is too long; a zone whose edges are not on quarter hours in that time.
    pub fn new(
        range: Interval,
        book: Option<&PriceBook>,
        billing_zone: Zone,
        view: Option<ViewCut>,
    ) -> Result<Self, SlotsError> {
        for edge in [range.start(), range.end()] {
            if edge.bucket_start() != edge {
                return Err(SlotsError::NotAQuarterHour(edge));
            }
        }
        if range.length_ms() / BUCKET_MS >= MOST_BUCKETS {
            return Err(SlotsError::TooLong(range));
        }
        let too_long = || SlotsError::TooLong(range);
        let first = billing_zone.month(range.start()).ok_or_else(too_long)?;
        let last = billing_zone.month(Timestamp::from_unix_ms(range.end().unix_ms() - 1)).ok_or_else(too_long)?;
        let covers = Interval::new(first.interval(billing_zone).start(), last.interval(billing_zone).end())
            .expect("a range of time has a first and a last month");

        let mut edges = Edges::new(covers);
        edges.months(billing_zone, Change::Month)?;
        edges.eras(range);
        if let Some(book) = book {
            edges.prices(book)?;
        }
        if let Some(view) = view {
            if view.by_month {
                edges.months(view.zone, Change::ViewMonth)?;
            }
            if view.by_day {
                edges.days(view.zone)?;
            }
        }
        let (slots, table) = number(edges, covers);
        Ok(Self { slots, table, covers, shown: range, billing_zone, view })
    }

    /// The slot of the bucket that starts at `bucket_start`; none outside of [`Self::covers`].
    pub fn slot_of(&self, bucket_start: Timestamp) -> Option<u32> {
        let bucket = bucket_start.ms_since(self.covers.start()).div_euclid(BUCKET_MS);
        self.table.get(usize::try_from(bucket).ok()?).copied()
    }

    /// A slot by its number.
    pub fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    /// All slots, by number.
    pub fn all(&self) -> &[Slot] {
        &self.slots
    }

    /// The whole billing months that a report on this range has to be given.
    pub fn covers(&self) -> Interval {
        self.covers
    }

    /// The range that was asked for.
    pub fn shown(&self) -> Interval {
        self.shown
    }

    /// Whether the range cuts a billing month, so that money is shown for a part of it.
    pub fn is_partial(&self) -> bool {
        self.covers != self.shown
    }

    /// The zone by which money is cut into months.
    pub fn billing_zone(&self) -> Zone {
        self.billing_zone
    }

    /// The zone in which days and months are shown: the view's, else the billing zone.
    pub fn view_zone(&self) -> Zone {
        self.view.map_or(self.billing_zone, |view| view.zone)
    }
}

/// Walks the edges in order and gives each stretch between two of them the number of what it is.
fn number(edges: Edges, covers: Interval) -> (Vec<Slot>, Vec<u32>) {
    let mut numbers: FxHashMap<edges::Now, u32> = FxHashMap::default();
    let mut slots: Vec<Slot> = Vec::new();
    let mut table: Vec<u32> = Vec::with_capacity(
        usize::try_from(covers.length_ms() / BUCKET_MS).expect("at most MOST_BUCKETS and a month or two"),
    );
    for (stretch, now) in edges.stretches() {
        let slot = *numbers.entry(now).or_insert_with(|| {
            slots.push(Slot {
                month: now.month.expect("months cover all of the time that is cut"),
                effective_at: now.effective_at,
                window: now.window,
                view_month: now.view_month,
                view_day: now.view_day,
                era: now.era,
                span: stretch,
            });
            u32::try_from(slots.len() - 1).expect("no more slots than buckets")
        });
        let span = &mut slots[slot as usize].span;
        *span = Interval::new(span.start(), stretch.end()).expect("stretches come in order");
        let buckets = usize::try_from(stretch.length_ms() / BUCKET_MS).expect("at most MOST_BUCKETS");
        table.resize(table.len() + buckets, slot);
    }
    (slots, table)
}

#[cfg(test)]
mod tests;
