//! `statements`: what each organisation's closed month came to.

use super::Table;
use crate::columns::{CardTimes, Columns, Indexed};
use arrow::record_batch::RecordBatch;
use cardhour_books::statement::Statement;

pub(crate) const STATEMENTS: Table = Table {
    name: "statements",
    schema_version: 1,
    schema: || batch(&[], None).schema(),
    by_day: false,
    bounds: &[],
    comment: "statements of closed months, one an organisation and month; their entries add up to them",
};

/// `closing`: what closed them; none while they are open.
pub(crate) fn batch(rows: &[Statement], closing: Option<&str>) -> RecordBatch {
    let periods: Vec<String> = rows.iter().map(|row| row.period.to_string()).collect();
    let currencies: Vec<String> = rows.iter().map(|row| row.total.currency().to_string()).collect();
    let micros = |ratio: Option<rust_decimal::Decimal>| {
        ratio.map(|ratio| (ratio * rust_decimal::Decimal::from(1_000_000)).trunc().mantissa())
    };
    let card_time = CardTimes::new(Indexed::of(rows.iter().map(|row| Some(row.card_time.part_ms()))));
    let billed_time = CardTimes::new(Indexed::of(rows.iter().map(|row| Some(row.billed_time.part_ms()))));
    Columns::default()
        .text("statement", rows.iter().map(|row| &*row.number))
        .text("period", periods.iter().map(String::as_str))
        .opt_text("org", rows.iter().map(|row| row.org.as_deref()))
        .text("account", rows.iter().map(|row| &*row.account))
        .opt_text("issuer", rows.iter().map(|row| row.issuer.as_deref()))
        .text("zone", rows.iter().map(|row| row.zone.name()))
        .long("entries", rows.iter().map(|row| i64::try_from(row.entries.len()).expect("fewer than 2⁶³")))
        .card_time("card_time", &card_time, false)
        .card_time("billed_time", &billed_time, false)
        .money("amount", rows.iter().map(|row| Some(row.total)))
        .text("currency", currencies.iter().map(String::as_str))
        .opt_micros("coverage", rows.iter().map(|row| micros(row.coverage)))
        .opt_micros("use_coverage", rows.iter().map(|row| micros(row.use_coverage)))
        .opt_text("closing_id", rows.iter().map(|_| closing))
        .finish()
}
