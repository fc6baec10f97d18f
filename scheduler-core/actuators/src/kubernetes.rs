//! A Kubernetes cluster, by its API.
//!
//! Pods are evicted, so that disruption budgets hold ([`pod`]); owners are scaled ([`scale`]); notebooks, jobs and workloads are stopped and started
//! ([`stopped`]); queues get other quotas ([`quota`]). Each change names the version or the values that it was made on, so that another's change in
//! between is never written over. A blocking client asks, question by question: actions are a few an hour, and the crate `kube` would bring an async
//! runtime and all of Kubernetes' types for a dozen fields; its `evict` also loses the preconditions by which a pod of the same name is told apart.

mod client;
pub mod pod;
pub mod quantity;
pub mod quota;
pub mod scale;
pub mod stopped;

pub use client::ClusterSettings;
pub use pod::PodTarget;
pub use quota::{KaiField, KueueField, Quota, VolcanoField};
pub use scale::{ScaleTarget, Scaled};
pub use stopped::{Stopped, StoppedTarget};

use crate::action::DecisionId;
use crate::instant::after_s;
use crate::next::{AGAIN_AFTER_S, Next, Step};
use crate::past::{Answer, Past};
use crate::setting::Aim;
use crate::sight::Sight;
use crate::world::Trouble;
use cardhour_domain::Timestamp;
use client::Reply;
use serde::{Deserialize, Serialize};

/// What is done to which object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KubernetesAction {
    /// Evicts a pod. It is gone for good where nothing owns it, and comes back where something does: then the owner is scaled instead.
    Evict {
        /// Which.
        pod: PodTarget,
        /// How long it has to end; none: as long as it says itself. Unit: seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grace_s: Option<u32>,
    },
    /// Gives an owner of pods another number of them.
    Scale {
        /// Which.
        owner: ScaleTarget,
        /// How many.
        aim: Aim,
    },
    /// Stops an object that knows how to be stopped.
    Stop(StoppedTarget),
    /// Lets it run again.
    Start(StoppedTarget),
    /// Gives a queue another quota.
    SetQuota {
        /// Which.
        quota: Quota,
        /// What it becomes. Unit: whole cards, or whole units of its resource.
        aim: Aim,
    },
}

impl KubernetesAction {
    /// What a setting becomes, where one is set.
    pub(crate) fn aim(&self) -> Option<&Aim> {
        match self {
            Self::Scale { aim, .. } | Self::SetQuota { aim, .. } => Some(aim),
            Self::Evict { .. } | Self::Stop(_) | Self::Start(_) => None,
        }
    }

    /// The decision whose change it takes back, where it does.
    pub(crate) fn takes_back(&self) -> Option<&DecisionId> {
        self.aim().and_then(Aim::takes_back)
    }
}

/// What a look at an object showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectSight {
    /// Whether it is there.
    pub presence: Presence,
    /// What owns it, where something does: `ReplicaSet/web-5d`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Why it isn't touched, where it isn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untouchable: Option<String>,
}

/// Whether an object is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It isn't.
    Gone,
    /// Another has its name.
    Replaced,
    /// It ends.
    Leaving,
    /// It is there, and runs.
    Runs,
    /// It is told to stop, and hasn't yet.
    Stopping,
    /// It is there, and stopped.
    Stopped,
}

