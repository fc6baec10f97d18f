//! Every table against the number of rows that were put into it: a row that nothing else refers to leaves no other gap.

use super::findings::Findings;
use crate::{Error, Ledger};

/// Each table has as many rows as its writers counted. Tables that nobody counted are passed over.
pub(super) async fn all_are_there(ledger: &Ledger) -> Result<Findings, Error> {
    let mut out = Findings::default();
    for table in &ledger.store.tables().await? {
        let Some(snapshot) = ledger.store.open(table).await? else { continue };
        let Some(said) = snapshot.rows_said().await? else { continue };
        let found = snapshot.count(snapshot.files.clone()).await?;
        out.rows += found.unsigned_abs();
        if found != said {
            out.fault(table.name, "the whole table", &format!("{said} rows"), &format!("{found} rows"));
        }
    }
    Ok(out)
}
