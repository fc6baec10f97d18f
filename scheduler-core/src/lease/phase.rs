//! Where a lease is.

use super::{CheckpointOutcome, Evidence};
use cardhour_domain::{Name, Timestamp};
use serde::{Deserialize, Serialize};

/// Where a lease is. What it waits for is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The job works, or nobody can say that it doesn't.
    Active,
    /// It has been idle over a whole window.
    Suspect {
        /// Since when the lease says so.
        since: Timestamp,
    },
    /// A warning was given to be sent.
    Notified {
        /// Its number.
        notice: u32,
        /// When it was given, first.
        warned_at: Timestamp,
        /// When it was given last.
        tried_at: Timestamp,
        /// When it was delivered; or why the last try failed; none while nothing is known.
        delivered: Option<Result<Timestamp, Name>>,
    },
    /// The warning was delivered.
    Grace {
        /// Its number.
        notice: u32,
        /// Until when nothing is done.
        until: Timestamp,
    },
    /// The job was asked to write a checkpoint.
    CheckpointAsked {
        /// When.
        asked_at: Timestamp,
        /// How long it is waited for.
        until: Timestamp,
    },
    /// The stop was ordered; the devices aren't free yet.
    Stopping {
        /// When.
        since: Timestamp,
        /// What became of the checkpoint.
        checkpoint: CheckpointOutcome,
        /// What the stop rests on: afterwards there is nothing left to look at.
        evidence: Box<Evidence>,
    },
    /// The owner has more time.
    Extended {
        /// Until when.
        until: Timestamp,
    },
    /// The devices were seen free.
    Reclaimed {
        /// When.
        at: Timestamp,
    },
}

impl Phase {
    /// Its name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Suspect { .. } => "suspect",
            Self::Notified { .. } => "notified",
            Self::Grace { .. } => "grace",
            Self::CheckpointAsked { .. } => "checkpoint_asked",
            Self::Stopping { .. } => "stopping",
            Self::Extended { .. } => "extended",
            Self::Reclaimed { .. } => "reclaimed",
        }
    }
}
