//! A case's setup as a snapshot and a policy.

use std::collections::BTreeMap;

use cardhour_domain::{CardShare, CardTime, Timestamp};
use cardhour_scheduler_core::names::{Model, QueueName};
use cardhour_scheduler_core::policy::{
    Fairness, MinRun, MinRunTable, NodeFailure, Order, QueueRules, Reclaim, ShareRules, VictimCost, WhileBorrowing,
    WithinQueue,
};
use cardhour_scheduler_core::snapshot::{
    Host, HostState, Level, Missing, Pending, Piece, Queue, Quota, Resource, Running, Shape, Window,
};
use cardhour_scheduler_core::{Policy, Snapshot};
use serde_json::Value;

/// A case, read.
pub struct Read {
    pub snapshot: Snapshot,
    pub policy: Policy,
}

type Result<T> = std::result::Result<T, String>;

/// Reads it. Errors: what can't be understood; nothing is passed over.
pub fn read(case: &Value) -> Result<Read> {
    let setup = &case["setup"];
    known(
        setup,
        &[
            "policy",
            "tree",
            "running",
            "nodes",
            "past_usage",
            "queue_order",
            "now_s",
            "cluster_gpu",
            "usage",
            "facts",
            "steps",
        ],
    )?;
    let policy = policy(case)?;
    let hosts = list(setup, "nodes")?.iter().map(|node| host(node, &setup["policy"])).collect::<Result<Vec<_>>>()?;
    let running = list(setup, "running")?;
    let incoming = list(case, "incoming")?;
    let latest = running
        .iter()
        .chain(&incoming)
        .flat_map(|job| ["admitted_s", "started_s", "created_s", "checkpoint_s"].map(|key| job[key].as_i64()))
        .flatten()
        .max()
        .unwrap_or(0);
    let at = seconds(setup["now_s"].as_i64().unwrap_or(latest.max(0)));
    let cards: i64 = hosts.iter().map(|host| i64::from(host.cards) * CardShare::PARTS_PER_CARD).sum();
    let tree = list(setup, "tree")?;
    let queues = tree.iter().map(|node| queue(node, setup, cards)).collect::<Result<Vec<_>>>()?;
    let mut running = running.iter().map(|job| run(job, at)).collect::<Result<Vec<_>>>()?;
    let mut full = 0;
    if let Value::Object(usage) = &setup["usage"] {
        for (queue, cards) in usage {
            let cards = cards.as_i64().ok_or("usage isn't whole cards")?;
            full += cards * CardShare::PARTS_PER_CARD;
            for number in 0..cards {
                running.push(one_card(queue, number, at));
            }
        }
    }
    let mut capacity = BTreeMap::new();
    if policy.fairness.counts_hosts() && hosts.is_empty() {
        let roots = || {
            queues
                .iter()
                .filter(|queue| queue.parent.is_none())
                .filter_map(|queue| queue.quota.get(&gpu()))
                .map(|quota| quota.nominal)
                .sum()
        };
        let there = match setup["cluster_gpu"].as_i64() {
            Some(cards) => cards * CardShare::PARTS_PER_CARD,
            // Where a case gives use alone, the pool is as large as what is in use.
            None if full > 0 => full,
            None => roots(),
        };
        capacity.insert(gpu(), there);
    }
    let pending = incoming.iter().enumerate().map(|(number, job)| ask(job, number, at)).collect::<Result<Vec<_>>>()?;
    Ok(Read {
        snapshot: Snapshot { at, queues, hosts, capacity, off_peak: false, running, pending, reservations: Vec::new() },
        policy,
    })
}

