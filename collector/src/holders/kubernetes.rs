//! Who holds the devices of a Kubernetes node.
//!
//! The kubelet says which pod was given what ([`pod_resources`]); the API server says who that pod is ([`api_server`], [`pod`]). What devices the ids
//! mean ([`plugin_id`], [`devices`], [`replicas`], [`resource_slices`]) and who shares them ([`gpu_groups`], [`vgpu_annotation`]) comes
//! together in [`attribution`], which is pure, as is the question which pod has a name now ([`lives`]).
//!
//! Start at [`Kubernetes::look`]. Either side may be away: without the API server pods are known by name, namespace and, by the kubelet's folder
//! of logs ([`pod_folder`]), UID; a kubelet that is slow leaves no hole of a few looks. What it does not do: say who pays, look at processes.

pub mod api_server;
pub mod attribution;
pub mod devices;
pub mod finding;
mod given_as;
pub mod gpu_groups;
pub mod kubelet_list;
pub mod lives;
pub mod plugin_id;
pub mod pod;
pub mod pod_cache;
pub mod pod_folder;
pub mod pod_resources;
pub mod replicas;
pub mod resource_names;
pub mod resource_slices;
pub mod settings;
pub mod vgpu_annotation;
mod wire;

pub use api_server::{ApiAddress, ApiSettings};
pub use attribution::Sharing;
pub use devices::{Device, Devices, Instance};
pub use finding::Finding;
pub use given_as::{GivenAll, GivenAs};
pub use kubelet_list::PodName;
pub use pod::{MadeBy, Phase, PodFacts};
pub use resource_names::ResourceNames;
pub use settings::KubernetesSettings;

use super::Held;
use crate::chain::chain;
use api_server::{ApiError, ApiServer};
use attribution::{Known, attribute};
use cardhour_domain::{Holder, HolderKind, HolderSource, Name, Owner, Timestamp};
use given_as::given_as;
use kubelet_list::PodGrant;
use lives::{Life, Lives, Word};
use plugin_id::PluginId;
use pod_cache::PodCache;
use pod_folder::PodFolder;
use pod_resources::PodResources;
use replicas::Replicas;
use resource_slices::{GPU_DRIVER, PublishedDevices};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// How long what plugins and drivers offer is believed. Unit: milliseconds. It changes when a plugin is set anew; a device that isn't known is
/// asked for sooner.
const OFFER_MS: i64 = 300_000;

/// How long not to ask again for what wasn't told. Unit: milliseconds.
const ASK_AGAIN_MS: i64 = 30_000;

/// A pod of this node, for those who find its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPod {
    /// The UIDs by which its control groups may be named.
    pub uids: BTreeSet<Name>,
    /// Ids of its containers.
    pub containers: BTreeSet<Name>,
    /// Who it is.
    pub holder: Holder,
    /// Who pays.
    pub owner: Owner,
}

/// What one look at a Kubernetes node found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubernetesLook {
    /// Who holds what. Shape: by pod, then by device; one row a pod and device.
    pub held: Vec<Held>,
    /// In which container and as which replica.
    pub given_as: GivenAll,
    /// Pods that are not over, also those without a device.
    pub pods: Vec<KnownPod>,
    /// What is odd. Shape: in order, each once.
    pub findings: BTreeSet<Finding>,
    /// Whether the kubelet spoke, at this look or a few before: only then is free what no pod holds.
    pub is_watched: bool,
}

/// Asks the kubelet and the API server of a node.
#[derive(Debug)]
pub struct Kubernetes {
    settings: KubernetesSettings,
    kubelet: PodResources,
    api: Option<ApiServer>,
    api_failed: Option<Name>,
    slices_failed: Option<Name>,
    cache: PodCache,
    lives: Lives,
    last_list: Option<LastList>,
    replicas: Offer<Replicas>,
    published: Offer<PublishedDevices>,
}

/// What the kubelet last said.
#[derive(Debug)]
struct LastList {
    grants: Vec<PodGrant>,
    /// Containers that each pod then had.
    containers: BTreeMap<PodName, BTreeSet<Name>>,
    looks_ago: u32,
}

/// Something that is asked for now and then.
#[derive(Debug, Default)]
struct Offer<T> {
    told: T,
    told_at: Option<Timestamp>,
    asked_at: Option<Timestamp>,
}

impl<T> Offer<T> {
    /// Whether to ask: what was told is old, or lacks something; and it wasn't asked just now.
    fn is_due(&self, at: Timestamp, lacks: bool) -> bool {
        let is_old = self.told_at.is_none_or(|told| at.ms_since(told) >= OFFER_MS);
        (is_old || lacks) && self.asked_at.is_none_or(|asked| at.ms_since(asked) >= ASK_AGAIN_MS)
    }

