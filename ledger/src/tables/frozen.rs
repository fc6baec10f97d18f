//! `closed_usage`, `closed_jobs`, `closed_holdings`, `closed_costs`: what closed months were worked out from, copied when they were closed (LED-5).
//!
//! The columns of `usage`, `jobs`, `holdings` and `costs` with two more: the month, and the closing that froze the row. Upkeep never touches them.

use super::{Table, costs, holdings, jobs, usage};
use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

pub(crate) const CLOSED_USAGE: Table = Table {
    name: "closed_usage",
    schema_version: 1,
    schema: || with_closing(&(usage::USAGE.schema)()),
    by_day: true,
    bounds: &["bucket_start"],
    comment: "usage of closed months as it was when they were closed",
};

pub(crate) const CLOSED_JOBS: Table = Table {
    name: "closed_jobs",
    schema_version: 1,
    schema: || with_closing(&(jobs::JOBS.schema)()),
    by_day: false,
    bounds: &[],
    comment: "attempts of closed months as they were when these were closed, also those that only nodes know of",
};

pub(crate) const CLOSED_HOLDINGS: Table = Table {
    name: "closed_holdings",
    schema_version: 1,
    schema: || with_closing(&(holdings::HOLDINGS.schema)()),
    by_day: false,
    bounds: &[],
    comment: "holdings of closed months as they were when these were closed",
};

pub(crate) const CLOSED_COSTS: Table = Table {
    name: "closed_costs",
    schema_version: 1,
    schema: || with_closing(&(costs::COSTS.schema)()),
    by_day: false,
    bounds: &[],
    comment: "cost items of closed months as they were when these were closed",
};

/// The columns of a table with those of the closing behind them.
fn with_closing(schema: &SchemaRef) -> SchemaRef {
    let mut fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| Field::new(field.name(), super::stored_type(field), field.is_nullable()))
        .collect();
    for name in ["month", "closing_id"] {
        // Costs have their month.
        if fields.iter().all(|field| field.name() != name) {
            fields.push(Field::new(name, DataType::Utf8, false));
        }
    }
    Arc::new(Schema::new(fields))
}

/// Rows of a table, as they are to be frozen in `table`. Columns that the rows lack are absent: a table of an earlier landing had none.
pub(crate) fn frozen(table: &Table, rows: &RecordBatch, month: &str, closing: &str) -> RecordBatch {
    let n = rows.num_rows();
    let schema = (table.schema)();
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| match (field.name().as_str(), rows.column_by_name(field.name())) {
            ("month", None) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(month, n))) as ArrayRef,
            ("closing_id", None) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(closing, n))),
            (_, Some(column)) => column.clone(),
            (_, None) => arrow::array::new_null_array(field.data_type(), n),
        })
        .collect();
    RecordBatch::try_new(schema, columns).expect("columns of one batch, of the types that the table's rows are read in")
}
