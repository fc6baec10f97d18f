//! From a snapshot and a policy to a plan.
//!
//! Start at [`decide`]. First, jobs that lost workers are mended. Then the line is gone through: each job starts if it fits; else it waits for those who leave anyway; else others move
//! aside; else others are ended, if the rules of the site allow it; else it waits, and is told for what. What one job is given, the next finds taken. Room that is only now being
//! left is nobody's until it is empty.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use cardhour_domain::{CardShare, CardTime, Timestamp};

use crate::disruption::jobs_to_spare;
use crate::entitlement::Entitlement;
use crate::leftovers::Leftovers;
use crate::moves::{Moved, make_room};
use crate::names::JobName;
use crate::order::Line;
use crate::plan::{Action, Evidence, Plan, Reason, Seat, Step, Why};
use crate::policy::{Fairness, Order, Policy, Reclaim, WithinQueue};
use crate::pool::rooms::{Spot, View};
use crate::pool::tree::QueueAt;
use crate::pool::{Ask, AskAt, Choice, JobAt, Pool, times};
use crate::repair::repair;
use crate::snapshot::{Pending, Reservation, Resource, Shape, Snapshot};
use crate::victims::{Found, Hunt, NotFound};
use crate::waiting;

/// What should happen. Pure: the same snapshot, in any order of its lists, gives the same plan.
///
/// Errors: none; what can't be done is a job that waits, with the reason. Cost: the pool is numbered once and then changed in place.
pub fn decide(snapshot: &Snapshot, policy: &Policy) -> Plan {
    let mut round = Round::new(snapshot, policy);
    round.mend();
    round.go_through_line();
    Plan { steps: round.steps }
}

struct Round<'a> {
    pool: Pool<'a>,
    entitlement: Entitlement,
    asks: Rc<Vec<Ask<'a>>>,
    steps: Vec<Step>,
    /// How many more jobs may be ended or moved. `None`: no budget.
    tokens: Option<usize>,
    /// Pending jobs with a reservation, and what is held for them until their turn.
    promises: BTreeMap<AskAt, Promise<'a>>,
    /// Parts of a card that owners had given back to them this round.
    given_back: BTreeMap<QueueAt, i64>,
    /// Room that this round's victims leave beyond what they were ended for.
    leftovers: Leftovers,
    /// Shapes that found no room this round, with their reason: the next of the kind isn't tried.
    hopeless: BTreeMap<Kind<'a>, (Why, Vec<JobName>)>,
}

/// A reservation that still holds.
struct Promise<'a> {
    kept: &'a Reservation,
    /// What is counted for it; `None` where its room isn't there any more.
    held: Option<Held>,
}

#[derive(Clone)]
struct Held {
    choice: Choice,
    workers: u32,
    spots: Vec<Spot>,
}

/// What makes two pending jobs the same to the pool.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'a> {
    queue: QueueAt,
    priority: i32,
    shape: &'a Shape,
    workers: u32,
    min_workers: u32,
    preemptible: bool,
    critical: bool,
}

impl<'a> Round<'a> {
    fn new(snapshot: &'a Snapshot, policy: &'a Policy) -> Self {
        let mut pool = Pool::new(snapshot, policy);
        let asks = Rc::clone(&pool.asks);
        let entitlement = Entitlement::of(&pool);
        let ordinary =
            |job: &&crate::pool::Job<'_>| !job.run.critical.as_ref().is_some_and(|window| window.holds_at(snapshot.at));
        let tokens = policy.disruption_per_mille.map(|per_mille| {
            jobs_to_spare(
                per_mille,
                pool.jobs.iter().filter(ordinary).count(),
                pool.jobs.iter().filter(ordinary).any(|job| job.run.restartable),
                pool.jobs.iter().filter(ordinary).filter(|job| job.run.leaving).count(),
            )
        });
        let mut promises = BTreeMap::new();
        for reservation in snapshot.reservations.iter().filter(|kept| snapshot.at < kept.until) {
            if let Ok(at) = asks.binary_search_by(|ask| ask.pending.name.cmp(&reservation.job)) {
                let held = hold(&mut pool, &asks[at], reservation);
                promises.insert(at, Promise { kept: reservation, held });
            }
        }
        Self {
            pool,
            entitlement,
            asks,
            steps: Vec::new(),
            tokens,
            promises,
            given_back: BTreeMap::new(),
            leftovers: Leftovers::default(),
            hopeless: BTreeMap::new(),
        }
    }

