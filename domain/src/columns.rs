//! Rows of the spool and of telemetry tables as Arrow columns, and back.
//!
//! One module a row type, each with `batch` and `rows`: the only place where its columns are named. Types are those that Delta Lake knows: signed
//! integers, microseconds of UTC, texts, decimals. A reading that is missing is null, and the column `gaps` says why: `NAME=REASON`, by
//! spaces. Stability: a column may be added, and is then absent in older files; none is renamed. Pinned by the test
//! `columns_are_laid_out_as_before`.

mod activity;
mod devices;
mod events;
mod observations;
mod reader;
mod samples;
#[cfg(test)]
mod tests;
mod watches;
mod writer;

pub use reader::ColumnError;

use crate::{Activity, NodeEvent, Observation, Sample, SeenDevice, Stream, Watch};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

/// Rows of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Of [`Stream::Samples`].
    Samples(Vec<Sample>),
    /// Of [`Stream::Activity`].
    Activity(Vec<Activity>),
    /// Of [`Stream::Observations`].
    Observations(Vec<Observation>),
    /// Of [`Stream::Watches`].
    Watches(Vec<Watch>),
    /// Of [`Stream::Devices`].
    Devices(Vec<SeenDevice>),
    /// Of [`Stream::Events`].
    Events(Vec<NodeEvent>),
}

impl Rows {
    /// As columns, in the order of the rows.
    pub fn batch(&self) -> RecordBatch {
        match self {
            Self::Samples(rows) => samples::batch(rows),
            Self::Activity(rows) => activity::batch(rows),
            Self::Observations(rows) => observations::batch(rows),
            Self::Watches(rows) => watches::batch(rows),
            Self::Devices(rows) => devices::batch(rows),
            Self::Events(rows) => events::batch(rows),
        }
    }

    /// From columns. Columns are found by name; one that isn't there is an error unless every one of its values may be absent.
    ///
    /// Errors: a column that is missing or of another type, a null where there must be a value, a value that can't be: with column and row.
    pub fn read(stream: Stream, batch: &RecordBatch) -> Result<Self, ColumnError> {
        Ok(match stream {
            Stream::Samples => Self::Samples(samples::rows(batch)?),
            Stream::Activity => Self::Activity(activity::rows(batch)?),
            Stream::Observations => Self::Observations(observations::rows(batch)?),
            Stream::Watches => Self::Watches(watches::rows(batch)?),
            Stream::Devices => Self::Devices(devices::rows(batch)?),
            Stream::Events => Self::Events(events::rows(batch)?),
        })
    }

    /// No rows of a stream: for its columns.
    pub fn none(stream: Stream) -> Self {
        match stream {
            Stream::Samples => Self::Samples(Vec::new()),
            Stream::Activity => Self::Activity(Vec::new()),
            Stream::Observations => Self::Observations(Vec::new()),
            Stream::Watches => Self::Watches(Vec::new()),
            Stream::Devices => Self::Devices(Vec::new()),
            Stream::Events => Self::Events(Vec::new()),
        }
    }

    /// Which stream they are of.
    pub const fn stream(&self) -> Stream {
        match self {
            Self::Samples(_) => Stream::Samples,
            Self::Activity(_) => Stream::Activity,
            Self::Observations(_) => Stream::Observations,
            Self::Watches(_) => Stream::Watches,
            Self::Devices(_) => Stream::Devices,
            Self::Events(_) => Stream::Events,
        }
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Samples(rows) => rows.len(),
            Self::Activity(rows) => rows.len(),
            Self::Observations(rows) => rows.len(),
            Self::Watches(rows) => rows.len(),
            Self::Devices(rows) => rows.len(),
            Self::Events(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The columns of a stream.
pub fn schema(stream: Stream) -> SchemaRef {
    Rows::none(stream).batch().schema()
}
