//! Devices that several share, and devices of claims.

use super::node::{Node, card, findings, held, pod, sum};
use serde_json::{Value, json};

/// A pod of a group of KAI's.
fn in_group(name: &str, uid: &str, annotations: Value) -> Value {
    let mut pod = pod(name, uid, "Running");
    pod["metadata"]["labels"] = json!({"runai-gpu-group": "g1"});
    pod["metadata"]["annotations"] = annotations;
    pod
}

const RESERVATION: &str = "kai-resource-reservation/gpu-reservation-n1-x";

/// A node whose one card of 80 GiB is KAI's.
fn with_reservation() -> Node {
    let mut node = Node::in_cluster();
    node.devices.0 = card("GPU-a", &[]);
    node.devices.0[0].memory_bytes = Some(80 << 30);
    node.store(|store| store.put(in_group(RESERVATION, "u-r", json!({"run.ai/reserve_for_gpu_index": "GPU-a"}))));
    node.kubelet.give(&[&format!("{RESERVATION}/c nvidia.com/gpu GPU-a")]);
    node
}

#[test]
fn pods_of_a_group_have_their_fractions_and_the_reservation_nothing() {
    let mut node = with_reservation();
    node.store(|store| {
        store.put(in_group("a/half", "u-1", json!({"gpu-fraction": "0.5"})));
        store.put(in_group("b/memory", "u-2", json!({"gpu-memory": "20480"})));
        store.put(in_group("b/over", "u-3", json!({"gpu-fraction": "0.25"})));
    });
    node.store(|store| {
        let mut over = in_group("b/over", "u-3", json!({"gpu-fraction": "0.25"}));
        over["status"]["phase"] = json!("Succeeded");
        store.put(over);
    });
    // A half, and 20,480 of 81,920 MiB.
    node.expect(&["a/half uidu-1 GPU-a 9009000", "b/memory uidu-2 GPU-a 4504500"]);
}

#[test]
fn a_reserved_card_of_which_no_user_is_known_is_held_by_its_reservation() {
    let mut node = with_reservation();
    node.expect(&[&format!("{RESERVATION} uidu-r GPU-a 18018000")]);
    // Nor does a label of a user make a group of a card that isn't reserved.
    let mut node = Node::in_cluster();
    node.store(|store| {
        store.put(in_group("a/mine", "u-1", json!({})));
        store.put(in_group("b/forged", "u-2", json!({"gpu-fraction": "1"})));
    });
    node.kubelet.give(&["a/mine/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/mine uidu-1 GPU-a 18018000"]);
}

#[test]
fn a_pod_on_two_shared_cards_has_a_part_of_each() {
    let mut node = Node::in_cluster();
    for (group, device) in [("g1", "GPU-a"), ("g2", "GPU-b")] {
        let mut reservation = in_group(&format!("kai-resource-reservation/r-{group}"), group, json!({}));
        reservation["metadata"]["labels"] = json!({"runai-gpu-group": group});
        reservation["metadata"]["annotations"] = json!({"run.ai/reserve_for_gpu_index": device});
        node.store(|store| store.put(reservation));
    }
    let mut user = in_group("a/p", "u-1", json!({"gpu-fraction": "0.4", "gpu-fraction-num-devices": "2"}));
    user["metadata"]["labels"] = json!({"runai-gpu-group/g1": "g1", "runai-gpu-group/g2": "g2"});
    node.store(|store| store.put(user));
    node.kubelet.give(&[
        "kai-resource-reservation/r-g1/c nvidia.com/gpu GPU-a",
        "kai-resource-reservation/r-g2/c nvidia.com/gpu GPU-b",
    ]);
    // 0.4 × 18,018,000 of each.
    node.expect(&["a/p uidu-1 GPU-a 7207200", "a/p uidu-1 GPU-b 7207200"]);
}

#[test]
fn replicas_of_an_instance_are_parts_of_its_part_of_the_card() {
    let mut node = Node::alone();
    node.devices.0 = card("GPU-a", &[("MIG-x", 4)]);
    node.kubelet.offer("nvidia.com/mig-4g.20gb", &(0..8).map(|n| format!("MIG-x::{n}")).collect::<Vec<_>>());
    node.kubelet.give(&["a/p/c nvidia.com/mig-4g.20gb MIG-x::0,MIG-x::1", "a/q/c nvidia.com/mig-4g.20gb MIG-x::7"]);
    let run = format!("seen{}", node.now_s + 10);
    // 4/7 of 18,018,000 is 10,296,000: 2/8 and 1/8 of it.
    node.expect(&[&format!("a/p {run} MIG-x 2574000"), &format!("a/q {run} MIG-x 1287000")]);
}

