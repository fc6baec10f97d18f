use super::measure::{Figures, Guarantee, capacity, evenness_ppm, kept, measure};
use super::*;
use crate::chance::{Chance, Purpose};
use crate::policy::{Order, Policy};
use crate::replay::queue;
use crate::shared_data::shared_data;
use crate::snapshot::{HostState, Queue, Quota, Resource, Shape, Snapshot};
use cardhour_domain::CardTime;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

fn minutes(minutes: i64) -> Timestamp {
    Timestamp::from_unix_ms(minutes * 60_000)
}

fn cards(cards: u32) -> i64 {
    i64::from(cards) * CardShare::CARD.parts()
}

fn host(name: &str, cards: u32) -> Host {
    Host {
        name: name.into(),
        model: "H200".into(),
        cards,
        cpu_milli: None,
        memory_bytes: None,
        domains: BTreeMap::new(),
        state: HostState::Healthy,
        window: None,
    }
}

/// A team under the root; `None`: nobody has a quota.
fn queue(name: &str, guaranteed: Option<u32>) -> Queue {
    let parent = (name != "/").then(|| "/".into());
    let quota = |guaranteed| (Resource::Cards("H200".into()), Quota { nominal: cards(guaranteed), ..Quota::default() });
    Queue {
        name: name.into(),
        parent,
        quota: guaranteed.map(quota).into_iter().collect(),
        weight_milli: 1_000,
        over_quota_priority: 0,
        created: None,
        tenant: None,
        rules: None,
        past_usage: CardTime::ZERO,
        band: None,
    }
}

/// `NAME TEAM WORKERSxCARDS SUBMITTED RUNS`, the last two in minutes.
fn job(line: &str) -> Job {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [name, team, shape, submitted, runs] = fields[..] else { panic!("{line}") };
    let (workers, each) = shape.split_once('x').unwrap();
    let (submitted, runs): (i64, i64) = (submitted.parse().unwrap(), runs.parse().unwrap());
    asked(name, team, workers.parse().unwrap(), each.parse().unwrap(), minutes(submitted), runs * 60_000)
}

fn asked(name: &str, team: &str, workers: u32, each: u32, submitted: Timestamp, runs_ms: i64) -> Job {
    let shape = Shape {
        models: vec!["H200".into()],
        cards: CardShare::from_parts(cards(each)),
        cpu_milli: 0,
        memory_bytes: 0,
        same: None,
        prefer: None,
        spread: false,
        accepts_revocation: false,
    };
    let ask = Pending {
        name: name.into(),
        queue: team.into(),
        priority: 0,
        shape,
        workers,
        min_workers: workers,
        submitted,
        preemptible: true,
        critical: None,
        longest_ms: None,
        last_preempted: None,
    };
    Job { ask, runs_ms, restartable: true, holds: None }
}

fn trace(hosts: &[(&str, u32)], teams: &[(&str, Option<u32>)], jobs: Vec<Job>) -> Trace {
    let pool = Snapshot {
        at: minutes(0),
        queues: std::iter::once(queue("/", None)).chain(teams.iter().map(|(name, own)| queue(name, *own))).collect(),
        hosts: hosts.iter().map(|(name, cards)| host(name, *cards)).collect(),
        capacity: BTreeMap::new(),
        off_peak: false,
        running: Vec::new(),
        pending: Vec::new(),
        reservations: Vec::new(),
    };
    Trace { pool, jobs, hosts: Vec::new(), used: Vec::new() }
}

/// Each run: job, from and to in minutes, how it ended.
fn told(trace: &Trace, course: &Course) -> Vec<String> {
    assert_eq!(course.faults, []);
    let minute = |at: Timestamp| at.unix_ms() / 60_000;
    let run = |run: &Run| {
        let name = trace.jobs[run.job].name();
        format!("{name} {} {} {:?}", minute(run.from), minute(run.to), run.ending)
    };
    course.runs.iter().map(run).collect()
}

fn of_team(trace: &Trace, team: &str) -> Vec<Option<usize>> {
    trace.jobs.iter().map(|job| (job.ask.queue.as_str() == team).then_some(0)).collect()
}

fn figures(trace: &Trace, course: &Course, during: (i64, i64), team: &str) -> Figures {
    let during = Interval::new(minutes(during.0), minutes(during.1)).unwrap();
    measure(trace, course, during, &of_team(trace, team)).remove(&0).unwrap_or_default()
}

