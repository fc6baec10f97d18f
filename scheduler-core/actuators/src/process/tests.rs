//! Real children of this test.

use super::*;
use crate::action::{Action, DecisionId, What};
use crate::guards::{Guards, Mode};
use crate::journal::{Journal, Pasts};
use crate::past::Standing;
use crate::round::{Carrying, Round, round};
use crate::world::Worlds;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

fn processes() -> Processes {
    // Tests run as root too, whose processes are spared otherwise.
    Processes::new(ProcessSettings { lowest_uid: 0, ..ProcessSettings::default() })
}

/// Ended with the test, whatever it comes to.
struct Kid(Child);

impl Drop for Kid {
    fn drop(&mut self) {
        // And whatever it started: it leads a group of its own.
        let group = Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A shell in a session of its own, which has printed a line.
fn shell(script: &str) -> Kid {
    let mut command = Command::new("setsid");
    let mut child = command.args(["sh", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut byte = [0];
    let mut read = || {
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        byte[0]
    };
    while read() != b'\n' {}
    Kid(child)
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_ms(since.as_millis() as i64)
}

fn action(process: ProcessTarget, scope: Scope, deed: ProcessDeed) -> Action {
    let what = What::Process(ProcessAction { process, scope, deed });
    Action { decision: DecisionId::new("d1"), tenant: None, what, deadline: after_s(now(), 60) }
}

fn end(grace_s: u32) -> ProcessDeed {
    ProcessDeed::End { first: Signal::Term, grace_s }
}

/// Carries it to its end.
fn carry(action: &Action, processes: Processes, journal: &mut Pasts) -> Standing {
    let mut world = Worlds { processes: Some(processes), ..Worlds::default() };
    let guards = Guards { mode: Mode::Act, most_an_hour: 10, ..Guards::default() };
    let began = Instant::now();
    loop {
        let mut with = Carrying { world: &mut world, journal, guards: &guards, is_wanted: &|_, _| Ok(()), now: &now };
        match round(action, &mut with).unwrap() {
            Round::Over(standing) => return standing,
            Round::Due(_) => std::thread::sleep(Duration::from_millis(20)),
            other @ (Round::Held { .. } | Round::Blind { .. }) => panic!("{other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(50), "{action:?}");
    }
}

fn steps(journal: &Pasts) -> Vec<Step> {
    let past = Journal::past(journal, &DecisionId::new("d1")).unwrap();
    past.tries.iter().map(|tried| tried.step.clone()).collect()
}

fn refused(target: ProcessTarget, scope: Scope, processes: Processes) -> String {
    match carry(&action(target, scope, end(0)), processes, &mut Pasts::default()) {
        Standing::Refused(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_process_that_ends_at_its_signal_is_never_killed() {
    let kid = shell("trap 'exit 0' TERM; echo; while :; do sleep 0.05; done");
    let target = processes().target(kid.0.id()).unwrap().unwrap();
    let mut journal = Pasts::default();
    assert_eq!(carry(&action(target, Scope::Main, end(30)), processes(), &mut journal), Standing::SeenTrue);
    assert_eq!(steps(&journal), [Step::Signal(Signal::Term)]);
}

#[test]
fn a_process_that_ignores_its_signal_is_killed_after_its_grace() {
    let kid = shell("trap '' TERM; echo; while :; do sleep 0.05; done");
    let target = processes().target(kid.0.id()).unwrap().unwrap();
    let mut journal = Pasts::default();
    assert_eq!(carry(&action(target, Scope::Main, end(1)), processes(), &mut journal), Standing::SeenTrue);
    assert_eq!(steps(&journal), [Step::Signal(Signal::Term), Step::Kill]);
    let tries = &Journal::past(&journal, &DecisionId::new("d1")).unwrap().tries;
    assert!(tries[1].at.ms_since(tries[0].at) >= 1000);
}

#[test]
fn r18_the_main_process_is_signalled_and_what_it_leaves_behind_is_killed_after_the_grace() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    // A loader that notes a signal, and a trainer that ends at once and leaves it behind.
    let script = format!(
        "sh -c 'trap \"echo loader >> {0}\" TERM; while :; do sleep 0.05; done' & trap 'echo trainer >> {0}; exit 0' TERM; echo; while :; do sleep 0.05; done",
        told.display()
    );
    let kid = shell(&script);
    let target = processes().target(kid.0.id()).unwrap().unwrap();
    let session = Scope::Session { id: kid.0.id() };
    let what = ProcessAction { process: target.clone(), scope: session.clone(), deed: end(1) };
    assert!(processes().look(&what).unwrap().others >= 1);
    let mut journal = Pasts::default();
    assert_eq!(carry(&action(target, session, end(1)), processes(), &mut journal), Standing::SeenTrue);
    assert_eq!(steps(&journal), [Step::Signal(Signal::Term), Step::Kill]);
    assert_eq!(std::fs::read_to_string(&told).unwrap(), "trainer\n");
    assert_eq!(processes().look(&what).unwrap(), ProcessSight { is_there: false, others: 0, untouchable: None });
}

#[test]
fn a_warning_is_one_signal() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let kid = shell(&format!("trap 'echo warned >> {}' USR1; echo; while :; do sleep 0.05; done", told.display()));
    let target = processes().target(kid.0.id()).unwrap().unwrap();
    let warn = action(target, Scope::Main, ProcessDeed::Warn(Signal::Usr1));
    let mut journal = Pasts::default();
    assert_eq!(carry(&warn, processes(), &mut journal), Standing::SeenTrue);
    assert_eq!(carry(&warn, processes(), &mut journal), Standing::SeenTrue);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(std::fs::read_to_string(&told).unwrap(), "warned\n");
}

#[test]
fn a_number_that_is_another_process_by_now_is_left_alone() {
    let kid = shell("echo; sleep 60");
    let target = processes().target(kid.0.id()).unwrap().unwrap();
    let earlier = ProcessTarget { start_ticks: target.start_ticks - 1, ..target.clone() };
    assert_eq!(refused(earlier, Scope::Main, processes()), "it ended meanwhile");
    let of_another_boot = ProcessTarget { boot_id: "x".into(), ..target.clone() };
    assert_eq!(refused(of_another_boot, Scope::Main, processes()), "it ended meanwhile");
    assert!(processes().target(kid.0.id()).unwrap().is_some(), "nothing was touched");
    let of_another_user = ProcessTarget { uid: target.uid + 1, ..target };
    assert!(refused(of_another_user, Scope::Main, processes()).contains("is of user"));
}

#[test]
fn what_must_never_be_touched_is_refused() {
    let own = processes().target(std::process::id()).unwrap().unwrap();
    assert!(refused(own, Scope::Main, processes()).contains("this program or what started it"));
    let first = processes().target(1).unwrap().unwrap();
    assert!(refused(first, Scope::Main, processes()).contains("process 1 is never touched"));
    let kid = shell("echo; sleep 60");
    let target = || processes().target(kid.0.id()).unwrap().unwrap();
    let spared =
        ProcessSettings { spared: vec!["sh".into(), "sleep".into()], lowest_uid: 0, ..ProcessSettings::default() };
    assert!(refused(target(), Scope::Main, Processes::new(spared)).contains("which is spared"));
    let users = ProcessSettings { lowest_uid: u32::MAX, ..ProcessSettings::default() };
    assert!(refused(target(), Scope::Main, Processes::new(users)).contains("below 4294967295"));
    // A session that isn't its own: the one that this test is in, say.
    let stat = processes().stat(std::process::id()).unwrap().unwrap();
    let elsewhere = refused(target(), Scope::Session { id: stat.session }, processes());
    assert!(elsewhere.contains("is of session") || elsewhere.contains("this program"), "{elsewhere}");
    assert!(processes().target(kid.0.id()).unwrap().is_some(), "nothing was touched");
}

#[test]
fn all_of_a_group_ends() {
    let kids = [shell("trap '' TERM; echo; while :; do sleep 0.05; done"), shell("echo; exec sleep 60")];
    let folder = tempfile::tempdir().unwrap();
    // A group as the kernel shows one: its processes, a line each.
    let lines: String = kids.iter().map(|kid| format!("{}\n", kid.0.id())).collect();
    std::fs::write(folder.path().join("cgroup.procs"), lines).unwrap();
    let target = processes().target(kids[0].0.id()).unwrap().unwrap();
    let group = |folder: &Path| Scope::Group { folder: folder.to_owned() };
    let elsewhere = refused(target.clone(), group(folder.path()), processes());
    assert!(elsewhere.contains("is no control group"), "{elsewhere}");
    let root = folder.path().parent().unwrap().to_owned();
    let here = Processes::new(ProcessSettings { lowest_uid: 0, group_root: root, ..ProcessSettings::default() });
    let mut journal = Pasts::default();
    assert_eq!(carry(&action(target, group(folder.path()), end(0)), here, &mut journal), Standing::SeenTrue);
    for kid in &kids {
        assert_eq!(processes().target(kid.0.id()).unwrap(), None);
    }
}
