//! Keeps what was decided, and how far idle reclaim is with each job.
//!
//! A decision is written before anything is carried out, under an id that a look after a kill makes again: so it is written once, and carried out once.

use crate::columns::Interned;
use crate::derive::{TRIES, pause};
use crate::store::{Change, FileView, NewFile, Outcome, Snapshot, Store};
use crate::tables::decisions::{self, DECISIONS};
use crate::tables::leases::{self, LEASES};
use crate::{Error, Ledger};
use cardhour_decisions::decision::{Decision, WRONGFUL};
use cardhour_decisions::kept::KeptLease;
use cardhour_domain::{AttemptKey, Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

impl Ledger {
    /// What was decided at `from` or later, by instant and id; without `from`, everything. Errors: the table can't be read.
    pub async fn decisions(&self, from: Option<Timestamp>) -> Result<Vec<Decision>, Error> {
        let Some(snapshot) = self.store.open(&DECISIONS).await? else { return Ok(Vec::new()) };
        decisions_of(&snapshot, from).await
    }

    /// Adds decisions that aren't there yet, and returns those: what an earlier look wrote already is left out. Errors: the table can't be written, or
    /// others always came first.
    pub async fn add_decisions(&self, new: &[Decision]) -> Result<Vec<Decision>, Error> {
        let Some(first) = new.iter().map(|decision| decision.at).min() else { return Ok(Vec::new()) };
        for attempt in 0..TRIES {
            let snapshot = self.store.open_or_create(&DECISIONS).await?;
            let mut known: BTreeSet<_> =
                decisions_of(&snapshot, Some(first)).await?.into_iter().map(|decision| decision.id).collect();
            let missing: Vec<Decision> = new.iter().filter(|new| known.insert(new.id.clone())).cloned().collect();
            if missing.is_empty() {
                return Ok(missing);
            }
            let add = vec![NewFile::of(None, decisions::batch(&missing))];
            if let Outcome::Landed = self.store.commit(&snapshot, Change { add, ..Change::default() }).await? {
                return Ok(missing);
            }
            pause(attempt).await;
        }
        Err(Error::LostRace { table: DECISIONS.name, tries: TRIES })
    }

    /// How far idle reclaim was with each job after its last look, by attempt. Errors: the table can't be read.
    pub async fn leases(&self) -> Result<Vec<KeptLease>, Error> {
        let Some(snapshot) = self.store.open(&LEASES).await? else { return Ok(Vec::new()) };
        let mut names = Interned::default();
        let mut kept = Vec::new();
        for (_, batches) in snapshot.read(|_| true, None, &[]).await? {
            for batch in &batches {
                kept.extend(leases::rows(batch, &mut names)?);
            }
        }
        kept.sort_by(|a, b| a.attempt_key.cmp(&b.attempt_key));
        Ok(kept)
    }

    /// Puts these in the place of all that were kept. Errors: the table can't be written, or others always came first.
    pub async fn keep_leases(&self, kept: &[KeptLease]) -> Result<(), Error> {
        for attempt in 0..TRIES {
            let snapshot = self.store.open_or_create(&LEASES).await?;
            if kept.is_empty() && snapshot.files.is_empty() {
                return Ok(());
            }
            let add = if kept.is_empty() { Vec::new() } else { vec![NewFile::of(None, leases::batch(kept))] };
            let change = Change { add, remove: snapshot.files.clone(), ..Change::default() };
            if let Outcome::Landed = self.store.commit(&snapshot, change).await? {
                return Ok(());
            }
            pause(attempt).await;
        }
        Err(Error::LostRace { table: LEASES.name, tries: TRIES })
    }
}

/// The attempts whose cards were wrongly taken, as somebody marked, each with the decision that took them.
pub(crate) async fn wrongful_reclaims(store: &Store) -> Result<BTreeMap<AttemptKey, Name>, Error> {
    let Some(snapshot) = store.open(&DECISIONS).await? else { return Ok(BTreeMap::new()) };
    let marks = decisions_of(&snapshot, None).await?.into_iter().filter(|decision| &*decision.action == WRONGFUL);
    Ok(marks.filter_map(|mark| Some((mark.attempt_key?, mark.of_decision?))).collect())
}

async fn decisions_of(snapshot: &Snapshot, from: Option<Timestamp>) -> Result<Vec<Decision>, Error> {
    let is_late =
        |file: &FileView| from.is_none_or(|from| file.bounds("decided_at").is_none_or(|(_, last)| last >= from));
    let mut names = Interned::default();
    let mut found = Vec::new();
    for (_, batches) in snapshot.read(is_late, None, &[]).await? {
        for batch in &batches {
            found.extend(decisions::rows(batch, &mut names)?);
        }
    }
    found.retain(|decision| from.is_none_or(|from| decision.at >= from));
    found.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_decisions::decision::Mode;

    #[tokio::test]
    async fn a_decision_that_is_made_again_is_written_once_and_leases_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap();
        let ledger = Ledger::open_or_make(place, None, false).await.unwrap();
        assert_eq!(ledger.decisions(None).await.unwrap(), []);
        assert_eq!(ledger.leases().await.unwrap(), []);
        assert!(!folder.path().join("decisions").exists());
        let at = |s: i64| Timestamp::from_unix_s(1_775_000_000 + s);
        let first = Decision::of_mode(at(0), Mode::Notify, "李雷".into());
        let second = Decision::of_mode(at(60), Mode::Act, "root".into());
        let (of_first, of_second) = (vec![first.clone()], vec![second.clone()]);
        assert_eq!(ledger.add_decisions(&of_first).await.unwrap(), of_first);
        let both = [first.clone(), second.clone(), second.clone()];
        assert_eq!(ledger.add_decisions(&both).await.unwrap(), of_second);
        let again = Ledger::open(place).await.unwrap();
        assert_eq!(again.decisions(None).await.unwrap(), [first, second.clone()]);
        assert_eq!(again.decisions(Some(at(1))).await.unwrap(), [second]);

        let lease = |job: &str, phase: &str| KeptLease {
            attempt_key: cardhour_domain::AttemptKey::new("lab", job, "0"),
            at: at(0),
            phase: phase.into(),
            state: "{}".into(),
        };
        ledger.keep_leases(&[lease("1", "active"), lease("2", "suspect")]).await.unwrap();
        ledger.keep_leases(&[lease("2", "grace")]).await.unwrap();
        assert_eq!(again.leases().await.unwrap(), [lease("2", "grace")]);
        ledger.keep_leases(&[]).await.unwrap();
        assert_eq!(again.leases().await.unwrap(), []);
    }
}
