//! What is seen of a job at one instant.

use super::{CardReading, ExtensionRequest, OptOut, ProcessReading};
use cardhour_domain::{CardShare, Gap, Interval, Name, Reading, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is seen of a job at one instant.
///
/// It may come late, twice or never: telemetry is taken in whenever it comes, and only the newest observation moves a lease forward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When it was made.
    pub at: Timestamp,
    /// The tick that the readings are of.
    pub during: Interval,
    /// Every card the job holds, by UUID, whether anything was read from it or not.
    pub cards: BTreeMap<Name, CardNow>,
    /// What its processes did.
    pub processes: ProcessReading,
    /// Whether its owner is known for certain.
    pub attribution: Attribution,
    /// Opt-outs that name this job; missing when the list couldn't be read, and then nothing goes forward.
    pub opt_outs: Reading<Vec<OptOut>>,
    /// Extensions that were asked for. Each counts once, however often it is told.
    pub extension_requests: Vec<ExtensionRequest>,
    /// What became of a warning.
    pub notice: Option<NoticeReport>,
    /// What is seen of checkpoints.
    pub checkpoint: CheckpointSigns,
    /// A phase without use of the cards that the job itself reports.
    pub reported_phase: Option<ReportedPhase>,
    /// Whether the devices are still held: what a job holds on to after its end isn't free.
    pub release: Reading<Release>,
}

/// One of a job's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardNow {
    /// How much of it the job holds.
    pub share: CardShare,
    /// Whether others hold a part of it too.
    pub is_shared: bool,
    /// What it said.
    pub reading: CardReading,
}

/// A check of something that not every job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check<T> {
    /// What was found.
    Seen(T),
    /// There is nothing to check: no kernel, no terminal, nobody who looks.
    NotThere,
    /// It should have been checked and couldn't be.
    Failed(Gap),
}

/// Whether a job's owner is known for certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribution {
    /// The labels name a job that holds these very cards.
    Proven,
    /// They don't, such as those of an exporter in the place of the workload.
    Unproven {
        /// What they name.
        names: Name,
    },
}

/// What became of a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeReport {
    /// Which: the number of [`super::Action::Warn`].
    pub notice: u32,
    /// When it was delivered; or why it couldn't be.
    pub delivered: Result<Timestamp, Name>,
}

/// What is seen of checkpoints, on storage and not by what the job claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointSigns {
    /// What goes on now.
    pub activity: Check<CheckpointActivity>,
    /// When the last whole one was seen, by its mark.
    pub done_at: Option<Timestamp>,
}

/// Whether a checkpoint is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointActivity {
    /// None is.
    Resting,
    /// One begins.
    Starting,
    /// One is.
    Writing,
}

/// What a job reports that it does without using its cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedPhase {
    /// It sets up.
    SettingUp,
    /// It loads data.
    LoadingData,
    /// It writes a checkpoint.
    Checkpointing,
}

/// Whether a job's devices are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Something still holds one.
    Held,
    /// All are free.
    Free,
}

impl<T: Copy> Check<T> {
    /// What was found.
    pub fn seen(&self) -> Option<T> {
        match self {
            Self::Seen(value) => Some(*value),
            Self::NotThere | Self::Failed(_) => None,
        }
    }

    /// The same with what was found changed.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Check<U> {
        match self {
            Self::Seen(value) => Check::Seen(change(value)),
            Self::NotThere => Check::NotThere,
            Self::Failed(gap) => Check::Failed(gap),
        }
    }
}
