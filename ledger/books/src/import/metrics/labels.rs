//! The labels of a series, and what they say: device, reader, owner.

use super::Setting;
use super::look::Device;
use super::smi_log::bus_id;
use crate::import::mig_type::split_mig_type;
use crate::import::names::printable;
use cardhour_domain::{CardShare, Name};
use std::collections::BTreeMap;

/// Labels by name. An empty value is the same as none.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

/// An instance of a card, as DCGM labels it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The id of the GPU instance.
    pub id: String,
    /// Its profile, such as `1g.10gb`.
    pub profile: Option<Name>,
}

/// A pod as labels name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    /// Its namespace; empty where it isn't told.
    pub namespace: Name,
    /// Its name.
    pub pod: Name,
    /// The container.
    pub container: Option<Name>,
    /// Its uid.
    pub uid: Option<Name>,
}

/// Labels that say what a series is of. All others say who read it.
const OF_DEVICE: [&str; 31] = [
    "__name__",
    "gpu",
    "UUID",
    "uuid",
    "gpu_uuid",
    "device",
    "modelName",
    "model_name",
    "name",
    "Hostname",
    "hostname",
    "pci_bus_id",
    "GPU_I_ID",
    "GPU_I_PROFILE",
    "DCGM_FI_DRIVER_VERSION",
    "driver_version",
    "hpc_job",
    "vgpu",
    "err_code",
    "err_msg",
    "pod",
    "namespace",
    "container",
    "pod_uid",
    "uid",
    "pod_name",
    "pod_namespace",
    "container_name",
    "exported_pod",
    "exported_namespace",
    "exported_container",
];

impl Labels {
    /// The value of a label; none where it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// All that have a value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(_, value)| !value.is_empty())
    }

    fn name(&self, names: &[&str]) -> Option<Name> {
        names.iter().find_map(|name| self.get(name)).map(|value| Name::from(&*printable(value)))
    }

    /// The node: by DCGM's own label, unless that names the exporter's pod, else by that of a relabelling, else the host of `instance`.
    pub fn node(&self, setting: &Setting) -> Option<Name> {
        // An exporter that isn't told its node's name gives its own pod's, which is another one each time it is started.
        let of_dcgm = self.name(&["Hostname", "hostname"]).filter(|host| !names_an_exporter(host));
        let told = of_dcgm.or_else(|| self.name(&["node", "kubernetes_node", "node_name", "nodename"]));
        let host = || {
            let instance = self.get("instance")?;
            let host = instance.rsplit_once(':').map_or(instance, |(host, _)| host);
            Some(Name::from(&*printable(host)))
        };
        told.or_else(host).or_else(|| setting.node.clone()).or_else(|| self.name(&["Hostname", "hostname"]))
    }

    /// The card, on its node. Errors: which of them isn't told.
    ///
    /// nvidia_gpu_exporter writes the UUID without its `GPU-`.
    pub fn card(&self, setting: &Setting) -> Result<Device, &'static str> {
        let node = self.node(setting).ok_or("no label names the node")?;
        if let Some(uuid) = self.name(&["UUID", "uuid", "gpu_uuid"]) {
            if uuid.starts_with("MIG-") {
                return Err("their UUID is that of an instance and doesn't say of which card");
            }
            let is_bare = uuid.len() == 36 && uuid.bytes().all(|c| c == b'-' || c.is_ascii_hexdigit());
            let card = if is_bare { format!("GPU-{uuid}").into() } else { uuid };
            return Ok(Device::card(node, card));
        }
        let place = self.get("pci_bus_id").and_then(bus_id);
        let keys = place.iter().map(|id| &**id).chain(self.get("gpu")).chain(self.get("index"));
        let card = keys.into_iter().find_map(|key| setting.card(&node, key)).cloned();
        card.map(|card| Device::card(node, card)).ok_or("no label holds the card's UUID, and an index is no identity")
    }

    /// The instance, where the series is of one.
    pub fn instance(&self) -> Option<Instance> {
        let id = self.get("GPU_I_ID")?.to_owned();
        Some(Instance { id, profile: self.name(&["GPU_I_PROFILE"]) })
    }

    /// Who read it: what is left of the labels when all is taken off that says what was read.
    pub fn reader(&self) -> Name {
        let of_reader = self.iter().filter(|(name, _)| !OF_DEVICE.contains(name));
        let text: Vec<_> = of_reader.map(|(name, value)| format!("{name}={value}")).collect();
        printable(&text.join(",")).as_ref().into()
    }

    /// The pod that the scrape's own labels pushed aside: with `honor_labels: false` it is the workload, and `pod` is the exporter (R22).
    pub fn pushed_aside(&self) -> Option<Pod> {
        self.pod_by("exported_namespace", "exported_pod", "exported_container")
    }

    /// The pod by the plain labels, old names included.
    pub fn pod(&self) -> Option<Pod> {
        self.pod_by("namespace", "pod", "container")
            .or_else(|| self.pod_by("pod_namespace", "pod_name", "container_name"))
    }

    fn pod_by(&self, namespace: &str, pod: &str, container: &str) -> Option<Pod> {
        Some(Pod {
            pod: self.name(&[pod])?,
            namespace: self.name(&[namespace]).unwrap_or_default(),
            container: self.name(&[container]),
            uid: self.name(&["pod_uid"]),
        })
    }

    /// The model, the driver and the place on the bus.
    pub fn described(&self) -> (Option<Name>, Option<Name>, Option<Name>) {
        let driver = self.name(&["DCGM_FI_DRIVER_VERSION", "driver_version"]);
        (self.name(&["modelName", "model_name", "name"]), driver, self.get("pci_bus_id").and_then(bus_id))
    }
}

