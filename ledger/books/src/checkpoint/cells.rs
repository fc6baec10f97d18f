//! Figures as cells of a section's table.

use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Currency, Name};
use rust_decimal::Decimal;

/// A table of these columns.
pub(crate) fn table(title: &str, columns: &[(&str, Kind)], rows: Vec<Vec<Value>>) -> Table {
    let columns = columns.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect();
    Table { title: title.to_owned(), columns, rows, total: None, notes: Vec::new() }
}

pub(crate) fn name(name: Option<&Name>) -> Value {
    name.map_or(Value::Absent, |name| Value::Text(name.clone()))
}

pub(crate) fn text(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

pub(crate) fn count(many: usize) -> Value {
    Value::Count(many as u64)
}

pub(crate) fn hours(time: CardTime) -> Value {
    Value::Decimal(time.card_hours())
}

pub(crate) fn ratio(ratio: Option<Decimal>) -> Value {
    ratio.map_or(Value::Absent, Value::Decimal)
}

/// Milliseconds as hours, six decimals, half to even; absent where there are none to tell.
pub(crate) fn wait(ms: Option<i64>) -> Value {
    ms.map_or(Value::Absent, |ms| Value::Decimal(hours_of_ms(ms)))
}

pub(crate) fn hours_of_ms(ms: i64) -> Decimal {
    let mut hours = (Decimal::from(ms) / Decimal::from(3_600_000)).round_dp(6);
    hours.rescale(6);
    hours
}

/// A part of the month's rounded charges, six decimals, and its currency (LED-6).
pub(crate) fn money(micros: Option<i128>, currency: Option<Currency>) -> [Value; 2] {
    match micros.zip(currency) {
        Some((micros, currency)) => {
            [Value::Decimal(Decimal::from_i128_with_scale(micros, 6)), Value::Text(currency.code().into())]
        }
        None => [Value::Absent, Value::Absent],
    }
}

/// A ratio as people read it in a sentence: `71.4 %`.
pub(crate) fn percent(ratio: Decimal) -> String {
    let mut percent = (ratio * Decimal::ONE_HUNDRED).round_dp(1);
    percent.rescale(1);
    format!("{percent} %")
}

/// Hours as people read them in a sentence: `40.0`.
pub(crate) fn short(hours: Decimal) -> String {
    let mut short = hours.round_dp(1);
    short.rescale(1);
    short.to_string()
}
