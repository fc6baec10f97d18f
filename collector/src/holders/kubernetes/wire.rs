//! The kubelet's messages, made from `proto/pod_resources.proto`, and what they say in our words.

#[allow(missing_docs, clippy::all, clippy::pedantic)]
mod v1 {
    include!(concat!(env!("OUT_DIR"), "/v1.rs"));
}

pub(super) use v1::pod_resources_lister_client::PodResourcesListerClient;
pub(super) use v1::{AllocatableResourcesRequest, ListPodResourcesRequest};

use super::kubelet_list::{ClaimedDevice, PluginDevice, PodGrant, PodName};
use cardhour_domain::Name;

impl From<v1::ListPodResourcesResponse> for Vec<PodGrant> {
    fn from(list: v1::ListPodResourcesResponse) -> Self {
        let grants = list.pod_resources.into_iter().map(PodGrant::from);
        // Most pods of a node have no device at all.
        grants.filter(|grant| !(grant.devices.is_empty() && grant.claimed.is_empty())).collect()
    }
}

impl From<v1::PodResources> for PodGrant {
    fn from(pod: v1::PodResources) -> Self {
        let mut devices = Vec::new();
        let mut claimed = Vec::new();
        for container in pod.containers {
            let name = Name::from(container.name);
            devices.extend(container.devices.into_iter().flat_map(|given| plugin_devices(given, Some(&name))));
            claimed.extend(container.dynamic_resources.into_iter().flat_map(|claim| claimed_devices(claim, &name)));
        }
        Self { pod: PodName::new(pod.namespace, pod.name), devices, claimed }
    }
}

/// The ids that plugins offer.
pub(super) fn offered(reply: v1::AllocatableResourcesResponse) -> Vec<PluginDevice> {
    reply.devices.into_iter().flat_map(|offered| plugin_devices(offered, None)).collect()
}

fn plugin_devices(
    devices: v1::ContainerDevices,
    container: Option<&Name>,
) -> impl Iterator<Item = PluginDevice> + use<> {
    let (resource, container) = (Name::from(devices.resource_name), container.cloned());
    let device =
        move |id: String| PluginDevice { resource: resource.clone(), id: id.into(), container: container.clone() };
    devices.device_ids.into_iter().map(device)
}

fn claimed_devices(claim: v1::DynamicResource, container: &Name) -> impl Iterator<Item = ClaimedDevice> + use<> {
    let container = container.clone();
    let name = PodName::new(claim.claim_namespace, claim.claim_name);
    claim.claim_resources.into_iter().map(move |device| ClaimedDevice {
        claim: name.clone(),
        driver: device.driver_name.into(),
        pool: device.pool_name.into(),
        device: device.device_name.into(),
        share_id: device.share_id.map(Name::from),
        container: container.clone(),
    })
}
