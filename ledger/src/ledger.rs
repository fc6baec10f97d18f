//! A ledger, opened.

use crate::closed::Closed;
use crate::derive;
use crate::facts::{Facts, FreshJobs};
use crate::files::drop_aside;
use crate::meta::{Meta, Place};
use crate::reading::Reading;
use crate::store::Store;
use crate::tables::{self, observed_jobs::OBSERVED_JOBS, usage::USAGE};
use crate::{Error, intake};
use cardhour_books::attempt::{Attempt, Rejected};
use cardhour_books::output::Output;
use cardhour_books::site::{Coverage, Node, Outage, Reservation};
use cardhour_books::statement::CostItem;
use cardhour_domain::{Month, Zone};
use std::path::PathBuf;
use std::sync::Arc;

/// The books at one place.
///
/// Cheap to clone. Holds no lock and no version: each call looks at the newest books and leaves them balanced.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) place: Place,
    pub(crate) store: Store,
    meta: Meta,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// Rows that are new, or a newer version of what stood.
    pub booked: u64,
    /// Rows that the books knew already.
    pub unchanged: u64,
    /// Versions that gave way to another, from the books or from the import.
    pub superseded: u64,
    /// Rows that could not be booked; those that were in quarantine before are counted again.
    pub quarantined: u64,
}

impl Ledger {
    /// Opens a ledger at a folder. Errors: there is none.
    pub async fn open(place: &str) -> Result<Self, Error> {
        let place = Place::parse(place)?;
        let Some(meta) = place.read().await? else { return Err(Error::NoLedger { place: place.text }) };
        Ok(Self { store: Store::new(place.url.clone()), place, meta })
    }

    /// Opens a ledger, or makes one. Errors: it is there with another zone than `zone`.
    pub async fn open_or_make(place: &str, zone: Option<Zone>, simulated: bool) -> Result<Self, Error> {
        let place = Place::parse(place)?;
        let meta = match place.read().await? {
            Some(meta) => meta,
            None => place.make(Meta { zone: zone.unwrap_or(Zone::UTC), simulated }).await?,
        };
        if let Some(asked) = zone
            && asked != meta.zone
        {
            return Err(Error::ZoneFixed { ledger: meta.zone.to_string(), asked: asked.to_string() });
        }
        Ok(Self { store: Store::new(place.url.clone()), place, meta })
    }

    /// The billing zone.
    pub fn zone(&self) -> Zone {
        self.meta.zone
    }

    /// Whether everything in it is made up.
    pub fn simulated(&self) -> bool {
        self.meta.simulated
    }

    /// As it was named when opened.
    pub fn place(&self) -> &str {
        &self.place.text
    }

    /// Its folder, where it lies in one.
    pub fn folder(&self) -> Option<PathBuf> {
        self.place.folder()
    }

    /// Takes in the attempts of one export, what it covers, and the rows it could not book; then brings the books up to them.
    ///
    /// Exactly once: the same export again, in any order and cut, changes nothing (LED-4). `file` is where rejected rows came from.
    pub async fn import_jobs(
        &self,
        file: &str,
        attempts: impl IntoIterator<Item = impl Into<Arc<Attempt>>>,
        rejected: Vec<Rejected>,
        coverage: Vec<Coverage>,
    ) -> Result<Booked, Error> {
        let quarantined = intake::quarantine(&self.store, file, rejected).await?;
        let (booked, fresh) = intake::jobs(&self.store, attempts.into_iter().map(Into::into).collect()).await?;
        intake::coverage(&self.store, coverage).await?;
        derive::catch_up(&self.store, &fresh).await?;
        drop_aside(fresh);
        Ok(Booked { quarantined, ..booked })
    }

    /// Takes in nodes; a row replaces the one of that node and start of service.
    pub async fn import_nodes(&self, file: &str, nodes: Vec<Node>, rejected: Vec<Rejected>) -> Result<Booked, Error> {
        let quarantined = intake::quarantine(&self.store, file, rejected).await?;
        let booked = intake::nodes(&self.store, nodes).await?;
        derive::catch_up(&self.store, &FreshJobs::default()).await?;
        Ok(Booked { quarantined, ..booked })
    }

    /// Takes in reservations; a row replaces the one of that name and start.
    pub async fn import_reservations(
        &self,
        file: &str,
        reservations: Vec<Reservation>,
        rejected: Vec<Rejected>,
    ) -> Result<Booked, Error> {
        let quarantined = intake::quarantine(&self.store, file, rejected).await?;
        let booked = intake::reservations(&self.store, reservations).await?;
        derive::catch_up(&self.store, &FreshJobs::default()).await?;
        Ok(Booked { quarantined, ..booked })
    }

