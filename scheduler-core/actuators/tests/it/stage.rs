//! A real Slurm, a journal in a file, and actions that are carried to their end.

use cardhour_actuators::action::What;
use cardhour_actuators::guards::{Guards, Mode};
use cardhour_actuators::journal::Journal;
use cardhour_actuators::past::Standing;
use cardhour_actuators::round::{Carrying, Round, round};
use cardhour_actuators::slurm::{JobAction, JobDeed, JobTarget, Slurm, SlurmSettings};
use cardhour_actuators::world::Worlds;
use cardhour_actuators::{Action, DecisionId};
use cardhour_domain::Timestamp;
use cardhour_test_slurm::{Lab, wait_for};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Writes a checkpoint at USR1, which takes it a second, and its mark last. Notes TERM, and goes on.
const JOB: &str = r#"#!/bin/bash
cd "$JOBS"
checkpoint() { sleep 1; echo checkpoint >> "$SLURM_JOB_ID.signals"; echo done >> "$SLURM_JOB_ID.done"; }
trap checkpoint USR1
trap 'echo term >> "$SLURM_JOB_ID.signals"' TERM
echo "READY $$"
while :; do sleep 0.2; done
"#;

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_ms(since.as_millis() as i64)
}

pub fn worlds(slurm_conf: PathBuf) -> Worlds {
    let settings = SlurmSettings { slurm_conf: Some(slurm_conf), ..SlurmSettings::default() };
    Worlds { slurm: Some(Slurm::new(settings)), ..Worlds::default() }
}

/// Carries an action to its end.
pub fn carry(world: &mut Worlds, journal: &mut dyn Journal, action: &Action) -> Standing {
    let guards = Guards { mode: Mode::Act, most_an_hour: 100, ..Guards::default() };
    let began = Instant::now();
    loop {
        let mut with = Carrying { world, journal, guards: &guards, is_wanted: &|_, _| Ok(()), now: &now };
        match round(action, &mut with).unwrap() {
            Round::Over(standing) => return standing,
            Round::Due(_) | Round::Blind { .. } => std::thread::sleep(Duration::from_millis(300)),
            held @ Round::Held { .. } => panic!("{held:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{action:?}");
    }
}

pub fn action(decision: &str, what: What) -> Action {
    let deadline = now().checked_add_ms(100_000).unwrap();
    Action { decision: DecisionId::new(decision), tenant: None, what, deadline }
}

pub fn of_job(decision: &str, job: JobTarget, deed: JobDeed) -> Action {
    action(decision, What::SlurmJob(JobAction { job, deed }))
}

/// A job that writes checkpoints.
pub fn submit(lab: &Lab, user: usize, options: &[&str]) -> u64 {
    let script = lab.folder.join("etc/checkpoints.sh");
    std::fs::write(&script, JOB).unwrap();
    let jobs = lab.folder.join("jobs");
    let (conf, jobs) = (format!("SLURM_CONF={}", lab.conf().display()), format!("JOBS={}", jobs.display()));
    let (out, script) = (lab.folder.join("jobs/%j.out").display().to_string(), script.display().to_string());
    let mut arguments = vec!["-u", lab.user(user), "--", "env", &conf, &jobs, "sbatch", "--parsable", "-o", &out];
    arguments.extend(options);
    arguments.push(&script);
    lab.run("runuser", &arguments).parse().expect("an id")
}

/// That run of a job of the first user, once it is there.
pub fn target(lab: &Lab, id: u64, restarts: u32) -> JobTarget {
    lab.pid(id);
    JobTarget { id, user: lab.user(0).to_owned(), restarts, started_at: None }
}

pub fn state(lab: &Lab, name: &str) -> String {
    lab.run("squeue", &["-h", "-t", "all", "-j", name, "-o", "%T"])
}

pub fn wait_for_state(lab: &Lab, name: &str, wanted: &str) {
    wait_for(wanted, || (state(lab, name) == wanted).then_some(()));
}

/// What a job noted of signals, in order.
pub fn signals(lab: &Lab, id: u64) -> Vec<String> {
    let text = std::fs::read_to_string(lab.folder.join(format!("jobs/{id}.signals"))).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

pub fn mark(lab: &Lab, id: u64) -> PathBuf {
    lab.folder.join(format!("jobs/{id}.done"))
}

pub fn journal_in(folder: &Path) -> PathBuf {
    folder.join("actions.jsonl")
}
