//! A list scheduler on a virtual clock: who got which cards, from when to when.
//!
//! Queues are served in order, jobs inside a queue by submit time, and whatever fits is started. A training job that has waited
//! half an hour may preempt batch jobs; the oldest that has waited four hours has nodes kept clear for it. A node that fails ends what ran on it, and those jobs run again.
//! No node ever holds more than its cards (asserted at each start).

use super::clock::Clock;
use super::pool::{Closure, NODES, Why};
use super::work::{Queue, Request};
use cardhour_domain::JobState;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How long Slurm holds a job back that it has requeued. Source: `slurm.conf`, twice the heartbeat, and a second.
const REQUEUE_HOLD_S: i64 = 121;
/// After how long a training job may preempt. Unit: seconds.
const PREEMPT_AFTER_S: i64 = 1800;
/// After how long a training job has nodes kept clear for it. Unit: seconds.
const KEEP_CLEAR_AFTER_S: i64 = 4 * 3600;
/// The job id of the first submission.
const FIRST_JOB: u64 = 410_217;
/// The database's number of the first record.
const FIRST_DB_INDEX: u64 = 6_003_311;

/// One run of a job, or its wait for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index into the requests.
    pub request: usize,
    /// The raw job id.
    pub job: u64,
    /// The job id of its array, or its own.
    pub array_job: u64,
    /// How often it was put back into the queue before.
    pub restart: u32,
    /// The number of its record in the accounting database.
    pub db_index: u64,
    /// When it entered the queue. Unit: seconds since the epoch.
    pub submit_s: i64,
    /// When it got its cards; none for one that never did.
    pub start_s: Option<i64>,
    /// When it gave them back, or up; none for one that goes on.
    pub end_s: Option<i64>,
    /// How it stands at the end of the simulation.
    pub state: JobState,
    /// For how long it was suspended. Unit: seconds.
    pub suspended_s: i64,
    /// Indices into `pool::NODES`: the nodes it has, each with the request's cards.
    pub nodes: Vec<usize>,
}

impl Run {
    /// Whether it is a task that still waits for its first run: Slurm keeps those of one array as one record.
    pub fn waits_in_array(&self, request: &Request) -> bool {
        self.state == JobState::Pending && request.task.is_some() && self.restart == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End(usize),
    Close(usize),
    Open(usize),
    GiveUp(usize),
    Submit(usize),
    /// Look again: a requeued job may start from now on.
    Wake,
}

struct Pool<'a> {
    requests: &'a [Request],
    closures: Vec<Closure>,
    runs: Vec<Run>,
    /// Waiting runs, each with the time from which it may start, in the order they are served.
    waiting: BTreeMap<(Queue, i64, u64), (usize, i64)>,
    /// Running runs and how each will end if nobody stops it.
    running: BTreeMap<usize, (i64, JobState)>,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    in_use: [u32; NODES.len()],
    /// Nodes kept clear, and for which run.
    clear: Option<(usize, Vec<usize>)>,
    next_job: u64,
    array_job: u64,
}

/// Runs all `requests`, which are in order of time, until the clock's end.
///
/// Comes back with the runs in the order of their records, and with the closures as they happened: what breaks unannounced breaks
/// on the busiest node of its model, so that it always hits somebody.
pub fn run(requests: &[Request], closures: Vec<Closure>, clock: &Clock) -> (Vec<Run>, Vec<Closure>) {
    let mut pool = Pool {
        requests,
        closures,
        runs: Vec::new(),
        waiting: BTreeMap::new(),
        running: BTreeMap::new(),
        events: BinaryHeap::new(),
        in_use: [0; NODES.len()],
        clear: None,
        next_job: FIRST_JOB,
        array_job: FIRST_JOB,
    };
    pool.events.extend(requests.iter().enumerate().map(|(i, r)| Reverse((r.submit_s, Event::Submit(i)))));
    for (i, closure) in pool.closures.iter().enumerate() {
        pool.events.extend([Reverse((closure.start_s, Event::Close(i))), Reverse((closure.end_s, Event::Open(i)))]);
    }
    while let Some(Reverse((now_s, event))) = pool.events.pop() {
        if now_s >= clock.end_s {
            break;
        }
        pool.take(event, now_s);
        let more_now = pool.events.peek().is_some_and(|Reverse((at, _))| *at == now_s);
        if !more_now {
            pool.start_what_fits(now_s);
        }
    }
    (pool.runs, pool.closures)
}

