//! A job's lease: what is remembered of it between observations.

use super::evidence::Alert;
use super::watch::Watch;
use super::{CardNow, OptOut, Phase};
use crate::work_class::WorkClass;
use cardhour_domain::{AttemptKey, Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What doesn't change about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalTarget {
    /// The job's main process.
    MainProcess,
    /// A hook that the job names.
    Hook(Name),
}

/// How a job writes a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointWay {
    /// On the signal.
    OnSignal,
    /// It can't.
    None,
}

/// A job's lease. Start with [`Lease::new`], go on with [`super::step`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub(super) job: Job,
    pub(super) phase: Phase,
    /// The newest observation so far.
    pub(super) now: Option<Timestamp>,
    /// When the job was first observed.
    pub(super) first_seen_at: Option<Timestamp>,
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
            first_use_at: None,
            cards: BTreeMap::new(),
            watches: BTreeMap::new(),
            processes: Watch::default(),
            checkpoint_at: None,
            reported_at: None,
            reported_since: None,
            notices: 0,
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

    /// The cards of which anything was seen in the last window.
    pub(super) fn seen_cards(&self) -> impl Iterator<Item = &Name> {
        self.watches.iter().filter(|(_, watch)| watch.is_seen()).map(|(card, _)| card)
    }

    /// How often it was suspected of late, and wasn't idle after all.
    pub const fn withdrawn_count(&self) -> u32 {
        self.withdrawn
    }
}
