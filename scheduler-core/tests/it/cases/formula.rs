//! Cases that ask for a figure and not for a plan: shares, budgets, least runs, caps, MIG, scores.

use std::collections::BTreeMap;

use cardhour_domain::{CardTime, Timestamp};
use cardhour_scheduler_core::disruption::{Amount, TaskBudget, tasks_to_withdraw};
use cardhour_scheduler_core::fullness::{Dimension, score_milli};
use cardhour_scheduler_core::lowered_quota::{reclaimable, smallest_first};
use cardhour_scheduler_core::mig::{Axis, Placement, Shape, State, fit_together};
use cardhour_scheduler_core::min_run::{least_run_ms, may_take};
use cardhour_scheduler_core::names::QueueName;
use cardhour_scheduler_core::placement::{Kind, TypicalMix, Yardstick};
use cardhour_scheduler_core::share::{Claim, divide};
use cardhour_scheduler_core::snapshot::{Host, HostState, Queue, Window};
use cardhour_scheduler_core::windows::{is_open_to, preferred};
use cardhour_scheduler_core::{Policy, Snapshot};
use serde_json::{Value, json};

use super::setup;

/// What differs, where the case asks for figures. `None`: it asks for a plan.
pub fn answer(case: &Value) -> Option<Vec<String>> {
    let Value::Object(expected) = &case["expected"] else { return None };
    let setup = &case["setup"];
    let asks = |key: &str| expected.contains_key(key);
    let said = if asks("shares") {
        shares(setup)
    } else if asks("may_preempt") || asks("allowed") || asks("min_runtime_s") {
        least_runs(case)
    } else if asks("evict_count") {
        withdrawals(setup)
    } else if asks("reclaimable") || asks("freed") {
        caps(setup)
    } else if !setup["policy"]["windowed_nodes"].is_null() {
        windows(case)
    } else if asks("card_score") {
        scores(case)
    } else if asks("fragment_milli") {
        fragments(case)
    } else if !setup["mig"].is_null() {
        slices(case)
    } else {
        return None;
    };
    Some(match said {
        Err(fault) => vec![fault],
        Ok(said) => expected
            .iter()
            .filter(|(key, value)| said.get(*key) != Some(value))
            .map(|(key, value)| format!("{key}: {value} expected, {} found", said.get(key).unwrap_or(&Value::Null)))
            .collect(),
    })
}

type Said = Result<BTreeMap<String, Value>, String>;

fn shares(setup: &Value) -> Said {
    let rows = setup::list(setup, "queues")?;
    let claims: Vec<Claim> = rows
        .iter()
        .map(|row| {
            Ok(Claim {
                deserved: whole(row, "deserved")?,
                weight: setup::scaled(&row["weight"], 1_000)? as u64,
                demand: whole(row, "request")?,
                max: row["max"].as_i64(),
                priority: row["priority"].as_i64().unwrap_or(0) as i32,
            })
        })
        .collect::<Result<_, String>>()?;
    let division = divide(whole(setup, "total")?, 1, &claims);
    let shares = rows
        .iter()
        .zip(division.shares)
        .map(|(row, share)| (row["id"].as_str().unwrap_or("?").to_owned(), json!(share)));
    Ok(BTreeMap::from([
        ("shares".to_owned(), Value::Object(shares.collect())),
        ("remaining".to_owned(), json!(division.left)),
    ]))
}

