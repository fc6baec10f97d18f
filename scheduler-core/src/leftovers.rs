//! Room that is free and yet nobody's this round.
//!
//! The head gang of a model, for which there is no room yet, has a place from the moment on when enough will have ended: what runs longer doesn't start there, so small
//! jobs don't keep it waiting for ever, and short ones fill the gap (EASY backfill).
//!
//! What this round's victims leave beyond what they were ended for is nobody's before it is empty: nobody starts on it and nobody is promised it. Quota that its queue couldn't
//! take back isn't lent while one of its own jobs waits for it. But neither is anybody ended for one whom such room would hold.

use cardhour_domain::Timestamp;

use crate::names::JobName;
use crate::pool::Pool;
use crate::pool::rooms::{Need, Spot, View};
use crate::pool::tree::{QueueAt, ResourceAt};
use crate::snapshot::Resource;

/// Such room of this round.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// The places of head gangs.
    pub heads: Vec<Head>,
    held_heads: Vec<Head>,
    /// Spots that victims leave, as far as nobody was given them since; those at the end are new, and not kept yet.
    spots: Vec<Spot>,
    /// How many of the spots are kept.
    kept: usize,
    /// Quota that victims leave beyond what their asker lacked, by resource.
    quota: Vec<LeftQuota>,
    /// Quota that isn't lent.
    unlent: Vec<(QueueAt, ResourceAt, i64)>,
    held_unlent: Vec<(QueueAt, ResourceAt, i64)>,
    /// All of it is held as it should be.
    settled: bool,
}

/// Quota of one resource that victims leave.
#[derive(Default)]
struct LeftQuota {
    of: Vec<(QueueAt, i64)>,
    /// What is counted as in use of it; the same list, where it is held.
    held: bool,
    /// The state of the count when it was last held.
    seen: u64,
}

/// The place of a job that waits for others to end by themselves.
#[derive(Clone)]
pub(crate) struct Head {
    pub job: JobName,
    pub need: Need,
    pub spots: Vec<Spot>,
    /// When it can start.
    pub from: Timestamp,
}

impl Leftovers {
    /// Spots that somebody leaves.
    pub fn leave_spots(&mut self, spots: impl IntoIterator<Item = Spot>) {
        self.spots.extend(spots);
        self.settled = false;
    }

    /// Quota that somebody leaves.
    pub fn leave_quota(&mut self, queue: QueueAt, r: ResourceAt, amount: i64) {
        if self.quota.len() <= r {
            self.quota.resize_with(r + 1, LeftQuota::default);
        }
        debug_assert!(!self.quota[r].held, "quota is left while a search goes on");
        self.quota[r].of.push((queue, amount));
        self.settled = false;
    }

    /// Quota that isn't lent.
    pub fn lend_no_more(&mut self, queue: QueueAt, r: ResourceAt, amount: i64) {
        self.unlent.push((queue, r, amount));
    }

    /// Keeps from others what is still free of it. `asker`: the queue whose job is looked at; what is kept for a queue isn't kept from it.
    /// `ends`: when that job will have ended for certain.
    ///
    /// Cost: what was lifted, and cards of which others were given something since.
    pub fn hold(&mut self, pool: &mut Pool<'_>, asker: QueueAt, ends: Option<Timestamp>) {
        if self.settled && self.unlent.is_empty() && self.heads.is_empty() {
            return;
        }
        self.lift_heads(pool);
        self.lift_quota(pool, &[]);
        self.settled = true;
        self.keep_spots(pool);
        for (r, left) in self.quota.iter_mut().enumerate().filter(|(_, left)| !left.held) {
            // What others have been given of it since is theirs, and isn't looked at again.
            for (queue, amount) in &mut left.of {
                *amount = (*amount).min(pool.tree.available(&pool.after, *queue, r)).max(0);
                pool.tree.add(&mut pool.after, *queue, r, *amount);
            }
            left.of.retain(|(_, held)| *held > 0);
            (left.held, left.seen) = (true, pool.after.changes_of(r));
        }
        for head in self.heads.iter().filter(|head| ends.is_none_or(|ends| ends > head.from)) {
            for spot in &head.spots {
                pool.rooms.take(spot, &head.need, &[View::After]);
            }
            self.held_heads.push(head.clone());
        }
        for (queue, r, amount) in self.unlent.iter().filter(|(queue, ..)| *queue != asker) {
            let left = pool.tree.nominal(*queue, *r).unwrap_or(0) - pool.tree.shared(&pool.after, *queue, *r);
            let held = (*amount).min(left).max(0);
            pool.tree.add(&mut pool.now, *queue, *r, held);
            pool.tree.add(&mut pool.after, *queue, *r, held);
            self.held_unlent.push((*queue, *r, held));
        }
    }

