//! From a snapshot and a policy to a plan.
//!
//! Start at [`decide`]. First, jobs that lost workers are mended. Then the line is gone through: each job starts if it fits; else it waits for those who leave anyway; else others move
//! aside; else others are ended, if the rules of the site allow it; else it waits, and is told for what. What one job is given, the next finds taken. Room that is only now being
//! left is nobody's until it is empty.

use std::collections::BTreeMap;
use std::rc::Rc;

use cardhour_domain::{CardShare, CardTime};

use crate::disruption::jobs_to_spare;
use crate::entitlement::Entitlement;
use crate::leftovers::Leftovers;
use crate::moves::make_room;
use crate::names::JobName;
use crate::order::{Line, borrows};
use crate::plan::{Action, Evidence, Plan, Reason, Step, Why};
use crate::policy::{Order, Policy, WithinQueue};
use crate::pool::rooms::{Spot, View};
use crate::pool::tree::QueueAt;
use crate::pool::{Ask, AskAt, Choice, Pool, times};
use crate::recall::{Recall, Recalling};
use crate::repair::repair;
use crate::snapshot::{Reservation, Shape, Snapshot};
use crate::victims::{Hunt, NotFound};
use crate::waiting;

mod heads;
mod limits;
mod promises;
mod steps;

use promises::hold;

/// What should happen. Pure: the same snapshot, in any order of its lists, gives the same plan.
///
/// Errors: none; what can't be done is a job that waits, with the reason. Cost: the pool is numbered once and then changed in place.
pub fn decide(snapshot: &Snapshot, policy: &Policy) -> Plan {
    decide_watched(snapshot, policy, |_| {})
}

/// How far a round has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'s> {
    /// Queues, hosts and jobs have their numbers, and running jobs sit on their cards.
    Numbered,
    /// Every queue has its fair share.
    Shared,
    /// It is decided about one more job: its own step is the last, those who give way for it are before.
    Decided(&'s [Step]),
}

/// As [`decide`], and tells of each stage as soon as it is done. For those who carry out the first steps while the last are being decided, or who take the time of each.
pub fn decide_watched(snapshot: &Snapshot, policy: &Policy, watch: impl FnMut(Progress<'_>)) -> Plan {
    decide_on(snapshot, policy, Remember::Nothing, watch).plan
}

/// What a plan was made of that time changes by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Grounds {
    /// It was compared what jobs would lose.
    pub losses: bool,
    /// It was asked when others will have ended.
    pub heads: bool,
}

/// Whether a round gives the last one's refusals again and leaves its own for the next.
pub(crate) enum Remember<'r> {
    /// Neither.
    Nothing,
    /// Both; of a snapshot whose lists are sorted, each name once. `None`: there was no last round.
    Refusals(Option<(&'r Recall, &'r [Step])>),
}

/// A plan, what it was made of, and what is left for the next round.
pub(crate) struct Decided {
    pub plan: Plan,
    pub grounds: Grounds,
    pub recall: Option<Recall>,
}

