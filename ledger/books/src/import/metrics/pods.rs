//! Whom owner labels name: the pod that has the card, and not the exporter that tells of it.

use super::Setting;
use super::labels::{Labels, Pod, names_an_exporter};
use super::look::{Device, RUN_BY_LABEL, Sighting};
use crate::import::names::printable;
use cardhour_domain::{CardShare, Holder, HolderKind, HolderSource, Name, Owner, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What the labels of a series say of an owner, not yet judged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// What would be held.
    pub device: Device,
    /// By `pod`, `namespace`, `container`.
    pub plain: Option<Pod>,
    /// By `exported_pod`, `exported_namespace`, `exported_container`.
    pub pushed_aside: Option<Pod>,
    /// By `hpc_job`.
    pub job: Option<Name>,
    /// The scrape job that tells so: whether owners are pushed aside is its setting.
    pub scrape_job: Option<Name>,
    /// The instance's profile.
    pub mig_profile: Option<Name>,
    /// Its share of the card.
    pub share: Option<CardShare>,
}

type PodName = (Name, Name);

/// What kube-state-metrics tells of pods. Empty: it wasn't asked.
///
/// Two kube-state-metrics tell the same twice, which is once here (M15).
#[derive(Clone, Debug, Default)]
pub struct Pods {
    uids: BTreeMap<PodName, BTreeMap<Name, BTreeSet<Timestamp>>>,
    over: BTreeMap<PodName, BTreeSet<(Option<Name>, Timestamp)>>,
    labels: BTreeMap<PodName, BTreeMap<String, Name>>,
    with_cards: BTreeSet<PodName>,
    /// When kube-state-metrics told of pods on each of its nodes.
    nodes: BTreeMap<Name, BTreeSet<Timestamp>>,
    /// When a pod had asked for cards, and on which node it was.
    asked: BTreeMap<(PodName, Name), BTreeSet<Timestamp>>,
}

impl Pods {
    /// A pod was there at these instants, under this uid: `kube_pod_info`.
    pub fn was_there(&mut self, labels: &Labels, instants: impl IntoIterator<Item = Timestamp>) {
        let (Some(pod), Some(uid)) = (name_of(labels), labels.get("uid")) else { return };
        let instants: Vec<Timestamp> = instants.into_iter().collect();
        if let Some(node) = node_of(labels) {
            self.nodes.entry(node).or_default().extend(&instants);
        }
        self.uids.entry(pod).or_default().entry(Name::from(&*printable(uid))).or_default().extend(instants);
    }

    /// A pod was over at these instants: `kube_pod_status_phase` of Succeeded and Failed (K08).
    pub fn was_over(&mut self, labels: &Labels, instants: impl IntoIterator<Item = Timestamp>) {
        let Some(pod) = name_of(labels) else { return };
        let uid = labels.get("uid").map(|uid| Name::from(&*printable(uid)));
        self.over.entry(pod).or_default().extend(instants.into_iter().map(|at| (uid.clone(), at)));
    }

    /// A pod had asked for cards at these instants: `kube_pod_container_resource_requests`.
    pub fn asked_for_cards(&mut self, labels: &Labels, instants: impl IntoIterator<Item = Timestamp>) {
        let Some(pod) = name_of(labels) else { return };
        self.with_cards.insert(pod.clone());
        // One without a node waits for one, and has no card.
        if let Some(node) = node_of(labels) {
            self.asked.entry((pod, node)).or_default().extend(instants);
        }
    }

    /// A pod has labels: `kube_pod_labels`.
    pub fn has_labels(&mut self, labels: &Labels) {
        let Some(pod) = name_of(labels) else { return };
        let known = self.labels.entry(pod).or_default();
        for (label, value) in labels.iter().filter(|(label, _)| label.starts_with("label_")) {
            let value = Name::from(&*printable(value));
            // Of two values over time the same one, whichever came first.
            known.entry(label.to_owned()).and_modify(|kept| *kept = kept.clone().min(value.clone())).or_insert(value);
        }
    }

