//! Victims by entitlement: first what is above its fair share, then, for an owner that is under its quota, what is above quota; last, lower priority in its own
//! queue.
//!
//! Two branches are compared just under the ancestor they share. An *owner* is within its quota with the job in it: it may take a job larger than what the other is
//! over by. A *borrower* stays within its fair share: it never takes a lender under its quota. Both ends are fixed points: an owner isn't a borrower's victim, and a borrower leaves
//! its victims owners of what they have left, so nothing taken is taken back by the same rule.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::plan::Reason;
use crate::policy::Fairness;
use crate::pool::rooms::Spot;
use crate::pool::tree::{QueueAt, ResourceAt};
use crate::ratio::Ratio;

use super::lists::List;
use super::{Candidate, Hunt, Taken, fewest};

/// Candidates of one queue, best first, less those that were tried.
struct Queue {
    at: QueueAt,
    list: Rc<List>,
    tried: BTreeSet<usize>,
    /// Its branch under the ancestor it shares with the asker; its own number for the asker's queue.
    branch: QueueAt,
    /// How far above the asker's queue that ancestor is; zero for the queue itself.
    level: usize,
    /// The one to take next of it, until something changes that it depends on.
    next: Option<Option<Next>>,
}

/// A candidate that may go, its place in the list, and what it is ranked by.
#[derive(Clone, Copy)]
struct Next {
    rank: (Stage, bool, Reverse<Ratio>, Candidate),
    place: usize,
}

/// How far the rules reach into a queue. Lower goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    AboveFairShare,
    AboveQuota,
    OwnQueue,
    Critical,
}

pub(super) fn hunt(hunt: &mut Hunt<'_, '_>) -> Option<Vec<Spot>> {
    let mut queues = within_reach(hunt);
    if !could_be_enough(hunt, &queues) {
        return None;
    }
    hunt.pool.losses_compared |= !queues.is_empty();
    while let Some((number, Next { rank: (stage, .., candidate), place })) = best(hunt, &mut queues) {
        let (branch, level) = (queues[number].branch, queues[number].level);
        queues[number].tried.insert(place);
        for queue in queues.iter_mut().filter(|queue| queue.level > level || queue.branch == branch) {
            queue.next = None;
        }
        if !hunt.take(candidate, reason(stage)) {
            continue;
        }
        if hunt.fits(true).is_some() {
            hunt.give_back_unneeded(true, justified)?;
            return one_instead_of_many(hunt, &queues);
        }
    }
    if !hunt.stopped_by_budget() {
        return None;
    }
    hunt.put_all_back();
    let all = queues.iter().flat_map(|queue| queue.list.candidates.iter().map(|candidate| (queue.at, *candidate)));
    let all: Vec<(QueueAt, Candidate)> = all.collect();
    fewest::hunt(hunt, &all, |hunt, queue, candidate| {
        stage(hunt, queue, candidate).map(|stage| ((stage, Reverse(over(hunt, queue)), candidate), reason(stage)))
    })?;
    hunt.give_back_unneeded(true, justified)
}

/// The queues that the asker's rules could reach, with their candidates: its own, and under each ancestor the branches above their quota, as far as its own branch there would be an owner or
/// a borrower once all below was taken that could be.
fn within_reach(hunt: &Hunt<'_, '_>) -> Vec<Queue> {
    let tree = &hunt.pool.tree;
    let own = hunt.ask.queue;
    let mut queues: Vec<Queue> = Vec::new();
    let collect = |at: QueueAt, branch: QueueAt, level: usize, queues: &mut Vec<Queue>| {
        if hunt.pool.jobs_of.get(at).is_none_or(Vec::is_empty) {
            return;
        }
        let list = if level > 0 {
            hunt.list_of(at)
        } else {
            Rc::new(hunt.list_where(at, |job| hunt.critical || hunt.may_take_within(job)))
        };
        if !list.candidates.is_empty() {
            queues.push(Queue { at, list, tried: BTreeSet::new(), branch, level, next: None });
        }
    };
    collect(own, own, 0, &mut queues);
    let mut mine = own;
    for (level, ancestor) in tree.path(own).skip(1).enumerate() {
        let reach = hunt.amounts.iter().all(|(r, amount)| {
            let most = match hunt.pool.policy.fairness {
                Fairness::DeservedShare => tree.deserved(mine, *r).unwrap_or(0).max(hunt.entitlement.fair(mine, *r)),
                _ => tree.deserved(mine, *r).unwrap_or(0),
            };
            !tree.governs(mine, *r)
                || tree.total(&hunt.pool.after, mine, *r) + amount - removable(hunt, &queues, *r) <= most
        });
        if reach || hunt.critical {
            for branch in tree.children[ancestor].iter().filter(|child| **child != mine) {
                let mut down = vec![*branch];
                while let Some(node) = down.pop() {
                    let over = hunt.short.iter().any(|r| {
                        tree.deserved(node, *r)
                            .map_or(node != *branch, |most| tree.total(&hunt.pool.after, node, *r) > most)
                    });
                    if over || hunt.critical {
                        collect(node, *branch, level + 1, &mut queues);
                        down.extend(&tree.children[node]);
                    }
                }
            }
        }
        mine = ancestor;
    }
    queues
}

