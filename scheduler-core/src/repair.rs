//! Jobs that lost workers: put the lost ones elsewhere, or let the whole job go. A gang that can't be completed doesn't hold cards.

use crate::plan::{Action, Reason, Why};
use crate::policy::NodeFailure;
use crate::pool::rooms::{HostAt, Layout, Spot, View};
use crate::pool::{JobAt, Pool, times};
use crate::snapshot::Piece;

/// What becomes of a job that lost workers. `None`: it goes on with what it has.
pub(crate) fn repair(pool: &mut Pool<'_>, at: JobAt) -> Option<(Action, Reason)> {
    let job = &pool.jobs[at];
    let on_failed: u32 = job.lost.iter().map(|piece| piece.workers).sum();
    let missing = job.run.missing.map_or(0, |missing| missing.workers);
    let wanted = on_failed + missing;
    if wanted == 0 || job.gone {
        return None;
    }
    if let Some(spots) = replacement(pool, at, wanted) {
        let job = &mut pool.jobs[at];
        for (r, amount) in times(&job.each, wanted) {
            pool.tree.add(&mut pool.now, job.queue, r, amount);
            pool.tree.add(&mut pool.after, job.queue, r, amount);
        }
        for spot in &spots {
            pool.rooms.take(spot, &job.need, &[View::Now, View::After]);
        }
        job.workers += wanted;
        job.spots.extend(spots.iter().cloned());
        let from: Vec<Piece> = std::mem::take(&mut job.lost);
        let to = pool.pieces(&spots, wanted);
        return Some((Action::Move { from, to, for_job: None }, Reason::HostFailed));
    }
    let job = &pool.jobs[at];
    if job.workers > 0 && job.workers >= job.run.min_workers {
        return None;
    }
    let in_grace = on_failed == 0
        && job
            .run
            .missing
            .and_then(|missing| missing.since)
            .is_some_and(|since| pool.at().ms_since(since) < pool.policy.broken_grace_ms);
    let keeps = on_failed > 0 && pool.policy.node_failure == NodeFailure::KeepTrying;
    if in_grace || keeps {
        return Some((Action::Wait, Reason::Waits(Why::ReplacementPending)));
    }
    let reason = if on_failed > 0 { Reason::NoReplacement } else { Reason::BrokenGang };
    let live = job.workers;
    if live == 0 {
        return Some((Action::Requeue, reason));
    }
    Some((Action::Evict { for_job: None }, reason))
}

/// Room for lost workers, at once: beside the survivors, inside the domain that the job must stay in.
fn replacement(pool: &Pool<'_>, at: JobAt, workers: u32) -> Option<Vec<Spot>> {
    let job = &pool.jobs[at];
    if !pool.fits_quota(job.queue, &times(&job.each, workers), View::Now) {
        return None;
    }
    if !pool.rooms.counted() {
        return Some(Vec::new());
    }
    let shape = &job.run.shape;
    let layout = Layout { same: shape.same, prefer: shape.prefer, spread: shape.spread };
    let mut beside: Vec<HostAt> = job.spots.iter().map(|spot| spot.host).collect();
    beside.sort_unstable();
    beside.dedup();
    let inside = |level| {
        let domain = beside.first().and_then(|host| pool.rooms.domain_of(*host, level))?;
        pool.rooms.place_on(&pool.rooms.domains(level)[domain], &job.need, &layout, workers, View::Now, &beside)
    };
    match (shape.same, shape.prefer) {
        (Some(level), _) if !beside.is_empty() => inside(level),
        (None, Some(level)) if !beside.is_empty() => {
            inside(level).or_else(|| pool.rooms.place(&job.need, &layout, workers, View::Now, &beside))
        }
        (_, _) => pool.rooms.place(&job.need, &layout, workers, View::Now, &beside),
    }
}
