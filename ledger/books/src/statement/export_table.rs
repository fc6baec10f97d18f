//! The entries of statements as a table for machines: what `export csv`, `export parquet` and the second sheet of `export xlsx` hold.

use super::canonical::record;
use super::{COLUMNS, Coverage, Statement, StatementTerms};
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Name};
use rust_decimal::Decimal;

/// Columns after those of the canonical text: the same card-time in hours, what the account is called, and what its statement says beside the
/// amounts, and how much of the time is known.
const MORE: [(&str, Kind); 10] = [
    ("card_hours", Kind::Hours),
    ("billed_card_hours", Kind::Hours),
    ("account", Kind::Text),
    ("issuer", Kind::Text),
    ("fiscal_year", Kind::Text),
    ("tax_included", Kind::Text),
    ("tax_note", Kind::Text),
    ("payment_terms", Kind::Text),
    ("coverage", Kind::Ratio),
    ("use_coverage", Kind::Ratio),
];

/// Every entry of some statements, one a row, in their order.
///
/// Shape: the columns of the canonical text, then `card_hours`, `billed_card_hours`, `account`, `issuer`, `fiscal_year`, `tax_included` (`true`,
/// `false`, or absent where the site doesn't say), `tax_note` and `payment_terms`, and of charges and refunds `coverage` and
/// `use_coverage`: which part of the line's held time is proven, and which was seen. Raw card-time is a text of digits, since it is larger than a
/// spreadsheet's numbers; quantities and amounts are decimals; what is absent is absent. Stability: columns are added, never renamed.
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
            let StatementTerms { fiscal_year, tax_included, tax_note, payment_terms } = &statement.terms;
            let tax_included = tax_included.map(|included| Name::from(if included { "true" } else { "false" }));
            let text = |text: &Option<Name>| text.clone().map_or(Value::Absent, Value::Text);
            row.extend([hours(entry.card_time), hours(entry.billed_time)]);
            row.extend([Value::Text(statement.account.clone()), text(&statement.issuer)]);
            row.push(Value::Text(fiscal_year.clone()));
            row.extend([&tax_included, tax_note, payment_terms].map(text));
            let known = statement.coverage_of(entry);
            let ratio = |of: fn(Coverage) -> Option<Decimal>| known.and_then(of).map_or(Value::Absent, Value::Decimal);
            row.extend([ratio(Coverage::proven), ratio(Coverage::seen)]);
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
