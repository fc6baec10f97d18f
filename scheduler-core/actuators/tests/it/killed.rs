//! A program that is killed by KILL at each line of its journal, before and after it is written, and runs again.

use crate::stage::{carry, journal_in, of_job, signals, submit, target, wait_for_state, worlds};
use cardhour_actuators::journal::{Entry, FileJournal, Journal, JournalError};
use cardhour_actuators::past::{Past, Standing};
use cardhour_actuators::slurm::{JobDeed, Reach};
use cardhour_actuators::{Action, DecisionId, Signal};
use cardhour_domain::Timestamp;
use cardhour_test_slurm::{Lab, can_run};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHILD: &str = "CARDHOUR_ACTUATORS_CHILD";

/// Entries of an end with a signal: planned, trying, tried, trying, tried, over.
const ENTRIES: usize = 6;

/// Kills its own program at an entry.
struct Killing {
    inner: FileJournal,
    left: usize,
    is_lost: bool,
}

impl Journal for Killing {
    fn record(&mut self, entry: Entry) -> Result<(), JournalError> {
        if self.left == 0 {
            if !self.is_lost {
                self.inner.record(entry)?;
            }
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            unreachable!("killed");
        }
        self.left -= 1;
        self.inner.record(entry)
    }

    fn past(&self, decision: &DecisionId) -> Option<&Past> {
        self.inner.past(decision)
    }

    fn begun_since(&self, since: Timestamp, tenant: Option<&str>) -> usize {
        self.inner.begun_since(since, tenant)
    }

    fn open(&self) -> Vec<Action> {
        self.inner.open()
    }
}

/// Does nothing in a run of all tests: the test below starts it in a process of its own.
#[test]
fn carried_out_in_a_process_of_its_own() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let task: (Action, PathBuf, PathBuf, usize, bool) = serde_json::from_str(&task).unwrap();
    let (action, journal, conf, left, is_lost) = task;
    let inner = FileJournal::open(&journal).unwrap();
    carry(&mut worlds(conf), &mut Killing { inner, left, is_lost }, &action);
}

fn run_and_be_killed(action: &Action, journal: &Path, lab: &Lab, left: usize, is_lost: bool) {
    let task = serde_json::to_string(&(action, journal, lab.conf(), left, is_lost)).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "killed::carried_out_in_a_process_of_its_own"]).env(CHILD, task);
    let output = command.output().unwrap();
    assert_eq!(output.status.signal(), Some(9), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn killed_at_any_line_and_run_again_a_job_of_a_real_slurm_is_ended_once() {
    if !can_run("killed_at_any_line_and_run_again_a_job_of_a_real_slurm_is_ended_once") {
        return;
    }
    let lab = Lab::up();
    let kills: Vec<(usize, bool)> = (0..ENTRIES).flat_map(|left| [(left, false), (left, true)]).collect();
    let jobs: Vec<u64> = kills.iter().map(|_| submit(&lab, 0, &["-A", "research", "-c", "1", "-t", "10"])).collect();
    std::thread::scope(|scope| {
        for (&(left, is_lost), &job) in kills.iter().zip(&jobs) {
            let lab = &lab;
            scope.spawn(move || end_killed_in_between(lab, job, left, is_lost));
        }
    });
}

fn end_killed_in_between(lab: &Lab, job: u64, left: usize, is_lost: bool) {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal_in(folder.path());
    let deed = JobDeed::End { first: Some((Signal::Usr1, Reach::Batch)), grace_s: 3 };
    let end = of_job("d1", target(lab, job, 0), deed);
    run_and_be_killed(&end, &journal, lab, left, is_lost);

    // The program starts again: what was open is in its journal, or is asked for again.
    let mut journal = FileJournal::open(&journal).unwrap();
    let is_over = journal.past(&end.decision).is_some_and(|past| past.standing.is_over());
    let was_planned = !(left == 0 && is_lost);
    let at = format!("killed at entry {left}, lost {is_lost}");
    assert_eq!(journal.open(), if was_planned && !is_over { vec![end.clone()] } else { vec![] }, "{at}");
    assert_eq!(carry(&mut worlds(lab.conf()), &mut journal, &end), Standing::SeenTrue, "{at}");
    assert_eq!(carry(&mut worlds(lab.conf()), &mut journal, &end), Standing::SeenTrue, "{at}");
    wait_for_state(lab, &job.to_string(), "CANCELLED");
    // Killed between the line and the signal, nobody can tell whether it went out: it isn't sent twice.
    let is_signalled = left != 1 || is_lost;
    let expected: &[&str] = if is_signalled { &["checkpoint", "term"] } else { &["term"] };
    assert_eq!(signals(lab, job), expected, "{at}");
}