    /// Takes in outages; a row replaces the one of those nodes and that start.
    pub async fn import_outages(
        &self,
        file: &str,
        outages: Vec<Outage>,
        rejected: Vec<Rejected>,
    ) -> Result<Booked, Error> {
        let quarantined = intake::quarantine(&self.store, file, rejected).await?;
        let booked = intake::outages(&self.store, outages).await?;
        derive::catch_up(&self.store, &FreshJobs::default()).await?;
        Ok(Booked { quarantined, ..booked })
    }

    /// Takes in cost items; a row replaces the one of that month, name, owner and cards.
    pub async fn import_costs(
        &self,
        file: &str,
        costs: Vec<CostItem>,
        rejected: Vec<Rejected>,
    ) -> Result<Booked, Error> {
        let quarantined = intake::quarantine(&self.store, file, rejected).await?;
        let booked = intake::costs(&self.store, costs).await?;
        Ok(Booked { quarantined, ..booked })
    }

    /// Takes in what jobs brought forth; a row replaces the one of that job or run, unit and time.
    pub async fn import_outputs(
        &self,
        file: &str,
        outputs: Vec<Output>,
        rejected: Vec<Rejected>,
    ) -> Result<Booked, Error> {
        let quarantined = intake::quarantine(&self.store, file, rejected).await?;
        let booked = intake::outputs(&self.store, outputs).await?;
        Ok(Booked { quarantined, ..booked })
    }

    /// What jobs brought forth, in order.
    pub async fn outputs(&self) -> Result<Vec<Output>, Error> {
        intake::all_outputs(&self.store).await
    }

    /// What the site listed as costs of a month, in order.
    pub async fn costs(&self, month: Month) -> Result<Vec<CostItem>, Error> {
        let mut costs = intake::all_costs(&self.store).await?;
        costs.retain(|item| item.month == month);
        costs.sort();
        Ok(costs)
    }

    /// Makes the tables that aren't there yet, all at once. They are made when they are needed, too: this is for whoever has time before.
    pub async fn make_tables(&self) -> Result<(), Error> {
        let mut missing = Vec::new();
        for table in tables::ALL {
            if !self.store.is_there(table)? {
                missing.push(self.store.open_or_create(table));
            }
        }
        futures::future::try_join_all(missing).await.map(|_| ())
    }

    /// Takes in what nodes put into the ledger's folder, and finishes what an import that was killed left undone. Every read does this first.
    pub async fn catch_up(&self) -> Result<(), Error> {
        self.take_incoming().await?;
        self.finish_imports().await?;
        derive::catch_up(&self.store, &FreshJobs::default()).await
    }

    /// Facts and what is derived from them, of one moment: the books were made from exactly these facts.
    pub(crate) async fn consistent(&self) -> Result<Reading, Error> {
        self.take_incoming().await?;
        self.finish_imports().await?;
        for attempt in 0..derive::TRIES {
            let (facts, usage, observed) = futures::future::try_join3(
                Facts::load(&self.store),
                self.store.open_or_create(&USAGE),
                self.store.open(&OBSERVED_JOBS),
            )
            .await?;
            let mut current = derive::is_current(&facts, &usage).await?;
            if let Some(observed) = &observed {
                current &= derive::is_current(&facts, observed).await?;
            }
            if current {
                let closed = Closed::load(&self.store, self.zone()).await?;
                return Ok(Reading { facts, usage, observed, closed, store: self.store.clone() });
            }
            derive::catch_up(&self.store, &FreshJobs::default()).await?;
            derive::pause(attempt).await;
        }
        Err(Error::LostRace { table: USAGE.name, tries: derive::TRIES })
    }

    /// Every table as Delta Lake has it, by its SQL name, for a query engine to register.
    pub async fn delta_tables(&self) -> Result<Vec<(&'static str, deltalake::DeltaTable)>, Error> {
        self.catch_up().await?;
        let mut tables = self.store.tables().await?;
        if tables.iter().any(|table| tables::OF_NODES.iter().any(|of_nodes| of_nodes.name == table.name)) {
            // Once a node told something, each of its tables can be asked for, also one of which there is no row yet.
            let missing = tables::OF_NODES.iter().filter(|known| tables.iter().all(|table| table.name != known.name));
            let missing: Vec<_> = missing.copied().collect();
            tables.extend(missing);
        }
        let opened = tables.iter().map(async |table| {
            let snapshot = self.store.open_or_create(table).await?;
            Ok((table.name, snapshot.delta))
        });
        futures::future::try_join_all(opened).await
    }
}
