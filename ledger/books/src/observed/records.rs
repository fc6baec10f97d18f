//! Which record an observed holder is a run of.

use super::SLACK_MS;
use super::stretches::Stretch;
use crate::holdings::Claim;
use cardhour_domain::{HolderKind, Timestamp};
use std::collections::HashMap;

/// Seconds that are cut by one and rounded by the other. Unit: milliseconds.
const ROUNDING_MS: i64 = 2_000;

/// Claims of records by their job.
pub(crate) struct Records {
    /// By cluster and job, as keys have them; for a task of an array also by the id before its index. In order of their starts.
    by_job: HashMap<(String, String), Vec<usize>>,
    /// When the next run of the same job starts, by claim.
    next_start: Vec<Option<Timestamp>>,
}

impl Records {
    pub(crate) fn new(claims: &[Claim]) -> Self {
        let mut by_job: HashMap<(String, String), Vec<usize>> = HashMap::new();
        for (i, claim) in claims.iter().enumerate() {
            let job = job_of(claim);
            let cluster = claim.cluster.to_string();
            if let Some((raw, _)) = job.split_once('_') {
                by_job.entry((cluster.clone(), raw.to_owned())).or_default().push(i);
            }
            by_job.entry((cluster, job)).or_default().push(i);
        }
        let mut next_start = vec![None; claims.len()];
        for runs in by_job.values_mut() {
            runs.sort_by(|a, b| {
                let order = |i: &usize| (claims[*i].during.start(), &claims[*i].key);
                order(a).cmp(&order(b))
            });
            for pair in runs.windows(2).filter(|pair| claims[pair[0]].key.job() == claims[pair[1]].key.job()) {
                next_start[pair[0]] = Some(claims[pair[1]].during.start());
            }
        }
        Self { by_job, next_start }
    }

    /// When the job of a claim starts again.
    pub(crate) fn next_start(&self, claim: usize) -> Option<Timestamp> {
        self.next_start[claim]
    }

    /// The claims that a stretch is of: runs of its job at its time.
    pub(crate) fn runs_of(&self, stretch: &Stretch, claims: &[Claim]) -> Vec<usize> {
        let holder = &stretch.holder;
        if !matches!(holder.kind, HolderKind::SlurmJob | HolderKind::Pod) {
            return Vec::new();
        }
        let ids = [Some(&holder.job_id), holder.shown_id.as_ref()];
        let named = |id: &str| self.by_job.get(&(holder.cluster.to_string(), id.to_owned()));
        let mut runs: Vec<usize> = ids.into_iter().flatten().filter_map(|id| named(id)).flatten().copied().collect();
        runs.sort_unstable();
        runs.dedup();
        let index = |id: &str| id.split_once('_').map(|(_, index)| index.to_owned());
        let shown = holder.shown_id.as_deref().and_then(index);
        runs.retain(|run| {
            let claim = &claims[*run];
            // Another task of the same array has its own index.
            let is_other_task = index(&job_of(claim)).is_some_and(|task| shown.as_ref().is_some_and(|s| *s != task));
            let says_another_run =
                run_of(claim).is_some_and(|run| is_unique(&holder.run) && is_unique(run) && run != &*holder.run);
            !is_other_task && !says_another_run && is_at_its_time(claim, stretch, self.next_start[*run])
        });
        // Runs of a requeued job lie close together: the one that starts when the holder did, else those of the same time, else what is near.
        let starts_alike = |run: &usize| {
            let start_ms = claims[*run].during.start().unix_ms();
            started_at(stretch).is_some_and(|at| (at.unix_ms() - start_ms).abs() <= ROUNDING_MS)
        };
        let overlaps = |run: &usize| claims[*run].during.overlap(stretch.during).is_some();
        for is_better in [&starts_alike as &dyn Fn(&usize) -> bool, &overlaps] {
            if runs.iter().any(is_better) {
                runs.retain(is_better);
            }
        }
        runs
    }
}

/// Whether a stretch lies where a claim does, or after it and before the next run: then the node saw it longer than the record says.
fn is_at_its_time(claim: &Claim, stretch: &Stretch, next_start: Option<Timestamp>) -> bool {
    let starts_before_next = next_start.is_none_or(|next| stretch.during.start() < next);
    // What begins long after the end of a job with that id is another job: ids come round again.
    let begins = stretch.during.start().unix_ms() <= claim.during.end().unix_ms() + SLACK_MS;
    let ends = stretch.during.end().unix_ms() >= claim.during.start().unix_ms() - SLACK_MS;
    starts_before_next && begins && ends
}

/// The job of a claim's key, as it was before it was made part of a key.
fn job_of(claim: &Claim) -> String {
    let job = claim.key.job();
    let job = job.rsplit_once('/').map_or(job, |(_, job)| job);
    job.replace("%2F", "/").replace("%25", "%")
}

/// What tells the run of a claim's key from others.
fn run_of(claim: &Claim) -> Option<&str> {
    claim.key.as_str().rsplit_once('/').map(|(_, run)| run)
}

/// When the holder of a stretch started, as its scheduler says: `b` and seconds.
fn started_at(stretch: &Stretch) -> Option<Timestamp> {
    let seconds = stretch.holder.run.strip_prefix('b').and_then(|seconds| seconds.parse().ok());
    seconds.map(Timestamp::from_unix_s).or(stretch.holder.started_at)
}

/// Whether a run's name is given once in the world: a pod's UID, a SLUID.
fn is_unique(run: &str) -> bool {
    run.starts_with("uid") || run.starts_with("sluid")
}