    fn take<E>(&mut self, at: Timestamp, answer: Result<T, E>) -> Result<(), E> {
        self.asked_at = Some(at);
        self.told = answer?;
        self.told_at = Some(at);
        Ok(())
    }
}

impl Kubernetes {
    /// Ready to look; nobody is asked yet. Errors: no more file descriptors.
    pub fn new(settings: KubernetesSettings) -> io::Result<Self> {
        let kubelet = PodResources::new(&settings.socket, settings.socket_timeout)?;
        let api = settings.api.clone().map(|api| ApiServer::new(api, settings.node.clone())).transpose()?;
        Ok(Self {
            kubelet,
            api,
            api_failed: None,
            slices_failed: None,
            cache: PodCache::new(settings.node.clone()),
            lives: Lives::default(),
            last_list: None,
            replicas: Offer::default(),
            published: Offer::default(),
            settings,
        })
    }

    /// Looks who holds what now.
    ///
    /// `owner` says who pays, by what is known of a pod. It blocks, while the kubelet and the API server answer, for at most their timeouts.
    pub fn look(&mut self, at: Timestamp, devices: &Devices, owner: impl Fn(&PodFacts) -> Owner) -> KubernetesLook {
        let mut findings = BTreeSet::new();
        let is_fresh = self.refresh_pods(&mut findings);
        let folder = self.settings.log_folder.as_deref().and_then(|folder| PodFolder::read(folder).ok());
        let grants = self.grants(is_fresh, folder.as_ref(), &mut findings);
        let is_watched = grants.is_some();
        let grants = grants.unwrap_or_default();
        self.settle_lives(at, &grants, is_fresh, &folder.unwrap_or_default());
        self.refresh_offers(at, &grants, &mut findings);

        let pods: BTreeMap<PodName, PodFacts> = self.pods_now(&grants);
        let known = Known {
            grants: &grants,
            pods: &pods,
            devices,
            replicas: &self.replicas.told,
            published: &self.published.told,
            sharing: &self.settings.sharing,
        };
        let (shares, odd) = attribute(&known);
        findings.extend(odd);
        let given_as = given_as(&known);
        let owners: BTreeMap<&PodName, Owner> = pods.iter().map(|(pod, facts)| (pod, owner(facts))).collect();
        let claimant = |pod: &PodName| Some((self.holder(pod, self.lives.get(pod)?), owners.get(pod)?.clone()));
        let held = shares.into_iter().filter_map(|((pod, device), share)| {
            let (holder, owner) = claimant(&pod)?;
            let (card_uuid, device_uuid) = (device.card_uuid, device.device_uuid);
            Some(Held { card_uuid, device_uuid, share, source: HolderSource::Kubelet, holder, owner })
        });
        let known_pods = pods.iter().filter_map(|(pod, facts)| {
            let (holder, owner) = claimant(pod)?;
            let uids = facts.uid.iter().chain(&facts.static_uid).cloned().collect();
            Some(KnownPod { uids, containers: facts.containers.clone(), holder, owner })
        });
        KubernetesLook { held: held.collect(), given_as, pods: known_pods.collect(), findings, is_watched }
    }

    /// Brings the cache of pods up to date; whether it is.
    fn refresh_pods(&mut self, findings: &mut BTreeSet<Finding>) -> bool {
        let Some(api) = &mut self.api else { return false };
        match api.refresh(&mut self.cache) {
            Ok(()) => self.api_failed = None,
            // What it failed by stands until it is asked again.
            Err(ApiError::BackingOff) => {}
            Err(error) => self.api_failed = Some(chain(&error).into()),
        }
        findings.extend(self.api_failed.clone().map(Finding::PodsFailed));
        self.api_failed.is_none()
    }