fn hours(time: CardTime) -> String {
    time.card_hours().normalize().to_string()
}

/// Eight cards. a1 takes all of them from 0 to 100; b1 comes at 10.
fn two_teams(guaranteed: Option<u32>) -> Trace {
    let jobs = ["a1 a 1x4 0 100", "a2 a 1x4 5 100", "b1 b 1x4 10 20"].map(job).into();
    trace(&[("n1", 8)], &[("a", guaranteed), ("b", guaranteed)], jobs)
}

/// By hand, without quotas: b1 comes at 10 and waits for a1 to end at 100, so it runs from 100 to 120.
#[test]
fn without_quotas_a_job_waits_until_another_has_ended() {
    let trace = two_teams(None);
    let course = trace.play_audited(&Policy::default());
    assert_eq!(told(&trace, &course), ["a1 0 100 Done", "a2 5 105 Done", "b1 100 120 Done"]);
    let b = figures(&trace, &course, (0, 1_000), "b");
    assert_eq!((b.mean_wait_ms(), b.mean_completion_ms()), (Some(90 * 60_000), Some(110 * 60_000)));
    // Four cards for 20 minutes held; 90 minutes waited besides.
    assert_eq!(
        (hours(b.held), b.asked.card_hours().round_dp(4).normalize().to_string()),
        ("1.333333".into(), "7.3333".into())
    );
}

/// By hand, with four cards guaranteed to each: a runs eight, four of them lent. A job runs half an hour before it may be ended, so b1 waits until a1 has: to 30. Of a's two jobs
/// a2 would have lost less, but may be ended from 35 on only. a1 loses 4 × 30 minutes = 2 card-hours, waits for room, which b1 leaves at 50, and runs in full again, to 150.
#[test]
fn an_owner_takes_its_guarantee_back_and_who_gave_way_runs_again_in_full() {
    let trace = two_teams(Some(4));
    let course = trace.play_audited(&Policy::default());
    assert_eq!(told(&trace, &course), ["a1 0 30 GaveWay", "a2 5 105 Done", "b1 30 50 Done", "a1 50 150 Done"]);
    let (a, b) = (figures(&trace, &course, (0, 1_000), "a"), figures(&trace, &course, (0, 1_000), "b"));
    assert_eq!((a.preemptions, hours(a.lost), a.waits_ms.clone()), (1, "2".into(), vec![0, 0]));
    assert_eq!((b.preemptions, b.mean_wait_ms()), (0, Some(20 * 60_000)));
    // Of its four cards b wanted all from 10 to 50, 2 2/3 card-hours, and had them from 30 on.
    let guarantee = Guarantee { jobs: vec![2], model: "H200".into(), cards: CardShare::from_cards(4).unwrap() };
    let during = Interval::new(minutes(0), minutes(1_000)).unwrap();
    let met = kept(&trace, &course, during, &guarantee);
    assert_eq!(met.granted.ratio_of(met.owed).unwrap().normalize().to_string(), "0.5");
    // a held 4 × 30 + 4 × 100 + 4 × 100 of 4 × 150 + 4 × 100 card-minutes, that is 0.92; b 20 of 40, 0.5. (0.92 + 0.5)² ÷ (2 × (0.92² + 0.5²)) = 2.0164 ÷ 2.1928 = 0.919554…, rounded down.
    assert_eq!(evenness_ppm([&a, &b].into_iter()), Some(919_554));
}

/// By hand: what counts is inside of the time. From 20 to 40 a1 holds ten minutes and waits ten, a2 holds twenty.
#[test]
fn card_time_is_that_inside_of_the_time_and_waits_are_of_jobs_that_had_not_started() {
    let trace = two_teams(Some(4));
    let course = trace.play_audited(&Policy::default());
    let a = figures(&trace, &course, (20, 40), "a");
    assert_eq!(
        (hours(a.held), a.asked.card_hours().round_dp(4).normalize().to_string()),
        ("2".into(), "2.6667".into())
    );
    assert_eq!((a.waits_ms.len(), a.preemptions), (0, 1));
    assert_eq!(figures(&trace, &course, (20, 40), "b").waits_ms, [20 * 60_000]);
}

