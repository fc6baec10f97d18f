//! The fewest jobs that are enough, where a search by least loss has met the budget first.
//!
//! A guarantee isn't left unmet because many small jobs lose less than a large one, and only one may be ended. Surplus workers cost no job and go first. Then one job that is enough
//! by itself; then the largest ones, as many as may be ended.

use crate::plan::Reason;
use crate::pool::rooms::Spot;
use crate::pool::tree::QueueAt;

use super::{Candidate, Hunt};

/// Single jobs that are tried, of those whose cards could be enough: each try places the asker anew.
const TRIES: usize = 256;

/// Takes candidates until the asker fits. `allowed`: how a candidate ranks now, and on what ground it may go; `None`: on none.
pub(super) fn hunt<R: Ord>(
    hunt: &mut Hunt<'_, '_>,
    candidates: &[(QueueAt, Candidate)],
    allowed: impl Fn(&Hunt<'_, '_>, QueueAt, Candidate) -> Option<(R, Reason)>,
) -> Option<Vec<Spot>> {
    let (whole, surplus): (Vec<_>, Vec<_>) = candidates.iter().copied().partition(|(_, one)| one.key.whole);
    for (queue, candidate) in surplus {
        let Some((_, reason)) = allowed(hunt, queue, candidate) else { continue };
        if hunt.take(candidate, reason)
            && let Some(spots) = hunt.fits(true)
        {
            return Some(spots);
        }
    }
    let mut alone: Vec<(R, QueueAt, Candidate)> = whole
        .iter()
        .filter(|(_, candidate)| hunt.could_be_enough_alone(candidate.job))
        .filter_map(|(queue, candidate)| allowed(hunt, *queue, *candidate).map(|(rank, _)| (rank, *queue, *candidate)))
        .collect();
    alone.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, queue, candidate) in alone.into_iter().take(TRIES) {
        let Some((_, reason)) = allowed(hunt, queue, candidate) else { continue };
        if hunt.take(candidate, reason) {
            if let Some(spots) = hunt.fits(true) {
                return Some(spots);
            }
            hunt.put_back_last();
        }
    }
    let parts = |hunt: &Hunt<'_, '_>, one: &Candidate| {
        let job = &hunt.pool.jobs[one.job];
        job.need.parts.saturating_mul(i64::from(job.workers))
    };
    let mut left = whole;
    left.sort_by_key(|(_, candidate)| (std::cmp::Reverse(parts(hunt, candidate)), *candidate));
    for (queue, candidate) in left {
        if hunt.tokens.is_some_and(|tokens| hunt.ended() >= tokens) {
            return None;
        }
        let Some((_, reason)) = allowed(hunt, queue, candidate) else { continue };
        if hunt.take(candidate, reason)
            && let Some(spots) = hunt.fits(true)
        {
            return Some(spots);
        }
    }
    None
}
