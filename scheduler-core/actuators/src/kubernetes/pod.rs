//! A pod that is evicted: its disruption budget holds, and never is it deleted instead.

use super::client::{Client, Method, part};
use super::{ObjectSight, Presence, answer};
use crate::past::Answer;
use crate::world::Trouble;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One pod. Another of its name has another uid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodTarget {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl PodTarget {
    fn path(&self) -> Result<String, Trouble> {
        Ok(format!("/api/v1/namespaces/{}/pods/{}", part(&self.namespace)?, part(&self.name)?))
    }
}

pub(super) fn look(client: &Client, pod: &PodTarget) -> Result<ObjectSight, Trouble> {
    let reply = client.get(&pod.path()?)?;
    let gone = |presence| Ok(ObjectSight { presence, owner: None, untouchable: None });
    match reply.status {
        404 => return gone(Presence::Gone),
        200 => {}
        _ => return Err(Trouble::Unseen(reply.reason())),
    }
    let metadata = &reply.body["metadata"];
    if metadata["uid"].as_str() != Some(&pod.uid) {
        return gone(Presence::Replaced);
    }
    let phase = reply.body["status"]["phase"].as_str().unwrap_or_default();
    let presence = match phase {
        // Its containers have ended: nothing of it holds a card.
        "Succeeded" | "Failed" => Presence::Gone,
        _ if !metadata["deletionTimestamp"].is_null() => Presence::Leaving,
        _ => Presence::Runs,
    };
    let owner = controller(metadata);
    let untouchable = if pod.namespace == "kube-system" {
        Some("pods of kube-system are never touched".to_owned())
    } else if !metadata["annotations"]["kubernetes.io/config.mirror"].is_null() {
        Some("it is a node's own pod".to_owned())
    } else if owner.as_deref().is_some_and(|owner| owner.starts_with("DaemonSet/")) {
        Some("it is of a DaemonSet: it belongs to its node".to_owned())
    } else {
        None
    };
    Ok(ObjectSight { presence, owner, untouchable })
}

fn controller(metadata: &Value) -> Option<String> {
    let owners = metadata["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == json!(true))?;
    Some(format!("{}/{}", owner["kind"].as_str()?, owner["name"].as_str()?))
}

pub(super) fn evict(client: &Client, pod: &PodTarget, grace_s: Option<u32>) -> Result<Answer, Trouble> {
    // `deleteOptions`, as the API spells it: what it doesn't know it drops in silence, and with it the uid.
    let mut options = json!({"preconditions": {"uid": pod.uid}});
    if let Some(grace_s) = grace_s {
        options["gracePeriodSeconds"] = json!(grace_s);
    }
    let body = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    });
    let reply = client.send(Method::Post, &format!("{}/eviction", pod.path()?), &body)?;
    Ok(match reply.status {
        404 => Answer::Later { after_s: 1, reason: reply.reason() },
        // Two budgets over one pod: only whoever wrote them can mend that.
        500 if reply.reason().contains("more than one PodDisruptionBudget") => Answer::Declined(reply.reason()),
        _ => answer(&reply),
    })
}
