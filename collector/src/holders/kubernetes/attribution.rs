//! Who has which device, and what of it: from what was given to shares of cards.

use super::devices::{Device, Devices};
use super::finding::Finding;
use super::gpu_groups;
use super::kubelet_list::{ClaimedDevice, PluginDevice, PodGrant, PodName};
use super::plugin_id::{DeviceName, PluginId};
use super::pod::PodFacts;
use super::replicas::Replicas;
use super::resource_names::ResourceNames;
use super::resource_slices::{GPU_DRIVER, PublishedDevices};
use super::vgpu_annotation;
use cardhour_domain::{CardShare, Name};
use std::collections::{BTreeMap, BTreeSet};

/// How a site gives its devices out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Resources whose devices are cards.
    pub resources: ResourceNames,
    /// How many replicas a resource's devices have, for kubelets that can't be asked.
    pub replicas: BTreeMap<Name, u32>,
    /// Annotations in which a scheduler's extender writes the cards of a pod: `hami.io/vgpu-devices-allocated`, `volcano.sh/vgpu-ids-new`.
    /// None by default, since without such an extender a user could write one.
    pub vgpu_annotations: Vec<Name>,
    /// Namespaces whose pods hold cards for those that share them.
    pub reservation_namespaces: BTreeSet<Name>,
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            resources: ResourceNames::default(),
            replicas: BTreeMap::new(),
            vgpu_annotations: Vec::new(),
            reservation_namespaces: gpu_groups::RESERVATION_NAMESPACES.into_iter().map(Name::from).collect(),
        }
    }
}

/// All that is known at a look.
#[derive(Debug)]
pub struct Known<'a> {
    /// What the kubelet gave.
    pub grants: &'a [PodGrant],
    /// Pods that are not over, by name.
    pub pods: &'a BTreeMap<PodName, PodFacts>,
    /// The node's devices.
    pub devices: &'a Devices,
    /// Replicas of shared devices.
    pub replicas: &'a Replicas,
    /// Devices of dynamic resource allocation.
    pub published: &'a PublishedDevices,
    /// How the site gives devices out.
    pub sharing: &'a Sharing,
}

/// What pods have: a share of a card, or none where nothing declares one.
pub type Shares = BTreeMap<(PodName, DeviceKey), Option<CardShare>>;

/// A device: its card and its own UUID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey {
    /// The physical card.
    pub card_uuid: Name,
    /// The MIG instance, or the card.
    pub device_uuid: Name,
}

impl DeviceKey {
    fn of(device: &Device) -> Self {
        Self { card_uuid: device.card_uuid.clone(), device_uuid: device.device_uuid.clone() }
    }
}

/// Who has what.
///
/// A device in several containers of a pod counts once, and a device that several pods have is told of each: whose it is where they claim more
/// than it has is for the books. Pods that aren't in `known.pods` hold nothing.
pub fn attribute(known: &Known<'_>) -> (Shares, BTreeSet<Finding>) {
    let mut found = Found { shares: Shares::new(), findings: BTreeSet::new() };
    let shared_claims = shared_claims(known.grants);
    for grant in known.grants {
        let Some(facts) = known.pods.get(&grant.pod) else { continue };
        let ours: BTreeSet<&PluginDevice> =
            grant.devices.iter().filter(|device| known.sharing.resources.has(&device.resource)).collect();
        let mut own = own_devices(known, &grant.pod, &ours, &mut found);
        for claimed in grant.claimed.iter().filter(|claimed| claimed.driver == GPU_DRIVER) {
            add_claimed(known, &grant.pod, claimed, &shared_claims, &mut own, &mut found);
        }
        if !ours.is_empty()
            && let Some(parts) = vgpu_parts(known, facts, &mut found)
        {
            own = parts;
        }
        if known.sharing.reservation_namespaces.contains(&facts.namespace) {
            own = spread_over_group(known, facts, own, &mut found);
        }
        found.shares.extend(own.into_iter().map(|(device, share)| ((grant.pod.clone(), device), share)));
    }
    (found.shares, found.findings)
}

/// What was found so far.
struct Found {
    shares: Shares,
    findings: BTreeSet<Finding>,
}

/// What one pod has.
type Own = BTreeMap<DeviceKey, Option<CardShare>>;

