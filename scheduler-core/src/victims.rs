//! Who gives way, and the proof that it helps.
//!
//! A hunt takes candidates out of the count of *after*, one by one in the order of its rules, until the asker fits by quota and by place; then walks back and returns each one
//! that proved unnecessary. If the asker never fits, all is put back and nobody is ended. The rules differ in who may be taken and in which order: [`classic`] goes by
//! nearness to the quota and priority, [`borrowed`] by what each queue borrows, [`entitled`] by what each is entitled to.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use cardhour_domain::Timestamp;

use crate::entitlement::Entitlement;
use crate::min_run::{self, MinRunFor};
use crate::names::JobName;
use crate::plan::Reason;
use crate::policy::{Fairness, VictimCost, WithinQueue};
use crate::pool::rooms::{HostAt, Spot, View};
use crate::pool::tree::{Amounts, QueueAt, ResourceAt};
use crate::pool::{Ask, Choice, JobAt, Pool, times};

pub(crate) mod borrowed;
pub(crate) mod classic;
pub(crate) mod entitled;
mod fewest;
pub(crate) mod lists;

/// Something that can be taken: one surplus worker, or all that a job has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    key: Key,
    pub job: JobAt,
}

/// The order in which candidates of one kind go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    whole: bool,
    not_restartable: bool,
    priority: i32,
    lost_part_ms: i128,
    admitted: Reverse<Timestamp>,
    /// Where two lose the same, the smaller goes, if the rules weigh size.
    parts: i64,
}

/// What was taken of a job.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub job: JobAt,
    pub workers: u32,
    pub spots: Vec<Spot>,
    pub reason: Reason,
}

/// A set of victims that is enough, and where the asker then fits.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub taken: Vec<Taken>,
    pub spots: Vec<Spot>,
}

/// What the budget had to do with it that there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Budget {
    /// Nothing.
    #[default]
    Enough,
    /// With more jobs ended there would be room.
    TooSmall,
    /// No job may be ended at all.
    Spent,
}

/// Why there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotFound {
    /// Whom the rules would have let go.
    pub considered: Vec<JobAt>,
    /// Whether the budget stopped it.
    pub budget: Budget,
    /// This round's victims leave it enough; it is given that once it is empty.
    pub being_left: bool,
    /// It is kept for a gang that has waited longer.
    pub kept_for: Option<JobName>,
    /// Its owner got as much back as its steps allow.
    pub in_steps: bool,
}

/// One search.
pub(crate) struct Hunt<'p, 'a> {
    pub pool: &'p mut Pool<'a>,
    pub entitlement: &'p Entitlement,
    pub ask: &'p Ask<'a>,
    pub choice: &'p Choice,
    pub workers: u32,
    /// Of the whole ask.
    pub amounts: Amounts,
    /// Resources of which it lacks something; where quota suffices and place doesn't, all that it asks for.
    pub short: Vec<ResourceAt>,
    /// The asker is in an approved critical window.
    pub critical: bool,
    /// How many more jobs may be ended. `None`: no budget.
    pub tokens: Option<usize>,
    taken: Vec<Taken>,
    considered: Vec<JobAt>,
    budget_spent: Cell<bool>,
}

impl<'p, 'a> Hunt<'p, 'a> {
    /// For `workers` of an ask on one of its models.
    pub fn new(
        pool: &'p mut Pool<'a>,
        entitlement: &'p Entitlement,
        ask: &'p Ask<'a>,
        choice: &'p Choice,
        workers: u32,
        tokens: Option<usize>,
    ) -> Self {
        let amounts = times(&choice.each, workers);
        let mut short: Vec<ResourceAt> = amounts
            .iter()
            .filter(|(r, amount)| pool.tree.available(&pool.after, ask.queue, *r) < *amount)
            .map(|(r, _)| *r)
            .collect();
        if short.is_empty() {
            short = amounts.iter().map(|(r, _)| *r).collect();
        }
        let critical = ask.pending.critical.as_ref().is_some_and(|window| window.holds_at(pool.at()));
        Self {
            pool,
            entitlement,
            ask,
            choice,
            workers,
            amounts,
            short,
            critical,
            tokens,
            taken: Vec::new(),
            considered: Vec::new(),
            budget_spent: Cell::new(false),
        }
    }

