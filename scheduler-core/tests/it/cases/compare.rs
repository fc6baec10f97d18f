//! What a plan says against what a case expects.

use std::collections::{BTreeMap, BTreeSet};

use cardhour_scheduler_core::names::JobName;
use cardhour_scheduler_core::plan::{Action, Reason, Step, Why};
use cardhour_scheduler_core::snapshot::Piece;
use cardhour_scheduler_core::{Plan, Snapshot, audit, decide};
use serde_json::Value;

use super::setup::Read;
use crate::world::{Gone, carry_out};

/// What differs; empty when nothing does.
pub fn compare(case: &Value, read: &Read) -> Vec<String> {
    let plan = decide(&read.snapshot, &read.policy);
    let Value::Object(expected) = &case["expected"] else { return vec!["nothing is expected".into()] };
    let mut told: Vec<String> =
        audit(&read.snapshot, &read.policy, &plan).iter().map(|fault| format!("the auditor finds {fault:?}")).collect();
    let told_plan = Told { plan: &plan, snapshot: &read.snapshot, ties: names(&case["expected"]["tie_group"]) };
    for (key, value) in expected {
        match key.as_str() {
            "decision" => told_plan.decisions(value, &mut told),
            "preempt" => told_plan.evictions(value, &mut told),
            "preempt_count" => same("preempt_count", value.as_u64(), Some(told_plan.evicted().len() as u64), &mut told),
            "keep" => told_plan.kept(value, &mut told),
            "reason" => told_plan.reason(value, &mut told),
            "waits_for" => same("waits_for", names(value), told_plan.waits_for(), &mut told),
            "size" => same("size", numbers(value), told_plan.sizes(value), &mut told),
            "place" => told_plan.places(value, &mut told),
            "move" => told_plan.moves(value, &mut told),
            "move_count" => same("move_count", value.as_u64(), Some(told_plan.moved().len() as u64), &mut told),
            "move_gpu_max" => told_plan.moved_at_most(value, &mut told),
            "shrink" => same("shrink", numbers(value), told_plan.shrunk(), &mut told),
            "explain" => told_plan.explains(value, &mut told),
            "eligible_victims" => same("eligible_victims", names(value), told_plan.considered(), &mut told),
            "protected" => {
                for job in names(value).intersection(&told_plan.considered()) {
                    told.push(format!("{job} is protected and was considered"));
                }
            }
            "next_round" => next_round(value, read, &plan, &mut told),
            "t0" => {
                if let Value::Object(fields) = value {
                    for (key, value) in fields {
                        match key.as_str() {
                            "preempt" => told_plan.evictions(value, &mut told),
                            other => told.push(format!("nobody compares `t0.{other}`")),
                        }
                    }
                }
            }
            "t1" => staged(case, value, read, &plan, &mut told),
            // The peer's own choice where ours is free, and remarks.
            "tie_group" | "note" | "peer_moves" | "peer_place" => {}
            other => told.push(format!("nobody compares `{other}`")),
        }
    }
    let says = |key: &str| expected.contains_key(key);
    if says("decision") && !says("shrink") && !told_plan.shrunk().is_empty() {
        told.push(format!("shrinks {:?}, and nothing says so", told_plan.shrunk()));
    }
    if says("decision") && !says("move") && !says("move_count") && !told_plan.moved().is_empty() {
        told.push(format!("moves {:?}, and nothing says so", told_plan.moved().keys()));
    }
    if !told.is_empty() {
        told.extend(plan.steps.iter().map(|step| format!("  plan: {}", step.words())));
    }
    told
}

struct Told<'a> {
    plan: &'a Plan,
    snapshot: &'a Snapshot,
    ties: BTreeSet<String>,
}

