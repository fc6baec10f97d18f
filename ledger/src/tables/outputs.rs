//! `outputs`: what jobs brought forth, as a site counts it. Usage is not made from it.

use super::Table;
use crate::columns::{Columns, Interned, Rows, opt_instant};
use crate::error::Error;
use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use cardhour_books::output::{Output, OutputOf};
use cardhour_domain::AttemptKey;

pub(crate) const OUTPUTS: Table = Table {
    name: "outputs",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "what jobs brought forth, as a site counts it: of a job (cluster and job_id), or of one of its runs (attempt_key)",
};

pub(crate) fn batch(rows: &[Output]) -> RecordBatch {
    let job = |row: &Output| match &row.of {
        OutputOf::Job { cluster, job_id } => (Some(cluster.clone()), Some(job_id.clone()), None),
        OutputOf::Attempt(key) => (None, None, Some(key.clone())),
    };
    let of: Vec<_> = rows.iter().map(job).collect();
    Columns::default()
        .opt_text("cluster", of.iter().map(|(cluster, ..)| cluster.as_deref()))
        .opt_text("job_id", of.iter().map(|(_, job_id, _)| job_id.as_deref()))
        .opt_text("attempt_key", of.iter().map(|(.., key)| key.as_ref().map(AttemptKey::as_str)))
        .text("unit", rows.iter().map(|row| &*row.unit))
        .long("amount", rows.iter().map(|row| row.amount))
        .opt_instant("at", rows.iter().map(|row| row.at))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Output>, Error> {
    let rows = Rows::new(OUTPUTS.name, batch);
    let (clusters, jobs, keys) = (rows.text("cluster")?, rows.text("job_id")?, rows.text("attempt_key")?);
    let (units, amounts, times) = (rows.text("unit")?, rows.long("amount")?, rows.instants("at")?);
    (0..batch.num_rows())
        .map(|row| {
            let of = match (names.opt(clusters, row), names.opt(jobs, row), keys.is_valid(row)) {
                (Some(cluster), Some(job_id), false) => OutputOf::Job { cluster, job_id },
                (None, None, true) => OutputOf::Attempt(AttemptKey::from_stored(keys.value(row))),
                _ => return Err(Error::damaged(OUTPUTS.name, format!("row {row} is of neither one job nor one run"))),
            };
            let (unit, amount) = (names.get(units.value(row)), amounts.value(row));
            Ok(Output { of, unit, amount, at: opt_instant(times, row) })
        })
        .collect()
}
