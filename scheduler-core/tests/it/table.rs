//! A pool written down in lines, and a plan as lines, for tests that read like a story.
//!
//! ```text
//! queue b under org: 4 borrows 2 lends 1 max 8 weight 2
//! host n1: 8 in r1                       (failed)
//! runs x in b: 2 on n1, priority 1, for 3600 s, seen 600 s ago
//! waits y in a: 4, workers 2, least 1, priority 3, same rack, at most 600 s
//! ```
//! Cards are those of a worker. Flags: `pinned`, `leaving`, `critical`, `self-approved`, `unapproved`, `expired`.

use std::collections::BTreeMap;

use cardhour_domain::{CardShare, CardTime, Timestamp};
use cardhour_scheduler_core::plan::{Action, Plan, Reason};
use cardhour_scheduler_core::snapshot::{
    CriticalWindow, Host, HostState, Level, Pending, Piece, Queue, Quota, Resource, Running, Shape,
};
use cardhour_scheduler_core::{Policy, Snapshot, audit, decide};

/// The instant of all tables.
pub fn noon() -> Timestamp {
    Timestamp::from_unix_s(1_700_000_000)
}

/// Reads a table.
#[track_caller]
pub fn read(text: &str) -> Snapshot {
    let mut snapshot = Snapshot {
        at: noon(),
        queues: Vec::new(),
        hosts: Vec::new(),
        capacity: BTreeMap::new(),
        off_peak: false,
        running: Vec::new(),
        pending: Vec::new(),
        reservations: Vec::new(),
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, rest) = line.split_once(':').unwrap_or_else(|| panic!("no colon in {line:?}"));
        let head: Vec<&str> = head.split(' ').collect();
        match head.as_slice() {
            ["queue", name] => snapshot.queues.push(queue(name, None, rest)),
            ["queue", name, "under", parent] => snapshot.queues.push(queue(name, Some(parent), rest)),
            ["host", name] => snapshot.hosts.push(host(name, rest)),
            ["runs", name, "in", queue] => snapshot.running.push(run(name, queue, rest)),
            ["waits", name, "in", queue] => snapshot.pending.push(wait(name, queue, rest)),
            other => panic!("nobody reads {other:?}"),
        }
    }
    snapshot
}

/// The plan for a table is these lines, and passes its audit.
#[track_caller]
pub fn check(text: &str, policy: &Policy, expected: &[&str]) {
    check_pool(&read(text), policy, expected);
}

#[track_caller]
pub fn check_pool(snapshot: &Snapshot, policy: &Policy, expected: &[&str]) {
    let plan = decide(snapshot, policy);
    let words: String = plan.steps.iter().map(|step| step.words() + "\n").collect();
    assert_eq!(lines(&plan), expected, "\n{words}");
    assert_eq!(audit(snapshot, policy, &plan), [], "\n{words}");
}

/// A policy that ends whoever the rules allow, at once: each test adds the one guard it is about.
pub fn bare() -> Policy {
    Policy {
        disruption_per_mille: None,
        preemptions_a_day: None,
        min_run: cardhour_scheduler_core::policy::MinRunTable::default(),
        cool_down_ms: 0,
        ..Policy::default()
    }
}

/// A plan as lines.
pub fn lines(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .map(|step| {
            let job = &step.job;
            let hosts = |pieces: &[Piece]| {
                let names: Vec<&str> =
                    pieces.iter().filter_map(|piece| piece.host.as_ref()).map(|host| host.as_str()).collect();
                if names.is_empty() { String::new() } else { format!(" on {}", names.join(" ")) }
            };
            match &step.action {
                Action::Admit(seat) => format!("start {job} x{}{}", seat.workers, hosts(&seat.pieces)),
                Action::Reserve { seat, waits_for, .. } => {
                    let names: Vec<&str> = waits_for.iter().map(|job| job.as_str()).collect();
                    format!("keep {job} x{}{} after {}", seat.workers, hosts(&seat.pieces), names.join(" "))
                }
                Action::Evict { for_job } => match for_job {
                    Some(other) => format!("end {job} for {other}"),
                    None => format!("end {job}"),
                },
                Action::Shrink { workers, for_job, .. } => format!("shrink {job} by {workers} for {for_job}"),
                Action::Move { to, for_job, .. } => match for_job {
                    Some(other) => format!("move {job}{} for {other}", hosts(to)),
                    None => format!("move {job}{}", hosts(to)),
                },
                Action::Requeue => format!("requeue {job}"),
                Action::Wait => match &step.reason {
                    Reason::Waits(why) => {
                        let why = format!("{why:?}");
                        format!("wait {job} {}", why.split([' ', '{']).next().unwrap_or_default())
                    }
                    _ => format!("wait {job}"),
                },
            }
        })
        .collect()
}

/// `4 borrows 2 on n1` as the first number and what follows each word.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        Self(text.split([' ', ',']).filter(|word| !word.is_empty()).collect())
    }

    fn after(&self, word: &str) -> Option<&'a str> {
        self.0.iter().position(|one| *one == word).and_then(|at| self.0.get(at + 1)).copied()
    }

    fn number(&self, word: &str) -> Option<i64> {
        self.after(word).map(|text| text.parse().unwrap_or_else(|_| panic!("{text} after {word} isn't a number")))
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    fn parts(text: &str) -> i64 {
        let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
        let number: i64 =
            format!("{whole}{tenths}").parse().unwrap_or_else(|_| panic!("{text} isn't a number of cards"));
        number * CardShare::PARTS_PER_CARD / 10
    }
}

