//! Warnings, notices and alerts of idle reclaim, by the one sender; and what became of warnings.
//!
//! A warning counts as delivered once every channel of the config took it: its grace begins with the last of them. Where one can't be reached it isn't, and
//! nothing is taken.

use crate::books::Books;
use crate::error::Error;
use crate::events::{self, Channel, Event, News, Severity};
use cardhour_books::report::local;
use cardhour_decisions::kept::KeptLease;
use cardhour_decisions::round::{Matter, NoticeOutcome, OperatorAlert, RoundOutput, Warning};
use cardhour_domain::{AttemptKey, Name, Timestamp, Zone};
use cardhour_ledger::ToldAlert;
use std::collections::BTreeMap;

/// The event of a warning.
const IDLE: &str = "CardhourIdle";
/// The event of something else that an owner should know of an idle job.
const NOTICE: &str = "CardhourIdleNotice";
/// The event of what the operator has to know.
const RECLAIM: &str = "CardhourReclaim";

/// A warning is over for Alertmanager after so long. Unit: milliseconds.
const HOLDS_MS: i64 = 24 * 3_600_000;

/// What is remembered of warnings that weren't delivered: tables have only those that were.
#[derive(Debug, Default)]
pub struct Warned {
    failed: BTreeMap<(AttemptKey, u32), Name>,
}

impl Warned {
    /// Tells everybody what they weren't told yet. Comes back with what wasn't delivered, and why. Errors: the ledger's own.
    pub async fn tell(
        &mut self,
        books: &Books,
        channels: &[Channel],
        output: &RoundOutput,
        at: Timestamp,
    ) -> Result<Vec<String>, Error> {
        let zone = books.zone();
        let owners = output.warnings.iter().map(|warning| of_owner(warning, at));
        let operators = output.alerts.iter().map(|alert| of_operator(alert, at, zone));
        let all: Vec<Event> = owners.chain(operators).collect();
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let is_known = |event: &Event, before: &[&ToldAlert]| {
            let labels = event.label_text();
            before
                .iter()
                .any(|told| *told.alert == *event.name && told.labels == labels && *told.news == *event.news.name())
        };
        let told = events::tell(books, channels, |before| {
            all.iter().filter(|event| !is_known(event, before)).cloned().collect()
        })
        .await?;
        let why: Option<Name> = match (&told.failed[..], channels) {
            (_, []) => Some("no channel of the config could deliver it".into()),
            ([], _) => None,
            (failed, _) => Some(failed.join("; ").into()),
        };
        for warning in &output.warnings {
            let Matter::Warning { notice } = warning.matter else { continue };
            let key = (warning.job.clone(), notice);
            match &why {
                Some(why) => _ = self.failed.insert(key, why.clone()),
                None => _ = self.failed.remove(&key),
            }
        }
        Ok(told.failed)
    }

    /// What became of the last warning of each job that has a lease. Errors: the ledger's own.
    pub async fn outcomes(
        &self,
        books: &Books,
        channels: &[Channel],
        kept: &[KeptLease],
    ) -> Result<Vec<NoticeOutcome>, Error> {
        let told = books.ledger().told_alerts().await?;
        let mut by_warning: BTreeMap<(AttemptKey, u32), BTreeMap<Name, Timestamp>> = BTreeMap::new();
        for row in told.iter().filter(|row| &*row.alert == IDLE) {
            let labels = events::labels_of(&row.labels);
            let notice = labels.get("notice").and_then(|notice| notice.parse().ok());
            if let Some((attempt, notice)) = labels.get("attempt").zip(notice) {
                let of = by_warning.entry((AttemptKey::from_stored(attempt), notice)).or_default();
                of.entry(row.channel.clone()).or_insert(row.told_at);
            }
        }
        let outcome = |lease: &KeptLease| {
            let of_job = (lease.attempt_key.clone(), 0)..=(lease.attempt_key.clone(), u32::MAX);
            let delivered = by_warning.range(of_job.clone()).rev().find_map(|((job, notice), by_channel)| {
                let is_whole = channels.iter().all(|channel| by_channel.contains_key(channel.name()));
                let last = by_channel.values().max().copied().filter(|_| is_whole && !channels.is_empty())?;
                Some(NoticeOutcome { job: job.clone(), notice: *notice, delivered: Ok(last) })
            });
            let failed = self.failed.range(of_job).next_back().map(|((job, notice), why)| NoticeOutcome {
                job: job.clone(),
                notice: *notice,
                delivered: Err(why.clone()),
            });
            // The last warning counts, and that it arrived more than that it once didn't.
            [failed, delivered].into_iter().flatten().max_by_key(|outcome| (outcome.notice, outcome.delivered.is_ok()))
        };
        Ok(kept.iter().filter_map(outcome).collect())
    }
}

fn of_owner(warning: &Warning, at: Timestamp) -> Event {
    let text = |name: &Option<Name>| name.as_deref().map(str::to_owned);
    let mut labels = BTreeMap::from([("attempt".to_owned(), warning.job.to_string())]);
    let owner = [("org", text(&warning.org)), ("project", text(&warning.project)), ("user", text(&warning.user))];
    labels.extend(owner.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let (name, severity, description) = match warning.matter {
        Matter::Warning { notice } => {
            labels.insert("notice".to_owned(), notice.to_string());
            let how = format!("For more time: cardhour decisions extend {} --for 2h", shell_word(warning.job.job()));
            (IDLE, Severity::Warning, Some(how))
        }
        Matter::Notice => {
            labels.insert("decision".to_owned(), warning.decision.to_string());
            (NOTICE, Severity::Info, None)
        }
    };
    Event {
        name,
        labels,
        news: News::Reached,
        severity,
        at,
        ends_at: at.checked_add_ms(HOLDS_MS),
        summary: warning.words.to_string(),
        description,
        user: text(&warning.user),
    }
}

/// Once a day for each thing: one that lasts is told of again.
fn of_operator(alert: &OperatorAlert, at: Timestamp, zone: Zone) -> Event {
    let day = local(zone, at).to_string().chars().take(10).collect();
    let mut labels = BTreeMap::from([("alert".to_owned(), alert.alert.to_string()), ("day".to_owned(), day)]);
    labels.extend(alert.cluster.iter().map(|cluster| ("cluster".to_owned(), cluster.to_string())));
    labels.extend(alert.job.iter().map(|job| ("attempt".to_owned(), job.to_string())));
    Event {
        name: RECLAIM,
        labels,
        news: News::Reached,
        severity: Severity::Warning,
        at,
        ends_at: at.checked_add_ms(HOLDS_MS),
        summary: alert.words.to_string(),
        description: None,
        user: None,
    }
}

/// A word that a shell takes as it is.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
