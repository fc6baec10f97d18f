//! From the books to what is played: one cluster's hosts as they came and went, its jobs as they were submitted, and their runs as they really were.

use crate::planned::pool::{Owner, Work, host, job_names};
use cardhour_books::attempt::Attempt;
use cardhour_books::site::{Node, Outage};
use cardhour_domain::{Interval, JobState, Name, Timestamp};
use cardhour_scheduler_core::names::{HostName, Model};
use cardhour_scheduler_core::replay::policy::{Course, Ending, Holds, HostChange, Job, Run, Trace, Use};
use cardhour_scheduler_core::snapshot::{Host, Piece, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// States in which a run ends that had to give way.
const GAVE_WAY: [JobState; 3] = [JobState::Preempted, JobState::Requeued, JobState::Reclaimed];

/// One cluster over some time.
pub(super) struct Record {
    pub(super) cluster: Name,
    /// Without queues: those come with the quotas.
    pub(super) trace: Trace,
    /// What really happened.
    pub(super) recorded: Course,
    /// Of each job its last run.
    pub(super) attempts: Vec<Attempt>,
    /// Whose each job is.
    pub(super) owners: Vec<Owner>,
    /// The pool of the first node that each job ran on.
    pub(super) pools: Vec<Option<Name>>,
    /// What isn't played as it was, in words.
    pub(super) notes: Vec<String>,
}

/// Runs of a job that are played as one: those that gave way, and the one after them.
struct Told<'a> {
    runs: Vec<&'a Attempt>,
    submitted: Timestamp,
}

impl Record {
    /// None where no node with cards is known. `before`: attempts of the weeks before.
    pub(super) fn new(
        cluster: &Name,
        during: Interval,
        course: &cardhour_ledger::Course,
        before: &[Attempt],
    ) -> Option<Self> {
        let nodes: Vec<&(Node, Interval)> =
            course.nodes.iter().filter(|(node, _)| node.cluster == *cluster && !node.cards.is_zero()).collect();
        let outages: Vec<&Outage> = course.outages.iter().filter(|outage| outage.cluster == *cluster).collect();
        let (hosts, changes) = hosts(&nodes, &outages, during);
        let all = || hosts.iter().chain(changes.iter().filter_map(|change| change.becomes.as_ref()));
        let largest = all().map(|host| host.cards).max()?;
        let model_of: BTreeMap<&str, &Model> = all().map(|host| (host.name.as_str(), &host.model)).collect();
        let pool_of: BTreeMap<&str, &Name> =
            nodes.iter().filter_map(|(node, _)| Some((&*node.node, node.pool.as_ref()?))).collect();
        let at_first: BTreeSet<&HostName> = hosts.iter().map(|host| &host.name).collect();

        let of_cluster = course.attempts.iter().filter(|attempt| attempt.cluster == *cluster);
        let (told, never_started) = told(of_cluster, during);
        let names = job_names(told.iter().map(|job| job.last()));
        let (mut jobs, mut runs, mut attempts, mut owners, mut pools) = (vec![], vec![], vec![], vec![], vec![]);
        let (mut without_share, mut open, mut ran_again) = (0, 0, 0);
        for (told, name) in told.iter().zip(names) {
            let last = told.last();
            let Some(work) = Work::of(last, last.cards, largest, &model_of) else {
                without_share += 1;
                continue;
            };
            let owner = Owner::of(&last.org, &last.project, &last.user);
            let place = jobs.len();
            let model = |attempt: &Attempt| {
                let of_node =
                    || attempt.nodes.iter().find_map(|node| model_of.get(&**node)).map(|model| (*model).clone());
                attempt.model.as_deref().map(Model::new).or_else(of_node)
            };
            runs.extend(told.runs.iter().map(|run| {
                let ending = if GAVE_WAY.contains(&run.state) { Ending::GaveWay } else { Ending::Done };
                Run { from: start(run), job: place, to: end(run), ending, model: model(run) }
            }));
            let holding = told.runs.iter().find(|run| start(run) < during.start());
            let holds = holding.map(|run| {
                let is_last = run.key == last.key;
                let known = |piece: &Piece| piece.host.as_ref().is_some_and(|host| at_first.contains(host));
                let pieces = if is_last && work.pieces.iter().all(known) {
                    work.pieces.clone()
                } else {
                    vec![Piece { host: None, workers: work.workers(), cards: Vec::new() }]
                };
                Holds { since: start(run), pieces }
            });
            open += usize::from(!last.is_final);
            ran_again += told.runs.len() - 1;
            pools.push(last.nodes.iter().find_map(|node| pool_of.get(&**node)).map(|pool| (*pool).clone()));
            let asked = Attempt { submitted_at: Some(told.submitted), ..last.clone() };
            let runs_ms = end(last).ms_since(start(last));
            let restartable = last.restartable.unwrap_or(false);
            jobs.push(Job { ask: work.pending(&asked, name, owner.queue()), runs_ms, restartable, holds });
            attempts.push(asked);
            owners.push(owner);
        }
        runs.sort_unstable();
        let mut notes = Vec::new();
        for (count, what) in [
            (never_started, "never started: how long they would have run isn't known, so they are left out"),
            (without_share, "hold a share that no record says, and are left out"),
            (open, "were still running at their source's last word: they run as long as is known"),
            (
                ran_again,
                "runs gave way and their job ran again: played is the last run alone, submitted with the first",
            ),
        ] {
            if count > 0 {
                notes.push(format!("{cluster:?}: {count} {what}"));
            }
        }
        let used = before.iter().filter(|attempt| attempt.cluster == *cluster && !attempt.cards.is_zero());
        let used = used.filter_map(|attempt| {
            let during = Interval::new(attempt.started_at?, end(attempt).min(during.start()))?;
            let owner = Owner::of(&attempt.org, &attempt.project, &attempt.user);
            Some(Use { queue: owner.queue(), cards: attempt.cards, during })
        });
        let used = used.collect();
        let pool = Snapshot {
            at: during.start(),
            queues: Vec::new(),
            hosts,
            capacity: BTreeMap::new(),
            off_peak: false,
            running: Vec::new(),
            pending: Vec::new(),
            reservations: Vec::new(),
        };
        let recorded = Course { runs, ..Course::default() };
        let trace = Trace { pool, jobs, hosts: changes, used };
        Some(Self { cluster: cluster.clone(), trace, recorded, attempts, owners, pools, notes })
    }
}

