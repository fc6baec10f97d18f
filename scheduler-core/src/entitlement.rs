//! The fair share of each queue of each resource, from the root down.
//!
//! What a node has is divided among its children by [`divide`]: what they deserve, then by queue priority and weight, as far as they have work for it. Demand is
//! what runs and what waits. Past usage moves the weights, so only what is above quota.

use crate::pool::Pool;
use crate::pool::rooms::CARD;
use crate::pool::tree::{QueueAt, ResourceAt};
use crate::share::{Claim, divide, weight_after_usage};
use crate::snapshot::Resource;

/// Fair shares, by queue and resource.
pub(crate) struct Entitlement {
    fair: Vec<i64>,
    resources: usize,
}

impl Entitlement {
    /// Of the pool as it is, before anything is decided.
    ///
    /// Cost: a look at each pending job, and a division for each queue that has queues below it and each resource.
    pub fn of(pool: &Pool<'_>) -> Self {
        let tree = &pool.tree;
        let width = pool.resources.len();
        let nodes = tree.parent.len();
        let mut by_depth: Vec<QueueAt> = (0..nodes).collect();
        by_depth.sort_by_key(|node| tree.depth[*node]);
        let demand = demand(pool, &by_depth);
        let past = past_usage(pool);
        let all_part_ms = could_give_part_ms(pool);
        let mut fair = vec![0i64; nodes * width];
        for node in by_depth {
            if tree.parent[node].is_none() {
                for r in 0..width {
                    fair[node * width + r] = tree.subtree(node, r);
                }
            }
            let mut children = tree.children[node].clone();
            if children.is_empty() {
                continue;
            }
            children.sort_by_key(|child| (tree.queues[*child].created, *child));
            let mut claims: Vec<Claim> = children
                .iter()
                .zip(weights(pool, &children, &past, all_part_ms))
                .map(|(child, weight)| Claim {
                    deserved: 0,
                    weight,
                    demand: 0,
                    max: None,
                    priority: tree.queues[*child].over_quota_priority,
                })
                .collect();
            for r in 0..width {
                let unit = match pool.resources[r] {
                    Resource::Cards(_) => CARD,
                    Resource::Cpu | Resource::Memory => 1,
                };
                for (child, claim) in children.iter().zip(&mut claims) {
                    claim.deserved = tree.deserved(*child, r).unwrap_or(0);
                    claim.demand = demand[child * width + r];
                    claim.max = tree.quota(*child, r).and_then(|quota| quota.max);
                }
                let division = divide(fair[node * width + r], unit, &claims);
                for (child, share) in children.iter().zip(division.shares) {
                    fair[child * width + r] = share;
                }
            }
        }
        Self { fair, resources: width }
    }

    /// The fair share of a queue.
    pub fn fair(&self, node: QueueAt, r: ResourceAt) -> i64 {
        self.fair[node * self.resources + r]
    }
}

/// What runs and what waits, by queue and resource: at the queue and below it. `by_depth`: the queues, the root first.
fn demand(pool: &Pool<'_>, by_depth: &[QueueAt]) -> Vec<i64> {
    let tree = &pool.tree;
    let width = pool.resources.len();
    let mut demand = vec![0i64; by_depth.len() * width];
    for ask in pool.asks.iter() {
        let Some(choice) = ask.choices.first() else { continue };
        for (r, each) in &choice.each {
            let asked = &mut demand[ask.queue * width + r];
            *asked = asked.saturating_add(each.saturating_mul(i64::from(ask.pending.workers)));
        }
    }
    for node in by_depth.iter().rev() {
        let Some(up) = tree.parent[*node] else { continue };
        for r in 0..width {
            demand[up * width + r] = demand[up * width + r].saturating_add(demand[node * width + r]);
        }
    }
    for node in by_depth {
        for r in 0..width {
            let asked = &mut demand[node * width + r];
            *asked = asked.saturating_add(tree.total(&pool.after, *node, r));
        }
    }
    demand
}

/// Card-time used lately by each queue and those below it, in parts of a card times ms.
pub(crate) fn past_usage(pool: &Pool<'_>) -> Vec<i128> {
    let mut past = vec![0i128; pool.tree.parent.len()];
    for (at, queue) in pool.tree.queues.iter().enumerate() {
        let used = queue.past_usage.part_ms();
        if used != 0 {
            for node in pool.tree.path(at) {
                past[node] += used;
            }
        }
    }
    past
}

/// What all cards could have given within the span of past usage. `None`: past usage counts for nothing.
fn could_give_part_ms(pool: &Pool<'_>) -> Option<i128> {
    let usage = pool.policy.past_usage?;
    let tree = &pool.tree;
    let roots = || (0..tree.parent.len()).filter(|node| tree.parent[*node].is_none());
    let cards: i128 = (0..pool.resources.len())
        .filter(|r| matches!(pool.resources[*r], Resource::Cards(_)))
        .map(|r| roots().map(|root| i128::from(tree.subtree(root, r))).sum::<i128>())
        .sum();
    Some(cards * i128::from(usage.window_ms))
}

/// The weights of siblings: as set, or, where some of them used the pool lately, moved by what each used of all the pool could give.
fn weights(pool: &Pool<'_>, siblings: &[QueueAt], past: &[i128], could_give_part_ms: Option<i128>) -> Vec<u64> {
    let set: Vec<u64> = siblings.iter().map(|sibling| pool.tree.weight_milli(*sibling)).collect();
    let sum: u128 = set.iter().map(|weight| u128::from(*weight)).sum();
    let (Some(usage), Some(all)) = (pool.policy.past_usage, could_give_part_ms) else { return set };
    if sum == 0 || all <= 0 || siblings.iter().all(|sibling| past[*sibling] == 0) {
        return set;
    }
    siblings
        .iter()
        .zip(set)
        .map(|(sibling, weight)| {
            let weight = u64::try_from(u128::from(weight) * 1_000_000 / sum).unwrap_or(u64::MAX);
            let used = u64::try_from(past[*sibling].max(0) * 1_000_000 / all).unwrap_or(u64::MAX);
            if weight == 0 { 0 } else { weight_after_usage(weight, used, usage.strength_milli) }
        })
        .collect()
}