    /// What others have been given of the spots since is theirs, and isn't looked at again.
    fn keep_spots(&mut self, pool: &mut Pool<'_>) {
        let overdrawn = pool.rooms.overdrawn();
        let mut left = std::mem::take(&mut self.spots);
        let new = left.split_off(self.kept);
        for (host, card) in &overdrawn {
            pool.rooms.keep_nothing_of(*host, *card);
        }
        if !overdrawn.is_empty() {
            let shrinks = |spot: &Spot| spot.cards.iter().any(|(card, _)| overdrawn.contains(&(spot.host, *card)));
            left.retain_mut(|spot| {
                if !shrinks(spot) {
                    return true;
                }
                let (again, rest): (Vec<_>, Vec<_>) =
                    spot.cards.iter().partition(|(card, _)| overdrawn.contains(&(spot.host, *card)));
                let again = pool.rooms.keep(&Spot { host: spot.host, cards: again });
                spot.cards = rest;
                spot.cards.extend(again.into_iter().flat_map(|spot| spot.cards));
                spot.cards.sort_unstable();
                !spot.cards.is_empty()
            });
        }
        left.extend(new.iter().filter_map(|spot| pool.rooms.keep(spot)));
        self.kept = left.len();
        self.spots = left;
        pool.rooms.lift_kept(false);
    }

    /// Counts it as free, for a search on account of `each` that must not end others in its stead.
    pub fn lift(&mut self, pool: &mut Pool<'_>, each: &[(ResourceAt, i64)]) {
        self.lift_heads(pool);
        pool.rooms.lift_kept(true);
        self.lift_quota(pool, each);
    }

    fn lift_heads(&mut self, pool: &mut Pool<'_>) {
        for head in self.held_heads.drain(..) {
            for spot in &head.spots {
                pool.rooms.release(spot, &head.need, &[View::After]);
            }
        }
    }

    /// Counts its quota as free and not its cards: what a queue uses is then what its jobs use.
    ///
    /// Only of what is asked for, and of what has changed since it was held, which is then held anew: where every job asks for cards of one model alone, a search for one model
    /// looks at no count of another.
    pub fn lift_quota(&mut self, pool: &mut Pool<'_>, each: &[(ResourceAt, i64)]) {
        self.settled = false;
        let all = pool.resources.iter().any(|resource| !matches!(resource, Resource::Cards(_)));
        for (r, left) in self.quota.iter_mut().enumerate().filter(|(_, left)| left.held) {
            if !all && each.iter().all(|(of, _)| *of != r) && left.seen == pool.after.changes_of(r) {
                continue;
            }
            for (queue, held) in &left.of {
                pool.tree.remove(&mut pool.after, *queue, r, *held);
            }
            left.held = false;
        }
        self.lift_unlent(pool);
    }

    fn lift_unlent(&mut self, pool: &mut Pool<'_>) {
        for (queue, r, held) in self.held_unlent.drain(..) {
            pool.tree.remove(&mut pool.now, queue, r, held);
            pool.tree.remove(&mut pool.after, queue, r, held);
        }
    }
}
