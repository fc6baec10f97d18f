//! What holds of every plan, whatever the pool.

use cardhour_scheduler_core::names::JobName;
use cardhour_scheduler_core::plan::{Action, Plan};
use cardhour_scheduler_core::{audit, decide};

use crate::draw::{Chance, pool};
use crate::told::pool_in_words;
use crate::world::{Gone, carry_out};

/// The seed in `SIM_SEED`, to replay a failure; else these, `SIM_TIMES` as many.
fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match number("SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..count * number("SIM_TIMES").unwrap_or(1)).collect(),
    }
}

fn words(plan: &Plan) -> String {
    plan.steps.iter().map(|step| format!("  {}\n", step.words())).collect()
}

#[test]
fn every_plan_passes_its_audit() {
    let (mut evictions, mut moves, mut shrinks) = (0, 0, 0);
    for seed in seeds(4_000) {
        let (snapshot, policy) = pool(seed);
        let plan = decide(&snapshot, &policy);
        let faults = audit(&snapshot, &policy, &plan);
        assert!(
            faults.is_empty(),
            "SIM_SEED={seed}\n{faults:?}\n{}{}",
            pool_in_words(&snapshot, &policy),
            words(&plan)
        );
        for step in &plan.steps {
            match step.action {
                Action::Evict { .. } => evictions += 1,
                Action::Move { .. } => moves += 1,
                Action::Shrink { .. } => shrinks += 1,
                Action::Admit(_) | Action::Reserve { .. } | Action::Requeue | Action::Wait => {}
            }
        }
    }
    // The draw must reach what it is there to try.
    if std::env::var("SIM_SEED").is_err() {
        assert!(
            evictions > 300 && moves > 30 && shrinks > 100,
            "{evictions} evictions, {moves} moves, {shrinks} shrinks"
        );
    }
}

#[test]
fn the_order_of_the_input_changes_nothing() {
    for seed in seeds(1_000) {
        let (snapshot, policy) = pool(seed);
        let mut shuffled = snapshot.clone();
        let mut chance = Chance(seed);
        chance.shuffle(&mut shuffled.queues);
        chance.shuffle(&mut shuffled.hosts);
        chance.shuffle(&mut shuffled.running);
        chance.shuffle(&mut shuffled.pending);
        let (plan, other) = (decide(&snapshot, &policy), decide(&shuffled, &policy));
        assert_eq!(plan, other, "SIM_SEED={seed}\n{}\n{}", words(&plan), words(&other));
    }
}

/// With nothing new to come and nobody going by himself, jobs stop being ended, in at most as many rounds as there are jobs to end twice over; and each round passes its audit.
#[test]
fn preemption_ends() {
    for seed in seeds(600) {
        let (mut snapshot, policy) = pool(seed);
        let mut chance = Chance(seed ^ 0xabcd);
        let mut quiet = 0;
        let jobs = snapshot.running.len() + snapshot.pending.len();
        let most = 2 * jobs + 40;
        let mut last = Plan::default();
        for round in 0..=most {
            let plan = decide(&snapshot, &policy);
            let faults = audit(&snapshot, &policy, &plan);
            assert!(
                faults.is_empty(),
                "SIM_SEED={seed} round {round}\n{faults:?}\n{}{}",
                pool_in_words(&snapshot, &policy),
                words(&plan)
            );
            if std::env::var_os("SIM_SEED").is_some() {
                println!("round {round}\n{}{}", pool_in_words(&snapshot, &policy), words(&plan));
            }
            let ended: Vec<JobName> = plan
                .steps
                .iter()
                .filter(|step| matches!(step.action, Action::Evict { .. } | Action::Move { .. } | Action::Requeue))
                .map(|step| step.job.clone())
                .collect();
            quiet = if ended.is_empty() { quiet + 1 } else { 0 };
            assert!(
                round < most,
                "SIM_SEED={seed}: jobs are still ended after {round} rounds\n{}before:\n{}now:\n{}",
                pool_in_words(&snapshot, &policy),
                words(&last),
                words(&plan)
            );
            // Longer than any cool-down or least run, so that nobody is only out of reach for a while.
            if quiet >= 6 {
                break;
            }
            let leaving: Vec<JobName> = snapshot
                .running
                .iter()
                .filter(|run| run.leaving)
                .map(|run| run.name.clone())
                .chain(ended)
                .filter(|_| chance.percent(70))
                .collect();
            snapshot = carry_out(&snapshot, &plan, 600_000, &Gone::Only(&leaving));
            last = plan;
        }
    }
}
