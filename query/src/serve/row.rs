//! A row of a report, its values by the name of their column.

use cardhour_books::table::{Kind, Table, Value};
use rust_decimal::Decimal;

/// One row, or the sum of all.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    table: &'a Table,
    values: &'a [Value],
}

/// The rows of a table in order.
pub fn rows(table: &Table) -> impl Iterator<Item = Row<'_>> {
    table.rows.iter().map(move |values| Row { table, values })
}

impl<'a> Row<'a> {
    fn value(&self, column: &str) -> Option<(&'a Value, Kind)> {
        let i = self.table.columns.iter().position(|known| known.name == column)?;
        Some((&self.values[i], self.table.columns[i].kind))
    }

    /// A text; none where the column or the value is absent.
    pub fn text(&self, column: &str) -> Option<&'a str> {
        match self.value(column)?.0 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number; none where the column or the value is absent.
    pub fn decimal(&self, column: &str) -> Option<Decimal> {
        match self.value(column)?.0 {
            Value::Decimal(decimal) => Some(*decimal),
            Value::Count(count) => Some(Decimal::from(*count)),
            _ => None,
        }
    }

    /// As people read it; empty where it is absent.
    pub fn shown(&self, column: &str) -> String {
        self.value(column).map_or_else(String::new, |(value, kind)| crate::render::shown(value, kind))
    }
}

/// `part` of `whole` as a width in CSS percent with two decimals, at most 100; nothing of nothing is 0.
pub fn width_percent(part: Decimal, whole: Decimal) -> String {
    if whole <= Decimal::ZERO {
        return "0".to_owned();
    }
    let percent = (part / whole * Decimal::ONE_HUNDRED).round_dp(2).clamp(Decimal::ZERO, Decimal::ONE_HUNDRED);
    percent.normalize().to_string()
}
