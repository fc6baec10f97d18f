//! What is known of a pod.

use super::kubelet_list::PodName;
use cardhour_domain::{Name, Timestamp};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of a pod that says who pays for it. Who pays is decided elsewhere.
///
/// Of a pod of which the API server hasn't told yet, its name and namespace are known and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Its namespace, which the cluster's administrators granted.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its UID: this pod's and no other's, ever.
    pub uid: Option<Name>,
    /// Its labels, which its user wrote.
    pub labels: BTreeMap<Name, Name>,
    /// Its annotations, which its user wrote; without those longer than [`LONGEST_ANNOTATION`].
    pub annotations: BTreeMap<Name, Name>,
    /// Labels of its namespace, which its administrators wrote; none where nobody asked for them.
    pub namespace_labels: Option<BTreeMap<Name, Name>>,
    /// What made it, first hop only: a ReplicaSet, a Job, a Notebook.
    pub made_by: Option<MadeBy>,
    /// The service account it runs as.
    pub service_account: Option<Name>,
    /// Its queue with Kueue, KAI or Volcano.
    pub queue: Option<Name>,
    /// Where it is in its life.
    pub phase: Option<Phase>,
    /// Its priority class.
    pub priority_class: Option<Name>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When the kubelet took it.
    pub started_at: Option<Timestamp>,
    /// Ids of its containers, without the engine's name.
    pub containers: BTreeSet<Name>,
    /// The UID of its control groups, where that is another: a static pod's, which the API server shows a mirror of.
    pub static_uid: Option<Name>,
}

/// What made a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeBy {
    /// Its kind.
    pub kind: Name,
    /// Its name, in the pod's namespace.
    pub name: Name,
    /// Its UID.
    pub uid: Name,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It has its devices already; its images may still come.
    Pending,
    /// It runs.
    Running,
    /// All its containers ended well, for good.
    Succeeded,
    /// All its containers ended, and not well.
    Failed,
    /// Its node can't be asked.
    Unknown,
}

/// The longest annotation that is kept. Unit: bytes. An annotation may have 256 KiB, and tools leave whole manifests there; what schedulers
/// write of devices is far shorter.
pub const LONGEST_ANNOTATION: usize = 4096;

impl PodFacts {
    /// Of a pod of which no more is known than its name.
    pub fn named(pod: &PodName) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: None,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            namespace_labels: None,
            made_by: None,
            service_account: None,
            queue: None,
            phase: None,
            priority_class: None,
            created_at: None,
            started_at: None,
            containers: BTreeSet::new(),
            static_uid: None,
        }
    }

    /// Its name and namespace.
    pub fn pod(&self) -> PodName {
        PodName { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Whether it is over: its devices are free, whatever the kubelet still lists (kubernetes#79409, #132020).
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Some(Phase::Succeeded | Phase::Failed))
    }
}

/// A pod as the API server tells of it. Read from its JSON; what isn't kept of one pod is gone before the next is read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "PodJson")]
pub struct ToldPod {
    /// The node it is bound to.
    pub node: Option<Name>,
    /// The version of what was told.
    pub version: String,
    /// What is known of it.
    pub facts: PodFacts,
}

