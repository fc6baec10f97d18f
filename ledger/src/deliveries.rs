//! Remembers what was delivered by schedule, so that nothing is delivered twice.
//!
//! A row is added when the files are in place, not before: what a crash comes between is delivered again, under the same names, rather than never.

use crate::columns::Interned;
use crate::derive::{TRIES, pause};
use crate::store::{Change, NewFile, Outcome, Snapshot};
use crate::tables::deliveries::{DELIVERIES, Delivered, batch, rows};
use crate::{Error, Ledger};

impl Ledger {
    /// Everything that was delivered, in any order. Errors: the table can't be read.
    pub async fn delivered(&self) -> Result<Vec<Delivered>, Error> {
        match self.store.open(&DELIVERIES).await? {
            Some(snapshot) => all(&snapshot).await,
            None => Ok(Vec::new()),
        }
    }

    /// Adds what was delivered now, and whether it is new: of two who delivered the same, one adds it. Errors: the table can't be written, or others
    /// always came first.
    pub async fn add_delivered(&self, delivered: &Delivered) -> Result<bool, Error> {
        for attempt in 0..TRIES {
            let snapshot = self.store.open_or_create(&DELIVERIES).await?;
            // Weeks are owed from a week on, months from a month on: each has a first of its own.
            let is_week = |row: &Delivered| row.term.contains('W');
            let same = |row: &Delivered| {
                (&row.delivery, &row.edition) == (&delivered.delivery, &delivered.edition)
                    && (row.term == delivered.term
                        || *row.edition == *Delivered::FROM && is_week(row) == is_week(delivered))
            };
            if all(&snapshot).await?.iter().any(same) {
                return Ok(false);
            }
            let add = vec![NewFile::of(None, batch(std::slice::from_ref(delivered)))];
            if let Outcome::Landed = self.store.commit(&snapshot, Change { add, ..Change::default() }).await? {
                return Ok(true);
            }
            pause(attempt).await;
        }
        Err(Error::LostRace { table: DELIVERIES.name, tries: TRIES })
    }
}

async fn all(snapshot: &Snapshot) -> Result<Vec<Delivered>, Error> {
    let mut names = Interned::default();
    let mut out = Vec::new();
    for (_, batches) in snapshot.read(|_| true, None, &[]).await? {
        for batch in &batches {
            out.extend(rows(batch, &mut names)?);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Timestamp;

    #[tokio::test]
    async fn a_delivery_is_remembered_once_over_restarts_and_a_ledger_that_delivered_nothing_has_no_such_table() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        let ledger = Ledger::open_or_make(place, None, false).await.unwrap();
        assert_eq!(ledger.delivered().await.unwrap(), []);
        assert!(!folder.path().join("deliveries").exists());
        let row = |term: &str, edition: &str, files: Option<&str>| Delivered {
            at: Timestamp::from_unix_s(1_775_000_000),
            delivery: "finance".into(),
            term: term.into(),
            edition: edition.into(),
            place: files.map(|_| "/srv/finance".into()),
            files: files.map(Into::into),
        };
        let from = row("2026-02", Delivered::FROM, None);
        assert!(ledger.add_delivered(&from).await.unwrap());
        // Of two that begin at a time, the first says from when on.
        assert!(!ledger.add_delivered(&row("2026-03", Delivered::FROM, None)).await.unwrap());
        let made = row("2026-02", "final", Some("a.xlsx\nb.xlsx"));
        assert!(ledger.add_delivered(&made).await.unwrap());
        let again = Ledger::open(place).await.unwrap();
        assert!(!again.add_delivered(&made).await.unwrap());
        let nothing = row("2026-03", "final", Some(""));
        assert!(again.add_delivered(&nothing).await.unwrap());
        let mut all = again.delivered().await.unwrap();
        all.sort_by_key(|row| (row.term.clone(), row.edition.clone()));
        assert_eq!(all, [made, from, nothing]);
    }
}