/// What a case's policy block says, above what peers have: no budget, no least run, no cool-down, and no eye for checkpoints.
fn policy(case: &Value) -> Result<Policy> {
    let told = &case["setup"]["policy"];
    known(
        told,
        &[
            "fairness",
            "fs_rules",
            "within_queue",
            "reclaim",
            "preempt_while_borrowing",
            "terms",
            "non_preemptible_above_nominal",
            "node_failure",
            "min_runtime_s",
            "windowed_nodes",
        ],
    )?;
    let by_switch = case["adopt"] == "policy";
    let tenants = list(&case["setup"], "tree")?.iter().any(|node| node["tenant"].is_string());
    let sees_checkpoints = list(&case["setup"], "running")?.iter().any(|job| !job["checkpoint_s"].is_null());
    Ok(Policy {
        fairness: fairness(told)?,
        rules: rules(told, QueueRules::default())?,
        order: match case["setup"]["queue_order"].as_str() {
            None => Order::SkipBlocked,
            Some("strict_head_in_same_round") => Order::StrictHead,
            Some(other) => return Err(format!("queue_order {other} isn't known")),
        },
        victim_cost: if sees_checkpoints { VictimCost::CardTimeLost } else { VictimCost::Age },
        lends_to_unpreemptible: told["non_preemptible_above_nominal"].as_bool().unwrap_or(false),
        disruption_per_mille: None,
        preemptions_a_day: None,
        min_run: min_run(&told["min_runtime_s"])?,
        cool_down_ms: 0,
        node_failure: match told["node_failure"].as_str() {
            None | Some("fail_fast") => NodeFailure::FailFast,
            Some("keep_trying") => NodeFailure::KeepTrying,
            Some(other) => return Err(format!("node_failure {other} isn't known")),
        },
        elastic_ends_others_to_grow: by_switch,
        tenants_share_cards: by_switch && !tenants,
        ..Policy::default()
    })
}

fn fairness(told: &Value) -> Result<Fairness> {
    let rules = list(told, "fs_rules")?;
    let rule = |name: &str| rules.is_empty() || rules.iter().any(|rule| rule == name);
    Ok(match told["fairness"].as_str() {
        Some("none") => Fairness::None,
        Some("borrow_share") => Fairness::BorrowShare(ShareRules {
            final_at_most: rule("final_share_le"),
            initial_less: rule("initial_share_lt"),
        }),
        None | Some("deserved_share") => Fairness::DeservedShare,
        Some("deserved_cap") => Fairness::DeservedCap,
        Some("guaranteed") => Fairness::Guaranteed,
        Some("usage_history") => Fairness::PastUsage,
        Some(other) => return Err(format!("fairness {other} isn't known")),
    })
}

fn rules(told: &Value, common: QueueRules) -> Result<QueueRules> {
    Ok(QueueRules {
        within_queue: match told["within_queue"].as_str() {
            None => common.within_queue,
            Some("never") => WithinQueue::Never,
            Some("lower_priority") => WithinQueue::LowerPriority,
            Some("lower_or_newer_equal") => WithinQueue::LowerOrNewerEqual,
            Some(other) => return Err(format!("within_queue {other} isn't known")),
        },
        reclaim: match told["reclaim"].as_str() {
            None => common.reclaim,
            Some("never") => Reclaim::Never,
            Some("lower_priority") => Reclaim::LowerPriority,
            Some("any") => Reclaim::Any,
            Some(other) => return Err(format!("reclaim {other} isn't known")),
        },
        while_borrowing: match &told["preempt_while_borrowing"] {
            Value::Null if told.get("preempt_while_borrowing").is_some() => None,
            Value::Null => common.while_borrowing,
            block => {
                known(block, &["only_lower_priority", "victim_priority_max", "keep_victim_queue_at_nominal"])?;
                Some(WhileBorrowing {
                    victim_priority_max: block["victim_priority_max"].as_i64().map(|most| most as i32),
                    keep_victim_queue_at_nominal: block["keep_victim_queue_at_nominal"].as_bool().unwrap_or(false),
                })
            }
        },
    })
}