/// What comes next for an object that ends, is stopped or started.
pub(crate) fn next(action: &KubernetesAction, sight: &ObjectSight, past: &Past, now: Timestamp) -> Next {
    let look_again = Next::Wait(after_s(now, AGAIN_AFTER_S));
    let step = match (action, sight.presence) {
        (KubernetesAction::Evict { .. }, Presence::Gone | Presence::Replaced) if past.has_touched() => {
            return Next::True;
        }
        (_, Presence::Gone) => return Next::Refuse("it ended meanwhile".to_owned()),
        (_, Presence::Replaced) => {
            return Next::Refuse("it ended meanwhile, and another has its name".to_owned());
        }
        (KubernetesAction::Evict { .. }, Presence::Leaving) => return look_again,
        (_, Presence::Leaving) => return Next::Refuse("it is being deleted".to_owned()),
        (KubernetesAction::Evict { .. }, Presence::Runs | Presence::Stopping | Presence::Stopped) => Step::Evict,
        (KubernetesAction::Stop(_), Presence::Stopped) | (KubernetesAction::Start(_), Presence::Runs) => {
            return Next::True;
        }
        (KubernetesAction::Stop(_), Presence::Stopping) => return look_again,
        (KubernetesAction::Stop(_), Presence::Runs) => Step::Stop,
        (KubernetesAction::Start(_), Presence::Stopped | Presence::Stopping) => Step::Start,
        (KubernetesAction::Scale { .. } | KubernetesAction::SetQuota { .. }, _) => {
            return Next::Refuse("what was seen is of another kind".to_owned());
        }
    };
    if let Some(reason) = &sight.untouchable {
        return Next::Refuse(reason.clone());
    }
    let Some(tried) = past.tries.last() else { return Next::Do(step) };
    let again_at = match &tried.answer {
        Some(Answer::Declined(reason)) => return Next::Refuse(reason.clone()),
        Some(Answer::Later { after_s: wait_s, .. }) => after_s(tried.at, *wait_s),
        Some(Answer::Taken | Answer::Unknown(_)) => after_s(tried.at, AGAIN_AFTER_S),
        // The program ended in between, and it is as it was.
        None => tried.at,
    };
    if now < again_at { Next::Wait(again_at) } else { Next::Do(step) }
}

/// A cluster that is looked at and touched.
#[derive(Clone, Debug)]
pub struct Cluster {
    client: client::Client,
}

impl Cluster {
    /// Asked there. Errors: a token would go to another machine without TLS.
    pub fn new(settings: ClusterSettings) -> Result<Self, String> {
        Ok(Self { client: client::Client::new(settings)? })
    }

    /// Looks.
    pub(crate) fn look(&self, action: &KubernetesAction) -> Result<Sight, Trouble> {
        match action {
            KubernetesAction::Evict { pod, .. } => pod::look(&self.client, pod).map(Sight::Object),
            KubernetesAction::Scale { owner, .. } => scale::look(&self.client, owner).map(Sight::Setting),
            KubernetesAction::Stop(target) | KubernetesAction::Start(target) => {
                stopped::look(&self.client, target).map(Sight::Object)
            }
            KubernetesAction::SetQuota { quota, .. } => quota::look(&self.client, quota).map(Sight::Setting),
        }
    }

    /// Does a step on what was just seen.
    pub(crate) fn act(&self, action: &KubernetesAction, step: &Step, sight: &Sight) -> Result<Answer, Trouble> {
        match (action, step, sight) {
            (KubernetesAction::Evict { pod, grace_s }, Step::Evict, _) => pod::evict(&self.client, pod, *grace_s),
            (KubernetesAction::Scale { owner, .. }, Step::Set(to), Sight::Setting(seen)) => {
                scale::set(&self.client, owner, *to, seen)
            }
            (KubernetesAction::Stop(target), Step::Stop, _) => stopped::set(&self.client, target, Stopped::Yes),
            (KubernetesAction::Start(target), Step::Start, _) => stopped::set(&self.client, target, Stopped::No),
            (KubernetesAction::SetQuota { quota, .. }, Step::Set(to), Sight::Setting(seen)) => {
                quota::set(&self.client, quota, *to, seen)
            }
            (
                KubernetesAction::Evict { .. }
                | KubernetesAction::Scale { .. }
                | KubernetesAction::Stop(_)
                | KubernetesAction::Start(_)
                | KubernetesAction::SetQuota { .. },
                _,
                _,
            ) => Ok(Answer::Declined("no step for it".to_owned())),
        }
    }
}

/// What an answer to a change means.
fn answer(reply: &Reply) -> Answer {
    let reason = reply.reason();
    match reply.status {
        200..=299 => Answer::Taken,
        // Somebody else changed it in between, or a test in a patch failed for that reason: it is looked at again.
        409 | 422 => Answer::Later { after_s: 1, reason },
        429 => Answer::Later { after_s: reply.retry_after_s.unwrap_or(AGAIN_AFTER_S).max(1), reason },
        // A token that has run out is read anew at the next question.
        401 | 500..=599 => Answer::Unknown(reason),
        _ => Answer::Declined(reason),
    }
}

/// Whether something changed between the look and the change.
fn changed_meanwhile() -> Answer {
    Answer::Later { after_s: 1, reason: "it was changed this moment".to_owned() }
}

#[cfg(test)]
mod tests;
