//! What comes next: the answer of each family's pure step.

use crate::action::{Action, What};
use crate::past::Past;
use crate::setting::Change;
use crate::sight::Sight;
use crate::signal::Signal;
use crate::{kubernetes, process, setting, slurm};
use cardhour_domain::Timestamp;
use serde::{Deserialize, Serialize};

/// A touch of the world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Sends a signal.
    Signal(Signal),
    /// Ends a job by its scheduler, which gives it a grace of its own.
    Cancel,
    /// Ends a process that didn't end in its grace.
    Kill,
    /// Puts a job back into its queue.
    Requeue,
    /// Evicts a pod.
    Evict,
    /// Stops what an object runs.
    Stop,
    /// Lets it run again.
    Start,
    /// Sets a limit, a quota or a number of replicas; none: no limit.
    Set(Option<u64>),
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is true.
    True,
    /// It is left alone, for good.
    Refuse(String),
    /// It was begun and can't be brought to an end.
    GiveUp(String),
    /// This.
    Do(Step),
    /// Nothing before then.
    Wait(Timestamp),
}

/// How long a step that changed nothing isn't tried again. Unit: seconds.
pub const AGAIN_AFTER_S: u32 = 15;

/// What comes next, by what is seen now and what was done. `change`: what a setting is to become, worked out by [`setting::change_of`].
pub(crate) fn next(action: &Action, sight: &Sight, past: &Past, change: Option<&Change>, now: Timestamp) -> Next {
    match (&action.what, sight) {
        (What::SlurmJob(what), Sight::Job(sight)) => slurm::job::next(what, sight, past, now),
        (What::Process(what), Sight::Process(sight)) => process::next(what, sight, past, now),
        (What::SlurmLimit(_) | What::Kubernetes(_), Sight::Setting(sight)) => match change {
            Some(change) => setting::next(change, sight, past, now),
            None => Next::Refuse("it is no setting".to_owned()),
        },
        (What::Kubernetes(what), Sight::Object(sight)) => kubernetes::next(what, sight, past, now),
        (What::SlurmJob(_) | What::Process(_) | What::SlurmLimit(_) | What::Kubernetes(_), _) => {
            Next::Refuse("what was seen is of another kind".to_owned())
        }
    }
}
