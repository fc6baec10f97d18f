//! `decisions`: what was decided about jobs, on what evidence, what was asked, and what came of it. Only rows are added, each id once.

use super::Table;
use crate::columns::{Columns, Interned, Rows, opt_instant, opt_long, opt_text};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_decisions::decision::{Decision, DecisionKind, Mode};
use cardhour_domain::{AttemptKey, CardShare};

pub(crate) const DECISIONS: Table = Table {
    name: "decisions",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &["decided_at"],
    comment: "what was decided about idle jobs, why, in which mode, and what was carried out; what people asked for; who set the mode",
};

pub(crate) fn batch(rows: &[Decision]) -> RecordBatch {
    Columns::default()
        .text("decision_id", rows.iter().map(|row| &*row.id))
        .instant("decided_at", rows.iter().map(|row| row.at))
        .text("kind", rows.iter().map(|row| row.kind.name()))
        .opt_text("of_decision_id", rows.iter().map(|row| row.of_decision.as_deref()))
        .opt_text("cluster", rows.iter().map(|row| row.cluster.as_deref()))
        .opt_text("attempt_key", rows.iter().map(|row| row.attempt_key.as_ref().map(AttemptKey::as_str)))
        .opt_text("job_id", rows.iter().map(|row| row.job_id.as_deref()))
        .opt_text("org", rows.iter().map(|row| row.org.as_deref()))
        .opt_text("project", rows.iter().map(|row| row.project.as_deref()))
        .opt_text("user", rows.iter().map(|row| row.user.as_deref()))
        .opt_text("queue", rows.iter().map(|row| row.queue.as_deref()))
        .opt_text("class", rows.iter().map(|row| row.class.as_deref()))
        .opt_text("phase_from", rows.iter().map(|row| row.phase_from.as_deref()))
        .opt_text("phase_to", rows.iter().map(|row| row.phase_to.as_deref()))
        .text("action", rows.iter().map(|row| &*row.action))
        .opt_long("notice", rows.iter().map(|row| row.notice.map(i64::from)))
        .text("words", rows.iter().map(|row| &*row.words))
        .text("mode", rows.iter().map(|row| row.mode.name()))
        .opt_instant("idle_since", rows.iter().map(|row| row.idle_since))
        .opt_long("idle_card_ms", rows.iter().map(|row| row.idle_card_ms))
        .opt_long("coverage_pct_thousandths", rows.iter().map(|row| row.coverage_pct_thousandths.map(i64::from)))
        .opt_long("lost_card_ms", rows.iter().map(|row| row.lost_card_ms))
        .opt_long("share_parts", rows.iter().map(|row| row.cards.map(CardShare::parts)))
        .opt_instant("until", rows.iter().map(|row| row.until))
        .opt_text("actor", rows.iter().map(|row| row.actor.as_deref()))
        .opt_text("carried_out", rows.iter().map(|row| row.carried_out.as_deref()))
        .opt_text("before", rows.iter().map(|row| row.before.as_deref()))
        .opt_text("after", rows.iter().map(|row| row.after.as_deref()))
        .opt_long("recovered_card_ms", rows.iter().map(|row| row.recovered_card_ms))
        .finish()
}

/// Errors: a row of a kind or mode that this program doesn't know, which a later one wrote, or which is damaged.
pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Decision>, Error> {
    let rows = Rows::new(DECISIONS.name, batch);
    let texts = |column: &str| rows.text(column);
    let (ids, kinds, of, clusters) =
        (texts("decision_id")?, texts("kind")?, texts("of_decision_id")?, texts("cluster")?);
    let (keys, jobs, orgs, projects) = (texts("attempt_key")?, texts("job_id")?, texts("org")?, texts("project")?);
    let (users, queues, classes) = (texts("user")?, texts("queue")?, texts("class")?);
    let (phases_from, phases_to, actions) = (texts("phase_from")?, texts("phase_to")?, texts("action")?);
    let (words, modes, actors, carried) = (texts("words")?, texts("mode")?, texts("actor")?, texts("carried_out")?);
    let (befores, afters) = (texts("before")?, texts("after")?);
    let (at, idle_since, until) = (rows.instants("decided_at")?, rows.instants("idle_since")?, rows.instants("until")?);
    let (notices, idle, coverage) =
        (rows.long("notice")?, rows.long("idle_card_ms")?, rows.long("coverage_pct_thousandths")?);
    let (lost, shares, recovered) =
        (rows.long("lost_card_ms")?, rows.long("share_parts")?, rows.long("recovered_card_ms")?);
    let damaged = |row: usize, what: &str| Error::damaged(DECISIONS.name, format!("{what} of {}", ids.value(row)));
    let decision = |row: usize| {
        Ok(Decision {
            id: names.get(ids.value(row)),
            at: opt_instant(at, row).ok_or_else(|| damaged(row, "no instant"))?,
            kind: DecisionKind::from_name(kinds.value(row)).ok_or_else(|| damaged(row, "an unknown kind"))?,
            of_decision: names.opt(of, row),
            cluster: names.opt(clusters, row),
            attempt_key: opt_text(keys, row).map(AttemptKey::from_stored),
            job_id: names.opt(jobs, row),
            org: names.opt(orgs, row),
            project: names.opt(projects, row),
            user: names.opt(users, row),
            queue: names.opt(queues, row),
            class: names.opt(classes, row),
            phase_from: names.opt(phases_from, row),
            phase_to: names.opt(phases_to, row),
            action: names.get(actions.value(row)),
            notice: opt_long(notices, row).and_then(|notice| notice.try_into().ok()),
            words: names.get(words.value(row)),
            mode: Mode::from_name(modes.value(row)).ok_or_else(|| damaged(row, "an unknown mode"))?,
            idle_since: opt_instant(idle_since, row),
            idle_card_ms: opt_long(idle, row),
            coverage_pct_thousandths: opt_long(coverage, row).and_then(|pct| pct.try_into().ok()),
            lost_card_ms: opt_long(lost, row),
            cards: opt_long(shares, row).map(CardShare::from_parts),
            until: opt_instant(until, row),
            actor: names.opt(actors, row),
            carried_out: names.opt(carried, row),
            before: names.opt(befores, row),
            after: names.opt(afters, row),
            recovered_card_ms: opt_long(recovered, row),
        })
    };
    (0..batch.num_rows()).map(decision).collect()
}
