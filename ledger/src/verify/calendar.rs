//! Where months, prices, windows and views change, found by asking each quarter hour what the clocks say.

use super::span::{QUARTER_MS, Span};
use cardhour_books::prices::PriceBook;
use cardhour_domain::{Month, Timestamp, Zone};
use chrono::{Datelike, Days, NaiveDate};

/// What a bill is cut by besides months, prices and windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub zone: Zone,
    pub by_day: bool,
    pub by_month: bool,
    /// The part of time that is shown; none: all.
    pub range: Option<Span>,
}

/// Quarter hours in a row that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub span: Span,
    pub what: What,
}

/// What a quarter hour is to a bill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct What {
    /// Billing month.
    pub month: Month,
    /// Index of the price book's window.
    pub window: Option<usize>,
    /// When the latest price began.
    pub edge: Option<i64>,
    pub view_month: Option<Month>,
    pub view_day: Option<NaiveDate>,
    /// Before (0), in (1) or after (2) the part that is shown.
    pub era: u8,
}

/// Cuts `extent` into runs. None where the calendar ends, which no ledger reaches.
pub(super) fn runs(extent: Span, zone: Zone, book: Option<&PriceBook>, view: View) -> Option<Vec<Run>> {
    let windows = book.map_or(Vec::new(), |book| windows(extent, book));
    let mut edges: Vec<i64> = book.iter().flat_map(|book| book.prices()).map(|price| price.from.unix_ms()).collect();
    edges.sort_unstable();
    let date = |zone: Zone, ms: i64| zone.local(Timestamp::from_unix_ms(ms)).map(|local| local.date());
    let month = |date: NaiveDate| Month::new(date.year(), date.month());
    let mut out: Vec<Run> = Vec::new();
    for quarter in extent.from.div_euclid(QUARTER_MS)..=(extent.to - 1).div_euclid(QUARTER_MS) {
        let (from, to) = (quarter * QUARTER_MS, (quarter + 1) * QUARTER_MS);
        let view_date = date(view.zone, from)?;
        let what = What {
            month: month(date(zone, from)?)?,
            window: windows
                .get(windows.partition_point(|(span, _)| span.to <= from))
                .filter(|(span, _)| span.from <= from)
                .map(|(_, window)| *window),
            edge: edges[..edges.partition_point(|edge| *edge <= from)].last().copied(),
            view_month: if view.by_month { month(view_date) } else { None },
            view_day: view.by_day.then_some(view_date),
            era: view.range.map_or(1, |range| u8::from(range.from <= from) + u8::from(range.to <= from)),
        };
        match out.last_mut() {
            Some(run) if run.what == what => run.span.to = to,
            _ => out.push(Run { span: Span { from, to }, what }),
        }
    }
    Some(out)
}

/// When windows are open, in order: from the instant of the one local time to that of the other.
fn windows(extent: Span, book: &PriceBook) -> Vec<(Span, usize)> {
    let zone = book.zone();
    let first = zone.date(Timestamp::from_unix_ms(extent.from)).and_then(|date| date.checked_sub_days(Days::new(2)));
    let mut spans = Vec::new();
    for (window, i) in book.windows().iter().zip(0..) {
        for date in first.into_iter().flat_map(|first| first.iter_days()) {
            let start = zone.instant(date.and_time(window.from)).unix_ms();
            if start >= extent.to {
                break;
            }
            let ends_on = if window.from < window.to { Some(date) } else { date.succ_opt() };
            let Some(ends_on) = ends_on else { break };
            let end = zone.instant(ends_on.and_time(window.to)).unix_ms();
            if window.days[date.weekday().num_days_from_monday() as usize] {
                spans.extend(Span::new(start, end).map(|span| (span, i)));
            }
        }
    }
    spans.sort_unstable();
    spans
}