/// What the candidates have of a resource, surplus workers counted twice.
fn removable(hunt: &Hunt<'_, '_>, queues: &[Queue], r: ResourceAt) -> i64 {
    if r == hunt.choice.need.model {
        return queues.iter().map(|queue| queue.list.parts).sum();
    }
    let candidates = queues.iter().flat_map(|queue| &queue.list.candidates);
    candidates
        .map(|candidate| {
            let job = &hunt.pool.jobs[candidate.job];
            let workers = if candidate.key.whole { i64::from(job.workers) } else { 1 };
            job.each.iter().filter(|(of, _)| *of == r).map(|(_, each)| each * workers).sum::<i64>()
        })
        .sum()
}

/// Before any search: what is free and what could be taken is at least what is asked, by quota and on the hosts. It never refuses too much.
fn could_be_enough(hunt: &Hunt<'_, '_>, queues: &[Queue]) -> bool {
    let by_quota = hunt.amounts.iter().all(|(r, amount)| {
        hunt.pool.tree.available(&hunt.pool.after, hunt.ask.queue, *r).saturating_add(removable(hunt, queues, *r))
            >= *amount
    });
    by_quota
        && hunt.could_be_placed(
            queues.iter().flat_map(|queue| queue.list.candidates.iter().map(|candidate| candidate.job)),
        )
}

fn reason(stage: Stage) -> Reason {
    match stage {
        Stage::AboveFairShare => Reason::FairShare,
        Stage::AboveQuota => Reason::ReclaimInPool,
        Stage::OwnQueue => Reason::InQueue,
        Stage::Critical => Reason::CriticalWindow,
    }
}

/// The queue to take from next: by stage, surplus before whole jobs, then whoever is furthest above, then the least loss.
fn best(hunt: &Hunt<'_, '_>, queues: &mut [Queue]) -> Option<(usize, Next)> {
    let mut best: Option<(usize, Next)> = None;
    for (number, queue) in queues.iter_mut().enumerate() {
        if queue.next.is_none() {
            queue.next = Some(next_of(hunt, queue));
        }
        if let Some(Some(next)) = queue.next
            && best.as_ref().is_none_or(|(_, least)| next.rank < least.rank)
        {
            best = Some((number, next));
        }
    }
    best
}

fn next_of(hunt: &Hunt<'_, '_>, queue: &Queue) -> Option<Next> {
    let reach = if queue.level > 0 { Reach::of(hunt, queue.at) } else { Reach::Nobody };
    if queue.level > 0 && reach == Reach::Nobody && !hunt.critical {
        return None;
    }
    let mut untried = queue.list.candidates.iter().enumerate().filter(|(place, _)| !queue.tried.contains(place));
    let (stage, place, candidate) = untried
        .find_map(|(place, candidate)| Some((stage_by(hunt, queue.at, reach, *candidate)?, place, *candidate)))?;
    Some(Next { rank: (stage, candidate.key.whole, Reverse(over(hunt, queue.at)), candidate), place })
}

/// Whom of another queue the rules reach now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Nobody,
    /// Those without whom their queue and the branches above it still use their quota.
    Small(Stage),
    Anybody(Stage),
}

