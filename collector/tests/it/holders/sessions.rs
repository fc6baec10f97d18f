//! Sessions and plain processes.

use crate::holders::node::{BOOTED_AT_S, Node};
use std::fs;

const NOW: i64 = BOOTED_AT_S + 10_000;

#[test]
fn kernels_of_one_notebook_are_one_holder_on_two_cards() {
    let mut node = Node::new("ab");
    let unit = "/system.slice/jupyter-alice-singleuser.service";
    let environ = "JUPYTERHUB_USER=alice INVOCATION_ID=0123456789abcdef0123456789abcdef";
    node.process(100, "jupyterhub-sing", 1, 1000, unit, environ, "python3 /opt/bin/jupyterhub-singleuser");
    node.process(200, "python", 100, 1000, unit, environ, "python -m ipykernel_launcher");
    node.process(201, "python", 100, 1000, unit, environ, "python -m ipykernel_launcher");
    node.on('a', 200);
    node.on('b', 201);
    let seen = node.look(&mut node.looker(), NOW);
    let holder = "jupyter-alice-singleuser.service bootb001b001-0123456789ab process - alice";
    assert_eq!(seen.held, [format!("a {holder}"), format!("b {holder}")]);
    assert_eq!((seen.events, seen.watched.as_str()), (vec![], "ab"));
}

#[test]
fn effort_is_counted_over_the_holders_whole_tree_between_two_looks() {
    let mut node = Node::new("a");
    node.process(100, "torchrun", 1, 1000, "/", "", "torchrun train.py");
    node.process(200, "python", 100, 1000, "/", "", "python train.py");
    node.process(300, "loader", 200, 1000, "/", "", "loader");
    node.on('a', 200);
    let mut looker = node.looker();
    assert_eq!(node.look(&mut looker, NOW).worked, ["a torchrun[100] 1 - - -"]);
    // 30 + 20 ticks of 10 ms; 4000 + 96 bytes.
    node.stat(200, "python", 100, 30, 0);
    node.stat(300, "loader", 200, 20, 0);
    node.io(300, 4000);
    node.io(100, 96);
    assert_eq!(node.look(&mut looker, NOW + 30).worked, ["a torchrun[100] 1 500 4096 false"]);
    assert_eq!(node.look(&mut looker, NOW + 60).worked, ["a torchrun[100] 1 0 0 false"]);
}

/// R11 of the field: a terminal in use is use.
#[test]
fn a_session_is_attended_while_somebody_types_at_its_terminal() {
    let mut node = Node::new("a");
    let scope = "/user.slice/user-1000.slice/session-3.scope";
    node.process(150, "sshd", 1, 0, scope, "", "sshd: alice");
    node.process(160, "bash", 150, 1000, scope, "", "-bash");
    node.process(170, "python", 160, 1000, scope, "", "python");
    for (pid, comm, parent) in [(160, "bash", 150), (170, "python", 160)] {
        node.stat(pid, comm, parent, 0, 6);
    }
    node.on('a', 170);
    let terminal = node.path("dev/pts/5");
    fs::write(&terminal, "").unwrap();
    let typed_at = |at_s: i64| {
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(at_s as u64);
        // The program writes all the time; only what is read counts.
        let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs((at_s + 5000) as u64);
        let times = fs::FileTimes::new().set_accessed(at).set_modified(now);
        fs::File::options().write(true).open(&terminal).unwrap().set_times(times).unwrap();
    };
    typed_at(NOW - 500);
    let mut looker = node.looker();
    assert_eq!(node.look(&mut looker, NOW).held, ["a user-1000/session-3 bootb001b001-session process - alice"]);
    assert_eq!(node.look(&mut looker, NOW + 30).worked, ["a user-1000/session-3 1 0 0 false"]);
    typed_at(NOW + 45);
    assert_eq!(node.look(&mut looker, NOW + 60).worked, ["a user-1000/session-3 1 0 0 true"]);
    assert_eq!(node.look(&mut looker, NOW + 90).worked, ["a user-1000/session-3 1 0 0 false"]);
    // A terminal that can't be seen is no proof that nobody is there.
    fs::remove_file(&terminal).unwrap();
    assert_eq!(node.look(&mut looker, NOW + 120).worked, ["a user-1000/session-3 1 0 0 -"]);
}

/// Of a notebook without a terminal nothing is known: its user types into a browser.
#[test]
fn a_notebook_without_a_terminal_is_neither_attended_nor_left() {
    let mut node = Node::new("a");
    node.process(100, "jupyter-lab", 1, 1000, "/", "", "python3 /opt/bin/jupyter-lab");
    node.process(200, "python", 100, 1000, "/", "", "python -m ipykernel_launcher");
    node.on('a', 200);
    let mut looker = node.looker();
    node.look(&mut looker, NOW);
    assert_eq!(node.look(&mut looker, NOW + 30).worked, ["a jupyter[100] 1 0 0 -"]);
}

#[test]
fn who_logged_in_is_whose_it_is_also_behind_sudo() {
    let mut node = Node::new("a");
    node.process(200, "python", 1, 0, "/", "", "python");
    fs::write(node.path("proc/200/loginuid"), "1001").unwrap();
    node.on('a', 200);
    assert_eq!(node.look(&mut node.looker(), NOW).held, ["a python[200] bootb001b001-200-20000 process - bob"]);
    fs::write(node.path("proc/200/loginuid"), "4321").unwrap();
    assert_eq!(node.look(&mut node.looker(), NOW).held, ["a python[200] bootb001b001-200-20000 process - 4321"]);
}

/// K07: a container that has the card without any scheduler.
#[test]
fn k07_a_container_that_nobody_gave_the_card_is_found_by_its_processes() {
    let mut node = Node::new("ab");
    node.scheduling = cardhour_collector::holders::Scheduling::Scheduled;
    let id = "c".repeat(64);
    node.process(200, "python", 1, 1000, &format!("/system.slice/docker-{id}.scope"), "", "python serve.py");
    node.on('a', 200);
    let seen = node.look(&mut node.looker(), NOW);
    assert_eq!(seen.held, ["a docker/cccccccccccc bootb001b001-container process - alice"]);
    assert_eq!(seen.watched, "ab");
}