    /// Finds the victims, or puts all back. What it found stays taken out of the count of *after*.
    pub fn run(mut self) -> Result<Found, NotFound> {
        if self.amounts.iter().any(|(r, amount)| self.pool.tree.potential(self.ask.queue, *r) < *amount) {
            return Err(NotFound::default());
        }
        match self.search() {
            Some(spots) => Ok(Found { taken: merged(self.taken), spots }),
            None => {
                self.put_all_back();
                let budget = self.budget();
                Err(NotFound { considered: self.considered, budget, ..NotFound::default() })
            }
        }
    }

    fn search(&mut self) -> Option<Vec<Spot>> {
        match self.pool.policy.fairness {
            Fairness::None | Fairness::PastUsage => classic::hunt(self),
            Fairness::BorrowShare(rules) => borrowed::hunt(self, rules),
            Fairness::DeservedShare | Fairness::DeservedCap | Fairness::Guaranteed => entitled::hunt(self),
        }
    }

    /// What the budget had to do with a search that found nobody: whether it would have found somebody without.
    fn budget(&mut self) -> Budget {
        match self.tokens {
            _ if !self.budget_spent.get() => Budget::Enough,
            None => Budget::Enough,
            Some(0) => Budget::Spent,
            Some(tokens) => {
                self.tokens = None;
                let found = self.search().is_some();
                self.put_all_back();
                self.tokens = Some(tokens);
                if found { Budget::TooSmall } else { Budget::Enough }
            }
        }
    }

    /// Whether a search failed because of the budget although some jobs may still be ended.
    fn stopped_by_budget(&self) -> bool {
        self.budget_spent.get() && self.tokens.is_some_and(|tokens| tokens > 0)
    }

    /// Whether a job that goes wholly could be enough by itself, by quota and by the parts of cards it has; it never refuses too much.
    fn could_be_enough_alone(&self, job: JobAt) -> bool {
        let tree = &self.pool.tree;
        let victim = &self.pool.jobs[job];
        let by_quota = self.amounts.iter().all(|(r, amount)| {
            let lacking = amount - tree.available(&self.pool.after, self.ask.queue, *r);
            let has: i64 =
                victim.each.iter().filter(|(of, _)| of == r).map(|(_, each)| each * i64::from(victim.workers)).sum();
            lacking <= has
        });
        by_quota && self.could_be_placed(std::iter::once(job))
    }

    /// Where the asker fits now, if it does. `borrowing`: it may use more than its queue's own quota.
    fn fits(&self, borrowing: bool) -> Option<Vec<Spot>> {
        if !borrowing && !self.pool.tree.within_subtree(&self.pool.after, self.ask.queue, &self.amounts) {
            return None;
        }
        self.pool.fit(self.ask, self.choice, self.workers, View::After, &self.near())
    }

