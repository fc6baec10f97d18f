//! A job's lease: what is remembered of it between observations.

use super::evidence::Alert;
use super::watch::Watch;
use super::{CardNow, LeasePolicy, Observation, OptOut, Phase, judge_card, judge_processes};
use crate::work_class::WorkClass;
use cardhour_domain::{AttemptKey, Name, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What doesn't change about a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Which.
    pub key: AttemptKey,
    /// Whose: the only one who may extend it.
    pub owner: Name,
    /// What kind of work; none is judged as training.
    pub class: Option<WorkClass>,
    /// When it started; none where that isn't known, and then it counts from the first observation.
    pub started_at: Option<Timestamp>,
    /// Who gets a signal.
    pub signal: SignalTarget,
    /// How it writes a checkpoint.
    pub checkpoint: CheckpointWay,
}

/// Who gets a signal. Never all processes of a job: its data loaders would die first and take the training with them (R18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalTarget {
    /// The job's main process.
    MainProcess,
    /// A hook that the job names.
    Hook(Name),
}

/// How a job writes a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointWay {
    /// On the signal.
    OnSignal,
    /// It can't.
    None,
}

/// A job's lease. Start with [`Lease::new`], go on with [`super::step`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub(super) job: Job,
    pub(super) phase: Phase,
    /// The newest observation so far.
    pub(super) now: Option<Timestamp>,
    /// When the job was first observed.
    pub(super) first_seen_at: Option<Timestamp>,
    /// What was seen before this doesn't count.
    pub(super) judged_from: Option<Timestamp>,
    /// When a card of it was first seen at work.
    pub(super) first_use_at: Option<Timestamp>,
    /// The cards it held when last observed.
    pub(super) cards: BTreeMap<Name, CardNow>,
    pub(super) watches: BTreeMap<Name, Watch>,
    pub(super) processes: Watch,
    /// When the last whole checkpoint was seen.
    pub(super) checkpoint_at: Option<Timestamp>,
    /// When the job last reported that it sets up, loads or writes.
    pub(super) reported_at: Option<Timestamp>,
    /// Since when it has said so without a card being seen at work.
    pub(super) reported_since: Option<Timestamp>,
    pub(super) notices: u32,
    /// How often it was suspected.
    pub(super) episodes: u32,
    /// Extension requests that were answered.
    pub(super) answered: BTreeSet<Name>,
    pub(super) extensions: u32,
    pub(super) extended_ms: i64,
    /// How often it was suspected and wasn't idle after all, of late.
    pub(super) withdrawn: u32,
    /// When it was withdrawn last.
    pub(super) withdrawn_at: Option<Timestamp>,
    /// Cards that the owner was told of.
    pub(super) advised: BTreeSet<Name>,
    /// Opt-outs that spared it, and of which it was said.
    pub(super) spared: BTreeSet<OptOut>,
    /// What the operator was told in this episode.
    pub(super) told: BTreeSet<Alert>,
}

impl Lease {
    /// A job that was never observed.
    pub fn new(job: Job) -> Self {
        Self {
            job,
            phase: Phase::Active,
            now: None,
            first_seen_at: None,
            judged_from: None,
            first_use_at: None,
            cards: BTreeMap::new(),
            watches: BTreeMap::new(),
            processes: Watch::default(),
            checkpoint_at: None,
            reported_at: None,
            reported_since: None,
            notices: 0,
            episodes: 0,
            answered: BTreeSet::new(),
            extensions: 0,
            extended_ms: 0,
            withdrawn: 0,
            withdrawn_at: None,
            advised: BTreeSet::new(),
            spared: BTreeSet::new(),
            told: BTreeSet::new(),
        }
    }

    /// The job.
    pub const fn job(&self) -> &Job {
        &self.job
    }

    /// Where it is.
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The newest instant that it was brought to; none before the first observation.
    pub const fn now(&self) -> Option<Timestamp> {
        self.now
    }

    /// When the job was first observed.
    pub const fn first_seen_at(&self) -> Option<Timestamp> {
        self.first_seen_at
    }

    /// How often it was suspected: with the job and [`Self::first_seen_at`], which episode this is.
    pub const fn episodes(&self) -> u32 {
        self.episodes
    }

    /// The number of the last warning; 0 before the first.
    pub const fn notices(&self) -> u32 {
        self.notices
    }

    /// The cards it held when last observed.
    pub fn cards(&self) -> impl Iterator<Item = (&Name, &CardNow)> {
        self.cards.iter()
    }

    /// Whether what an observation of an earlier tick says of a card, and of the job's processes, was taken in already.
    pub fn has_taken_in(&self, seen: &Observation, card: &Name, policy: &LeasePolicy) -> bool {
        let Some(now) = self.now.filter(|now| seen.at <= *now) else { return false };
        let (Some(of_card), Some(watch)) = (seen.cards.get(card), self.watches.get(card)) else { return false };
        let verdict = judge_card(&of_card.reading, of_card.is_shared, &policy.floors);
        let processes = judge_processes(&seen.processes, &policy.floors);
        watch.knows(seen.during, verdict, now, policy) && self.processes.knows(seen.during, processes, now, policy)
    }

    /// What is known of the job has changed: its class, or how it writes a checkpoint. Shape: of the same attempt.
    pub fn set_job(&mut self, job: Job) {
        assert_eq!(self.job.key, job.key, "a lease is of one attempt");
        self.job = job;
    }

    /// Nothing that was seen before `at` counts: it has to be idle over a whole window after it.
    pub fn judge_from(&mut self, at: Timestamp) {
        self.judged_from = self.judged_from.max(Some(at));
    }

    /// Whatever was begun is called off, without the job being at work: what was seen stays, and the owner would be warned anew.
    pub fn call_off(&mut self) {
        self.phase = Phase::Active;
        self.told.clear();
    }

    /// The cards of which anything was seen in the last window.
    pub(super) fn seen_cards(&self) -> impl Iterator<Item = &Name> {
        self.watches.iter().filter(|(_, watch)| watch.is_seen()).map(|(card, _)| card)
    }

    /// How often it was suspected of late, and wasn't idle after all.
    pub const fn withdrawn_count(&self) -> u32 {
        self.withdrawn
    }
}
