//! Victims by what each queue borrows: the branch that borrows most gives first, compared just under the ancestor it shares with the asker.
//!
//! A job may go when the asker's share afterwards is at most its branch's share afterwards; failing that, when it is less than its branch's share before. The comparison is made again on the final
//! set: a set that would let the victim come back by the same rule isn't taken, so two queues never end one another's jobs for ever.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::order::borrow_share;
use crate::plan::Reason;
use crate::policy::{Reclaim, ShareRules, WithinQueue};
use crate::pool::rooms::Spot;
use crate::pool::tree::QueueAt;
use crate::ratio::Ratio;

use super::{Candidate, Hunt, Taken};

/// Candidates of each queue, and the branches that have none left.
struct Targets {
    of: BTreeMap<QueueAt, VecDeque<Candidate>>,
    pruned: BTreeSet<QueueAt>,
}

pub(super) fn hunt(hunt: &mut Hunt<'_, '_>, rules: ShareRules) -> Option<Vec<Spot>> {
    let mut targets = Targets { of: candidates(hunt), pruned: BTreeSet::new() };
    hunt.pool.losses_compared |= !targets.of.is_empty();
    let first = if rules.final_at_most { Rule::FinalAtMost } else { Rule::InitialLess };
    let before: BTreeMap<QueueAt, Ratio> =
        (0..hunt.pool.tree.parent.len()).map(|node| (node, borrow_share(hunt.pool, node, &nothing(hunt)))).collect();
    let mut again: Vec<(QueueAt, Candidate)> = Vec::new();
    let mut done = pass(hunt, &mut targets, first, Some(&mut again));
    if !done && rules.final_at_most && rules.initial_less {
        let mut of: BTreeMap<QueueAt, VecDeque<Candidate>> = BTreeMap::new();
        for (queue, candidate) in again {
            of.entry(queue).or_default().push_back(candidate);
        }
        let mut targets = Targets { of, pruned: BTreeSet::new() };
        done = pass(hunt, &mut targets, Rule::InitialLess, None);
    }
    if !done {
        return None;
    }
    let spots = hunt.give_back_unneeded(true, |hunt, left| holds_on_final_set(hunt, left, &before))?;
    holds_on_final_set(hunt, &hunt.taken, &before).then_some(spots)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    FinalAtMost,
    InitialLess,
}

/// Takes candidates by one rule until the asker fits. Those the rule refuses go to `refused`.
fn pass(
    hunt: &mut Hunt<'_, '_>,
    targets: &mut Targets,
    rule: Rule,
    mut refused: Option<&mut Vec<(QueueAt, Candidate)>>,
) -> bool {
    while let Some(queue) = next_queue(hunt, targets) {
        if queue == hunt.ask.queue {
            if let Some(candidate) = targets.of.get_mut(&queue).and_then(VecDeque::pop_front)
                && hunt.take(candidate, Reason::InQueue)
                && hunt.fits(true).is_some()
            {
                return true;
            }
            continue;
        }
        let Some((mine, theirs)) = hunt.branches(queue) else {
            targets.pruned.insert(queue);
            continue;
        };
        let amounts = hunt.amounts.clone();
        let asker = borrow_share(hunt.pool, mine, &amounts);
        let old = borrow_share(hunt.pool, theirs, &nothing(hunt));
        let second_round = refused.is_none();
        while let Some(candidate) = targets.of.get_mut(&queue).and_then(VecDeque::pop_front) {
            let allowed = match rule {
                Rule::FinalAtMost => asker <= share_without(hunt, candidate, theirs),
                Rule::InitialLess => asker < old,
            };
            if !allowed {
                if let Some(refused) = refused.as_deref_mut() {
                    refused.push((queue, candidate));
                    continue;
                }
                break;
            }
            if !hunt.take(candidate, Reason::FairShare) {
                continue;
            }
            if hunt.fits(true).is_some() {
                return true;
            }
            break;
        }
        if second_round {
            targets.pruned.insert(queue);
        }
    }
    false
}

fn nothing(hunt: &Hunt<'_, '_>) -> Vec<(usize, i64)> {
    hunt.amounts.iter().map(|(r, _)| (*r, 0)).collect()
}

