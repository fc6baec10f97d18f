//! The service's own look at its deliveries, each minute.
//!
//! What failed is tried again after a minute, then after two, four and so on, at most an hour; a reason is logged when it is new. A restart tries at
//! once.

use super::{Deliverer, Mode, Standing, State};
use crate::books::Books;
use crate::clock::now;
use crate::error::chain;
use cardhour_books::delivery::Waits;
use cardhour_domain::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::{info, warn};

/// How often the service looks whether something is due.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// After how many looks a delivery that fails again and again is tried once more, at most: an hour.
const LONGEST_PAUSE: u32 = 60;
/// How long the end of the service waits for a look that is under way.
const LONGEST_STOP: Duration = Duration::from_secs(30);

/// What became of deliveries, for Prometheus. Labels: the names in the config, and a closed list.
#[derive(Clone, Debug, Default)]
pub struct DeliveryCounts {
    terms: Family<Outcome, Counter>,
    owed: Family<Owed, Gauge>,
    last: Family<OfDelivery, Gauge<f64, std::sync::atomic::AtomicU64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    delivery: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Owed {
    delivery: String,
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDelivery {
    delivery: String,
}

impl DeliveryCounts {
    /// What a look came to.
    fn count(&self, deliverer: &Deliverer, standings: &[Standing], at: Timestamp) {
        let delivery = deliverer.name();
        let (mut failed, mut closing, mut books) = (0, 0, 0);
        for standing in standings {
            match &standing.state {
                State::Delivered(..) => {
                    self.tried(delivery, "delivered");
                    let of = OfDelivery { delivery: delivery.to_owned() };
                    self.last.get_or_create(&of).set(at.unix_ms() as f64 / 1000.0);
                }
                State::Failed(..) => {
                    self.tried(delivery, "failed");
                    failed += 1;
                }
                // Its place wasn't reached for an older one.
                State::Due(_) => failed += 1,
                State::Waiting(Waits::ForClosing) => closing += 1,
                State::Waiting(Waits::ForBooks) => books += 1,
                State::GivenUp | State::Next(_) => {}
            }
        }
        for (why, owed) in [("failed", failed), ("closing", closing), ("books", books)] {
            self.owed.get_or_create(&Owed { delivery: delivery.to_owned(), why }).set(owed);
        }
    }

    fn tried(&self, delivery: &str, outcome: &'static str) {
        self.terms.get_or_create(&Outcome { delivery: delivery.to_owned(), outcome }).inc();
    }

    /// A look that came to nothing.
    fn count_failed(&self, deliverer: &Deliverer) {
        self.tried(deliverer.name(), "failed");
    }

    /// Two terms delivered, at `at` the last, and one that waits for its closing.
    #[cfg(test)]
    pub(crate) fn of_finance(at: Timestamp) -> Self {
        let counts = Self::default();
        let delivery = || "finance".to_owned();
        counts.tried("finance", "delivered");
        counts.tried("finance", "delivered");
        counts.owed.get_or_create(&Owed { delivery: delivery(), why: "closing" }).set(1);
        counts.last.get_or_create(&OfDelivery { delivery: delivery() }).set(at.unix_ms() as f64 / 1000.0);
        counts
    }

    /// Names, units and help of all of them.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Weeks and months that were delivered by schedule, and tries that failed";
        registry.register("cardhour_deliveries", help, self.terms.clone());
        let help = "Weeks and months that are due by the clock and not delivered, by what keeps them";
        registry.register("cardhour_deliveries_owed", help, self.owed.clone());
        let help = "When something was delivered last, since the service started";
        registry.register_with_unit("cardhour_delivery_last_timestamp", help, Unit::Seconds, self.last.clone());
    }
}

/// The look, until it is told to stop.
#[derive(Debug)]
pub struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Starts, where there is something to deliver. Called where tokio runs.
    pub fn start(books: Books, deliverers: Vec<Deliverer>, counts: DeliveryCounts) -> Option<Self> {
        if deliverers.is_empty() {
            return None;
        }
        let (stop, stopped) = oneshot::channel();
        Some(Self { stop, task: tokio::spawn(watch(books, deliverers, counts, stopped)) })
    }

    /// Ends it. A look that is under way is ended first, so that what was delivered is remembered.
    pub async fn stop(self) {
        // It is gone already where looking came to an end by a defect of ours.
        _ = self.stop.send(());
        _ = tokio::time::timeout(LONGEST_STOP, self.task).await;
    }
}