/// The table of least runs: `default`, and by queue.
pub fn min_run(told: &Value) -> Result<MinRunTable> {
    let mut table =
        MinRunTable { default: MinRun { preempt_ms: Some(0), reclaim_ms: Some(0) }, queues: BTreeMap::new() };
    let Value::Object(rows) = told else { return Ok(table) };
    for (queue, row) in rows {
        known(row, &["preempt", "reclaim"])?;
        let ms = |key: &str| row[key].as_i64().map(|s| s * 1_000);
        let least = MinRun { preempt_ms: ms("preempt"), reclaim_ms: ms("reclaim") };
        if queue == "default" {
            table.default = least;
        } else {
            table.queues.insert(QueueName::new(queue), least);
        }
    }
    Ok(table)
}

fn queue(node: &Value, setup: &Value, cluster: i64) -> Result<Queue> {
    known(
        node,
        &[
            "id",
            "parent",
            "nominal",
            "borrow_limit",
            "lend_limit",
            "max",
            "weight",
            "policy",
            "kind",
            "tenant",
            "priority",
            "created_s",
        ],
    )?;
    let name = word(node, "id")?;
    let common = rules(&setup["policy"], QueueRules::default())?;
    let mut quota: BTreeMap<Resource, Quota> = BTreeMap::new();
    for (resource, nominal) in amounts(&node["nominal"], cluster)? {
        quota.insert(resource, Quota { nominal, ..Quota::default() });
    }
    for (key, set) in [
        ("borrow_limit", (|quota: &mut Quota, limit| quota.borrow_limit = Some(limit)) as fn(&mut Quota, i64)),
        ("lend_limit", |quota, limit| quota.lend_limit = Some(limit)),
        ("max", |quota, limit| quota.max = Some(limit)),
    ] {
        for (resource, limit) in amounts(&node[key], cluster)? {
            set(quota.entry(resource).or_default(), limit);
        }
    }
    let past = match &setup["past_usage"][name] {
        Value::Null => CardTime::ZERO,
        hours => CardTime::from_part_ms(i128::from(parts(hours)?) * 3_600_000),
    };
    Ok(Queue {
        name: QueueName::new(name),
        parent: node["parent"].as_str().map(QueueName::new),
        quota,
        weight_milli: if node["weight"].is_null() { 1_000 } else { scaled(&node["weight"], 1_000)? as u64 },
        over_quota_priority: node["priority"].as_i64().unwrap_or(0) as i32,
        created: node["created_s"].as_i64().map(seconds),
        tenant: node["tenant"].as_str().map(Into::into),
        rules: if node["policy"].is_object() { Some(rules(&node["policy"], common)?) } else { None },
        past_usage: past,
        band: None,
    })
}

/// A number of cards, the whole cluster, or a number by resource.
fn amounts(told: &Value, cluster: i64) -> Result<Vec<(Resource, i64)>> {
    match told {
        Value::Null => Ok(Vec::new()),
        Value::String(text) if text == "cluster" => Ok(vec![(gpu(), cluster)]),
        Value::Object(by_resource) => by_resource
            .iter()
            .filter(|(_, amount)| !amount.is_null())
            .map(|(resource, amount)| match resource.as_str() {
                "cpu" => Ok((Resource::Cpu, scaled(amount, 1_000)?)),
                "mem" => Ok((Resource::Memory, scaled(amount, 1)?)),
                model => Ok((Resource::Cards(Model::new(model)), parts(amount)?)),
            })
            .collect(),
        number => Ok(vec![(gpu(), parts(number)?)]),
    }
}

