//! What it cost that attempts had to give way: those that ended in the span by being preempted, requeued or reclaimed.

use super::Section;
use super::cells::{self, count, hours, money, text, wait};
use super::facts::{Facts, Held, Sum};
use super::wait::Spread;
use super::week::Days;
use crate::table::{Kind, Value};
use cardhour_domain::{Interval, JobState};

const STATES: [JobState; 3] = [JobState::Preempted, JobState::Requeued, JobState::Reclaimed];

/// Columns: `state attempts card_hours lost_card_hours lost_cost currency ran_again median_again_hours max_again_hours`.
///
/// Hours and cost are those of the span. `ran_again`: a later run of the same job has started; the two waits are from the end of the one to the start of the
/// other, also where that lies after the span.
pub(super) fn section(facts: &Facts<'_>, held: &[Held<'_>], days: Days) -> Section {
    let mut rows = Vec::new();
    for state in STATES {
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
        row.extend(figures(facts, held, &facts.ended(days, |one| STATES.contains(&one))));
        row
    });
    let columns = [
        ("state", Kind::Text),
        ("attempts", Kind::Count),
        ("card_hours", Kind::Hours),
        ("lost_card_hours", Kind::Hours),
        ("lost_cost", Kind::Money),
        ("currency", Kind::Text),
        ("ran_again", Kind::Count),
        ("median_again_hours", Kind::Hours),
        ("max_again_hours", Kind::Hours),
    ];
    let mut table = cells::table("Preemption", &columns, rows);
    table.total = total;
    table.notes.push(
        "attempts that ended in the span because they had to give way; lost is work that telemetry saw and no checkpoint kept; again: from the end of such an attempt to \
         the start of the next run of its job"
            .to_owned(),
    );
    Section { name: "preemption", table, chart: None }
}

fn figures(facts: &Facts<'_>, held: &[Held<'_>], ended: &[u32]) -> Vec<Value> {
    let sum = Sum::of_attempts(held, ended);
    let again = Spread::of(ended.iter().filter_map(|number| {
        let end = facts.attempt(*number).held?.end();
        let next = facts.attempt(facts.run_after(*number)?).held.map(Interval::start)?;
        Some(next.ms_since(end).max(0))
    }));
    let mut row = vec![count(ended.len()), hours(sum.held), hours(sum.used.lost)];
    row.extend(money(sum.cost.map(|_| sum.lost_cost), facts.currency()));
    row.extend([count(again.len()), wait(again.percentile(50)), wait(again.most())]);
    row
}
