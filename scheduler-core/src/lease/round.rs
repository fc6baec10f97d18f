//! All jobs at once: what no single lease can see.
//!
//! When a source of telemetry goes away, every card looks the same at the same time, and a rule that is right for one job takes all of them
//! (R05). So a round in which too much is unseen moves nobody forward, and one round takes only a part of the pool.

use super::advance::{Pace, step_at_pace};
use super::{Action, Lease, LeasePolicy, Observation, Step, Verdict, judge_card};
use cardhour_domain::{AttemptKey, Gap, Percent, Reading};
use std::collections::BTreeMap;

/// What was seen of all jobs in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Whether the source of telemetry answered at all.
    pub source: Reading<()>,
    /// What was seen, by job. A lease without an observation stays as it is.
    pub observations: BTreeMap<AttemptKey, Observation>,
}

/// What the operator has to know of a whole round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundAlert {
    /// The source didn't answer: nothing goes forward.
    NoAnswer(Gap),
    /// Too many cards that were seen of late are unseen at once: nothing goes forward.
    Blind {
        /// Of those, seen now.
        seen: usize,
        /// Cards that were seen in the last window.
        watched: usize,
    },
}

/// What came of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundOutcome {
    /// The leases after it.
    pub leases: BTreeMap<AttemptKey, Lease>,
    /// What is to be done, by job.
    pub steps: Vec<Step>,
    /// What stood in everybody's way. Said in every round in which it does; who tells people says it once.
    pub alert: Option<RoundAlert>,
    /// Jobs that would have been asked or stopped, and wait for another round.
    pub put_off: Vec<AttemptKey>,
}

impl RoundAlert {
    /// What it says to the operator.
    pub fn words(self) -> String {
        match self {
            Self::NoAnswer(gap) => {
                format!("no telemetry ({}): no idle job is warned, asked or stopped until it is back", gap.name())
            }
            Self::Blind { seen, watched } => {
                format!(
                    "{seen} of {watched} cards are still seen: no idle job is warned, asked or stopped until more are"
                )
            }
        }
    }
}

/// Takes all leases one observation further.
///
/// Shape: leases of jobs that have ended are the caller's to drop. Of the jobs due to be asked or stopped those with the most idle card-time go
/// first, as many as [`LeasePolicy::most_at_once`] allows.
pub fn step_round(leases: BTreeMap<AttemptKey, Lease>, round: &Round, policy: &LeasePolicy) -> RoundOutcome {
    let alert = blindness(&leases, round, policy);
    let pace = if alert.is_some() { Pace::Held } else { Pace::Free };
    let watched = leases.len();
    let mut outcome = RoundOutcome { leases: BTreeMap::new(), steps: Vec::new(), alert, put_off: Vec::new() };
    let mut due = Vec::new();
    let mut by_job = BTreeMap::new();
    for (job, lease) in leases {
        let Some(seen) = round.observations.get(&job) else {
            outcome.leases.insert(job, lease);
            continue;
        };
        let (after, steps) = step_at_pace(lease.clone(), seen, policy, pace);
        let idle = steps.iter().filter(|step| takes(&step.action)).map(|step| step.evidence.idle).max();
        if let Some(idle) = idle {
            due.push((std::cmp::Reverse(idle), job.clone(), lease));
        }
        by_job.insert(job.clone(), steps);
        outcome.leases.insert(job, after);
    }
    due.sort_by(|(a, job_a, _), (b, job_b, _)| (a, job_a).cmp(&(b, job_b)));
    for (_, job, before) in due.into_iter().skip(most_at_once(watched, policy)) {
        let (after, steps) = step_at_pace(before, &round.observations[&job], policy, Pace::Held);
        by_job.insert(job.clone(), steps);
        outcome.leases.insert(job.clone(), after);
        outcome.put_off.push(job);
    }
    outcome.put_off.sort();
    outcome.steps = by_job.into_values().flatten().collect();
    outcome
}

fn takes(action: &Action) -> bool {
    match action {
        Action::AskCheckpoint { .. } | Action::Stop { .. } => true,
        Action::Suspect
        | Action::Advise(_)
        | Action::Warn { .. }
        | Action::BeginGrace { .. }
        | Action::Reclaimed
        | Action::Extended { .. }
        | Action::RefuseExtension { .. }
        | Action::Withdraw(_)
        | Action::Spare(_)
        | Action::Alert(_) => false,
    }
}

/// Rounded down, and one at least.
fn most_at_once(watched: usize, policy: &LeasePolicy) -> usize {
    let part = watched as u64 * policy.most_at_once.thousandths() as u64 / Percent::WHOLE.thousandths() as u64;
    usize::try_from(part).expect("a part of a count").max(1)
}

fn blindness(leases: &BTreeMap<AttemptKey, Lease>, round: &Round, policy: &LeasePolicy) -> Option<RoundAlert> {
    if let Reading::Missing(gap) = round.source {
        return Some(RoundAlert::NoAnswer(gap));
    }
    let (mut seen, mut watched) = (0usize, 0usize);
    for (job, lease) in leases {
        let observation = round.observations.get(job);
        for card in lease.seen_cards() {
            watched += 1;
            let now = observation.and_then(|observation| observation.cards.get(card));
            let is_seen =
                now.is_some_and(|now| judge_card(&now.reading, now.is_shared, &policy.floors) != Verdict::Unseen);
            // A card that the job gave back hasn't vanished.
            let is_given_back = observation.is_some_and(|observation| !observation.cards.contains_key(card));
            seen += usize::from(is_seen || is_given_back);
        }
    }
    let unseen = (watched - seen) as u64;
    let is_blind =
        unseen * Percent::WHOLE.thousandths() as u64 >= watched as u64 * policy.blind_from.thousandths() as u64;
    (unseen > 0 && is_blind).then_some(RoundAlert::Blind { seen, watched })
}