    /// Judges candidates: who of them holds what they name, and what people should know.
    pub fn sightings(
        &self,
        candidates: BTreeMap<Candidate, BTreeSet<Timestamp>>,
        setting: &Setting,
    ) -> (Vec<Sighting>, Vec<String>) {
        let pushing: BTreeSet<Option<Name>> = candidates
            .keys()
            .filter(|candidate| candidate.pushed_aside.is_some())
            .map(|candidate| candidate.scrape_job.clone())
            .collect();
        let mut sightings = Vec::new();
        let mut notes = BTreeSet::new();
        if !pushing.is_empty() {
            notes.insert(
                "owners are taken from exported_pod: the scrape sets honor_labels to false, so that pod names the exporter".to_owned(),
            );
        }
        for (candidate, instants) in candidates {
            if let Some(job) = &candidate.job {
                let holder = Holder {
                    kind: HolderKind::SlurmJob,
                    cluster: setting.cluster.clone(),
                    job_id: Name::from(&*printable(job)),
                    shown_id: None,
                    run: RUN_BY_LABEL.into(),
                    started_at: None,
                };
                let owner = Owner::default();
                sightings.extend(
                    instants.iter().map(|at| sighting(&candidate, &holder, &owner, HolderSource::PrologMap, *at)),
                );
            }
            let is_pushed = pushing.contains(&candidate.scrape_job);
            let pod = if is_pushed { &candidate.pushed_aside } else { &candidate.plain };
            let Some(pod) = pod else { continue };
            match self.refusal(pod) {
                Some(why) => {
                    notes.insert(format!("{}/{} is not taken as an owner: {why}", pod.namespace, pod.pod));
                }
                None => {
                    let held = instants.iter().filter(|at| !self.is_over(pod, **at));
                    sightings.extend(held.map(|at| self.of_pod(&candidate, pod, *at, setting)));
                }
            }
        }
        (sightings, notes.into_iter().collect())
    }

    /// Of `cards` at instants those of which every holder is known.
    ///
    /// kube-state-metrics told of the card's node then, and each pod that it says had asked for cards on that node was seen on one: so the
    /// exporter does tell of pods, and left none out. What takes a card without asking Kubernetes for it can't be known by this.
    pub fn looked(&self, cards: BTreeSet<(Device, Timestamp)>, sightings: &[Sighting]) -> Vec<(Device, Timestamp)> {
        if self.nodes.is_empty() {
            return Vec::new();
        }
        let pods = sightings.iter().filter(|sighting| sighting.holder.kind == HolderKind::Pod);
        let seen: BTreeSet<(&str, Timestamp)> =
            pods.map(|sighting| (sighting.holder.job_id.as_str(), sighting.at)).collect();
        let mut missed: BTreeSet<(&Name, Timestamp)> = BTreeSet::new();
        for ((name, node), instants) in &self.asked {
            let (namespace, pod) = name;
            let (id, pod) = (
                format!("{namespace}/{pod}"),
                Pod { namespace: namespace.clone(), pod: pod.clone(), container: None, uid: None },
            );
            let missing =
                instants.iter().filter(|at| !seen.contains(&(id.as_str(), **at)) && !self.is_over(&pod, **at));
            missed.extend(missing.map(|at| (node, *at)));
        }
        let is_looked_at = |(card, at): &(Device, Timestamp)| {
            let node = self.nodes.keys().find(|node| is_same_host(node, &card.node));
            node.is_some_and(|node| self.nodes[node].contains(at) && !missed.contains(&(node, *at)))
        };
        cards.into_iter().filter(is_looked_at).collect()
    }

