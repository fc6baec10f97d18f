//! How long does a decision take in a pool of 10,000 cards, 2,000 queues, 10,000 running and 40,000 waiting jobs, on one core?
//!
//! Prints a table: what was timed, its time, its target, and what peers publish of the like. Times are processor time of the one thread, so that other work on the machine isn't in
//! them; medians over repeats. The pools come from a seed, and their check values are printed: the same value, the same pool. Every plan that was timed is audited afterwards,
//! untimed. `SIM_PART=10` makes everything a tenth as large.
//!
//! Medians of one run on two cores with little beside it: shares 2.1 ms (target 5), a whole round cold 843 ms (target 1,000), the next round after a change 116 to 154 ms (target 50, missed),
//! a decision with victims 1.1 ms at p99 (target 20), a gang of 512 cards 4.2 and 36.6 ms (target 100). What is left of a next round is numbering 51,000 jobs anew and going through the line;
//! five of six refusals are given again in it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use cardhour_domain::{CardTime, Timestamp};
use cardhour_scheduler_core::placement::Policy as Placement;
use cardhour_scheduler_core::plan::Action;
use cardhour_scheduler_core::replay::placement::{Source, Trace};
use cardhour_scheduler_core::rounds::{Change, Rounds};
use cardhour_scheduler_core::share::{Claim, divide};
use cardhour_scheduler_core::{Plan, Policy, Progress, Snapshot, audit, decide_watched};
use rustix::time::{ClockId, clock_gettime};

#[path = "../tests/it/draw.rs"]
#[allow(dead_code)]
mod draw;
mod pool;
#[path = "../tests/it/world.rs"]
#[allow(dead_code)]
mod world;

use world::{Gone, carry_out};

const REPEATS: usize = 5;

/// Processor time of this thread so far.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = spent();
    let made = work();
    (made, spent() - start)
}

/// The value that so many thousandths of the others are at most.
fn quantile(times: &mut [Duration], per_mille: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len().saturating_sub(1) * per_mille).div_ceil(1_000)).copied().unwrap_or_default()
}

fn out(text: std::fmt::Arguments<'_>) {
    let _ = std::io::stdout().write_fmt(text);
    let _ = std::io::stdout().flush();
}

fn row(what: &str, took: Duration, target: Option<Duration>, peers: &str) {
    let target = match target {
        Some(target) if took < target => format!("{target:?} met"),
        Some(target) => format!("{target:?} MISSED"),
        None => "none".to_owned(),
    };
    out(format_args!("{what:<66} {:>10.3} ms  {target:<13} {peers}\n", took.as_secs_f64() * 1e3));
}

/// One round, stage by stage.
struct Timed {
    plan: Plan,
    numbering: Duration,
    shares: Duration,
    /// Of jobs for which nobody gives way.
    plain: Vec<Duration>,
    /// Of jobs for which somebody does.
    with_victims: Vec<Duration>,
    whole: Duration,
}

fn round(snapshot: &Snapshot, policy: &Policy) -> Timed {
    let start = spent();
    let mut last = start;
    let (mut numbering, mut shares) = (Duration::ZERO, Duration::ZERO);
    let (mut plain, mut with_victims) = (Vec::new(), Vec::new());
    let plan = decide_watched(snapshot, policy, |progress| {
        let now = spent();
        let took = now - last;
        match progress {
            Progress::Numbered => numbering = took,
            Progress::Shared => shares = took,
            Progress::Decided(steps) if steps.len() > 1 => with_victims.push(took),
            Progress::Decided(_) => plain.push(took),
        }
        last = spent();
    });
    Timed { plan, numbering, shares, plain, with_victims, whole: spent() - start }
}

/// The rounds of a pool, the plan audited.
fn rounds(name: &str, snapshot: &Snapshot, policy: &Policy) -> Vec<Timed> {
    let all: Vec<Timed> = (0..REPEATS).map(|_| round(snapshot, policy)).collect();
    for one in &all {
        assert_eq!(one.plan, all[0].plan, "the same pool gives the same plan");
    }
    checked(name, snapshot, policy, &all[0].plan);
    all
}

