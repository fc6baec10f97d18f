//! What is asked of an actuator.

use crate::kubernetes::KubernetesAction;
use crate::process::ProcessAction;
use crate::slurm::{JobAction, LimitAction};
use cardhour_domain::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The decision that asked: one decision is one action, however often it is carried out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DecisionId(String);

impl DecisionId {
    /// From its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One thing to be done, to one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Whose decision it carries out.
    pub decision: DecisionId,
    /// Whom it concerns, for the limit by the hour of each: a project or an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What is done to what.
    pub what: What,
    /// From then on no step is begun; what isn't true by then is given up.
    #[serde(with = "crate::instant")]
    pub deadline: Timestamp,
}

/// What is done to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// To a run of a job of Slurm's.
    SlurmJob(JobAction),
    /// To a limit that Slurm keeps.
    SlurmLimit(LimitAction),
    /// To a process of this node.
    Process(ProcessAction),
    /// To an object of a Kubernetes cluster.
    Kubernetes(KubernetesAction),
}

impl What {
    /// How long the action takes by its own waiting, at least. Unit: seconds.
    pub(crate) fn own_wait_s(&self) -> u32 {
        match self {
            Self::SlurmJob(action) => action.deed.own_wait_s(),
            Self::Process(action) => action.deed.own_wait_s(),
            Self::SlurmLimit(_) | Self::Kubernetes(_) => 0,
        }
    }

    /// The decision whose change it takes back, where it does.
    pub fn takes_back(&self) -> Option<&DecisionId> {
        match self {
            Self::SlurmLimit(action) => action.aim.takes_back(),
            Self::Kubernetes(action) => action.takes_back(),
            Self::SlurmJob(_) | Self::Process(_) => None,
        }
    }
}
