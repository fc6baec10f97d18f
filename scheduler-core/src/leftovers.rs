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

/// Such room of this round.
#[derive(Default)]
pub(crate) struct Leftovers {
    /// Spots that victims leave.
    pub spots: Vec<Spot>,
    /// Quota that victims leave beyond what their asker lacked.
    pub quota: Vec<(QueueAt, ResourceAt, i64)>,
    /// Quota that isn't lent.
    pub unlent: Vec<(QueueAt, ResourceAt, i64)>,
    /// The places of head gangs.
    pub heads: Vec<Head>,
    held_heads: Vec<Head>,
    held_spots: Vec<Spot>,
    held_quota: Vec<(QueueAt, ResourceAt, i64)>,
    held_unlent: Vec<(QueueAt, ResourceAt, i64)>,
    /// All of it is held as it should be.
    settled: bool,
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
    /// Keeps from others what is still free of it. `asker`: the queue whose job is looked at; what is kept for a queue isn't kept from it.
    /// `ends`: when that job will have ended for certain.
    pub fn hold(&mut self, pool: &mut Pool<'_>, asker: QueueAt, ends: Option<Timestamp>) {
        if self.settled && self.unlent.is_empty() && self.heads.is_empty() {
            return;
        }
        self.lift(pool);
        self.settled = true;
        // What others have been given of it since is theirs, and isn't looked at again.
        self.held_spots = self.spots.iter().filter_map(|spot| pool.rooms.take_for_nobody(spot)).collect();
        self.spots.clone_from(&self.held_spots);
        for (queue, r, amount) in &self.quota {
            let held = (*amount).min(pool.tree.available(&pool.after, *queue, *r)).max(0);
            pool.tree.add(&mut pool.after, *queue, *r, held);
            self.held_quota.push((*queue, *r, held));
        }
        self.quota.clone_from(&self.held_quota);
        self.quota.retain(|(.., held)| *held > 0);
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

    /// Room was left to it, or it was given some.
    pub fn changed(&mut self) {
        self.settled = false;
    }

    /// Counts it as free, for a search that must not end others in its stead.
    pub fn lift(&mut self, pool: &mut Pool<'_>) {
        for head in self.held_heads.drain(..) {
            for spot in &head.spots {
                pool.rooms.release(spot, &head.need, &[View::After]);
            }
        }
        for spot in self.held_spots.drain(..) {
            pool.rooms.release_nobodys(&spot);
        }
        self.lift_quota(pool);
    }

    /// Counts its quota as free and not its cards: what a queue uses is then what its jobs use.
    pub fn lift_quota(&mut self, pool: &mut Pool<'_>) {
        self.settled = false;
        for (queue, r, held) in self.held_quota.drain(..) {
            pool.tree.remove(&mut pool.after, queue, r, held);
        }
        for (queue, r, held) in self.held_unlent.drain(..) {
            for view in [View::Now, View::After] {
                let used = match view {
                    View::Now => &mut pool.now,
                    View::After => &mut pool.after,
                };
                pool.tree.remove(used, queue, r, held);
            }
        }
    }
}
