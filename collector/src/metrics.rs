//! What Prometheus is told: a page that is made of what the last tick read.
//!
//! A scrape calls nothing in the driver and waits for nobody: the tick's thread hangs up a [`Snapshot`] when it is done, and a page is written from
//! the one that hangs there. What is older than three ticks is no longer shown as if it were now: its series end, and the collector's own say how
//! old it is. A value that is missing is no series (LED-3).
//!
//! Start at [`Board::page`]; then `devices` for cards and instances, `holders` for who has them, `own` for the collector itself, `dcgm` for
//! the names of DCGM's exporter. Labels are bounded: UUIDs, names of models and profiles, closed lists. Who holds a device is a series of its own,
//! so that the device's go on when the holder changes.

mod capabilities;
mod dcgm;
mod devices;
mod family;
mod holders;
mod own;
pub mod server;
mod snapshot;
mod teller;

pub use dcgm::DcgmNames;
pub use snapshot::Snapshot;
pub use teller::Teller;

use crate::delivery::{Delivered, DeliveryCounters};
use crate::probe::Heartbeat;
use crate::probe::nvml::DriverStatus;
use crate::run::HUNG_AFTER;
use cardhour_domain::{Name, Timestamp};
use family::Families;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// After so many steps without a tick, what the last one read is no longer shown.
const FRESH_STEPS: u32 = 3;

/// Where snapshots hang, and what pages are made with.
#[derive(Debug)]
pub struct Board {
    about: About,
    heartbeat: Arc<Heartbeat>,
    status: Arc<Mutex<DriverStatus>>,
    snapshot: Mutex<Option<Arc<Snapshot>>>,
    delivery: Mutex<DeliveryTally>,
}

/// What doesn't change while the collector runs.
#[derive(Clone, Debug)]
pub struct About {
    /// This node.
    pub node: Name,
    /// Its cluster.
    pub cluster: Name,
    /// The step of ticks.
    pub step: Duration,
    /// All that may lie in the spool. Unit: bytes.
    pub spool_bytes: u64,
    /// When the collector started.
    pub started_at: Timestamp,
    /// The names of DCGM's exporter beside our own, if they are wanted.
    pub dcgm: Option<DcgmNames>,
}

/// What came of deliveries so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryTally {
    pub counters: DeliveryCounters,
    /// Runs that ended in trouble, by its name.
    pub troubles: BTreeMap<&'static str, u64>,
    /// When all that waited was gone, last.
    pub emptied_at: Option<Timestamp>,
}

/// In which form a page is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's own text, 0.0.4: what people and `promtool check metrics` read.
    Text,
}

impl Form {
    /// As the head of an answer says it.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => prometheus_text::CONTENT_TYPE,
        }
    }
}

impl Board {
    /// Nothing hangs there yet.
    pub fn new(about: About, heartbeat: Arc<Heartbeat>, status: Arc<Mutex<DriverStatus>>) -> Self {
        Self { about, heartbeat, status, snapshot: Mutex::default(), delivery: Mutex::default() }
    }

    /// Hangs up what a tick left.
    pub(crate) fn hang(&self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        let before = lock(&self.snapshot).replace(snapshot);
        // Let go of outside of the lock.
        drop(before);
    }

    /// Notes what came of a run of deliveries.
    pub fn delivered(&self, run: &Delivered, counters: &DeliveryCounters, now: Timestamp) {
        let mut tally = lock(&self.delivery);
        tally.counters = *counters;
        if let Some(trouble) = &run.trouble {
            *tally.troubles.entry(trouble.name()).or_default() += 1;
        }
        if run.left == 0 {
            tally.emptied_at = Some(now);
        }
    }

    /// The form of a page for who accepts this. With DCGM's names it is always the text: OpenMetrics has no counter whose name does not end in
    /// `_total`, as theirs don't.
    pub fn form(&self, accept: &str) -> Form {
        if self.about.dcgm.is_none() && accept.contains("application/openmetrics-text") {
            Form::OpenMetrics
        } else {
            Form::Text
        }
    }

    /// The page as it is now.
    pub fn page(self: &Arc<Self>, form: Form) -> String {
        let snapshot = lock(&self.snapshot).clone();
        let fresh = snapshot.clone().filter(|snapshot| self.is_fresh(snapshot));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Page { board: self.clone(), snapshot, fresh: fresh.clone() }));
        let mut page = String::new();
        // A String takes whatever it is given.
        let _ = match form {
            Form::OpenMetrics => text::encode(&mut page, &registry),
            Form::Text => prometheus_text::encode(&mut page, &registry),
        };
        if let (Form::Text, Some(names), Some(snapshot)) = (form, &self.about.dcgm, &fresh) {
            dcgm::write(&mut page, snapshot, &self.about.node, names);
        }
        page
    }

    /// Whether ticks come, and calls into the driver come back: for who looks after the collector's health. True until the first tick should have come.
    pub fn is_alive(&self) -> bool {
        let is_moving = self.heartbeat.hung((self.about.step * FRESH_STEPS).min(HUNG_AFTER)).is_none();
        is_moving && lock(&self.snapshot).as_ref().is_none_or(|snapshot| self.is_fresh(snapshot))
    }

    fn is_fresh(&self, snapshot: &Snapshot) -> bool {
        snapshot.hung_up_at.elapsed() <= self.about.step * FRESH_STEPS
    }
}

/// A page while it is written.
#[derive(Debug)]
struct Page {
    board: Arc<Board>,
    /// What hangs on the board, however old.
    snapshot: Option<Arc<Snapshot>>,
    /// The same, while it is not too old to be shown as the present.
    fresh: Option<Arc<Snapshot>>,
}

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut families = Families::new(encoder);
        if let Some(snapshot) = &self.fresh {
            devices::write(&mut families, snapshot, &self.board.about)?;
            holders::write(&mut families, snapshot, &self.board.about)?;
        }
        let delivery = lock(&self.board.delivery).clone();
        let driver = lock(&self.board.status).clone();
        let own = own::Own {
            about: &self.board.about,
            calls: self.board.heartbeat.calls(),
            call: self.board.heartbeat.hung(Duration::ZERO),
            driver: &driver,
            delivery: &delivery,
            snapshot: self.snapshot.as_deref(),
            is_fresh: self.fresh.is_some(),
        };
        own.write(&mut families)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Held for a few instructions that can't panic.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
