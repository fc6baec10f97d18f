//! Quota, added up anew for each question.

use std::collections::BTreeMap;

use crate::names::QueueName;
use crate::plan::{Action, Seat};
use crate::policy::Policy;
use crate::snapshot::{HostState, Pending, Piece, Queue, Quota, Resource, Running, Shape, Snapshot};

use super::{Case, Fault};

/// What is in use at each queue itself, without those below it.
pub(super) type Use = BTreeMap<(QueueName, Resource), i128>;

/// What a queue may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    /// Its cap.
    Cap,
    /// What it may borrow.
    Borrowing,
    /// What its tree can lend.
    Pool,
    /// What the hosts have.
    There,
}

/// The quota tree by name.
pub(super) struct Books<'a> {
    snapshot: &'a Snapshot,
    hosts_count: bool,
    queues: BTreeMap<&'a QueueName, &'a Queue>,
    below: BTreeMap<&'a QueueName, Vec<&'a Queue>>,
}

/// What `workers` of a shape use, on a model.
pub(super) fn amounts(shape: &Shape, model: Option<&crate::names::Model>, workers: u32) -> Vec<(Resource, i128)> {
    let workers = i128::from(workers);
    let mut all = Vec::new();
    if let Some(model) = model.or(shape.models.first())
        && !shape.cards.is_zero()
    {
        all.push((Resource::Cards(model.clone()), i128::from(shape.cards.parts()) * workers));
    }
    if shape.cpu_milli > 0 {
        all.push((Resource::Cpu, i128::from(shape.cpu_milli) * workers));
    }
    if shape.memory_bytes > 0 {
        all.push((Resource::Memory, i128::from(shape.memory_bytes) * workers));
    }
    all
}

impl<'a> Books<'a> {
    pub fn of(snapshot: &'a Snapshot, policy: &Policy) -> Self {
        let queues: BTreeMap<&QueueName, &Queue> = snapshot.queues.iter().map(|queue| (&queue.name, queue)).collect();
        let mut below: BTreeMap<&QueueName, Vec<&Queue>> = BTreeMap::new();
        for queue in queues.values() {
            if let Some(parent) = &queue.parent {
                below.entry(parent).or_default().push(queue);
            }
        }
        Self { snapshot, hosts_count: policy.fairness.counts_hosts(), queues, below }
    }

