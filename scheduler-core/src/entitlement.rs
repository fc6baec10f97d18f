//! The fair share of each queue of each resource, from the root down.
//!
//! What a node has is divided among its children by [`divide`]: what they deserve, then by queue priority and weight, as far as they have work for it. Demand is
//! what runs and what waits.

use crate::pool::rooms::CARD;
use crate::pool::tree::{QueueAt, ResourceAt};
use crate::pool::{Pool, times};
use crate::share::{Claim, divide};
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
                let claims: Vec<Claim> = children
                    .iter()
                    .map(|child| Claim {
                        deserved: tree.deserved(*child, r).unwrap_or(0),
                        weight: tree.queues[*child].weight_milli,
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