    /// Jobs that lost workers.
    fn mend(&mut self) {
        for at in 0..self.pool.jobs.len() {
            let Some((action, reason)) = repair(&mut self.pool, at) else { continue };
            let (workers, lost) = (self.pool.jobs[at].workers, self.pool.loss(at, self.pool.jobs[at].workers));
            let ends = matches!(action, Action::Evict { .. });
            let lost = if ends { lost } else { CardTime::ZERO };
            let cards = match &action {
                Action::Move { to, .. } => self.pool.cards_of(at, to.iter().map(|piece| piece.workers).sum()),
                Action::Evict { .. } => self.pool.cards_of(at, workers),
                Action::Admit(_) | Action::Reserve { .. } | Action::Shrink { .. } | Action::Requeue | Action::Wait => {
                    CardShare::ZERO
                }
            };
            self.push_running(at, action, reason, Evidence { cards, lost, considered: Vec::new() });
            self.pool.disturb(at);
            if ends {
                self.pool.send_off(at, workers);
            }
        }
    }

    fn go_through_line(&mut self) {
        for stranger in std::mem::take(&mut self.pool.strangers) {
            if let Some(pending) = self.pool.snapshot.pending.iter().find(|pending| pending.name == *stranger) {
                self.wait(pending, Why::UnknownQueue, Vec::new());
            }
        }
        let promised: Vec<AskAt> =
            self.promises.iter().filter(|(_, promise)| promise.held.is_some()).map(|(at, _)| *at).collect();
        let mut line = Line::new(&self.pool, &self.entitlement, &promised);
        while let Some(ask) = line.next(&self.pool, &self.entitlement, &promised) {
            let queue = self.asks[ask].queue;
            self.leftovers.hold(&mut self.pool, queue);
            let seated = self.consider(ask);
            if let Some(workers) = seated {
                line.charge(
                    &self.pool,
                    queue,
                    self.asks[ask].pending.shape.cards.parts().saturating_mul(i64::from(workers)),
                );
            } else if self.pool.policy.order == Order::StrictHead {
                let head = self.asks[ask].pending.name.clone();
                for behind in line.drop_from(queue, |_| true) {
                    self.wait(self.asks[behind].pending, Why::BehindHead { head: head.clone() }, Vec::new());
                }
            }
            line.refresh(queue, &self.pool, &self.entitlement, &promised);
        }
    }

    /// Decides about one job. The workers it was given, now or by promise; `None`: it waits.
    fn consider(&mut self, at: AskAt) -> Option<u32> {
        let asks = Rc::clone(&self.asks);
        let ask = &asks[at];
        let pending = ask.pending;
        let kind = Kind {
            queue: ask.queue,
            priority: pending.priority,
            shape: &pending.shape,
            workers: pending.workers,
            min_workers: pending.min_workers,
            preemptible: pending.preemptible,
            critical: pending.critical.as_ref().is_some_and(|window| window.holds_at(self.pool.at())),
        };
        if let Some((why, considered)) = self.hopeless.get(&kind) {
            let (why, considered) = (why.clone(), considered.clone());
            self.wait(pending, why, considered);
            return None;
        }
        if ask.choices.is_empty() {
            self.wait(pending, Why::NoSuchModel, Vec::new());
            return None;
        }
        if let Some(workers) = self.keep_promise(at, ask) {
            return Some(workers);
        }
        let mut missed = NotFound::default();
        let least = pending.min_workers.max(1).min(pending.workers.max(1));
        if !ask.choices.iter().any(|choice| self.lends(ask, choice, least)) {
            self.wait(pending, Why::NotLentToUnpreemptible, Vec::new());
            return None;
        }
        if self.pool.policy.elastic_ends_others_to_grow {
            for workers in (least..=pending.workers).rev() {
                for choice in &ask.choices {
                    if let Some(workers) = self.seat(ask, choice, workers, workers, &mut missed) {
                        return Some(workers);
                    }
                }
            }
        } else {
            for choice in &ask.choices {
                if let Some(workers) = self.start(ask, choice, least, pending.workers) {
                    return Some(workers);
                }
            }
            for choice in &ask.choices {
                if let Some(workers) = self.make_way(ask, choice, least, &mut missed) {
                    return Some(workers);
                }
            }
        }
        let why = waiting::why(&self.pool, &self.entitlement, ask, &missed);
        let considered: Vec<JobName> =
            missed.considered.iter().map(|job| self.pool.jobs[*job].run.name.clone()).collect();
        self.hold_unreclaimable(ask);
        if self.pool.rules(ask.queue).within_queue != WithinQueue::LowerOrNewerEqual {
            self.hopeless.insert(kind, (why.clone(), considered.clone()));
        }
        self.wait(pending, why, considered);
        None
    }

