//! The pools that are timed, from a seed, and values by which two machines can tell that they had the same one.

use std::collections::BTreeMap;

use cardhour_domain::{CardShare, CardTime, Timestamp};
use cardhour_scheduler_core::Snapshot;
use cardhour_scheduler_core::plan::Plan;
use cardhour_scheduler_core::snapshot::{
    Host, HostState, Level, Pending, Piece, Queue, Quota, Resource, Running, Shape,
};

use crate::draw::Chance;

const CARD: i64 = CardShare::PARTS_PER_CARD;

const MODELS: [&str; 8] = ["h100", "h200", "a100", "l40s", "b200", "a10", "v100", "t4"];

/// The model of a host: racks of 16 are of one.
fn model(host: u64) -> &'static str {
    MODELS[(host / 16) as usize % MODELS.len()]
}

fn shape(model: &str, cards: i64) -> Shape {
    Shape {
        models: vec![model.into()],
        cards: CardShare::from_parts(cards * CARD),
        cpu_milli: 0,
        memory_bytes: 0,
        same: None,
        prefer: None,
        spread: false,
        accepts_revocation: false,
    }
}

/// The pool of the design, a `part`-th as large: full, two thirds of it held by a third of the users, with queues that want four times as much.
pub fn large(part: u64, seed: u64) -> Snapshot {
    let (hosts, queues, running, pending) = (1_250 / part, 2_000 / part, 10_000 / part, 40_000 / part);
    let mut chance = Chance(seed);
    let at = Timestamp::from_unix_s(1_700_000_000);
    let all: Vec<Host> = (0..hosts)
        .map(|number| Host {
            name: format!("n{number:04}").as_str().into(),
            model: model(number).into(),
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
    let per_project = (hosts * 8 / projects / MODELS.len() as u64) as i64;
    let queue = |name: String, parent: Option<String>, nominal: Option<i64>| Queue {
        name: name.as_str().into(),
        parent: parent.map(|name| name.as_str().into()),
        quota: nominal
            .into_iter()
            .flat_map(|cards| {
                MODELS.map(|model| (Resource::Cards(model.into()), Quota { nominal: cards * CARD, ..Quota::default() }))
            })
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
                shape: shape(model(card / 8), 1),
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
                shape: shape(MODELS[chance.below(MODELS.len() as u64) as usize], size),
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

/// One gang of 64 workers with a host each, of an owner whose quota others hold: by jobs of a host each, or, `scattered`, by jobs of a card each.
pub fn for_gang(part: u64, scattered: bool) -> Snapshot {
    let mut pool = large(part, 2);
    for host in &mut pool.hosts {
        host.model = "h100".into();
    }
    let cards = pool.hosts.len() as i64 * 8;
    let gang = 512 / part as i64;
    let quota =
        |nominal: i64| BTreeMap::from([(Resource::Cards("h100".into()), Quota { nominal, ..Quota::default() })]);
    pool.queues.iter_mut().for_each(|queue| queue.quota.clear());
    let like = pool.queues[0].clone();
    pool.queues.push(Queue { name: "owner".into(), parent: None, quota: quota(gang * CARD), ..like.clone() });
    pool.queues.push(Queue { name: "others".into(), parent: None, quota: quota((cards - gang) * CARD), ..like });
    for queue in &mut pool.queues {
        if queue.parent.is_none() && !["owner", "others"].contains(&queue.name.as_str()) {
            queue.parent = Some("others".into());
        }
    }
    for run in &mut pool.running {
        run.shape = shape("h100", 1);
    }
    if !scattered {
        pool.running.retain(|run| run.pieces[0].cards == [0]);
        for run in &mut pool.running {
            run.shape = shape("h100", 8);
            run.pieces[0].cards = (0..8).collect();
        }
    }
    let mut asker = pool.pending.swap_remove(0);
    asker.queue = "owner".into();
    asker.shape = shape("h100", 8);
    (asker.workers, asker.min_workers) = ((gang / 8) as u32, (gang / 8) as u32);
    pool.pending = vec![asker];
    pool
}

/// FNV-1a.
struct Sum(u64);

impl Sum {
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Of all that is in a pool.
pub fn check_value(pool: &Snapshot) -> u64 {
    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    pool.queues.iter().for_each(|one| sum.add(&format!("{one:?}")));
    pool.hosts.iter().for_each(|one| sum.add(&format!("{one:?}")));
    pool.running.iter().for_each(|one| sum.add(&format!("{one:?}")));
    pool.pending.iter().for_each(|one| sum.add(&format!("{one:?}")));
    pool.reservations.iter().for_each(|one| sum.add(&format!("{one:?}")));
    sum.0
}

/// Of all that is in a plan.
pub fn check_value_of_plan(plan: &Plan) -> u64 {
    let mut sum = Sum(0xcbf2_9ce4_8422_2325);
    plan.steps.iter().for_each(|one| sum.add(&format!("{one:?}")));
    sum.0
}
