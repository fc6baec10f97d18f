//! What people ask of the pool, before anyone has given it to them.

use super::clock::Clock;
use super::people::PROJECTS;
use super::pool::{Closure, Why};
use super::rng::Rng;
use super::tale::TaleKind;
use cardhour_domain::JobState;

/// A partition of the scheduler. The order is the order in which the scheduler serves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Services.
    Infer,
    /// Interactive.
    Dev,
    /// Long runs on many cards; may preempt batch.
    Train,
    /// Whatever is left over.
    Batch,
}

impl Queue {
    /// The partition's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Infer => "infer",
            Self::Dev => "dev",
            Self::Train => "train",
            Self::Batch => "batch",
        }
    }
}

/// A job as it was submitted; a task of an array is a job of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index into `people::PROJECTS`.
    pub project: usize,
    /// Whose it is.
    pub user: &'static str,
    /// Where it was submitted.
    pub queue: Queue,
    /// What it is called.
    pub name: String,
    /// Which task of its array, and how many there are.
    pub task: Option<(u32, u32)>,
    /// Models that will do, the best first; empty for a job without cards.
    pub models: &'static [&'static str],
    /// Nodes it spans.
    pub nodes: u32,
    /// Cards on each node; none for a job that only computes on processors.
    pub cards_per_node: u32,
    /// Processor cores on each node.
    pub cpus_per_node: u32,
    /// When. Unit: seconds since the epoch.
    pub submit_s: i64,
    /// Its time limit. Unit: seconds.
    pub limit_s: i64,
    /// How long it runs if nobody stops it. Unit: seconds.
    pub run_s: i64,
    /// How it ends then.
    pub ending: JobState,
    /// Its first run is put back into the queue after this time. Unit: seconds.
    pub requeue_after_s: Option<i64>,
    /// For how long it is suspended in its first run. Unit: seconds.
    pub suspend_s: i64,
    /// Its user takes it back after waiting this long. Unit: seconds.
    pub patience_s: Option<i64>,
    /// The reservation it asks for: index into `pool::RESERVATIONS`.
    pub reservation: Option<usize>,
    /// What is worth showing of it.
    pub tale: Option<TaleKind>,
}

impl Request {
    /// Cards over all its nodes.
    pub const fn cards(&self) -> u32 {
        self.nodes * self.cards_per_node
    }
}

/// A shape a job can have: models, nodes, cards on each, run time in minutes from and to.
type Shape = (&'static [&'static str], u32, u32, (i64, i64));

const TRAIN: [(u32, Shape); 7] = [
    (26, (&["h200"], 1, 8, (90, 1500))),
    (8, (&["h200"], 1, 8, (1000, 2600))),
    (6, (&["h200"], 2, 8, (200, 1200))),
    (20, (&["h200", "a100"], 1, 4, (60, 900))),
    (16, (&["a100"], 1, 8, (120, 1400))),
    (12, (&["a100", "h200"], 1, 2, (30, 700))),
    (2, (&["a100"], 2, 8, (200, 700))),
];
const INFER: [(u32, Shape); 4] = [
    (40, (&["l40s", "a100"], 1, 1, (360, 2880))),
    (35, (&["a100"], 1, 1, (720, 5760))),
    (15, (&["a100", "h200"], 1, 2, (720, 5760))),
    (10, (&["h200"], 1, 4, (360, 2880))),
];
const DEV: [(u32, Shape); 3] = [
    (60, (&["l40s", "a100"], 1, 1, (4, 300))),
    (30, (&["a100", "h200"], 1, 1, (10, 420))),
    (10, (&["h200"], 1, 2, (10, 240))),
];
const BATCH: [(u32, Shape); 4] = [
    (55, (&["a100", "h200", "l40s"], 1, 1, (3, 200))),
    (20, (&["h200", "a100"], 1, 1, (20, 480))),
    (10, (&["h200", "a100"], 1, 2, (20, 300))),
    (15, (&[], 1, 0, (2, 240))),
];

