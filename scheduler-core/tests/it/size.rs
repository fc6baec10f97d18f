//! A pool of the size the design names: 1,250 hosts of 8 cards, 2,000 queues, 10,000 running and 40,000 pending jobs, from a seed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Instant;

use cardhour_domain::{CardShare, CardTime, Timestamp};
use cardhour_scheduler_core::snapshot::{
    Host, HostState, Level, Pending, Piece, Queue, Quota, Resource, Running, Shape,
};
use cardhour_scheduler_core::{Policy, Snapshot, decide};

use crate::draw::Chance;

const CARD: i64 = CardShare::PARTS_PER_CARD;

fn large(hosts: u64, queues: u64, running: u64, pending: u64) -> Snapshot {
    let mut chance = Chance(1);
    let at = Timestamp::from_unix_s(1_700_000_000);
    let model = || Resource::Cards("h100".into());
    let all: Vec<Host> = (0..hosts)
        .map(|number| Host {
            name: format!("n{number:04}").as_str().into(),
            model: "h100".into(),
            cards: 8,
            cpu_milli: None,
            memory_bytes: None,
            domains: BTreeMap::from([(Level::Zone, "z".to_owned()), (Level::Rack, format!("r{}", number / 16))]),
            state: HostState::Healthy,
            window: None,
        })
        .collect();
    // A tenth of the queues are orgs and projects, the rest are users under projects.
    let orgs = (queues / 100).max(1);
    let projects = (queues / 10).max(1);
    let per_project = (hosts * 8 / projects) as i64;
    let queue = |name: String, parent: Option<String>, nominal: Option<i64>| Queue {
        name: name.as_str().into(),
        parent: parent.map(|name| name.as_str().into()),
        quota: nominal
            .map(|cards| (model(), Quota { nominal: cards * CARD, ..Quota::default() }))
            .into_iter()
            .collect(),
        weight_milli: 1_000,
        over_quota_priority: 0,
        created: None,
        tenant: None,
        rules: None,
        past_usage: CardTime::ZERO,
        band: None,
    };
    let mut tree = Vec::new();
    for org in 0..orgs {
        tree.push(queue(format!("org{org}"), None, None));
    }
    for project in 0..projects {
        tree.push(queue(format!("project{project}"), Some(format!("org{}", project % orgs)), Some(per_project)));
    }
    let users = queues - orgs - projects;
    for user in 0..users {
        tree.push(queue(format!("user{user}"), Some(format!("project{}", user % projects)), None));
    }
    let user = |chance: &mut Chance, of: u64| format!("user{}", chance.below(of)).as_str().into();
    let shape = |cards: i64| Shape {
        models: vec!["h100".into()],
        cards: CardShare::from_parts(cards * CARD),
        cpu_milli: 0,
        memory_bytes: 0,
        same: None,
        prefer: None,
        spread: false,
        accepts_revocation: false,
    };
    let cards = hosts * 8;
    let jobs = (0..running)
        .filter(|number| number * cards / running < cards)
        .map(|number| {
            let card = number * cards / running;
            let age = chance.below(86_400) as i64;
            Running {
                name: format!("run{number:05}").as_str().into(),
                // Two thirds of the pool are held by a third of the users.
                queue: user(&mut chance, users / 3),
                priority: chance.below(3) as i32,
                shape: shape(1),
                pieces: vec![Piece {
                    host: Some(format!("n{:04}", card / 8).as_str().into()),
                    workers: 1,
                    cards: vec![(card % 8) as u32],
                }],
                min_workers: 1,
                missing: None,
                submitted: at,
                admitted: at.checked_add_ms(-age * 1_000).expect("a time"),
                checkpoint: None,
                ends_by: None,
                restart_ms: 60_000,
                preemptible: true,
                restartable: true,
                critical: None,
                leaving: false,
                preempted_today: 0,
                last_preempted: None,
            }
        })
        .collect();
    let waiting = (0..pending)
        .map(|number| {
            let size = [1, 1, 1, 2, 4, 8][chance.below(6) as usize];
            let workers = if size == 8 { 1 + chance.below(8) as u32 } else { 1 };
            Pending {
                name: format!("ask{number:05}").as_str().into(),
                queue: user(&mut chance, users),
                priority: chance.below(3) as i32,
                shape: shape(size),
                workers,
                min_workers: workers,
                submitted: at.checked_add_ms(-(chance.below(3_600_000) as i64)).expect("a time"),
                preemptible: true,
                critical: None,
                longest_ms: None,
                last_preempted: None,
            }
        })
        .collect();
    Snapshot {
        at,
        queues: tree,
        hosts: all,
        capacity: BTreeMap::new(),
        off_peak: false,
        running: jobs,
        pending: waiting,
        reservations: Vec::new(),
    }
}

/// Told, not asserted: the machine that runs the tests isn't the one the figures are of.
#[test]
#[ignore = "a minute without optimisation"]
fn a_round_of_the_largest_pool() {
    let part = std::env::var("SIM_PART").ok().map_or(1, |part| part.parse::<u64>().expect("a number"));
    let snapshot = large(1_250 / part, 2_000 / part, 10_000 / part, 40_000 / part);
    for budget in [Some(0), Some(200)] {
        let policy = Policy { disruption_per_mille: budget, ..Policy::default() };
        let start = Instant::now();
        let plan = decide(&snapshot, &policy);
        let took = start.elapsed();
        let _ =
            writeln!(std::io::stderr(), "{} steps in {took:?} with a budget of {budget:?} per mille", plan.steps.len());
    }
}
