//! Violations of the sharing rule as events: told once when they are seen, over when their card was looked at and they aren't any more.

use super::{Channel, Event, News, Outcome, Severity, labels_of, tell};
use crate::books::Books;
use crate::error::Error;
use cardhour_decisions::isolation::{Incident, Isolation};
use cardhour_domain::{Interval, Timestamp};
use cardhour_ledger::ToldAlert;
use cardhour_scheduler_core::sharing;
use std::collections::BTreeMap;

/// The name of the event.
pub const NAME: &str = "CardhourIsolation";

/// How far a look goes back: what ended earlier is over. Unit: milliseconds.
const LOOKS_BACK_MS: i64 = 3_600_000;

/// Looks at how cards were shared in the last hour, and tells every channel what it doesn't know. Errors: the ledger's own.
pub async fn look(books: &Books, channels: &[Channel], now: Timestamp) -> Result<Outcome, Error> {
    let from = Timestamp::from_unix_ms(now.unix_ms() - LOOKS_BACK_MS);
    let Some(during) = Interval::new(from, now) else { return Ok(Outcome::default()) };
    let reading = books.ledger().read().await?;
    let found = books.isolated(&reading, during).await?;
    tell(books, channels, |before| due(&found, before, now)).await
}

/// What one channel doesn't know of what was found.
fn due(found: &Isolation, before: &[&ToldAlert], now: Timestamp) -> Vec<Event> {
    // The last word of each.
    let mut last: BTreeMap<&str, &ToldAlert> = BTreeMap::new();
    for told in before.iter().filter(|told| &*told.alert == NAME) {
        let known = last.entry(&*told.labels).or_insert(told);
        if known.told_at < told.told_at {
            *known = told;
        }
    }
    let is_reached = |labels: &str| last.get(labels).is_some_and(|told| *told.news == *News::Reached.name());
    let violations = found.incidents.iter().filter(|incident| incident.severity == sharing::Severity::Violation);
    let mut stands: BTreeMap<String, Event> = BTreeMap::new();
    for incident in violations {
        let event = reached(incident, now);
        // Of several times in the hour the last is told.
        stands.insert(event.label_text().to_string(), event);
    }
    let is_over = |told: &&&ToldAlert| {
        let card = labels_of(&told.labels).remove("card");
        // A card that nobody looks at may be as bad as it was.
        is_reached(&told.labels)
            && !stands.contains_key(&*told.labels)
            && card.is_some_and(|card| found.looked_at.contains(&*card))
    };
    let gone = last.values().filter(is_over).map(|told| over(told, now)).collect::<Vec<_>>();
    stands.into_iter().filter(|(labels, _)| !is_reached(labels)).map(|(_, event)| event).chain(gone).collect()
}

fn reached(incident: &Incident, now: Timestamp) -> Event {
    let jobs = |of: &mut dyn Iterator<Item = &cardhour_decisions::isolation::Concerned>| {
        of.map(|who| who.key.job().to_owned()).collect::<Vec<_>>().join(", ")
    };
    let mut labels = BTreeMap::from([
        ("kind".to_owned(), incident.kind().to_owned()),
        ("card".to_owned(), incident.card_uuid.to_string()),
    ]);
    labels.extend(incident.node.iter().map(|node| ("node".to_owned(), node.to_string())));
    labels.extend(incident.holder.iter().map(|holder| ("job".to_owned(), holder.key.job().to_owned())));
    // Of two that may not share, who the other is makes it another violation; whom one disturbs changes by the hour.
    if matches!(incident.violation, sharing::Violation::Rule(_)) {
        labels.insert("other".to_owned(), jobs(&mut incident.others.iter()));
    }
    if let sharing::Violation::FaultHitNeighbours { xid, .. } = &incident.violation {
        labels.insert("xid".to_owned(), format!("{} at {}", xid.xid, xid.at));
    }
    Event {
        name: NAME,
        labels,
        news: News::Reached,
        severity: Severity::Warning,
        at: now,
        ends_at: None,
        summary: incident.words(),
        description: Some(remedy(incident).to_owned()),
        user: None,
    }
}

/// What can be done about it.
const fn remedy(incident: &Incident) -> &'static str {
    match incident.violation {
        sharing::Violation::Rule(_) => {
            "Time-slicing and MPS are for one tenant: give one of them another card, or cut this one by MIG. `cardhour report isolation` has all."
        }
        sharing::Violation::MemoryOverShare { .. } => {
            "Nothing but a MIG instance keeps memory apart: move one of them, or give the larger a larger share."
        }
        sharing::Violation::FaultHitNeighbours { .. } => {
            "They share one fault: what must not fall together needs MIG or cards of its own."
        }
        sharing::Violation::BusyNeighbour { .. } => {
            "Others get less than their share: cut the card by MIG, or move the one that takes more."
        }
    }
}

fn over(told: &ToldAlert, now: Timestamp) -> Event {
    Event {
        name: NAME,
        labels: labels_of(&told.labels),
        news: News::Over,
        severity: Severity::Warning,
        at: now,
        ends_at: Some(now),
        summary: format!("over: {}", told.summary),
        description: None,
        user: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_decisions::isolation::Concerned;
    use cardhour_domain::AttemptKey;
    use cardhour_scheduler_core::sharing::{Breach, Mode, Violation};

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_unix_s(1_775_000_000 + 60 * minute)
    }

    fn found(is_shared: bool, is_looked_at: bool) -> Isolation {
        let who = |job: &str, project: &str| Concerned {
            key: AttemptKey::new("lab", job, "1"),
            org: None,
            project: Some(project.into()),
            user: None,
        };
        let (one, other) = (who("1", "vision"), who("2", "speech"));
        let breach = Breach::AcrossTenants {
            holder: one.key.clone(),
            tenant: one.tenant(),
            other: other.key.clone(),
            other_tenant: other.tenant(),
            mode: Mode::TimeSlice,
        };
        let incident = Incident {
            severity: sharing::Severity::Violation,
            node: Some("n1".into()),
            card_uuid: "GPU-1".into(),
            during: Interval::new(at(0), at(30)).unwrap(),
            violation: Violation::Rule(breach),
            holder: Some(one),
            others: vec![other],
        };
        Isolation {
            incidents: if is_shared { vec![incident] } else { vec![] },
            looked_at: is_looked_at.then(|| "GPU-1".into()).into_iter().collect(),
            ..Isolation::default()
        }
    }

    /// Told, not again, not over while nobody looks, over once, and told again when it comes again.
    #[test]
    fn a_violation_is_told_once_and_over_only_when_somebody_looked() {
        let mut told: Vec<ToldAlert> = Vec::new();
        let mut look = |minute, is_shared, is_looked_at| {
            let before: Vec<&ToldAlert> = told.iter().collect();
            let events = due(&found(is_shared, is_looked_at), &before, at(minute));
            let row = |event: &Event| ToldAlert {
                told_at: at(minute),
                channel: "webhook".into(),
                alert: event.name.into(),
                labels: event.label_text(),
                news: event.news.name().into(),
                summary: event.summary.as_str().into(),
            };
            told.extend(events.iter().map(row));
            events.iter().map(|event| event.news).collect::<Vec<_>>()
        };
        assert_eq!(look(0, true, true), [News::Reached]);
        assert_eq!(look(1, true, true), []);
        assert_eq!(look(2, false, false), []);
        assert_eq!(look(3, false, true), [News::Over]);
        assert_eq!(look(4, false, true), []);
        assert_eq!(look(5, true, true), [News::Reached]);
    }
}
