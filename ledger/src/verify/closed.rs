//! Closed months against what was frozen with them (LED-5): their text has the hash that was signed, and what was frozen comes to the same entries again.

use super::findings::Findings;
use crate::billed::Checked;
use crate::closing::sha256_of;
use crate::tables::closings::CLOSINGS;
use crate::tables::entries::ENTRIES;
use crate::{Error, Ledger, Reading};
use cardhour_books::statement::{Entry, canonical_csv};
use std::collections::BTreeMap;

/// What the two checks found; none where no month is closed.
pub(super) struct Closed {
    pub(super) signed: Findings,
    pub(super) again: Findings,
}

pub(super) async fn check(ledger: &Ledger, reading: &Reading) -> Result<Option<Closed>, Error> {
    if reading.closings().is_empty() {
        return Ok(None);
    }
    let zone = ledger.zone();
    let (mut signed, mut again) = (Findings::default(), Findings::default());
    for closing in reading.closings() {
        let place = closing.month.to_string();
        let closed = reading.closed.as_ref().expect("it has closings");
        let billed = reading.closed_month(closed, closing, zone, Checked::Not).await?;
        let entries: Vec<Entry> = billed.statements.iter().flat_map(|statement| statement.entries.clone()).collect();
        signed.rows += entries.len() as u64;
        let hash = sha256_of(&canonical_csv(&billed.statements));
        if hash != closing.sha256 {
            signed.fault(CLOSINGS.name, &place, &format!("SHA-256 {}", closing.sha256), &format!("SHA-256 {hash}"));
        }
        let drafted = by_id(reading.drafted_again(closing, zone).await?);
        let of_month = entries.into_iter().filter(|entry| entry.key.original_period == closing.month);
        let stored = by_id(of_month);
        again.rows += drafted.len() as u64;
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
    Ok(Some(Closed { signed, again }))
}

fn by_id(entries: impl IntoIterator<Item = Entry>) -> BTreeMap<String, Entry> {
    entries.into_iter().map(|entry| (entry.id().to_string(), entry)).collect()
}
