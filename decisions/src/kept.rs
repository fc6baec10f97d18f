//! How a lease is kept between rounds: a row of the table `leases`, by attempt.

use crate::decision::Mode;
use cardhour_domain::{AttemptKey, CardShare, Name, Timestamp};
use cardhour_scheduler_core::lease::Lease;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the text. A text of another one isn't read: its lease begins anew.
pub const VERSION: u32 = 1;

/// A lease as it is kept.
///
/// Shape: one an attempt; the rows of a round replace all rows of the round before (those that are gone are dropped). Losing them is safe: every lease
/// begins anew, so that jobs are only judged later. Stability: `state` says its version; no version is promised to be read by a later cardhour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLease {
    /// The attempt.
    pub attempt_key: AttemptKey,
    /// When it was kept.
    pub at: Timestamp,
    /// Where it is, for people: the machine reads `state`.
    pub phase: Name,
    /// All of it: JSON.
    pub state: Name,
}

/// What is kept of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The mode under which whatever is begun was begun.
    pub mode: Mode,
    /// The machine's own.
    pub lease: Lease,
    /// When the checkpoint was asked for or the stop ordered, by the clock of the round.
    pub ordered_at: Option<Timestamp>,
    /// What the last warning says.
    pub warned: Option<Name>,
    /// What it held when its cards came free: it counts as recovered for a while.
    pub freed: Option<Freed>,
    /// Cancels of an operator that were heeded.
    pub cancelled: BTreeSet<Name>,
    /// What its rows say of it, for when it is gone.
    pub told: KeptJob,
}

/// Cards that came free.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Freed {
    pub at: Timestamp,
    pub cards: CardShare,
}

/// What the rows of a job say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptJob {
    pub cluster: Name,
    pub job_id: Name,
    pub org: Option<Name>,
    pub project: Option<Name>,
    pub user: Option<Name>,
    pub queue: Option<Name>,
    pub class: Option<Name>,
    /// Its cards and devices when last seen.
    pub devices: Vec<(Name, Name)>,
    /// What nodes call it; its own key among them.
    pub seen_as: Vec<AttemptKey>,
}

#[derive(Serialize)]
struct Written<'a> {
    version: u32,
    #[serde(flatten)]
    kept: &'a Kept,
}

#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl KeptLease {
    pub(crate) fn of(kept: &Kept, at: Timestamp) -> Self {
        let written = Written { version: VERSION, kept };
        let state = serde_json::to_string(&written).expect("plain data with texts as keys can be written");
        Self {
            attempt_key: kept.lease.job().key.clone(),
            at,
            phase: kept.lease.phase().name().into(),
            state: state.into(),
        }
    }

    /// Errors: why it can't be read.
    pub(crate) fn read(&self) -> Result<Kept, String> {
        let Versioned { version } = serde_json::from_str(&self.state).map_err(|error| error.to_string())?;
        if version != VERSION {
            return Err(format!("it is of version {version}, and this program reads {VERSION}"));
        }
        let kept: Kept = serde_json::from_str(&self.state).map_err(|error| error.to_string())?;
        if kept.lease.job().key != self.attempt_key {
            return Err(format!("it is of {}", kept.lease.job().key));
        }
        Ok(kept)
    }
}