fn checked(name: &str, snapshot: &Snapshot, policy: &Policy, plan: &Plan) {
    let faults = audit(snapshot, policy, plan);
    assert!(faults.is_empty(), "{name}: {:?}", &faults[..faults.len().min(5)]);
    let ended = plan.steps.iter().filter(|step| matches!(step.action, Action::Evict { .. })).count();
    out(format_args!(
        "  {name}: pool {:016x}, plan {:016x}: {} steps, {ended} jobs ended; audited, no fault\n",
        pool::check_value(snapshot),
        pool::check_value_of_plan(plan),
        plan.steps.len(),
    ));
}

fn median(all: &[Timed], of: impl Fn(&Timed) -> Duration) -> Duration {
    quantile(&mut all.iter().map(of).collect::<Vec<_>>(), 500)
}

fn ms(number: u64) -> Option<Duration> {
    Some(Duration::from_millis(number))
}

fn main() {
    let part = std::env::var("SIM_PART").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    let snapshot = pool::large(part, 1);
    let policy = Policy::default();

    let all = rounds("full pool", &snapshot, &policy);
    let mut plain: Vec<Duration> = all.iter().flat_map(|one| one.plain.clone()).collect();
    let mut victims: Vec<Duration> = all.iter().flat_map(|one| one.with_victims.clone()).collect();
    row("snapshot numbered (no target of its own)", median(&all, |one| one.numbering), None, "");
    row("share of every queue, all 8 models", median(&all, |one| one.shares), ms(5), "");
    row("division alone of 2,000 claims, 8 times", division(), None, "");
    row("decision, nobody gives way, p50", quantile(&mut plain, 500), None, "Kueue 42.7 workloads/s: 23.4 ms each (1)");
    row("decision, nobody gives way, p99", quantile(&mut plain, 990), ms(1), "");
    row("decision with victims, p50", quantile(&mut victims, 500), None, "");
    row("decision with victims, p99", quantile(&mut victims, 990), ms(20), "");
    row(
        "whole round, cold",
        median(&all, |one| one.whole),
        ms(1_000),
        "KAI, 4,000 nodes: 2.35 s a cycle, 2.2 s of it its snapshot (2)",
    );
    kept_rounds(&snapshot, &policy);
    for (name, scattered) in
        [("gang of 512 cards, hosts held whole", false), ("gang of 512 cards, every card another job", true)]
    {
        let snapshot = pool::for_gang(part, scattered);
        let all = rounds(name, &snapshot, &policy);
        let took = median(&all, |one| one.with_victims.iter().chain(&one.plain).sum());
        row(name, took, ms(100), "KAI 241 ms at 100 nodes, 8.97 s at 500 (2)");
    }
    replay();
    out(format_args!(
        "\n(1) With an API server, etcd and simulated pods in the loop; ours is a library in one process. Not like for like.\n\
         (2) In-process times of its actions, on another machine and another pool: the nearest there is to like for like.\n"
    ));
}

/// Claims of 2,000 queues on eight models.
fn division() -> Duration {
    let mut chance = draw::Chance(3);
    let claims: Vec<Claim> = (0..2_000)
        .map(|_| Claim {
            deserved: chance.below(8) as i64,
            weight: 1 + chance.below(4),
            demand: chance.below(40) as i64,
            max: None,
            priority: chance.below(2) as i32,
        })
        .collect();
    let mut times: Vec<Duration> =
        (0..50).map(|_| timed(|| (0..8).map(|_| divide(20_000, 1, &claims).left).sum::<i64>()).1).collect();
    quantile(&mut times, 500)
}