impl Told<'_> {
    fn step_of(&self, job: &str) -> Option<&Step> {
        self.plan.steps.iter().find(|step| step.job.as_str() == job)
    }

    /// The decision about a job, in the words of the cases.
    fn decision(&self, job: &str) -> &'static str {
        let Some(step) = self.step_of(job) else { return "nothing" };
        let made_for_it =
            |is: fn(&Action, &JobName) -> bool| self.plan.steps.iter().any(|other| is(&other.action, &step.job));
        match (&step.action, &step.reason) {
            (Action::Admit(_), _) => "admit",
            (Action::Reserve { .. }, _) => {
                if made_for_it(
                    |action, job| matches!(action, Action::Evict { for_job: Some(other) } | Action::Shrink { for_job: other, .. } if other == job),
                ) {
                    "admit_after_preemption"
                } else if made_for_it(
                    |action, job| matches!(action, Action::Move { for_job: Some(other), .. } if other == job),
                ) {
                    "admit_after_move"
                } else {
                    "wait_for_ongoing_eviction"
                }
            }
            (Action::Move { .. }, _) => "replace_failed_workers",
            (Action::Evict { .. } | Action::Requeue, _) => "evict_and_requeue",
            (Action::Shrink { .. }, _) => "shrink",
            (Action::Wait, Reason::Waits(Why::BehindHead { .. })) => "not_considered_this_round",
            (Action::Wait, Reason::Waits(Why::ReplacementPending)) => "replacement_pending",
            (Action::Wait, _) => "pending",
        }
    }

    fn decisions(&self, expected: &Value, told: &mut Vec<String>) {
        for (job, decision) in expected.as_object().into_iter().flatten() {
            same(&format!("decision of {job}"), decision.as_str(), Some(self.decision(job)), told);
        }
    }

    fn evicted(&self) -> BTreeSet<String> {
        self.plan
            .steps
            .iter()
            .filter(|step| matches!(step.action, Action::Evict { .. }))
            .map(|step| step.job.to_string())
            .collect()
    }

    /// Any choice of the right size out of the tie group will do.
    fn evictions(&self, expected: &Value, told: &mut Vec<String>) {
        let (expected, evicted) = (names(expected), self.evicted());
        let firm = |of: &BTreeSet<String>| of.difference(&self.ties).cloned().collect::<BTreeSet<_>>();
        if firm(&expected) != firm(&evicted) || expected.len() != evicted.len() {
            told.push(format!("preempt: {expected:?} expected, {evicted:?} decided"));
        }
    }

    fn kept(&self, expected: &Value, told: &mut Vec<String>) {
        for job in names(expected).intersection(&self.evicted()) {
            if !self.ties.contains(job) {
                told.push(format!("{job} had to be kept"));
            }
        }
    }

    fn reason(&self, expected: &Value, told: &mut Vec<String>) {
        let said: Vec<String> = self
            .plan
            .steps
            .iter()
            .filter(|step| !matches!(step.action, Action::Wait))
            .map(|step| match &step.reason {
                Reason::ReclaimInPool => "reclaim_in_pool".to_owned(),
                Reason::ReclaimWhileBorrowing => "reclaim_while_borrowing".to_owned(),
                Reason::FairShare => "fair_share".to_owned(),
                Reason::InQueue => "in_queue".to_owned(),
                other => other.to_string(),
            })
            .collect();
        if !said.iter().any(|said| Some(said.as_str()) == expected.as_str()) {
            told.push(format!("reason: {expected} expected, {said:?} said"));
        }
    }

    fn waits_for(&self) -> BTreeSet<String> {
        self.plan
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::Reserve { waits_for, .. } => Some(waits_for.iter().map(JobName::to_string)),
                _ => None,
            })
            .flatten()
            .collect()
    }

    fn sizes(&self, of: &Value) -> BTreeMap<String, u64> {
        let mut sizes = BTreeMap::new();
        for job in of.as_object().into_iter().flatten().map(|(job, _)| job) {
            if let Some(Action::Admit(seat) | Action::Reserve { seat, .. }) = self.step_of(job).map(|step| &step.action)
            {
                sizes.insert(job.clone(), u64::from(seat.workers));
            }
        }
        sizes
    }

    fn places(&self, expected: &Value, told: &mut Vec<String>) {
        for (job, place) in expected.as_object().into_iter().flatten() {
            let Some(Action::Admit(seat) | Action::Reserve { seat, .. }) = self.step_of(job).map(|step| &step.action)
            else {
                told.push(format!("{job} has no place"));
                continue;
            };
            let by_host = by_host(&seat.pieces);
            let fits = match place {
                Value::String(host) => by_host.keys().eq([host]),
                place => numbers(place) == by_host,
            };
            if !fits {
                told.push(format!("place of {job}: {place} expected, {by_host:?} decided"));
            }
        }
    }

    fn moved(&self) -> BTreeMap<String, (&[Piece], &[Piece])> {
        self.plan
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::Move { from, to, .. } => Some((step.job.to_string(), (from.as_slice(), to.as_slice()))),
                _ => None,
            })
            .collect()
    }

    fn moves(&self, expected: &Value, told: &mut Vec<String>) {
        let moved = self.moved();
        let Value::Object(expected) = expected else { return };
        same("moved jobs", expected.keys().cloned().collect::<BTreeSet<_>>(), moved.keys().cloned().collect(), told);
        for (job, how) in expected {
            let Some((from, to)) = moved.get(job) else { continue };
            for (key, value) in how.as_object().into_iter().flatten() {
                let said = match key.as_str() {
                    "from" => value.as_str().is_some_and(|host| by_host(from).contains_key(host)),
                    "to" => value.as_str().is_some_and(|host| by_host(to).contains_key(host)),
                    "workers" => value.as_u64() == Some(by_host(to).values().sum()),
                    _ => false,
                };
                if !said {
                    told.push(format!(
                        "move of {job}: {key} {value} expected, from {:?} to {:?}",
                        by_host(from),
                        by_host(to)
                    ));
                }
            }
        }
    }

    fn moved_at_most(&self, expected: &Value, told: &mut Vec<String>) {
        let workers: u64 =
            self.moved().values().flat_map(|(_, to)| to.iter()).map(|piece| u64::from(piece.workers)).sum();
        if expected.as_u64().is_none_or(|most| workers > most) {
            told.push(format!("at most {expected} are to move, {workers} do"));
        }
    }

    fn shrunk(&self) -> BTreeMap<String, u64> {
        self.plan
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                Action::Shrink { workers, .. } => Some((step.job.to_string(), u64::from(*workers))),
                _ => None,
            })
            .collect()
    }

    /// The words for the owner name the same level and the same numbers.
    fn explains(&self, expected: &Value, told: &mut Vec<String>) {
        let expected = expected.as_str().unwrap_or_default();
        let telling: Vec<&str> = expected
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| {
                word.chars().all(|c| c.is_ascii_digit()) && !word.is_empty()
                    || ["rack", "zone", "host", "node"].contains(word)
            })
            .collect();
        let said: Vec<String> = self
            .plan
            .steps
            .iter()
            .filter(|step| self.snapshot.pending.iter().any(|pending| pending.name == step.job))
            .map(Step::words)
            .collect();
        let fits = |said: &String| {
            let words: Vec<&str> = said.split(|c: char| !c.is_alphanumeric()).collect();
            telling.iter().all(|word| words.contains(word))
        };
        if !said.iter().any(fits) {
            told.push(format!("{expected:?} is to be explained, {said:?} is said"));
        }
    }

    fn considered(&self) -> BTreeSet<String> {
        self.plan.steps.iter().flat_map(|step| step.evidence.considered.iter().map(JobName::to_string)).collect()
    }
}

