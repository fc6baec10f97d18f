//! The fair share of each queue of each resource, from the root down.
//!
//! What a node has is divided among its children by [`divide`]: what they deserve, then by queue priority and weight, as far as they have work for it. Demand is
//! what runs and what waits. Past usage moves the weights, so only what is above quota.

use crate::pool::rooms::CARD;
use crate::pool::tree::{QueueAt, ResourceAt};
use crate::pool::{Pool, times};
use crate::share::{Claim, divide, weight_after_usage};
use crate::snapshot::Resource;

/// Fair shares, by queue and resource.
pub(crate) struct Entitlement {
    fair: Vec<i64>,
    resources: usize,
}

impl Entitlement {
    /// Of the pool as it is, before anything is decided.
    pub fn of(pool: &Pool<'_>) -> Self {
        let tree = &pool.tree;
        let width = pool.resources.len();
        let nodes = tree.parent.len();
        let mut demand = vec![0i64; nodes * width];
        for node in 0..nodes {
            for r in 0..width {
                demand[node * width + r] = tree.total(&pool.after, node, r);
            }
        }
        for ask in pool.asks.iter() {
            let Some(choice) = ask.choices.first() else { continue };
            for (r, amount) in times(&choice.each, ask.pending.workers) {
                for node in tree.path(ask.queue) {
                    demand[node * width + r] = demand[node * width + r].saturating_add(amount);
                }
            }
        }
        let mut past = vec![0i128; nodes];
        for (at, queue) in tree.queues.iter().enumerate() {
            for node in tree.path(at) {
                past[node] += queue.past_usage.part_ms();
            }
        }
        let mut by_depth: Vec<QueueAt> = (0..nodes).collect();
        by_depth.sort_by_key(|node| tree.depth[*node]);
        let mut fair = vec![0i64; nodes * width];
        for r in 0..width {
            let unit = match pool.resources[r] {
                Resource::Cards(_) => CARD,
                Resource::Cpu | Resource::Memory => 1,
            };
            for node in &by_depth {
                let node = *node;
                if tree.parent[node].is_none() {
                    fair[node * width + r] = tree.subtree(node, r);
                }
                let mut children = tree.children[node].clone();
                children.sort_by_key(|child| (tree.queues[*child].created, *child));
                let weights = weights(pool, &children, &past);
                let claims: Vec<Claim> = children
                    .iter()
                    .zip(weights)
                    .map(|(child, weight)| Claim {
                        deserved: tree.deserved(*child, r).unwrap_or(0),
                        weight,
                        demand: demand[child * width + r],
                        max: tree.quota(*child, r).and_then(|quota| quota.max),
                        priority: tree.queues[*child].over_quota_priority,
                    })
                    .collect();
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

/// The weights of siblings: as set, or, where some of them used the pool lately, moved by what each used of all the pool could give.
fn weights(pool: &Pool<'_>, siblings: &[QueueAt], past: &[i128]) -> Vec<u64> {
    let set: Vec<u64> = siblings.iter().map(|sibling| pool.tree.weight_milli(*sibling)).collect();
    let sum: u128 = set.iter().map(|weight| u128::from(*weight)).sum();
    let cards: i128 = (0..pool.resources.len())
        .filter(|r| matches!(pool.resources[*r], Resource::Cards(_)))
        .map(|r| {
            (0..pool.tree.parent.len())
                .filter(|node| pool.tree.parent[*node].is_none())
                .map(|root| i128::from(pool.tree.subtree(root, r)))
                .sum::<i128>()
        })
        .sum();
    let Some(usage) = pool.policy.past_usage else { return set };
    let all = cards * i128::from(usage.window_ms);
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
