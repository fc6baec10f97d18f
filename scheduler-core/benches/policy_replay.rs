//! How long does it take to play the 8,152 published tasks of openb through the scheduler core, without quotas and with one for each class of tasks?
//!
//! Prints the processor time of the one thread, the rounds, and what came of them. Plans are audited in a second play, which isn't timed. Needs the published files in the shared data folder,
//! and says so where they are missing.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use cardhour_domain::{CardShare, CardTime, Timestamp};
use cardhour_scheduler_core::replay::policy::{Ending, Job, Trace};
use cardhour_scheduler_core::snapshot::{Host, HostState, Pending, Queue, Quota, Resource, Shape, Snapshot};
use cardhour_scheduler_core::{Policy, replay::policy::Course};
use rustix::time::{ClockId, clock_gettime};

const NODES: &str = "openb_node_list_gpu_node.csv";
const PODS: &str = "openb_pod_list_default.csv";
const TARGET: Duration = Duration::from_secs(1);

fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn out(text: std::fmt::Arguments<'_>) {
    let _ = std::io::stdout().write_fmt(text);
    let _ = std::io::stdout().flush();
}

type Row = BTreeMap<String, String>;

fn rows(bytes: &[u8]) -> Vec<Row> {
    csv::Reader::from_reader(bytes).deserialize().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}"))
}

fn whole(row: &Row, column: &str) -> i64 {
    row[column].parse::<i64>().unwrap_or(0)
}

fn queue(name: &str, nominal: BTreeMap<Resource, Quota>) -> Queue {
    Queue {
        name: name.into(),
        parent: (name != "/").then(|| "/".into()),
        quota: nominal,
        weight_milli: 1_000,
        over_quota_priority: 0,
        created: None,
        tenant: None,
        rules: None,
        past_usage: CardTime::ZERO,
        band: None,
    }
}

fn host(row: &Row) -> Host {
    Host {
        name: row["sn"].as_str().into(),
        model: row["model"].as_str().into(),
        cards: u32::try_from(whole(row, "gpu")).unwrap_or(0),
        cpu_milli: None,
        memory_bytes: None,
        domains: BTreeMap::new(),
        state: HostState::Healthy,
        window: None,
    }
}

/// A task; none of those without cards.
fn job(row: &Row) -> Option<Job> {
    let cards = CardShare::PARTS_PER_CARD * whole(row, "num_gpu") * whole(row, "gpu_milli") / 1_000;
    let models = row["gpu_spec"].split('|').filter(|model| !model.is_empty());
    let shape = Shape {
        models: models.map(Into::into).collect(),
        cards: CardShare::from_parts(cards),
        cpu_milli: 0,
        memory_bytes: 0,
        same: None,
        prefer: None,
        spread: false,
        accepts_revocation: false,
    };
    let submitted = whole(row, "creation_time");
    let ask = Pending {
        name: row["name"].as_str().into(),
        queue: row["qos"].as_str().into(),
        priority: 0,
        shape,
        workers: 1,
        min_workers: 1,
        submitted: Timestamp::from_unix_s(submitted),
        preemptible: row["qos"] != "LS",
        critical: None,
        longest_ms: None,
        last_preempted: None,
    };
    let started = whole(row, "scheduled_time").max(submitted);
    let runs_ms = (whole(row, "deletion_time") - started).max(0) * 1_000;
    (cards > 0).then_some(Job { ask, runs_ms, restartable: true, holds: None })
}

/// The part of hosts that are there: in thousandths.
fn trace(nodes: &[Row], pods: &[Row], hosts_per_mille: usize, has_quotas: bool) -> Trace {
    let jobs: Vec<Job> = pods.iter().filter_map(job).collect();
    let hosts: Vec<Host> = nodes.iter().take(nodes.len() * hosts_per_mille / 1_000).map(host).collect();
    let mut cards: BTreeMap<Resource, i64> = BTreeMap::new();
    for host in &hosts {
        *cards.entry(Resource::Cards(host.model.clone())).or_default() += i64::from(host.cards);
    }
    let classes: std::collections::BTreeSet<&str> = jobs.iter().map(|job| job.ask.queue.as_str()).collect();
    let share = |cards: i64| cards / classes.len() as i64 * CardShare::PARTS_PER_CARD;
    let quota = || {
        let all = cards.iter().filter(|_| has_quotas);
        all.map(|(model, cards)| (model.clone(), Quota { nominal: share(*cards), ..Quota::default() })).collect()
    };
    let pool = Snapshot {
        at: Timestamp::from_unix_s(0),
        queues: std::iter::once(queue("/", BTreeMap::new()))
            .chain(classes.iter().map(|name| queue(name, quota())))
            .collect(),
        hosts,
        capacity: BTreeMap::new(),
        off_peak: false,
        running: Vec::new(),
        pending: Vec::new(),
        reservations: Vec::new(),
    };
    Trace { pool, jobs, hosts: Vec::new(), used: Vec::new() }
}

fn main() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/openb-2023");
    let folder = std::env::var_os("CARDHOUR_SHARED").map_or(folder, |shared| PathBuf::from(shared).join("openb-2023"));
    let read = |name: &str| std::fs::read(folder.join(name));
    let (Ok(nodes), Ok(pods)) = (read(NODES), read(PODS)) else {
        out(format_args!("not timed: {} isn't there\n", folder.display()));
        return;
    };
    let (nodes, pods) = (rows(&nodes), rows(&pods));
    for (name, hosts_per_mille, has_quotas) in [
        ("all hosts, no quotas", 1_000, false),
        ("all hosts, quotas", 1_000, true),
        ("a third of the hosts, quotas", 333, true),
    ] {
        let (trace, policy) = (trace(&nodes, &pods, hosts_per_mille, has_quotas), Policy::default());
        let start = spent();
        let course = trace.play(&policy);
        let took = spent() - start;
        let met = if took < TARGET { "met" } else { "MISSED" };
        let Course { runs, unstarted, rounds, .. } = &course;
        let gave_way = runs.iter().filter(|run| run.ending == Ending::GaveWay).count();
        out(format_args!(
            "{} tasks ({} with cards), {name}: {:.3} s (target {TARGET:?} {met}), {rounds} rounds, {} runs, {gave_way} gave way, {} never started\n",
            pods.len(),
            trace.jobs.len(),
            took.as_secs_f64(),
            runs.len(),
            unstarted.len()
        ));
        if std::env::var_os("SIM_AUDIT").is_some() {
            let audited = trace.play_audited(&policy);
            out(format_args!("  audited: {} faults\n", audited.faults.len()));
            assert_eq!(audited.runs, course.runs, "the same trace gives the same course");
        }
    }
}