/// By hand: c1 holds six of eight cards since before the beginning, for 60 minutes in all, and its last are those to 40. b1 wants four and waits for it.
#[test]
fn who_runs_when_it_begins_goes_on_to_its_end() {
    let mut jobs: Vec<Job> = ["c1 c 1x6 -20 60", "b1 b 1x4 10 20"].map(job).into();
    jobs[0].holds = Some(Holds {
        since: minutes(-20),
        pieces: vec![Piece { host: Some("n1".into()), workers: 1, cards: Vec::new() }],
    });
    let trace = trace(&[("n1", 8)], &[("b", None), ("c", None)], jobs);
    let course = trace.play_audited(&Policy::default());
    assert_eq!(told(&trace, &course), ["c1 -20 40 Done", "b1 40 60 Done"]);
    assert_eq!(figures(&trace, &course, (0, 100), "c").waits_ms, [] as [i64; 0], "it had started before");
}

/// By hand: n1 is out from 10 to 30 with what runs there going on; n2 is there from 15 and taken out at 40. a1 runs on n1 throughout; a2 comes at 12 and finds n2 at 15, where it runs on to 45;
/// a3 comes at 41, when n2 takes nobody any more and n1 is full, and starts at 50.
#[test]
fn hosts_come_and_go_with_what_runs_there() {
    let jobs = ["a1 a 1x8 0 50", "a2 a 1x8 12 30", "a3 a 1x8 41 10", "a4 a 1x16 0 1"].map(job).into();
    let mut trace = trace(&[("n1", 8)], &[("a", None)], jobs);
    let change = |at, name: &str, becomes| HostChange { at: minutes(at), name: name.into(), becomes };
    let out = Host { state: HostState::Draining, ..host("n1", 8) };
    trace.hosts = vec![
        change(40, "n2", None),
        change(10, "n1", Some(out)),
        change(15, "n2", Some(host("n2", 8))),
        change(30, "n1", Some(host("n1", 8))),
    ];
    let course = trace.play_audited(&Policy::default());
    assert_eq!(told(&trace, &course), ["a1 0 50 Done", "a2 15 45 Done", "a3 50 60 Done"]);
    assert_eq!(course.unstarted, [3], "no host has sixteen cards");
    // In an hour n1 is there for 40 minutes, n2 for 25: 8 × 65 ÷ 60.
    let hour = Interval::new(minutes(0), minutes(60)).unwrap();
    assert_eq!(hours(capacity(&trace.pool.hosts, &trace.hosts, hour)), "8.666667");
}

#[test]
fn percentiles_are_by_nearest_rank_and_the_mean_is_rounded_half_up() {
    let figures = Figures { waits_ms: (1..=20).collect(), ..Figures::default() };
    // (1 + … + 20) ÷ 20 = 10.5; of twenty the tenth and the nineteenth.
    assert_eq!(
        (figures.mean_wait_ms(), figures.wait_percentile_ms(50), figures.wait_percentile_ms(95)),
        (Some(11), Some(10), Some(19))
    );
    assert_eq!(Figures::default().mean_wait_ms(), None);
}

/// A pool drawn by chance: two or three teams, quotas or none.
fn drawn(seed: u64) -> Trace {
    let mut chance = Chance::new(seed, Purpose::Arrivals);
    let mut below = |bound: usize| chance.below(bound);
    let has_quotas = below(4) > 0;
    let names = ["a", "b", "c"];
    let teams: Vec<(&str, Option<u32>)> =
        names[..2 + below(2)].iter().map(|name| (*name, has_quotas.then(|| below(9) as u32))).collect();
    let hosts = [("n1", 8), ("n2", 8), ("n3", 4)];
    let jobs = (0..5 + below(30))
        .map(|number| {
            let (workers, each) = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (3, 2), (4, 1)][below(7)];
            let team = teams[below(teams.len())].0;
            let (submitted, runs_ms) = (minutes(below(240) as i64), below(200) as i64 * 60_000);
            let mut job = asked(&format!("j{number}"), team, workers, each, submitted, runs_ms);
            job.ask.priority = below(3) as i32;
            job.ask.preemptible = below(4) > 0;
            job
        })
        .collect();
    trace(&hosts, &teams, jobs)
}

