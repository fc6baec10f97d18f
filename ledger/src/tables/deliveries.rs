//! `deliveries`: what was delivered by schedule, when and where to. Only rows are added: so nothing is delivered twice, over restarts too.

use super::Table;
use crate::columns::{Columns, Interned, Rows, opt_instant};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_domain::{Name, Timestamp};

/// One delivery that was made, or from which term on one is owed.
///
/// Stability: a row is read by every later cardhour, to deliver nothing twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When it was delivered, or first looked for.
    pub at: Timestamp,
    /// The name of the delivery in the config.
    pub delivery: Name,
    /// Of which week or month: `2026-W20`, `2026-03`.
    pub term: Name,
    /// `draft` or `final`; `from`: nothing was delivered, the term is the first that is owed.
    pub edition: Name,
    /// The folder or bucket; none of a row `from`.
    pub place: Option<Name>,
    /// The names of the files, one a line; empty where there was nothing to deliver, none of a row `from`.
    pub files: Option<Name>,
}

impl Delivered {
    /// The edition of a row that says from which term on a delivery is owed.
    pub const FROM: &str = "from";
}

pub(crate) const DELIVERIES: Table = Table {
    name: "deliveries",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "what was delivered by schedule, each term and edition once",
};

pub(crate) fn batch(rows: &[Delivered]) -> RecordBatch {
    Columns::default()
        .instant("delivered_at", rows.iter().map(|row| row.at))
        .text("delivery", rows.iter().map(|row| &*row.delivery))
        .text("term", rows.iter().map(|row| &*row.term))
        .text("edition", rows.iter().map(|row| &*row.edition))
        .opt_text("place", rows.iter().map(|row| row.place.as_deref()))
        .opt_text("files", rows.iter().map(|row| row.files.as_deref()))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Delivered>, Error> {
    let rows = Rows::new(DELIVERIES.name, batch);
    let at = rows.instants("delivered_at")?;
    let (deliveries, terms, editions) = (rows.text("delivery")?, rows.text("term")?, rows.text("edition")?);
    let (places, files) = (rows.text("place")?, rows.text("files")?);
    Ok((0..batch.num_rows())
        .filter_map(|row| {
            Some(Delivered {
                at: opt_instant(at, row)?,
                delivery: names.get(deliveries.value(row)),
                term: names.get(terms.value(row)),
                edition: names.get(editions.value(row)),
                place: names.opt(places, row),
                files: names.opt(files, row),
            })
        })
        .collect())
}
