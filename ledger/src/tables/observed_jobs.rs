//! `observed_jobs`: attempts that no record tells of, only nodes. Derived from `observations`, `watches` and `jobs`; has the columns of `jobs`.

use super::{Table, jobs};
use arrow::record_batch::RecordBatch;
use cardhour_books::attempt::Attempt;
use cardhour_books::observed::ObservedAttempt;
use cardhour_books::versions::{Version, Versioned};
use cardhour_domain::{HolderKind, JobState};
use std::sync::Arc;

pub(crate) const OBSERVED_JOBS: Table = Table {
    name: "observed_jobs",
    schema_version: 1,
    schema: || (jobs::JOBS.schema)(),
    by_day: false,
    bounds: &["submitted_at", "started_at", "as_of"],
    comment: "attempts that only nodes know of, in the columns of jobs; replaced whole",
};

pub(crate) fn batch(attempts: &[ObservedAttempt]) -> RecordBatch {
    let versioned = |observed: &ObservedAttempt| {
        let attempt = attempt(observed);
        let version = Version::of(&attempt);
        (Arc::new(attempt), version)
    };
    let rows: Vec<Versioned> = attempts.iter().map(versioned).collect();
    jobs::batch(&rows)
}

/// An observed attempt in the words of `jobs`. How it ended nobody said: its state is unknown then.
fn attempt(observed: &ObservedAttempt) -> Attempt {
    let holder = &observed.holder;
    let shown = holder.shown_id.clone().unwrap_or_else(|| holder.job_id.clone());
    let state = if observed.is_over { JobState::Unknown } else { JobState::Running };
    let owner = &observed.owner;
    let mut labels = owner.labels.clone();
    labels.insert("holder".into(), holder.kind.name().into());
    Attempt {
        org: owner.org.clone(),
        project: owner.project.clone(),
        user: owner.user.clone(),
        queue: owner.queue.clone(),
        class: owner.class.clone().or_else(|| (holder.kind == HolderKind::Session).then(|| "development".into())),
        model: observed.model.clone(),
        labels,
        is_final: observed.is_over,
        submitted_at: Some(observed.during.start()),
        started_at: Some(observed.during.start()),
        ended_at: observed.is_over.then_some(observed.during.end()),
        as_of: Some(observed.during.end()),
        cards: observed.cards,
        nodes: observed.nodes.iter().cloned().collect(),
        ..Attempt::new(observed.key.clone(), holder.cluster.clone(), shown, state)
    }
}