    /// What the kubelet gave; where it can't be asked, what it had given to pods that haven't changed since; none where that is too long ago.
    fn grants(
        &mut self,
        is_fresh: bool,
        folder: Option<&PodFolder>,
        findings: &mut BTreeSet<Finding>,
    ) -> Option<Vec<PodGrant>> {
        match self.kubelet.list() {
            Ok(grants) => {
                let containers =
                    |grant: &PodGrant| Some((grant.pod.clone(), self.cache.get(&grant.pod)?.containers.clone()));
                let containers = grants.iter().filter_map(containers).collect();
                self.last_list = Some(LastList { grants: grants.clone(), containers, looks_ago: 0 });
                Some(grants)
            }
            Err(error) => {
                findings.insert(Finding::KubeletFailed(chain(&error).into()));
                let last = self.last_list.as_mut()?;
                last.looks_ago += 1;
                if last.looks_ago > self.settings.carried_looks {
                    self.last_list = None;
                    return None;
                }
                let (cache, lives) = (&self.cache, &self.lives);
                let is_unchanged = |grant: &PodGrant| {
                    let life = lives.get(&grant.pod);
                    let uid = life.and_then(|life| life.facts.uid.as_ref());
                    if is_fresh {
                        let had = last.containers.get(&grant.pod);
                        return cache.get(&grant.pod).is_some_and(|now| {
                            uid.is_none_or(|uid| now.uid.as_ref() == Some(uid))
                                && had.is_none_or(|had| had.is_subset(&now.containers))
                        });
                    }
                    folder.is_none_or(|folder| uid.is_none() || folder.uid(&grant.pod) == uid)
                };
                Some(last.grants.iter().filter(|grant| is_unchanged(grant)).cloned().collect())
            }
        }
    }

    /// Settles which pod each name is of.
    fn settle_lives(&mut self, at: Timestamp, grants: &[PodGrant], is_fresh: bool, folder: &PodFolder) {
        let mut names = BTreeSet::new();
        for grant in grants {
            let facts = self.cache.get(&grant.pod).filter(|_| is_fresh);
            let folder_uid = folder.uid(&grant.pod);
            self.lives.settle(at, &Word { pod: &grant.pod, grant: Some(grant), facts, folder_uid });
            names.insert(grant.pod.clone());
        }
        for facts in self.cache.iter() {
            let pod = facts.pod();
            if is_fresh && !names.contains(&pod) {
                self.lives.settle(at, &Word { pod: &pod, grant: None, facts: Some(facts), folder_uid: None });
            }
            // While the server is silent, a name whose pod is over may have gone to another.
            if is_fresh || !facts.is_over() {
                names.insert(pod);
            }
        }
        self.lives.keep(&names);
    }

    /// Asks what plugins and drivers offer, where what was given can't be understood without.
    fn refresh_offers(&mut self, at: Timestamp, grants: &[PodGrant], findings: &mut BTreeSet<Finding>) {
        let ours = grants.iter().flat_map(|grant| &grant.devices);
        let ours = ours.filter(|device| self.settings.sharing.resources.has(&device.resource));
        let replicas: Vec<PluginId> =
            ours.filter_map(|device| PluginId::parse(&device.id).ok()).filter(|id| id.replica.is_some()).collect();
        let has = |id: &PluginId| id.replica.is_some_and(|replica| self.replicas.told.has(&id.device, replica));
        if !replicas.is_empty() && self.replicas.is_due(at, !replicas.iter().all(has)) {
            let resources = &self.settings.sharing.resources;
            let offered = self.kubelet.offered().map(|offered| {
                let ours = offered.iter().filter(|device| resources.has(&device.resource));
                Replicas::offered(ours.map(|device| &*device.id))
            });
            // A kubelet that doesn't know leaves the config's counts; shares that neither tells are findings of their own.
            let _ = self.replicas.take(at, offered);
        }
        let claimed: Vec<_> =
            grants.iter().flat_map(|grant| &grant.claimed).filter(|claimed| claimed.driver == GPU_DRIVER).collect();
        let lacks = claimed.iter().any(|claimed| self.published.told.get(&claimed.pool, &claimed.device).is_none());
        if !claimed.is_empty()
            && self.published.is_due(at, lacks)
            && let Some(api) = &mut self.api
        {
            let answer = self.published.take(at, api.published_devices());
            self.slices_failed = answer.err().map(|error| chain(&error).into());
        }
        if !claimed.is_empty() {
            findings.extend(self.slices_failed.clone().map(Finding::SlicesFailed));
        }
    }

    /// Pods that are not over, but for the collector's own.
    fn pods_now(&self, grants: &[PodGrant]) -> BTreeMap<PodName, PodFacts> {
        let names = grants.iter().map(|grant| grant.pod.clone()).chain(self.cache.iter().map(PodFacts::pod));
        let names: BTreeSet<PodName> = names.filter(|pod| self.settings.own_pod.as_ref() != Some(pod)).collect();
        let lives = names.into_iter().filter_map(|pod| Some((self.lives.get(&pod)?.facts.clone(), pod)));
        lives.filter(|(facts, _)| !facts.is_over()).map(|(facts, pod)| (pod, facts)).collect()
    }

    fn holder(&self, pod: &PodName, life: &Life) -> Holder {
        Holder {
            kind: HolderKind::Pod,
            cluster: self.settings.cluster.clone(),
            job_id: Name::from(pod.to_string()),
            shown_id: None,
            run: life.run.clone(),
            started_at: life.facts.started_at,
        }
    }
}
