//! Kubelets that are slow, gone, or made anew.

use super::api_server::{Server, Store};
use super::node::{Node, findings, held, pod};
use cardhour_collector::holders::kubernetes::PodFacts;
use cardhour_collector::holders::kubernetes::pod_resources::{KubeletError, PodResources};
use cardhour_domain::{Owner, Timestamp};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_kubelet_that_starts_anew_is_asked_at_its_new_socket() {
    let mut node = Node::alone();
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    let run = format!("seen{}", node.now_s + 10);
    node.expect(&[&format!("a/p {run} GPU-a 18018000")]);
    for _ in 0..3 {
        node.kubelet.start_anew();
        let look = node.look();
        assert_eq!(held(&look), [format!("a/p {run} GPU-a 18018000")]);
        assert_eq!(findings(&look), [""; 0]);
    }
}

/// Three looks are carried; the fourth says that it doesn't know.
#[test]
fn s27_a_hole_of_a_few_looks_is_none_and_a_longer_one_is_told() {
    let mut node = Node::alone();
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    let row = format!("a/p seen{} GPU-a 18018000", node.now_s + 10);
    node.expect(&[&row]);
    node.kubelet.stop();
    for _ in 0..3 {
        let look = node.look();
        assert_eq!((held(&look), findings(&look), look.is_watched), (vec![row.clone()], vec!["kubelet_failed"], true));
    }
    let look = node.look();
    assert_eq!((held(&look), look.is_watched), (vec![], false));
    // It is back, and after a hole that long nothing says that this is the pod that was.
    node.kubelet.start_anew();
    let look = node.look();
    assert_eq!((held(&look), look.is_watched), (vec![format!("a/p seen{} GPU-a 18018000", node.now_s)], true));
}

#[test]
fn s27_a_slow_kubelet_leaves_no_hole() {
    let mut node = Node::new(None, |settings| settings.socket_timeout = Duration::from_millis(300));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    // The machine of the test may be slow, too.
    while !node.look().is_watched {}
    let row = held(&node.look());
    node.kubelet.say(|says| says.delay = Duration::from_secs(3600));
    let look = node.look();
    assert_eq!((held(&look), findings(&look)), (row, vec!["kubelet_failed"]));
    assert!(
        look.findings.iter().any(|finding| finding.to_string().contains("did not answer within 300ms")),
        "{look:?}"
    );
}

/// Something that happens at the API server.
type Change = fn(&mut Store);

#[test]
fn s27_in_a_hole_nothing_is_carried_of_a_pod_that_changed() {
    let changes: [(&str, Change); 4] = [
        ("over", |store| store.put(pod("a/p", "u-1", "Succeeded"))),
        ("deleted", |store| store.delete("a", "p")),
        ("another of its name", |store| {
            store.delete("a", "p");
            store.put(pod("a/p", "u-2", "Running"));
        }),
        ("another container", |store| {
            let mut again = pod("a/p", "u-1", "Running");
            again["status"]["containerStatuses"] = json!([{"name": "c", "containerID": "containerd://other"}]);
            store.put(again);
        }),
    ];
    for (what, change) in changes {
        println!("{what}");
        let server = Server::start();
        let mut node = Node::new(Some(server), |settings| settings.carried_looks = 1_000_000);
        node.store(|store| {
            store.put(pod("a/p", "u-1", "Running"));
            store.put(pod("b/q", "u-9", "Running"));
        });
        node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a", "b/q/c nvidia.com/gpu GPU-b"]);
        node.expect(&["a/p uidu-1 GPU-a 18018000", "b/q uidu-9 GPU-b 18018000"]);
        node.kubelet.stop();
        node.expect(&["a/p uidu-1 GPU-a 18018000", "b/q uidu-9 GPU-b 18018000"]);
        node.store(change);
        node.expect_soon(&["b/q uidu-9 GPU-b 18018000"]);
    }
}

#[test]
fn what_went_wrong_with_the_kubelet_is_told_apart() {
    let node = Node::alone();
    let nowhere = PodResources::new("/nonexistent/kubelet.sock", Duration::from_secs(60)).unwrap();
    assert!(matches!(nowhere.list(), Err(KubeletError::Unreachable { .. })));

    node.kubelet.say(|says| says.is_old = true);
    let kubelet = PodResources::new(&node.kubelet.socket, Duration::from_secs(60)).unwrap();
    let Err(KubeletError::Refused { status, .. }) = kubelet.offered() else { panic!("an old kubelet doesn't know") };
    assert_eq!(status.code(), tonic::Code::Unimplemented);
    assert_eq!(kubelet.list().unwrap(), []);

    // Somebody at the socket who doesn't speak the protocol.
    let socket = node.folder.path().join("other.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let other = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let other_kubelet = PodResources::new(&socket, Duration::from_secs(60)).unwrap();
    let answer = other_kubelet.list();
    assert!(matches!(answer, Err(KubeletError::Refused { .. } | KubeletError::BrokeOff { .. })), "{answer:?}");
    other.join().unwrap();
}

#[test]
fn a_kubelet_that_was_never_there_watches_nothing() {
    let mut node = Node::alone();
    node.kubelet.stop();
    let look = node.look();
    assert_eq!((held(&look), look.is_watched, findings(&look)), (vec![], false, vec!["kubelet_failed"]));
}

/// A node with as many pods as a kubelet takes, each with all the devices it can have: nothing is cut off.
#[test]
fn a_long_list_comes_whole() {
    let mut node = Node::alone();
    let ids: Vec<String> = (0..48).map(|n| format!("GPU-f124aa59-d406-d45b-9481-8fcd694e6c{n:02}::11")).collect();
    let lines: Vec<String> =
        (0..500).map(|n| format!("a/{}-{n}/c nvidia.com/gpu {}", "x".repeat(200), ids.join(","))).collect();
    node.kubelet.give(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let look = node.kubernetes.look(Timestamp::from_unix_s(1), &node.devices, |_: &PodFacts| Owner::default());
    assert_eq!(look.held.len(), 500 * 48);
}
