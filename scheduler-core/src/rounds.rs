//! The pool kept between rounds: what changed is told, and a round that can't come out otherwise than the last one isn't gone through again.
//!
//! Start at [`Rounds`]. Its plan is, to the byte, the one that [`decide`](crate::decide()) makes of the same pool at the same instant; a test over drawn streams of changes says so.
//! It is the last plan as long as nothing has changed that a plan is made of, and no instant has passed at which time alone changes one: a least run or a cool-down is over, a critical
//! window begins or ends, a reservation lapses, a broken gang's grace is used up. A plan that ends, moves or newly promises anything speaks of its own instant, in card-hours lost or in
//! the time until which room is kept, and is never used again.
//!
//! Where something has changed, the pool is numbered and gone through anew; but a job that was refused, and whose refusal nothing of it touches, is refused by the same words without a search:
//! see `recall`.

use cardhour_domain::Timestamp;

use crate::decide::{Decided, Grounds, Remember, decide_on};
use crate::names::{HostName, JobName, QueueName};
use crate::plan::{Action, Plan, Reason};
use crate::policy::{MinRun, Policy};
use crate::recall::Recall;
use crate::snapshot::{CriticalWindow, Host, Pending, Queue, Reservation, Running, Snapshot};

/// A pool, a policy, and the plan of the last round.
#[derive(Debug)]
pub struct Rounds {
    /// Its lists are sorted by name, each name once.
    snapshot: Snapshot,
    policy: Policy,
    last: Option<Last>,
    decided: u64,
    recalled: u64,
}