    /// From a queue up to its root.
    pub fn path(&self, name: &QueueName) -> Vec<&'a Queue> {
        let mut path: Vec<&Queue> = Vec::new();
        let mut here = self.queues.get(name).copied();
        while let Some(queue) = here {
            if path.iter().any(|passed| passed.name == queue.name) {
                break;
            }
            path.push(queue);
            here = queue.parent.as_ref().and_then(|name| self.queues.get(name).copied());
        }
        path
    }

    fn children(&self, name: &QueueName) -> impl Iterator<Item = &'a Queue> {
        self.below.get(name).into_iter().flatten().copied()
    }

    fn roots(&self) -> impl Iterator<Item = &'a Queue> {
        self.queues
            .values()
            .copied()
            .filter(|queue| queue.parent.as_ref().is_none_or(|parent| !self.queues.contains_key(parent)))
    }

    fn model_of(&self, run: &Running) -> Option<crate::names::Model> {
        let host = run.pieces.iter().find_map(|piece| piece.host.as_ref());
        let host = host.and_then(|name| self.snapshot.hosts.iter().find(|host| host.name == *name));
        host.map(|host| host.model.clone()).or_else(|| run.shape.models.first().cloned())
    }

    /// What a running job's `workers` use.
    pub fn of_running(&self, run: &Running, workers: u32) -> Vec<(Resource, i128)> {
        amounts(&run.shape, self.model_of(run).as_ref(), workers)
    }

    /// Workers of a job that aren't on a failed host.
    pub fn live(&self, run: &Running) -> u32 {
        let failed = |piece: &&Piece| {
            piece.host.as_ref().is_some_and(|name| {
                self.snapshot.hosts.iter().any(|host| host.name == *name && host.state == HostState::Failed)
            })
        };
        run.pieces.iter().filter(|piece| !failed(piece)).map(|piece| piece.workers).sum()
    }

    /// What runs; without those that leave if `leaving` says so.
    pub fn running(&self, without_leaving: bool) -> Use {
        let mut all = Use::new();
        for run in self.snapshot.running.iter().filter(|run| !(without_leaving && run.leaving)) {
            add(&mut all, &run.queue, &self.of_running(run, self.live(run)), 1);
        }
        all
    }

    /// What is in use once all of the plan was carried out.
    pub fn after_plan(&self, case: &Case<'_>) -> Use {
        let mut all = self.running(true);
        for step in &case.plan.steps {
            self.apply(&mut all, case, step, true);
        }
        all
    }

    /// Counts one step. `ended`: also what it takes away.
    pub fn apply(&self, all: &mut Use, case: &Case<'_>, step: &crate::plan::Step, ended: bool) {
        match &step.action {
            Action::Admit(seat) | Action::Reserve { seat, .. } => {
                if let Some(job) = case.pending.get(&step.job) {
                    add(all, &job.queue, &amounts(&job.shape, seat.model.as_ref(), seat.workers), 1);
                }
            }
            Action::Evict { .. } if ended => {
                if let Some(run) = case.running.get(&step.job).filter(|run| !run.leaving) {
                    add(all, &run.queue, &self.of_running(run, self.live(run)), -1);
                }
            }
            Action::Shrink { workers, .. } if ended => {
                if let Some(run) = case.running.get(&step.job) {
                    add(all, &run.queue, &self.of_running(run, *workers), -1);
                }
            }
            Action::Move { from, to, for_job: None } => {
                if let Some(run) = case.running.get(&step.job) {
                    let workers = if to.is_empty() { from } else { to };
                    add(all, &run.queue, &self.of_running(run, workers.iter().map(|piece| piece.workers).sum()), 1);
                }
            }
            Action::Evict { .. } | Action::Shrink { .. } | Action::Move { .. } | Action::Requeue | Action::Wait => {}
        }
    }

    /// All in use at a queue and below.
    pub fn total(&self, all: &Use, queue: &QueueName, resource: &Resource) -> i128 {
        let own = all.get(&(queue.clone(), resource.clone())).copied().unwrap_or(0);
        own + self.children(queue).map(|child| self.total(all, &child.name, resource)).sum::<i128>()
    }

    /// What a queue's subtree has of its own.
    pub fn holds(&self, queue: &Queue, resource: &Resource) -> i128 {
        let own = queue.quota.get(resource).map_or(0, |quota| i128::from(quota.nominal));
        own + self
            .children(&queue.name)
            .map(|child| self.holds(child, resource) - self.keeps(child, resource))
            .sum::<i128>()
    }

    /// What of it others never get.
    fn keeps(&self, queue: &Queue, resource: &Resource) -> i128 {
        match queue.quota.get(resource).and_then(|quota| quota.lend_limit) {
            Some(lend) => (self.holds(queue, resource) - i128::from(lend)).max(0),
            None => 0,
        }
    }

    /// What counts at a queue itself: its own use and what its children use beyond what they keep.
    pub fn counted(&self, all: &Use, queue: &Queue, resource: &Resource) -> i128 {
        let own = all.get(&(queue.name.clone(), resource.clone())).copied().unwrap_or(0);
        own + self
            .children(&queue.name)
            .map(|child| (self.counted(all, child, resource) - self.keeps(child, resource)).max(0))
            .sum::<i128>()
    }

    /// What a queue was promised: its own quota, else what those below it have. `None`: nobody says.
    pub fn promised(&self, queue: &Queue, resource: &Resource) -> Option<i128> {
        queue
            .quota
            .get(resource)
            .map(|quota| i128::from(quota.nominal))
            .or_else(|| self.speaks_below(queue, resource).then(|| self.holds(queue, resource)))
    }

    fn speaks_below(&self, queue: &Queue, resource: &Resource) -> bool {
        self.children(&queue.name).any(|child| child.quota.contains_key(resource) || self.speaks_below(child, resource))
    }

    /// Who a queue's jobs share cards with.
    pub fn tenant(&self, queue: &QueueName) -> String {
        let named = self.path(queue).into_iter().find_map(|queue| queue.tenant.as_ref());
        named.map_or_else(|| format!("queue {queue}"), |tenant| format!("tenant {tenant}"))
    }

    /// Whether a queue is above its quota, by what its family of rules goes by.
    pub fn uses_more_than_quota(&self, case: &Case<'_>, all: &Use, queue: &Queue, resource: &Resource) -> bool {
        if case.policy.fairness.counts_hosts() {
            self.promised(queue, resource).is_none_or(|most| self.total(all, &queue.name, resource) > most)
        } else {
            self.counted(all, queue, resource) > self.holds(queue, resource)
        }
    }

    /// The branches of two queues just under the node that both are under.
    pub fn branches(&self, a: &QueueName, b: &QueueName) -> Option<(&'a Queue, &'a Queue)> {
        let (left, right) = (self.path(a), self.path(b));
        let shared =
            left.iter().find(|queue| right.iter().any(|other| other.name == queue.name)).map(|queue| &queue.name);
        let below = |path: &[&'a Queue]| match shared {
            Some(shared) => path.iter().take_while(|queue| queue.name != *shared).last().copied(),
            None => path.last().copied(),
        };
        Some((below(&left)?, below(&right)?))
    }

    /// Whether a job of `pending` uses more than the first quota above it says.
    pub fn above_own_quota(&self, all: &Use, pending: &Pending, seat: &Seat) -> bool {
        amounts(&pending.shape, seat.model.as_ref(), 1).iter().any(|(resource, _)| {
            self.path(&pending.queue)
                .into_iter()
                .find_map(|queue| queue.quota.get(resource).map(|quota| (queue, quota)))
                .is_none_or(|(queue, quota)| self.total(all, &queue.name, resource) > i128::from(quota.nominal))
        })
    }

    /// Whether `job` would be within every quota above it in the place of `other`.
    pub fn owner_in_place_of(&self, all: &Use, job: &Pending, other: &Pending, seat: &Seat) -> bool {
        let mut instead = all.clone();
        add(&mut instead, &other.queue, &amounts(&other.shape, seat.model.as_ref(), seat.workers), -1);
        add(&mut instead, &job.queue, &amounts(&job.shape, seat.model.as_ref(), job.min_workers.max(1)), 1);
        let asked = amounts(&job.shape, seat.model.as_ref(), 1);
        let own = self
            .path(&job.queue)
            .first()
            .is_some_and(|queue| asked.iter().all(|(resource, _)| queue.quota.contains_key(resource)));
        own && asked.iter().all(|(resource, _)| {
            self.path(&job.queue).iter().all(|queue| {
                self.promised(queue, resource).is_none_or(|most| self.total(&instead, &queue.name, resource) <= most)
            }) && self.is_within_limits(&instead, &job.queue, resource)
        })
    }

    /// The queues that use more of a resource than they may, by which limit and by how much.
    fn passed(&self, all: &Use, resource: &Resource) -> BTreeMap<(QueueName, Limit), i128> {
        let mut passed = BTreeMap::new();
        let mut note = |queue: &QueueName, limit: Limit, by: i128| {
            if by > 0 {
                passed.insert((queue.clone(), limit), by);
            }
        };
        for queue in self.queues.values() {
            let mut quota: Quota = queue.quota.get(resource).copied().unwrap_or_default();
            if let Some(band) =
                queue.band.filter(|band| band.borrow_per_mille < 1_000 && queue.quota.contains_key(resource))
            {
                let whole = quota.borrow_limit.unwrap_or(quota.nominal);
                quota.borrow_limit = Some((i128::from(whole) * i128::from(band.borrow_per_mille) / 1_000) as i64);
            }
            if let Some(max) = quota.max {
                note(&queue.name, Limit::Cap, self.total(all, &queue.name, resource) - i128::from(max));
            }
            let root = queue.parent.as_ref().is_none_or(|parent| !self.queues.contains_key(parent));
            if let Some(limit) = quota.borrow_limit
                && (self.hosts_count || !root)
            {
                let beyond = (self.counted(all, queue, resource) - self.keeps(queue, resource)).max(0);
                note(
                    &queue.name,
                    Limit::Borrowing,
                    beyond - (self.holds(queue, resource) - self.keeps(queue, resource)) - i128::from(limit),
                );
            }
            if root && !self.hosts_count && (quota != Quota::default() || self.promised(queue, resource).is_some()) {
                note(&queue.name, Limit::Pool, self.counted(all, queue, resource) - self.holds(queue, resource));
            }
        }
        if self.hosts_count
            && let Some(there) = self.there(resource)
        {
            let kept: i128 = self.queues.values().map(|queue| self.keeps(queue, resource)).sum();
            let used: i128 =
                self.roots().map(|root| (self.counted(all, root, resource) - self.keeps(root, resource)).max(0)).sum();
            let total: i128 = self.roots().map(|root| self.total(all, &root.name, resource)).sum();
            for root in self.roots() {
                note(&root.name, Limit::Pool, used - (there - kept));
                note(&root.name, Limit::There, total - there);
            }
        }
        passed
    }

    /// The queues that are over a limit with something and weren't, or were by less, without it.
    pub fn adds_to_excess(&self, without: &Use, with: &Use, resource: &Resource) -> Vec<QueueName> {
        let was = self.passed(without, resource);
        let more =
            self.passed(with, resource).into_iter().filter(|(limit, by)| *by > was.get(limit).copied().unwrap_or(0));
        more.map(|((queue, _), _)| queue).collect()
    }

    /// Whether a queue and all above it are within their limits.
    pub fn is_within_limits(&self, all: &Use, queue: &QueueName, resource: &Resource) -> bool {
        let passed = self.passed(all, resource);
        self.path(queue).iter().all(|above| passed.keys().all(|(name, _)| *name != above.name))
    }

    /// What the hosts have, or what the snapshot says they have.
    fn there(&self, resource: &Resource) -> Option<i128> {
        if self.snapshot.hosts.is_empty() {
            return self.snapshot.capacity.get(resource).map(|there| i128::from(*there));
        }
        let hosts = self.snapshot.hosts.iter().filter(|host| host.state != HostState::Failed);
        match resource {
            Resource::Cards(model) => Some(
                hosts
                    .filter(|host| host.model == *model)
                    .map(|host| i128::from(host.cards) * i128::from(cardhour_domain::CardShare::PARTS_PER_CARD))
                    .sum(),
            ),
            Resource::Cpu => hosts.map(|host| host.cpu_milli.map(i128::from)).sum(),
            Resource::Memory => hosts.map(|host| host.memory_bytes.map(i128::from)).sum(),
        }
    }
}

