//! Who is looked at next.
//!
//! Inside a queue: those who were promised room, then an approved critical window, then priority, then who came first; whoever was ended for others lately stands
//! behind. Between queues, at each node of the tree: those within quota, then a critical window, then the queue that would have least of its share with the job in it, then who came
//! first. Priority never speaks between queues where shares are weighed.

use std::cmp::{Ordering, Reverse};
use std::collections::VecDeque;

use cardhour_domain::{CardTime, Timestamp};

use crate::cup::Cup;
use crate::entitlement::{Entitlement, past_usage};
use crate::policy::Fairness;
use crate::pool::tree::{QueueAt, ResourceAt};
use crate::pool::{AskAt, Choice, Pool};
use crate::ratio::Ratio;

/// The line: pending jobs by queue, and the best of each node.
pub(crate) struct Line {
    queues: Vec<VecDeque<AskAt>>,
    best: Vec<Option<Standing>>,
    /// Whose of each node's children is next.
    cups: Vec<Cup>,
    /// The place of each node among its siblings.
    place: Vec<usize>,
    roots: Vec<QueueAt>,
    past_part_ms: Vec<i128>,
}

/// The best job below a node.
#[derive(Clone)]
struct Standing {
    ask: AskAt,
    rank: Rank,
    priority: i32,
    submitted: Timestamp,
    /// The node's share with the job in it.
    share: Ratio,
}

/// How a job stands whatever its queue's share is; less is better.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    unpromised: bool,
    /// How far up it has to borrow; zero: within its own quota.
    borrows: usize,
    cooling: bool,
    ordinary: bool,
}

impl Line {
    /// All that waits. `promised`: jobs with a reservation.
    pub fn new(pool: &Pool<'_>, entitlement: &Entitlement, promised: &[AskAt]) -> Self {
        let mut queues = vec![VecDeque::new(); pool.tree.queues.len()];
        for (at, ask) in pool.asks.iter().enumerate() {
            queues[ask.queue].push_back(at);
        }
        for queue in &mut queues {
            queue.make_contiguous().sort_by_cached_key(|at| {
                let pending = pool.asks[*at].pending;
                let rank = rank_inside(pool, *at, promised);
                (rank.unpromised, rank.cooling, rank.ordinary, Reverse(pending.priority), pending.submitted, *at)
            });
        }
        let roots = (0..pool.tree.parent.len()).filter(|node| pool.tree.parent[*node].is_none()).collect();
        let cups = pool.tree.children.iter().map(|children| Cup::of(children.len())).collect();
        let mut place = vec![0; pool.tree.parent.len()];
        for children in &pool.tree.children {
            for (at, child) in children.iter().enumerate() {
                place[*child] = at;
            }
        }
        let mut line = Self {
            cups,
            place,
            queues,
            best: vec![None; pool.tree.parent.len()],
            roots,
            past_part_ms: past_usage(pool),
        };
        let mut nodes: Vec<QueueAt> = (0..pool.tree.parent.len()).collect();
        nodes.sort_by_key(|node| Reverse(pool.tree.depth[*node]));
        for node in nodes {
            line.look_at(node, pool, entitlement, promised);
        }
        line
    }

    /// The next job, taken out of the line; the caller has its queue looked at again by [`Self::refresh`] once it has decided.
    pub fn next(&mut self, pool: &Pool<'_>, entitlement: &Entitlement, promised: &[AskAt]) -> Option<AskAt> {
        loop {
            let root = self
                .roots
                .iter()
                .copied()
                .filter(|node| self.best[*node].is_some())
                .min_by(|a, b| self.compare(*a, *b, pool))?;
            let ask = self.best[root].as_ref()?.ask;
            let queue = pool.asks[ask].queue;
            // What others were given since may have made it borrow further up.
            let fresh = rank(pool, ask, promised);
            if self.best[queue].as_ref().is_some_and(|best| best.ask == ask && best.rank != fresh) {
                self.refresh(queue, pool, entitlement, promised);
                continue;
            }
            let place = self.queues[queue].iter().position(|waiting| *waiting == ask)?;
            self.queues[queue].remove(place);
            return Some(ask);
        }
    }