/// The round after all was carried out.
fn next_round(expected: &Value, read: &Read, plan: &Plan, told: &mut Vec<String>) {
    let after = carry_out(&read.snapshot, plan, 60_000, &Gone::All);
    let next = decide(&after, &read.policy);
    for (job, state) in expected.as_object().into_iter().flatten() {
        let runs = after.running.iter().any(|run| run.name.as_str() == job)
            && !next.steps.iter().any(|step| step.job.as_str() == job && matches!(step.action, Action::Evict { .. }));
        let starts = next.steps.iter().any(|step| step.job.as_str() == job && matches!(step.action, Action::Admit(_)));
        let is = if runs || starts { "running" } else { "pending" };
        same(&format!("{job} in the next round"), state.as_str(), Some(is), told);
    }
    if !told.is_empty() {
        told.extend(next.steps.iter().map(|step| format!("  next: {}", step.words())));
    }
}

/// The round in which some victims are gone and others still leave, as the case's steps tell it.
fn staged(case: &Value, expected: &Value, read: &Read, plan: &Plan, told: &mut Vec<String>) {
    let story =
        case["setup"]["steps"].as_array().and_then(|steps| steps.last()).and_then(Value::as_str).unwrap_or_default();
    let gone: Vec<JobName> = story
        .split([',', ':'])
        .map(str::trim)
        .filter(|clause| clause.contains(" is gone"))
        .filter_map(|clause| clause.split(' ').next())
        .map(JobName::new)
        .collect();
    let after = carry_out(&read.snapshot, plan, 60_000, &Gone::Only(&gone));
    let next = decide(&after, &read.policy);
    let evictions = next.steps.iter().filter(|step| matches!(step.action, Action::Evict { .. })).count() as u64;
    let admitted: BTreeSet<String> = next
        .steps
        .iter()
        .filter(|step| matches!(step.action, Action::Admit(_)))
        .map(|step| step.job.to_string())
        .collect();
    let held: BTreeSet<String> = next
        .steps
        .iter()
        .filter(|step| matches!(step.action, Action::Reserve { .. }))
        .map(|step| step.job.to_string())
        .collect();
    for (key, value) in expected.as_object().into_iter().flatten() {
        match key.as_str() {
            "readmit" => same("readmitted", names(value), admitted.clone(), told),
            "new_evictions" => same("new evictions", value.as_u64(), Some(evictions), told),
            "hold_idle_gpus_for" => {
                same("idle cards are held for", value.as_str().map(str::to_owned), held.iter().next().cloned(), told)
            }
            other => told.push(format!("nobody compares `t1.{other}`")),
        }
    }
    if !told.is_empty() {
        told.extend(next.steps.iter().map(|step| format!("  t1: {}", step.words())));
    }
}

fn by_host(pieces: &[Piece]) -> BTreeMap<String, u64> {
    let mut by = BTreeMap::new();
    for piece in pieces {
        *by.entry(piece.host.as_ref().map_or_else(String::new, ToString::to_string)).or_default() +=
            u64::from(piece.workers);
    }
    by
}

fn names(of: &Value) -> BTreeSet<String> {
    of.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn numbers(of: &Value) -> BTreeMap<String, u64> {
    of.as_object().into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_u64()?))).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, decided: T, told: &mut Vec<String>) {
    if expected != decided {
        told.push(format!("{what}: {expected:?} expected, {decided:?} decided"));
    }
}
