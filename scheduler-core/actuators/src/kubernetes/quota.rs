//! Quotas of queues: Kueue's, Volcano's, KAI's. Each writes "no limit" in its own way.
//!
//! | | where | no limit |
//! |---|---|---|
//! | Kueue | an entry of a list that is written whole: by a patch with tests of names and old value | the field is absent; 0 is nothing |
//! | Volcano | a key of a map | of `capability`, the key is absent; absent in `deserved` and `guarantee` is 0 |
//! | KAI | one of three numbers that belong together | −1; 0 and absent are nothing |

use super::client::{Client, Method, Reply, part};
use super::{answer, changed_meanwhile, quantity};
use crate::past::Answer;
use crate::setting::{SettingSight, Value as Set};
use crate::world::Trouble;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One number of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Quota {
    /// Of a ClusterQueue of Kueue's.
    Kueue {
        /// Which queue.
        queue: String,
        /// Which flavor of it.
        flavor: String,
        /// Of what: `nvidia.com/gpu`.
        resource: String,
        /// Which number.
        field: KueueField,
    },
    /// Of a Queue of Volcano's.
    Volcano {
        /// Which queue.
        queue: String,
        /// Of what: `nvidia.com/gpu`.
        resource: String,
        /// Which number.
        field: VolcanoField,
    },
    /// Of a Queue of KAI's: of cards.
    Kai {
        /// Which queue.
        queue: String,
        /// Which number.
        field: KaiField,
    },
}

/// Numbers of a ClusterQueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KueueField {
    /// What it has of its own.
    Nominal,
    /// What it may have of others' beyond that. Only in a cohort.
    Borrowing,
    /// What others may have of it. Only in a cohort.
    Lending,
}

/// Numbers of a Volcano queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolcanoField {
    /// What it never has more than.
    Capability,
    /// What it gives back above.
    Deserved,
    /// What is kept for it.
    Guarantee,
}

/// Numbers of a KAI queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KaiField {
    /// What it has of its own.
    Quota,
    /// What it never has more than.
    Limit,
}

impl KueueField {
    fn name(self) -> &'static str {
        match self {
            Self::Nominal => "nominalQuota",
            Self::Borrowing => "borrowingLimit",
            Self::Lending => "lendingLimit",
        }
    }
}

impl KaiField {
    fn name(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Limit => "limit",
        }
    }
}

/// A number that was found.
struct Found {
    /// What it is; none: no limit.
    amount: Option<u64>,
    /// As it is written; none where it is absent.
    written: Option<Value>,
    /// Kueue: where in the list.
    place: Option<Place>,
    not_changed: Option<String>,
}

struct Place {
    group: usize,
    flavor: usize,
    resource: usize,
}

impl Quota {
    fn path(&self, client: &Client) -> Result<String, Trouble> {
        let (group, plural, queue) = match self {
            Self::Kueue { queue, .. } => ("kueue.x-k8s.io", "clusterqueues", queue),
            Self::Volcano { queue, .. } => ("scheduling.volcano.sh", "queues", queue),
            Self::Kai { queue, .. } => ("scheduling.run.ai", "queues", queue),
        };
        let queue = part(queue)?;
        Ok(format!("/apis/{group}/{}/{plural}/{queue}", client.version(group)?))
    }

    /// Its number in a queue; none where the queue has no place for it. Errors: it can't be read.
    fn find(&self, object: &Value) -> Result<Option<Found>, String> {
        let spec = &object["spec"];
        match self {
            Self::Kueue { flavor, resource, field, .. } => find_in_kueue(spec, flavor, resource, *field),
            Self::Volcano { resource, field, .. } => {
                let map = match field {
                    VolcanoField::Capability => &spec["capability"],
                    VolcanoField::Deserved => &spec["deserved"],
                    VolcanoField::Guarantee => &spec["guarantee"]["resource"],
                };
                let written = map.get(resource).filter(|value| !value.is_null()).cloned();
                let amount = match (&written, field) {
                    (Some(written), _) => Some(quantity::whole(written)?),
                    (None, VolcanoField::Capability) => None,
                    (None, VolcanoField::Deserved | VolcanoField::Guarantee) => Some(0),
                };
                Ok(Some(Found { amount, written, place: None, not_changed: None }))
            }
            Self::Kai { field, .. } => {
                let gpu = &spec["resources"]["gpu"];
                let written = gpu.get(field.name()).filter(|value| !value.is_null()).cloned();
                let amount = match &written {
                    None => Some(0),
                    Some(value) if value.as_f64() == Some(-1.0) => None,
                    Some(value) => Some(quantity::whole(value)?),
                };
                let is_whole = ["quota", "overQuotaWeight", "limit"].iter().all(|name| gpu[*name].is_number());
                let not_changed = (!is_whole).then(|| {
                    "its gpu doesn't have quota, overQuotaWeight and limit: what is absent there is 0".to_owned()
                });
                Ok(Some(Found { amount, written, place: None, not_changed }))
            }
        }
    }
}

