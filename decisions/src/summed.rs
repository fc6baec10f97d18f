//! What decisions came to: how many of each kind, mode and outcome, and the card-hours that were recovered.
//!
//! An outcome is a row's action: what was told, asked, done, or came of it. Card-hours count as recovered in the mode `act` alone; in the others they are what would have been.
//!
//! Start at [`sums`]. Does not: read tables, judge.

use crate::cells::{count, hours_of_card_ms, name, section, text};
use crate::decision::{Decision, DecisionKind, Mode, WRONGFUL};
use cardhour_books::checkpoint::Section;
use cardhour_books::table::{Kind, Value};
use cardhour_domain::{AttemptKey, Interval, Name};
use std::collections::{BTreeMap, BTreeSet};

/// The outcomes that are counted by name; anything else is under [`OTHER`].
pub const OUTCOMES: [&str; 20] = [
    "advise",
    "alert",
    "ask_checkpoint",
    "cancel",
    "carried_out",
    "ended",
    "extend",
    "extended",
    "grace",
    "mode",
    "no_actuator",
    "reclaimed",
    "recovered",
    "refuse_extension",
    "spare",
    "stop",
    "suspect",
    "warn",
    "withdraw",
    WRONGFUL,
];

/// What has no name here.
pub const OTHER: &str = "other";

/// Decisions of one kind, mode and outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many rows.
    pub decisions: u64,
    /// Of how many jobs.
    pub jobs: BTreeSet<AttemptKey>,
    /// What was recovered, or in another mode than `act` would have been. Unit: card-milliseconds.
    pub recovered_card_ms: i128,
}

/// By kind, mode and outcome, of some decisions.
pub fn sums<'a>(
    decisions: impl IntoIterator<Item = &'a Decision>,
) -> BTreeMap<(DecisionKind, Mode, &'static str), Sum> {
    let mut sums: BTreeMap<(DecisionKind, Mode, &'static str), Sum> = BTreeMap::new();
    for decision in decisions {
        let outcome = OUTCOMES.into_iter().find(|outcome| *outcome == &*decision.action).unwrap_or(OTHER);
        let sum = sums.entry((decision.kind, decision.mode, outcome)).or_default();
        sum.decisions += 1;
        sum.jobs.extend(decision.attempt_key.clone());
        sum.recovered_card_ms += i128::from(decision.recovered_card_ms.unwrap_or(0));
    }
    sums
}

/// The attempts of which somebody marked that their cards were wrongly taken.
pub fn marked(decisions: &[Decision]) -> BTreeSet<AttemptKey> {
    let marks = decisions.iter().filter(|decision| &*decision.action == WRONGFUL);
    marks.filter_map(|mark| mark.attempt_key.clone()).collect()
}

/// Columns: `kind mode outcome decisions jobs recovered_card_hours would_have_recovered_card_hours wrongful_jobs`. `wrongful`: attempts whose cards were wrongly taken, as their
/// records say.
pub fn by_outcome(decisions: &[Decision], during: Interval, wrongful: &BTreeSet<AttemptKey>) -> Section {
    let rows = sums(decisions.iter().filter(|decision| during.contains(decision.at))).into_iter().map(
        |((kind, mode, outcome), sum)| {
            let takes = matches!(outcome, "stop" | "reclaimed" | "recovered");
            let wrong = sum.jobs.intersection(wrongful).count();
            let time = |is: bool| if is { hours_of_card_ms(sum.recovered_card_ms) } else { Value::Absent };
            let tells = matches!(outcome, "recovered" | "ended");
            vec![
                text(kind.name()),
                text(mode.name()),
                text(outcome),
                count(Some(sum.decisions)),
                count(Some(sum.jobs.len() as u64)),
                time(tells && mode == Mode::Act),
                time(tells && mode != Mode::Act),
                count(takes.then_some(wrong as u64)),
            ]
        },
    );
    let columns = [
        ("kind", Kind::Text),
        ("mode", Kind::Text),
        ("outcome", Kind::Text),
        ("decisions", Kind::Count),
        ("jobs", Kind::Count),
        ("recovered_card_hours", Kind::Hours),
        ("would_have_recovered_card_hours", Kind::Hours),
        ("wrongful_jobs", Kind::Count),
    ];
    let notes = [
        "recovered: what cards that came free would have been held for no longer than the policy counts; in other modes than act it is what would have been",
    ];
    section("decisions", "Decisions", &columns, rows.collect(), &notes)
}

/// What was wrongly taken, each with the decision behind it: columns `job org project user mode recovered_card_hours decision_id`. A job that was ended by no decision
/// of ours has none. `wrongful` in the order of their keys.
pub fn wrongful(decisions: &[Decision], during: Interval, wrongful: &BTreeSet<AttemptKey>) -> Option<Section> {
    let mut last: BTreeMap<&AttemptKey, &Decision> = BTreeMap::new();
    let mut recovered: BTreeMap<&AttemptKey, i128> = BTreeMap::new();
    for decision in decisions.iter().filter(|decision| during.contains(decision.at)) {
        let Some(key) = decision.attempt_key.as_ref().filter(|key| wrongful.contains(*key)) else { continue };
        *recovered.entry(key).or_default() += i128::from(decision.recovered_card_ms.unwrap_or(0));
        if matches!(&*decision.action, "stop" | "reclaimed") && decision.of_decision.is_none() {
            // The stop is what was decided; that cards came free came of it.
            let is_better = last.get(key).is_none_or(|known| &*known.action != "stop");
            if is_better {
                last.insert(key, decision);
            }
        }
    }
    let rows: Vec<Vec<Value>> = last
        .iter()
        .map(|(key, decision)| {
            let owner = |of: &Option<Name>| name(of.as_ref());
            vec![
                text(key.job()),
                owner(&decision.org),
                owner(&decision.project),
                owner(&decision.user),
                text(decision.mode.name()),
                hours_of_card_ms(recovered.get(*key).copied().unwrap_or(0)),
                text(&decision.id),
            ]
        })
        .collect();
    let columns = [
        ("job", Kind::Text),
        ("org", Kind::Text),
        ("project", Kind::Text),
        ("user", Kind::Text),
        ("mode", Kind::Text),
        ("recovered_card_hours", Kind::Hours),
        ("decision_id", Kind::Text),
    ];
    let notes = [
        "jobs that somebody marked (cardhour decisions wrongful), or whose records say wrongful_reclaim: the billing policy refunds them, and of a marked one the refund names the decision",
    ];
    (!rows.is_empty()).then(|| section("wrongful_reclaims", "Wrongly taken", &columns, rows, &notes))
}

#[cfg(test)]
mod tests;
