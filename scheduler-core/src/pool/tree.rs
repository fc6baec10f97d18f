//! The quota tree by number: what a queue may still take, walked from it to its root.
//!
//! Each queue keeps apart what it doesn't lend (`local`); what it uses beyond that counts at its parent. So a question and a change cost the depth
//! of the tree. Where hosts are counted, one node above all roots stands for what there is; else each root is a pool of its own.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::by_name::ByName;
use crate::names::QueueName;
use crate::snapshot::{Queue, Quota, Resource, Snapshot};

/// What a resource has that no quota speaks of.
pub(crate) const UNLIMITED: i64 = i64::MAX / 4;

/// More than this of anything, a million times what the largest pool has, is as good as no limit; sums of it stay in range.
const MOST: i64 = 1_000_000_000_000_000;

fn bounded(quota: Quota) -> Quota {
    let within = |amount: i64| amount.clamp(0, MOST);
    Quota {
        nominal: within(quota.nominal),
        borrow_limit: quota.borrow_limit.map(within),
        lend_limit: quota.lend_limit.map(within),
        max: quota.max.map(within),
    }
}

/// What the month's band leaves of the borrow limit; where there is none, of as much as its own quota.
fn banded(quota: Quota, queue: &Queue) -> Quota {
    match queue.band {
        Some(band) if band.borrow_per_mille < 1_000 => {
            let limit =
                i128::from(quota.borrow_limit.unwrap_or(quota.nominal)) * i128::from(band.borrow_per_mille) / 1_000;
            Quota { borrow_limit: i64::try_from(limit).ok(), ..quota }
        }
        Some(_) | None => quota,
    }
}

/// A queue by number.
pub(crate) type QueueAt = usize;
/// A resource by number.
pub(crate) type ResourceAt = usize;

/// Amounts of a few resources, sorted by resource.
pub(crate) type Amounts = Vec<(ResourceAt, i64)>;

/// The tree, without what is in use.
pub(crate) struct Tree<'a> {
    /// The queues by name; the node above all roots, where there is one, isn't among them.
    pub queues: Vec<&'a Queue>,
    by_name: ByName,
    pub parent: Vec<Option<QueueAt>>,
    pub children: Vec<Vec<QueueAt>>,
    pub depth: Vec<usize>,
    /// Steps to its furthest leaf.
    pub height: Vec<usize>,
    resources: usize,
    quota: Vec<Option<Quota>>,
    subtree: Vec<i64>,
    local: Vec<i64>,
    /// Whether a queue of this tree has a quota of the resource: by root.
    governed: Vec<bool>,
    /// Whether it or any queue below has a quota of the resource.
    declared: Vec<bool>,
    root: Vec<QueueAt>,
    /// The node that stands for the hosts.
    pub pool: Option<QueueAt>,
    /// What the hosts have of each resource; none where quota is the measure.
    there: Vec<Option<i64>>,
}

/// What is in use, by queue and resource.
#[derive(Clone)]
pub(crate) struct Used {
    /// What counts at a queue after its children's own parts.
    shared: Vec<i64>,
    /// All that is in use at it and below.
    total: Vec<i64>,
    /// How often the count of each resource was changed.
    changes: Vec<u64>,
}

impl Used {
    /// How often the count of a resource was changed: the same number, the same count.
    pub fn changes_of(&self, r: ResourceAt) -> u64 {
        self.changes[r]
    }
}

impl<'a> Tree<'a> {
    /// Of the snapshot's queues. `capacity`: what there is of each resource, where hosts are counted. A queue whose parent isn't there, or that is
    /// its own ancestor, is a root.
    pub fn new(snapshot: &'a Snapshot, resources: &[Resource], capacity: Option<&[Option<i64>]>) -> Self {
        let mut queues: Vec<&Queue> = snapshot.queues.iter().collect();
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        queues.dedup_by(|a, b| a.name == b.name);
        let at: BTreeMap<&QueueName, QueueAt> = queues.iter().enumerate().map(|(i, queue)| (&queue.name, i)).collect();
        let n = queues.len();
        let mut parent: Vec<Option<QueueAt>> =
            queues.iter().map(|queue| queue.parent.as_ref().and_then(|name| at.get(name).copied())).collect();
        for start in 0..n {
            let (mut here, mut steps) = (start, 0);
            while let Some(up) = parent[here] {
                here = up;
                steps += 1;
                if steps > n {
                    parent[start] = None;
                    break;
                }
            }
        }
        let pool = capacity.map(|_| n);
        if let Some(pool) = pool {
            for up in &mut parent {
                up.get_or_insert(pool);
            }
            parent.push(None);
        }
        let nodes = parent.len();
        let mut children = vec![Vec::new(); nodes];
        for (child, up) in parent.iter().enumerate() {
            if let Some(up) = up {
                children[*up].push(child);
            }
        }
        let mut depth = vec![0; nodes];
        let mut root = (0..nodes).collect::<Vec<_>>();
        for (node, (depth, root)) in depth.iter_mut().zip(&mut root).enumerate() {
            let mut here = node;
            while let Some(up) = parent[here] {
                here = up;
                *depth += 1;
            }
            *root = here;
        }
        let width = resources.len();
        let mut quota = Vec::with_capacity(nodes * width);
        for queue in &queues {
            quota.extend(
                resources
                    .iter()
                    .map(|resource| queue.quota.get(resource).copied().map(|quota| banded(bounded(quota), queue))),
            );
        }
        quota.resize(nodes * width, None);
        let mut tree = Self {
            by_name: ByName::new(queues.iter().map(|queue| queue.name.as_str())),
            queues,
            parent,
            children,
            height: vec![0; nodes],
            depth,
            resources: width,
            quota,
            subtree: vec![0; nodes * width],
            local: vec![0; nodes * width],
            governed: vec![false; nodes * width],
            declared: vec![false; nodes * width],
            root,
            pool,
            there: capacity.map_or_else(|| vec![None; width], <[_]>::to_vec),
        };
        tree.sum_up(capacity);
        tree
    }