/// How many jobs or arrays are submitted in an hour of a working day, by the local hour. Unit: thousandths.
const PER_HOUR_MILLI: [u32; 24] = [
    500, 300, 250, 200, 200, 250, 350, 600, 1300, 2300, 2700, 2500, 1500, 2300, 2900, 2800, 2600, 2400, 1700, 1600,
    1700, 1500, 1200, 800,
];
const WEEKEND_PER_MILLE: u32 = 420;

/// All that was ever submitted, in order of time.
pub fn draw(rng: &mut Rng, clock: &Clock, closures: &[Closure]) -> Vec<Request> {
    use chrono::Datelike;
    let first_weekday = clock.months[0].first_date().weekday().num_days_from_monday();
    let hours = (clock.end_s - clock.start_s) / 3600;
    let mut requests = Vec::new();
    for hour in 0..hours {
        let weekend = (i64::from(first_weekday) + hour / 24) % 7 >= 5;
        let busy = PER_HOUR_MILLI[(hour % 24) as usize];
        let milli = if weekend { busy * WEEKEND_PER_MILLE / 1000 } else { busy };
        let count = milli / 1000 + u32::from(rng.chance(milli % 1000));
        for _ in 0..count {
            let submit_s = clock.start_s + hour * 3600 + rng.between(0, 3599);
            submit(rng, submit_s, &mut requests);
        }
    }
    camps(rng, closures, &mut requests);
    rush(rng, clock, &mut requests);
    tales(clock, &mut requests);
    requests.sort_by_key(|request| request.submit_s);
    requests
}

/// One job, or one array.
fn submit(rng: &mut Rng, submit_s: i64, requests: &mut Vec<Request>) {
    let project = rng.between(0, PROJECTS.len() as i64 - 1) as usize;
    let [train, infer, dev, batch] = PROJECTS[project].habits;
    let queues = [(train, Queue::Train), (infer, Queue::Infer), (dev, Queue::Dev), (batch, Queue::Batch)];
    let queue = *rng.weighted(&queues);
    let shape = *match queue {
        Queue::Train => rng.weighted(&TRAIN),
        Queue::Infer => rng.weighted(&INFER),
        Queue::Dev => rng.weighted(&DEV),
        Queue::Batch => rng.weighted(&BATCH),
    };
    let tasks = if queue == Queue::Batch && rng.chance(280) { rng.between(3, 12) as u32 } else { 1 };
    let user = *rng.pick(PROJECTS[project].users);
    let name = format!("{}-{}", rng.pick(PROJECTS[project].words), rng.between(1, 99));
    for task in 0..tasks {
        let mut request = request(rng, project, user, queue, shape, submit_s);
        request.name.clone_from(&name);
        request.task = (tasks > 1).then_some((task, tasks));
        requests.push(request);
    }
}

/// A job of that shape, and its fate.
fn request(rng: &mut Rng, project: usize, user: &'static str, queue: Queue, shape: Shape, submit_s: i64) -> Request {
    let (models, nodes, cards_per_node, (least, most)) = shape;
    // Two draws multiplied: short runs are common, long ones are where the hours go.
    let span = (most - least) * 60;
    let work_s = least * 60 + rng.between(0, span) * rng.between(300, 1000) / 1000;
    let limit_s = (work_s * rng.between(110, 190) / 100 / 1800 + 1) * 1800;
    let ending = *rng.weighted(&[
        (780, JobState::Completed),
        (100, JobState::Failed),
        (30, JobState::OutOfMemory),
        (35, JobState::Timeout),
        (55, JobState::Cancelled),
    ]);
    let run_s = match ending {
        JobState::Completed => work_s,
        JobState::Timeout => limit_s,
        _ => (work_s * rng.between(2, 95) / 100).max(3),
    };
    Request {
        project,
        user,
        queue,
        name: String::new(),
        task: None,
        models,
        nodes,
        cards_per_node,
        cpus_per_node: if cards_per_node == 0 { 16 } else { 12 * cards_per_node },
        submit_s,
        limit_s,
        run_s,
        ending,
        requeue_after_s: (queue == Queue::Train && rng.chance(45)).then(|| (run_s * rng.between(10, 80) / 100).max(2)),
        suspend_s: if queue == Queue::Batch && rng.chance(15) { rng.between(5 * 60, 45 * 60) } else { 0 },
        patience_s: rng.chance(60).then(|| rng.between(20, 4 * 3600)),
        reservation: None,
        tale: None,
    }
}

