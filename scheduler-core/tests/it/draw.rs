//! Pools drawn from a seed: a tree of queues, hosts in racks, jobs that really fit where they run.

use std::collections::BTreeMap;

use cardhour_domain::{CardShare, CardTime, Timestamp};
use cardhour_scheduler_core::capacity::BandEffect;
use cardhour_scheduler_core::names::{HostName, Model, QueueName};
use cardhour_scheduler_core::policy::{
    Fairness, GiveBack, MinRun, MinRunTable, NodeFailure, Order, QueueRules, Reclaim, ShareRules, VictimCost,
    WhileBorrowing, WithinQueue,
};
use cardhour_scheduler_core::snapshot::{
    CriticalWindow, Host, HostState, Level, Pending, Piece, Queue, Quota, Resource, Running, Shape,
};
use cardhour_scheduler_core::{Policy, Snapshot};

const CARD: i64 = CardShare::PARTS_PER_CARD;

/// A source of numbers that is the same for the same seed (splitmix64).
pub struct Chance(pub u64);

impl Chance {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to `below`, without it.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// A pool and the policy of its site.
pub fn pool(seed: u64) -> (Snapshot, Policy) {
    let mut chance = Chance(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let policy = policy(&mut chance);
    let at = Timestamp::from_unix_s(1_700_000_000);
    let models: &[&str] = if chance.percent(30) { &["h100", "a100"] } else { &["h100"] };
    let hosts = hosts(&mut chance, models);
    let queues = queues(&mut chance, models, &hosts);
    let leaves: Vec<QueueName> = queues
        .iter()
        .filter(|queue| !queues.iter().any(|other| other.parent.as_ref() == Some(&queue.name)))
        .map(|queue| queue.name.clone())
        .collect();
    let running = running(&mut chance, &hosts, &leaves, at);
    let pending = (0..chance.below(12)).map(|number| pending(&mut chance, number, &leaves, models, at)).collect();
    let mut snapshot = Snapshot {
        at,
        queues,
        hosts,
        capacity: BTreeMap::new(),
        off_peak: chance.percent(50),
        running,
        pending,
        reservations: Vec::new(),
    };
    if chance.percent(15)
        && let Some(host) = snapshot.hosts.first_mut()
    {
        host.state = if chance.percent(50) { HostState::Failed } else { HostState::Draining };
    }
    (snapshot, policy)
}

fn policy(chance: &mut Chance) -> Policy {
    let fairness = match chance.below(8) {
        0 => Fairness::None,
        1 => Fairness::BorrowShare(ShareRules { final_at_most: true, initial_less: chance.percent(70) }),
        2 => Fairness::DeservedCap,
        3 => Fairness::Guaranteed,
        4 => Fairness::PastUsage,
        _ => Fairness::DeservedShare,
    };
    let minutes = |chance: &mut Chance| Some(60_000 * chance.below(30) as i64);
    Policy {
        fairness,
        rules: rules(chance),
        order: if chance.percent(15) { Order::StrictHead } else { Order::SkipBlocked },
        victim_cost: if chance.percent(25) { VictimCost::Age } else { VictimCost::CardTimeLost },
        disruption_per_mille: if chance.percent(60) { Some(100 + 100 * chance.below(5) as u32) } else { None },
        preemptions_a_day: if chance.percent(50) { Some(3) } else { None },
        min_run: MinRunTable {
            default: MinRun { preempt_ms: minutes(chance), reclaim_ms: minutes(chance) },
            queues: BTreeMap::new(),
        },
        cool_down_ms: 60_000 * chance.below(20) as i64,
        node_failure: if chance.percent(50) { NodeFailure::FailFast } else { NodeFailure::KeepTrying },
        elastic_ends_others_to_grow: chance.percent(10),
        lends_to_unpreemptible: chance.percent(20),
        give_back: chance.percent(20).then_some(GiveBack { step_parts: 2 * CARD, owed_per_mille: 300 }),
        ..Policy::default()
    }
}

fn rules(chance: &mut Chance) -> QueueRules {
    QueueRules {
        within_queue: match chance.below(4) {
            0 => WithinQueue::Never,
            1 => WithinQueue::LowerOrNewerEqual,
            _ => WithinQueue::LowerPriority,
        },
        reclaim: match chance.below(4) {
            0 => Reclaim::Never,
            1 => Reclaim::LowerPriority,
            _ => Reclaim::Any,
        },
        while_borrowing: chance.percent(25).then(|| WhileBorrowing {
            victim_priority_max: chance.percent(50).then_some(1),
            keep_victim_queue_at_nominal: chance.percent(50),
        }),
    }
}

fn hosts(chance: &mut Chance, models: &[&str]) -> Vec<Host> {
    let cards = [2, 4, 8][chance.below(3) as usize];
    (0..2 + chance.below(7))
        .map(|number| Host {
            name: HostName::new(&format!("n{number}")),
            model: Model::new(models[(number as usize) % models.len()]),
            cards,
            cpu_milli: None,
            memory_bytes: None,
            domains: BTreeMap::from([(Level::Zone, "z".to_owned()), (Level::Rack, format!("r{}", number / 3))]),
            state: HostState::Healthy,
            window: None,
        })
        .collect()
}

fn queues(chance: &mut Chance, models: &[&str], hosts: &[Host]) -> Vec<Queue> {
    let all: i64 = hosts.iter().map(|host| i64::from(host.cards)).sum();
    let roots = 1 + chance.below(2);
    let mut queues = Vec::new();
    let count = 3 + chance.below(7);
    for number in 0..count {
        let parent = (number >= roots).then(|| QueueName::new(&format!("q{}", chance.below(number))));
        let mut quota = BTreeMap::new();
        for model in models {
            if chance.percent(85) {
                let nominal = CARD * chance.below((all as u64).div_ceil(2) + 1) as i64;
                let limit =
                    |chance: &mut Chance, percent| chance.percent(percent).then(|| CARD * chance.below(8) as i64);
                quota.insert(
                    Resource::Cards(Model::new(model)),
                    Quota {
                        nominal,
                        borrow_limit: limit(chance, 20),
                        lend_limit: limit(chance, 15),
                        max: limit(chance, 10).map(|more| nominal + more),
                    },
                );
            }
        }
        queues.push(Queue {
            name: QueueName::new(&format!("q{number}")),
            parent,
            quota,
            weight_milli: 500 * chance.below(5),
            over_quota_priority: chance.below(2) as i32,
            created: None,
            tenant: chance.percent(30).then(|| "t1".into()),
            rules: None,
            past_usage: CardTime::from_part_ms(i128::from(CARD) * 3_600_000 * i128::from(chance.below(40))),
            band: chance.percent(8).then(|| BandEffect {
                weight_per_mille: 500,
                borrow_per_mille: 500 * chance.below(2) as u32,
                off_peak_only: chance.percent(50),
            }),
        });
    }
    queues
}

/// Jobs on cards that are free for them.
fn running(chance: &mut Chance, hosts: &[Host], leaves: &[QueueName], at: Timestamp) -> Vec<Running> {
    let mut free: BTreeMap<(usize, u32), i64> = BTreeMap::new();
    let mut half: BTreeMap<(usize, u32), QueueName> = BTreeMap::new();
    for (number, host) in hosts.iter().enumerate() {
        for card in 0..host.cards {
            free.insert((number, card), CARD);
        }
    }
    let mut running = Vec::new();
    let full = 40 + chance.below(61);
    for number in 0..chance.below(24) {
        let queue = leaves[chance.below(leaves.len() as u64) as usize].clone();
        let shared = chance.percent(15);
        let each = if shared { 1 } else { 1 + chance.below(3) as u32 };
        let workers = if shared { 1 } else { 1 + chance.below(4) as u32 };
        let first = chance.below(hosts.len() as u64) as usize;
        let mut pieces: Vec<Piece> = Vec::new();
        for host in (0..hosts.len()).map(|step| (first + step) % hosts.len()) {
            if hosts[host].model != hosts[first].model {
                continue;
            }
            let there: u32 = pieces.iter().map(|piece| piece.workers).sum();
            let mut cards = Vec::new();
            for card in 0..hosts[host].cards {
                let key = (host, card);
                let open = if shared {
                    free[&key] >= CARD / 2 && (free[&key] == CARD || half.get(&key) == Some(&queue))
                } else {
                    free[&key] == CARD
                };
                if open && (cards.len() as u32) < (workers - there) * each {
                    cards.push(card);
                }
            }
            let here = cards.len() as u32 / each;
            cards.truncate((here * each) as usize);
            if here > 0 {
                pieces.push(Piece { host: Some(hosts[host].name.clone()), workers: here, cards });
            }
        }
        if pieces.iter().map(|piece| piece.workers).sum::<u32>() < workers || !chance.percent(full) {
            continue;
        }
        for piece in &pieces {
            let host = hosts.iter().position(|host| Some(&host.name) == piece.host.as_ref()).expect("its host");
            for card in &piece.cards {
                *free.get_mut(&(host, *card)).expect("its card") -= if shared { CARD / 2 } else { CARD };
                if shared {
                    half.insert((host, *card), queue.clone());
                }
            }
        }
        let age_s = chance.below(7_200) as i64;
        let admitted = at.checked_add_ms(-age_s * 1_000).expect("a time");
        running.push(Running {
            name: format!("run{number:02}").as_str().into(),
            queue,
            priority: chance.below(4) as i32,
            shape: Shape {
                models: vec![hosts[first].model.clone()],
                cards: CardShare::from_parts(if shared { CARD / 2 } else { CARD * i64::from(each) }),
                cpu_milli: 0,
                memory_bytes: 0,
                same: None,
                prefer: None,
                spread: false,
                accepts_revocation: false,
            },
            pieces,
            min_workers: 1 + chance.below(u64::from(workers)) as u32,
            missing: None,
            submitted: admitted,
            admitted,
            checkpoint: chance.percent(50).then(|| admitted.checked_add_ms(age_s * 500).expect("a time")),
            ends_by: chance
                .percent(50)
                .then(|| at.checked_add_ms(600_000 * (1 + chance.below(20) as i64)).expect("a time")),
            restart_ms: 60_000 * chance.below(10) as i64,
            preemptible: !chance.percent(10),
            restartable: !chance.percent(20),
            critical: chance.percent(10).then(|| window(chance, at)),
            leaving: chance.percent(8),
            preempted_today: chance.below(3) as u32,
            last_preempted: None,
        });
    }
    running
}

fn window(chance: &mut Chance, at: Timestamp) -> CriticalWindow {
    CriticalWindow {
        asked_by: "ann".to_owned(),
        approved_by: chance.percent(70).then(|| if chance.percent(80) { "bob".to_owned() } else { "ann".to_owned() }),
        from: at.checked_add_ms(-3_600_000).expect("a time"),
        until: at.checked_add_ms(if chance.percent(80) { 3_600_000 } else { -60_000 }).expect("a time"),
    }
}

fn pending(chance: &mut Chance, number: u64, leaves: &[QueueName], models: &[&str], at: Timestamp) -> Pending {
    let shared = chance.percent(12);
    let workers = if shared { 1 } else { 1 + chance.below(5) as u32 };
    let cards = if shared { CARD / 2 } else { CARD * (1 + chance.below(4) as i64) };
    Pending {
        name: format!("ask{number:02}").as_str().into(),
        queue: leaves[chance.below(leaves.len() as u64) as usize].clone(),
        priority: chance.below(5) as i32,
        shape: Shape {
            models: if chance.percent(80) {
                vec![Model::new(models[chance.below(models.len() as u64) as usize])]
            } else {
                Vec::new()
            },
            cards: CardShare::from_parts(cards),
            cpu_milli: 0,
            memory_bytes: 0,
            same: match chance.below(6) {
                0 => Some(Level::Rack),
                1 => Some(Level::Host),
                _ => None,
            },
            prefer: chance.percent(20).then_some(Level::Rack),
            spread: chance.percent(15),
            accepts_revocation: false,
        },
        workers,
        min_workers: if chance.percent(25) { 1 + chance.below(u64::from(workers)) as u32 } else { workers },
        submitted: at.checked_add_ms(-(chance.below(3_600_000) as i64)).expect("a time"),
        preemptible: !chance.percent(10),
        critical: chance.percent(10).then(|| window(chance, at)),
        longest_ms: chance.percent(50).then(|| 600_000 * (1 + chance.below(20) as i64)),
        last_preempted: None,
    }
}