fn host(node: &Value, policy: &Value) -> Result<Host> {
    known(node, &["id", "gpu", "cpu", "mem", "rack", "zone", "block", "state", "model"])?;
    let name = word(node, "id")?;
    let mut domains = BTreeMap::new();
    for (key, level) in [("zone", Level::Zone), ("block", Level::Block), ("rack", Level::Rack)] {
        if let Some(domain) = node[key].as_str() {
            domains.insert(level, domain.to_owned());
        }
    }
    if let Some((block, _)) = node["rack"].as_str().and_then(|rack| rack.split_once('/')) {
        domains.entry(Level::Block).or_insert_with(|| block.to_owned());
    }
    Ok(Host {
        name: name.into(),
        model: node["model"].as_str().unwrap_or("gpu").into(),
        cards: node["gpu"].as_u64().unwrap_or(0) as u32,
        cpu_milli: if node["cpu"].is_null() { None } else { Some(scaled(&node["cpu"], 1_000)?) },
        memory_bytes: if node["mem"].is_null() { None } else { Some(scaled(&node["mem"], 1)?) },
        domains,
        state: match node["state"].as_str() {
            None | Some("healthy" | "ready") => HostState::Healthy,
            Some("draining") => HostState::Draining,
            Some("failed") => HostState::Failed,
            Some(other) => return Err(format!("state {other} of a host isn't known")),
        },
        window: match policy["windowed_nodes"][name].as_str() {
            None => None,
            Some("open") => Some(Window::Open),
            Some("closed") => Some(Window::Closed),
            Some(other) => return Err(format!("window {other} isn't known")),
        },
    })
}

fn shape(job: &Value) -> Result<Shape> {
    let level = |told: &Value| {
        Ok(match told.as_str() {
            None => None,
            Some("node" | "host") => Some(Level::Host),
            Some("rack") => Some(Level::Rack),
            Some("block") => Some(Level::Block),
            Some("zone") => Some(Level::Zone),
            Some(other) => return Err(format!("level {other} isn't known")),
        })
    };
    known(&job["topology"], &["prefer", "require"])?;
    let mut same = None;
    for told in [&job["same"], &job["require_same"], &job["topology"]["require"]] {
        same = same.or(level(told)?);
    }
    let each = if job["gpu_per_worker"].is_null() { &job["gpu"] } else { &job["gpu_per_worker"] };
    let amount = |told: &Value, unit| if told.is_null() { Ok(0) } else { scaled(told, unit) };
    Ok(Shape {
        models: if each.is_null() { Vec::new() } else { vec![job["model"].as_str().unwrap_or("gpu").into()] },
        cards: CardShare::from_parts(if each.is_null() { 0 } else { parts(each)? }),
        cpu_milli: amount(&job["cpu"], 1_000)?,
        memory_bytes: amount(&job["mem"], 1)?,
        same,
        prefer: level(&job["topology"]["prefer"])?,
        spread: false,
        accepts_revocation: job["accepts_revocation"].as_bool().unwrap_or(false),
    })
}

fn run(job: &Value, at: Timestamp) -> Result<Running> {
    known(
        job,
        &[
            "id",
            "queue",
            "gpu",
            "cpu",
            "mem",
            "priority",
            "admitted_s",
            "started_s",
            "created_s",
            "state",
            "node",
            "topology",
            "gpu_per_worker",
            "workers_on",
            "workers",
            "min_workers",
            "missing_workers",
            "preemptible",
            "shared_card",
            "model",
            "same",
            "require_same",
            "checkpoint_s",
            "accepts_revocation",
        ],
    )?;
    let missing = job["missing_workers"].as_u64().unwrap_or(0) as u32;
    let pieces: Vec<Piece> = match &job["workers_on"] {
        Value::Object(on) => on
            .iter()
            .map(|(host, workers)| Piece {
                host: Some(host.as_str().into()),
                workers: workers.as_u64().unwrap_or(0) as u32,
                cards: Vec::new(),
            })
            .collect(),
        _ => vec![Piece {
            host: job["node"].as_str().map(Into::into),
            workers: job["workers"].as_u64().unwrap_or(1) as u32 - missing,
            cards: job["shared_card"].as_u64().map(|card| card as u32).into_iter().collect(),
        }],
    };
    let there: u32 = pieces.iter().map(|piece| piece.workers).sum();
    let admitted = job["admitted_s"].as_i64().or(job["started_s"].as_i64()).map_or(at, seconds);
    Ok(Running {
        name: word(job, "id")?.into(),
        queue: word(job, "queue")?.into(),
        priority: job["priority"].as_i64().unwrap_or(0) as i32,
        shape: shape(job)?,
        pieces,
        min_workers: job["min_workers"].as_u64().map_or(there + missing, |least| least as u32),
        missing: (missing > 0).then_some(Missing { workers: missing, since: None }),
        submitted: job["created_s"].as_i64().map_or(admitted, seconds),
        admitted,
        checkpoint: job["checkpoint_s"].as_i64().map(seconds),
        ends_by: None,
        restart_ms: 0,
        preemptible: job["preemptible"].as_bool().unwrap_or(true),
        restartable: true,
        critical: None,
        leaving: match job["state"].as_str() {
            None | Some("running") => false,
            Some("evicting") => true,
            Some(other) => return Err(format!("state {other} of a job isn't known")),
        },
        preempted_today: 0,
        last_preempted: None,
    })
}