/// What the owners of reservations run under them: enough to use a part of what they set aside.
fn camps(rng: &mut Rng, closures: &[Closure], requests: &mut Vec<Request>) {
    for closure in closures {
        let Why::Reserved(reservation) = closure.why else { continue };
        let project = super::pool::RESERVATIONS[reservation].project;
        let model = super::pool::NODES[closure.node].model;
        let models: &'static [&'static str] = if model == "h200" { &["h200"] } else { &["a100"] };
        let mut submit_s = closure.start_s + rng.between(60, 3600);
        while submit_s + 6 * 3600 < closure.end_s {
            let cards = *rng.weighted(&[(6, 8), (3, 4), (2, 2)]);
            let user = *rng.pick(PROJECTS[project].users);
            let mut job = request(rng, project, user, Queue::Train, (models, 1, cards, (60, 420)), submit_s);
            job.name = format!("{}-camp", PROJECTS[project].words[0]);
            job.reservation = Some(reservation);
            job.requeue_after_s = None;
            requests.push(job);
            submit_s += rng.between(3 * 3600, 9 * 3600);
        }
    }
}

/// The evening before the export everybody queues up work: more than fits, so that some of it still waits at the end.
fn rush(rng: &mut Rng, clock: &Clock, requests: &mut Vec<Request>) {
    let h200: Shape = (&["h200"], 1, 8, (240, 900));
    let rollout: Shape = (&["h200"], 1, 2, (60, 240));
    for project in [1, 0, 4, 1] {
        let submit_s = clock.end_s - rng.between(600, 2400);
        let mut job = request(rng, project, PROJECTS[project].users[0], Queue::Train, h200, submit_s);
        job.name = format!("{}-overnight", PROJECTS[project].words[0]);
        job.patience_s = None;
        requests.push(job);
    }
    let submit_s = clock.end_s - rng.between(600, 2400);
    for task in 0..24 {
        let mut job = request(rng, 3, PROJECTS[3].users[1], Queue::Batch, rollout, submit_s);
        job.name = format!("{}-overnight", PROJECTS[3].words[0]);
        job.task = Some((task, 24));
        job.patience_s = None;
        requests.push(job);
    }
}

/// The jobs that every demo has to show, between the failure of the second month and its end.
fn tales(clock: &Clock, requests: &mut Vec<Request>) {
    let job = |project: usize, user, queue, name: &str, cards: u32, submit_s: i64, run_s: i64, tale| Request {
        project,
        user: PROJECTS[project].users[user],
        queue,
        name: name.to_owned(),
        task: None,
        models: &["h200"],
        nodes: 1,
        cards_per_node: cards,
        cpus_per_node: 12 * cards,
        submit_s,
        limit_s: 7 * 86_400,
        run_s,
        // Who looks in after days stops it by hand.
        ending: JobState::Cancelled,
        requeue_after_s: None,
        suspend_s: 0,
        patience_s: None,
        reservation: None,
        tale: Some(tale),
    };
    let idle_s = 5 * 86_400 + 4 * 3600 + 11 * 60;
    requests.push(job(5, 1, Queue::Dev, "jupyter", 1, clock.at(1, 10, 9, 12), idle_s, TaleKind::IdleNotebook));
    let starved =
        job(4, 1, Queue::Train, "downscale-stream", 4, clock.at(1, 22, 9, 40), 40 * 3600, TaleKind::InputBound);
    requests.push(Request { ending: JobState::Completed, limit_s: 3 * 86_400, ..starved });
}