/// What a plugin gave a pod.
fn own_devices(known: &Known<'_>, pod: &PodName, given: &BTreeSet<&PluginDevice>, found: &mut Found) -> Own {
    let mut replicas: BTreeMap<(&Name, DeviceName), BTreeSet<u32>> = BTreeMap::new();
    let mut own = Own::new();
    for device in given {
        let unknown = || Finding::UnknownDevice { pod: pod.clone(), id: device.id.clone() };
        match PluginId::parse(&device.id) {
            Ok(PluginId { device: name, replica: Some(replica) }) => {
                replicas.entry((&device.resource, name)).or_default().insert(replica);
            }
            Ok(PluginId { device: name, replica: None }) => match known.devices.named(&name) {
                Some(whole) => _ = own.insert(DeviceKey::of(&whole), Some(whole.share)),
                None => _ = found.findings.insert(unknown()),
            },
            Err(_) => _ = found.findings.insert(unknown()),
        }
    }
    for ((resource, name), held) in replicas {
        let Some(whole) = known.devices.named(&name) else {
            let ids = given.iter().filter(|d| PluginId::parse(&d.id).is_ok_and(|id| id.device == name));
            found.findings.extend(ids.map(|d| Finding::UnknownDevice { pod: pod.clone(), id: d.id.clone() }));
            continue;
        };
        let configured = known.sharing.replicas.get(resource).copied();
        let share = known.replicas.share(&name, &held, whole.share, configured);
        if share.is_none() {
            found.findings.insert(Finding::UnknownReplicas { device_uuid: whole.device_uuid.clone() });
        }
        // Who has the device itself, too, has no more by its replicas.
        own.entry(DeviceKey::of(&whole)).or_insert(share);
    }
    own
}

/// Claims that several pods have: what they share isn't divided by any number.
fn shared_claims(grants: &[PodGrant]) -> BTreeSet<&PodName> {
    let mut pods: BTreeMap<&PodName, BTreeSet<&PodName>> = BTreeMap::new();
    for grant in grants {
        for claimed in &grant.claimed {
            pods.entry(&claimed.claim).or_default().insert(&grant.pod);
        }
    }
    pods.into_iter().filter(|(_, pods)| pods.len() > 1).map(|(claim, _)| claim).collect()
}

/// What a claim gave a pod.
fn add_claimed(
    known: &Known<'_>,
    pod: &PodName,
    claimed: &ClaimedDevice,
    shared: &BTreeSet<&PodName>,
    own: &mut Own,
    found: &mut Found,
) {
    let published = known.published.get(&claimed.pool, &claimed.device);
    let device = published.and_then(|published| {
        let listed = known.devices.by_uuid(&published.uuid);
        // The driver's slice knows the card of an instance that the library doesn't list; its part of the card stays unknown.
        listed.map(|device| (DeviceKey::of(&device), Some(device.share))).or_else(|| {
            let card_uuid = published.parent_uuid.clone()?;
            Some((DeviceKey { card_uuid, device_uuid: published.uuid.clone() }, None))
        })
    });
    let Some((device, share)) = device else {
        let id = Name::from(format!("{}/{}", claimed.pool, claimed.device));
        found.findings.insert(Finding::UnknownDevice { pod: pod.clone(), id });
        return;
    };
    let is_shared = claimed.share_id.is_some() || shared.contains(&claimed.claim);
    own.insert(device, share.filter(|_| !is_shared));
}

/// What a scheduler's extender wrote of a pod's cards, where the site has one.
fn vgpu_parts(known: &Known<'_>, facts: &PodFacts, found: &mut Found) -> Option<Own> {
    let annotations = known.sharing.vgpu_annotations.iter();
    let (annotation, text) = annotations.filter_map(|name| Some((name, facts.annotations.get(name)?))).next()?;
    let parts = vgpu_annotation::parse(text);
    let cards = parts.and_then(|parts| {
        let with_card = |part: vgpu_annotation::VgpuPart| Some((known.devices.by_uuid(&part.card_uuid)?, part));
        parts.into_iter().map(with_card).collect::<Option<Vec<_>>>()
    });
    let Some(cards) = cards else {
        found.findings.insert(Finding::UnreadAnnotation { pod: facts.pod(), annotation: annotation.clone() });
        return None;
    };
    let mut own = Own::new();
    for (card, part) in cards {
        let more = part.share(card.memory_bytes);
        let sum = own.entry(DeviceKey::of(&card)).or_insert(Some(CardShare::ZERO));
        // Containers of one pod may have parts of one card, which together are no more than it.
        *sum = sum.zip(more).map(|(sum, more)| (sum + more).min(CardShare::CARD));
    }
    Some(own)
}

/// Gives what a reservation pod holds to those for whom it does. Where none of them is known, the reservation itself holds it: nobody else can
/// have the card.
fn spread_over_group(known: &Known<'_>, reservation: &PodFacts, mut own: Own, found: &mut Found) -> Own {
    if own.is_empty()
        && let Some(card) = gpu_groups::reserved_uuid(reservation).and_then(|uuid| known.devices.by_uuid(uuid))
    {
        own.insert(DeviceKey::of(&card), Some(card.share));
    }
    let Some(group) = gpu_groups::reserved_group(reservation) else { return own };
    let is_user = |pod: &&PodFacts| !known.sharing.reservation_namespaces.contains(&pod.namespace);
    let users: Vec<&PodFacts> =
        known.pods.values().filter(is_user).filter(|pod| gpu_groups::is_in(pod, group)).collect();
    if users.is_empty() {
        return own;
    }
    for device in own.keys() {
        let memory_bytes = known.devices.by_uuid(&device.device_uuid).and_then(|device| device.memory_bytes);
        for user in &users {
            let share = gpu_groups::declared(user, memory_bytes);
            found.shares.insert((user.pod(), device.clone()), share);
        }
    }
    Own::new()
}