fn least_runs(case: &Value) -> Said {
    let setup = &case["setup"];
    let policy = Policy { min_run: setup::min_run(&setup["policy"]["min_runtime_s"])?, ..Policy::default() };
    let mut queues: Vec<QueueName> = policy.min_run.queues.keys().cloned().collect();
    let running = setup::list(setup, "running")?;
    let incoming = setup::list(case, "incoming")?;
    for name in running
        .iter()
        .map(|job| &job["queue"])
        .chain(incoming.iter().flat_map(|row| [&row["claimant"], &row["victim"]]))
    {
        queues.extend(name.as_str().map(QueueName::new));
    }
    let snapshot = tree_of(&queues);
    let mut said = BTreeMap::new();
    let job = |id: &str| running.iter().find(|job| job["id"] == id).ok_or_else(|| format!("no job {id}"));
    let may = |job: &Value, taken: u32| -> Result<bool, String> {
        let queue = QueueName::new(job["queue"].as_str().ok_or("no queue")?);
        let ran_ms = (whole(setup, "now_s")? - whole(job, "started_s")?) * 1_000;
        let least = least_run_ms(&snapshot, &policy, &queue, None).ok_or("no such queue")?;
        let workers = |key: &str| whole(job, key).map(|n| n as u32);
        Ok(may_take(ran_ms, least, workers("workers")?, workers("min_workers")?, taken))
    };
    let mut may_preempt = serde_json::Map::new();
    for job in &running {
        may_preempt
            .insert(job["id"].as_str().unwrap_or("?").to_owned(), json!(may(job, whole(job, "workers")? as u32)?));
    }
    said.insert("may_preempt".to_owned(), Value::Object(may_preempt));
    let (mut allowed, mut least) = (Vec::new(), Vec::new());
    for row in &incoming {
        if let Value::Object(takes) = &row["take_workers"] {
            let all = takes
                .iter()
                .map(|(id, n)| may(job(id)?, n.as_u64().unwrap_or(0) as u32))
                .collect::<Result<Vec<_>, _>>()?;
            allowed.push(json!(all.iter().all(|one| *one)));
        }
        if let (Some(claimant), Some(victim)) = (row["claimant"].as_str(), row["victim"].as_str()) {
            let ms = least_run_ms(&snapshot, &policy, &victim.into(), Some(&claimant.into())).ok_or("no such queue")?;
            least.push(json!(ms / 1_000));
        }
    }
    said.insert("allowed".to_owned(), Value::Array(allowed));
    said.insert("min_runtime_s".to_owned(), Value::Array(least));
    Ok(said)
}

/// A tree of names with slashes: `dev/team1` is under `dev`.
fn tree_of(names: &[QueueName]) -> Snapshot {
    let mut all: Vec<QueueName> = names.to_vec();
    all.extend(
        names.iter().filter_map(|name| name.as_str().rsplit_once('/')).map(|(parent, _)| QueueName::new(parent)),
    );
    all.sort();
    all.dedup();
    let queues = all
        .into_iter()
        .map(|name| Queue {
            parent: name
                .as_str()
                .rsplit_once('/')
                .map(|(parent, _)| QueueName::new(parent))
                .or_else(|| Some("all".into())),
            name,
            quota: BTreeMap::new(),
            weight_milli: 1_000,
            over_quota_priority: 0,
            created: None,
            tenant: None,
            rules: None,
            past_usage: CardTime::ZERO,
            band: None,
        })
        .chain([Queue {
            parent: None,
            name: "all".into(),
            quota: BTreeMap::new(),
            weight_milli: 1_000,
            over_quota_priority: 0,
            created: None,
            tenant: None,
            rules: None,
            past_usage: CardTime::ZERO,
            band: None,
        }])
        .collect();
    Snapshot {
        at: Timestamp::from_unix_s(1_700_000_000),
        queues,
        hosts: Vec::new(),
        capacity: BTreeMap::new(),
        off_peak: false,
        running: Vec::new(),
        pending: Vec::new(),
        reservations: Vec::new(),
    }
}

fn withdrawals(setup: &Value) -> Said {
    let job = &setup["running"][0];
    let (tasks, preemptible) = (whole(job, "tasks")? as u32, whole(job, "preemptible_tasks")? as u32);
    let amount = |told: &Value| -> Result<Amount, String> {
        let text = told.as_str().ok_or("not a text")?;
        Ok(match text.strip_suffix('%') {
            Some(percent) => Amount::PerMille(percent.parse::<u32>().map_err(|e| e.to_string())? * 10),
            None => Amount::Tasks(text.parse().map_err(|e: std::num::ParseIntError| e.to_string())?),
        })
    };
    let one = |policy: &Value| -> Result<Value, String> {
        let open = policy["window_open"].as_bool().or(setup["window_open"].as_bool()).unwrap_or(false);
        let budget = if policy["max_unavailable"].is_null() {
            TaskBudget::MinAvailable(amount(&policy["min_available"])?)
        } else {
            TaskBudget::MaxUnavailable(amount(&policy["max_unavailable"])?)
        };
        Ok(json!(tasks_to_withdraw(budget, tasks, preemptible, open)))
    };
    let count = match &setup["policy"] {
        Value::Array(policies) => Value::Array(policies.iter().map(one).collect::<Result<_, _>>()?),
        policy => one(policy)?,
    };
    Ok(BTreeMap::from([("evict_count".to_owned(), count)]))
}

