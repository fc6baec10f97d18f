//! Victims by nearness to the quota, then priority: the asker's branch takes back what others borrow, and below its own priority what its own queue has.
//!
//! A queue has precedence over those with whom it shares an ancestor from the point upwards where its request fits into the quota of a branch it is in; there
//! it takes whatever is above quota. Elsewhere it may take only while it stays within its own quota, or, if its rules say so, lower priorities in order to borrow.

use crate::plan::Reason;
use crate::policy::{Reclaim, WithinQueue};
use crate::pool::JobAt;
use crate::pool::rooms::Spot;
use crate::pool::tree::QueueAt;

use super::{Candidate, Hunt, fewest};

/// On what ground a candidate may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ground {
    /// It is of the asker's queue.
    OwnQueue,
    /// The asker's branch is within its quota.
    Precedence,
    /// Only if the asker's queue doesn't borrow.
    WithoutBorrowing,
    /// Its priority is low enough for a borrower.
    WhileBorrowing,
}

struct Target {
    candidate: Candidate,
    ground: Ground,
    /// The ancestor it shares with the asker; the queues below it are looked at each time.
    shared: Option<QueueAt>,
}

pub(super) fn hunt(hunt: &mut Hunt<'_, '_>) -> Option<Vec<Spot>> {
    if !may_preempt(hunt) {
        return None;
    }
    let (mut precedence, mut others) = from_other_queues(hunt);
    let queue = hunt.ask.queue;
    let rules = hunt.pool.rules(queue);
    let mut own: Vec<Target> = Vec::new();
    if rules.within_queue != WithinQueue::Never {
        for job in hunt.pool.jobs_of[queue].clone() {
            if hunt.may_take_within(job) {
                own.extend(hunt.candidates_of(job, false).into_iter().map(|candidate| Target {
                    candidate,
                    ground: Ground::OwnQueue,
                    shared: None,
                }));
            }
        }
    }
    for list in [&mut precedence, &mut others, &mut own] {
        list.sort_by_key(|target| target.candidate);
    }
    let none_with_precedence = precedence.is_empty();
    let none_elsewhere = precedence.is_empty() && others.is_empty();
    let targets: Vec<Target> = precedence.into_iter().chain(others).chain(own).collect();
    hunt.pool.losses_compared |= !targets.is_empty();
    let may_borrow = rules.while_borrowing.is_some();
    let tries: &[bool] = if none_elsewhere || !may_borrow && !under_nominal(hunt) {
        &[true]
    } else if !may_borrow && none_with_precedence {
        &[false, true]
    } else {
        &[true, false]
    };
    let never_alone = !hunt.pool.tree.holds_alone(queue, &hunt.amounts);
    for borrowing in tries {
        if !borrowing && never_alone {
            continue;
        }
        for target in &targets {
            if !still_valid(hunt, target, *borrowing) || !hunt.take(target.candidate, reason(target.ground)) {
                continue;
            }
            if hunt.fits(*borrowing).is_some() {
                return hunt.give_back_unneeded(*borrowing, |_, _| true);
            }
        }
        hunt.put_all_back();
        if !hunt.stopped_by_budget() {
            continue;
        }
        let all: Vec<(QueueAt, Candidate)> =
            targets.iter().enumerate().map(|(at, target)| (at, target.candidate)).collect();
        let found = fewest::hunt(hunt, &all, |hunt, at, _| {
            let target = &targets[at];
            still_valid(hunt, target, *borrowing).then(|| (at, reason(target.ground)))
        });
        if found.is_some() && hunt.fits(*borrowing).is_some() {
            return hunt.give_back_unneeded(*borrowing, |_, _| true);
        }
        hunt.put_all_back();
    }
    None
}

/// A request that its queue could never hold alone has others ended only where its branch owns what is missing, or where it may borrow by ending others.
fn may_preempt(hunt: &Hunt<'_, '_>) -> bool {
    let tree = &hunt.pool.tree;
    let queue = hunt.ask.queue;
    if hunt.pool.rules(queue).while_borrowing.is_some() {
        return true;
    }
    hunt.amounts.iter().filter(|(r, _)| tree.governs(queue, *r)).all(|(r, amount)| {
        if *amount <= tree.nominal(queue, *r).unwrap_or(0) {
            return true;
        }
        let mut rest = *amount;
        for node in tree.path(queue) {
            if tree.shared(&hunt.pool.after, node, *r) + rest <= tree.subtree(node, *r) {
                return tree.parent[node].is_some();
            }
            rest -= tree.local_available(&hunt.pool.after, node, *r);
        }
        false
    })
}

