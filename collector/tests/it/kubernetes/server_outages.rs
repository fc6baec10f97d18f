//! API servers that are away, refuse, forget, or are made anew.

use super::api_server::Server;
use super::node::{Node, findings, held, pod};
use serde_json::json;

#[test]
fn without_an_api_server_pods_are_held_by_name_and_namespace_pays() {
    let mut node = Node::alone();
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    let look = node.look();
    assert_eq!(held(&look), [format!("a/p seen{} GPU-a 18018000", node.now_s)]);
    assert_eq!(look.held[0].owner.project.as_deref(), Some("a"));
    assert_eq!(findings(&look), [""; 0], "it was never there");
}

#[test]
fn a_server_that_comes_late_adds_what_it_knows_and_no_second_holder() {
    let mut node = Node::in_cluster();
    node.store(|store| store.put(pod("a/p", "u-1", "Running")));
    node.server.as_mut().unwrap().stop();
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    let look = node.look();
    let row = format!("a/p seen{} GPU-a 18018000", node.now_s);
    assert_eq!((held(&look), findings(&look)), (vec![row.clone()], vec!["pods_failed"]));
    node.server.as_mut().unwrap().start_anew();
    for _ in 0..3 {
        let look = node.look();
        assert_eq!((held(&look), findings(&look)), (vec![row.clone()], vec![]));
        // Its processes, found by UID, are of the same holder.
        assert_eq!(look.pods.len(), 1);
        assert_eq!(look.pods[0].holder, look.held[0].holder);
        assert!(look.pods[0].uids.contains("u-1"));
    }
}

#[test]
fn while_the_server_is_away_what_it_said_stays() {
    let mut node = Node::in_cluster();
    let mut labelled = pod("a/p", "u-1", "Running");
    labelled["metadata"]["labels"] = json!({"team": "red"});
    node.store(|store| store.put(labelled));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/p uidu-1 GPU-a 18018000"]);
    node.server.as_mut().unwrap().stop();
    for _ in 0..5 {
        node.expect(&["a/p uidu-1 GPU-a 18018000"]);
    }
    assert_eq!(findings(&node.look()), ["pods_failed"]);
    // Another pod comes meanwhile, and one goes that had finished.
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a", "b/q/c nvidia.com/gpu GPU-b"]);
    let run = format!("seen{}", node.now_s + 10);
    node.expect(&["a/p uidu-1 GPU-a 18018000", &format!("b/q {run} GPU-b 18018000")]);
}

#[test]
fn the_kubelets_log_folder_tells_uids_while_the_server_is_away() {
    let mut node = Node::alone();
    let logs = node.folder.path().join("pods");
    std::fs::create_dir_all(logs.join("a_p_u-1")).unwrap();
    let folder = logs.clone();
    node.restart_collector(move |settings| settings.log_folder = Some(folder));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/p uidu-1 GPU-a 18018000"]);
    std::fs::rename(logs.join("a_p_u-1"), logs.join("a_p_u-2")).unwrap();
    node.expect(&["a/p uidu-2 GPU-a 18018000"]);
}

#[test]
fn a_name_that_finished_before_the_server_went_away_is_free_for_another() {
    let mut node = Node::in_cluster();
    node.store(|store| store.put(pod("a/p", "u-1", "Succeeded")));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&[]);
    node.server.as_mut().unwrap().stop();
    node.expect(&[]);
    node.kubelet.give(&[]);
    node.expect(&[]);
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&[&format!("a/p seen{} GPU-a 18018000", node.now_s + 10)]);
}

#[test]
fn a_collector_without_the_right_says_so_and_still_meters() {
    let mut node = Node::in_cluster();
    node.store(|store| store.refusal = Some(403));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    let look = node.look();
    assert_eq!(look.held.len(), 1);
    let told: Vec<String> = look.findings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("/api/v1/pods") && told[0].contains("403"), "{told:?}");
}

#[test]
fn a_server_that_failed_is_left_alone_for_a_while() {
    let server = Server::start();
    let mut api = super::node::api_settings(&server);
    api.retry_after = std::time::Duration::from_secs(3600);
    let mut node = Node::new(Some(server), move |settings| settings.api = Some(api));
    node.store(|store| store.refusal = Some(403));
    for _ in 0..5 {
        assert_eq!(findings(&node.look()), ["pods_failed"]);
    }
    assert_eq!(node.store(|store| store.asked.len()), 1);
}