    fn seat(&mut self, ask: &Ask<'a>, choice: &Choice, least: u32, most: u32, missed: &mut NotFound) -> Option<u32> {
        self.start(ask, choice, least, most).or_else(|| self.make_way(ask, choice, least, missed))
    }

    /// Starts a job at once, as large as it fits.
    fn start(&mut self, ask: &Ask<'a>, choice: &Choice, least: u32, most: u32) -> Option<u32> {
        let fit = |workers| {
            self.lends(ask, choice, workers).then(|| self.pool.fit(ask, choice, workers, View::Now, &[])).flatten()
        };
        let mut best = (least, fit(least)?);
        let (mut low, mut high) = (least, most);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match fit(middle) {
                Some(spots) => (low, best) = (middle, (middle, spots)),
                None => high = middle - 1,
            }
        }
        let (workers, spots) = best;
        let within = self.within_quota(ask.queue, choice, workers);
        self.pool.admit(ask.queue, choice, workers, &spots);
        self.fix(ask, choice, workers);
        let reason = if within { Reason::WithinQuota } else { Reason::Borrows };
        self.push(
            ask.pending,
            Action::Admit(self.seat_of(choice, workers, &spots)),
            reason,
            self.cards(choice, workers),
        );
        Some(workers)
    }

    /// Room for a job that doesn't fit at once.
    fn make_way(&mut self, ask: &Ask<'a>, choice: &Choice, workers: u32, missed: &mut NotFound) -> Option<u32> {
        if !self.lends(ask, choice, workers) {
            return None;
        }
        if let Some(spots) = self.pool.fit(ask, choice, workers, View::After, &[]) {
            let waits_for = self.leaving_for(ask, choice, workers, &spots);
            self.promise(ask, choice, workers, &spots, waits_for, Reason::AlreadyLeaving, None);
            return Some(workers);
        }
        self.leftovers.lift_quota(&mut self.pool);
        let moved = make_room(&mut self.pool, &self.entitlement, ask, choice, workers, self.tokens);
        if let Some((moved, spots)) = moved {
            debug_assert!(!moved.is_empty(), "a job for which nobody moves doesn't get room by moves");
            self.promise_by_moves(ask, choice, workers, &moved, &spots);
            return Some(workers);
        }
        self.leftovers.lift(&mut self.pool);
        let found = self.hunt(ask, choice, workers, missed);
        self.leftovers.hold(&mut self.pool, ask.queue);
        found.then_some(workers)
    }

    /// Room by ending others, where the room that is being left anyway doesn't suffice. `false`: none.
    fn hunt(&mut self, ask: &Ask<'a>, choice: &Choice, workers: u32, missed: &mut NotFound) -> bool {
        if self.pool.fit(ask, choice, workers, View::After, &[]).is_some() {
            missed.being_left = true;
            return false;
        }
        if self.gave_back_enough(ask, choice, workers) {
            missed.in_steps = true;
            return false;
        }
        let before: Vec<i64> = times(&choice.each, workers)
            .iter()
            .map(|(r, amount)| (amount - self.pool.tree.available(&self.pool.after, ask.queue, *r)).max(0))
            .collect();
        match Hunt::new(&mut self.pool, &self.entitlement, ask, choice, workers, self.tokens).run() {
            Ok(found) => {
                self.promise_by_evictions(ask, choice, workers, found, &before);
                true
            }
            Err(none) => {
                missed.budget_spent |= none.budget_spent;
                for job in none.considered {
                    if !missed.considered.contains(&job) {
                        missed.considered.push(job);
                    }
                }
                false
            }
        }
    }

    /// A job with a reservation starts when its room is empty, or other room is, and keeps waiting while its room is being left.
    fn keep_promise(&mut self, at: AskAt, ask: &Ask<'a>) -> Option<u32> {
        let promise = self.promises.get_mut(&at)?;
        let until = promise.kept.until;
        let pieces = &promise.kept.pieces;
        let Held { choice, workers, spots } = promise.held.take()?;
        self.pool.break_promise(ask.queue, &choice, workers, &spots);
        let near: Vec<usize> = spots.iter().map(|spot| spot.host).collect();
        let amounts = times(&choice.each, workers);
        let quota = self.pool.fits_quota(ask.queue, &amounts, View::Now);
        let there = quota.then(|| self.pool.free_spots(&choice, pieces, View::Now)).flatten();
        if let Some(spots) = there.or_else(|| self.pool.fit(ask, &choice, workers, View::Now, &near)) {
            self.pool.admit(ask.queue, &choice, workers, &spots);
            self.fix(ask, &choice, workers);
            let seat = self.seat_of(&choice, workers, &spots);
            self.push(ask.pending, Action::Admit(seat), Reason::Reserved, self.cards(&choice, workers));
            return Some(workers);
        }
        let waits_for = self.leaving_for(ask, &choice, workers, &spots);
        self.promise(ask, &choice, workers, &spots, waits_for, Reason::Reserved, Some(until));
        Some(workers)
    }

    /// Of those who were told to go before this round, whom a job has to wait for: those on its cards, and, where it is quota that isn't free yet, all that
    /// hold some of it.
    fn leaving_for(&self, ask: &Ask<'_>, choice: &Choice, workers: u32, spots: &[Spot]) -> Vec<JobName> {
        let tree = &self.pool.tree;
        let short: Vec<usize> = times(&choice.each, workers)
            .iter()
            .filter(|(r, amount)| tree.available(&self.pool.now, ask.queue, *r) < *amount)
            .map(|(r, _)| *r)
            .collect();
        let mine: BTreeSet<(usize, u32)> =
            spots.iter().flat_map(|spot| spot.cards.iter().map(|(card, _)| (spot.host, *card))).collect();
        let root = tree.path(ask.queue).last();
        self.pool
            .going
            .iter()
            .map(|job| &self.pool.jobs[*job])
            .filter(|job| {
                let on_my_cards = job
                    .going_spots
                    .iter()
                    .any(|spot| spot.cards.iter().any(|(card, _)| mine.contains(&(spot.host, *card))));
                let holds_quota = job.run.leaving
                    && tree.path(job.queue).last() == root
                    && job.each.iter().any(|(r, _)| short.contains(r));
                on_my_cards || holds_quota
            })
            .map(|job| job.run.name.clone())
            .collect()
    }

    #[allow(clippy::too_many_arguments)] // the parts of one step
    fn promise(
        &mut self,
        ask: &Ask<'a>,
        choice: &Choice,
        workers: u32,
        spots: &[Spot],
        mut waits_for: Vec<JobName>,
        reason: Reason,
        until: Option<Timestamp>,
    ) {
        waits_for.sort();
        waits_for.dedup();
        self.pool.promise(ask.queue, choice, workers, spots);
        self.fix(ask, choice, workers);
        let at = self.pool.at();
        let until = until.or_else(|| at.checked_add_ms(self.pool.policy.reservation_ms)).unwrap_or(at);
        let seat = self.seat_of(choice, workers, spots);
        self.push(ask.pending, Action::Reserve { seat, waits_for, until }, reason, self.cards(choice, workers));
    }

    fn promise_by_moves(&mut self, ask: &Ask<'a>, choice: &Choice, workers: u32, moved: &[Moved], spots: &[Spot]) {
        self.spend(moved.len());
        for one in moved {
            self.pool.disturb(one.job);
            let here = self.pool.jobs[one.job].workers;
            let evidence = Evidence {
                cards: self.pool.cards_of(one.job, here),
                lost: self.pool.loss(one.job, here),
                considered: Vec::new(),
            };
            let action = Action::Move {
                from: self.pool.pieces(&one.from, here),
                to: self.pool.pieces(&one.to, here),
                for_job: Some(ask.pending.name.clone()),
            };
            self.push_running(one.job, action, Reason::Consolidation, evidence);
        }
        let mut waits_for = self.leaving_for(ask, choice, workers, spots);
        waits_for.extend(moved.iter().map(|one| self.pool.jobs[one.job].run.name.clone()));
        self.promise(ask, choice, workers, spots, waits_for, Reason::Consolidation, None);
        for one in moved {
            self.leftovers.spots.extend(one.from.iter().cloned());
        }
        self.leftovers.changed();
        self.leftovers.hold(&mut self.pool, ask.queue);
    }

    /// Ends and shrinks the victims, seats the asker in what they leave, and keeps the rest of it from others this round.
    fn promise_by_evictions(&mut self, ask: &Ask<'a>, choice: &Choice, workers: u32, found: Found, lacked: &[i64]) {
        let Found { taken, spots } = found;
        let mut waits_for = self.leaving_for(ask, choice, workers, &spots);
        let mut freed: BTreeMap<usize, i64> = BTreeMap::new();
        let mut reason = Reason::AlreadyLeaving;
        for one in &taken {
            for (r, amount) in times(&self.pool.jobs[one.job].each, one.workers) {
                *freed.entry(r).or_default() += amount;
            }
            // The reason of the asker is that of its most grave victim.
            if reason == Reason::AlreadyLeaving || one.reason != Reason::InQueue {
                reason = one.reason.clone();
            }
        }
        let mut ended = 0;
        for one in &taken {
            self.pool.note_going(one.job, one.workers, &one.spots);
            let job = &self.pool.jobs[one.job];
            let whole = job.gone;
            let for_job = ask.pending.name.clone();
            waits_for.push(job.run.name.clone());
            let cards = self.pool.cards_of(one.job, one.workers);
            let (action, lost) = if whole {
                ended += 1;
                (Action::Evict { for_job: Some(for_job) }, self.pool.loss(one.job, one.workers))
            } else {
                let from = self.pool.pieces(&one.spots, one.workers);
                (Action::Shrink { workers: one.workers, from, for_job }, CardTime::ZERO)
            };
            self.push_running(one.job, action, one.reason.clone(), Evidence { cards, lost, considered: Vec::new() });
            self.note_given_back(ask, one.job, cards.parts());
        }
        self.spend(ended);
        self.promise(ask, choice, workers, &spots, waits_for, reason, None);
        for one in &taken {
            self.leftovers.spots.extend(one.spots.iter().cloned());
        }
        if let Some(last) = taken.last() {
            let queue = self.pool.jobs[last.job].queue;
            for ((r, _), lacked) in choice.each.iter().zip(lacked) {
                let rest = freed.get(r).copied().unwrap_or(0) - lacked;
                if rest > 0 {
                    self.leftovers.quota.push((queue, *r, rest));
                }
            }
        }
    }

    /// Quota that a queue couldn't take back by itself isn't lent while one of its own jobs waits for it.
    ///
    /// Only where quota is the measure: else the owner can always reclaim. Source: Kueue's reservation for queues that can't reclaim.
    fn hold_unreclaimable(&mut self, ask: &Ask<'_>) {
        match self.pool.policy.fairness {
            Fairness::None | Fairness::BorrowShare(_) | Fairness::PastUsage => {}
            Fairness::DeservedShare | Fairness::DeservedCap | Fairness::Guaranteed => return,
        }
        let rules = self.pool.rules(ask.queue);
        if rules.reclaim == Reclaim::Any || rules.while_borrowing.is_some() {
            return;
        }
        let Some(choice) = ask.choices.first() else { return };
        let amounts = times(&choice.each, ask.pending.min_workers.max(1));
        if self.pool.fits_quota(ask.queue, &amounts, View::Now) {
            return;
        }
        for (r, amount) in amounts {
            let nominal = self.pool.tree.nominal(ask.queue, r).unwrap_or(0);
            if amount > nominal {
                return;
            }
            self.leftovers.unlent.push((ask.queue, r, amount));
        }
    }

    /// Whether the owner got as much back this round as its steps allow.
    fn gave_back_enough(&self, ask: &Ask<'_>, choice: &Choice, workers: u32) -> bool {
        let Some(steps) = self.pool.policy.give_back else { return false };
        if ask.pending.critical.as_ref().is_some_and(|window| window.holds_at(self.pool.at())) {
            return false;
        }
        let r = choice.need.model;
        let asked = choice.need.parts.saturating_mul(i64::from(workers));
        let owed = (self.pool.tree.deserved(ask.queue, r).unwrap_or(0)
            - self.pool.tree.total(&self.pool.now, ask.queue, r))
        .max(0);
        let part = i64::try_from(i128::from(owed) * i128::from(steps.owed_per_mille) / 1_000).unwrap_or(i64::MAX);
        let given = self.given_back.get(&ask.queue).copied().unwrap_or(0);
        given > 0 && given.saturating_add(asked) > steps.step_parts.max(part)
    }

    fn note_given_back(&mut self, ask: &Ask<'_>, job: JobAt, parts: i64) {
        if self.pool.jobs[job].queue != ask.queue {
            *self.given_back.entry(ask.queue).or_default() += parts;
        }
    }

    /// Whether a job may have so much: one that can't be ended stays within the quota of the first queue above it that has one.
    fn lends(&self, ask: &Ask<'_>, choice: &Choice, workers: u32) -> bool {
        if ask.pending.preemptible || self.pool.policy.lends_to_unpreemptible {
            return true;
        }
        let tree = &self.pool.tree;
        times(&choice.each, workers).iter().all(|(r, amount)| {
            tree.path(ask.queue)
                .find_map(|node| {
                    tree.nominal(node, *r).map(|quota| tree.total(&self.pool.fixed, node, *r) + amount <= quota)
                })
                .unwrap_or(true)
        })
    }

    fn within_quota(&self, queue: QueueAt, choice: &Choice, workers: u32) -> bool {
        let tree = &self.pool.tree;
        times(&choice.each, workers).iter().all(|(r, amount)| {
            tree.path(queue)
                .find_map(|node| {
                    tree.nominal(node, *r).map(|quota| tree.total(&self.pool.after, node, *r) + amount <= quota)
                })
                .unwrap_or(true)
        })
    }

    fn fix(&mut self, ask: &Ask<'_>, choice: &Choice, workers: u32) {
        if !ask.pending.preemptible {
            for (r, amount) in times(&choice.each, workers) {
                self.pool.tree.add(&mut self.pool.fixed, ask.queue, r, amount);
            }
        }
    }

    fn spend(&mut self, jobs: usize) {
        if let Some(tokens) = &mut self.tokens {
            *tokens = tokens.saturating_sub(jobs);
        }
    }

    fn seat_of(&self, choice: &Choice, workers: u32, spots: &[Spot]) -> Seat {
        let model = match self.pool.resources.get(choice.need.model) {
            Some(Resource::Cards(model)) if choice.need.parts > 0 => Some(model.clone()),
            _ => None,
        };
        Seat { workers, model, pieces: self.pool.pieces(spots, workers) }
    }

    fn cards(&self, choice: &Choice, workers: u32) -> Evidence {
        let cards = CardShare::from_parts(choice.need.parts.saturating_mul(i64::from(workers)));
        Evidence { cards, lost: CardTime::ZERO, considered: Vec::new() }
    }

    fn wait(&mut self, pending: &Pending, why: Why, considered: Vec<JobName>) {
        let evidence = Evidence { considered, ..Evidence::default() };
        self.push(pending, Action::Wait, Reason::Waits(why), evidence);
    }

    fn push(&mut self, pending: &Pending, action: Action, reason: Reason, evidence: Evidence) {
        self.steps.push(Step { job: pending.name.clone(), queue: pending.queue.clone(), action, reason, evidence });
    }

    fn push_running(&mut self, at: JobAt, action: Action, reason: Reason, evidence: Evidence) {
        let run = self.pool.jobs[at].run;
        self.steps.push(Step { job: run.name.clone(), queue: run.queue.clone(), action, reason, evidence });
    }
}

/// Counts the room of a reservation, so that nobody else is given it before its job's turn.
fn hold(pool: &mut Pool<'_>, ask: &Ask<'_>, kept: &Reservation) -> Option<Held> {
    let made_for = Resource::Cards(kept.model.clone());
    let choice = ask
        .choices
        .iter()
        .find(|choice| pool.resources.get(choice.need.model) == Some(&made_for))
        .or(ask.choices.first())?;
    let workers = kept.workers;
    if workers < ask.pending.min_workers || workers > ask.pending.workers {
        return None;
    }
    if !pool.fits_quota(ask.queue, &times(&choice.each, workers), View::After) {
        return None;
    }
    let spots = if pool.rooms.counted() { pool.free_spots(choice, &kept.pieces, View::After)? } else { Vec::new() };
    pool.promise(ask.queue, choice, workers, &spots);
    Some(Held { choice: choice.clone(), workers, spots })
}
