//! A report as columns and rows: what reports give and every format renders.

use cardhour_domain::Name;
use rust_decimal::Decimal;

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it is, for a heading: `bill, 2026-03, Asia/Shanghai`.
    pub title: String,
    /// Its columns: the `--by` names first, then the report's own in the order of design §8.
    pub columns: Vec<Column>,
    /// Its rows, each as long as `columns`, in the order of the `--by` values.
    pub rows: Vec<Vec<Value>>,
    /// The sums of the rows, where the report has them; as long as `columns`.
    pub total: Option<Vec<Value>>,
    /// Sentences for people: holes in the price book, a span that cuts a month, tenants without capacity.
    pub notes: Vec<String>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in csv, json and Parquet.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Count,
    /// Card-hours, kWh or another measure, six decimals.
    Hours,
    /// A ratio of 0 to 1, six decimals.
    Ratio,
    /// Money, with as many decimals as the value has.
    Money,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// None: empty in csv, null in json, never zero (LED-3).
    Absent,
    /// Text.
    Text(Name),
    /// A whole number.
    Count(u64),
    /// A decimal; its scale is how many decimals are shown. A string in json.
    Decimal(Decimal),
}
