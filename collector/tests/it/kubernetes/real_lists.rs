//! Lists that others wrote, and what they come to by hand.

use super::api_server::Server;
use super::node::{Node, card, findings, held};
use cardhour_collector::holders::kubernetes::{Device, KubernetesLook};
use cardhour_domain::CardShare;
use cardhour_test_kubelet::v1;
use prost::Message as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;

/// A file of the shared data folder; none where that is missing.
fn shared(name: &str, test: &str) -> Option<Value> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = std::env::var_os("CARDHOUR_SHARED").map_or_else(|| workspace.join("../shared/data"), PathBuf::from);
    if folder.is_dir() {
        let path = folder.join("k8s-pod-resources").join(name);
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return Some(serde_json::from_slice(&text).unwrap());
    }
    assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "{name}: no shared data folder");
    let _ = writeln!(std::io::stderr(), "skipped: {test} needs the shared data folder");
    None
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The list as the kubelet's own messages.
fn messages(list: &Value) -> Vec<v1::PodResources> {
    let each = |value: &Value| value.as_array().unwrap().clone();
    let devices = |device: &Value| v1::ContainerDevices {
        resource_name: text(&device["resource_name"]),
        device_ids: each(&device["device_ids"]).iter().map(text).collect(),
    };
    let container = |container: &Value| v1::ContainerResources {
        name: text(&container["name"]),
        devices: each(&container["devices"]).iter().map(devices).collect(),
        dynamic_resources: vec![],
    };
    let pod = |pod: &Value| v1::PodResources {
        name: text(&pod["name"]),
        namespace: text(&pod["namespace"]),
        containers: each(&pod["containers"]).iter().map(container).collect(),
    };
    each(&list["pod_resources"]).iter().map(pod).collect()
}

/// The node that such a list is of: all that it names is offered, an instance is as much of a card of its own as its profile says.
fn node_of(pods: Vec<v1::PodResources>, server: Option<Server>) -> Node {
    let mut node = Node::new(server, |_| {});
    let mut offered: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for devices in pods.iter().flat_map(|pod| &pod.containers).flat_map(|container| &container.devices) {
        offered.entry(devices.resource_name.clone()).or_default().extend(devices.device_ids.clone());
    }
    for (resource, ids) in &offered {
        for id in ids {
            let uuid = id.split("::").next().unwrap();
            let slices = resource.strip_prefix("nvidia.com/mig-").map(|profile| profile[..1].parse().unwrap());
            let more: Vec<Device> = match slices {
                Some(slices) => card(&format!("GPU-of-{uuid}"), &[(uuid, slices)]),
                None => card(uuid, &[]),
            };
            let is_new = |device: &Device| !node.devices.0.contains(device);
            let more: Vec<Device> = more.into_iter().filter(is_new).collect();
            node.devices.0.extend(more);
        }
        node.kubelet.offer(resource, &ids.iter().cloned().collect::<Vec<_>>());
    }
    node.kubelet.say(|says| says.pods = pods);
    node
}

/// Parts of cards that each pod has.
fn parts(look: &KubernetesLook) -> BTreeMap<String, i64> {
    let mut parts = BTreeMap::new();
    for held in &look.held {
        *parts.entry(held.holder.job_id.to_string()).or_default() += held.share.map_or(0, CardShare::parts);
    }
    parts
}

#[test]
fn a_list_of_cards_instances_and_replicas_adds_up_as_by_hand() {
    let Some(list) = shared("nvidia-pod-resources.json", "a_list_of_cards_instances_and_replicas_adds_up_as_by_hand")
    else {
        return;
    };
    let pods = messages(&list);
    // What the kubelet would put on the wire is what was read.
    let wire = v1::ListPodResourcesResponse { pod_resources: pods.clone() }.encode_to_vec();
    assert_eq!(v1::ListPodResourcesResponse::decode(&*wire).unwrap().pod_resources, pods);

    let mut node = node_of(pods, None);
    let look = node.look();
    // By hand, in sevenths and halves of 18,018,000:
    // pod11: two whole cards and an instance of 1/7                                     = 2 + 1/7       = 38,610,000
    // pod21: 4 of 8 replicas of an instance of 4/7                                      = 2/7           =  5,148,000
    // pod22: 2 of those 8, 2 of 4 replicas of a card, an instance of 1/7                = 1/7 + 1/2 + 1/7 = 14,157,000
    // pod31: the other 2 of 4, all 3 of another card, a whole card, 2 of those 8        = 1/2 + 1 + 1 + 1/7 = 47,619,000
    let expected =
        [("ns1/pod11", 38_610_000), ("ns2/pod21", 5_148_000), ("ns2/pod22", 14_157_000), ("ns3/pod31", 47_619_000)];
    assert_eq!(parts(&look), expected.map(|(pod, parts)| (pod.to_owned(), parts)).into());
    assert_eq!(findings(&look), [""; 0]);

    // No card is given more than once: replicas of a device add up to it.
    let mut by_device: BTreeMap<String, i64> = BTreeMap::new();
    for held in &look.held {
        *by_device.entry(held.device_uuid.to_string()).or_default() += held.share.unwrap().parts();
    }
    for device in &node.devices.0 {
        let given = by_device.remove(&*device.device_uuid);
        assert!(given.is_none_or(|given| given == device.share.parts()), "{}: {given:?}", device.device_uuid);
    }
    assert!(by_device.is_empty());
}

#[test]
fn of_the_same_list_the_servers_pods_decide_who_is_there() {
    let test = "of_the_same_list_the_servers_pods_decide_who_is_there";
    let (Some(list), Some(pods)) = (shared("nvidia-pod-resources.json", test), shared("pods-metadata.json", test))
    else {
        return;
    };
    let server = Server::start();
    for pod in pods["items"].as_array().unwrap() {
        let mut pod = pod.clone();
        pod["spec"]["nodeName"] = json!("n1");
        server.with(|store| store.put(pod));
    }
    let mut node = node_of(messages(&list), Some(server));
    let look = node.look();
    // pod22 has succeeded, so of the list above pod11, pod21 and pod31 are left. pod21 is in another namespace with the server than with the
    // kubelet: it is held by the name that the kubelet says, and nothing more is known of it.
    let expected = [("ns1/pod11", 38_610_000), ("ns2/pod21", 5_148_000), ("ns3/pod31", 47_619_000)];
    assert_eq!(parts(&look), expected.map(|(pod, parts)| (pod.to_owned(), parts)).into());
    let runs: BTreeSet<&str> = look.held.iter().map(|held| &*held.holder.run).collect();
    let stand_in = format!("seen{}", node.now_s);
    let uid = |at: usize| format!("uid{}", text(&pods["items"][at]["metadata"]["uid"]));
    assert_eq!(runs, BTreeSet::from([uid(0).as_str(), uid(3).as_str(), stand_in.as_str()]));
    assert_eq!(held(&look).len(), look.held.len());
}
