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
    failed: BTreeMap<AttemptKey, Failed>,
}

/// The last warning of a job that wasn't delivered.
#[derive(Debug)]
struct Failed {
    decision: Name,
    notice: u32,
    why: Name,
}

/// A warning that was delivered, as far as it was.
#[derive(Debug)]
struct Told {
    notice: u32,
    by_channel: BTreeMap<Name, Timestamp>,
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
            match &why {
                Some(why) => {
                    let failed = Failed { decision: warning.decision.clone(), notice, why: why.clone() };
                    self.failed.insert(warning.job.clone(), failed);
                }
                None => _ = self.failed.remove(&warning.job),
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
        // By decision: a lease that began anew counts its warnings from one again, and what was told of the old one is no warning of the new.
        let mut by_job: BTreeMap<AttemptKey, BTreeMap<Name, Told>> = BTreeMap::new();
        for row in told.iter().filter(|row| &*row.alert == IDLE) {
            let labels = events::labels_of(&row.labels);
            let notice = labels.get("notice").and_then(|notice| notice.parse().ok());
            if let (Some(attempt), Some(decision), Some(notice)) =
                (labels.get("attempt"), labels.get("decision"), notice)
            {
                let of_job = by_job.entry(AttemptKey::from_stored(attempt)).or_default();
                let of = of_job
                    .entry(decision.as_str().into())
                    .or_insert_with(|| Told { notice, by_channel: BTreeMap::new() });
                of.by_channel.insert(row.channel.clone(), row.told_at);
            }
        }
        let outcome = |lease: &KeptLease| {
            let job = &lease.attempt_key;
            let last_told = |told: &Told| told.by_channel.values().max().copied();
            let newest = by_job.get(job).and_then(|of_job| of_job.iter().max_by_key(|(_, told)| last_told(told)));
            let delivered = newest.and_then(|(decision, told)| {
                let is_whole = channels.iter().all(|channel| told.by_channel.contains_key(channel.name()));
                let last = last_told(told).filter(|_| is_whole && !channels.is_empty())?;
                Some((decision, NoticeOutcome { job: job.clone(), notice: told.notice, delivered: Ok(last) }))
            });
            match (self.failed.get(job), delivered) {
                (Some(failed), Some((decision, outcome))) if failed.decision == *decision => Some(outcome),
                (Some(Failed { notice, why, .. }), _) => {
                    Some(NoticeOutcome { job: job.clone(), notice: *notice, delivered: Err(why.clone()) })
                }
                (None, delivered) => delivered.map(|(_, outcome)| outcome),
            }
        };
        Ok(kept.iter().filter_map(outcome).collect())
    }
}

fn of_owner(warning: &Warning, at: Timestamp) -> Event {
    let text = |name: &Option<Name>| name.as_deref().map(str::to_owned);
    let mut labels = BTreeMap::from([
        ("attempt".to_owned(), warning.job.to_string()),
        ("decision".to_owned(), warning.decision.to_string()),
    ]);
    let owner = [("org", text(&warning.org)), ("project", text(&warning.project)), ("user", text(&warning.user))];
    labels.extend(owner.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let (name, severity, description) = match warning.matter {
        Matter::Warning { notice } => {
            labels.insert("notice".to_owned(), notice.to_string());
            let how = format!("For more time: cardhour decisions extend {} --for 2h", shell_word(warning.job.job()));
            (IDLE, Severity::Warning, Some(how))
        }
        Matter::Notice => (NOTICE, Severity::Info, None),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn row(channel: &str, decision: &str, minute: i64) -> ToldAlert {
        ToldAlert {
            told_at: Timestamp::from_unix_s(1_775_000_000 + 60 * minute),
            channel: channel.into(),
            alert: IDLE.into(),
            labels: format!("attempt=lab/7/0\ndecision={decision}\nnotice=1\nuser=ada").into(),
            news: News::Reached.name().into(),
            summary: "idle".into(),
        }
    }

    /// Two channels. By hand: a warning counts from the minute in which the last of them took it; one of a lease that was called off is none of the next.
    #[tokio::test]
    async fn a_warning_is_delivered_when_every_channel_took_it_and_never_by_one_of_an_earlier_lease() {
        let folder = tempfile::tempdir().unwrap();
        let sql = Config::parse("", Path::new("config.toml")).unwrap().sql;
        let books = Books::open_or_make(folder.path().to_str().unwrap(), None, false, sql).await.unwrap();
        let text = "[alerts]\nalertmanager = \"http://127.0.0.1:9\"\nwebhook = \"http://127.0.0.1:9/hook\"\n";
        let channels = Channel::of(&Config::parse(text, Path::new("config.toml")).unwrap()).unwrap();
        let lease = KeptLease {
            attempt_key: AttemptKey::new("lab", "7", "0"),
            at: Timestamp::from_unix_s(1_775_000_000),
            phase: "notified".into(),
            state: "{}".into(),
        };
        let leases = [lease];
        let told_at = async || {
            let outcomes = Warned::default().outcomes(&books, &channels, &leases).await.unwrap();
            outcomes.iter().map(|outcome| outcome.delivered.clone().unwrap().unix_ms() / 60_000).collect::<Vec<_>>()
        };
        let minute = |minute: i64| (1_775_000_000 + 60 * minute) / 60;
        let add = async |row: ToldAlert| books.ledger().add_told_alerts(&[row]).await.unwrap();
        add(row("alertmanager", "old", 0)).await;
        assert_eq!(told_at().await, [0; 0], "the webhook hasn't taken it");
        add(row("webhook", "old", 3)).await;
        assert_eq!(told_at().await, [minute(3)]);
        add(row("webhook", "new", 50)).await;
        assert_eq!(told_at().await, [0; 0], "of the new warning only one has");
        add(row("alertmanager", "new", 52)).await;
        assert_eq!(told_at().await, [minute(52)]);
    }
}