/// A pod as the API server writes it; of what it writes, what is read here.
#[derive(Deserialize)]
struct PodJson {
    metadata: MetadataJson,
    #[serde(default)]
    spec: SpecJson,
    #[serde(default)]
    status: StatusJson,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetadataJson {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    creation_timestamp: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    owner_references: Vec<OwnerJson>,
}

#[derive(Deserialize)]
struct OwnerJson {
    kind: String,
    name: String,
    uid: String,
    #[serde(default)]
    controller: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpecJson {
    node_name: Option<String>,
    service_account_name: Option<String>,
    priority_class_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusJson {
    phase: Option<String>,
    start_time: Option<String>,
    #[serde(default)]
    container_statuses: Vec<ContainerJson>,
    #[serde(default)]
    init_container_statuses: Vec<ContainerJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerJson {
    #[serde(rename = "containerID", default)]
    container_id: String,
}

impl From<PodJson> for ToldPod {
    fn from(mut pod: PodJson) -> Self {
        let version = std::mem::take(&mut pod.metadata.resource_version);
        Self { node: pod.spec.node_name.take().map(Name::from), version, facts: pod.facts() }
    }
}

impl PodJson {
    fn facts(self) -> PodFacts {
        let Self { metadata, spec, status } = self;
        let some = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Name::from);
        let time = |text: Option<String>| text.and_then(|text| Timestamp::parse_rfc3339(&text).ok());
        let labels = names(metadata.labels);
        let mut annotations = names(metadata.annotations);
        annotations.retain(|_, value| value.len() <= LONGEST_ANNOTATION);
        let owners = metadata.owner_references;
        let made_by = owners.iter().find(|owner| owner.controller).or(owners.first());
        let made_by = made_by.map(|owner| MadeBy {
            kind: owner.kind.as_str().into(),
            name: owner.name.as_str().into(),
            uid: owner.uid.as_str().into(),
        });
        let containers = status.container_statuses.iter().chain(&status.init_container_statuses);
        let containers = containers.filter_map(|container| container.container_id.split_once("://"));
        let is_mirror = annotations.contains_key("kubernetes.io/config.mirror");
        PodFacts {
            queue: queue(&labels, &annotations),
            static_uid: annotations.get("kubernetes.io/config.hash").filter(|_| is_mirror).cloned(),
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            uid: some(Some(metadata.uid)),
            labels,
            annotations,
            namespace_labels: None,
            made_by,
            service_account: some(spec.service_account_name),
            phase: status.phase.as_deref().and_then(phase),
            priority_class: some(spec.priority_class_name),
            created_at: time(metadata.creation_timestamp),
            started_at: time(status.start_time),
            containers: containers.map(|(_, id)| id.into()).collect(),
        }
    }
}

fn names(texts: BTreeMap<String, String>) -> BTreeMap<Name, Name> {
    texts.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

fn phase(text: &str) -> Option<Phase> {
    match text {
        "Pending" => Some(Phase::Pending),
        "Running" => Some(Phase::Running),
        "Succeeded" => Some(Phase::Succeeded),
        "Failed" => Some(Phase::Failed),
        "Unknown" => Some(Phase::Unknown),
        _ => None,
    }
}

/// Its queue, by the first scheduler that names one.
fn queue(labels: &BTreeMap<Name, Name>, annotations: &BTreeMap<Name, Name>) -> Option<Name> {
    let places = [
        labels.get("kueue.x-k8s.io/queue-name"),
        labels.get("kai.scheduler/queue"),
        annotations.get("scheduling.volcano.sh/queue-name"),
        labels.get("volcano.sh/queue-name"),
    ];
    places.into_iter().flatten().find(|queue| !queue.is_empty()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_who_pays_is_read_and_the_rest_is_passed_over() {
        let long = "x".repeat(LONGEST_ANNOTATION + 1);
        let json = serde_json::json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "train-0", "namespace": "vision", "uid": "u-1", "resourceVersion": "7",
                "creationTimestamp": "2026-03-01T10:00:00Z",
                "labels": {"team": "a", "kueue.x-k8s.io/queue-name": "lq"},
                "annotations": {"note": "b", "kubectl.kubernetes.io/last-applied-configuration": long,
                                "scheduling.volcano.sh/queue-name": "vq"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u-o"},
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-j", "controller": true}],
                "managedFields": [{"manager": "x"}]
            },
            "spec": {"nodeName": "n1", "serviceAccountName": "runner", "priorityClassName": "high",
                     "containers": [{"name": "c"}]},
            "status": {"phase": "Running", "startTime": "2026-03-01T10:00:05Z",
                       "containerStatuses": [{"name": "c", "containerID": "containerd://abc"}, {"name": "d", "containerID": ""}]}
        });
        let pod: ToldPod = serde_json::from_value(json).unwrap();
        assert_eq!((pod.node.as_deref(), &*pod.version), (Some("n1"), "7"));
        let facts = pod.facts;
        assert_eq!(facts.pod(), PodName::new("vision", "train-0"));
        assert_eq!(facts.uid.as_deref(), Some("u-1"));
        assert_eq!(
            facts.annotations.keys().map(|key| &**key).collect::<Vec<_>>(),
            ["note", "scheduling.volcano.sh/queue-name"]
        );
        assert_eq!(facts.made_by.map(|by| (by.kind, by.name)), Some(("Job".into(), "train".into())));
        assert_eq!(facts.service_account.as_deref(), Some("runner"));
        assert_eq!(facts.priority_class.as_deref(), Some("high"));
        assert_eq!(facts.queue.as_deref(), Some("lq"), "Kueue's before Volcano's");
        assert_eq!(facts.phase, Some(Phase::Running));
        // 2026-03-01 is day 20,513 since the epoch: 20,513 × 86,400 + 36,005.
        assert_eq!(facts.started_at, Some(Timestamp::from_unix_s(1_772_359_205)));
        assert_eq!(facts.containers, BTreeSet::from(["abc".into()]));
    }
}
