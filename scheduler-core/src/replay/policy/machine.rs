//! The clock: what happens next, and what a plan does to the pool.

use super::past::{decayed, refreshed};
use super::{Course, Ending, HostChange, Job, Run, Trace};
use crate::audit::audit;
use crate::names::{HostName, JobName, Model, QueueName};
use crate::plan::{Action, Seat, Step};
use crate::policy::{MinRun, Policy};
use crate::rounds::{Change, Rounds};
use crate::snapshot::{HostState, Piece, Reservation, Running, Snapshot};
use cardhour_domain::{CardTime, Interval, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds at one instant at most: a plan that ends or moves somebody is followed by another, and what is then still to be done is done at the next instant.
const MOST_ROUNDS: usize = 64;
/// How long a job's being ended counts against ending it again. Unit: milliseconds, as in [`Running::preempted_today`].
const DAY_MS: i64 = 24 * 3_600_000;

pub(super) struct Machine<'t> {
    trace: &'t Trace,
    rounds: Rounds,
    now: Timestamp,
    place_of: BTreeMap<&'t JobName, usize>,
    /// Jobs by arrival, and how many of them have come.
    arrivals: Vec<(Timestamp, usize)>,
    arrived: usize,
    changes: Vec<&'t HostChange>,
    changed: usize,
    /// Who runs, by place.
    running: BTreeMap<usize, Running>,
    ends: BTreeSet<(Timestamp, usize)>,
    waiting: BTreeSet<usize>,
    /// Instants at which time alone may change a plan.
    turns: BTreeSet<Timestamp>,
    /// When a job that was ended counts one less.
    fades: BTreeSet<(Timestamp, usize)>,
    preempted: Vec<Preempted>,
    /// Hosts that are taken out as soon as they are empty.
    going: BTreeSet<HostName>,
    /// How long jobs run before they may be ended, each span of the policy once.
    least_ms: Vec<i64>,
    cool_down_ms: i64,
    /// When past usage is next brought up; `None`: it doesn't count.
    refresh_at: Option<Timestamp>,
    course: Course,
}

/// How often a job was ended in the last day, and when last.
#[derive(Clone, Copy, Default)]
struct Preempted {
    today: u32,
    last: Option<Timestamp>,
}