    /// From the leaves up: what a subtree has, and what of it stays there.
    fn sum_up(&mut self, capacity: Option<&[Option<i64>]>) {
        let mut order: Vec<QueueAt> = (0..self.parent.len()).collect();
        order.sort_by_key(|node| Reverse(self.depth[*node]));
        for node in order {
            for r in 0..self.resources {
                let own = self.quota[node * self.resources + r];
                let lent: i64 = self.children[node].iter().map(|c| self.subtree(*c, r) - self.local(*c, r)).sum();
                // Of what the hosts have, nobody borrows what any queue keeps to itself.
                let kept = || (0..self.parent.len()).map(|node| self.local(node, r)).sum::<i64>();
                let mut subtree = own.map_or(0, |quota| quota.nominal).saturating_add(lent);
                if Some(node) == self.pool
                    && let Some(there) = capacity.and_then(|capacity| capacity[r])
                {
                    subtree = there - kept();
                }
                let at = node * self.resources + r;
                self.subtree[at] = subtree;
                self.local[at] = own.and_then(|quota| quota.lend_limit).map_or(0, |lend| (subtree - lend).max(0));
                self.declared[at] =
                    own.is_some() || self.children[node].iter().any(|c| self.declared[c * self.resources + r]);
                if own.is_some() {
                    self.governed[self.root[node] * self.resources + r] = true;
                }
                if Some(node) == self.pool && capacity.is_some_and(|capacity| capacity[r].is_some()) {
                    self.governed[at] = true;
                }
            }
            if let Some(up) = self.parent[node] {
                self.height[up] = self.height[up].max(self.height[node] + 1);
            }
        }
    }

    /// The number of a queue.
    pub fn find(&self, name: &QueueName) -> Option<QueueAt> {
        self.by_name.find(name.as_str(), |at| self.queues[at].name.as_str())
    }

    /// Nothing in use.
    pub fn unused(&self) -> Used {
        let none = vec![0; self.subtree.len()];
        Used { shared: none.clone(), total: none, changes: vec![0; self.resources] }
    }

    /// Its weight, less what its month's band takes.
    pub fn weight_milli(&self, node: QueueAt) -> u64 {
        self.queues.get(node).map_or(1_000, |queue| {
            let left = queue.band.map_or(1_000, |band| u128::from(band.weight_per_mille));
            u64::try_from(u128::from(queue.weight_milli) * left / 1_000).unwrap_or(u64::MAX)
        })
    }

    /// Its own quota of a resource, where it has one.
    pub fn quota(&self, node: QueueAt, r: ResourceAt) -> Option<Quota> {
        self.quota[node * self.resources + r]
    }

    /// What is guaranteed to it by itself. `None`: nothing is said.
    pub fn nominal(&self, node: QueueAt, r: ResourceAt) -> Option<i64> {
        self.quota(node, r).map(|quota| quota.nominal)
    }

    /// What is guaranteed to it, or, where only queues below it have a quota, what they have together. `None`: nobody says anything.
    pub fn deserved(&self, node: QueueAt, r: ResourceAt) -> Option<i64> {
        let at = node * self.resources + r;
        self.nominal(node, r).or_else(|| self.declared[at].then_some(self.subtree[at]))
    }

    /// What it and those below have, with what they lend one another.
    pub fn subtree(&self, node: QueueAt, r: ResourceAt) -> i64 {
        self.subtree[node * self.resources + r]
    }

    fn local(&self, node: QueueAt, r: ResourceAt) -> i64 {
        self.local[node * self.resources + r]
    }

    /// Whether any quota of this queue's tree speaks of the resource.
    pub fn governs(&self, node: QueueAt, r: ResourceAt) -> bool {
        self.governed[self.root[node] * self.resources + r]
    }

    /// From the queue to its root, itself first.
    pub fn path(&self, node: QueueAt) -> impl Iterator<Item = QueueAt> {
        std::iter::successors(Some(node), |node| self.parent[*node])
    }

