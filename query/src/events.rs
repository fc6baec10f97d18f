//! Tells people and programs what happened: one sender for every kind of event.
//!
//! ```text
//! what happened ─ Event ─► for each channel: not told yet? ─► deliver ─► table `alerts`
//!                          alertmanager, webhook, mail
//! ```
//!
//! An event has a name and labels, which say what it is of, and news: it began, or it is over. A channel is told each news of the same name and labels
//! once, over restarts: what was delivered is in the ledger's table `alerts`. What couldn't be delivered is tried again with the next look, a minute later; a crash between
//! delivery and table tells it a second time rather than never, under the same id.
//!
//! Start at [`tell`]. Does not: decide what is to be told (`cardhour_books::budgets::alert` does for budgets), retry within a look.

pub mod budgets;
mod channel;
pub mod isolation;
mod mail;

pub use channel::{Channel, ChannelError};
pub use mail::Mail;

use crate::books::Books;
use crate::clock::now;
use crate::config::Config;
use crate::error::{Error, chain};
use cardhour_domain::{Name, Timestamp};
use cardhour_ledger::ToldAlert;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::warn;

/// How often the service looks whether there is something to tell.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How long the end of the service waits for a look that is under way.
const LONGEST_STOP: Duration = Duration::from_secs(30);

/// Whether something began or is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    /// It began, or was reached.
    Reached,
    /// It is over.
    Over,
}

impl News {
    /// What the table `alerts` and a webhook call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::Over => "over",
        }
    }
}

/// How much it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// To be known.
    Info,
    /// To be acted on.
    Warning,
}

impl Severity {
    /// What Alertmanager's routes call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
        }
    }
}

/// Something that somebody has to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name, one for each kind: `CardhourBudget`.
    pub name: &'static str,
    /// What it is of. With its name they are what makes two events the same.
    pub labels: BTreeMap<String, String>,
    /// Whether it began or is over.
    pub news: News,
    /// How much it matters.
    pub severity: Severity,
    /// When it was found.
    pub at: Timestamp,
    /// When it is over by itself; none where only we can say.
    pub ends_at: Option<Timestamp>,
    /// What happened, in a sentence.
    pub summary: String,
    /// What comes of it, or what to do, in a sentence.
    pub description: Option<String>,
    /// The user it is of, who is to be told by mail; none: those of the config.
    pub user: Option<String>,
}

impl Event {
    /// Its labels as the table `alerts` has them: lines of `NAME=VALUE`, by name; a line's end in a value is a blank.
    pub fn label_text(&self) -> Name {
        let lines = self.labels.iter().map(|(name, value)| format!("{name}={}", value.replace(['\n', '\r'], " ")));
        lines.collect::<Vec<_>>().join("\n").into()
    }

    /// What tells it from every other, the same when it comes again: 32 hex digits.
    pub fn id(&self) -> String {
        let text = format!("{}\n{}\n{}", self.name, self.label_text(), self.news.name());
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }
}

/// Labels from their text in the table `alerts`.
pub fn labels_of(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What came of a look.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Messages that were delivered.
    pub told: u64,
    /// Channels that weren't reached, each with the reason.
    pub failed: Vec<String>,
}

/// Delivers what a channel isn't told yet, and remembers it. `events` says what is due to one channel, of what it was told before.
///
/// Errors: the ledger's own. A channel that can't be reached is no error: it is in [`Outcome::failed`], and nothing of it is remembered.
pub async fn tell(
    books: &Books,
    channels: &[Channel],
    events: impl Fn(&[&ToldAlert]) -> Vec<Event>,
) -> Result<Outcome, Error> {
    let told = books.ledger().told_alerts().await?;
    let mut outcome = Outcome::default();
    for channel in channels {
        let before: Vec<&ToldAlert> = told.iter().filter(|told| *told.channel == *channel.name()).collect();
        let due = events(&before);
        if due.is_empty() {
            continue;
        }
        let (delivered, failed) = channel.deliver(&due).await;
        outcome.failed.extend(failed.iter().map(|error| format!("{}: {}", channel.name(), chain(error))));
        let rows: Vec<ToldAlert> = delivered.into_iter().map(|event| row(channel, event)).collect();
        books.ledger().add_told_alerts(&rows).await?;
        outcome.told += rows.len() as u64;
    }
    Ok(outcome)
}

fn row(channel: &Channel, event: &Event) -> ToldAlert {
    ToldAlert {
        told_at: now(),
        channel: channel.name().into(),
        alert: event.name.into(),
        labels: event.label_text(),
        news: event.news.name().into(),
        summary: event.summary.as_str().into(),
    }
}

/// The service's own look, each minute, until it is told to stop.
#[derive(Debug)]
pub struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Watch {
    /// Starts, where the config names a channel. Called where tokio runs. Errors: a channel that can't be as the config says it.
    pub fn start(books: Books, config: &Config) -> Result<Option<Self>, Error> {
        let channels = Channel::of(config)?;
        if channels.is_empty() {
            return Ok(None);
        }
        let (stop, stopped) = oneshot::channel();
        Ok(Some(Self { stop, task: tokio::spawn(watch(books, channels, stopped)) }))
    }

    /// Ends it. A look that is under way is ended first, so that what was delivered is remembered.
    pub async fn stop(self) {
        // It is gone already where looking came to an end by a defect of ours.
        _ = self.stop.send(());
        _ = tokio::time::timeout(LONGEST_STOP, self.task).await;
    }
}

async fn watch(books: Books, channels: Vec<Channel>, mut stopped: oneshot::Receiver<()>) {
    let mut each = tokio::time::interval(LOOK_EVERY);
    each.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut looked = None;
    loop {
        tokio::select! {
            // The other end gone is a stop, too.
            _ = &mut stopped => return,
            _ = each.tick() => {}
        }
        match budgets::look_if_changed(&books, &channels, now(), &mut looked).await {
            Ok(outcome) => {
                for reason in outcome.failed {
                    warn!(reason, "alerts not delivered; tried again in a minute");
                }
            }
            Err(error) => warn!(error = chain(&error), "no look at the budgets; tried again in a minute"),
        }
        match isolation::look(&books, &channels, now()).await {
            Ok(outcome) => {
                for reason in outcome.failed {
                    warn!(reason, "alerts not delivered; tried again in a minute");
                }
            }
            Err(error) => warn!(error = chain(&error), "no look at how cards are shared; tried again in a minute"),
        }
    }
}

#[cfg(test)]
mod tests;
