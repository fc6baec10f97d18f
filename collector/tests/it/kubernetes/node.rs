//! A node to look at, and what a look found, as text.

use super::api_server::{Server, Store};
use cardhour_collector::holders::kubernetes::{
    ApiAddress, ApiSettings, Device, Devices, Finding, Instance, Kubernetes, KubernetesLook, KubernetesSettings,
    PodFacts, PodName,
};
use cardhour_domain::{CardShare, Owner, Timestamp};
use cardhour_test_kubelet::Kubelet;
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;

/// A node with a kubelet, perhaps an API server, and the collector's part that looks at them.
pub struct Node {
    pub kubelet: Kubelet,
    pub server: Option<Server>,
    pub devices: Devices,
    pub kubernetes: Kubernetes,
    pub now_s: i64,
    pub folder: TempDir,
}

/// The step between looks. Unit: seconds.
const STEP_S: i64 = 10;

impl Node {
    /// Without an API server.
    pub fn alone() -> Self {
        Self::new(None, |_| {})
    }

    /// With an API server.
    pub fn in_cluster() -> Self {
        Self::new(Some(Server::start()), |_| {})
    }

    pub fn new(server: Option<Server>, change: impl FnOnce(&mut KubernetesSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubelet = Kubelet::start(folder.path());
        let mut settings = KubernetesSettings::new("c1".into(), "n1".into());
        settings.socket = kubelet.socket.clone();
        settings.socket_timeout = Duration::from_secs(60);
        settings.api = server.as_ref().map(api_settings);
        change(&mut settings);
        let devices = Devices(vec![]);
        Self { kubelet, server, devices, kubernetes: Kubernetes::new(settings).unwrap(), now_s: 1_900_000_000, folder }
    }

    /// Another collector on the same node.
    pub fn restart_collector(&mut self, change: impl FnOnce(&mut KubernetesSettings)) {
        let mut settings = KubernetesSettings::new("c1".into(), "n1".into());
        settings.socket = self.kubelet.socket.clone();
        settings.socket_timeout = Duration::from_secs(60);
        settings.api = self.server.as_ref().map(api_settings);
        change(&mut settings);
        self.kubernetes = Kubernetes::new(settings).unwrap();
    }

    /// Changes what the API server has.
    pub fn store<T>(&self, act: impl FnOnce(&mut Store) -> T) -> T {
        self.server.as_ref().unwrap().with(act)
    }

    /// The next look. What is told of a pod pays for it: its namespace.
    pub fn look(&mut self) -> KubernetesLook {
        self.now_s += STEP_S;
        let owner = |facts: &PodFacts| Owner { project: Some(facts.namespace.clone()), ..Owner::default() };
        self.kubernetes.look(Timestamp::from_unix_s(self.now_s), &self.devices, owner)
    }

    /// Looks until what is held is as expected: an event of a watch may be on its way while a look is made.
    #[track_caller]
    pub fn expect_soon(&mut self, expected: &[&str]) {
        for _ in 0..200 {
            if held(&self.look()) == expected {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(held(&self.look()), expected);
    }

    #[track_caller]
    pub fn expect(&mut self, expected: &[&str]) {
        assert_eq!(held(&self.look()), expected);
    }
}

/// How tests ask an API server: at once again after a failure, and waiting a while for events.
pub fn api_settings(server: &Server) -> ApiSettings {
    let address = ApiAddress { host: "127.0.0.1".into(), port: server.port, ca_file: None, token_file: None };
    let (timeout, settle) = (Duration::from_secs(60), Duration::from_millis(50));
    ApiSettings { timeout, settle, retry_after: Duration::ZERO, ..ApiSettings::new(address) }
}

/// What is held: `namespace/pod run device parts`, by pod and device; `-` for a share that nothing declares.
pub fn held(look: &KubernetesLook) -> Vec<String> {
    let row = |held: &cardhour_collector::holders::Held| {
        let share = held.share.map_or_else(|| "-".to_owned(), |share| share.parts().to_string());
        format!("{} {} {} {share}", held.holder.job_id, held.holder.run, held.device_uuid)
    };
    look.held.iter().map(row).collect()
}

/// All shares, together.
pub fn sum(look: &KubernetesLook) -> CardShare {
    look.held.iter().filter_map(|held| held.share).sum()
}

pub fn findings(look: &KubernetesLook) -> Vec<&'static str> {
    look.findings.iter().map(Finding::name).collect()
}

/// A pod as an API server has it.
pub fn pod(name: &str, uid: &str, phase: &str) -> Value {
    let (namespace, name) = name.split_once('/').unwrap();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": uid, "creationTimestamp": "2030-03-17T17:00:00Z"},
        "spec": {"nodeName": "n1"},
        "status": {"phase": phase, "containerStatuses": [{"name": "c", "containerID": format!("containerd://{uid}-c")}]}
    })
}

/// A card with those instances: their UUIDs and compute slices of seven.
pub fn card(uuid: &str, instances: &[(&str, u32)]) -> Vec<Device> {
    let card = Device::card(&uuid.into());
    let instance = |(uuid, slices): &(&str, u32)| Device {
        device_uuid: (*uuid).into(),
        share: CardShare::from_fraction(*slices, 7).unwrap(),
        instance: Some(Instance { index: None, gpu_instance: None, compute_instance: None }),
        ..card.clone()
    };
    std::iter::once(card.clone()).chain(instances.iter().map(instance)).collect()
}

pub fn named(text: &str) -> PodName {
    let (namespace, name) = text.split_once('/').unwrap();
    PodName::new(namespace, name)
}
