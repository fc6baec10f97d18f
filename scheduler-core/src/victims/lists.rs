//! What of each queue could be taken for a job of another queue, found once and kept until something of the queue changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::pool::JobAt;
use crate::pool::rooms::View;
use crate::pool::tree::{QueueAt, ResourceAt};

use super::{Candidate, Hunt};

/// Candidates of a queue, best first.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub candidates: Vec<Candidate>,
    /// Parts of a card they have, surplus workers counted twice.
    pub parts: i64,
}

/// What a list depends on beside the jobs of its queue: the model that is short, the least run, and whether jobs may be ended at all.
type Of = (ResourceAt, i64, bool);

/// Lists by queue.
#[derive(Default)]
pub(crate) struct Lists {
    by_queue: RefCell<BTreeMap<QueueAt, BTreeMap<Of, Rc<List>>>>,
}

impl Lists {
    /// Something of the queue has changed.
    pub fn forget(&mut self, queue: QueueAt) {
        self.by_queue.borrow_mut().remove(&queue);
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
        if let Some(known) = self.pool.lists.by_queue.borrow().get(&queue).and_then(|lists| lists.get(&of)) {
            let spent = self.tokens == Some(0) && known.candidates.is_empty();
            self.budget_spent.set(self.budget_spent.get() || spent);
            return Rc::clone(known);
        }
        let list = Rc::new(self.list_where(queue, |_| true));
        self.pool.lists.by_queue.borrow_mut().entry(queue).or_default().insert(of, Rc::clone(&list));
        list
    }

    /// The candidates of a queue's jobs that `may` go.
    pub(super) fn list_where(&self, queue: QueueAt, may: impl Fn(JobAt) -> bool) -> List {
        let jobs = self.pool.jobs_of[queue].iter().copied().filter(|job| may(*job));
        let mut candidates: Vec<Candidate> = jobs.flat_map(|job| self.candidates_of(job, true)).collect();
        candidates.sort_unstable();
        let parts = candidates.iter().map(|candidate| self.parts_of(candidate)).sum();
        List { candidates, parts }
    }

    fn parts_of(&self, candidate: &Candidate) -> i64 {
        let job = &self.pool.jobs[candidate.job];
        let workers = if candidate.key.whole { i64::from(job.workers) } else { 1 };
        job.need.parts.saturating_mul(workers)
    }

    /// Whether the hosts could hold the asker with all candidates gone, counted by parts of a card: an upper bound, cheap to find.
    pub(super) fn could_be_placed<'c>(&self, candidates: impl Iterator<Item = &'c Candidate>) -> bool {
        let need = &self.choice.need;
        if !self.pool.rooms.counted() || need.parts == 0 {
            return true;
        }
        let mut freed: BTreeMap<usize, i64> = BTreeMap::new();
        for candidate in candidates {
            for spot in &self.pool.jobs[candidate.job].spots {
                *freed.entry(spot.host).or_default() += spot.cards.iter().map(|(_, parts)| parts).sum::<i64>();
            }
        }
        let fits = |host: &usize| {
            let room = &self.pool.rooms.hosts[*host];
            if !room.usable || room.model != need.model {
                return 0;
            }
            let parts = self.pool.rooms.free_parts(*host, View::After) + freed.get(host).copied().unwrap_or(0);
            (parts / need.parts).max(0)
        };
        let wanted = i64::from(self.workers);
        match self.ask.layout.same {
            Some(level) => {
                self.pool.rooms.domains(level).iter().any(|hosts| hosts.iter().map(fits).sum::<i64>() >= wanted)
            }
            None => self.pool.rooms.of_model(need.model).iter().map(fits).sum::<i64>() >= wanted,
        }
    }
}