impl<'a> Told<'a> {
    fn last(&self) -> &'a Attempt {
        self.runs[self.runs.len() - 1]
    }
}

fn start(attempt: &Attempt) -> Timestamp {
    attempt.started_at.expect("a run has started")
}

/// When it gave its cards back, as far as is known.
fn end(attempt: &Attempt) -> Timestamp {
    let known = attempt.ended_at.or(attempt.as_of);
    let started = attempt.started_at.or(attempt.submitted_at);
    known.into_iter().chain(started).max().expect("it began")
}

/// The jobs of a cluster by key, and how many never started.
fn told<'a>(attempts: impl Iterator<Item = &'a Attempt>, during: Interval) -> (Vec<Told<'a>>, usize) {
    let mut of_job: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    let mut never_started = 0;
    for attempt in attempts {
        match attempt.started_at {
            Some(_) => of_job.entry(attempt.key.job()).or_default().push(attempt),
            None => never_started += 1,
        }
    }
    let mut all = Vec::new();
    for mut runs in of_job.into_values() {
        runs.sort_by(|a, b| (start(a), &a.key).cmp(&(start(b), &b.key)));
        let mut as_one: Vec<&Attempt> = Vec::new();
        let mut after: Option<&Attempt> = None;
        for (i, run) in runs.iter().enumerate() {
            as_one.push(*run);
            if GAVE_WAY.contains(&run.state) && i + 1 < runs.len() {
                continue;
            }
            let mut runs = std::mem::take(&mut as_one);
            let first = runs[0];
            let was_resized = after.is_some_and(|before| before.state == JobState::Resized);
            let submitted = first.submitted_at.filter(|_| !was_resized).unwrap_or(start(first)).min(start(first));
            after = Some(*run);
            // What gave way before the time begins has queued again since.
            let over = runs.iter().take_while(|run| end(run) <= during.start() && run.key != runs[runs.len() - 1].key);
            let over = over.count();
            let again = over.checked_sub(1).map(|last| end(runs[last]));
            runs.drain(..over);
            all.push(Told { submitted: again.map_or(submitted, |again| again.min(start(runs[0]))), runs });
        }
    }
    (all, never_started)
}

/// The hosts as the time begins, and what becomes of them later.
fn hosts(nodes: &[&(Node, Interval)], outages: &[&Outage], during: Interval) -> (Vec<Host>, Vec<HostChange>) {
    let (mut hosts, mut changes) = (Vec::new(), Vec::new());
    for (node, service) in nodes {
        let of_node = || outages.iter().filter(|outage| outage.nodes.is_empty() || outage.nodes.contains(&node.node));
        // What is known ends with the last word; a node that wasn't retired is there on.
        let retired = node.retired_at;
        let becomes = |at: Timestamp| {
            let serves = service.start() <= at && retired.is_none_or(|retired| at < retired);
            serves.then(|| host(node, of_node().any(|outage| outage.during.contains(at))))
        };
        let mut edges: BTreeSet<Timestamp> = BTreeSet::from([service.start()]);
        edges.extend(retired);
        edges.extend(of_node().flat_map(|outage| [outage.during.start(), outage.during.end()]));
        let mut now = becomes(during.start());
        hosts.extend(now.clone());
        for at in edges.into_iter().filter(|at| during.start() < *at && *at < during.end()) {
            let next = becomes(at);
            if next != now {
                changes.push(HostChange { at, name: HostName::new(&node.node), becomes: next.clone() });
                now = next;
            }
        }
    }
    (hosts, changes)
}