#[test]
fn an_old_kubelet_leaves_shares_to_the_config_and_without_that_undeclared() {
    let mut node = Node::alone();
    node.kubelet.say(|says| says.is_old = true);
    node.kubelet.give(&["a/p/c nvidia.com/gpu.shared GPU-a::1"]);
    let look = node.look();
    assert_eq!(held(&look), [format!("a/p seen{} GPU-a -", node.now_s)]);
    assert_eq!(findings(&look), ["unknown_replicas"]);

    node.restart_collector(|settings| settings.sharing.replicas = [("nvidia.com/gpu.shared".into(), 4)].into());
    assert_eq!(sum(&node.look()).parts(), 4_504_500);
}

#[test]
fn replicas_that_a_plugin_offers_since_it_was_set_anew_are_asked_for() {
    let mut node = Node::alone();
    node.kubelet.offer("nvidia.com/gpu", &["GPU-a::0".into(), "GPU-a::1".into()]);
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a::1"]);
    assert_eq!(sum(&node.look()).parts(), 9_009_000);
    node.kubelet.say(|says| says.offered.clear());
    node.kubelet.offer("nvidia.com/gpu", &(0..4).map(|n| format!("GPU-a::{n}")).collect::<Vec<_>>());
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a::3"]);
    // Asked 10 s ago: not so soon again.
    assert_eq!(findings(&node.look()), ["unknown_replicas"]);
    node.now_s += 30;
    assert_eq!(sum(&node.look()).parts(), 4_504_500);
}

#[test]
fn what_another_resource_gives_is_none_of_ours_and_an_unknown_id_is_told() {
    let mut node = Node::alone();
    node.kubelet.give(&[
        "a/p/c rdma/hca mlx5_0",
        "a/q/c nvidia.com/gpu nonsense",
        "a/r/c nvidia.com/mig-1g.10gb MIG-gone",
    ]);
    let look = node.look();
    assert_eq!(held(&look), [""; 0]);
    assert_eq!(findings(&look), ["unknown_device", "unknown_device"]);
}

fn slice(is_v1: bool, devices: &[(&str, Value)]) -> Value {
    let device = |(name, attributes): &(&str, Value)| match is_v1 {
        true => json!({"name": name, "attributes": attributes}),
        false => json!({"name": name, "basic": {"attributes": attributes}}),
    };
    let devices: Vec<Value> = devices.iter().map(device).collect();
    json!({"metadata": {"name": "n1-gpu"}, "spec": {
        "driver": "gpu.nvidia.com", "nodeName": "n1", "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": devices}})
}

#[test]
fn devices_of_claims_are_found_by_the_slices_of_every_version() {
    for version in ["v1", "v1beta2", "v1beta1"] {
        let mut node = Node::in_cluster();
        node.devices.0 = card("GPU-a", &[("MIG-x", 2)]);
        let devices = [
            ("gpu-0", json!({"type": {"string": "gpu"}, "uuid": {"string": "GPU-b"}})),
            (
                "gpu-1-mig",
                json!({"type": {"string": "mig"}, "uuid": {"string": "MIG-x"}, "parentUUID": {"string": "GPU-a"}}),
            ),
        ];
        node.store(|store| {
            store.slices.insert(version.into(), vec![slice(version != "v1beta1", &devices)]);
            store.put(pod("a/p", "u-1", "Running"));
            store.put(pod("a/q", "u-2", "Running"));
        });
        node.kubelet.give(&[
            "a/p/c claim whole n1/gpu-0",
            "a/p/d claim whole n1/gpu-0",
            "a/q/c claim part n1/gpu-1-mig",
        ]);
        // 2/7 of 18,018,000.
        node.expect(&["a/p uidu-1 GPU-b 18018000", "a/q uidu-2 MIG-x 5148000"]);
    }
}

#[test]
fn a_claim_that_two_pods_share_declares_no_share() {
    let mut node = Node::in_cluster();
    node.store(|store| {
        let devices = [("gpu-0", json!({"uuid": {"string": "GPU-a"}}))];
        store.slices.insert("v1".into(), vec![slice(true, &devices)]);
        store.put(pod("a/p", "u-1", "Running"));
        store.put(pod("a/q", "u-2", "Running"));
    });
    node.kubelet.give(&["a/p/c claim shared n1/gpu-0", "a/q/c claim shared n1/gpu-0"]);
    node.expect(&["a/p uidu-1 GPU-a -", "a/q uidu-2 GPU-a -"]);
}

#[test]
fn two_pods_on_one_whole_card_are_both_told_of() {
    let mut node = Node::alone();
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a", "b/q/c nvidia.com/gpu GPU-a"]);
    assert_eq!(node.look().held.len(), 2);
}
