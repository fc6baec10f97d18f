//! The reports that read the books: bill, usage, efficiency, idle, waste, capacity, coverage and owners (design §8).
//!
//! All of them are one fold: each cell of usage goes to a row by the values of the `--by` names, each row adds up what it was
//! given, and columns are made of the sums. Money is not added up by row: it is rounded on the leaves of [`crate::bill`] and those
//! are spread over the rows, so that every grouping has the same total (LED-6).
//!
//! Start at [`report()`]. Does not: load anything, know of formats, round anything that it adds up again.

pub(crate) mod bundles;
mod capacity;
mod dimension;
mod fold;
mod input;
mod measure;
mod money;
pub(crate) mod names;
mod query;
mod rows;
mod sums;

pub use dimension::{Dimension, DimensionError};
pub use input::{CapacityCell, ReportAttempt, ReportInput, is_failed};
pub use query::{ReportKind, ReportQuery, local};
pub use rows::UNOWNED;

pub(crate) use fold::Fold;
pub(crate) use money::Piece;

use crate::bill::{Hole, describe_holes};
use crate::cell::SeenBy;
use crate::line::Line;
use crate::prices::PriceBook;
use crate::slots::{Era, Slots};
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Currency};
use measure::{Coin, Measure};
use rows::RowKey;
use sums::Sums;

/// A report, and what it could not price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The report.
    pub table: Table,
    /// Held and billed time in it that no price of the book is for; then the answer of a bill is no (exit code 1). Empty without a book.
    pub holes: Vec<Hole>,
}

/// Billed time × coefficient in card-hours, as a report's `standard_card_hours`.
pub(crate) fn standard_card_hours(billed: CardTime, coefficient: rust_decimal::Decimal) -> rust_decimal::Decimal {
    let standard = sums::standard(billed, coefficient);
    sums::RowMoney { standard, ..sums::RowMoney::default() }.standard_card_hours()
}

/// Makes a report.
///
/// `slots` are those of [`ReportQuery::slots`] for this query and book, and `input` was numbered by them. Shape: rows in order
/// of the `--by` values, absent first; a total unless there are no rows, its `--by` values absent.
pub fn report(input: &ReportInput, slots: &Slots, book: Option<&PriceBook>, query: &ReportQuery) -> Report {
    let fold = Fold::of(input, slots, book, query);
    let cut = slots.is_partial() || fold.pieces.cut;
    let coin = |currency: Option<Currency>| {
        book.map(|book| Coin { currency: currency.unwrap_or_else(|| book.currency()), cut })
    };
    let totals = totals(&fold, book);
    let measures = query.report.measures();
    let mut columns: Vec<Column> =
        query.by.iter().map(|dimension| Column { name: dimension.to_string(), kind: Kind::Text }).collect();
    columns.extend(measures.iter().map(|measure| measure.column()));

    let range = query.line_range(slots);
    let zone = query.line_zone(slots);
    let says_time = query.by.contains(&Dimension::Day) || query.by.contains(&Dimension::Month);
    let mut rows = Vec::new();
    for (key, sums) in fold.rows.iter().zip(&fold.sums).filter(|(key, _)| key.era == Era::Shown) {
        let reign = || key.currency.zip(book).and_then(|(currency, book)| book.reign(currency, slots.shown()));
        // Of rows of two currencies a line says the time of its own; where a month or a day says it, it is of one.
        let of_line = if totals.len() > 1 && (zone.is_some() || !says_time) { reign().or(range) } else { range };
        let line = || Value::Text(line(query, &key.values, of_line, zone).to_string().into());
        let mut row = Vec::with_capacity(columns.len());
        row.extend(key.values.iter().cloned());
        row.extend(measures.iter().map(|measure| measure.value(sums, coin(key.currency), line)));
        rows.push(row);
    }
    let total = (!rows.is_empty()).then(|| {
        let absent = query.by.iter().map(|_| Value::Absent);
        // A total over two currencies is none.
        let coin = if totals.len() > 1 { None } else { coin(totals.first().and_then(|(currency, _)| *currency)) };
        absent.chain(measures.iter().map(|measure| measure.value(&fold.total, coin, || Value::Absent))).collect()
    });
    let mut notes = notes(&fold, slots, book, query);
    if totals.len() > 1 {
        let each = totals.iter().filter_map(|(currency, micros)| {
            let Coin { currency, cut } = coin(*currency)?;
            match (Coin { currency, cut }).value(*micros) {
                Value::Decimal(amount) => Some(format!("{amount} {currency}")),
                Value::Absent | Value::Text(_) | Value::Count(_) => None,
            }
        });
        let each = each.collect::<Vec<_>>().join(" and ");
        notes.push(format!("the prices were in more than one currency in that time: {each}, which are not added up"));
    }
    let table = Table { title: query.title(slots), columns, rows, total, notes };
    Report { table, holes: fold.leaves.holes }
}

