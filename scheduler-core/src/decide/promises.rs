//! Room that isn't empty yet: kept from an earlier round, made by moves, or made by ending others.

use std::collections::{BTreeMap, BTreeSet};

use cardhour_domain::{CardTime, Timestamp};

use super::{Held, Round};
use crate::moves::Moved;
use crate::names::JobName;
use crate::plan::{Action, Evidence, Reason};
use crate::pool::rooms::{Spot, View};
use crate::pool::{Ask, AskAt, Choice, JobAt, Pool, times};
use crate::snapshot::{Reservation, Resource};
use crate::victims::Found;

impl<'a> Round<'a> {
    /// A job with a reservation starts when its room is empty, or other room is, and keeps waiting while its room is being left.
    pub(super) fn keep_promise(&mut self, at: AskAt, ask: &Ask<'a>) -> Option<u32> {
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
    pub(super) fn leaving_for(&self, ask: &Ask<'_>, choice: &Choice, workers: u32, spots: &[Spot]) -> Vec<JobName> {
        let tree = &self.pool.tree;
        let short: Vec<usize> = times(&choice.each, workers)
            .iter()
            .filter(|(r, amount)| tree.available(&self.pool.now, ask.queue, *r) < *amount)
            .map(|(r, _)| *r)
            .collect();
        let mut found: BTreeSet<JobAt> = BTreeSet::new();
        for mine in spots {
            let on_my_cards = |spot: &Spot| {
                spot.host == mine.host
                    && spot.cards.iter().any(|(card, _)| mine.cards.iter().any(|(of_mine, _)| of_mine == card))
            };
            let on_host = self.pool.going_on[mine.host].iter().copied();
            found.extend(on_host.filter(|job| self.pool.jobs[*job].going_spots.iter().any(on_my_cards)));
        }
        if !short.is_empty() {
            let root = tree.path(ask.queue).last();
            found.extend(self.pool.leaving.iter().copied().filter(|job| {
                let job = &self.pool.jobs[*job];
                tree.path(job.queue).last() == root && job.each.iter().any(|(r, _)| short.contains(r))
            }));
        }
        found.into_iter().map(|job| self.pool.jobs[job].run.name.clone()).collect()
    }

    #[allow(clippy::too_many_arguments)] // the parts of one step
    pub(super) fn promise(
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

    pub(super) fn promise_by_moves(
        &mut self,
        ask: &Ask<'a>,
        choice: &Choice,
        workers: u32,
        moved: &[Moved],
        spots: &[Spot],
    ) {
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
        self.leftovers.leave_spots(moved.iter().flat_map(|one| one.from.iter().cloned()));
        self.leftovers.hold(&mut self.pool, ask.queue, None);
    }

    /// Ends and shrinks the victims, seats the asker in what they leave, and keeps the rest of it from others this round.
    pub(super) fn promise_by_evictions(
        &mut self,
        ask: &Ask<'a>,
        choice: &Choice,
        workers: u32,
        found: Found,
        lacked: &[i64],
    ) {
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
        self.leftovers.leave_spots(taken.iter().flat_map(|one| one.spots.iter().cloned()));
        if let Some(last) = taken.last() {
            let queue = self.pool.jobs[last.job].queue;
            for ((r, _), lacked) in choice.each.iter().zip(lacked) {
                let rest = freed.get(r).copied().unwrap_or(0) - lacked;
                if rest > 0 {
                    self.leftovers.leave_quota(queue, *r, rest);
                }
            }
        }
    }
}

/// Counts the room of a reservation, so that nobody else is given it before its job's turn.
pub(super) fn hold(pool: &mut Pool<'_>, ask: &Ask<'_>, kept: &Reservation) -> Option<Held> {
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
    // A reservation that doesn't say where all its workers go keeps nothing where hosts are counted.
    if pool.rooms.counted() && spots.len() != workers as usize {
        return None;
    }
    pool.promise(ask.queue, choice, workers, &spots);
    Some(Held { choice: choice.clone(), workers, spots })
}
