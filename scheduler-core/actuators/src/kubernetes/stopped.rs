//! Objects that know how to be stopped: notebooks by an annotation, jobs by `suspend`, workloads of Kueue by `active`.

use super::client::{Client, Method, part};
use super::{ObjectSight, Presence, answer, changed_meanwhile};
use crate::past::Answer;
use crate::world::Trouble;
use cardhour_domain::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// While a notebook has it, its controller keeps no pod for it; its volumes stay.
const STOPPED: &str = "kubeflow-resource-stopped";

/// An object that knows how to be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoppedTarget {
    /// What it is.
    pub kind: Stoppable,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What knows how to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stoppable {
    /// Kubeflow's, `kubeflow.org`.
    Notebook,
    /// Of `batch/v1`: its pods end, and it keeps what it has done.
    Job,
    /// Kueue's: it is evicted, and isn't let in again.
    Workload,
}

/// Whether it is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It is.
    Yes,
    /// It runs.
    No,
}

impl StoppedTarget {
    fn path(&self, client: &Client) -> Result<String, Trouble> {
        let (group, plural) = match self.kind {
            Stoppable::Notebook => ("kubeflow.org", "notebooks"),
            Stoppable::Job => ("batch", "jobs"),
            Stoppable::Workload => ("kueue.x-k8s.io", "workloads"),
        };
        let (namespace, name) = (part(&self.namespace)?, part(&self.name)?);
        let version = match self.kind {
            Stoppable::Job => "v1".to_owned(),
            Stoppable::Notebook | Stoppable::Workload => client.version(group)?,
        };
        Ok(format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}"))
    }

    fn presence(&self, object: &Value) -> Presence {
        let count = |name: &str| object["status"][name].as_u64().unwrap_or(0);
        let (is_told, still_runs) = match self.kind {
            Stoppable::Notebook => (!object["metadata"]["annotations"][STOPPED].is_null(), count("readyReplicas") > 0),
            Stoppable::Job => (object["spec"]["suspend"] == json!(true), count("active") > 0),
            Stoppable::Workload => {
                let conditions = object["status"]["conditions"].as_array();
                let is_admitted = |condition: &Value| condition["type"] == "Admitted" && condition["status"] == "True";
                let still_runs = conditions.is_some_and(|conditions| conditions.iter().any(is_admitted));
                (object["spec"]["active"] == json!(false), still_runs)
            }
        };
        match (is_told, still_runs) {
            (false, _) => Presence::Runs,
            (true, true) => Presence::Stopping,
            (true, false) => Presence::Stopped,
        }
    }
}

pub(super) fn look(client: &Client, target: &StoppedTarget) -> Result<ObjectSight, Trouble> {
    let reply = client.get(&target.path(client)?)?;
    let metadata = &reply.body["metadata"];
    let is_finished = || {
        let conditions = reply.body["status"]["conditions"].as_array();
        let is_last = |condition: &Value| {
            matches!(condition["type"].as_str(), Some("Complete" | "Failed" | "Finished"))
                && condition["status"] == "True"
        };
        conditions.is_some_and(|conditions| conditions.iter().any(is_last))
    };
    let presence = match reply.status {
        404 => Presence::Gone,
        200 if metadata["uid"].as_str() != Some(&target.uid) => Presence::Replaced,
        200 if !metadata["deletionTimestamp"].is_null() => Presence::Leaving,
        200 if is_finished() => Presence::Gone,
        200 => target.presence(&reply.body),
        _ => return Err(Trouble::Unseen(reply.reason())),
    };
    Ok(ObjectSight { presence, owner: None, untouchable: None })
}

pub(super) fn set(client: &Client, target: &StoppedTarget, stopped: Stopped) -> Result<Answer, Trouble> {
    let path = target.path(client)?;
    let reply = client.get(&path)?;
    if reply.status != 200 {
        return Ok(answer(&reply));
    }
    let metadata = &reply.body["metadata"];
    if metadata["uid"].as_str() != Some(&target.uid) {
        return Ok(changed_meanwhile());
    }
    let is_stopped = stopped == Stopped::Yes;
    let mut patch = match target.kind {
        Stoppable::Notebook => {
            let at = if is_stopped { json!(now()) } else { Value::Null };
            json!({"metadata": {"annotations": {STOPPED: at}}})
        }
        Stoppable::Job => json!({"metadata": {}, "spec": {"suspend": is_stopped}}),
        Stoppable::Workload => json!({"metadata": {}, "spec": {"active": !is_stopped}}),
    };
    patch["metadata"]["resourceVersion"] = metadata["resourceVersion"].clone();
    Ok(answer(&client.send(Method::MergePatch, &path, &patch)?))
}

/// As the controller of notebooks writes it: RFC 3339, to the second.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_s(i64::try_from(since.as_secs()).unwrap_or_default()).to_string()
}