/// Rounds one after another: until nobody is ended any more, then without a change, then with one.
fn kept_rounds(start: &Snapshot, policy: &Policy) {
    let mut snapshot = start.clone();
    let mut settled = 0;
    while settled < 12 {
        let plan = decide_watched(&snapshot, policy, |_| {});
        let quiet = plan.steps.iter().all(|step| matches!(step.action, Action::Wait));
        if quiet {
            break;
        }
        snapshot = carry_out(&snapshot, &plan, 3_600_000, &Gone::All);
        settled += 1;
    }
    let mut kept = Rounds::new(snapshot.clone(), policy.clone());
    let (plan, first) = timed(|| kept.round(snapshot.at).clone());
    checked(&format!("pool after {settled} rounds carried out"), &snapshot, policy, &plan);
    row("first round of a kept pool", first, ms(1_000), "");
    let at = |seconds: i64| snapshot.at.checked_add_ms(seconds * 1_000).unwrap_or(snapshot.at);
    let mut times: Vec<Duration> = (1..=20).map(|second| timed(|| kept.round(at(second)).steps.len()).1).collect();
    let decided = kept.decided();
    checked_again(&snapshot, policy, &mut kept, at(20));
    row(
        &format!("next round, nothing changed ({} of 20 gone through anew)", decided - 1),
        quantile(&mut times, 500),
        ms(50),
        "",
    );
    type Make = fn(&Snapshot, usize) -> Option<Change>;
    let kinds: [(&str, Make); 5] = [
        ("a waiting job changed", |pool, _| {
            let mut job = pool.pending.first().cloned()?;
            job.priority += 1;
            Some(Change::Waits(job))
        }),
        ("a job came", |pool, number| {
            let mut job = pool.pending.get(number * 997)?.clone();
            job.name = format!("new{number}").as_str().into();
            Some(Change::Waits(job))
        }),
        ("a job ended", |pool, number| Some(Change::Gone(pool.running.get(number * 499)?.name.clone()))),
        ("a job was told to go", |pool, number| {
            let mut run = pool.running.get(number * 491)?.clone();
            run.leaving = true;
            Some(Change::Runs(run))
        }),
        ("what a queue used has decayed", |pool, number| {
            let mut queue = pool.queues.iter().filter(|queue| queue.parent.is_some()).nth(number * 17)?.clone();
            queue.past_usage = CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * 5);
            Some(Change::Queue(queue))
        }),
    ];
    let mut second = 20;
    for (what, make) in kinds {
        let mut times = Vec::new();
        for number in 1..=5 {
            second += 1;
            let Some(change) = make(kept.snapshot(), number) else { continue };
            let (_, took) = timed(|| {
                kept.apply(change);
                kept.round(at(second)).steps.len()
            });
            times.push(took);
            let anew = decide_watched(kept.snapshot(), policy, |_| {});
            assert_eq!(*kept.round(at(second)), anew, "a kept pool gives the plan that its snapshot gives");
        }
        row(&format!("next round, {what}"), quantile(&mut times, 500), ms(50), "");
    }
    out(format_args!("  {} refusals were given again in {} rounds\n", kept.recalled(), kept.decided()));
}

fn checked_again(snapshot: &Snapshot, policy: &Policy, kept: &mut Rounds, at: Timestamp) {
    let now = Snapshot { at, ..snapshot.clone() };
    let anew = decide_watched(&now, policy, |_| {});
    assert_eq!(*kept.round(at), anew, "a kept pool gives the plan that its snapshot gives");
}

/// The published pool and tasks, where they are there.
fn replay() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/openb-2023");
    let folder = std::env::var_os("CARDHOUR_SHARED").map_or(folder, |shared| PathBuf::from(shared).join("openb-2023"));
    let read = |name: &str| std::fs::read(folder.join(name));
    let (Ok(nodes), Ok(pods)) = (read(NODES), read(PODS)) else {
        out(format_args!("replay of 8,152 tasks: not timed, {} isn't there\n", folder.display()));
        return;
    };
    let trace = Trace::read(Source { name: NODES, bytes: &nodes }, Source { name: PODS, bytes: &pods });
    let trace = trace.unwrap_or_else(|error| panic!("{error}"));
    let policies = BTreeMap::from([
        ("best fit", Placement::BestFit),
        ("fragmentation gradient", Placement::Fgd),
        ("ours", Placement::Cardhour),
    ]);
    for (name, policy) in policies {
        let arrivals = trace.arrivals(42).map_or(0, |all| all.len());
        let mut times: Vec<Duration> = (0..3).map(|_| timed(|| trace.replay(policy, 42).is_ok()).1).collect();
        let what = format!("replay of {} tasks, {arrivals} arrivals, {name}", trace.request_count());
        row(&what, quantile(&mut times, 500), ms(1_000), "");
    }
}

const NODES: &str = "openb_node_list_gpu_node.csv";
const PODS: &str = "openb_pod_list_default.csv";