fn caps(setup: &Value) -> Said {
    let mut said: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut say = |key: &str, value| said.entry(key.to_owned()).or_default().push(value);
    for row in setup::list(setup, "rows")? {
        if let Value::Object(jobs) = &row["jobs"] {
            let names: Vec<&String> = jobs.keys().collect();
            let sizes: Vec<i64> = jobs.values().map(|size| size.as_i64().unwrap_or(0)).collect();
            let chosen = smallest_first(whole(&row, "reclaim")?, &sizes);
            say("evict", json!(chosen.iter().map(|at| names[*at]).collect::<Vec<_>>()));
            say("freed", json!(chosen.iter().map(|at| sizes[*at]).sum::<i64>()));
        } else {
            say(
                "reclaimable",
                json!(reclaimable(whole(&row, "used")?, whole(&row, "max")?, row["parent_guaranteed"].as_i64())),
            );
        }
    }
    Ok(said.into_iter().map(|(key, values)| (key, Value::Array(values))).collect())
}

fn windows(case: &Value) -> Said {
    let setup = &case["setup"];
    let hosts: Vec<Host> = setup::list(setup, "nodes")?
        .iter()
        .map(|node| {
            let name = node["id"].as_str().unwrap_or("?");
            Host {
                name: name.into(),
                model: "gpu".into(),
                cards: 1,
                cpu_milli: None,
                memory_bytes: None,
                domains: BTreeMap::new(),
                state: HostState::Healthy,
                window: match setup["policy"]["windowed_nodes"][name].as_str() {
                    Some("open") => Some(Window::Open),
                    Some(_) => Some(Window::Closed),
                    None => None,
                },
            }
        })
        .collect();
    let (mut feasible, mut prefer) = (serde_json::Map::new(), serde_json::Map::new());
    for job in setup::list(case, "incoming")? {
        let accepts = job["accepts_revocation"].as_bool().unwrap_or(false);
        let name = job["id"].as_str().unwrap_or("?").to_owned();
        let open: Vec<&str> =
            hosts.iter().filter(|host| is_open_to(host, accepts)).map(|host| host.name.as_str()).collect();
        feasible.insert(name.clone(), json!(open));
        if accepts {
            let first: Vec<&str> = preferred(&hosts, accepts).into_iter().map(|name| name.as_str()).collect();
            prefer.insert(name, json!(first));
        }
    }
    Ok(BTreeMap::from([("feasible".to_owned(), Value::Object(feasible)), ("prefer".to_owned(), Value::Object(prefer))]))
}