#[test]
fn watches_that_end_and_versions_that_are_forgotten_lose_no_pod() {
    for refuses_expired in [false, true] {
        let mut node = Node::in_cluster();
        node.store(|store| {
            store.refuses_expired = refuses_expired;
            store.put(pod("a/p", "u-1", "Running"));
        });
        node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a", "a/q/c nvidia.com/gpu GPU-b"]);
        let stand_in = format!("a/q seen{} GPU-b 18018000", node.now_s + 10);
        node.expect(&["a/p uidu-1 GPU-a 18018000", &stand_in]);
        // The watch ends: the next goes on where it was, without a list.
        node.store(|store| {
            store.end_watches();
            store.put(pod("a/p", "u-1", "Succeeded"));
        });
        node.expect_soon(&[&stand_in]);
        assert_eq!(node.store(|store| store.asked_for("resourceVersion=0")), 1);
        // The watch ends, and what happened since is forgotten: the list is read again.
        node.store(|store| {
            store.end_watches();
            store.put(pod("a/q", "u-2", "Succeeded"));
            store.forget();
        });
        node.expect_soon(&[]);
        assert_eq!(node.store(|store| store.asked_for("resourceVersion=0")), 2, "refuses: {refuses_expired}");
    }
}

#[test]
fn a_bookmark_moves_the_version_from_which_a_watch_goes_on() {
    let mut node = Node::in_cluster();
    node.look();
    node.store(super::api_server::Store::bookmark);
    // Looks until the bookmark is read, which nothing but the next watch shows.
    for _ in 0..200 {
        node.look();
        node.store(super::api_server::Store::end_watches);
        node.look();
        if node.store(|store| store.asked_for("resourceVersion=101")) > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    node.store(|store| assert!(store.asked_for("resourceVersion=101") > 0, "{:?}", store.asked));
    node.store(|store| assert_eq!(store.asked_for("resourceVersion=0"), 1));
}

#[test]
fn a_list_in_pages_comes_whole_also_where_a_page_expires() {
    let mut node = Node::in_cluster();
    node.store(|store| {
        (0..7).for_each(|n| store.put(pod(&format!("a/p{n}"), &format!("u-{n}"), "Running")));
        store.page = Some(3);
        store.expiring_pages = 1;
    });
    assert_eq!(node.look().pods.len(), 7);
    node.store(|store| assert!(store.asked_for("continue=at%2B6") == 1, "{:?}", store.asked));
}

#[test]
fn a_server_made_anew_at_the_same_place_is_found_again() {
    let mut node = Node::in_cluster();
    node.store(|store| store.put(pod("a/p", "u-1", "Running")));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a"]);
    node.expect(&["a/p uidu-1 GPU-a 18018000"]);
    for n in 0..3 {
        node.server.as_mut().unwrap().start_anew();
        node.store(|store| store.put(pod("a/p", "u-1", if n % 2 == 0 { "Succeeded" } else { "Running" })));
        let expected: &[&str] = if n % 2 == 0 { &[] } else { &["a/p uidu-1 GPU-a 18018000"] };
        node.expect_soon(expected);
    }
}

#[test]
fn a_token_that_was_renewed_is_read_anew() {
    let server = Server::start();
    server.with(|store| store.token = Some("first".into()));
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, "first\n").unwrap();
    let mut api = super::node::api_settings(&server);
    api.address.token_file = Some(token_file.clone());
    let mut node = Node::new(Some(server), move |settings| settings.api = Some(api));
    node.store(|store| store.put(pod("a/p", "u-1", "Running")));
    assert_eq!(node.look().pods.len(), 1);
    node.store(|store| {
        store.token = Some("second".into());
        store.end_watches();
    });
    // The end of the watch reaches the collector at some look, and then its old token is refused.
    while findings(&node.look()).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::write(&token_file, "second\n").unwrap();
    assert_eq!(findings(&node.look()), [""; 0]);
}

#[test]
fn slices_that_may_not_be_read_are_told_and_all_else_goes_on() {
    let mut node = Node::in_cluster();
    node.store(|store| store.put(pod("a/p", "u-1", "Running")));
    node.kubelet.give(&["a/p/c nvidia.com/gpu GPU-a", "a/p/c2 claim x n1/gpu-0"]);
    for _ in 0..2 {
        let look = node.look();
        assert_eq!(held(&look), ["a/p uidu-1 GPU-a 18018000"]);
        assert_eq!(findings(&look), ["unknown_device", "slices_failed"]);
    }
}