/// A job of one card, where a case says only how much a queue uses.
fn one_card(queue: &str, number: i64, at: Timestamp) -> Running {
    let job = serde_json::json!({ "id": format!("{queue}-{number}"), "queue": queue, "gpu": 1 });
    run(&job, at).expect("a job of one card")
}

fn ask(job: &Value, number: usize, at: Timestamp) -> Result<Pending> {
    known(
        job,
        &[
            "id",
            "queue",
            "gpu",
            "cpu",
            "mem",
            "priority",
            "created_s",
            "workers",
            "min_workers",
            "gpu_per_worker",
            "same",
            "require_same",
            "topology",
            "preemptible",
            "accepts_revocation",
            "model",
        ],
    )?;
    let workers = job["workers"].as_u64().unwrap_or(1) as u32;
    // Those who come at the same moment come in the order of the list.
    let submitted = job["created_s"].as_i64().map_or(at, seconds).checked_add_ms(number as i64).ok_or("too late")?;
    Ok(Pending {
        name: word(job, "id")?.into(),
        queue: word(job, "queue")?.into(),
        priority: job["priority"].as_i64().unwrap_or(0) as i32,
        shape: shape(job)?,
        workers,
        min_workers: job["min_workers"].as_u64().map_or(workers, |least| least as u32),
        submitted,
        preemptible: job["preemptible"].as_bool().unwrap_or(true),
        critical: None,
        longest_ms: None,
        last_preempted: None,
    })
}

/// Cards as parts: `0.7` is 12,612,600.
pub fn parts(told: &Value) -> Result<i64> {
    scaled(told, CardShare::PARTS_PER_CARD)
}

/// A decimal number times `unit`, exactly.
pub fn scaled(told: &Value, unit: i64) -> Result<i64> {
    let Value::Number(number) = told else { return Err(format!("{told} isn't a number")) };
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{fraction}").parse::<i128>().map_err(|_| format!("{told} isn't a plain number"))?;
    let scale = 10i128.pow(fraction.len() as u32);
    let value = digits * i128::from(unit);
    if value % scale != 0 {
        return Err(format!("{told} isn't a whole number of units"));
    }
    i64::try_from(value / scale).map_err(|_| format!("{told} is too large"))
}

/// A list that may be left out.
pub fn list(of: &Value, key: &str) -> Result<Vec<Value>> {
    match &of[key] {
        Value::Null => Ok(Vec::new()),
        Value::Array(rows) => Ok(rows.clone()),
        other => Err(format!("{key} isn't a list: {other}")),
    }
}

fn known(of: &Value, keys: &[&str]) -> Result<()> {
    let Value::Object(fields) = of else { return Ok(()) };
    match fields.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("nobody reads `{key}`")),
        None => Ok(()),
    }
}

fn word<'a>(of: &'a Value, key: &str) -> Result<&'a str> {
    of[key].as_str().ok_or_else(|| format!("no `{key}` in {of}"))
}

fn seconds(s: i64) -> Timestamp {
    // The cases count from an arbitrary moment, some of them before it.
    Timestamp::from_unix_s(1_700_000_000 + s)
}

fn gpu() -> Resource {
    Resource::Cards("gpu".into())
}
