//! The pool kept between rounds: what changed is told, and a round that can't come out otherwise than the last one isn't gone through again.
//!
//! Start at [`Rounds`]. Its plan is, to the byte, the one that [`decide`](crate::decide()) makes of the same pool at the same instant; a test over drawn streams of changes says so.
//! It is the last plan as long as nothing has changed that a plan is made of, and no instant has passed at which time alone changes one: a least run or a cool-down is over, a critical
//! window begins or ends, a reservation lapses, a broken gang's grace is used up. A plan that ends, moves or newly promises anything speaks of its own instant, in card-hours lost or in
//! the time until which room is kept, and is never used again.
//!
//! Does not: keep any part of a round that did change. Then the whole pool is numbered and gone through as by `decide`.

use cardhour_domain::Timestamp;

use crate::decide::{Grounds, decide_on};
use crate::names::{HostName, JobName, QueueName};
use crate::plan::{Action, Plan, Reason};
use crate::policy::{MinRun, Policy};
use crate::snapshot::{CriticalWindow, Host, Pending, Queue, Reservation, Running, Snapshot};

/// A pool, a policy, and the plan of the last round.
#[derive(Debug)]
pub struct Rounds {
    /// Its lists are sorted by name, each name once.
    snapshot: Snapshot,
    policy: Policy,
    last: Option<Last>,
    decided: u64,
}

#[derive(Debug)]
struct Last {
    plan: Plan,
    grounds: Grounds,
    /// The first instant at which the same pool may give another plan. `None`: none does by time alone.
    until: Option<Timestamp>,
}

/// Something that has changed in the pool. What has a name replaces what had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A job waits: it was submitted, or asks for something else than before. It no longer runs.
    Waits(Pending),
    /// A job runs: it started, moved, was seen to write a checkpoint, was told to go. It no longer waits.
    Runs(Running),
    /// A job has ended or was withdrawn.
    Gone(JobName),
    /// A host is there, or is in another state.
    Host(Host),
    /// A host was taken out.
    HostGone(HostName),
    /// A queue is there, or has other quota, weight, usage or rules.
    Queue(Queue),
    /// A queue was taken out.
    QueueGone(QueueName),
    /// Room is kept for a job.
    Kept(Reservation),
    /// Room is no longer kept for a job.
    KeptNoMore(JobName),
    /// An off-peak window begins.
    OffPeakBegins,
    /// An off-peak window ends.
    OffPeakEnds,
}

/// Something with a name, in a list sorted by it.
trait Named {
    type Name: Ord;
    fn name(&self) -> &Self::Name;
}

macro_rules! named {
    ($($thing:ty, $name:ty, $field:ident;)*) => {$(
        impl Named for $thing {
            type Name = $name;
            fn name(&self) -> &$name {
                &self.$field
            }
        }
    )*};
}

named! {
    Pending, JobName, name;
    Running, JobName, name;
    Host, HostName, name;
    Queue, QueueName, name;
    Reservation, JobName, job;
}

/// Puts a thing in the place of what has its name. Whether the list is another now.
fn put<T: Named + PartialEq>(list: &mut Vec<T>, thing: T) -> bool {
    match list.binary_search_by(|one| one.name().cmp(thing.name())) {
        Ok(at) if list[at] == thing => false,
        Ok(at) => {
            list[at] = thing;
            true
        }
        Err(at) => {
            list.insert(at, thing);
            true
        }
    }
}

/// Takes out what has a name. Whether there was something.
fn take<T: Named>(list: &mut Vec<T>, name: &T::Name) -> bool {
    let found = list.binary_search_by(|one| one.name().cmp(name));
    found.map(|at| list.remove(at)).is_ok()
}

fn sorted<T: Named>(list: &mut Vec<T>) {
    list.sort_by(|a, b| a.name().cmp(b.name()));
    list.dedup_by(|a, b| a.name() == b.name());
}

impl Rounds {
    /// Of the pool as it is. Of two things of one name the first counts.
    pub fn new(mut snapshot: Snapshot, policy: Policy) -> Self {
        sorted(&mut snapshot.queues);
        sorted(&mut snapshot.hosts);
        sorted(&mut snapshot.running);
        sorted(&mut snapshot.pending);
        sorted(&mut snapshot.reservations);
        Self { snapshot, policy, last: None, decided: 0 }
    }