impl Reach {
    fn of(hunt: &Hunt<'_, '_>, queue: QueueAt) -> Self {
        let Some((mine, theirs)) = hunt.branches(queue) else { return Self::Nobody };
        let owner = is_owner(hunt, mine);
        if !owner && !is_borrower(hunt, mine) {
            return Self::Nobody;
        }
        let tree = &hunt.pool.tree;
        let above_fair = is_over(hunt, queue, theirs, |node, r| match hunt.pool.policy.fairness {
            Fairness::DeservedShare => tree.deserved(node, r).map(|quota| quota.max(hunt.entitlement.fair(node, r))),
            _ => tree.deserved(node, r),
        });
        match (above_fair, owner) {
            (true, true) => Self::Anybody(Stage::AboveFairShare),
            (true, false) => Self::Small(Stage::AboveFairShare),
            (false, true) if is_over(hunt, queue, theirs, |node, r| tree.deserved(node, r)) => {
                Self::Anybody(Stage::AboveQuota)
            }
            (false, _) => Self::Nobody,
        }
    }
}

/// On what ground a candidate may go now. `None`: on none.
fn stage(hunt: &Hunt<'_, '_>, queue: QueueAt, candidate: Candidate) -> Option<Stage> {
    let reach = if queue == hunt.ask.queue { Reach::Nobody } else { Reach::of(hunt, queue) };
    stage_by(hunt, queue, reach, candidate)
}

fn stage_by(hunt: &Hunt<'_, '_>, queue: QueueAt, reach: Reach, candidate: Candidate) -> Option<Stage> {
    if queue == hunt.ask.queue {
        return Some(if hunt.may_take_within(candidate.job) { Stage::OwnQueue } else { Stage::Critical });
    }
    let entitled = match reach {
        Reach::Anybody(stage) => Some(stage),
        Reach::Small(stage) => hunt
            .branches(queue)
            .is_some_and(|(_, theirs)| leaves_quota(hunt, queue, theirs, candidate))
            .then_some(stage),
        Reach::Nobody => None,
    };
    entitled.or_else(|| hunt.critical.then_some(Stage::Critical))
}

/// Whether each of those taken may go with only those gone: what was put back may have made a borrower of an owner.
fn justified(hunt: &Hunt<'_, '_>, left: &[Taken]) -> bool {
    left.iter().all(|taken| {
        let victim = &hunt.pool.jobs[taken.job];
        if victim.queue == hunt.ask.queue || hunt.critical {
            return true;
        }
        let Some((mine, theirs)) = hunt.branches(victim.queue) else { return false };
        let tree = &hunt.pool.tree;
        let keeps = |node: QueueAt| {
            victim.each.iter().all(|(r, _)| {
                tree.deserved(node, *r).is_none_or(|quota| tree.total(&hunt.pool.after, node, *r) >= quota)
            })
        };
        is_owner(hunt, mine)
            || is_borrower(hunt, mine)
                && tree.path(victim.queue).take_while(|node| *node != theirs).all(keeps)
                && keeps(theirs)
    })
}

/// Whether the asker's branch is within its quota with the job in it.
fn is_owner(hunt: &Hunt<'_, '_>, branch: QueueAt) -> bool {
    fits_under(hunt, branch, |r| hunt.pool.tree.deserved(branch, r))
}

/// Whether the asker's branch stays within its fair share with the job in it, where shares are given.
fn is_borrower(hunt: &Hunt<'_, '_>, branch: QueueAt) -> bool {
    hunt.pool.policy.fairness == Fairness::DeservedShare
        && fits_under(hunt, branch, |r| Some(hunt.entitlement.fair(branch, r)))
}

fn fits_under(hunt: &Hunt<'_, '_>, branch: QueueAt, most: impl Fn(ResourceAt) -> Option<i64>) -> bool {
    hunt.amounts.iter().filter(|(r, _)| hunt.pool.tree.governs(branch, *r)).all(|(r, amount)| {
        most(*r).is_some_and(|most| hunt.pool.tree.total(&hunt.pool.after, branch, *r) + amount <= most)
    })
}