/// Of what was played, each job's done run is as long as the job; what was held is what jobs run and what was lost; no instant holds more than there is; and every job ends once.
#[test]
fn what_is_held_is_what_jobs_run_and_what_was_lost() {
    let mut gave_way = 0;
    for seed in 0..400 {
        let trace = drawn(seed);
        let course = trace.play_audited(&Policy::default());
        assert_eq!(course.faults, [], "seed {seed}");
        assert_eq!(course, trace.play_audited(&Policy::default()), "seed {seed}");
        let mut done = vec![0; trace.jobs.len()];
        let (mut held, mut lost) = (CardTime::ZERO, CardTime::ZERO);
        let mut edges: Vec<(Timestamp, i64)> = Vec::new();
        for run in &course.runs {
            let job = &trace.jobs[run.job];
            let time = Interval::new(run.from, run.to).map_or(CardTime::ZERO, |whole| CardTime::of(job.cards(), whole));
            held += time;
            assert!(job.ask.submitted <= run.from, "seed {seed}");
            match run.ending {
                Ending::Done => {
                    assert_eq!(run.to.ms_since(run.from), job.runs_ms, "seed {seed}");
                    done[run.job] += 1;
                }
                Ending::GaveWay | Ending::Moved => {
                    gave_way += 1;
                    lost += time;
                }
            }
            edges.extend([(run.from, job.cards().parts()), (run.to, -job.cards().parts())]);
        }
        course.unstarted.iter().for_each(|place| done[*place] += 1);
        assert!(done.iter().all(|times| *times == 1), "seed {seed}: {done:?}");
        let runs = |place: usize, job: &Job| {
            let whole = Interval::new(minutes(0), minutes(0).checked_add_ms(job.runs_ms).unwrap());
            whole.filter(|_| !course.unstarted.contains(&place)).map(|whole| CardTime::of(job.cards(), whole))
        };
        let asked: CardTime = trace.jobs.iter().enumerate().filter_map(|(place, job)| runs(place, job)).sum();
        assert_eq!(held, asked + lost, "seed {seed}");
        // What is given back at an instant is free at it: endings sort first.
        edges.sort_unstable();
        let mut level = 0;
        for (at, parts) in edges {
            level += parts;
            assert!(level <= cards(20), "seed {seed}: more than twenty cards at {at}");
        }
    }
    assert!(gave_way > 100, "the draw must reach what it is there to try: {gave_way}");
}

/// Where nobody has a quota and a queue keeps its order, the line of one tenant is that of `replay queue`, whose figures are the published ones: another machine, the same waits, job by job.
#[test]
fn one_tenant_without_quotas_waits_as_the_queue_of_the_philly_trace() {
    let (Some(jobs), Some(pools)) = (shared_data("philly/philly.csv"), shared_data("philly/philly_vc.csv")) else {
        return;
    };
    let read = queue::Trace::read(("jobs", &jobs), ("pools", &pools)).unwrap();
    let months = read.whole_months();
    let published = read.replay(queue::Order::Fifo, months, NonZeroU64::new(8).unwrap());
    // Tenants that really wait, and whose larger jobs are whole hosts.
    for (tenant, hosts) in [("2869ce", 16), ("7f04ca", 32), ("b436b2", 64)] {
        let names: Vec<String> = (0..hosts).map(|host| format!("n{host:03}")).collect();
        let hosts: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 8)).collect();
        let theirs = read.jobs().iter().filter(|job| job.tenant == tenant);
        let inside = theirs.filter(|job| months.is_none_or(|months| months.contains(job.submit)));
        let jobs: Vec<Job> = inside
            .enumerate()
            .map(|(row, job)| {
                let (cards, name) = (job.cards as u32, format!("{row:06}"));
                let (workers, each) = if cards > 8 { (cards / 8, 8) } else { (1, cards) };
                asked(&name, tenant, workers, each, job.submit, job.duration_ms)
            })
            .collect();
        let mut trace = trace(&hosts, &[(tenant, None)], jobs);
        trace.pool.at = months.unwrap().start();
        let course = trace.play(&Policy { order: Order::StrictHead, ..Policy::default() });
        let all = Interval::new(trace.pool.at, Timestamp::from_unix_ms(i64::MAX / 4)).unwrap();
        let played = measure(&trace, &course, all, &of_team(&trace, tenant)).remove(&0).unwrap();
        let waits = &published.tenants[tenant];
        assert_eq!(played.unstarted, waits.rejected, "{tenant}");
        assert_eq!(played.waits_ms.len() as u64, waits.jobs, "{tenant}");
        let sum: i128 = played.waits_ms.iter().map(|wait| i128::from(*wait)).sum();
        assert_eq!(sum, waits.queueing_ms, "{tenant}");
        let queued = played.waits_ms.iter().filter(|wait| **wait > 0).count();
        assert_eq!(queued as u64, waits.queued, "{tenant}");
    }
}