    /// Looks at a queue and all above it again, after something of it has changed.
    pub fn refresh(&mut self, queue: QueueAt, pool: &Pool<'_>, entitlement: &Entitlement, promised: &[AskAt]) {
        let path: Vec<QueueAt> = pool.tree.path(queue).collect();
        for node in path {
            self.look_at(node, pool, entitlement, promised);
        }
    }

    /// Counts what a queue was given as if it had used it for an hour, so that the next in line is the other's.
    pub fn charge(&mut self, pool: &Pool<'_>, queue: QueueAt, parts: i64) {
        let hour = i128::from(parts) * (CardTime::PART_MS_PER_CARD_HOUR / i128::from(crate::pool::rooms::CARD));
        for node in pool.tree.path(queue) {
            self.past_part_ms[node] += hour;
        }
    }

    /// Takes the jobs of a queue that `drop` names out of the line.
    pub fn drop_from(&mut self, queue: QueueAt, drop: impl Fn(AskAt) -> bool) -> Vec<AskAt> {
        let dropped = self.queues[queue].iter().copied().filter(|ask| drop(*ask)).collect();
        self.queues[queue].retain(|ask| !drop(*ask));
        dropped
    }

    fn look_at(&mut self, node: QueueAt, pool: &Pool<'_>, entitlement: &Entitlement, promised: &[AskAt]) {
        let own = self.queues.get(node).and_then(|queue| queue.front()).map(|ask| {
            let pending = pool.asks[*ask].pending;
            (*ask, rank(pool, *ask, promised), pending.priority, pending.submitted)
        });
        let below = self.cups[node]
            .winner()
            .and_then(|child| self.best[child].as_ref())
            .map(|best| (best.ask, best.rank, best.priority, best.submitted));
        let best = match (own, below) {
            (Some(own), Some(below)) if (below.1, below.3) < (own.1, own.3) => Some(below),
            (own, below) => own.or(below),
        };
        self.best[node] = best.map(|(ask, rank, priority, submitted)| Standing {
            ask,
            rank,
            priority,
            submitted,
            share: self.share(node, ask, rank, pool, entitlement),
        });
        if let Some(up) = pool.tree.parent[node] {
            let mut cup = std::mem::take(&mut self.cups[up]);
            let plays = self.best[node].is_some().then_some(node);
            cup.play(self.place[node], plays, |a, b| self.compare(a, b, pool).is_lt());
            self.cups[up] = cup;
        }
    }

    /// Of two nodes that both have a job, whose is next.
    fn compare(&self, a: QueueAt, b: QueueAt, pool: &Pool<'_>) -> Ordering {
        let (Some(one), Some(other)) = (&self.best[a], &self.best[b]) else { return a.cmp(&b) };
        let by_priority = match pool.policy.fairness {
            Fairness::None | Fairness::BorrowShare(_) | Fairness::PastUsage => other.priority.cmp(&one.priority),
            Fairness::DeservedShare | Fairness::DeservedCap | Fairness::Guaranteed => Ordering::Equal,
        };
        one.rank
            .cmp(&other.rank)
            .then_with(|| one.share.cmp(&other.share))
            .then(by_priority)
            .then_with(|| one.submitted.cmp(&other.submitted))
            .then_with(|| one.ask.cmp(&other.ask))
    }

    /// What share of its own a node has with a job in it.
    fn share(&self, node: QueueAt, ask: AskAt, rank: Rank, pool: &Pool<'_>, entitlement: &Entitlement) -> Ratio {
        let tree = &pool.tree;
        if node >= tree.queues.len() {
            return Ratio::ZERO;
        }
        let choices = &pool.asks[ask].choices;
        let choice = match choices.as_slice() {
            [only] => Some(only),
            _ => choices.iter().min_by_key(|choice| borrows(pool, ask, choice)),
        };
        let workers = i64::from(pool.asks[ask].pending.min_workers);
        let each = choice.map_or(&[][..], |choice| &choice.each);
        let amounts = each.iter().map(|(r, each)| (*r, each.saturating_mul(workers)));
        match pool.policy.fairness {
            Fairness::None => Ratio::ZERO,
            Fairness::BorrowShare(_) => borrow_share(pool, node, &amounts.collect::<Vec<_>>()),
            Fairness::DeservedShare | Fairness::DeservedCap | Fairness::Guaranteed => amounts
                .map(|(r, amount)| {
                    let with_it = tree.total(&pool.after, node, r) + amount;
                    let part = match tree.deserved(node, r) {
                        Some(deserved) if rank.borrows == 0 => deserved,
                        Some(_) | None => entitlement.fair(node, r),
                    };
                    Ratio::of(i128::from(with_it), i128::from(part))
                })
                .max()
                .unwrap_or(Ratio::ZERO),
            Fairness::PastUsage => Ratio::of(self.past_part_ms[node].max(1), i128::from(tree.weight_milli(node))),
        }
    }
}