    /// Why a pod can't be the owner (K06, R22).
    fn refusal(&self, pod: &Pod) -> Option<&'static str> {
        if names_an_exporter(&pod.pod) || pod.container.as_deref().is_some_and(names_an_exporter) {
            return Some("it is the exporter itself");
        }
        let name = (pod.namespace.clone(), pod.pod.clone());
        if !self.uids.is_empty() && !self.uids.contains_key(&name) {
            return Some("kube-state-metrics knows no such pod");
        }
        if !self.with_cards.is_empty() && !self.with_cards.contains(&name) {
            return Some("it asked for no card");
        }
        None
    }

    fn is_over(&self, pod: &Pod, at: Timestamp) -> bool {
        let over = self.over.get(&(pod.namespace.clone(), pod.pod.clone()));
        // One that came after it under its name isn't over with it.
        let uid = self.uid(pod, at);
        over.is_some_and(|over| over.contains(&(None, at)) || uid.is_some_and(|uid| over.contains(&(Some(uid), at))))
    }

    /// The uid that the pod's name had at an instant, or nearest to it.
    fn uid(&self, pod: &Pod, at: Timestamp) -> Option<Name> {
        if let Some(uid) = &pod.uid {
            return Some(uid.clone());
        }
        let lives = self.uids.get(&(pod.namespace.clone(), pod.pod.clone()))?;
        let distance = |instants: &BTreeSet<Timestamp>| {
            let before = instants.range(..=at).next_back().map(|before| at.ms_since(*before));
            let after = instants.range(at..).next().map(|after| after.ms_since(at));
            before.into_iter().chain(after).min()
        };
        let over = self.over.get(&(pod.namespace.clone(), pod.pod.clone()));
        let is_over = |uid: &Name| over.is_some_and(|over| over.contains(&(Some(uid.clone()), at)));
        // Of a pod that is over and one that has come after it, the later has the card.
        let nearest = lives.iter().filter_map(|(uid, instants)| Some((distance(instants)?, is_over(uid), uid))).min();
        nearest.map(|(_, _, uid)| uid.clone())
    }

    fn of_pod(&self, candidate: &Candidate, pod: &Pod, at: Timestamp, setting: &Setting) -> Sighting {
        let run = self.uid(pod, at).map_or_else(|| RUN_BY_LABEL.into(), |uid| Name::from(format!("uid{uid}")));
        let holder = Holder {
            kind: HolderKind::Pod,
            cluster: setting.cluster.clone(),
            job_id: format!("{}/{}", pod.namespace, pod.pod).into(),
            shown_id: None,
            run,
            started_at: None,
        };
        let labels = self.labels.get(&(pod.namespace.clone(), pod.pod.clone()));
        let label = |name: &str| labels.and_then(|labels| labels.get(name)).cloned();
        let owner = Owner {
            project: Some(pod.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            queue: ["label_kueue_x_k8s_io_queue_name", "label_kai_scheduler_queue", "label_volcano_sh_queue"]
                .into_iter()
                .find_map(label),
            labels: setting
                .pod_labels
                .iter()
                .filter_map(|name| Some((Name::from(name.as_str()), label(name)?)))
                .collect(),
            ..Owner::default()
        };
        sighting(candidate, &holder, &owner, HolderSource::Kubelet, at)
    }
}

/// The node of a pod, by kube-state-metrics.
fn node_of(labels: &Labels) -> Option<Name> {
    ["exported_node", "node"].into_iter().find_map(|label| labels.get(label)).map(|node| Name::from(&*printable(node)))
}

/// Whether two names are of one machine, one of them perhaps without its domain.
fn is_same_host(a: &str, b: &str) -> bool {
    let is_short_of = |short: &str, long: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    a == b || is_short_of(a, b) || is_short_of(b, a)
}

fn name_of(labels: &Labels) -> Option<PodName> {
    // kube-state-metrics is scraped as anything else: its own labels may have been pushed aside.
    let pod = labels.pushed_aside().or_else(|| labels.pod())?;
    Some((pod.namespace, pod.pod))
}

fn sighting(candidate: &Candidate, holder: &Holder, owner: &Owner, source: HolderSource, at: Timestamp) -> Sighting {
    Sighting {
        device: candidate.device.clone(),
        holder: holder.clone(),
        at,
        source,
        mig_profile: candidate.mig_profile.clone(),
        share: candidate.share,
        owner: owner.clone(),
    }
}