/// As [`decide_watched`], with the last round in mind.
pub(crate) fn decide_on(
    snapshot: &Snapshot,
    policy: &Policy,
    remember: Remember<'_>,
    mut watch: impl FnMut(Progress<'_>),
) -> Decided {
    let pool = Pool::new(snapshot, policy);
    watch(Progress::Numbered);
    let entitlement = Entitlement::of(&pool);
    watch(Progress::Shared);
    let recalling = match remember {
        Remember::Nothing => Recalling::nothing(),
        Remember::Refusals(before) => Recalling::new(&pool, &entitlement, before),
    };
    let mut round = Round::new(pool, entitlement, recalling);
    round.mend();
    round.go_through_line(&mut watch);
    let grounds = Grounds { losses: round.losses_compared, heads: !round.leftovers.heads.is_empty() };
    Decided { plan: Plan { steps: round.steps }, grounds, recall: round.recalling.left() }
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
    /// Kinds that found no room this round, by queue, with the step that says why: the next of the kind isn't tried.
    hopeless: Vec<BTreeMap<Kind<'a>, usize>>,
    /// Whether it was compared what jobs would lose.
    losses_compared: bool,
    recalling: Recalling<'a>,
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

/// What makes two pending jobs of a queue the same to the pool.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'a> {
    /// Its first model and its cards: of two shapes that differ, most differ in these.
    model: Option<usize>,
    parts: i64,
    priority: i32,
    workers: u32,
    min_workers: u32,
    preemptible: bool,
    critical: bool,
    /// How long it runs, where room is kept for a gang: what ends in time may use it.
    longest_ms: Option<i64>,
    shape: &'a Shape,
}

impl<'a> Round<'a> {
    fn new(mut pool: Pool<'a>, entitlement: Entitlement, recalling: Recalling<'a>) -> Self {
        let (snapshot, policy) = (pool.snapshot, pool.policy);
        let asks = Rc::clone(&pool.asks);
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
            hopeless: vec![BTreeMap::new(); pool.tree.queues.len()],
            pool,
            entitlement,
            recalling,
            losses_compared: false,
            asks,
            steps: Vec::new(),
            tokens,
            promises,
            given_back: BTreeMap::new(),
            leftovers: Leftovers::default(),
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
            let mended = &self.steps[self.steps.len() - 1..];
            self.recalling.happened(self.pool.jobs[at].need.model, mended);
        }
    }

    fn go_through_line(&mut self, watch: &mut impl FnMut(Progress<'_>)) {
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
            let ends = self.ends(ask);
            self.leftovers.hold(&mut self.pool, queue, ends);
            let before = self.steps.len();
            (self.pool.losses_compared, self.pool.moves_searched) = (false, false);
            let seated = self.consider(ask);
            self.losses_compared |= self.pool.losses_compared;
            if seated.is_some() {
                self.note_seated(before);
            }
            watch(Progress::Decided(&self.steps[before..]));
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

    /// Notes what was done to seat a job, by its steps from `first` on.
    fn note_seated(&mut self, first: usize) {
        let steps = &self.steps[first..];
        let seat = steps.iter().find_map(|step| match &step.action {
            Action::Admit(seat) | Action::Reserve { seat, .. } => seat.model.as_ref(),
            Action::Evict { .. } | Action::Shrink { .. } | Action::Move { .. } | Action::Requeue | Action::Wait => None,
        });
        if let Some(r) = seat.and_then(|model| self.pool.model(model)) {
            self.recalling.happened(r, steps);
        }
    }

    /// Decides about one job. The workers it was given, now or by promise; `None`: it waits.
    fn consider(&mut self, at: AskAt) -> Option<u32> {
        let asks = Rc::clone(&self.asks);
        let ask = &asks[at];
        let pending = ask.pending;
        let kind = Kind {
            model: ask.choices.first().map(|choice| choice.need.model),
            parts: pending.shape.cards.parts(),
            priority: pending.priority,
            shape: &pending.shape,
            workers: pending.workers,
            min_workers: pending.min_workers,
            preemptible: pending.preemptible,
            critical: pending.critical.as_ref().is_some_and(|window| window.holds_at(self.pool.at())),
            longest_ms: pending.longest_ms.filter(|_| !self.leftovers.heads.is_empty()),
        };
        if let Some(same) = self.hopeless[ask.queue].get(&kind) {
            let same = &self.steps[*same];
            let (reason, evidence) = (same.reason.clone(), same.evidence.clone());
            self.push(pending, Action::Wait, reason, evidence);
            return None;
        }
        if let Some(step) = self.recalling.refusal(ask, self.tokens == Some(0)) {
            if self.pool.rules(ask.queue).within_queue != WithinQueue::LowerOrNewerEqual {
                self.hopeless[ask.queue].insert(kind, self.steps.len());
            }
            self.recalling.refused(ask, self.tokens == Some(0), self.steps.len());
            self.push(pending, Action::Wait, step.reason.clone(), step.evidence.clone());
            return None;
        }
        if ask.choices.is_empty() {
            self.wait(pending, Why::NoSuchModel, Vec::new());
            return None;
        }
        if let Some(workers) = self.keep_promise(at, ask) {
            return Some(workers);
        }
        if !kind.critical && !self.pool.snapshot.off_peak && self.starts_off_peak_only(ask.queue) {
            self.wait(pending, Why::OffPeakOnly, Vec::new());
            return None;
        }
        // A job that runs on any model takes the one of which its queue has quota; one that names them has them in its own order.
        let mut choices = ask.choices.clone();
        if pending.shape.models.is_empty() {
            choices.sort_by_key(|choice| borrows(&self.pool, at, choice));
        }
        let mut missed = NotFound::default();
        let least = pending.min_workers.max(1).min(pending.workers.max(1));
        if !ask.choices.iter().any(|choice| self.lends(ask, choice, least)) {
            self.wait(pending, Why::NotLentToUnpreemptible, Vec::new());
            return None;
        }
        if self.pool.policy.elastic_ends_others_to_grow {
            for workers in (least..=pending.workers).rev() {
                for choice in &choices {
                    if let Some(workers) = self.seat(ask, choice, workers, workers, &mut missed) {
                        return Some(workers);
                    }
                }
            }
        } else {
            for choice in &choices {
                if let Some(workers) = self.start(ask, choice, least, pending.workers) {
                    return Some(workers);
                }
            }
            for choice in &choices {
                if let Some(workers) = self.make_way(ask, choice, least, &mut missed) {
                    return Some(workers);
                }
            }
        }
        let heads = self.leftovers.heads.len();
        self.keep_head(ask);
        if let Some(head) = self.leftovers.heads.get(heads) {
            self.recalling.has_head(head.need.model);
        } else if !self.pool.losses_compared && !self.pool.moves_searched {
            self.recalling.refused(ask, self.tokens == Some(0), self.steps.len());
        }
        let why = waiting::why(&self.pool, &self.entitlement, ask, &missed);
        let considered: Vec<JobName> =
            missed.considered.iter().map(|job| self.pool.jobs[*job].run.name.clone()).collect();
        self.hold_unreclaimable(ask);
        if self.pool.rules(ask.queue).within_queue != WithinQueue::LowerOrNewerEqual {
            self.hopeless[ask.queue].insert(kind, self.steps.len());
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
        let reason = self.reason_of_free_room(ask.queue, choice, workers);
        self.pool.admit(ask.queue, choice, workers, &spots);
        self.fix(ask, choice, workers);
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
        self.leftovers.lift_quota(&mut self.pool, &choice.each);
        let moved = make_room(&mut self.pool, &self.entitlement, ask, choice, workers, self.tokens);
        if let Some((moved, spots)) = moved {
            debug_assert!(!moved.is_empty(), "a job for which nobody moves doesn't get room by moves");
            self.promise_by_moves(ask, choice, workers, &moved, &spots);
            return Some(workers);
        }
        self.leftovers.lift(&mut self.pool, &choice.each);
        let found = self.hunt(ask, choice, workers, missed);
        let ends = ask.pending.longest_ms.and_then(|longest| self.pool.at().checked_add_ms(longest));
        self.leftovers.hold(&mut self.pool, ask.queue, ends);
        found.then_some(workers)
    }

    /// Room by ending others, where the room that is being left anyway doesn't suffice. `false`: none.
    fn hunt(&mut self, ask: &Ask<'a>, choice: &Choice, workers: u32, missed: &mut NotFound) -> bool {
        if self.pool.fit(ask, choice, workers, View::After, &[]).is_some() {
            missed.kept_for = self
                .leftovers
                .heads
                .iter()
                .find(|head| head.need.model == choice.need.model)
                .map(|head| head.job.clone());
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
                missed.budget = missed.budget.max(none.budget);
                for job in none.considered {
                    if !missed.considered.contains(&job) {
                        missed.considered.push(job);
                    }
                }
                false
            }
        }
    }
}