/// What a node borrows with `more` of what its parent can lend, over its weight; the greatest over the resources named. Zero where it borrows nothing.
pub(crate) fn borrow_share(pool: &Pool<'_>, node: QueueAt, more: &[(ResourceAt, i64)]) -> Ratio {
    let tree = &pool.tree;
    let weight = tree.weight_milli(node);
    more.iter()
        .map(|(r, more)| {
            let borrowed = tree.shared(&pool.after, node, *r) + more - tree.subtree(node, *r);
            let lendable = tree.lendable_above(node, *r);
            Ratio::of(i128::from(borrowed), i128::from(lendable) * i128::from(weight))
        })
        .max()
        .unwrap_or(Ratio::ZERO)
}

fn rank_inside(pool: &Pool<'_>, ask: AskAt, promised: &[AskAt]) -> Rank {
    let pending = pool.asks[ask].pending;
    let cooling = pending
        .last_preempted
        .and_then(|ended| ended.checked_add_ms(pool.policy.cool_down_ms))
        .is_some_and(|until| pool.at() < until);
    Rank {
        unpromised: promised.binary_search(&ask).is_err(),
        borrows: 0,
        cooling,
        ordinary: !pending.critical.as_ref().is_some_and(|window| window.holds_at(pool.at())),
    }
}

fn rank(pool: &Pool<'_>, ask: AskAt, promised: &[AskAt]) -> Rank {
    let choices = pool.asks[ask].choices.iter();
    Rank {
        borrows: choices.map(|choice| borrows(pool, ask, choice)).min().unwrap_or(0),
        ..rank_inside(pool, ask, promised)
    }
}

/// How far up a job has to borrow on one of its models: the height of the lowest queue above it that has room for it within its own quota; zero for its own.
///
/// A queue that says nothing of the resource is passed over. Where nothing has room it is the height of the whole tree.
pub(crate) fn borrows(pool: &Pool<'_>, ask: AskAt, choice: &Choice) -> usize {
    let tree = &pool.tree;
    let queue = pool.asks[ask].queue;
    let workers = i64::from(pool.asks[ask].pending.min_workers);
    let amounts = choice.each.iter().map(|(r, each)| (*r, each.saturating_mul(workers)));
    let mut governed = amounts.filter(|(r, _)| tree.governs(queue, *r));
    // Nearly every job asks for one thing: it is looked at in place.
    let (first, second) = (governed.next(), governed.next());
    match (first, second) {
        (None, _) => height_needed(pool, queue, &mut []),
        (Some(only), None) => height_needed(pool, queue, &mut [only]),
        (Some(_), Some(_)) => {
            height_needed(pool, queue, &mut first.into_iter().chain(second).chain(governed).collect::<Vec<_>>())
        }
    }
}

/// How far up `rest` has to be borrowed.
fn height_needed(pool: &Pool<'_>, queue: QueueAt, rest: &mut [(ResourceAt, i64)]) -> usize {
    let tree = &pool.tree;
    let mut height = 0;
    let mut spoken = false;
    for node in tree.path(queue) {
        height = tree.height[node];
        if Some(node) == tree.pool {
            break;
        }
        let silent = rest.iter().all(|(r, _)| tree.quota(node, *r).is_none());
        if silent && tree.parent[node].is_some() {
            continue;
        }
        let fits = match pool.policy.fairness.counts_hosts() {
            true => rest.iter().all(|(r, amount)| {
                tree.deserved(node, *r).is_some_and(|deserved| tree.total(&pool.after, node, *r) + amount <= deserved)
            }),
            false => tree.within_subtree(&pool.after, node, rest),
        };
        if fits {
            return if spoken { height } else { 0 };
        }
        spoken = true;
        if !pool.policy.fairness.counts_hosts() {
            for (r, amount) in rest.iter_mut() {
                *amount -= tree.local_available(&pool.after, node, *r);
            }
        }
    }
    height.max(1)
}
