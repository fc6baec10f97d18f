//! `coverage`: what time each export spoke for.

use super::Table;
use super::reservations::stretch;
use crate::columns::{Columns, Interned, Rows};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_books::site::Coverage;

pub(crate) const COVERAGE: Table = Table {
    name: "coverage",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "what time exports speak for, by cluster: inside it, what nobody held is free",
};

pub(crate) fn batch(rows: &[Coverage]) -> RecordBatch {
    Columns::default()
        .text("cluster", rows.iter().map(|c| &*c.cluster))
        .instant("covers_from", rows.iter().map(|c| c.covers.start()))
        .instant("covers_to", rows.iter().map(|c| c.covers.end()))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Coverage>, Error> {
    let rows = Rows::new(COVERAGE.name, batch);
    let clusters = rows.text("cluster")?;
    let (from, to) = (rows.instants("covers_from")?, rows.instants("covers_to")?);
    (0..batch.num_rows())
        .map(|row| {
            Ok(Coverage {
                cluster: names.get(clusters.value(row)),
                covers: stretch(COVERAGE.name, from.value(row), to.value(row))?,
            })
        })
        .collect()
}