fn find_in_kueue(spec: &Value, flavor: &str, resource: &str, field: KueueField) -> Result<Option<Found>, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for (group_index, group) in list(&spec["resourceGroups"]).iter().enumerate() {
        for (flavor_index, of_flavor) in list(&group["flavors"]).iter().enumerate() {
            if of_flavor["name"].as_str() != Some(flavor) {
                continue;
            }
            for (resource_index, of_resource) in list(&of_flavor["resources"]).iter().enumerate() {
                if of_resource["name"].as_str() != Some(resource) {
                    continue;
                }
                let written = of_resource.get(field.name()).filter(|value| !value.is_null()).cloned();
                let amount = written.as_ref().map(quantity::whole).transpose()?;
                // `cohort` before v1beta2.
                let has_cohort = ["cohort", "cohortName"]
                    .iter()
                    .any(|name| spec[*name].as_str().is_some_and(|name| !name.is_empty()));
                let not_changed = match field {
                    KueueField::Nominal => None,
                    KueueField::Borrowing | KueueField::Lending => {
                        (!has_cohort).then(|| format!("the queue is in no cohort: its {} can't be set", field.name()))
                    }
                };
                let place = Place { group: group_index, flavor: flavor_index, resource: resource_index };
                return Ok(Some(Found { amount, written, place: Some(place), not_changed }));
            }
        }
    }
    Ok(None)
}

fn read(client: &Client, quota: &Quota) -> Result<(String, Reply), Trouble> {
    let path = quota.path(client)?;
    let reply = client.get(&path)?;
    Ok((path, reply))
}

pub(super) fn look(client: &Client, quota: &Quota) -> Result<SettingSight, Trouble> {
    let (_, reply) = read(client, quota)?;
    let found = match reply.status {
        404 => None,
        200 => quota.find(&reply.body).map_err(Trouble::Unseen)?,
        _ => return Err(Trouble::Unseen(reply.reason())),
    };
    let value = found.as_ref().map(|found| Set::Known(found.amount));
    Ok(SettingSight { value, not_lowered: None, not_changed: found.and_then(|found| found.not_changed) })
}

pub(super) fn set(client: &Client, quota: &Quota, to: Option<u64>, seen: &SettingSight) -> Result<Answer, Trouble> {
    let (path, reply) = read(client, quota)?;
    if reply.status != 200 {
        return Ok(answer(&reply));
    }
    let object = &reply.body;
    let found = quota.find(object).map_err(Trouble::Unseen)?;
    let Some(found) = found.filter(|found| seen.value == Some(Set::Known(found.amount))) else {
        return Ok(changed_meanwhile());
    };
    let version = &object["metadata"]["resourceVersion"];
    let reply = match quota {
        Quota::Kueue { flavor, resource, field, .. } => {
            if to.is_none() && *field == KueueField::Nominal {
                return Ok(Answer::Declined("a nominalQuota is never without a limit".to_owned()));
            }
            let Some(place) = &found.place else { return Ok(changed_meanwhile()) };
            let of_flavor = format!("/spec/resourceGroups/{}/flavors/{}", place.group, place.flavor);
            let of_resource = format!("{of_flavor}/resources/{}", place.resource);
            let of_field = format!("{of_resource}/{}", field.name());
            let test = |path: &str, value: &Value| json!({"op": "test", "path": path, "value": value});
            let mut patch = vec![
                test("/metadata/uid", &object["metadata"]["uid"]),
                test(&format!("{of_flavor}/name"), &json!(flavor)),
                test(&format!("{of_resource}/name"), &json!(resource)),
            ];
            // The version changes with each job of a busy queue: the old value is tested instead, where there is one.
            patch.push(match &found.written {
                Some(written) => test(&of_field, written),
                None => test("/metadata/resourceVersion", version),
            });
            patch.push(match to {
                Some(to) => json!({"op": "add", "path": of_field, "value": to.to_string()}),
                None => json!({"op": "remove", "path": of_field}),
            });
            client.send(Method::JsonPatch, &path, &Value::Array(patch))?
        }
        Quota::Volcano { resource, field, .. } => {
            let amount = match (to, field) {
                (None, VolcanoField::Capability) => Value::Null,
                (None, VolcanoField::Deserved | VolcanoField::Guarantee) => {
                    return Ok(Answer::Declined("what is kept for a queue is never without a limit".to_owned()));
                }
                // As if it had never been set: a queue whose parent has none of it may not set it.
                (Some(0), VolcanoField::Deserved | VolcanoField::Guarantee) => Value::Null,
                (Some(to), _) => json!(to.to_string()),
            };
            let spec = match field {
                VolcanoField::Capability => json!({"capability": {resource: amount}}),
                VolcanoField::Deserved => json!({"deserved": {resource: amount}}),
                VolcanoField::Guarantee => json!({"guarantee": {"resource": {resource: amount}}}),
            };
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec});
            client.send(Method::MergePatch, &path, &patch)?
        }
        Quota::Kai { field, .. } => {
            // All three numbers: one that is absent means 0 there.
            let mut gpu = object["spec"]["resources"]["gpu"].clone();
            gpu[field.name()] = to.map_or(json!(-1), |to| json!(to));
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"resources": {"gpu": gpu}}});
            client.send(Method::MergePatch, &path, &patch)?
        }
    };
    Ok(answer(&reply))
}