/// Whether a pod, container or host is called as exporters are.
pub fn names_an_exporter(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    name.contains("dcgm-exporter") || name.contains("gpu-exporter")
}

/// The share of an instance by its profile and its card's model: 1/7 for `1g.10gb`.
pub fn share_of(profile: &str, model: Option<&str>) -> Option<CardShare> {
    let named = format!("{}_{profile}", model.unwrap_or_default());
    let mig = split_mig_type(&named)?;
    CardShare::from_fraction(mig.compute_slices.into(), mig.card_slices.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let mut labels = Labels::default();
        pairs.iter().for_each(|(name, value)| labels.set(name, value));
        labels
    }

    #[test]
    fn a_card_is_known_by_its_uuid_however_it_is_written() {
        let setting = Setting::of_cluster("c");
        let dcgm = labels(&[("UUID", "GPU-1"), ("Hostname", "n1"), ("instance", "10.0.0.7:9400")]);
        assert_eq!(dcgm.card(&setting), Ok(Device::card("n1".into(), "GPU-1".into())));
        let smi = labels(&[("uuid", "df6e7a7c-7314-46f8-abc4-b88b36dcf3aa"), ("instance", "n2:9835")]);
        assert_eq!(
            smi.card(&setting),
            Ok(Device::card("n2".into(), "GPU-df6e7a7c-7314-46f8-abc4-b88b36dcf3aa".into()))
        );
        assert!(labels(&[("gpu", "0"), ("Hostname", "n1")]).card(&setting).is_err());
        let mut known = setting.clone();
        known.cards.insert("n1/0".to_owned(), "GPU-7".into());
        assert_eq!(
            labels(&[("gpu", "0"), ("Hostname", "n1")]).card(&known),
            Ok(Device::card("n1".into(), "GPU-7".into()))
        );
        assert!(labels(&[("UUID", "GPU-1")]).card(&setting).is_err(), "no node");
    }

    /// Without `NODE_NAME` dcgm-exporter's `Hostname` is that of its pod: after a restart the same card would be on another node.
    #[test]
    fn an_exporters_pod_is_no_node() {
        let setting = Setting { node: Some("n9".into()), ..Setting::of_cluster("c") };
        let node = |pairs: &[(&str, &str)]| labels(pairs).node(&setting).unwrap().to_string();
        let of_pod = ("Hostname", "nvidia-dcgm-exporter-7x2kq");
        assert_eq!(node(&[of_pod, ("node", "n1"), ("instance", "10.0.0.7:9400")]), "n1");
        assert_eq!(node(&[of_pod, ("instance", "10.0.0.7:9400")]), "10.0.0.7");
        assert_eq!(node(&[of_pod]), "n9");
        assert_eq!(node(&[("Hostname", "n2"), ("node", "n1")]), "n2");
        assert_eq!(labels(&[of_pod]).node(&Setting::of_cluster("c")).as_deref(), Some("nvidia-dcgm-exporter-7x2kq"));
    }

    #[test]
    fn a_profile_is_its_slices_of_the_card() {
        assert_eq!(share_of("1g.10gb", Some("NVIDIA A100-SXM4-80GB")), CardShare::from_fraction(1, 7).ok());
        assert_eq!(share_of("2g.12gb", Some("NVIDIA A30")), CardShare::from_fraction(2, 4).ok());
        assert_eq!(share_of("whole", None), None);
    }
}
