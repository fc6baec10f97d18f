//! The number of pods of an owner.

use super::client::{Client, Method, part};
use super::{answer, changed_meanwhile};
use crate::past::Answer;
use crate::setting::{SettingSight, Value};
use crate::world::Trouble;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What can be scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scaled {
    /// Of `apps/v1`.
    Deployment,
    /// Of `apps/v1`.
    StatefulSet,
    /// Of `apps/v1`, where nothing owns it.
    ReplicaSet,
}

/// One owner of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScaleTarget {
    /// What it is.
    pub kind: Scaled,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl ScaleTarget {
    fn path(&self) -> Result<String, Trouble> {
        let plural = match self.kind {
            Scaled::Deployment => "deployments",
            Scaled::StatefulSet => "statefulsets",
            Scaled::ReplicaSet => "replicasets",
        };
        let (namespace, name) = (part(&self.namespace)?, part(&self.name)?);
        Ok(format!("/apis/apps/v1/namespaces/{namespace}/{plural}/{name}/scale"))
    }
}

pub(super) fn look(client: &Client, owner: &ScaleTarget) -> Result<SettingSight, Trouble> {
    let reply = client.get(&owner.path()?)?;
    let (value, not_changed) = match reply.status {
        404 => (None, None),
        200 if reply.body["metadata"]["uid"].as_str() != Some(&owner.uid) => (None, None),
        200 => {
            // Absent is one, as the API has it; in what runs it is none.
            let asked = reply.body["spec"]["replicas"].as_u64().unwrap_or(0);
            let running = reply.body["status"]["replicas"].as_u64().unwrap_or(0);
            let value = if asked == running { Value::Known(Some(asked)) } else { Value::OnItsWay(Some(asked)) };
            let is_system = owner.namespace == "kube-system";
            (Some(value), is_system.then(|| "owners in kube-system are never touched".to_owned()))
        }
        _ => return Err(Trouble::Unseen(reply.reason())),
    };
    Ok(SettingSight { value, not_lowered: None, not_changed })
}

pub(super) fn set(
    client: &Client,
    owner: &ScaleTarget,
    to: Option<u64>,
    seen: &SettingSight,
) -> Result<Answer, Trouble> {
    let Some(to) = to else { return Ok(Answer::Declined("a number of pods is never without a limit".to_owned())) };
    let reply = client.get(&owner.path()?)?;
    if reply.status != 200 {
        return Ok(answer(&reply));
    }
    let mut scale = reply.body;
    let asked = Some(scale["spec"]["replicas"].as_u64().unwrap_or(0));
    let was = match seen.value {
        Some(Value::Known(was) | Value::OnItsWay(was)) => was,
        None => None,
    };
    if scale["metadata"]["uid"].as_str() != Some(&owner.uid) || asked != was {
        return Ok(changed_meanwhile());
    }
    // Its resourceVersion goes back with it: changed in between, the server answers 409.
    scale["spec"]["replicas"] = json!(to);
    Ok(answer(&client.send(Method::Put, &owner.path()?, &scale)?))
}
