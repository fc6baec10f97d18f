//! Every table against the number of rows that were put into it: a row that nothing else refers to leaves no other gap.

use super::findings::Findings;
use crate::tables::ALL;
use crate::{Error, Ledger};

/// Each table has as many rows as its writers counted. Tables that nobody counted are passed over.
pub(super) async fn all_are_there(ledger: &Ledger) -> Result<Findings, Error> {
    let mut out = Findings::default();
    for table in ALL {
        let Some(snapshot) = ledger.store.open(table).await? else { continue };
        let Some(said) = snapshot.rows_said().await? else { continue };
        let count =
            |batches: Vec<arrow::record_batch::RecordBatch>| Ok(batches.iter().map(|b| b.num_rows()).sum::<usize>());
        let files = snapshot.read_with(snapshot.files.clone(), Some(&[]), &[], count).await?;
        let found: u64 = files.into_iter().map(|(_, rows)| rows as u64).sum();
        out.rows += found;
        if i64::try_from(found) != Ok(said) {
            out.fault(table.name, "the whole table", &format!("{said} rows"), &format!("{found} rows"));
        }
    }
    Ok(out)
}
