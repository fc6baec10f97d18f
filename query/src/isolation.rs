//! How cards were shared, and what breaks the rule of who may: the audit meets the ledger, day by day, so that a year takes no more memory than a day.
//!
//! Start at [`Books::isolation`]. Does not: judge (`cardhour_decisions::isolation` does), tell anybody (`events/isolation.rs` does).

use crate::books::Books;
use crate::error::Error;
use crate::request::IsolationRequest;
use cardhour_books::report::local;
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_decisions::isolation::{Concerned, Incident, Isolation, IsolationInput, isolation};
use cardhour_domain::{BUCKET_MS, Interval, Name, Timestamp, Zone};
use cardhour_ledger::Reading;
use cardhour_scheduler_core::sharing::Severity;

/// A holder's next row, an end or an Xid may come so much later than the time that is looked at. Unit: milliseconds.
const BEYOND_MS: i64 = 30 * 60_000;
const DAY_MS: i64 = 24 * 3_600_000;

/// What was found, for people and programs.
#[derive(Clone, Debug)]
pub struct Audited {
    /// A row a violation or advice.
    pub table: Table,
    /// Whether the rule is broken somewhere.
    pub has_violations: bool,
}

impl Books {
    /// What breaks the sharing rule. Errors: a span that holds nothing, the ledger's own.
    pub async fn isolation(&self, request: &IsolationRequest) -> Result<Audited, Error> {
        let reading = self.ledger().read().await?;
        let zone = request.zone.unwrap_or(self.zone());
        // The books' extent is of the starts of quarter hours; the last one is looked at to its end.
        let whole = |all: Interval| Interval::new(all.start(), all.end().checked_add_ms(BUCKET_MS)?);
        let all = reading.extent().and_then(whole);
        let asked = self.range(request.span, request.zone, all)?;
        let time = match asked {
            Some(range) => format!("{} to {}", local(zone, range.start()), local(zone, range.end())),
            None => "all time".to_owned(),
        };
        let title = format!("isolation, {time}, {zone}");
        // Nothing is known outside of what the books speak of.
        let range = asked.map_or(all, |asked| all.and_then(|all| asked.overlap(all)));
        let found = match range {
            Some(range) => Some(self.isolated(&reading, range).await?),
            None => None,
        };
        let mut table = table(title, found.as_ref(), zone);
        self.remark(&mut table);
        let is_violation = |incident: &Incident| incident.severity == Severity::Violation;
        let has_violations = found.is_some_and(|found| found.incidents.iter().any(is_violation));
        Ok(Audited { table, has_violations })
    }

    /// What was found in some time. Errors: the ledger's own.
    pub(crate) async fn isolated(&self, reading: &Reading, during: Interval) -> Result<Isolation, Error> {
        let mut found = Isolation::default();
        for day in days(during) {
            let beyond = day.end().checked_add_ms(BEYOND_MS).unwrap_or(day.end());
            let read = Interval::new(day.start(), beyond).expect("a day and more");
            // Nobody told anything: there is no card that several are known to have had.
            let Some(watched) = reading.watched(read).await? else { break };
            let (attempts, events) = (reading.held_in(read).await?, reading.happened(read).await?);
            let making = tokio::task::spawn_blocking(move || {
                isolation(&IsolationInput {
                    during: day,
                    attempts: &attempts,
                    seen: &watched.seen,
                    activity: &watched.activity,
                    events: &events,
                })
            });
            found = found.followed_by(making.await.expect("an audit is made or its fault is a defect of ours"));
        }
        Ok(found)
    }
}

/// A stretch cut at midnights of UTC.
fn days(during: Interval) -> Vec<Interval> {
    let (mut at, end) = (during.start().unix_ms(), during.end().unix_ms());
    let mut days = Vec::new();
    while at < end {
        let next = ((at.div_euclid(DAY_MS) + 1) * DAY_MS).min(end);
        days.extend(Interval::new(Timestamp::from_unix_ms(at), Timestamp::from_unix_ms(next)));
        at = next;
    }
    days
}

fn table(title: String, found: Option<&Isolation>, zone: Zone) -> Table {
    let names = [
        "severity",
        "kind",
        "node",
        "card_uuid",
        "job",
        "tenant",
        "user",
        "others",
        "other_tenants",
        "from",
        "to",
        "what",
    ];
    let mut notes = Vec::new();
    match found {
        None => notes.push("empty books".to_owned()),
        Some(found) if found.looked_at.is_empty() => {
            notes.push("no node looked for holders in that time: nothing is known of how cards were shared".to_owned());
        }
        Some(found) => {
            let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
            notes.push(format!(
                "{} looked at, {} held by several at once",
                count(found.looked_at.len(), "card"),
                found.shared.len()
            ));
            if !found.not_judged.is_empty() {
                notes.push(format!(
                    "of {} on shared cards memory or work wasn't seen all the time: what wasn't seen is not judged",
                    count(found.not_judged.len(), "holder")
                ));
            }
        }
    }
    Table {
        title,
        columns: names.map(|name| Column { name: name.to_owned(), kind: Kind::Text }).to_vec(),
        rows: found.into_iter().flat_map(|found| &found.incidents).map(|incident| row(incident, zone)).collect(),
        total: None,
        notes,
    }
}

fn row(incident: &Incident, zone: Zone) -> Vec<Value> {
    let text = |text: Option<Name>| text.map_or(Value::Absent, Value::Text);
    let all = |of: fn(&Concerned) -> Option<Name>| {
        let mut words: Vec<Name> = incident.others.iter().filter_map(of).collect();
        words.sort();
        words.dedup();
        text((!words.is_empty()).then(|| words.join(", ").into()))
    };
    let time = |at: Timestamp| Value::Text(local(zone, at).to_string().into());
    let holder = incident.holder.as_ref();
    vec![
        Value::Text(severity_name(incident.severity).into()),
        Value::Text(incident.kind().into()),
        text(incident.node.clone()),
        Value::Text(incident.card_uuid.clone()),
        text(holder.map(|holder| holder.key.job().into())),
        text(holder.and_then(Concerned::tenant)),
        text(holder.and_then(|holder| holder.user.clone())),
        all(|other| Some(other.key.job().into())),
        all(Concerned::tenant),
        time(incident.during.start()),
        time(incident.during.end()),
        Value::Text(incident.words().into()),
    ]
}

const fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Advice => "advice",
        Severity::Violation => "violation",
    }
}
