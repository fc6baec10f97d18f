//! `quarantine`: rows that could not be booked, and why. For operators only.

use super::Table;
use crate::columns::{Columns, Rows};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_books::attempt::Rejected;
use cardhour_books::versions::ContentHash;
use std::collections::HashSet;

pub(crate) const QUARANTINE: Table = Table {
    name: "quarantine",
    schema_version: 1,
    schema: || batch("", &[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "rows that could not be booked, with file, line, field and reason",
};

/// What makes two rejected rows one: text, field and reason. File and line are where it was first seen.
pub(crate) fn hash(row: &Rejected) -> String {
    ContentHash::of(format!("{}\u{1f}{}\u{1f}{}", row.row, row.field, row.reason).as_bytes()).to_hex()
}

pub(crate) fn batch(file: &str, rows: &[(String, Rejected)]) -> RecordBatch {
    Columns::default()
        .text("content_hash", rows.iter().map(|(hash, _)| hash.as_str()))
        .text("row", rows.iter().map(|(_, r)| r.row.as_str()))
        .text("file", rows.iter().map(|_| file))
        .long("line", rows.iter().map(|(_, r)| i64::try_from(r.line).unwrap_or(i64::MAX)))
        .text("field", rows.iter().map(|(_, r)| r.field.as_str()))
        .text("reason", rows.iter().map(|(_, r)| r.reason.as_str()))
        .finish()
}

/// The hashes that are in quarantine already.
pub(crate) fn hashes(batch: &RecordBatch, out: &mut HashSet<String>) -> Result<(), Error> {
    let hashes = Rows::new(QUARANTINE.name, batch).text("content_hash")?;
    out.extend(hashes.iter().flatten().map(str::to_owned));
    Ok(())
}
