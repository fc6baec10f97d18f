//! Which rows of a table a closing freezes.

use crate::Error;
use crate::columns::{Rows, opt_instant};
use crate::tables::Table;
use arrow::array::BooleanArray;
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::record_batch::RecordBatch;
use cardhour_domain::{Interval, Month, Timestamp};
use std::collections::{BTreeMap, HashSet};

/// Rows of usage whose bucket is in a stretch.
pub(super) fn in_stretch(batches: Vec<RecordBatch>, during: Interval) -> Result<Vec<RecordBatch>, Error> {
    kept(batches, "usage", |rows| {
        let buckets = rows.instants("bucket_start")?;
        Ok(buckets.iter().map(|at| at.is_some_and(|at| during.contains(Timestamp::from_unix_us(at)))).collect())
    })
}

/// Rows of holdings that overlap a stretch.
pub(super) fn overlapping(batches: Vec<RecordBatch>, during: Interval) -> Result<Vec<RecordBatch>, Error> {
    kept(batches, "holdings", |rows| {
        let (starts, ends) = (rows.instants("started_at")?, rows.instants("ended_at")?);
        let overlaps = |row: usize| {
            let held = opt_instant(starts, row).zip(opt_instant(ends, row));
            held.is_some_and(|(start, end)| start < during.end() && during.start() < end)
        };
        Ok((0..rows.batch.num_rows()).map(|row| Some(overlaps(row))).collect())
    })
}

/// Rows of costs of a month.
pub(super) fn of_month(batches: Vec<RecordBatch>, month: Month) -> Result<Vec<RecordBatch>, Error> {
    let month = month.to_string();
    kept(batches, "costs", |rows| Ok(rows.text("month")?.iter().map(|of| of.map(|of| of == month)).collect()))
}

/// Rows of some attempts.
pub(super) fn of_attempts(batches: Vec<RecordBatch>, keys: &HashSet<String>) -> Result<Vec<RecordBatch>, Error> {
    kept(batches, "jobs", |rows| {
        let of = rows.text("attempt_key")?;
        Ok(of.iter().map(|key| key.map(|key| keys.contains(key))).collect())
    })
}

fn kept(
    batches: Vec<RecordBatch>,
    table: &'static str,
    keep: impl Fn(&Rows<'_>) -> Result<BooleanArray, Error>,
) -> Result<Vec<RecordBatch>, Error> {
    let mut out = Vec::new();
    for batch in batches {
        let mask = keep(&Rows::new(table, &batch))?;
        let rows = filter_record_batch(&batch, &mask).map_err(|error| Error::table("read", table)(error.into()))?;
        if rows.num_rows() > 0 {
            out.push(rows);
        }
    }
    Ok(out)
}

/// Rows as one batch a day; of a table that isn't by day, as one.
pub(super) fn by_day(
    table: &Table,
    frozen: &[(Option<i32>, RecordBatch)],
) -> Result<BTreeMap<Option<i32>, RecordBatch>, Error> {
    let mut by_day: BTreeMap<Option<i32>, Vec<&RecordBatch>> = BTreeMap::new();
    for (day, rows) in frozen.iter().filter(|(_, rows)| rows.num_rows() > 0) {
        by_day.entry(*day).or_default().push(rows);
    }
    let schema = (table.schema)();
    by_day
        .into_iter()
        .map(|(day, batches)| {
            let rows = concat_batches(&schema, batches);
            Ok((day, rows.map_err(|error| Error::table("freeze rows in", table.name)(error.into()))?))
        })
        .collect()
}
