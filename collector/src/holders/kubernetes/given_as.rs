//! In which container, and as which replica, pods have devices: for those who show it. Nobody's share follows from it.

use super::attribution::Known;
use super::kubelet_list::PodGrant;
use super::plugin_id::PluginId;
use super::resource_slices::GPU_DRIVER;
use cardhour_domain::Name;
use std::collections::{BTreeMap, BTreeSet};

/// How a pod was given a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenAs {
    /// To which of its containers.
    pub container: Name,
    /// As which slot of a device that several share; none where it was given whole.
    pub replica: Option<u32>,
}

/// By device's UUID and pod (`namespace/name`).
pub type GivenAll = BTreeMap<(Name, Name), BTreeSet<GivenAs>>;

/// How each pod was given each of its devices. What leads to no device is left out, and so is what a scheduler's extender gave: the kubelet doesn't
/// know in which container that is.
pub fn given_as(known: &Known<'_>) -> GivenAll {
    let mut all = GivenAll::new();
    for grant in known.grants.iter().filter(|grant| known.pods.contains_key(&grant.pod)) {
        let pod = Name::from(grant.pod.to_string());
        for (device, given) in of(known, grant) {
            all.entry((device, pod.clone())).or_default().insert(given);
        }
    }
    all
}

fn of<'a>(known: &'a Known<'_>, grant: &'a PodGrant) -> impl Iterator<Item = (Name, GivenAs)> + 'a {
    let ours = grant.devices.iter().filter(|device| known.sharing.resources.has(&device.resource));
    let plugin = ours.filter_map(|device| {
        let PluginId { device: name, replica } = PluginId::parse(&device.id).ok()?;
        let container = device.container.clone()?;
        Some((known.devices.named(&name)?.device_uuid, GivenAs { container, replica }))
    });
    let claimed = grant.claimed.iter().filter(|claimed| claimed.driver == GPU_DRIVER).filter_map(|claimed| {
        let published = known.published.get(&claimed.pool, &claimed.device)?;
        Some((published.uuid.clone(), GivenAs { container: claimed.container.clone(), replica: None }))
    });
    plugin.chain(claimed)
}
