//! Pids that come round, vanish, belong elsewhere, or are the collector's own.

use crate::holders::node::{BOOTED_AT_S, Node};
use std::fs;

const NOW: i64 = BOOTED_AT_S + 10_000;

#[test]
fn a_pid_that_came_round_again_is_another_holder() {
    let mut node = Node::new("a");
    node.process(200, "python", 1, 1000, "/", "", "python");
    node.on('a', 200);
    let mut looker = node.looker();
    assert_eq!(node.look(&mut looker, NOW).held, ["a python[200] bootb001b001-200-20000 process - alice"]);
    node.process(200, "python", 1, 1001, "/", "", "python");
    let again = fs::read_to_string(node.path("proc/200/stat")).unwrap().replace(" 20000 ", " 777000 ");
    fs::write(node.path("proc/200/stat"), again).unwrap();
    assert_eq!(node.look(&mut looker, NOW + 30).held, ["a python[200] bootb001b001-200-777000 process - bob"]);
}

/// K05, K16, K22: who is gone holds for one look more at most. K17: and nothing of it is counted.
#[test]
fn k05_k17_a_process_that_vanished_holds_for_one_look_more() {
    let mut node = Node::new("a");
    node.process(200, "python", 1, 1000, "/", "", "python");
    node.on('a', 200);
    let mut looker = node.looker();
    let first = node.look(&mut looker, NOW);
    node.end(200);
    let second = node.look(&mut looker, NOW + 30);
    assert_eq!(second.held, first.held);
    assert_eq!(second.worked, ["a python[200] 0 - - -"]);
    let third = node.look(&mut looker, NOW + 60);
    assert_eq!((third.held, third.watched.as_str()), (vec![], ""));
    assert_eq!(third.events, ["unattributed process 200 is not in /proc"]);
    // The same again isn't told again; when the driver lists it no more, the card is free and watched.
    assert_eq!(node.look(&mut looker, NOW + 90).events, Vec::<String>::new());
    node.on_devices.clear();
    assert_eq!(node.look(&mut looker, NOW + 120).watched, "a");
}

/// C22: ids of another namespace are never looked up, though a process of that number is there.
#[test]
fn c22_and_pitfall_17_in_a_namespace_of_its_own_no_process_is_attributed() {
    let mut node = Node::new("ab");
    node.process(200, "python", 1, 1000, "/", "", "python");
    node.on('a', 200);
    fs::remove_file(node.path("proc/self/ns/pid")).unwrap();
    std::os::unix::fs::symlink("pid:[4026532511]", node.path("proc/self/ns/pid")).unwrap();
    let seen = node.look(&mut node.looker(), NOW);
    assert_eq!((seen.held, seen.worked), (vec![], vec![]));
    assert_eq!(seen.events, ["unattributed processes are not attributed: not in the host's namespace"]);
    assert_eq!(seen.watched, "b", "what has no process is free all the same");
}

/// K06: the collector, others of its container, and the driver's own programs hold nothing.
#[test]
fn k06_the_collector_and_the_drivers_programs_are_never_owners() {
    let mut node = Node::new("ab");
    let pod = "/kubepods/pod00000000-0000-4000-8000-000000000001/".to_owned() + &"d".repeat(64);
    node.process(99_999, "cardhour-collec", 1, 0, &pod, "", "cardhour-collector");
    node.process(300, "nvidia-smi", 1, 0, &pod, "", "nvidia-smi");
    node.process(301, "nvidia-cuda-mps-server", 1, 0, "/", "", "nvidia-cuda-mps-server");
    node.on('a', 99_999);
    node.on('a', 300);
    node.on('b', 301);
    let seen = node.look(&mut node.looker(), NOW);
    assert_eq!((seen.held, seen.events, seen.watched.as_str()), (vec![], vec![], "ab"));
    // A person's program of that name is one like any other.
    node.process(301, "nvidia-cuda-mps-server", 1, 1000, "/", "", "x");
    assert_eq!(node.look(&mut node.looker(), NOW).held.len(), 1);
}

/// K10: a pod is known by its UID, never by its name; one that isn't known yet makes its card unwatched, not free.
#[test]
fn k10_a_process_of_a_pod_is_its_pods_by_uid() {
    use cardhour_collector::holders::Claimant;
    use cardhour_domain::{Holder, HolderKind, Name, Owner};
    let mut node = Node::new("ab");
    let uid = |n: u32| format!("00000000-0000-4000-8000-00000000000{n}");
    for n in [1, 2] {
        let group = format!("/kubepods/burstable/pod{}/{}", uid(n), "e".repeat(64));
        node.process(200 + n, "python", 1, 0, &group, "SLURM_JOB_ID=7", "python");
        node.on(if n == 1 { 'a' } else { 'b' }, 200 + n);
    }
    let holder = Holder {
        kind: HolderKind::Pod,
        cluster: "lab".into(),
        job_id: "team-a/database-0".into(),
        shown_id: None,
        run: Name::from(format!("uid{}", uid(1))),
        started_at: None,
    };
    node.pods.by_uid.insert(uid(1).into(), Claimant { holder, owner: Owner::default() });
    let seen = node.look(&mut node.looker(), NOW);
    assert_eq!(seen.held, [format!("a team-a/database-0 uid{} cgroup - -", uid(1))]);
    assert_eq!(seen.events, [format!("unattributed a process of pod {}, which isn't known yet", uid(2))]);
    assert_eq!(seen.watched, "a");
}

#[test]
fn a_card_whose_processes_could_not_be_listed_is_not_watched() {
    let mut node = Node::new("ab");
    node.unlisted.insert(crate::holders::node::uuid('a'));
    assert_eq!(node.look(&mut node.looker(), NOW).watched, "b");
}