/// What the shown rows cost, by currency in the order of the book.
fn totals(fold: &Fold<'_>, book: Option<&PriceBook>) -> Vec<(Option<Currency>, i128)> {
    let in_turn = book.map(PriceBook::currencies).unwrap_or_default();
    let mut totals: Vec<(Option<Currency>, i128)> = Vec::new();
    for (key, sums) in fold.rows.iter().zip(&fold.sums).filter(|(key, _)| key.era == Era::Shown) {
        let Some(money) = sums.money else { continue };
        match totals.iter_mut().find(|(currency, _)| *currency == key.currency) {
            Some((_, cost)) => *cost += money.cost,
            None => totals.push((key.currency, money.cost)),
        }
    }
    totals.sort_by_key(|(currency, _)| in_turn.iter().position(|one| Some(*one) == *currency));
    totals
}

fn line(
    query: &ReportQuery,
    values: &[Value],
    range: Option<cardhour_domain::Interval>,
    zone: Option<cardhour_domain::Zone>,
) -> Line {
    let name = |value: &Value| match value {
        Value::Text(name) => Some(name.clone()),
        Value::Absent => None,
        Value::Count(_) | Value::Decimal(_) => unreachable!("rows are grouped by texts"),
    };
    Line { values: query.by.iter().cloned().zip(values.iter().map(name)).collect(), range, zone }
}

fn notes(fold: &Fold<'_>, slots: &Slots, book: Option<&PriceBook>, query: &ReportQuery) -> Vec<String> {
    let mut notes = Vec::new();
    let has = |measure| query.report.measures().contains(&measure);
    if has(Measure::Cost) {
        match book {
            None => notes.push("no price book: hours without money".to_owned()),
            Some(_) if slots.is_partial() => notes.push(
                "partial: the range cuts a billing month; amounts are parts of the whole month's rounded charges, with six decimals"
                    .to_owned(),
            ),
            Some(_) if fold.pieces.cut => notes.push(
                "rounded charges are spread over these rows with six decimals; they add up to the same total as any other grouping"
                    .to_owned(),
            ),
            Some(_) => {}
        }
    }
    if has(Measure::StandardCardHours) || has(Measure::Cost) {
        notes.extend(describe_holes(&fold.leaves.holes));
    }
    if has(Measure::Efficiency) {
        notes.extend(efficiency_notes(fold));
    }
    if has(Measure::CapacityCardHours) && !fold.without_capacity.is_empty() {
        let clusters: Vec<&str> =
            fold.without_capacity.iter().map(|name| if name.is_empty() { "(unnamed)" } else { name }).collect();
        notes
            .push(format!("capacity is not known of clusters {}: cardhour import nodes tells it", clusters.join(", ")));
    }
    for (i, dimension) in query.by.iter().enumerate() {
        let counted_together = |(key, sums): (&RowKey, &Sums)| {
            key.era == Era::Shown && key.values[i] == Value::Absent && sums.capacity.is_some_and(|c| c > CardTime::ZERO)
        };
        if matches!(dimension, Dimension::Node | Dimension::Model)
            && has(Measure::CapacityCardHours)
            && fold.rows.iter().zip(&fold.sums).any(counted_together)
        {
            // A node is itself; its model may not be known.
            let unlisted = if *dimension == Dimension::Model { ", or whose list of nodes lacks one" } else { "" };
            notes.push(format!(
                "capacity under no {dimension} is of clusters of which a record names no {dimension}, or several{unlisted}: all their time is counted \
                 more coarsely, since nobody knows how much of it was where"
            ));
        }
    }
    notes
}

/// What whoever compares the efficiencies of a report has to know.
fn efficiency_notes(fold: &Fold<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if fold.total.used.basis() == Some(SeenBy::Both) {
        notes.push(
            "some use was read from SM activity (gpm), some from the duty cycle, which tells only that a kernel ran: the efficiency of one is not \
             comparable with that of the other"
                .to_owned(),
        );
    }
    let shown = fold.rows.iter().zip(&fold.sums).filter(|(key, _)| key.era == Era::Shown).map(|(_, sums)| sums);
    if shown.chain([&fold.total]).any(|sums| !sums.seen().is_zero() && !sums.is_seen_enough()) {
        notes.push("efficiency is not told where less than half of the held time was seen".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
