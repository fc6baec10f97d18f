//! What of each queue could be taken for a job of another queue, found once and kept until something of the queue changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::pool::JobAt;
use crate::pool::rooms::{HostAt, View};
use crate::pool::tree::{QueueAt, ResourceAt};

use super::{Candidate, Hunt};

/// Candidates of a queue, best first.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub candidates: Vec<Candidate>,
    /// Parts of a card they have, surplus workers counted twice.
    pub parts: i64,
    /// Jobs aren't among them that could go, because none may be ended any more.
    held_by_budget: bool,
}

/// What a list depends on beside the jobs of its queue: the model that is short, the least run, and whether jobs may be ended at all.
type Of = (ResourceAt, i64, bool);

/// The lists of one queue: few, for they differ by model and least run.
type OfQueue = Vec<(Of, Rc<List>)>;

/// Lists by queue.
#[derive(Default)]
pub(crate) struct Lists {
    by_queue: RefCell<Vec<OfQueue>>,
}

impl Lists {
    /// Something of the queue has changed.
    pub fn forget(&mut self, queue: QueueAt) {
        if let Some(lists) = self.by_queue.get_mut().get_mut(queue) {
            lists.clear();
        }
    }
}

impl Hunt<'_, '_> {
    /// The list of another queue.
    pub(super) fn list_of(&self, queue: QueueAt) -> Rc<List> {
        let model = self.choice.need.model;
        if self.short != [model] {
            return Rc::new(self.list_where(queue, |_| true));
        }
        let of = (model, self.least_run_of(queue), self.tokens == Some(0));
        if let Some(lists) = self.pool.lists.by_queue.borrow().get(queue)
            && let Some((_, known)) = lists.iter().find(|(what, _)| *what == of)
        {
            self.budget_spent.set(self.budget_spent.get() || known.held_by_budget);
            return Rc::clone(known);
        }
        let list = Rc::new(self.list_where(queue, |_| true));
        let mut by_queue = self.pool.lists.by_queue.borrow_mut();
        if by_queue.len() <= queue {
            by_queue.resize(queue + 1, Vec::new());
        }
        by_queue[queue].push((of, Rc::clone(&list)));
        list
    }

    /// The candidates of a queue's jobs that `may` go.
    pub(super) fn list_where(&self, queue: QueueAt, may: impl Fn(JobAt) -> bool) -> List {
        let spent_before = self.budget_spent.replace(false);
        let jobs = self.pool.jobs_of[queue].iter().copied().filter(|job| may(*job));
        let mut candidates: Vec<Candidate> = jobs.flat_map(|job| self.candidates_of(job, true)).collect();
        candidates.sort_unstable();
        let parts = candidates.iter().map(|candidate| self.parts_of(candidate)).sum();
        let held_by_budget = self.budget_spent.get();
        self.budget_spent.set(spent_before || held_by_budget);
        List { candidates, parts, held_by_budget }
    }

    fn parts_of(&self, candidate: &Candidate) -> i64 {
        let job = &self.pool.jobs[candidate.job];
        let workers = if candidate.key.whole { i64::from(job.workers) } else { 1 };
        job.need.parts.saturating_mul(workers)
    }

    /// Whether the hosts could hold the asker with all candidates gone, counted by parts of a card: an upper bound, cheap to find.
    pub(super) fn could_be_placed(&self, jobs: impl Iterator<Item = JobAt>) -> bool {
        let need = &self.choice.need;
        if !self.pool.rooms.counted() || need.parts == 0 {
            return true;
        }
        // Jobs are looked at until those so far leave enough; hosts without any of them only where they don't.
        let rooms = &self.pool.rooms;
        let wanted = i64::from(self.workers);
        let fits = |host: HostAt, freed: i64| {
            let room = &rooms.hosts[host];
            if !room.usable || room.model != need.model {
                return 0;
            }
            ((rooms.free_parts(host, View::After) + freed) / need.parts).max(0)
        };
        let domain = |host: HostAt| self.ask.layout.same.map_or(Some(0), |level| rooms.domain_of(host, level));
        let mut freed: BTreeMap<HostAt, i64> = BTreeMap::new();
        let mut sum: BTreeMap<usize, i64> = BTreeMap::new();
        for job in jobs {
            for spot in &self.pool.jobs[job].spots {
                let Some(domain) = domain(spot.host) else { continue };
                let parts: i64 = spot.cards.iter().map(|(_, parts)| parts).sum();
                if parts == 0 {
                    continue;
                }
                let freed = freed.entry(spot.host).or_default();
                let before = if *freed == 0 { 0 } else { fits(spot.host, *freed) };
                *freed += parts;
                let sum = sum.entry(domain).or_default();
                *sum += fits(spot.host, *freed) - before;
                if *sum >= wanted {
                    return true;
                }
            }
        }
        let with_all = |hosts: &[HostAt]| {
            hosts.iter().map(|host| fits(*host, freed.get(host).copied().unwrap_or(0))).sum::<i64>() >= wanted
        };
        match self.ask.layout.same {
            Some(level) => rooms.domains(level).iter().any(|hosts| with_all(hosts)),
            None => with_all(rooms.of_model(need.model)),
        }
    }
}
