//! What went wrong in the field, by its number there.

use super::node::{Node, card, findings, held, named, pod, sum};
use cardhour_domain::{CardShare, HolderKind, HolderSource, Name};
use serde_json::json;

/// Four replicas of one card and four pods: 4 × 18,018,000 / 4 parts is one card.
#[test]
fn k01_four_pods_on_one_card_of_four_replicas_have_one_card_together() {
    let forms: [fn(u32) -> String; 3] =
        [|n| format!("GPU-a-b-c-d-e::{n}"), |n| format!("GPU-a-b-c-d-e-{n}"), |n| format!("nvidia3/vgpu{n}")];
    for form in forms {
        let mut node = Node::alone();
        node.devices.0 = card("GPU-a-b-c-d-e", &[]);
        node.devices.0[0].minor = Some(3);
        node.kubelet.offer("nvidia.com/gpu", &(0..4).map(form).collect::<Vec<_>>());
        let lines: Vec<String> = (0..4).map(|n| format!("a/p{n}/c nvidia.com/gpu {}", form(n))).collect();
        node.kubelet.give(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let look = node.look();
        let run = format!("seen{}", node.now_s);
        let expected: Vec<String> = (0..4).map(|n| format!("a/p{n} {run} GPU-a-b-c-d-e 4504500")).collect();
        assert_eq!(held(&look), expected);
        assert_eq!(sum(&look), CardShare::CARD);
        assert_eq!(findings(&look), [""; 0]);
    }
}

#[test]
fn k03_a_new_label_at_each_look_makes_no_new_holder() {
    let mut node = Node::in_cluster();
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    for step in 0..4 {
        let mut labelled = pod("a/p", "u-1", "Running");
        labelled["metadata"]["labels"] = json!({"step": step.to_string()});
        node.store(|store| store.put(labelled));
        node.expect_soon(&["a/p uidu-1 GPU-a 18018000"]);
    }
}

#[test]
fn k04_an_instance_has_its_own_owner() {
    let mut node = Node::alone();
    node.devices.0 = card("GPU-a", &[("MIG-x", 1), ("MIG-y", 3)]);
    node.kubelet.give(&["a/p/c nvidia.com/mig-1g.10gb MIG-x", "b/q/c nvidia.com/mig-3g.40gb MIG-y"]);
    let look = node.look();
    // 18,018,000 × 1/7 and × 3/7.
    let run = format!("seen{}", node.now_s);
    assert_eq!(held(&look), [format!("a/p {run} MIG-x 2574000"), format!("b/q {run} MIG-y 7722000")]);
    for (held, project) in look.held.iter().zip(["a", "b"]) {
        assert_eq!(held.card_uuid, "GPU-a");
        assert_eq!(held.owner.project.as_deref(), Some(project));
        assert_eq!((held.holder.kind, held.source), (HolderKind::Pod, HolderSource::Kubelet));
    }
}

#[test]
fn k05_and_k16_a_pod_that_is_over_holds_nothing_though_the_kubelet_lists_it() {
    for phase in ["Succeeded", "Failed"] {
        let mut node = Node::in_cluster();
        node.store(|store| store.put(pod("a/p", "u-1", "Running")));
        node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
        node.expect(&["a/p uidu-1 GPU-a 18018000"]);
        node.store(|store| store.put(pod("a/p", "u-1", phase)));
        node.expect_soon(&[]);
        // Deleted, and still listed: it doesn't come back.
        node.store(|store| store.delete("a", "p"));
        for _ in 0..5 {
            node.expect(&[]);
        }
    }
}

#[test]
fn k06_the_collectors_own_pod_is_no_holder() {
    let server = super::api_server::Server::start();
    let mut node = Node::new(Some(server), |settings| settings.own_pod = Some(named("mon/cardhour-1")));
    node.store(|store| {
        store.put(pod("mon/cardhour-1", "u-0", "Running"));
        store.put(pod("a/p", "u-1", "Running"));
    });
    node.kubelet.give(&["mon/cardhour-1/c nvidia.com/gpu GPU-a", "a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/p uidu-1 GPU-a 18018000"]);
    assert_eq!(node.look().pods.len(), 1);
}

#[test]
fn k07_a_pod_that_was_given_nothing_is_known_to_those_who_find_its_processes() {
    let mut node = Node::in_cluster();
    node.store(|store| store.put(pod("a/p", "u-1", "Running")));
    let look = node.look();
    assert_eq!(held(&look), [""; 0]);
    let known = &look.pods[0];
    assert_eq!(known.uids, [Name::from("u-1")].into());
    assert_eq!(known.containers, [Name::from("u-1-c")].into());
    assert_eq!(known.holder.key().as_str(), "c1/a%2Fp/uidu-1");
    assert_eq!(known.owner.project.as_deref(), Some("a"));
}

#[test]
fn k08_a_finished_pod_and_its_successor_are_one_owner_of_a_card() {
    let mut node = Node::in_cluster();
    node.store(|store| {
        store.put(pod("a/old", "u-1", "Succeeded"));
        store.put(pod("a/new", "u-2", "Pending"));
    });
    node.kubelet.give(&["a/old/c nvidia.com/gpu GPU-a", "a/new/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/new uidu-2 GPU-a 18018000"]);
}

#[test]
fn k10_pods_of_one_name_in_two_namespaces_are_two_holders() {
    let mut node = Node::in_cluster();
    node.store(|store| {
        store.put(pod("team-a/database-0", "u-a", "Running"));
        store.put(pod("team-b/database-0", "u-b", "Running"));
    });
    node.kubelet.give(&["team-a/database-0/c nvidia.com/gpu GPU-a", "team-b/database-0/c nvidia.com/gpu GPU-b"]);
    node.expect(&["team-a/database-0 uidu-a GPU-a 18018000", "team-b/database-0 uidu-b GPU-b 18018000"]);
}

#[test]
fn k12_a_stateful_set_made_again_has_two_lives_of_one_name() {
    let mut node = Node::in_cluster();
    node.store(|store| store.put(pod("a/db-0", "u-1", "Running")));
    node.kubelet.give(&["a/db-0/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/db-0 uidu-1 GPU-a 18018000"]);
    node.store(|store| {
        store.delete("a", "db-0");
        let mut again = pod("a/db-0", "u-2", "Pending");
        again["status"]["startTime"] = json!("2030-03-17T18:00:00Z");
        store.put(again);
    });
    node.expect_soon(&["a/db-0 uidu-2 GPU-a 18018000"]);
    // 2030-03-17T18:00:00Z is 800 s after 1,900,000,000: the new start, and nothing of the old life.
    assert_eq!(node.look().held[0].holder.started_at.map(|at| at.unix_ms()), Some(1_900_000_800_000));
}

#[test]
fn k14_one_card_in_several_containers_of_a_pod_counts_once() {
    let mut node = Node::alone();
    node.kubelet.give(&[
        "a/p/init nvidia.com/gpu GPU-a",
        "a/p/main nvidia.com/gpu GPU-a",
        "a/p/sidecar nvidia.com/gpu GPU-a",
    ]);
    assert_eq!(sum(&node.look()), CardShare::CARD);
    // The same replica in two containers is one replica; two replicas are two.
    node.kubelet.offer("nvidia.com/gpu", &(0..4).map(|n| format!("GPU-b::{n}")).collect::<Vec<_>>());
    node.kubelet.give(&["a/q/init nvidia.com/gpu GPU-b::1", "a/q/main nvidia.com/gpu GPU-b::1,GPU-b::2"]);
    assert_eq!(sum(&node.look()).parts(), 9_009_000);
}

/// What is used is what lives, counted anew at each look: a pod whose devices couldn't be allotted, and a collector that starts anew, leave nothing
/// behind that would add up.
#[test]
fn k20_what_failed_and_a_new_start_leave_nothing_behind() {
    let mut node = Node::in_cluster();
    node.kubelet.offer("nvidia.com/gpu", &(0..2).map(|n| format!("GPU-a-b-c-d-e::{n}")).collect::<Vec<_>>());
    node.devices.0 = card("GPU-a-b-c-d-e", &[]);
    node.store(|store| {
        store.put(pod("a/p", "u-1", "Running"));
        let mut failed = pod("a/failed", "u-2", "Failed");
        failed["status"]["reason"] = json!("UnexpectedAdmissionError");
        store.put(failed);
    });
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a-b-c-d-e::0", "a/failed/c nvidia.com/gpu GPU-a-b-c-d-e::1"]);
    for _ in 0..3 {
        node.expect(&["a/p uidu-1 GPU-a-b-c-d-e 9009000"]);
        node.restart_collector(|_| {});
    }
    // The failed one is tried again under the same name, many times: one of them lives.
    for n in 3..8 {
        node.store(|store| {
            store.delete("a", "failed");
            store.put(pod("a/failed", &format!("u-{n}"), if n == 7 { "Running" } else { "Failed" }));
        });
    }
    node.expect_soon(&["a/failed uidu-7 GPU-a-b-c-d-e 9009000", "a/p uidu-1 GPU-a-b-c-d-e 9009000"]);
    assert_eq!(sum(&node.look()), CardShare::CARD);
    node.kubelet.give(&[]);
    node.expect(&[]);
}

#[test]
fn k21_a_pod_whose_cards_an_extender_chose_counts_once() {
    let server = super::api_server::Server::start();
    let annotation = "hami.io/vgpu-devices-allocated";
    let mut node = Node::new(Some(server), |settings| settings.sharing.vgpu_annotations = vec![annotation.into()]);
    let mut vgpu = pod("a/p", "u-1", "Running");
    vgpu["metadata"]["annotations"] = json!({annotation: "GPU-b,NVIDIA,1000,25:;"});
    node.store(|store| store.put(vgpu));
    // The kubelet picked a slot of another card, which means nothing.
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a-b-c-d-e-7"]);
    node.expect(&["a/p uidu-1 GPU-b 4504500"]);
}

#[test]
fn a_user_who_writes_such_an_annotation_where_no_extender_is_pays_for_what_he_was_given() {
    let mut node = Node::in_cluster();
    let mut vgpu = pod("a/p", "u-1", "Running");
    vgpu["metadata"]["annotations"] =
        json!({"hami.io/vgpu-devices-allocated": "GPU-b,NVIDIA,1000,1:;", "gpu-fraction": "0.01"});
    node.store(|store| store.put(vgpu));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/p uidu-1 GPU-a 18018000"]);
}

#[test]
fn k22_a_pod_deleted_by_force_holds_while_the_kubelet_has_it_and_no_longer() {
    let mut node = Node::in_cluster();
    node.store(|store| store.put(pod("a/p", "u-1", "Running")));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/p uidu-1 GPU-a 18018000"]);
    node.store(|store| store.delete("a", "p"));
    for _ in 0..5 {
        node.expect(&["a/p uidu-1 GPU-a 18018000"]);
    }
    node.kubelet.give(&[]);
    node.expect(&[]);
}

#[test]
fn k26_a_slot_of_ten_is_a_tenth_of_a_card_and_no_card() {
    let mut node = Node::alone();
    let cards = ["GPU-0-b-c-d-e", "GPU-1-b-c-d-e"];
    let slots: Vec<String> = cards.iter().flat_map(|card| (0..10).map(move |n| format!("{card}-{n}"))).collect();
    node.kubelet.offer("nvidia.com/gpu", &slots);
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-0-b-c-d-e-4", "a/q/c nvidia.com/gpu GPU-1-b-c-d-e-4"]);
    // Two slots of twenty on two cards: 2 × 18,018,000 / 10.
    assert_eq!(sum(&node.look()).parts(), 3_603_600);
}

/// M01: it holds from the moment it was given the card, whether its image comes or not.
#[test]
fn m01_a_pod_whose_image_cannot_be_pulled_holds_its_card() {
    let mut node = Node::in_cluster();
    let mut pending = pod("a/p", "u-1", "Pending");
    pending["status"]["containerStatuses"] =
        json!([{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]);
    node.store(|store| store.put(pending));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/p uidu-1 GPU-a 18018000"]);
}
