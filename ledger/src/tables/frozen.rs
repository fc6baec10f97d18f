//! `closed_usage`, `closed_jobs`, `closed_holdings`, `closed_costs`, `closed_reservations`, `closed_nodes`: what closed months were worked out from, copied
//! when they were closed (LED-5).
//!
//! The columns of the tables of those names with two more: the month, and the closing that froze the row. Nodes have those of [`Frame`] too, by which their
//! capacity was counted. Upkeep never touches them.

use super::{Table, costs, holdings, jobs, nodes, reservations, usage};
use crate::columns::{Columns, Interned, Rows, opt_instant};
use crate::error::Error;
use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use cardhour_books::cluster::{Frame, Grouping};
use cardhour_books::site::Node;
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

pub(crate) const CLOSED_RESERVATIONS: Table = Table {
    name: "closed_reservations",
    schema_version: 1,
    schema: || with_closing(&(reservations::RESERVATIONS.schema)()),
    by_day: false,
    bounds: &[],
    comment: "reservations that closed months knew of when they were closed",
};

pub(crate) const CLOSED_NODES: Table = Table {
    name: "closed_nodes",
    schema_version: 1,
    schema: || with_closing(&framed(&[]).schema()),
    by_day: false,
    bounds: &[],
    comment: "nodes that closed months were accounted by, and how their cluster was grouped",
};

/// Nodes of some clusters, each with how its cluster was accounted.
pub(crate) fn framed(rows: &[(&Node, Frame)]) -> RecordBatch {
    let all: Vec<Node> = rows.iter().map(|(node, _)| (*node).clone()).collect();
    let frames = Columns::default()
        .text("grouping", rows.iter().map(|(_, frame)| grouping_text(frame.grouping)))
        .opt_instant("serves_from", rows.iter().map(|(_, frame)| frame.serves_from))
        .opt_instant("horizon", rows.iter().map(|(_, frame)| frame.horizon))
        .finish();
    let of_nodes = nodes::batch(&all);
    let fields: Vec<_> = of_nodes.schema().fields().iter().chain(frames.schema().fields()).cloned().collect();
    let columns = of_nodes.columns().iter().chain(frames.columns()).cloned().collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of one length")
}

/// [`framed`], read back.
pub(crate) fn framed_rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<(Node, Frame)>, Error> {
    let rows = Rows::new(CLOSED_NODES.name, batch);
    let groupings = rows.text("grouping")?;
    let (from, until) = (rows.instants("serves_from")?, rows.instants("horizon")?);
    let nodes = nodes::rows(batch, names)?;
    nodes
        .into_iter()
        .enumerate()
        .map(|(row, node)| {
            let grouping = groupings.value(row);
            let grouping = grouping_of(grouping)
                .ok_or_else(|| Error::damaged(CLOSED_NODES.name, format!("grouping {grouping:?}")))?;
            let (serves_from, horizon) = (opt_instant(from, row), opt_instant(until, row));
            Ok((node, Frame { grouping, serves_from, horizon }))
        })
        .collect()
}

fn grouping_text(grouping: Grouping) -> &'static str {
    match grouping {
        Grouping::Node => "node",
        Grouping::Model => "model",
        Grouping::Cluster => "cluster",
    }
}

fn grouping_of(text: &str) -> Option<Grouping> {
    [Grouping::Node, Grouping::Model, Grouping::Cluster].into_iter().find(|grouping| grouping_text(*grouping) == text)
}

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