    /// The hosts on which room was made.
    fn near(&self) -> Vec<HostAt> {
        let mut hosts: Vec<HostAt> =
            self.taken.iter().flat_map(|taken| taken.spots.iter().map(|spot| spot.host)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// What of a job may be taken for the asker: its candidates, one a surplus worker and one for the rest.
    fn candidates_of(&self, job: JobAt, by_size: bool) -> Vec<Candidate> {
        let running = &self.pool.jobs[job];
        let run = running.run;
        if running.gone
            || running.disturbed
            || running.workers == 0
            || !running.each.iter().any(|(r, _)| self.short.contains(r))
        {
            return Vec::new();
        }
        let at = self.pool.at();
        let protected_now = !run.preemptible
            || run.critical.as_ref().is_some_and(|window| window.holds_at(at))
            || self.pool.policy.preemptions_a_day.is_some_and(|most| run.preempted_today >= most)
            || run
                .last_preempted
                .and_then(|ended| ended.checked_add_ms(self.pool.policy.cool_down_ms))
                .is_some_and(|until| at < until);
        if protected_now {
            return Vec::new();
        }
        let least = self.least_run_of(running.queue);
        // After each time it was ended for others, a job is left alone twice as long.
        let least = least.saturating_mul(1 << run.preempted_today.min(3));
        let ran_enough = at.ms_since(run.admitted) >= least;
        let key = |whole: bool, workers: u32| Key {
            whole,
            not_restartable: !run.restartable,
            priority: run.priority,
            lost_part_ms: match self.pool.policy.victim_cost {
                VictimCost::CardTimeLost => self.pool.loss(job, workers).part_ms(),
                VictimCost::Age => 0,
            },
            admitted: Reverse(run.admitted),
            parts: if by_size { running.need.parts.saturating_mul(i64::from(workers)) } else { 0 },
        };
        let surplus = (1..=running.workers)
            .take_while(|taken| min_run::may_take(0, i64::MAX, running.workers, run.min_workers, *taken))
            .count();
        let mut all: Vec<Candidate> = (0..surplus).map(|_| Candidate { key: key(false, 1), job }).collect();
        if ran_enough && self.tokens == Some(0) {
            self.budget_spent.set(true);
        } else if ran_enough {
            all.push(Candidate { key: key(true, running.workers), job });
        }
        all
    }

    /// How long a job of a queue has to have run before it may be ended for the asker, in ms.
    fn least_run_of(&self, queue: QueueAt) -> i64 {
        let whose =
            if queue == self.ask.queue { MinRunFor::OwnQueue } else { MinRunFor::OtherQueue { asker: self.ask.queue } };
        min_run::least_ms(&self.pool.tree, self.pool.policy, queue, whose)
    }

    /// Whether a job of the asker's own queue may be ended for it.
    fn may_take_within(&self, job: JobAt) -> bool {
        let run = self.pool.jobs[job].run;
        let pending = self.ask.pending;
        match self.pool.rules(self.ask.queue).within_queue {
            WithinQueue::Never => false,
            WithinQueue::LowerPriority => run.priority < pending.priority,
            WithinQueue::LowerOrNewerEqual => {
                run.priority < pending.priority || run.priority == pending.priority && pending.submitted < run.submitted
            }
        }
    }

    /// Jobs ended so far by this hunt.
    fn ended(&self) -> usize {
        let mut jobs: Vec<JobAt> =
            self.taken.iter().map(|taken| taken.job).filter(|job| self.pool.jobs[*job].workers == 0).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs.len()
    }

    /// Takes a candidate out. `false` where the budget doesn't allow it.
    fn take(&mut self, candidate: Candidate, reason: Reason) -> bool {
        let job = candidate.job;
        if !self.considered.contains(&job) && self.considered.len() < 16 {
            self.considered.push(job);
        }
        let workers = if candidate.key.whole { self.pool.jobs[job].workers } else { 1 };
        if candidate.key.whole && self.tokens.is_some_and(|tokens| self.ended() >= tokens) {
            self.budget_spent.set(true);
            return false;
        }
        let spots = self.pool.take_out(job, workers);
        self.taken.push(Taken { job, workers, spots, reason });
        true
    }

    fn put_back_last(&mut self) {
        if let Some(Taken { job, workers, spots, reason: _ }) = self.taken.pop() {
            self.pool.put_back(job, workers, spots);
        }
    }

    fn put_all_back(&mut self) {
        while !self.taken.is_empty() {
            self.put_back_last();
        }
    }

    /// Puts back, last first, each one without which the asker still fits and the rest may still go (`still`); a job that is ended comes back whole or not
    /// at all. Returns where the asker fits in the end.
    fn give_back_unneeded(&mut self, borrowing: bool, still: impl Fn(&Self, &[Taken]) -> bool) -> Option<Vec<Spot>> {
        let mut rest = std::mem::take(&mut self.taken);
        let mut kept: Vec<Vec<Taken>> = Vec::new();
        while let Some(last) = rest.pop() {
            let job = last.job;
            let mut group = vec![last];
            if self.pool.jobs[job].workers == 0 {
                group.extend(rest.extract_if(.., |taken| taken.job == job).collect::<Vec<_>>().into_iter().rev());
            }
            for taken in &mut group {
                self.pool.put_back(job, taken.workers, std::mem::take(&mut taken.spots));
            }
            if self.fits(borrowing).is_some() {
                let left: Vec<Taken> = rest.iter().chain(kept.iter().flatten()).cloned().collect();
                if still(self, &left) {
                    continue;
                }
            }
            group.reverse();
            for taken in &mut group {
                taken.spots = self.pool.take_out(job, taken.workers);
            }
            kept.push(group);
        }
        self.taken = kept.into_iter().rev().flatten().collect();
        self.fits(borrowing)
    }

    /// The branches of asker and victim under their common ancestor.
    fn branches(&self, victim: QueueAt) -> Option<(QueueAt, QueueAt)> {
        self.pool.tree.branches(self.ask.queue, victim)
    }
}

/// What was taken of each job, put together, in the order of the first taking.
fn merged(taken: Vec<Taken>) -> Vec<Taken> {
    let mut order: Vec<Taken> = Vec::new();
    let mut place: BTreeMap<JobAt, usize> = BTreeMap::new();
    for one in taken {
        match place.get(&one.job) {
            Some(at) => {
                order[*at].workers += one.workers;
                order[*at].spots.extend(one.spots);
            }
            None => {
                place.insert(one.job, order.len());
                order.push(one);
            }
        }
    }
    order
}