/// What is remembered of a delivery from look to look.
#[derive(Debug, Default)]
struct Memory {
    /// Looks in a row that failed.
    failed: u32,
    /// Looks to pass over before the next try.
    pause: u32,
    /// What was logged of why it fails.
    told: String,
    /// How many terms were logged as given up.
    given_up: usize,
}

async fn watch(books: Books, deliverers: Vec<Deliverer>, counts: DeliveryCounts, mut stopped: oneshot::Receiver<()>) {
    let mut memories: Vec<Memory> = deliverers.iter().map(|_| Memory::default()).collect();
    let mut each = tokio::time::interval(LOOK_EVERY);
    each.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The other end gone is a stop, too.
            _ = &mut stopped => return,
            _ = each.tick() => {}
        }
        for (deliverer, memory) in deliverers.iter().zip(&mut memories) {
            if memory.is_pausing() {
                continue;
            }
            let at = now();
            let trouble = match deliverer.look(&books, at, Mode::Deliver).await {
                Ok(standings) => {
                    counts.count(deliverer, &standings, at);
                    memory.given_up(deliverer, &standings);
                    told(deliverer, &standings)
                }
                Err(error) => {
                    counts.count_failed(deliverer);
                    Some(chain(&error))
                }
            };
            memory.after(deliverer, trouble);
        }
    }
}

/// Logs what was delivered. Comes back with what wasn't, in words; none where nothing failed.
fn told(deliverer: &Deliverer, standings: &[Standing]) -> Option<String> {
    let mut failed = Vec::new();
    for Standing { term, state } in standings {
        match state {
            State::Delivered(edition, files) => {
                let (delivery, to) = (deliverer.name(), deliverer.place());
                info!(delivery, %term, edition = edition.name(), files = files.len(), %to, "delivered");
            }
            State::Failed(..) => failed.push(format!("{term}: {}", state.words())),
            State::Due(_) | State::Waiting(_) | State::GivenUp | State::Next(_) => {}
        }
    }
    (!failed.is_empty()).then(|| failed.join("; "))
}

impl Memory {
    fn is_pausing(&mut self) -> bool {
        let pauses = self.pause > 0;
        self.pause = self.pause.saturating_sub(1);
        pauses
    }

    /// Logs, once, what is so old that it isn't made up.
    fn given_up(&mut self, deliverer: &Deliverer, standings: &[Standing]) {
        let given_up: Vec<String> = standings
            .iter()
            .filter(|standing| standing.state == State::GivenUp)
            .map(|standing| standing.term.to_string())
            .collect();
        if given_up.len() > self.given_up {
            let terms = given_up.join(" ");
            warn!(delivery = deliverer.name(), terms, "missed too long ago and not made up; export them by hand");
        }
        self.given_up = given_up.len();
    }

    fn after(&mut self, deliverer: &Deliverer, trouble: Option<String>) {
        match trouble {
            None => {
                if !self.told.is_empty() {
                    info!(delivery = deliverer.name(), "nothing stands in the way of it any more");
                }
                *self = Self { given_up: self.given_up, ..Self::default() };
            }
            Some(trouble) => {
                self.pause = (1u32 << self.failed.min(16)).min(LONGEST_PAUSE) - 1;
                self.failed += 1;
                if self.told != trouble {
                    warn!(delivery = deliverer.name(), reason = trouble, "not delivered");
                    self.told = trouble;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, DeliveryConfig};
    use std::path::Path;

    fn deliverer() -> Deliverer {
        let text =
            "ledger = \"/srv/books\"\n[[delivery]]\nname = \"finance\"\nwhat = \"statement\"\nto = \"/srv/finance\"\n";
        let config = Config::parse(text, Path::new("config.toml")).unwrap();
        let [DeliveryConfig { .. }] = &config.deliveries[..] else { panic!("one") };
        Deliverer::all(&config).unwrap().remove(0)
    }

    /// By hand: tries at looks 0, 1, 3, 7, 15, 31, 63, then each sixtieth.
    #[test]
    fn what_fails_is_tried_again_ever_more_rarely_but_each_hour() {
        let (deliverer, mut memory) = (deliverer(), Memory::default());
        let mut tried = Vec::new();
        for look in 0..200 {
            if !memory.is_pausing() {
                tried.push(look);
                memory.after(&deliverer, Some("no answer".to_owned()));
            }
        }
        assert_eq!(tried, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        memory.after(&deliverer, None);
        assert!(!memory.is_pausing(), "what went well is looked at each minute");
    }
}