pub(super) fn add(all: &mut Use, queue: &QueueName, amounts: &[(Resource, i128)], sign: i128) {
    for (resource, amount) in amounts {
        *all.entry((queue.clone(), resource.clone())).or_default() += sign * amount;
    }
}

/// Nothing the plan gives takes a queue over a limit or further over it: neither now, with those who leave still there, nor once they are gone.
pub(super) fn check(case: &Case<'_>, faults: &mut Vec<Fault>) {
    let books = &case.books;
    let (before, mut now) = (books.running(false), books.running(false));
    let (mut left, mut after) = (books.running(true), books.running(true));
    let mut resources: Vec<Resource> = Vec::new();
    for step in &case.plan.steps {
        if let (Action::Admit(seat) | Action::Reserve { seat, .. }, Some(job)) =
            (&step.action, case.pending.get(&step.job))
        {
            resources.extend(
                amounts(&job.shape, seat.model.as_ref(), seat.workers).into_iter().map(|(resource, _)| resource),
            );
        } else {
            books.apply(&mut left, case, step, true);
        }
        if matches!(step.action, Action::Admit(_)) {
            books.apply(&mut now, case, step, false);
        }
        books.apply(&mut after, case, step, true);
    }
    for step in &case.plan.steps {
        let (Action::Admit(_) | Action::Reserve { .. }, Some(job)) = (&step.action, case.pending.get(&step.job)) else {
            continue;
        };
        let critical = job.critical.as_ref().is_some_and(|window| window.holds_at(case.snapshot.at));
        let promised = case.snapshot.reservations.iter().any(|kept| kept.job == job.name);
        let only = books.path(&job.queue).into_iter().find(|queue| queue.band.is_some_and(|band| band.off_peak_only));
        if let Some(queue) = only.filter(|_| !critical && !promised && !case.snapshot.off_peak) {
            faults.push(Fault::QuotaPassed { queue: queue.name.clone() });
        }
    }
    resources.sort();
    resources.dedup();
    for resource in &resources {
        for queue in books
            .adds_to_excess(&before, &now, resource)
            .into_iter()
            .chain(books.adds_to_excess(&left, &after, resource))
        {
            faults.push(Fault::QuotaPassed { queue });
        }
    }
    lent_for_good(case, faults);
}

/// Jobs that can't be ended, in their queue's own quota.
fn lent_for_good(case: &Case<'_>, faults: &mut Vec<Fault>) {
    if case.policy.lends_to_unpreemptible {
        return;
    }
    let books = &case.books;
    let mut fixed = Use::new();
    for run in case.snapshot.running.iter().filter(|run| !run.preemptible) {
        add(&mut fixed, &run.queue, &books.of_running(run, books.live(run)), 1);
    }
    for step in &case.plan.steps {
        let (Action::Admit(seat) | Action::Reserve { seat, .. }) = &step.action else { continue };
        let Some(job) = case.pending.get(&step.job).filter(|job| !job.preemptible) else { continue };
        let amounts = amounts(&job.shape, seat.model.as_ref(), seat.workers);
        add(&mut fixed, &job.queue, &amounts, 1);
        let over = amounts.iter().any(|(resource, _)| {
            books
                .path(&job.queue)
                .into_iter()
                .find_map(|queue| queue.quota.get(resource).map(|quota| (queue, i128::from(quota.nominal))))
                .is_some_and(|(queue, most)| books.total(&fixed, &queue.name, resource) > most)
        });
        if over {
            faults.push(Fault::LentForGood { job: job.name.clone() });
        }
    }
}
