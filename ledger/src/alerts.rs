//! Remembers what was told, so that nobody is told twice.
//!
//! A row is added when a message was delivered, not before: what a crash comes between is told again rather than never.

use crate::columns::Interned;
use crate::derive::{TRIES, pause};
use crate::store::{Change, NewFile, Outcome};
use crate::tables::alerts::{ALERTS, ToldAlert, batch, rows};
use crate::{Error, Ledger};

impl Ledger {
    /// Everything that was told, in any order. Errors: the table can't be read.
    pub async fn told_alerts(&self) -> Result<Vec<ToldAlert>, Error> {
        let Some(snapshot) = self.store.open(&ALERTS).await? else { return Ok(Vec::new()) };
        let mut names = Interned::default();
        let mut told = Vec::new();
        for (_, batches) in snapshot.read(|_| true, None, &[]).await? {
            for batch in &batches {
                told.extend(rows(batch, &mut names)?);
            }
        }
        Ok(told)
    }

    /// Adds what was delivered now. Errors: the table can't be written, or others always came first.
    pub async fn add_told_alerts(&self, told: &[ToldAlert]) -> Result<(), Error> {
        if told.is_empty() {
            return Ok(());
        }
        for attempt in 0..TRIES {
            let snapshot = self.store.open_or_create(&ALERTS).await?;
            let add = vec![NewFile::of(None, batch(told))];
            if let Outcome::Landed = self.store.commit(&snapshot, Change { add, ..Change::default() }).await? {
                return Ok(());
            }
            pause(attempt).await;
        }
        Err(Error::LostRace { table: ALERTS.name, tries: TRIES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Timestamp;

    #[tokio::test]
    async fn what_was_told_is_there_after_a_restart_and_a_ledger_that_told_nothing_has_no_such_table() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        let ledger = Ledger::open_or_make(place, None, false).await.unwrap();
        assert_eq!(ledger.told_alerts().await.unwrap(), []);
        assert!(!folder.path().join("alerts").exists());
        let told = |news: &str| ToldAlert {
            told_at: Timestamp::from_unix_s(1_775_000_000),
            channel: "webhook".into(),
            alert: "CardhourBudget".into(),
            labels: "budget=lab\nthreshold=50".into(),
            news: news.into(),
            summary: "卡时".into(),
        };
        ledger.add_told_alerts(&[told("reached")]).await.unwrap();
        ledger.add_told_alerts(&[told("over")]).await.unwrap();
        let again = Ledger::open(place).await.unwrap();
        let mut all = again.told_alerts().await.unwrap();
        all.sort_by_key(|told| told.news.clone());
        assert_eq!(all, [told("over"), told("reached")]);
    }
}
