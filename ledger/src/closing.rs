//! Closing a month: what it comes to is frozen with everything that it was worked out from (LED-5).
//!
//! Rows are frozen first, under the id of the closing, which is made from what they say; the row of `closings` last, on exactly the version that was read
//! before. So a closing that is killed leaves rows that count for nothing, the same again lands once, and of two at a time one is told that it is done.
//!
//! Start at [`Ledger::close`]. Does not: open a month again. That doesn't exist.

mod refusal;
mod rows;

use crate::billed::{Billed, Terms, beset_text};
use crate::closed::Closed;
use crate::derive::{TRIES, pause};
use crate::store::{Change, FileView, NewFile, Outcome};
use crate::tables::closings::{self, CLOSINGS, Closing};
use crate::tables::costs::COSTS;
use crate::tables::entries::{self, ENTRIES};
use crate::tables::frozen::{
    CLOSED_COSTS, CLOSED_HOLDINGS, CLOSED_JOBS, CLOSED_NODES, CLOSED_RESERVATIONS, CLOSED_USAGE, framed, frozen,
};
use crate::tables::holdings::HOLDINGS;
use crate::tables::jobs::JOBS;
use crate::tables::reservations;
use crate::tables::statements::{self, STATEMENTS};
use crate::tables::{Table, usage::USAGE};
use crate::{Error, Ledger, Reading};
use arrow::record_batch::RecordBatch;
use cardhour_books::statement::{Coverage, canonical_csv};
use cardhour_domain::{Money, Month, Name, Timestamp, Zone};
pub use refusal::Refusal;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// A month that is to be closed.
#[derive(Clone, Debug)]
pub struct CloseRequest {
    /// Which.
    pub month: Month,
    /// Now.
    pub now: Timestamp,
    /// Who approves it.
    pub by: Name,
    /// What they write.
    pub comment: Option<Name>,
    /// Why it is closed although the books ask not to.
    pub sign_off: Option<Name>,
    /// The text of the price book.
    pub prices: String,
    /// The text of the billing policy, empty where there is none.
    pub policy: String,
    /// The version of cardhour.
    pub code_version: Name,
}

/// What a month would be closed with.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The month.
    pub billed: Billed,
    /// Why it can't be closed, or only with a reason; empty where it can.
    pub refusals: Vec<Refusal>,
    /// SHA-256 of its canonical text, 64 hex digits.
    pub sha256: Name,
    /// How much of all its held time is known.
    pub coverage: Coverage,
}

/// What became of a closing.
#[derive(Clone, Debug)]
pub enum CloseOutcome {
    /// It is closed.
    Done(Box<Closing>),
    /// It is not, and why.
    Refused(Vec<Refusal>),
}

impl Prepared {
    /// What keeps it from being closed: all refusals, or with a reason those that no reason mends.
    pub fn stops(&self, sign_off: Option<&Name>) -> Vec<Refusal> {
        let stops = |refusal: &&Refusal| sign_off.is_none() || !refusal.yields_to_sign_off();
        self.refusals.iter().filter(stops).cloned().collect()
    }

    /// What it comes to.
    pub fn total(&self) -> Money {
        let zero = Money::zero(self.billed.book.currency());
        self.billed.statements.iter().fold(zero, |total, statement| total + statement.total)
    }
}

impl Ledger {
    /// What a month would be closed with, and what speaks against it. Changes nothing.
    pub async fn prepare_close(&self, month: Month, now: Timestamp, terms: Terms<'_>) -> Result<Prepared, Error> {
        prepare(&self.read().await?, self.zone(), month, now, terms).await
    }

    /// Closes a month, or says why not. A month that is closed is given as it was closed.
    ///
    /// Exactly once, also when killed in between, run again or run twice at a time.
    pub async fn close(&self, request: &CloseRequest, terms: Terms<'_>) -> Result<CloseOutcome, Error> {
        for attempt in 0..TRIES {
            let snapshot = self.store.open_or_create(&CLOSINGS).await?;
            let reading = self.read().await?;
            if let Some(closing) = reading.closings().iter().find(|closing| closing.month == request.month) {
                return Ok(CloseOutcome::Done(Box::new(closing.clone())));
            }
            let prepared = prepare(&reading, self.zone(), request.month, request.now, terms).await?;
            let stops = prepared.stops(request.sign_off.as_ref());
            if !stops.is_empty() {
                return Ok(CloseOutcome::Refused(stops));
            }
            let mut closing = closing_of(request, &reading, &prepared, terms);
            closing.frozen = Some(self.freeze(&reading, &prepared, &closing).await?);
            let add = vec![NewFile::of(None, closings::batch(std::slice::from_ref(&closing)))];
            if let Outcome::Landed = self.store.commit(&snapshot, Change { add, ..Change::default() }).await? {
                return Ok(CloseOutcome::Done(Box::new(closing)));
            }
            pause(attempt).await;
        }
        Err(Error::LostRace { table: CLOSINGS.name, tries: TRIES })
    }

