//! The entries of statements as a table for machines: what `export csv`, `export parquet` and the second sheet of `export xlsx` hold.

use super::canonical::record;
use super::{COLUMNS, Statement};
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::CardTime;
use rust_decimal::Decimal;

/// Columns after those of the canonical text: the same card-time in hours, and what the account is called.
const MORE: [(&str, Kind); 3] =
    [("card_hours", Kind::Hours), ("billed_card_hours", Kind::Hours), ("account", Kind::Text)];

/// Every entry of some statements, one a row, in their order.
///
/// Shape: the columns of the canonical text, then `card_hours`, `billed_card_hours` and `account`. Raw card-time is a text of digits, since it is larger
/// than a spreadsheet's numbers; quantities and amounts are decimals; what is absent is absent. Stability: columns are added, never renamed.
pub fn export_table(statements: &[Statement]) -> Table {
    let kind = |name: &str| match name {
        "quantity" | "list_amount" | "amount" => Kind::Money,
        _ => Kind::Text,
    };
    let columns = COLUMNS.iter().map(|name| (*name, kind(name))).chain(MORE);
    let columns: Vec<Column> = columns.map(|(name, kind)| Column { name: name.to_owned(), kind }).collect();
    let hours = |time: CardTime| Value::Decimal(time.card_hours());
    let rows = statements.iter().flat_map(|statement| {
        statement.entries.iter().map(move |entry| {
            let cells = record(statement, entry).into_iter().zip(COLUMNS);
            let mut row: Vec<Value> = cells.map(|(text, name)| value(&text, kind(name))).collect();
            row.extend([hours(entry.card_time), hours(entry.billed_time), Value::Text(statement.account.clone())]);
            row
        })
    });
    Table { title: "entries".to_owned(), rows: rows.collect(), columns, ..Table::default() }
}

/// A text of the canonical record as a value.
fn value(text: &str, kind: Kind) -> Value {
    match kind {
        _ if text.is_empty() => Value::Absent,
        Kind::Money => Value::Decimal(Decimal::from_str_exact(text).expect("a decimal that we wrote")),
        Kind::Text | Kind::Count | Kind::Hours | Kind::Ratio => Value::Text(text.into()),
    }
}

#[cfg(test)]
mod tests;
