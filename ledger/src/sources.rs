//! What the entries of months are made from beside their usage, and all of it as one digest a month: a closed month whose digest is what it was when the last
//! month was closed has no new correction, and need not be worked out again.
//!
//! Start at [`Sources::digest`]. Does not: decide what follows from a digest that differs (that is `billed.rs`).

use crate::decisions::wrongful_reclaims;
use crate::intake::all_costs;
use crate::store::FileView;
use crate::tables::jobs::JOBS;
use crate::{Error, Reading};
use cardhour_books::report::ReportAttempt;
use cardhour_books::site::Reservation;
use cardhour_books::statement::CostItem;
use cardhour_domain::{AttemptKey, Interval, Month, Name, NodeEvent, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// What is read once for any number of months.
pub(crate) struct Sources<'a> {
    reading: &'a Reading,
    zone: Zone,
    costs: Vec<CostItem>,
    events: Vec<NodeEvent>,
    reservations: Vec<Reservation>,
    /// Attempts that only nodes know of. Their table is written anew by each derivation, so that names of its files say nothing.
    observed: Vec<ReportAttempt>,
    wrongful: BTreeMap<AttemptKey, Name>,
}

impl<'a> Sources<'a> {
    /// Reads what there is of all months.
    pub(crate) async fn load(reading: &'a Reading, zone: Zone) -> Result<Self, Error> {
        let (costs, events) = (all_costs(&reading.store).await?, reading.facts.events().await?);
        let (reservations, observed) = (reading.live_reservations().await?, reading.observed_attempts().await?);
        let wrongful = wrongful_reclaims(&reading.store).await?;
        Ok(Self { reading, zone, costs, events, reservations, observed, wrongful })
    }

    /// What is listed as costs of a month, in order.
    pub(crate) fn costs(&self, month: Month) -> Vec<CostItem> {
        let mut costs: Vec<CostItem> = self.costs.iter().filter(|item| item.month == month).cloned().collect();
        costs.sort();
        costs
    }

    /// The attempts that held a card in a month when it met a fatal fault of its own.
    pub(crate) async fn sick(&self, month: Month) -> Result<BTreeSet<AttemptKey>, Error> {
        self.reading.sick(&self.events, month.interval(self.zone)).await
    }

    /// The attempts whose cards were wrongly taken, as somebody marked, each with the decision that took them.
    pub(crate) fn wrongful(&self) -> &BTreeMap<AttemptKey, Name> {
        &self.wrongful
    }

    /// A digest of all that a month's entries are made from, but for price book and policy. 32 hex digits.
    ///
    /// Of rows or of the names of the files that they lie in, which are never written twice. So the same digest means the same entries; another may mean
    /// that files were merged. The version of cardhour is in it: another may come to another result.
    pub(crate) async fn digest(&self, month: Month) -> Result<Name, Error> {
        let during = month.interval(self.zone);
        let mut said = vec![env!("CARGO_PKG_VERSION").to_owned()];
        said.extend(names(self.reading.usage_files(during)));
        said.extend(names(self.reading.facts.of(&JOBS).files_of_attempts(during)));
        let of_time = |held: Option<Interval>| held.is_some_and(|held| held.overlap(during).is_some());
        let observed = self.observed.iter().filter(|attempt| of_time(attempt.held));
        said.extend(observed.map(|attempt| format!("{attempt:?}")));
        let reserved = self.reservations.iter().filter(|reservation| of_time(Some(reservation.during)));
        let mut reserved: Vec<String> = reserved.map(|reservation| format!("{reservation:?}")).collect();
        reserved.sort();
        said.extend(reserved);
        said.extend(self.costs(month).iter().map(|item| format!("{item:?}")));
        said.extend(self.sick(month).await?.iter().map(|key| key.as_str().to_owned()));
        // Of any month: whoever marks one has all closed months looked at again, once.
        said.extend(self.wrongful.iter().map(|(key, decision)| format!("{} {decision}", key.as_str())));
        let digest = blake3::hash(said.join("\n").as_bytes()).to_hex();
        Ok(digest[..32].into())
    }
}

fn names(files: Vec<FileView>) -> Vec<String> {
    let mut names: Vec<String> = files.into_iter().map(|file| file.path).collect();
    names.sort();
    names
}
