//! Figures as cells of a report's table.

use cardhour_books::checkpoint::Section;
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardShare, CardTime, Name, Percent};
use rust_decimal::Decimal;

/// A section without a chart.
pub(crate) fn section(
    name: &'static str,
    title: &str,
    columns: &[(&str, Kind)],
    rows: Vec<Vec<Value>>,
    notes: &[&str],
) -> Section {
    let columns = columns.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect();
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    Section { name, table: Table { title: title.to_owned(), columns, rows, total: None, notes }, chart: None }
}

pub(crate) fn name(name: Option<&Name>) -> Value {
    name.map_or(Value::Absent, |name| Value::Text(name.clone()))
}

pub(crate) fn text(text: &str) -> Value {
    Value::Text(text.into())
}

pub(crate) fn count(many: Option<u64>) -> Value {
    many.map_or(Value::Absent, Value::Count)
}

pub(crate) fn hours(time: CardTime) -> Value {
    Value::Decimal(time.card_hours())
}

/// Whole card-milliseconds, as the table of decisions has them, as card-hours.
pub(crate) fn hours_of_card_ms(card_ms: i128) -> Value {
    hours(CardTime::from_part_ms(card_ms * i128::from(CardShare::PARTS_PER_CARD)))
}

/// Milliseconds as hours; absent where there are none to tell.
pub(crate) fn wait(ms: Option<i64>) -> Value {
    ms.map_or(Value::Absent, |ms| hours_of_card_ms(i128::from(ms)))
}

pub(crate) fn ratio(percent: Option<Percent>) -> Value {
    let ratio = |percent: Percent| {
        let mut ratio = Decimal::new(i64::from(percent.thousandths()), 5);
        ratio.rescale(6);
        ratio
    };
    percent.map_or(Value::Absent, |percent| Value::Decimal(ratio(percent)))
}
