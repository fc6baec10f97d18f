//! Slurm by what lies on the node (map files, control groups, titles of its daemons, environments), and by a controller that is a script.

use crate::holders::node::{BOOTED_AT_S, Node, write_program};
use cardhour_collector::holders::{ControllerSettings, Scheduling};
use std::fs;

const NOW: i64 = BOOTED_AT_S + 10_000;

fn node() -> Node {
    let mut node = Node::new("abcd");
    node.has_slurm = true;
    node.scheduling = Scheduling::Scheduled;
    node
}

fn map(node: &Node, file: &str, text: &str, written_s: i64) {
    let path = node.path("jobmap").join(file);
    fs::write(&path, text).unwrap();
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(written_s as u64);
    fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

/// S16 and S01 on a node's own files: Slurm's 0 and 1 are /dev/nvidia0 and 1, the driver's last two cards.
#[test]
fn s16_map_files_hold_cards_without_any_process() {
    let node = node();
    map(&node, "0", "22\n", NOW - 50);
    map(&node, "1", "22\n", NOW - 50);
    let run = format!("22 b{} prolog_map 1 -", NOW - 50);
    let seen = node.look(&mut node.looker(), NOW);
    assert_eq!(seen.held, [format!("c {run}"), format!("d {run}")]);
    assert_eq!(seen.watched, "abcd");
    // The epilog takes them away.
    fs::remove_file(node.path("jobmap/0")).unwrap();
    fs::remove_file(node.path("jobmap/1")).unwrap();
    assert_eq!(node.look(&mut node.looker(), NOW + 30).held, Vec::<String>::new());
}

#[test]
fn a_file_from_before_the_boot_is_of_a_job_that_is_no_more() {
    let node = node();
    map(&node, "0", "22\n", BOOTED_AT_S - 100);
    let seen = node.look(&mut node.looker(), NOW);
    assert_eq!((seen.held, seen.events), (vec![], vec!["stale_map 0 names job 22, which is no more".to_owned()]));
}

#[test]
fn the_longer_line_says_start_user_and_account() {
    let mut node = node();
    node.rules.accounts.push(cardhour_collector::owners::Grant {
        name: "research".into(),
        org: Some("science".into()),
        project: Some("nlp".into()),
        allowed: vec![],
    });
    map(&node, "0", "22 1 1700009000 1000 research\n23 0 1700009500 1001 prod\n", NOW - 50);
    let seen = node.look(&mut node.looker(), NOW);
    assert_eq!(seen.held, ["d 22 b1700009000 prolog_map - alice", "d 23 b1700009500 prolog_map - bob"]);
}

/// S14: Slurm's own daemon says its job in its title, whatever the control groups are called; a form that isn't known is told.
#[test]
fn s14_without_readable_groups_the_daemons_title_names_the_job() {
    let mut node = node();
    node.process(300, "slurmstepd", 1, 0, "/system.slice/slurmd.service", "", "slurmstepd:_[22.batch]");
    fs::write(node.path("proc/300/cmdline"), "slurmstepd: [22.batch]").unwrap();
    let environ = "SLURM_JOB_ID=22 SLURM_JOB_GPUS=2,3 CUDA_VISIBLE_DEVICES=0,1 SLURM_JOB_ACCOUNT=rich";
    node.process(301, "slurm_script", 300, 1000, "/system.slice/slurmd.service", environ, "/bin/bash slurm_script");
    node.process(302, "python", 301, 1000, "/system.slice/slurmstepd.scope/alloc-1/x", environ, "python");
    node.on('a', 302);
    let seen = node.look(&mut node.looker(), NOW);
    let run = format!("22 b{} cgroup 1 alice", BOOTED_AT_S + 300);
    assert_eq!(seen.held, [format!("a {run}"), format!("b {run}")]);
    assert_eq!(seen.events, ["unknown_cgroup /system.slice/slurmstepd.scope/alloc-1/x"]);
    assert_eq!(seen.worked, ["a 22 1 - - -", "b 22 0 - - -"]);
}

#[test]
fn a_daemon_of_slurm_that_is_not_roots_is_believed_nothing() {
    let mut node = node();
    node.process(300, "slurmstepd", 1, 1001, "/", "", "x");
    fs::write(node.path("proc/300/cmdline"), "slurmstepd: [22.batch]").unwrap();
    node.process(301, "bash", 300, 1001, "/", "SLURM_JOB_ID=22 SLURM_JOB_GPUS=0,1,2,3", "bash");
    assert_eq!(node.look(&mut node.looker(), NOW).held, Vec::<String>::new());
}

/// Groups prove the job; what its environment says of another job is told and not followed.
#[test]
fn s15_control_groups_of_both_versions_name_the_job() {
    let mut node = node();
    let v1 = "/slurm_n1/uid_1000/job_22/step_batch/task_0";
    node.process(301, "python", 1, 1000, v1, "SLURM_JOB_ID=22 SLURM_JOB_GPUS=0", "python");
    let v2 = "/system.slice/n1_slurmstepd.scope/job_23/step_0/user/task_0";
    node.process(302, "python", 1, 1001, v2, "SLURM_JOB_ID=99 SLURM_JOB_GPUS=1,2,3", "python");
    node.on('d', 301);
    node.on('b', 302);
    let seen = node.look(&mut node.looker(), NOW);
    let start = |pid: i64| BOOTED_AT_S + pid;
    assert_eq!(
        seen.held,
        [format!("b 23 b{} cgroup - bob", start(302)), format!("d 22 b{} cgroup 1 alice", start(301))]
    );
    assert_eq!(seen.events, ["disagreement a process of job 23 says it is of job 99"]);
}

/// S18: the next job's process runs before the old job's card is given back: one holder of the card, and an event.
#[test]
fn s18_a_job_on_a_card_given_to_another_does_not_hold_it() {
    let mut node = node();
    map(&node, "0", "22\n", NOW - 50);
    map(&node, "1", "23\n", NOW - 40);
    node.process(302, "python", 1, 1001, "/slurm/uid_1001/job_23/step_0", "SLURM_JOB_ID=23 SLURM_JOB_GPUS=1", "python");
    node.on('d', 302);
    let seen = node.look(&mut node.looker(), NOW);
    let held = [format!("c 23 b{} prolog_map 1 bob", NOW - 40), format!("d 22 b{} prolog_map 1 -", NOW - 50)];
    assert_eq!(seen.held, held);
    assert_eq!(seen.events, ["foreign_process 23 uses it, and it was given to lab/22"]);
}

/// S11: the same files give the same rows to a collector that starts now.
#[test]
fn s11_a_collector_that_starts_in_the_middle_finds_the_same() {
    let mut node = node();
    map(&node, "0", "22\n", NOW - 50);
    node.process(301, "python", 1, 1000, "/slurm/uid_1000/job_22/step_0", "SLURM_JOB_ID=22 SLURM_JOB_GPUS=0", "python");
    node.on('d', 301);
    let mut looker = node.looker();
    let first = node.look(&mut looker, NOW);
    assert_eq!(node.look(&mut looker, NOW + 30).held, first.held);
    assert_eq!(node.look(&mut node.looker(), NOW + 60).held, first.held);
}

/// A controller that has what the file `list` says, and knows job 22 alone.
fn with_controller(node: &mut Node) {
    let (squeue, scontrol) = (node.path("squeue"), node.path("scontrol"));
    write_program(&squeue, &format!("cat {} || exit 1", node.path("list").display()));
    let job = "JobId=22 JobName=x\\n   UserId=alice(1000) GroupId=x(1)\\n   Account=research QOS=normal\\n   JobState=RUNNING Reason=None\\n   \
               StartTime=1700009000 EndTime=1\\n   Partition=gpu\\n   JOB_GRES=gpu:2\\n     Nodes=n1 CPU_IDs=0 Mem=1 GRES=gpu:2(IDX:0-1)\\n   MinCPUsNode=1\\n";
    write_program(
        &scontrol,
        &format!("case $* in --version) echo slurm 22.05.8;; *22) printf '{job}';; *) exit 1;; esac"),
    );
    let timeout = std::time::Duration::from_secs(30);
    node.controller = Some(ControllerSettings { squeue, scontrol, timeout, ..ControllerSettings::default() });
}

fn list(node: &Node, jobs: &str) {
    fs::write(node.path("list"), jobs).unwrap();
}

/// K05, S21: the seconds of a job's end are its own, and no more than one look comes after them.
#[test]
fn s21_a_job_holds_while_its_epilog_runs_and_is_gone_at_the_next_look() {
    let mut node = node();
    with_controller(&mut node);
    map(&node, "0", "22\n", NOW - 50);
    list(&node, "22|RUNNING|1700009000\n");
    let mut looker = node.looker();
    let run = "22 b1700009000 scheduler 1 alice";
    let held = [format!("c {run}"), format!("d {run}")];
    assert_eq!(node.look(&mut looker, NOW).held, held);
    fs::remove_file(node.path("jobmap/0")).unwrap();
    list(&node, "22|COMPLETING|1700009000\n");
    for later in [10, 20, 30] {
        assert_eq!(node.look(&mut looker, NOW + later).held, held, "{later}");
    }
    list(&node, "");
    let seen = node.look(&mut looker, NOW + 40);
    assert_eq!((seen.held, seen.watched.as_str()), (vec![], "abcd"));
}

/// S20: what the node sees of a job is life, whatever the controller has lost.
#[test]
fn s20_a_job_that_the_controller_lost_is_held_while_its_processes_live() {
    let mut node = node();
    with_controller(&mut node);
    list(&node, "");
    node.process(301, "python", 1, 1000, "/slurm/uid_1000/job_22/step_0", "SLURM_JOB_ID=22 SLURM_JOB_GPUS=0", "python");
    node.on('d', 301);
    let mut looker = node.looker();
    assert_eq!(node.look(&mut looker, NOW).held.len(), 2, "by what it still says of it");
    node.end(301);
    node.on_devices.clear();
    assert_eq!(node.look(&mut looker, NOW + 30).held, Vec::<String>::new());
}

/// A controller that is away makes nothing free: after its word has aged, cards without other proof are not watched.
#[test]
fn while_the_controller_is_away_cards_are_not_called_free() {
    let mut node = node();
    with_controller(&mut node);
    list(&node, "22|RUNNING|1700009000\n");
    let mut looker = node.looker();
    assert_eq!(node.look(&mut looker, NOW).held.len(), 2);
    fs::remove_file(node.path("list")).unwrap();
    let aged = node.look(&mut looker, NOW + 300);
    assert_eq!((aged.held, aged.watched.as_str()), (vec![], ""));
    assert!(aged.events.iter().any(|event| event.starts_with("source_failed")), "{:?}", aged.events);
}

/// What outlived its job in a session of its own is no job's any more.
#[test]
fn s09_a_process_with_the_environment_of_a_job_that_ended_is_a_process() {
    let mut node = node();
    with_controller(&mut node);
    list(&node, "");
    node.process(301, "python", 1, 1000, "/", "SLURM_JOB_ID=21 SLURM_JOB_GPUS=0,1,2,3", "python");
    node.on('d', 301);
    assert_eq!(node.look(&mut node.looker(), NOW).held, ["d python[301] bootb001b001-301-30100 process - alice"]);
}

#[test]
fn root_in_a_container_cannot_play_slurms_daemon() {
    let mut node = node();
    node.process(300, "slurmstepd", 1, 0, &format!("/docker/{}", "f".repeat(64)), "", "x");
    fs::write(node.path("proc/300/cmdline"), "slurmstepd: [22.batch]").unwrap();
    node.process(301, "bash", 300, 0, "/", "SLURM_JOB_ID=22 SLURM_JOB_GPUS=0,1,2,3", "bash");
    assert_eq!(node.look(&mut node.looker(), NOW).held, Vec::<String>::new());
}
