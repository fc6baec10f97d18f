//! Every table against the number of rows that were put into it: a row that nothing else refers to leaves no other gap.

use super::damage::Damage;
use super::findings::Findings;
use crate::{Error, Ledger};

/// Each table has as many rows as its writers counted. Tables that nobody counted are passed over.
pub(super) async fn all_are_there(ledger: &Ledger, damage: &mut Damage) -> Result<Findings, Error> {
    let mut out = Findings::default();
    for table in &ledger.store.tables().await? {
        let Some(snapshot) = damage.past(ledger.store.open(table).await)?.flatten() else { continue };
        let Some(said) = damage.past(snapshot.rows_said().await)?.flatten() else { continue };
        let Some(found) = damage.past(snapshot.count(snapshot.files.clone()).await)? else { continue };
        out.rows += found.unsigned_abs();
        if found != said {
            out.fault(table.name, "the whole table", &format!("{said} rows"), &format!("{found} rows"));
        }
    }
    Ok(out)
}
