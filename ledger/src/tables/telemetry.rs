//! What nodes told, as they told it: `samples`, `activity`, `observations`, `watches`, `devices`, `node_events`.
//!
//! Their columns are those of the spool (`cardhour_domain::columns`) and one more, `segment`: which segment a row came in, with the start of the
//! digest of its content. It is in the same commit as the rows, so that a segment that comes twice, or again after a reply was lost, is known
//! (LED-4). Facts; partitioned by UTC day.

use super::Table;
use crate::Error;
use crate::columns::{Indexed, Rows as Columns};
use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use cardhour_domain::Stream;
use cardhour_domain::columns::{Rows, schema};
use std::collections::HashSet;
use std::sync::Arc;

const fn table(name: &'static str, schema: fn() -> SchemaRef, comment: &'static str) -> Table {
    Table { name, schema_version: 1, schema, by_day: true, bounds: &["ts"], comment }
}

pub(crate) const SAMPLES: Table =
    table("samples", || columns(Stream::Samples), "what each card and MIG instance said, tick by tick");
pub(crate) const ACTIVITY: Table =
    table("activity", || columns(Stream::Activity), "what each holder's processes did on a device, tick by tick");
pub(crate) const OBSERVATIONS: Table =
    table("observations", || columns(Stream::Observations), "who was seen holding which device, from when to when");
pub(crate) const WATCHES: Table =
    table("watches", || columns(Stream::Watches), "when a node looked for holders of each of its cards");
pub(crate) const DEVICES: Table =
    table("devices", || columns(Stream::Devices), "cards and MIG instances as nodes found them, at each change");
pub(crate) const NODE_EVENTS: Table =
    table("node_events", || columns(Stream::Events), "what happened to cards and collectors: XIDs, losses, re-layouts");

/// The table of each stream.
pub(crate) const fn of(stream: Stream) -> Table {
    match stream {
        Stream::Samples => SAMPLES,
        Stream::Activity => ACTIVITY,
        Stream::Observations => OBSERVATIONS,
        Stream::Watches => WATCHES,
        Stream::Devices => DEVICES,
        Stream::Events => NODE_EVENTS,
    }
}

/// The column that says which segment a row came in.
pub(crate) const SEGMENT: &str = "segment";

/// A segment as the column has it: `NODE/NAME#DIGEST`, of which the digest's first 16 digits.
pub(crate) fn segment_text(node: &str, name: &str, digest: &str) -> String {
    format!("{node}/{name}#{}", &digest[..16])
}

fn columns(stream: Stream) -> SchemaRef {
    let mut fields: Vec<Arc<Field>> = schema(stream).fields().iter().cloned().collect();
    fields.push(Arc::new(segment_field()));
    Arc::new(Schema::new(fields))
}

fn segment_field() -> Field {
    Field::new(SEGMENT, arrow::datatypes::DataType::Utf8, false)
}

/// Rows of one day that came in one segment.
pub(crate) fn batch(rows: &Rows, segment: &str) -> RecordBatch {
    let batch = rows.batch();
    let n = batch.num_rows();
    let mut fields: Vec<Arc<Field>> = batch.schema_ref().fields().iter().cloned().collect();
    let mut arrays = batch.columns().to_vec();
    let same = Indexed::the_same(Some(segment), n).finish(|texts| Arc::new(StringArray::from(texts)) as ArrayRef);
    fields.push(Arc::new(segment_field().with_data_type(same.data_type().clone())));
    arrays.push(same);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one batch have one length")
}

/// The segments that rows came in.
pub(crate) fn segments(table: &'static str, batch: &RecordBatch, out: &mut HashSet<String>) -> Result<(), Error> {
    let (_, texts) = Columns::new(table, batch).indexed(SEGMENT)?;
    out.extend(texts.iter().flatten().map(str::to_owned));
    Ok(())
}

/// The rows of a stream's table.
pub(crate) fn rows(stream: Stream, batch: &RecordBatch) -> Result<Rows, Error> {
    Rows::read(stream, batch).map_err(|error| Error::damaged(of(stream).name, error.to_string()))
}