    /// Copies all that a month was worked out from, and what it comes to, under the id of its closing. How many rows of each table.
    async fn freeze(
        &self,
        reading: &Reading,
        prepared: &Prepared,
        closing: &Closing,
    ) -> Result<BTreeMap<Name, u64>, Error> {
        let mut counts = BTreeMap::new();
        let (month, id) = (closing.month.to_string(), closing.id.clone());
        let (during, during_month) = (closing.month.interval(self.zone()), closing.month);

        let files = reading.usage_files(during);
        let usage = reading.usage.read_with(files, None, &[], move |batches| rows::in_stretch(batches, during)).await?;
        let usage = usage.into_iter().flat_map(|(file, rows)| rows.into_iter().map(move |rows| (file.day, rows)));
        let usage: Vec<_> = usage.map(|(day, rows)| (day, frozen(&CLOSED_USAGE, &rows, &month, &id))).collect();
        counts.insert(CLOSED_USAGE.name.into(), self.add(&CLOSED_USAGE, closing, &usage).await?);

        let keys = &prepared.billed.input.attempts;
        let keys: HashSet<String> = keys.iter().map(|attempt| attempt.key.as_str().to_owned()).collect();
        let keys = Arc::new(keys);
        let mut jobs = Vec::new();
        for snapshot in std::iter::once(reading.facts.of(&JOBS)).chain(&reading.observed) {
            let keys = keys.clone();
            let read = move |batches| rows::of_attempts(batches, &keys);
            for (_, batches) in snapshot.read_with(snapshot.files.clone(), None, &[], read).await? {
                jobs.extend(batches.iter().map(|rows| (None, frozen(&CLOSED_JOBS, rows, &month, &id))));
            }
        }
        counts.insert(CLOSED_JOBS.name.into(), self.add(&CLOSED_JOBS, closing, &jobs).await?);

        let holdings = self.store.open_or_create(&HOLDINGS).await?;
        let may_overlap = |file: &&FileView| file.may_overlap("started_at", "ended_at", during.start(), during.end());
        let files: Vec<FileView> = holdings.files.iter().filter(may_overlap).cloned().collect();
        let held = holdings.read_with(files, None, &[], move |batches| rows::overlapping(batches, during)).await?;
        let held = held.into_iter().flat_map(|(_, batches)| batches);
        let held: Vec<_> = held.map(|rows| (None, frozen(&CLOSED_HOLDINGS, &rows, &month, &id))).collect();
        counts.insert(CLOSED_HOLDINGS.name.into(), self.add(&CLOSED_HOLDINGS, closing, &held).await?);

        let costs = self.store.open_or_create(&COSTS).await?;
        let listed = costs
            .read_with(costs.files.clone(), None, &[], move |batches| rows::of_month(batches, during_month))
            .await?;
        let listed = listed.into_iter().flat_map(|(_, batches)| batches);
        let listed: Vec<_> = listed.map(|rows| (None, frozen(&CLOSED_COSTS, &rows, &month, &id))).collect();
        counts.insert(CLOSED_COSTS.name.into(), self.add(&CLOSED_COSTS, closing, &listed).await?);

        let known = &prepared.billed.input.reservations;
        let reserved = [(None, frozen(&CLOSED_RESERVATIONS, &reservations::batch(known), &month, &id))];
        counts.insert(CLOSED_RESERVATIONS.name.into(), self.add(&CLOSED_RESERVATIONS, closing, &reserved).await?);

        let clusters = reading.live_nodes().await?;
        let of_cluster = clusters.values().flat_map(|(frame, nodes)| nodes.iter().map(|node| (node, *frame)));
        let nodes = [(None, frozen(&CLOSED_NODES, &framed(&of_cluster.collect::<Vec<_>>()), &month, &id))];
        counts.insert(CLOSED_NODES.name.into(), self.add(&CLOSED_NODES, closing, &nodes).await?);

        let issued = &prepared.billed.statements;
        let issued_rows = [(None, statements::batch(issued, Some(&id)))];
        counts.insert(STATEMENTS.name.into(), self.add(&STATEMENTS, closing, &issued_rows).await?);
        let entry_rows = [(None, entries::batch(issued, Some(&id)))];
        counts.insert(ENTRIES.name.into(), self.add(&ENTRIES, closing, &entry_rows).await?);
        Ok(counts)
    }