/// Whether a queue and each branch above it, up to the one that is compared, uses more than `of` of a resource that is short. A queue that has no quota isn't judged; the branch is.
fn is_over(
    hunt: &Hunt<'_, '_>,
    queue: QueueAt,
    branch: QueueAt,
    of: impl Fn(QueueAt, ResourceAt) -> Option<i64>,
) -> bool {
    let tree = &hunt.pool.tree;
    hunt.short.iter().any(|r| {
        let over = |node: QueueAt| of(node, *r).map(|most| tree.total(&hunt.pool.after, node, *r) > most);
        let own = |node: QueueAt| tree.deserved(node, *r).map(|most| tree.total(&hunt.pool.after, node, *r) > most);
        over(branch) == Some(true)
            && tree.path(queue).take_while(|node| *node != branch).all(|node| own(node) != Some(false))
    })
}

/// Whether the victim's queue and the branches above it still use their quota without the candidate.
fn leaves_quota(hunt: &Hunt<'_, '_>, queue: QueueAt, branch: QueueAt, candidate: Candidate) -> bool {
    let tree = &hunt.pool.tree;
    let job = &hunt.pool.jobs[candidate.job];
    let workers = if candidate.key.whole { i64::from(job.workers) } else { 1 };
    let stays = |node: QueueAt| {
        job.each.iter().all(|(r, each)| {
            tree.deserved(node, *r).is_none_or(|quota| tree.total(&hunt.pool.after, node, *r) - each * workers >= quota)
        })
    };
    tree.path(queue).take_while(|node| *node != branch).all(stays) && stays(branch)
}

/// How far a queue's branch is above its fair share.
fn over(hunt: &Hunt<'_, '_>, queue: QueueAt) -> Ratio {
    let branch = hunt.branches(queue).map_or(queue, |(_, theirs)| theirs);
    hunt.short
        .iter()
        .map(|r| {
            let total = hunt.pool.tree.total(&hunt.pool.after, branch, *r);
            let part = match hunt.pool.policy.fairness {
                Fairness::DeservedShare => hunt.entitlement.fair(branch, *r),
                _ => hunt.pool.tree.deserved(branch, *r).unwrap_or(0),
            };
            Ratio::of(i128::from(total), i128::from(part))
        })
        .max()
        .unwrap_or(Ratio::ZERO)
}

/// Where several were found, one job in their place, if it costs no more: no higher priority, no more work lost, no more cards.
fn one_instead_of_many(hunt: &mut Hunt<'_, '_>, queues: &[Queue]) -> Option<Vec<Spot>> {
    let ended: Vec<usize> = hunt.taken.iter().map(|taken| taken.job).collect();
    let surplus_only = hunt.taken.iter().all(|taken| hunt.pool.jobs[taken.job].workers > 0);
    if ended.len() < 2 || surplus_only {
        return hunt.fits(true);
    }
    let cards: i64 =
        hunt.taken.iter().map(|taken| hunt.pool.jobs[taken.job].need.parts * i64::from(taken.workers)).sum();
    let lost: i128 = hunt.taken.iter().map(|taken| hunt.pool.loss(taken.job, taken.workers).part_ms()).sum();
    let priority = hunt.taken.iter().map(|taken| hunt.pool.jobs[taken.job].run.priority).max().unwrap_or(i32::MIN);
    let restartable = hunt.taken.iter().all(|taken| hunt.pool.jobs[taken.job].run.restartable);
    let many = std::mem::take(&mut hunt.taken);
    for taken in many.iter().rev() {
        hunt.pool.put_back(taken.job, taken.workers, taken.spots.clone());
    }
    let all = queues.iter().flat_map(|queue| queue.list.candidates.iter().map(|candidate| (queue.at, candidate)));
    for (queue, candidate) in all.filter(|(_, candidate)| candidate.key.whole && !ended.contains(&candidate.job)) {
        let job = &hunt.pool.jobs[candidate.job];
        let dearer = job.need.parts * i64::from(job.workers) > cards
            || job.run.priority > priority
            || restartable && !job.run.restartable
            || hunt.pool.loss(candidate.job, job.workers).part_ms() > lost;
        if dearer {
            continue;
        }
        let Some(stage) = stage(hunt, queue, *candidate) else { continue };
        if hunt.take(*candidate, reason(stage)) {
            if let Some(spots) = hunt.fits(true)
                && justified(hunt, &hunt.taken)
            {
                return Some(spots);
            }
            hunt.put_back_last();
        }
    }
    for mut taken in many {
        taken.spots = hunt.pool.take_out(taken.job, taken.workers);
        hunt.taken.push(taken);
    }
    hunt.fits(true)
}