fn scores(case: &Value) -> Said {
    let setup = &case["setup"];
    let job = &case["incoming"][0];
    let number = |of: &Value, key: &str| of[key].as_u64().ok_or_else(|| format!("no {key}"));
    let card = |row: &Value| {
        Ok::<u64, String>(score_milli(&[
            Dimension {
                used: number(row, "core_used")?,
                asked: number(job, "core")?,
                capacity: number(row, "core_cap")?,
            },
            Dimension { used: number(row, "mem_used")?, asked: number(job, "mem")?, capacity: number(row, "mem_cap")? },
        ]))
    };
    let host = |row: &Value| {
        Ok::<u64, String>(score_milli(&[Dimension {
            used: number(row, "used")?,
            asked: number(job, "cards")?,
            capacity: number(row, "cap")?,
        }]))
    };
    let named = |key: &str, score: &dyn Fn(&Value) -> Result<u64, String>| -> Result<Vec<(String, u64)>, String> {
        setup::list(setup, key)?
            .iter()
            .map(|row| Ok((row["id"].as_str().unwrap_or("?").to_owned(), score(row)?)))
            .collect()
    };
    let (cards, hosts) = (named("cards", &card)?, named("hosts", &host)?);
    let shown = |scores: &[(String, u64)]| {
        Value::Object(
            scores
                .iter()
                .map(|(name, milli)| {
                    let shown = if milli % 1_000 == 0 { json!(milli / 1_000) } else { json!(*milli as f64 / 1_000.0) };
                    (name.clone(), shown)
                })
                .collect(),
        )
    };
    let most = |scores: &[(String, u64)]| scores.iter().max_by_key(|(_, score)| *score).map(|(name, _)| name.clone());
    let least = |scores: &[(String, u64)]| scores.iter().min_by_key(|(_, score)| *score).map(|(name, _)| name.clone());
    Ok(BTreeMap::from([
        ("card_score".to_owned(), shown(&cards)),
        ("host_score".to_owned(), shown(&hosts)),
        ("binpack".to_owned(), json!([most(&cards), most(&hosts)])),
        ("spread".to_owned(), json!([least(&cards), least(&hosts)])),
    ]))
}

fn whole(of: &Value, key: &str) -> Result<i64, String> {
    of[key].as_i64().ok_or_else(|| format!("no whole number `{key}` in {of}"))
}

/// Card milli that a workload could not use, and the same weighted by how often it comes.
fn fragments(case: &Value) -> Said {
    let host = &case["setup"]["host"];
    let left: Vec<u32> =
        setup::list(host, "gpu_left_milli")?.iter().filter_map(|left| left.as_u64().map(|left| left as u32)).collect();
    let (mut fragments, mut expected) = (Vec::new(), Vec::new());
    for row in setup::list(case, "incoming")? {
        let workload = &row["workload"];
        let kind = Kind {
            cpu_milli: whole(workload, "cpu_milli")? as u64,
            card_milli: whole(workload, "gpu_milli")? as u32,
            cards: whole(workload, "cards")? as u32,
            models: Vec::new(),
        };
        let alone = Yardstick::new(&TypicalMix { kinds: vec![(kind, 1)], total: 1 }, None);
        let fragment = alone.unusable(whole(host, "cpu_left_milli")? as u64, &left);
        fragments.push(json!(fragment));
        expected.push(match &workload["popularity"] {
            Value::Null => Value::Null,
            popularity => json!(fragment as f64 * popularity.as_f64().ok_or("not a number")?),
        });
    }
    Ok(BTreeMap::from([
        ("fragment_milli".to_owned(), Value::Array(fragments)),
        ("expected_fragment".to_owned(), Value::Array(expected)),
    ]))
}

/// Whether instances fit on a card beside what is taken. The case says what is taken as starts and sizes on the axis of memory.
fn slices(case: &Value) -> Said {
    let shapes: Vec<(Shape, i64)> = case["setup"]["mig"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, row)| Ok((Shape::from_name(name).ok_or_else(|| format!("no shape {name}"))?, whole(row, "size")?)))
        .collect::<Result<_, String>>()?;
    let mut feasible = Vec::new();
    for row in setup::list(case, "incoming")? {
        let mut taken = Vec::new();
        for place in setup::list(&row, "occupied")? {
            let (start, size) = (place[0].as_i64().ok_or("no start")?, place[1].as_i64().ok_or("no size")?);
            let shape = shapes.iter().find(|(_, of)| *of == size).ok_or_else(|| format!("no shape of {size}"))?.0;
            taken.push(Placement { shape, start: start as u8 });
        }
        let state = State::of(Axis::Eight, taken).map_err(|refusal| format!("{refusal:?}"))?;
        let wanted: Vec<Shape> = setup::list(&row, "want")?
            .iter()
            .map(|name| name.as_str().and_then(Shape::from_name).ok_or_else(|| format!("no shape {name}")))
            .collect::<Result<_, _>>()?;
        feasible.push(json!(fit_together(state, &wanted).is_some()));
    }
    Ok(BTreeMap::from([("feasible".to_owned(), Value::Array(feasible))]))
}