fn under_nominal(hunt: &Hunt<'_, '_>) -> bool {
    let tree = &hunt.pool.tree;
    let queue = hunt.ask.queue;
    hunt.short.iter().all(|r| tree.shared(&hunt.pool.after, queue, *r) < tree.nominal(queue, *r).unwrap_or(0))
}

/// Candidates of other queues, ancestor by ancestor: those over whom the asker's branch has precedence, and the rest.
fn from_other_queues(hunt: &Hunt<'_, '_>) -> (Vec<Target>, Vec<Target>) {
    let (mut precedence, mut others) = (Vec::new(), Vec::new());
    let queue = hunt.ask.queue;
    if hunt.pool.rules(queue).reclaim == Reclaim::Never {
        return (precedence, others);
    }
    let tree = &hunt.pool.tree;
    let mut rest = hunt.amounts.clone();
    let mut has_precedence = tree.within_subtree(&hunt.pool.after, queue, &rest);
    let subtract = |rest: &mut Vec<(usize, i64)>, node: QueueAt| {
        for (r, amount) in rest.iter_mut() {
            *amount = (*amount - tree.local_available(&hunt.pool.after, node, *r)).max(0);
        }
    };
    subtract(&mut rest, queue);
    let mut below = queue;
    for ancestor in tree.path(queue).skip(1) {
        let list = if has_precedence { &mut precedence } else { &mut others };
        for child in &tree.children[ancestor] {
            if *child != below {
                collect(hunt, *child, ancestor, has_precedence, list);
            }
        }
        has_precedence |= tree.within_subtree(&hunt.pool.after, ancestor, &rest);
        subtract(&mut rest, ancestor);
        below = ancestor;
    }
    (precedence, others)
}

/// Goes down from `node` through branches that are above their quota.
fn collect(hunt: &Hunt<'_, '_>, node: QueueAt, shared: QueueAt, precedence: bool, list: &mut Vec<Target>) {
    if within_quota(hunt, node) {
        return;
    }
    for child in &hunt.pool.tree.children[node] {
        collect(hunt, *child, shared, precedence, list);
    }
    for job in &hunt.pool.jobs_of[node] {
        if let Some(ground) = ground(hunt, *job, precedence) {
            list.extend(hunt.candidates_of(*job, false).into_iter().map(|candidate| Target {
                candidate,
                ground,
                shared: Some(shared),
            }));
        }
    }
}

fn ground(hunt: &Hunt<'_, '_>, job: JobAt, precedence: bool) -> Option<Ground> {
    let rules = hunt.pool.rules(hunt.ask.queue);
    let victim = hunt.pool.jobs[job].run.priority;
    let asker = hunt.ask.pending.priority;
    match rules.reclaim {
        Reclaim::Never => return None,
        Reclaim::LowerPriority if victim >= asker => return None,
        Reclaim::LowerPriority | Reclaim::Any => {}
    }
    Some(match rules.while_borrowing {
        _ if precedence => Ground::Precedence,
        Some(borrowing) if victim < asker && borrowing.victim_priority_max.is_none_or(|most| victim <= most) => {
            Ground::WhileBorrowing
        }
        Some(_) | None => Ground::WithoutBorrowing,
    })
}

fn within_quota(hunt: &Hunt<'_, '_>, node: QueueAt) -> bool {
    let tree = &hunt.pool.tree;
    hunt.short.iter().all(|r| tree.shared(&hunt.pool.after, node, *r) <= tree.subtree(node, *r))
}

fn still_valid(hunt: &Hunt<'_, '_>, target: &Target, borrowing: bool) -> bool {
    let Some(shared) = target.shared else { return true };
    if borrowing && target.ground == Ground::WithoutBorrowing {
        return false;
    }
    let job = &hunt.pool.jobs[target.candidate.job];
    let tree = &hunt.pool.tree;
    if tree.path(job.queue).take_while(|node| *node != shared).any(|node| within_quota(hunt, node)) {
        return false;
    }
    let keeps = hunt.pool.rules(hunt.ask.queue).while_borrowing.is_some_and(|rules| rules.keep_victim_queue_at_nominal);
    if keeps && target.ground == Ground::WhileBorrowing {
        let workers = if target.candidate.key.whole { i64::from(job.workers) } else { 1 };
        let quota_stays = |node: QueueAt| {
            job.each
                .iter()
                .all(|(r, each)| tree.shared(&hunt.pool.after, node, *r) - each * workers >= tree.subtree(node, *r))
        };
        return tree.path(job.queue).take_while(|node| *node != shared).all(quota_stays);
    }
    true
}

fn reason(ground: Ground) -> Reason {
    match ground {
        Ground::OwnQueue => Reason::InQueue,
        Ground::Precedence | Ground::WithoutBorrowing => Reason::ReclaimInPool,
        Ground::WhileBorrowing => Reason::ReclaimWhileBorrowing,
    }
}
