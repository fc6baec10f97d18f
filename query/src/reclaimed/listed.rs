//! Leases and decisions as tables for people and programs.

use crate::books::Books;
use cardhour_books::report::local;
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_decisions::decision::{Decision, Mode};
use cardhour_decisions::kept::KeptLease;
use cardhour_domain::{CardShare, CardTime, Name, Timestamp};
use std::collections::BTreeMap;

/// How far idle reclaim is with each job that holds cards: its last decision beside its phase.
pub fn leases_table(books: &Books, at: Timestamp, mode: Mode, leases: &[KeptLease], decisions: &[Decision]) -> Table {
    let mut last: BTreeMap<_, &Decision> = BTreeMap::new();
    for decision in decisions.iter().filter(|decision| decision.of_decision.is_none()) {
        if let Some(key) = &decision.attempt_key {
            last.insert(key, decision);
        }
    }
    let rows = leases.iter().map(|lease| {
        let decision = last.get(&lease.attempt_key);
        let of = |field: fn(&Decision) -> Option<Name>| text(decision.and_then(|decision| field(decision)));
        // What was decided of a job that works again is over.
        let now = decision.filter(|decision| decision.phase_to.as_deref() == Some(&*lease.phase));
        vec![
            Value::Text(lease.attempt_key.job().into()),
            of(|decision| decision.user.clone()),
            of(|decision| decision.project.clone()),
            Value::Text(lease.phase.clone()),
            instant(books, now.and_then(|decision| decision.idle_since)),
            hours(now.and_then(|decision| decision.idle_card_ms)),
            instant(books, now.and_then(|decision| decision.until)),
            text(now.map(|decision| decision.words.clone())),
        ]
    });
    let columns = [
        ("job", Kind::Text),
        ("user", Kind::Text),
        ("project", Kind::Text),
        ("phase", Kind::Text),
        ("idle_since", Kind::Text),
        ("idle_card_hours", Kind::Hours),
        ("until", Kind::Text),
        ("what", Kind::Text),
    ];
    let title = format!("idle reclaim, {}, {}, mode {mode}", local(books.zone(), at), books.zone());
    let mut table = table(title, &columns, rows.collect());
    let by_phase = leases.iter().fold(BTreeMap::<&str, u64>::new(), |mut counts, lease| {
        *counts.entry(&lease.phase).or_default() += 1;
        counts
    });
    let counts: Vec<String> = by_phase.iter().map(|(phase, jobs)| format!("{jobs} {phase}")).collect();
    table.notes.push(match &counts[..] {
        [] => "no job holds a card that a node tells of".to_owned(),
        counts => format!("jobs: {}", counts.join(", ")),
    });
    table
}

/// What was decided, asked for and carried out.
pub fn decisions_table(books: &Books, title: &str, decisions: &[Decision]) -> Table {
    let rows = decisions.iter().map(|decision| {
        vec![
            instant(books, Some(decision.at)),
            Value::Text(decision.action.clone()),
            text(decision.attempt_key.as_ref().map(|key| key.job().into())),
            text(decision.user.clone()),
            text(decision.project.clone()),
            decision.cards.map_or(Value::Absent, |cards: CardShare| Value::Decimal(cards.cards())),
            hours(decision.idle_card_ms),
            hours(decision.recovered_card_ms),
            Value::Text(decision.mode.name().into()),
            text(decision.actor.clone()),
            Value::Text(decision.words.clone()),
            text(decision.carried_out.clone()),
            Value::Text(decision.id.clone()),
        ]
    });
    let columns = [
        ("at", Kind::Text),
        ("action", Kind::Text),
        ("job", Kind::Text),
        ("user", Kind::Text),
        ("project", Kind::Text),
        ("cards", Kind::Hours),
        ("idle_card_hours", Kind::Hours),
        ("recovered_card_hours", Kind::Hours),
        ("mode", Kind::Text),
        ("by", Kind::Text),
        ("what", Kind::Text),
        ("carried_out", Kind::Text),
        ("decision_id", Kind::Text),
    ];
    table(title.to_owned(), &columns, rows.collect())
}

fn table(title: String, columns: &[(&str, Kind)], rows: Vec<Vec<Value>>) -> Table {
    let column = |(name, kind): &(&str, Kind)| Column { name: (*name).to_owned(), kind: *kind };
    Table { title, columns: columns.iter().map(column).collect(), rows, total: None, notes: Vec::new() }
}

fn text(value: Option<Name>) -> Value {
    value.map_or(Value::Absent, Value::Text)
}

fn instant(books: &Books, at: Option<Timestamp>) -> Value {
    at.map_or(Value::Absent, |at| Value::Text(local(books.zone(), at).to_string().into()))
}

fn hours(card_ms: Option<i64>) -> Value {
    let time = |ms: i64| CardTime::from_part_ms(i128::from(ms) * i128::from(CardShare::PARTS_PER_CARD));
    card_ms.map_or(Value::Absent, |ms| Value::Decimal(time(ms).card_hours()))
}
