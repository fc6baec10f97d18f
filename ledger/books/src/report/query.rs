//! What is asked of a report.

use super::dimension::Dimension;
use crate::prices::PriceBook;
use crate::slots::{Slots, SlotsError, ViewCut};
use cardhour_domain::{Interval, Timestamp, Zone};
use std::fmt;

/// Which report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// Hours held and what came of them.
    Usage,
    /// What is to be paid.
    Bill,
    /// How much of what was seen was busy.
    Efficiency,
    /// What was held and idle, and what that cost.
    Idle,
    /// Where held time went that did no work.
    Waste,
    /// What there was to be held, and what state it was in.
    Capacity,
    /// How much of it was seen.
    Coverage,
    /// Whose jobs held how much.
    Owners,
    /// What cards there are: made by [`crate::inventory::list`], not of usage.
    Inventory,
}

impl ReportKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Bill,
        Self::Usage,
        Self::Efficiency,
        Self::Idle,
        Self::Waste,
        Self::Capacity,
        Self::Coverage,
        Self::Owners,
        Self::Inventory,
    ];

    /// Its name in commands and addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Bill => "bill",
            Self::Efficiency => "efficiency",
            Self::Idle => "idle",
            Self::Waste => "waste",
            Self::Capacity => "capacity",
            Self::Coverage => "coverage",
            Self::Owners => "owners",
            Self::Inventory => "inventory",
        }
    }

    /// The report of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|report| report.name() == name)
    }
}

impl fmt::Display for ReportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is asked: `--by`, `--from --to` or `--month`, `--zone`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportQuery {
    /// Which report.
    pub report: ReportKind,
    /// What it is grouped by, each once, in the order of the columns.
    pub by: Vec<Dimension>,
    /// The time it is of; none for all there is.
    pub range: Option<Interval>,
    /// The zone of its days and months; none for the billing zone.
    pub zone: Option<Zone>,
}

impl ReportQuery {
    /// The slots that this report's cells have to be numbered by.
    ///
    /// `all` is the time of all there is: without a range, the billing months that it touches are shown whole. Errors: as
    /// [`Slots::new`].
    pub fn slots(&self, all: Interval, book: Option<&PriceBook>, billing_zone: Zone) -> Result<Slots, SlotsError> {
        let view = ViewCut {
            zone: self.zone.unwrap_or(billing_zone),
            by_day: self.by.contains(&Dimension::Day),
            by_month: self.by.contains(&Dimension::Month),
        };
        if let Some(range) = self.range {
            return Slots::new(range, book, billing_zone, Some(view));
        }
        let start = all.start().bucket_start();
        let last = Timestamp::from_unix_ms(all.end().unix_ms() - 1).bucket_start();
        let too_long = || SlotsError::TooLong(all);
        let months = billing_zone.month(start).zip(billing_zone.month(last)).ok_or_else(too_long)?;
        let (first, last) = (months.0.interval(billing_zone), months.1.interval(billing_zone));
        let whole = Interval::new(first.start(), last.end()).ok_or_else(too_long)?;
        Slots::new(whole, book, billing_zone, Some(view))
    }

    /// The range that a line of this report has to name: none where its day or month says it, or for all there is.
    pub(super) fn line_range(&self, slots: &Slots) -> Option<Interval> {
        let range = self.range?;
        let zone = slots.view_zone();
        let on_days = || {
            [range.start(), range.end()]
                .iter()
                .all(|edge| zone.date(*edge).is_some_and(|day| zone.start_of_day(day) == *edge))
        };
        let on_months = || {
            [range.start(), range.end()]
                .iter()
                .all(|edge| zone.month(*edge).is_some_and(|month| month.interval(zone).start() == *edge))
        };
        let said = self.by.contains(&Dimension::Day) && on_days() || self.by.contains(&Dimension::Month) && on_months();
        (!said).then_some(range)
    }

    /// The zone that a line of this report has to name: none where days and months are the ledger's.
    pub(super) fn line_zone(&self, slots: &Slots) -> Option<Zone> {
        let dated = self.by.contains(&Dimension::Day) || self.by.contains(&Dimension::Month);
        Some(slots.view_zone()).filter(|zone| dated && *zone != slots.billing_zone())
    }

    /// `bill, 2026-03, Asia/Shanghai`.
    pub(super) fn title(&self, slots: &Slots) -> String {
        let zone = slots.view_zone();
        let shown = slots.shown();
        let months = zone.month(shown.start()).zip(zone.month(Timestamp::from_unix_ms(shown.end().unix_ms() - 1)));
        let time = match months {
            Some((first, last))
                if first.interval(zone).start() == shown.start() && last.interval(zone).end() == shown.end() =>
            {
                if first == last { first.to_string() } else { format!("{first} to {last}") }
            }
            _ => format!("{} to {}", local(zone, shown.start()), local(zone, shown.end())),
        };
        format!("{}, {time}, {zone}", self.report)
    }
}

/// An instant as people of a zone write it, to the minute.
pub fn local(zone: Zone, at: Timestamp) -> String {
    zone.local(at).map_or_else(|| at.to_string(), |local| local.format("%F %R").to_string())
}
