//! What failed, why, and what came after: attempts that ended in the span by an error of their own, their node, memory or time limit.

use super::cells::{self, count, hours, money, text};
use super::facts::{Facts, Held, Sum};
use super::week::Days;
use super::{Chart, Section, Shape};
use crate::report::is_failed;
use crate::table::{Kind, Value};
use cardhour_domain::JobState;
use std::collections::BTreeSet;

/// Columns: `state jobs attempts card_hours cost currency retried completed_after`.
///
/// Hours and cost are those of the span. `retried`: attempts after which the job ran again; `completed_after`: of these, those whose last run completed.
pub(super) fn section(facts: &Facts<'_>, held: &[Held<'_>], days: Days) -> Section {
    let mut rows = Vec::new();
    for state in JobState::ALL.into_iter().filter(|state| is_failed(*state)) {
        let ended = facts.ended(days, |one| one == state);
        if ended.is_empty() {
            continue;
        }
        let mut row = vec![text(state.name())];
        row.extend(figures(facts, held, &ended));
        rows.push(row);
    }
    let total = (rows.len() > 1).then(|| {
        let mut row = vec![Value::Absent];
        row.extend(figures(facts, held, &facts.ended(days, is_failed)));
        row
    });
    let columns = [
        ("state", Kind::Text),
        ("jobs", Kind::Count),
        ("attempts", Kind::Count),
        ("card_hours", Kind::Hours),
        ("cost", Kind::Money),
        ("currency", Kind::Text),
        ("retried", Kind::Count),
        ("completed_after", Kind::Count),
    ];
    let mut table = cells::table("Failures and retries", &columns, rows);
    table.total = total;
    table.notes.push(
        "attempts that failed in the span, by how; retried: the same job ran again, completed after: and its last run completed".to_owned(),
    );
    Section { name: "failures", table, chart: Some(Chart { shape: Shape::Bars, label: 0, value: 3 }) }
}

fn figures(facts: &Facts<'_>, held: &[Held<'_>], ended: &[u32]) -> Vec<Value> {
    let sum = Sum::of_attempts(held, ended);
    let jobs: BTreeSet<&str> = ended.iter().map(|number| facts.attempt(*number).key.job()).collect();
    let last_run = |number: &u32| {
        let mut last = None;
        while let Some(next) = facts.run_after(last.unwrap_or(*number)) {
            last = Some(next);
        }
        last
    };
    let retried: Vec<u32> = ended.iter().filter_map(last_run).collect();
    let completed = retried.iter().filter(|last| facts.attempt(**last).state == JobState::Completed).count();
    let mut row = vec![count(jobs.len()), count(ended.len()), hours(sum.held)];
    row.extend(money(sum.cost, facts.currency()));
    row.extend([count(retried.len()), count(completed)]);
    row
}
