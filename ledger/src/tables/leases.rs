//! `leases`: how far idle reclaim is with each job that holds cards. Each look replaces all rows; losing them only means that jobs are judged later.

use super::Table;
use crate::columns::{Columns, Interned, Rows, opt_instant};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_decisions::kept::KeptLease;
use cardhour_domain::AttemptKey;

pub(crate) const LEASES: Table = Table {
    name: "leases",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "how far idle reclaim is with each job that holds cards",
};

pub(crate) fn batch(rows: &[KeptLease]) -> RecordBatch {
    Columns::default()
        .text("attempt_key", rows.iter().map(|row| row.attempt_key.as_str()))
        .instant("kept_at", rows.iter().map(|row| row.at))
        .text("phase", rows.iter().map(|row| &*row.phase))
        .text("state", rows.iter().map(|row| &*row.state))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<KeptLease>, Error> {
    let rows = Rows::new(LEASES.name, batch);
    let (keys, phases, states) = (rows.text("attempt_key")?, rows.text("phase")?, rows.text("state")?);
    let at = rows.instants("kept_at")?;
    Ok((0..batch.num_rows())
        .filter_map(|row| {
            Some(KeptLease {
                attempt_key: AttemptKey::from_stored(keys.value(row)),
                at: opt_instant(at, row)?,
                phase: names.get(phases.value(row)),
                state: names.get(states.value(row)),
            })
        })
        .collect())
}