impl<'t> Machine<'t> {
    pub fn new(trace: &'t Trace, policy: &Policy) -> Self {
        let start = trace.pool.at;
        let mut arrivals: Vec<(Timestamp, usize)> = trace
            .jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| job.holds.is_none())
            .map(|(place, job)| (job.ask.submitted.max(start), place))
            .collect();
        arrivals.sort_unstable();
        let mut changes: Vec<&HostChange> = trace.hosts.iter().collect();
        changes.sort_by_key(|change| (change.at, &change.name));
        let of_table = std::iter::once(&policy.min_run.default).chain(policy.min_run.queues.values());
        let least_ms: BTreeSet<i64> =
            of_table.flat_map(|MinRun { preempt_ms, reclaim_ms }| [*preempt_ms, *reclaim_ms]).flatten().collect();
        let pool =
            Snapshot { running: Vec::new(), pending: Vec::new(), reservations: Vec::new(), ..trace.pool.clone() };
        let mut machine = Self {
            trace,
            rounds: Rounds::new(pool, policy.clone()),
            now: start,
            place_of: trace.jobs.iter().enumerate().map(|(place, job)| (job.name(), place)).collect(),
            arrivals,
            arrived: 0,
            changes,
            changed: 0,
            running: BTreeMap::new(),
            ends: BTreeSet::new(),
            waiting: BTreeSet::new(),
            turns: BTreeSet::new(),
            fades: BTreeSet::new(),
            preempted: vec![Preempted::default(); trace.jobs.len()],
            going: BTreeSet::new(),
            least_ms: least_ms.into_iter().collect(),
            cool_down_ms: policy.cool_down_ms,
            refresh_at: policy.past_usage.is_some().then_some(start),
            course: Course::default(),
        };
        for (place, job) in trace.jobs.iter().enumerate() {
            if let Some(window) = &job.ask.critical {
                machine.turns.extend([window.from, window.until]);
            }
            if let Some(holds) = &job.holds {
                machine.run(place, holds.since, holds.pieces.clone());
            }
        }
        machine
    }

    /// To the end. `audited`: the policy by which plans are looked at.
    pub fn play(mut self, audited: Option<&Policy>) -> Course {
        while let Some(next) = self.next() {
            self.now = next.max(self.now);
            self.change_hosts();
            self.end_runs();
            self.take_in();
            self.fade();
            self.empty_hosts();
            if !self.waiting.is_empty() {
                self.refresh_past();
                self.decide(audited);
            }
        }
        assert!(self.running.is_empty(), "what runs ends");
        self.course.unstarted = self.waiting.into_iter().collect();
        self.course.rounds = self.rounds.decided();
        self.course.runs.sort_unstable();
        self.course
    }

    /// The next instant at which something happens. `None`: nothing does any more.
    fn next(&mut self) -> Option<Timestamp> {
        let arrives = self.arrivals.get(self.arrived).map(|(at, _)| *at);
        let ends = self.ends.first().map(|(at, _)| *at);
        let changes = self.changes.get(self.changed).map(|change| change.at);
        while self.turns.first().is_some_and(|turn| *turn <= self.now) {
            self.turns.pop_first();
        }
        // Time alone matters only to somebody who waits.
        let turn = self.turns.first().copied().filter(|_| !self.waiting.is_empty());
        let changes = changes.filter(|_| arrives.is_some() || ends.is_some() || !self.waiting.is_empty());
        [arrives, ends, changes, turn].into_iter().flatten().min()
    }

    fn change_hosts(&mut self) {
        while let Some(change) = self.changes.get(self.changed).filter(|change| change.at <= self.now) {
            self.changed += 1;
            match &change.becomes {
                Some(host) => {
                    self.going.remove(&host.name);
                    self.rounds.apply(Change::Host(host.clone()));
                }
                None => {
                    let hosts = &self.rounds.snapshot().hosts;
                    let Some(host) = hosts.iter().find(|host| host.name == change.name).cloned() else { continue };
                    self.going.insert(host.name.clone());
                    self.rounds.apply(Change::Host(crate::snapshot::Host { state: HostState::Draining, ..host }));
                }
            }
        }
    }

    fn empty_hosts(&mut self) {
        if self.going.is_empty() {
            return;
        }
        let held: BTreeSet<&HostName> =
            self.running.values().flat_map(|run| &run.pieces).filter_map(|piece| piece.host.as_ref()).collect();
        let empty: Vec<HostName> = self.going.iter().filter(|host| !held.contains(host)).cloned().collect();
        for host in empty {
            self.going.remove(&host);
            self.rounds.apply(Change::HostGone(host));
        }
    }

    fn end_runs(&mut self) {
        while let Some((_, place)) = self.ends.first().copied().filter(|(at, _)| *at <= self.now) {
            self.stop(place, Ending::Done);
            self.rounds.apply(Change::Gone(self.trace.jobs[place].name().clone()));
        }
    }

    fn take_in(&mut self) {
        while let Some((_, place)) = self.arrivals.get(self.arrived).copied().filter(|(at, _)| *at <= self.now) {
            self.arrived += 1;
            self.wait(place);
        }
    }

    /// What of being ended lies a day back.
    fn fade(&mut self) {
        while let Some((at, place)) = self.fades.first().copied().filter(|(at, _)| *at <= self.now) {
            self.fades.remove(&(at, place));
            let today = self.preempted[place].today.saturating_sub(1);
            self.preempted[place].today = today;
            if let Some(run) = self.running.get_mut(&place) {
                run.preempted_today = today;
                let run = run.clone();
                self.note_turns(&run);
                self.rounds.apply(Change::Runs(run));
            }
        }
    }

    fn wait(&mut self, place: usize) {
        let job = &self.trace.jobs[place];
        let mut ask = job.ask.clone();
        ask.min_workers = ask.workers;
        ask.last_preempted = self.preempted[place].last.or(ask.last_preempted);
        self.waiting.insert(place);
        self.rounds.apply(Change::Waits(ask));
    }

    /// It holds cards from `since` on.
    fn run(&mut self, place: usize, since: Timestamp, pieces: Vec<Piece>) {
        let Job { ask, runs_ms, restartable, .. } = &self.trace.jobs[place];
        let Preempted { today, last } = self.preempted[place];
        let after = |ms: i64| since.checked_add_ms(ms).unwrap_or(since);
        let run = Running {
            name: ask.name.clone(),
            queue: ask.queue.clone(),
            priority: ask.priority,
            shape: ask.shape.clone(),
            pieces,
            min_workers: ask.workers,
            missing: None,
            submitted: ask.submitted,
            admitted: since,
            checkpoint: None,
            ends_by: ask.longest_ms.map(after),
            restart_ms: 0,
            preemptible: ask.preemptible,
            restartable: *restartable,
            critical: ask.critical.clone(),
            leaving: false,
            preempted_today: today,
            last_preempted: last.or(ask.last_preempted),
        };
        self.waiting.remove(&place);
        self.ends.insert((after((*runs_ms).max(0)), place));
        self.note_turns(&run);
        self.running.insert(place, run.clone());
        self.rounds.apply(Change::Runs(run));
        self.rounds.apply(Change::KeptNoMore(ask.name.clone()));
    }

    /// It holds none any more.
    fn stop(&mut self, place: usize, ending: Ending) {
        let run = self.running.remove(&place).expect("it runs");
        let runs_ms = self.trace.jobs[place].runs_ms.max(0);
        self.ends.remove(&(run.admitted.checked_add_ms(runs_ms).unwrap_or(run.admitted), place));
        // One that was over before the play begins is over when it was.
        let to = match ending {
            Ending::Done => run.admitted.checked_add_ms(runs_ms).unwrap_or(run.admitted),
            Ending::GaveWay | Ending::Moved => self.now,
        };
        self.course.runs.push(Run { from: run.admitted, job: place, to, ending, model: self.model_of(&run) });
    }

    fn model_of(&self, run: &Running) -> Option<Model> {
        let host = run.pieces.iter().find_map(|piece| piece.host.as_ref());
        let hosts = &self.rounds.snapshot().hosts;
        let of_host = host.and_then(|host| hosts.binary_search_by(|one| one.name.cmp(host)).ok());
        of_host.map(|at| hosts[at].model.clone()).or_else(|| run.shape.models.first().cloned())
    }

    fn note_turns(&mut self, run: &Running) {
        let least = self
            .least_ms
            .iter()
            .filter_map(|least| run.admitted.checked_add_ms(least.saturating_mul(1 << run.preempted_today.min(3))));
        self.turns.extend(least);
        self.turns.extend(run.last_preempted.and_then(|at| at.checked_add_ms(self.cool_down_ms)));
    }

    fn decide(&mut self, audited: Option<&Policy>) {
        for _ in 0..MOST_ROUNDS {
            let before = self.rounds.decided();
            let plan = self.rounds.round(self.now);
            let does = |step: &&Step| step.action != Action::Wait;
            let steps: Vec<Step> = plan.steps.iter().filter(does).cloned().collect();
            let whole = audited.map(|policy| (policy, plan.clone()));
            if let Some((policy, plan)) = whole
                && self.rounds.decided() != before
            {
                let faults = audit(self.rounds.snapshot(), policy, &plan);
                self.course.faults.extend(faults.into_iter().map(|fault| (self.now, fault)));
            }
            // Who starts takes nothing from anybody: only after others made way is there something more to decide.
            if !self.carry_out(steps) || self.waiting.is_empty() {
                break;
            }
        }
    }

    /// Whether somebody made way.
    fn carry_out(&mut self, steps: Vec<Step>) -> bool {
        let mut made_way = false;
        for Step { job, action, .. } in steps {
            let place = self.place_of[&job];
            match action {
                Action::Admit(seat) => self.run(place, self.now, seat.pieces),
                Action::Evict { .. } => {
                    made_way = true;
                    self.stop(place, Ending::GaveWay);
                    self.disturb(place);
                    self.wait(place);
                }
                Action::Move { from, to, .. } => {
                    made_way = true;
                    let mut pieces = self.running[&place].pieces.clone();
                    take_from(&mut pieces, &from);
                    pieces.extend(to);
                    self.stop(place, Ending::Moved);
                    self.preempted[place].last = Some(self.now);
                    self.run(place, self.now, pieces);
                }
                Action::Reserve { seat: Seat { workers, model, pieces }, waits_for: _, until } => {
                    self.turns.insert(until);
                    // What asks for no card needs none kept.
                    if let Some(model) = model {
                        self.rounds.apply(Change::Kept(Reservation { job, pieces, workers, model, until }));
                    }
                }
                Action::Wait => {}
                Action::Shrink { .. } | Action::Requeue => {
                    unreachable!("a job has all its workers or none, and no host fails")
                }
            }
        }
        made_way
    }

    fn disturb(&mut self, place: usize) {
        let preempted = &mut self.preempted[place];
        preempted.today += 1;
        preempted.last = Some(self.now);
        let after = |ms| self.now.checked_add_ms(ms);
        self.turns.extend([after(self.cool_down_ms), after(DAY_MS)].into_iter().flatten());
        self.fades.extend(after(DAY_MS).map(|at| (at, place)));
    }

    /// Brings past usage up to the last day that is over since the play began.
    fn refresh_past(&mut self) {
        let Some(due) = self.refresh_at.filter(|due| *due <= self.now) else { return };
        let days = self.now.ms_since(due).div_euclid(DAY_MS);
        let at = due.checked_add_ms(days * DAY_MS).unwrap_or(due);
        self.refresh_at = at.checked_add_ms(DAY_MS);
        let trace = self.trace;
        let mut used: BTreeMap<&QueueName, CardTime> = BTreeMap::new();
        let mut add = |queue, cards, during: Option<Interval>| {
            if let Some(during) = during {
                *used.entry(queue).or_default() += decayed(cards, during, at);
            }
        };
        for one in &trace.used {
            add(&one.queue, one.cards, Some(one.during));
        }
        let ended = self.course.runs.iter().map(|run| (run.job, run.from, run.to));
        let runs = self.running.iter().map(|(place, run)| (*place, run.admitted, self.now));
        // What is held when the play begins is in what was used before it.
        for (place, from, to) in ended.chain(runs) {
            let job = &trace.jobs[place];
            add(&job.ask.queue, job.cards(), Interval::new(from.max(trace.pool.at), to));
        }
        for queue in refreshed(&self.rounds.snapshot().queues, &used) {
            self.rounds.apply(Change::Queue(queue));
        }
    }
}

/// Takes the workers of `from` out of `pieces`, by host and card.
fn take_from(pieces: &mut Vec<Piece>, from: &[Piece]) {
    for gone in from {
        let mut left = gone.workers;
        // A worker whose host nobody knew was put somewhere, and is meant too.
        for host in [&gone.host, &None] {
            for piece in pieces.iter_mut().filter(|piece| piece.host == *host) {
                let taken = piece.workers.min(left);
                left -= taken;
                piece.workers -= taken;
                piece.cards.retain(|card| taken == 0 || !gone.cards.contains(card));
            }
        }
    }
    pieces.retain(|piece| piece.workers > 0);
}