    /// The pool as it was told so far, at the instant of the last round.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// How many rounds were gone through; the others gave the last plan again.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Notes a change. Cost: a search by name, and the list moves up or down by one.
    pub fn apply(&mut self, change: Change) {
        let pool = &mut self.snapshot;
        let changed = match change {
            Change::Waits(job) => take(&mut pool.running, &job.name) | put(&mut pool.pending, job),
            Change::Runs(job) => {
                let stopped_waiting = take(&mut pool.pending, &job.name);
                let only_checkpoint = pool.running.binary_search_by(|run| run.name.cmp(&job.name)).is_ok_and(|at| {
                    Running { checkpoint: pool.running[at].checkpoint, ..job.clone() } == pool.running[at]
                });
                let differs = put(&mut pool.running, job);
                // What a job would lose is asked only where somebody may be ended.
                let matters = !only_checkpoint || self.last.as_ref().is_none_or(|last| last.grounds.losses);
                stopped_waiting || differs && matters
            }
            Change::Gone(job) => take(&mut pool.running, &job) | take(&mut pool.pending, &job),
            Change::Host(host) => put(&mut pool.hosts, host),
            Change::HostGone(host) => take(&mut pool.hosts, &host),
            Change::Queue(queue) => put(&mut pool.queues, queue),
            Change::QueueGone(queue) => take(&mut pool.queues, &queue),
            Change::Kept(reservation) => put(&mut pool.reservations, reservation),
            Change::KeptNoMore(job) => take(&mut pool.reservations, &job),
            Change::OffPeakBegins => !std::mem::replace(&mut pool.off_peak, true),
            Change::OffPeakEnds => std::mem::replace(&mut pool.off_peak, false),
        };
        if changed {
            self.last = None;
        }
    }

    /// Another policy from now on.
    pub fn set_policy(&mut self, policy: Policy) {
        if policy != self.policy {
            self.policy = policy;
            self.last = None;
        }
    }

    /// What should happen at an instant. An instant before the last round's is as good as any other.
    pub fn round(&mut self, at: Timestamp) -> &Plan {
        let before = std::mem::replace(&mut self.snapshot.at, at);
        let same = match &self.last {
            Some(last) => at == before || before < at && last.until.is_none_or(|until| at < until),
            None => false,
        };
        if !same {
            self.decided += 1;
            self.last = None;
        }
        let (snapshot, policy) = (&self.snapshot, &self.policy);
        let last = self.last.get_or_insert_with(|| {
            let (plan, grounds) = decide_on(snapshot, policy, |_| {});
            let until =
                if speaks_of_its_instant(snapshot, &plan, grounds) { Some(at) } else { next_turn(snapshot, policy) };
            Last { plan, grounds, until }
        });
        &last.plan
    }
}

/// Whether a plan would read otherwise a moment later, with nothing changed.
fn speaks_of_its_instant(snapshot: &Snapshot, plan: &Plan, grounds: Grounds) -> bool {
    let by_ends = grounds.heads && snapshot.pending.iter().any(|job| job.longest_ms.is_some());
    grounds.losses
        || by_ends
        || plan.steps.iter().any(|step| match &step.action {
            Action::Evict { .. } | Action::Shrink { .. } => true,
            Action::Move { for_job, .. } => for_job.is_some(),
            Action::Reserve { .. } => step.reason != Reason::Reserved,
            Action::Admit(_) | Action::Requeue | Action::Wait => false,
        })
}

/// The first instant after the snapshot's at which time alone changes what holds of a job or a reservation.
fn next_turn(snapshot: &Snapshot, policy: &Policy) -> Option<Timestamp> {
    let table = &policy.min_run;
    let all = std::iter::once(&table.default).chain(table.queues.values());
    let mut least_ms: Vec<i64> =
        all.flat_map(|MinRun { preempt_ms, reclaim_ms }| [*preempt_ms, *reclaim_ms]).flatten().collect();
    least_ms.sort_unstable();
    least_ms.dedup();
    let window = |window: &Option<CriticalWindow>| {
        window.as_ref().map_or([None, None], |window| [Some(window.from), Some(window.until)])
    };
    let cool = |ended: Option<Timestamp>| ended.and_then(|ended| ended.checked_add_ms(policy.cool_down_ms));
    let mut first: Option<Timestamp> = None;
    let mut note = |turn: Option<Timestamp>| {
        if let Some(turn) = turn.filter(|turn| snapshot.at < *turn) {
            first = Some(first.map_or(turn, |first| first.min(turn)));
        }
    };
    for run in &snapshot.running {
        window(&run.critical).into_iter().for_each(&mut note);
        note(cool(run.last_preempted));
        note(
            run.missing
                .and_then(|missing| missing.since)
                .and_then(|since| since.checked_add_ms(policy.broken_grace_ms)),
        );
        for least in &least_ms {
            note(run.admitted.checked_add_ms(least.saturating_mul(1 << run.preempted_today.min(3))));
        }
    }
    for job in &snapshot.pending {
        window(&job.critical).into_iter().for_each(&mut note);
        note(cool(job.last_preempted));
    }
    for kept in &snapshot.reservations {
        note(Some(kept.until));
    }
    first
}