impl Pool<'_> {
    fn take(&mut self, event: Event, now_s: i64) {
        match event {
            Event::Submit(request) => self.submit(request, now_s),
            Event::End(run) => {
                // A run that was stopped before leaves its event behind.
                if let Some((end_s, state)) = self.running.get(&run).copied()
                    && end_s == now_s
                {
                    if self.runs[run].restart == 0 && state != JobState::Requeued {
                        self.runs[run].suspended_s = self.request(run).suspend_s;
                    }
                    self.stop(run, state, now_s);
                    if state == JobState::Requeued {
                        self.requeue(run, now_s);
                    }
                }
            }
            Event::GiveUp(run) => {
                if self.runs[run].state == JobState::Pending {
                    self.waiting.retain(|_, (waiting, _)| *waiting != run);
                    self.runs[run].state = JobState::Cancelled;
                    self.runs[run].end_s = Some(now_s);
                }
            }
            Event::Close(closure) => self.close(closure, now_s),
            Event::Open(_) | Event::Wake => {}
        }
    }

    fn submit(&mut self, request: usize, now_s: i64) {
        let asked = &self.requests[request];
        let job = self.next_job;
        self.next_job += 1;
        if asked.task.is_none_or(|(task, _)| task == 0) {
            self.array_job = job;
        }
        let run = self.wait(request, [job, self.array_job], 0, now_s, now_s);
        if let Some(patience_s) = asked.patience_s {
            self.events.push(Reverse((now_s + patience_s, Event::GiveUp(run))));
        }
    }

    fn wait(&mut self, request: usize, ids: [u64; 2], restart: u32, now_s: i64, not_before_s: i64) -> usize {
        let [job, array_job] = ids;
        let run = self.runs.len();
        let db_index = FIRST_DB_INDEX + run as u64;
        self.runs.push(Run {
            request,
            job,
            array_job,
            restart,
            db_index,
            submit_s: now_s,
            start_s: None,
            end_s: None,
            state: JobState::Pending,
            suspended_s: 0,
            nodes: Vec::new(),
        });
        self.waiting.insert((self.requests[request].queue, now_s, db_index), (run, not_before_s));
        run
    }

    fn requeue(&mut self, run: usize, now_s: i64) {
        let Run { request, job, array_job, restart, .. } = self.runs[run];
        self.wait(request, [job, array_job], restart + 1, now_s, now_s + REQUEUE_HOLD_S);
        self.events.push(Reverse((now_s + REQUEUE_HOLD_S, Event::Wake)));
    }

    fn stop(&mut self, run: usize, state: JobState, now_s: i64) {
        self.running.remove(&run);
        let cards = self.request(run).cards_per_node;
        for node in self.runs[run].nodes.clone() {
            self.in_use[node] -= cards;
        }
        self.runs[run].state = state;
        self.runs[run].end_s = Some(now_s);
    }

    /// A closure begins: what it hits unannounced ends here.
    fn close(&mut self, closure: usize, now_s: i64) {
        let Closure { mut node, why, .. } = self.closures[closure];
        if !why.announced() {
            let model = NODES[node].model;
            let same = (0..NODES.len()).filter(|other| NODES[*other].model == model);
            node = same.max_by_key(|other| (self.in_use[*other], Reverse(*other))).unwrap_or(node);
            self.closures[closure].node = node;
        }
        let on_node: Vec<usize> =
            self.running.keys().copied().filter(|run| self.runs[*run].nodes.contains(&node)).collect();
        match why {
            Why::NodeFailure => {
                for run in on_node {
                    self.stop(run, JobState::NodeFail, now_s);
                    if self.request(run).queue != Queue::Dev {
                        self.requeue(run, now_s);
                    }
                }
            }
            Why::LostCard => {
                // Of those on the node, the run that loses most by it.
                let work_s = |run: &usize| {
                    let cards = i64::from(self.request(*run).cards());
                    cards * self.runs[*run].start_s.map_or(0, |start_s| now_s - start_s)
                };
                let hit = on_node.into_iter().max_by_key(|run| (work_s(run), *run)).filter(|run| work_s(run) > 0);
                if let Some(run) = hit {
                    self.stop(run, JobState::Failed, now_s);
                }
                self.closures[closure].hit = hit;
            }
            Why::NotYetInService | Why::Maintenance | Why::Reserved(_) => {}
        }
    }

    fn start_what_fits(&mut self, now_s: i64) {
        self.keep_clear(now_s);
        let waiting: Vec<_> = self.waiting.iter().map(|(key, value)| (*key, *value)).collect();
        for (key, (run, not_before_s)) in waiting {
            if now_s < not_before_s {
                continue;
            }
            let impatient = key.0 == Queue::Train && now_s - key.1 >= PREEMPT_AFTER_S;
            let nodes = self.place(run, now_s, false).or_else(|| {
                let nodes = impatient.then(|| self.place(run, now_s, true)).flatten()?;
                for node in &nodes {
                    self.preempt_on(*node, run, now_s);
                }
                Some(nodes)
            });
            if let Some(nodes) = nodes {
                self.waiting.remove(&key);
                self.start(run, nodes, now_s);
            }
        }
    }

    /// The oldest training job that waited too long gets the emptiest nodes of its best model to itself, until it starts.
    fn keep_clear(&mut self, now_s: i64) {
        if self.clear.as_ref().is_some_and(|(run, _)| self.runs[*run].state == JobState::Pending) {
            return;
        }
        let oldest = self
            .waiting
            .iter()
            .filter(|((queue, submit_s, _), (run, _))| {
                *queue == Queue::Train
                    && now_s - submit_s >= KEEP_CLEAR_AFTER_S
                    && self.request(*run).reservation.is_none()
            })
            .map(|(_, (run, _))| *run)
            .next();
        self.clear = oldest.and_then(|run| {
            let request = self.request(run);
            let model = request.models.first()?;
            let mut nodes: Vec<usize> = (0..NODES.len())
                .filter(|node| NODES[*node].model == *model)
                .filter(|node| self.closed(run, *node, now_s, now_s + request.limit_s) == 0)
                .collect();
            nodes.sort_by_key(|node| self.in_use[*node] - self.batch_cards(*node));
            nodes.truncate(request.nodes as usize);
            Some((run, nodes))
        });
    }

    fn start(&mut self, run: usize, nodes: Vec<usize>, now_s: i64) {
        let first = self.runs[run].restart == 0;
        let request = self.request(run);
        let (run_s, state) = match request.requeue_after_s {
            Some(after_s) if first => (after_s, JobState::Requeued),
            _ => (request.run_s + if first { request.suspend_s } else { 0 }, request.ending),
        };
        let cards = request.cards_per_node;
        for node in &nodes {
            self.in_use[*node] += cards;
            let closed: u32 = self.closed(run, *node, now_s, now_s + 1);
            assert!(self.in_use[*node] + closed <= NODES[*node].slurm_cards, "{} holds too much", NODES[*node].name);
        }
        let end_s = now_s + run_s;
        self.running.insert(run, (end_s, state));
        self.events.push(Reverse((end_s, Event::End(run))));
        self.runs[run].start_s = Some(now_s);
        self.runs[run].state = JobState::Running;
        self.runs[run].nodes = nodes;
    }

    /// The nodes on which `run` could start now: the fullest that still fits, of the best model. `by_force`: if batch jobs gave way.
    fn place(&self, run: usize, now_s: i64, by_force: bool) -> Option<Vec<usize>> {
        let request = self.request(run);
        let until_s = self.until_s(run, now_s);
        let fits = |node: &usize| {
            if self.clear.as_ref().is_some_and(|(other, nodes)| *other != run && nodes.contains(node)) {
                return false;
            }
            if let Some(reservation) = request.reservation {
                let inside = self.closures.iter().any(|c| {
                    c.node == *node && c.why == Why::Reserved(reservation) && c.start_s <= now_s && until_s <= c.end_s
                });
                if !inside {
                    return false;
                }
            }
            let kept: u32 = if by_force { self.in_use[*node] - self.batch_cards(*node) } else { self.in_use[*node] };
            let closed = self.closed(run, *node, now_s, until_s);
            // A job without cards needs a node all the same.
            closed < NODES[*node].slurm_cards && kept + closed + request.cards_per_node <= NODES[*node].slurm_cards
        };
        let models = if request.models.is_empty() { &["a100", "h200"][..] } else { request.models };
        models.iter().find_map(|model| {
            let mut nodes: Vec<usize> =
                (0..NODES.len()).filter(|node| NODES[*node].model == *model).filter(fits).collect();
            nodes.sort_by_key(|node| Reverse(self.in_use[*node]));
            nodes.truncate(request.nodes as usize);
            nodes.sort_unstable();
            (nodes.len() == request.nodes as usize).then_some(nodes)
        })
    }

    /// Cards of `node` that `run` may not have at some moment of [`from_s`, `to_s`), as far as the scheduler can know.
    fn closed(&self, run: usize, node: usize, from_s: i64, to_s: i64) -> u32 {
        let own = self.request(run).reservation.map(Why::Reserved);
        let now_s = from_s;
        self.closures
            .iter()
            .filter(|c| c.node == node && c.start_s < to_s && from_s < c.end_s && Some(c.why) != own)
            .filter(|c| c.why.announced() || c.start_s <= now_s)
            .map(|c| c.cards)
            .sum::<u32>()
            .min(NODES[node].slurm_cards)
    }

    fn batch_cards(&self, node: usize) -> u32 {
        self.batch_runs(node).map(|run| self.request(run).cards_per_node).sum()
    }

    fn batch_runs(&self, node: usize) -> impl DoubleEndedIterator<Item = usize> {
        self.running.keys().copied().filter(move |run| {
            let request = self.request(*run);
            request.queue == Queue::Batch && request.cards_per_node > 0 && self.runs[*run].nodes.contains(&node)
        })
    }

    /// Ends batch jobs on `node`, the youngest first, until `run` fits. They run again.
    fn preempt_on(&mut self, node: usize, run: usize, now_s: i64) {
        let wanted = self.request(run).cards_per_node + self.closed(run, node, now_s, self.until_s(run, now_s));
        let victims: Vec<usize> = self.batch_runs(node).rev().collect();
        for victim in victims {
            if self.in_use[node] + wanted <= NODES[node].slurm_cards {
                break;
            }
            self.stop(victim, JobState::Preempted, now_s);
            self.requeue(victim, now_s);
        }
    }

    /// When `run` is over at the latest, if it starts now.
    fn until_s(&self, run: usize, now_s: i64) -> i64 {
        now_s + self.request(run).limit_s + self.request(run).suspend_s
    }

    fn request(&self, run: usize) -> &Request {
        &self.requests[self.runs[run].request]
    }
}