#[derive(Debug)]
struct Last {
    plan: Plan,
    grounds: Grounds,
    /// The first instant at which the same pool may give another plan. `None`: none does by time alone.
    until: Option<Timestamp>,
    /// Something of the pool has changed since.
    stale: bool,
    /// Its refusals, as far as the next round may give them again.
    recall: Option<Recall>,
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

/// The place of what has a name, or the one where it would be.
fn place_of<T: Named>(list: &[T], name: &T::Name) -> Result<usize, usize> {
    list.binary_search_by(|one| one.name().cmp(name))
}

/// Puts a thing in the place of what has its name. Whether the list is another now.
fn put<T: Named + PartialEq>(list: &mut Vec<T>, thing: T) -> bool {
    match place_of(list, thing.name()) {
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

/// Takes out what has a name, if there is something.
fn take<T: Named>(list: &mut Vec<T>, name: &T::Name) -> Option<T> {
    place_of(list, name).ok().map(|at| list.remove(at))
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
        Self { snapshot, policy, last: None, decided: 0, recalled: 0 }
    }

    /// The pool as it was told so far, at the instant of the last round.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// How many rounds were gone through; the others gave the last plan again.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// How many refusals were given again without a search, in rounds that were gone through.
    pub fn recalled(&self) -> u64 {
        self.recalled
    }

    /// Notes a change. Cost: a search by name, and the list moves up or down by one.
    pub fn apply(&mut self, change: Change) {
        let changed = match change {
            Change::Waits(job) => {
                let ran = self.stop_running(&job.name);
                ran | self.wait(job)
            }
            Change::Runs(run) => {
                let waited = self.stop_waiting(&run.name);
                waited | self.run(run)
            }
            Change::Gone(job) => self.stop_running(&job) | self.stop_waiting(&job),
            Change::Host(host) => put(&mut self.snapshot.hosts, host) && self.recall_nothing(),
            Change::HostGone(host) => take(&mut self.snapshot.hosts, &host).is_some() && self.recall_nothing(),
            Change::Queue(queue) => self.set_queue(queue),
            Change::QueueGone(queue) => take(&mut self.snapshot.queues, &queue).is_some() && self.recall_nothing(),
            Change::Kept(kept) => {
                let job = kept.job.clone();
                self.promise_changed(&job);
                let changed = put(&mut self.snapshot.reservations, kept);
                self.promise_changed(&job);
                changed
            }
            Change::KeptNoMore(job) => {
                self.promise_changed(&job);
                take(&mut self.snapshot.reservations, &job).is_some()
            }
            Change::OffPeakBegins => !std::mem::replace(&mut self.snapshot.off_peak, true) && self.recall_nothing(),
            Change::OffPeakEnds => std::mem::replace(&mut self.snapshot.off_peak, false) && self.recall_nothing(),
        };
        if changed && let Some(last) = &mut self.last {
            last.stale = true;
        }
    }

    fn recall(&mut self) -> Option<&mut Recall> {
        self.last.as_mut()?.recall.as_mut()
    }

    /// No refusal is sure any more. True, for it is asked where something has changed.
    fn recall_nothing(&mut self) -> bool {
        if let Some(last) = &mut self.last {
            last.recall = None;
        }
        true
    }

    fn wait(&mut self, job: Pending) -> bool {
        let place = place_of(&self.snapshot.pending, &job.name);
        if place.is_ok_and(|at| self.snapshot.pending[at] == job) {
            return false;
        }
        let name = job.name.clone();
        self.promise_changed(&name);
        if let Some(recall) = self.recall() {
            match place {
                Ok(at) => recall.forget(at),
                Err(at) => recall.put(at),
            }
        }
        put(&mut self.snapshot.pending, job);
        self.promise_changed(&name);
        true
    }

    fn stop_waiting(&mut self, job: &JobName) -> bool {
        let Ok(at) = place_of(&self.snapshot.pending, job) else { return false };
        self.promise_changed(job);
        if let Some(recall) = self.recall() {
            recall.take(at);
        }
        self.snapshot.pending.remove(at);
        true
    }

    fn run(&mut self, run: Running) -> bool {
        let known = place_of(&self.snapshot.running, &run.name).ok().map(|at| &self.snapshot.running[at]);
        let only_checkpoint =
            known.is_some_and(|known| Running { checkpoint: known.checkpoint, ..run.clone() } == *known);
        if only_checkpoint {
            let differs = put(&mut self.snapshot.running, run);
            // What a job would lose is asked only where somebody may be ended, and no such refusal is given again.
            return differs && self.last.as_ref().is_none_or(|last| last.grounds.losses);
        }
        let known = known.cloned();
        known.iter().chain([&run]).for_each(|run| self.run_changed(run));
        put(&mut self.snapshot.running, run)
    }

    fn stop_running(&mut self, job: &JobName) -> bool {
        let gone = take(&mut self.snapshot.running, job);
        gone.iter().for_each(|run| self.run_changed(run));
        gone.is_some()
    }

    fn set_queue(&mut self, queue: Queue) -> bool {
        let known = place_of(&self.snapshot.queues, &queue.name).ok().map(|at| &self.snapshot.queues[at]);
        // These three speak in fair shares and in the line alone.
        let only_weight = known.is_some_and(|known| {
            let Queue { weight_milli, past_usage, over_quota_priority, .. } = *known;
            Queue { weight_milli, past_usage, over_quota_priority, ..queue.clone() } == *known
        });
        put(&mut self.snapshot.queues, queue) && (only_weight || self.recall_nothing())
    }

    /// What holds of a running job is another: no refusal on its models is sure.
    fn run_changed(&mut self, run: &Running) {
        let Some(Last { recall: Some(recall), .. }) = &mut self.last else { return };
        let mut told = false;
        for model in &run.shape.models {
            recall.changed(model);
            told = true;
        }
        for host in run.pieces.iter().filter_map(|piece| piece.host.as_ref()) {
            if let Ok(at) = place_of(&self.snapshot.hosts, host) {
                recall.changed(&self.snapshot.hosts[at].model);
            }
        }
        if !told || run.pieces.iter().any(|piece| piece.host.is_none()) {
            self.recall_nothing();
        }
    }

    /// Room that is kept for a job is another, or what the job asks for.
    fn promise_changed(&mut self, job: &JobName) {
        let Some(Last { recall: Some(recall), .. }) = &mut self.last else { return };
        let pool = &self.snapshot;
        let Ok(kept) = place_of(&pool.reservations, job).map(|at| &pool.reservations[at]) else { return };
        recall.changed(&kept.model);
        match place_of(&pool.pending, job).map(|at| &pool.pending[at].shape.models) {
            Ok(models) if models.is_empty() => _ = self.recall_nothing(),
            Ok(models) => models.iter().for_each(|model| recall.changed(model)),
            Err(_) => {}
        }
    }

    /// Time has passed: whatever it changes by itself is another.
    fn pass(&mut self, before: Timestamp, at: Timestamp) {
        if at < before {
            self.recall_nothing();
            return;
        }
        if self.recall().is_none() {
            return;
        }
        let turned = |turn: Timestamp| before < turn && turn <= at;
        let least_ms = least_runs_ms(&self.policy);
        let mut runs: Vec<Running> = Vec::new();
        for run in &self.snapshot.running {
            let mut any = false;
            turns_of_run(run, &self.policy, &least_ms, |turn| any |= turned(turn));
            if any {
                runs.push(run.clone());
            }
        }
        runs.iter().for_each(|run| self.run_changed(run));
        let lapsed = self.snapshot.reservations.iter().filter(|kept| turned(kept.until));
        let lapsed: Vec<JobName> = lapsed.map(|kept| kept.job.clone()).collect();
        lapsed.iter().for_each(|job| self.promise_changed(job));
        let Some(Last { recall: Some(recall), .. }) = &mut self.last else { return };
        for (place, job) in self.snapshot.pending.iter().enumerate() {
            if window_turns(job.critical.as_ref()).into_iter().flatten().any(turned) {
                recall.forget(place);
            }
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
        let same = self.last.as_ref().is_some_and(|last| {
            !last.stale && (at == before || before < at && last.until.is_none_or(|until| at < until))
        });
        if !same {
            self.pass(before, at);
        }
        let last = match self.last.take() {
            Some(last) if same => last,
            last => {
                let kept = last.as_ref().and_then(|last| Some((last.recall.as_ref()?, last.plan.steps.as_slice())));
                let (snapshot, policy) = (&self.snapshot, &self.policy);
                let Decided { plan, grounds, recall } = decide_on(snapshot, policy, Remember::Refusals(kept), |_| {});
                self.decided += 1;
                self.recalled += recall.as_ref().map_or(0, Recall::given_again);
                let speaks = speaks_of_its_instant(snapshot, &plan, grounds);
                let until = if speaks { Some(at) } else { next_turn(snapshot, policy) };
                Last { plan, grounds, until, stale: false, recall }
            }
        };
        &self.last.insert(last).plan
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

/// All least runs that a policy knows, in ms.
fn least_runs_ms(policy: &Policy) -> Vec<i64> {
    let table = &policy.min_run;
    let all = std::iter::once(&table.default).chain(table.queues.values());
    let mut least_ms: Vec<i64> =
        all.flat_map(|MinRun { preempt_ms, reclaim_ms }| [*preempt_ms, *reclaim_ms]).flatten().collect();
    least_ms.sort_unstable();
    least_ms.dedup();
    least_ms
}

fn window_turns(window: Option<&CriticalWindow>) -> [Option<Timestamp>; 2] {
    window.map_or([None, None], |window| [Some(window.from), Some(window.until)])
}

fn cool(ended: Option<Timestamp>, policy: &Policy) -> Option<Timestamp> {
    ended.and_then(|ended| ended.checked_add_ms(policy.cool_down_ms))
}

/// The instants at which time alone changes what holds of a running job.
fn turns_of_run(run: &Running, policy: &Policy, least_ms: &[i64], mut note: impl FnMut(Timestamp)) {
    window_turns(run.critical.as_ref()).into_iter().flatten().for_each(&mut note);
    cool(run.last_preempted, policy).into_iter().for_each(&mut note);
    let since = run.missing.and_then(|missing| missing.since);
    since.and_then(|since| since.checked_add_ms(policy.broken_grace_ms)).into_iter().for_each(&mut note);
    for least in least_ms {
        run.admitted
            .checked_add_ms(least.saturating_mul(1 << run.preempted_today.min(3)))
            .into_iter()
            .for_each(&mut note);
    }
}

/// The first instant after the snapshot's at which time alone changes what holds of a job or a reservation.
fn next_turn(snapshot: &Snapshot, policy: &Policy) -> Option<Timestamp> {
    let least_ms = least_runs_ms(policy);
    let mut first: Option<Timestamp> = None;
    let mut note = |turn: Timestamp| {
        if snapshot.at < turn {
            first = Some(first.map_or(turn, |first| first.min(turn)));
        }
    };
    for run in &snapshot.running {
        turns_of_run(run, policy, &least_ms, &mut note);
    }
    for job in &snapshot.pending {
        window_turns(job.critical.as_ref()).into_iter().flatten().for_each(&mut note);
        cool(job.last_preempted, policy).into_iter().for_each(&mut note);
    }
    snapshot.reservations.iter().for_each(|kept| note(kept.until));
    first
}