    /// Adds what a closing freezes to a table, once: its id says what its rows say. Files of closings of earlier months that never landed go: those can't
    /// land any more. How many rows it froze.
    async fn add(&self, table: &Table, closing: &Closing, frozen: &[(Option<i32>, RecordBatch)]) -> Result<u64, Error> {
        let by_day = rows::by_day(table, frozen)?;
        let count = by_day.values().map(|rows| rows.num_rows() as u64).sum();
        for attempt in 0..TRIES {
            let snapshot = self.store.open_or_create(table).await?;
            let landed = Closed::load(&self.store, self.zone()).await?.map_or_else(Vec::new, |closed| closed.closings);
            let is_dead =
                |file: &&FileView| landed.iter().any(|one| file.is_of_month(one.month)) && !file.is_of(landed.iter());
            let remove: Vec<FileView> = snapshot.files.iter().filter(is_dead).cloned().collect();
            let is_there = snapshot.files.iter().any(|file| file.is_of(std::iter::once(closing)));
            let mut add = Vec::new();
            if !is_there {
                for (day, rows) in by_day.clone() {
                    add.push(NewFile::of_closing(day, closing, || rows));
                }
            }
            if add.is_empty() && remove.is_empty() {
                return Ok(count);
            }
            if let Outcome::Landed = self.store.commit(&snapshot, Change { add, remove, ..Change::default() }).await? {
                return Ok(count);
            }
            pause(attempt).await;
        }
        Err(Error::LostRace { table: table.name, tries: TRIES })
    }
}

/// What speaks against closing a month, and what it would be closed with.
async fn prepare(
    reading: &Reading,
    zone: Zone,
    month: Month,
    now: Timestamp,
    terms: Terms<'_>,
) -> Result<Prepared, Error> {
    let billed = reading.billed(month, zone, terms).await?;
    let coverage = Coverage::of_all(&billed.input);
    let refusals = refusal::refusals(reading, zone, &billed, coverage, now).await?;
    let sha256 = sha256_of(&canonical_csv(&billed.statements));
    Ok(Prepared { billed, refusals, sha256, coverage })
}

/// SHA-256 as 64 hex digits.
pub(crate) fn sha256_of(bytes: &[u8]) -> Name {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn closing_of(request: &CloseRequest, reading: &Reading, prepared: &Prepared, terms: Terms<'_>) -> Closing {
    let mut versions: BTreeMap<String, i64> = reading.facts.marks();
    versions.insert(USAGE.name.to_owned(), reading.usage.version());
    let versions = serde_json::to_string(&versions).expect("names and numbers");
    // Of what is frozen, not of who asked when: two who close the same books freeze the same rows.
    let said = [request.month.to_string(), prepared.sha256.to_string(), versions.clone(), request.prices.clone()];
    let id = blake3::hash([&said[..], std::slice::from_ref(&request.policy)].concat().join("\n").as_bytes()).to_hex();
    Closing {
        month: request.month,
        id: id[..16].into(),
        at: request.now,
        by: request.by.clone(),
        comment: request.comment.clone(),
        sign_off: request.sign_off.clone(),
        sha256: prepared.sha256.clone(),
        entries: prepared.billed.statements.iter().map(|statement| statement.entries.len() as u64).sum(),
        amount: prepared.total(),
        coverage: prepared.coverage.proven(),
        use_coverage: prepared.coverage.seen(),
        price_version: terms.book.version().clone(),
        prices: request.prices.as_str().into(),
        policy: request.policy.as_str().into(),
        rates: prepared.billed.rates.as_ref().map(|rates| rates.to_text().into()),
        sick: beset_text(&prepared.billed.sick, &prepared.billed.wrongful).into(),
        versions: versions.into(),
        code_version: request.code_version.clone(),
        frozen: None,
        sources: prepared.billed.sources.clone(),
        zone: Some(prepared.billed.slots.billing_zone()),
    }
}

#[cfg(test)]
mod tests;