fn share_without(hunt: &mut Hunt<'_, '_>, candidate: Candidate, branch: QueueAt) -> Ratio {
    let workers = if candidate.key.whole { hunt.pool.jobs[candidate.job].workers } else { 1 };
    let spots = hunt.pool.take_out(candidate.job, workers);
    let share = borrow_share(hunt.pool, branch, &nothing(hunt));
    hunt.pool.put_back(candidate.job, workers, spots);
    share
}

/// Whom the rules let go: of its own queue by priority, of others that borrow what the asker lacks.
fn candidates(hunt: &Hunt<'_, '_>) -> BTreeMap<QueueAt, VecDeque<Candidate>> {
    let tree = &hunt.pool.tree;
    let queue = hunt.ask.queue;
    let rules = hunt.pool.rules(queue);
    let root = tree.path(queue).last();
    let mut all = BTreeMap::new();
    for other in 0..tree.queues.len() {
        let borrows = || hunt.short.iter().any(|r| tree.shared(&hunt.pool.after, other, *r) > tree.subtree(other, *r));
        let mut of: Vec<Candidate> = Vec::new();
        if other == queue {
            if rules.within_queue == WithinQueue::Never {
                continue;
            }
            for job in &hunt.pool.jobs_of[other] {
                if hunt.may_take_within(*job) {
                    of.extend(hunt.candidates_of(*job, false));
                }
            }
        } else if rules.reclaim != Reclaim::Never && tree.path(other).last() == root && borrows() {
            for job in &hunt.pool.jobs_of[other] {
                let lower = hunt.pool.jobs[*job].run.priority < hunt.ask.pending.priority;
                if rules.reclaim == Reclaim::Any || lower {
                    of.extend(hunt.candidates_of(*job, false));
                }
            }
        }
        if !of.is_empty() {
            of.sort_unstable();
            all.insert(other, VecDeque::from(of));
        }
    }
    all
}

/// From the root down, always into the child that borrows most; of equal ones the first. Branches that borrow nothing are left out, but the asker's own.
fn next_queue(hunt: &Hunt<'_, '_>, targets: &mut Targets) -> Option<QueueAt> {
    let tree = &hunt.pool.tree;
    let own: Vec<QueueAt> = tree.path(hunt.ask.queue).collect();
    let root = *own.last()?;
    'again: loop {
        if targets.pruned.contains(&root) {
            return None;
        }
        let mut here = root;
        loop {
            let mut best: Option<(Ratio, bool, QueueAt)> = None;
            let has_own = |node: QueueAt| targets.of.get(&node).is_some_and(|of| !of.is_empty());
            for child in &tree.children[here] {
                if targets.pruned.contains(child) {
                    continue;
                }
                let on_path = own.contains(child);
                let more: Vec<(usize, i64)> = if on_path { hunt.amounts.clone() } else { nothing(hunt) };
                let share = borrow_share(hunt.pool, *child, &more);
                let leaf = tree.children[*child].is_empty();
                if share.is_zero() && !on_path || leaf && !has_own(*child) {
                    targets.pruned.insert(*child);
                    continue;
                }
                let better = best.is_none_or(|(most, inner, _)| (share, !leaf) > (most, inner));
                if better {
                    best = Some((share, !leaf, *child));
                }
            }
            match best {
                Some((_, _, child)) if tree.children[child].is_empty() => return Some(child),
                Some((_, _, child)) => here = child,
                None if has_own(here) => return Some(here),
                None => {
                    targets.pruned.insert(here);
                    continue 'again;
                }
            }
        }
    }
}

/// On the final set: no victim's branch could take its room back by the rules it was taken by.
fn holds_on_final_set(hunt: &Hunt<'_, '_>, left: &[Taken], before: &BTreeMap<QueueAt, Ratio>) -> bool {
    left.iter().all(|taken| {
        let victim = &hunt.pool.jobs[taken.job];
        let Some((mine, theirs)) = hunt.branches(victim.queue) else { return true };
        let asker = borrow_share(hunt.pool, mine, &hunt.amounts);
        let now = borrow_share(hunt.pool, theirs, &nothing(hunt));
        asker <= now || before.get(&theirs).is_some_and(|old| asker < *old)
    })
}