fn cards_of(model: &str) -> Resource {
    Resource::Cards(model.into())
}

/// `4 borrows 2; a100 3`: the first model is `gpu` unless it is named.
fn queue(name: &str, parent: Option<&str>, rest: &str) -> Queue {
    let mut quota = BTreeMap::new();
    for part in rest.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let words = Words::of(part);
        let (model, nominal) = match words.0[0].parse::<f64>() {
            Ok(_) => ("gpu", words.0[0]),
            Err(_) if words.0[0] == "weight" => continue,
            Err(_) => (words.0[0], words.0[1]),
        };
        let limit = |word| words.after(word).map(Words::parts);
        quota.insert(
            cards_of(model),
            Quota {
                nominal: Words::parts(nominal),
                borrow_limit: limit("borrows"),
                lend_limit: limit("lends"),
                max: limit("max"),
            },
        );
    }
    Queue {
        name: name.into(),
        parent: parent.map(Into::into),
        quota,
        weight_milli: Words::of(rest).number("weight").map_or(1_000, |weight| weight as u64 * 1_000),
        over_quota_priority: 0,
        created: None,
        tenant: None,
        rules: None,
        past_usage: CardTime::ZERO,
        band: None,
    }
}

fn host(name: &str, rest: &str) -> Host {
    let words = Words::of(rest);
    Host {
        name: name.into(),
        model: words.after("of").unwrap_or("gpu").into(),
        cards: words.0[0].parse().expect("cards of a host"),
        cpu_milli: None,
        memory_bytes: None,
        domains: words.after("in").map(|rack| (Level::Rack, rack.to_owned())).into_iter().collect(),
        state: if words.has("failed") { HostState::Failed } else { HostState::Healthy },
        window: None,
    }
}

fn shape(words: &Words<'_>) -> Shape {
    Shape {
        models: vec![words.after("of").unwrap_or("gpu").into()],
        cards: CardShare::from_parts(Words::parts(words.0[0])),
        cpu_milli: 0,
        memory_bytes: 0,
        same: match words.after("same") {
            None => None,
            Some("rack") => Some(Level::Rack),
            Some("host") => Some(Level::Host),
            Some(other) => panic!("level {other}"),
        },
        prefer: None,
        spread: words.has("spread"),
        accepts_revocation: false,
    }
}

fn before(seconds: i64) -> Timestamp {
    noon().checked_add_ms(-seconds * 1_000).expect("a time")
}

fn window(words: &Words<'_>) -> Option<CriticalWindow> {
    let approved_by = if words.has("critical") || words.has("expired") {
        Some("bob".to_owned())
    } else if words.has("self-approved") {
        Some("ann".to_owned())
    } else if words.has("unapproved") {
        None
    } else {
        return None;
    };
    let until = if words.has("expired") { before(1) } else { before(-3_600) };
    Some(CriticalWindow { asked_by: "ann".to_owned(), approved_by, from: before(3_600), until })
}

fn run(name: &str, queue: &str, rest: &str) -> Running {
    let words = Words::of(rest);
    let workers = words.number("workers").unwrap_or(1) as u32;
    let hosts: Vec<&str> = words
        .0
        .iter()
        .enumerate()
        .filter(|(at, _)| *at > 0 && words.0[at - 1] == "on")
        .flat_map(|(_, hosts)| hosts.split('+'))
        .collect();
    let pieces = match hosts.len() as u32 {
        0 => vec![Piece { host: None, workers, cards: Vec::new() }],
        n => hosts
            .iter()
            .map(|host| Piece { host: Some((*host).into()), workers: workers / n, cards: Vec::new() })
            .collect(),
    };
    let admitted = before(words.number("for").unwrap_or(86_400));
    Running {
        name: name.into(),
        queue: queue.into(),
        priority: words.number("priority").unwrap_or(0) as i32,
        shape: shape(&words),
        pieces,
        min_workers: words.number("least").unwrap_or(i64::from(workers)) as u32,
        missing: None,
        submitted: admitted,
        admitted,
        checkpoint: words.number("seen").map(before),
        ends_by: words.number("ends").map(|seconds| before(-seconds)),
        restart_ms: 0,
        preemptible: !words.has("pinned"),
        restartable: !words.has("unrestartable"),
        critical: window(&words),
        leaving: words.has("leaving"),
        preempted_today: words.number("ended").unwrap_or(0) as u32,
        last_preempted: words.number("last").map(before),
    }
}

fn wait(name: &str, queue: &str, rest: &str) -> Pending {
    let words = Words::of(rest);
    let workers = words.number("workers").unwrap_or(1) as u32;
    Pending {
        name: name.into(),
        queue: queue.into(),
        priority: words.number("priority").unwrap_or(0) as i32,
        shape: shape(&words),
        workers,
        min_workers: words.number("least").unwrap_or(i64::from(workers)) as u32,
        submitted: before(words.number("since").unwrap_or(60)),
        preemptible: !words.has("pinned"),
        critical: window(&words),
        longest_ms: words.number("most").map(|seconds| seconds * 1_000),
        last_preempted: words.number("last").map(before),
    }
}