    /// The two branches just under the lowest node that both are under: the side of `a`, the side of `b`. `None`: they are of different trees, or one is the
    /// other's ancestor.
    pub fn branches(&self, a: QueueAt, b: QueueAt) -> Option<(QueueAt, QueueAt)> {
        let (mut left, mut right) = (a, b);
        while self.depth[left] > self.depth[right] {
            left = self.parent[left]?;
        }
        while self.depth[right] > self.depth[left] {
            right = self.parent[right]?;
        }
        if left == right {
            return None;
        }
        while self.parent[left] != self.parent[right] {
            (left, right) = (self.parent[left]?, self.parent[right]?);
        }
        self.parent[left].map(|_| (left, right))
    }

    /// What counts at a queue: what is in use there beyond what its children keep to themselves.
    pub fn shared(&self, used: &Used, node: QueueAt, r: ResourceAt) -> i64 {
        used.shared[node * self.resources + r]
    }

    /// All that is in use at a queue and below it.
    pub fn total(&self, used: &Used, node: QueueAt, r: ResourceAt) -> i64 {
        used.total[node * self.resources + r]
    }

    /// Counts `amount` at a queue and above.
    pub fn add(&self, used: &mut Used, node: QueueAt, r: ResourceAt, amount: i64) {
        used.changes[r] += 1;
        let mut passed_up = amount;
        for here in self.path(node) {
            let at = here * self.resources + r;
            used.total[at] += amount;
            let own = (self.local[at] - used.shared[at]).max(0);
            used.shared[at] += passed_up;
            passed_up = (passed_up - own).max(0);
        }
    }

    /// Takes back what [`Self::add`] counted.
    pub fn remove(&self, used: &mut Used, node: QueueAt, r: ResourceAt, amount: i64) {
        used.changes[r] += 1;
        let mut passed_up = amount;
        for here in self.path(node) {
            let at = here * self.resources + r;
            used.total[at] -= amount;
            let above = (used.shared[at] - self.local[at]).max(0);
            used.shared[at] -= passed_up;
            passed_up = passed_up.min(above);
        }
    }

    /// How much more a queue may take.
    pub fn available(&self, used: &Used, node: QueueAt, r: ResourceAt) -> i64 {
        if !self.governs(node, r) {
            return UNLIMITED;
        }
        self.room(node, r, |at| (used.shared[at], used.total[at]))
    }

    /// How much a queue could ever take, were nothing in use.
    pub fn potential(&self, node: QueueAt, r: ResourceAt) -> i64 {
        if !self.governs(node, r) {
            return UNLIMITED;
        }
        self.room(node, r, |_| (0, 0))
    }

    /// By what is lent and borrowed, and by each cap above.
    fn room(&self, node: QueueAt, r: ResourceAt, in_use: impl Fn(usize) -> (i64, i64) + Copy) -> i64 {
        let caps = self.path(node).filter_map(|here| {
            let max = if Some(here) == self.pool { self.there[r] } else { self.quota(here, r)?.max }?;
            Some(max - in_use(here * self.resources + r).1)
        });
        caps.min().map_or(i64::MAX, |cap| cap).min(self.lent(node, r, in_use))
    }

    fn lent(&self, node: QueueAt, r: ResourceAt, in_use: impl Fn(usize) -> (i64, i64) + Copy) -> i64 {
        let at = node * self.resources + r;
        let shared = in_use(at).0;
        let Some(up) = self.parent[node] else { return self.subtree[at] - shared };
        let mut above = self.lent(up, r, in_use);
        if let Some(limit) = self.quota[at].and_then(|quota| quota.borrow_limit) {
            let stored = self.subtree[at] - self.local[at];
            above = above.min(stored - (shared - self.local[at]).max(0) + limit);
        }
        // What is kept is its own whatever happens above.
        let kept = (self.local[at] - shared).max(0);
        if kept > 0 { kept + above.max(0) } else { above }
    }

    /// What is left of what a queue keeps to itself.
    pub fn local_available(&self, used: &Used, node: QueueAt, r: ResourceAt) -> i64 {
        (self.local(node, r) - self.shared(used, node, r)).max(0)
    }

    /// Whether a queue with `more` uses at most what its subtree has.
    pub fn within_subtree(&self, used: &Used, node: QueueAt, amounts: &[(ResourceAt, i64)]) -> bool {
        amounts.iter().all(|(r, more)| self.shared(used, node, *r) + more <= self.subtree(node, *r))
    }

    /// Whether a queue's subtree could hold `amounts` by itself, were nothing in use.
    pub fn holds_alone(&self, node: QueueAt, amounts: &[(ResourceAt, i64)]) -> bool {
        amounts.iter().all(|(r, amount)| *amount <= self.subtree(node, *r))
    }

    /// What parent of `node` could lend of a resource, over which a share is measured.
    pub fn lendable_above(&self, node: QueueAt, r: ResourceAt) -> i64 {
        self.parent[node].map_or(0, |up| self.potential(up, r))
    }

    /// The setting that a queue or the nearest queue above it has.
    pub fn inherited<T>(&self, node: QueueAt, of: impl Fn(&'a Queue) -> Option<T>) -> Option<T> {
        self.path(node).filter_map(|at| self.queues.get(at)).find_map(|queue| of(queue))
    }
}
