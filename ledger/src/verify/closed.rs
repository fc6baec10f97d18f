//! Closed months against what was frozen with them (LED-5): all of it is there, their text has the hash that was signed, what was frozen comes to the same
//! entries again, and what the books pass over when they look for corrections has none.

use super::damage::Damage;
use super::findings::Findings;
use crate::billed::{Checked, Unchanged};
use crate::closed;
use crate::closing::sha256_of;
use crate::sources::Sources;
use crate::store::Snapshot;
use crate::tables::OF_CLOSINGS;
use crate::tables::closings::{CLOSINGS, Closing};
use crate::tables::entries::ENTRIES;
use crate::{Error, Ledger, Reading};
use cardhour_books::statement::{Entry, canonical_csv, untold};
use cardhour_domain::Month;
use std::collections::BTreeMap;

/// What the checks found; none where no month is closed.
pub(super) struct Closed {
    pub(super) there: Findings,
    pub(super) signed: Findings,
    pub(super) again: Findings,
    pub(super) passed_over: Findings,
}

pub(super) async fn check(ledger: &Ledger, reading: &Reading, damage: &mut Damage) -> Result<Option<Closed>, Error> {
    if reading.closings().is_empty() {
        return Ok(None);
    }
    let zone = ledger.zone();
    let (mut signed, mut again) = (Findings::default(), Findings::default());
    for closing in reading.closings() {
        let place = closing.month.to_string();
        let closed = reading.closed.as_ref().expect("it has closings");
        let billed = damage.past(reading.closed_month(closed, closing, zone, Checked::Not).await)?;
        let Some(billed) = billed else { continue };
        let entries: Vec<Entry> = billed.statements.iter().flat_map(|statement| statement.entries.clone()).collect();
        signed.rows += entries.len() as u64;
        let hash = sha256_of(&canonical_csv(&billed.statements));
        if hash != closing.sha256 {
            signed.fault(CLOSINGS.name, &place, &format!("SHA-256 {}", closing.sha256), &format!("SHA-256 {hash}"));
        }
        let Some(drafted) = damage.past(reading.drafted_again(closing, zone).await)?.map(by_id) else { continue };
        let of_month = entries.into_iter().filter(|entry| entry.key.original_period == closing.month);
        let stored = by_id(of_month);
        again.rows += drafted.len() as u64;
        let drafted: BTreeMap<String, Entry> =
            drafted.into_iter().map(|(id, entry)| as_signed(id, entry, &stored)).collect();
        for (id, entry) in &drafted {
            if !stored.contains_key(id) {
                again.fault(ENTRIES.name, &place, &format!("entry {id} of {}", entry.amount.to_minor_string()), "none");
            }
        }
        for (id, entry) in &stored {
            if !drafted.contains_key(id) {
                again.fault(ENTRIES.name, &place, "none", &format!("entry {id} of {}", entry.amount.to_minor_string()));
            }
        }
    }
    let there = all_there(ledger, reading.closings(), damage).await?;
    let passed_over = damage.past(passed_over(ledger, reading).await)?.unwrap_or_default();
    Ok(Some(Closed { there, signed, again, passed_over }))
}

/// Every table has the rows that each closing says it froze there, also one that is gone as a whole.
async fn all_there(ledger: &Ledger, closings: &[Closing], damage: &mut Damage) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    for table in OF_CLOSINGS {
        let snapshot: Option<Option<Snapshot>> = damage.past(ledger.store.open(table).await)?;
        let Some(snapshot) = snapshot else { continue };
        for closing in closings {
            let Some(said) = closing.frozen.as_ref().and_then(|frozen| frozen.get(table.name)) else { continue };
            let found = match &snapshot {
                Some(snapshot) => damage.past(snapshot.count(closed::Closed::files(snapshot, closing)).await)?,
                None => Some(0),
            };
            let Some(found) = found else { continue };
            findings.rows += said;
            if u64::try_from(found) != Ok(*said) {
                let place = format!("rows of {}", closing.month);
                findings.fault(table.name, &place, &said.to_string(), &found.to_string());
            }
        }
    }
    Ok(findings)
}

/// Months that are made of what they were made of when the last one was closed have nothing to correct: worked out again, as a reader does not.
async fn passed_over(ledger: &Ledger, reading: &Reading) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    let (Some(open), Some(last)) = (reading.open_month(), reading.closings().last()) else { return Ok(findings) };
    let sources = Sources::load(reading, ledger.zone()).await?;
    let corrected = reading.corrections(open, ledger.zone(), &sources, Unchanged::WorkedOut).await?;
    let is_known =
        |month: &Month| last.sources.get(month).is_some_and(|known| corrected.sources.get(month) == Some(known));
    findings.rows += reading.closings().iter().filter(|closing| is_known(&closing.month)).count() as u64;
    for entry in corrected.entries.iter().filter(|entry| is_known(&entry.key.original_period)) {
        let found = format!("a correction of {}", entry.amount.to_minor_string());
        findings.fault(ENTRIES.name, &entry.key.original_period.to_string(), "nothing to correct", &found);
    }
    Ok(findings)
}

/// An entry as builds wrote it that said nothing of what wasn't seen, where that is what was signed.
fn as_signed(id: String, entry: Entry, stored: &BTreeMap<String, Entry>) -> (String, Entry) {
    let before = || untold(&entry).map(|before| (before.id().to_string(), before));
    let signed = if stored.contains_key(&id) { None } else { before() };
    signed.filter(|(id, _)| stored.contains_key(id)).unwrap_or((id, entry))
}

fn by_id(entries: impl IntoIterator<Item = Entry>) -> BTreeMap<String, Entry> {
    entries.into_iter().map(|entry| (entry.id().to_string(), entry)).collect()
}
