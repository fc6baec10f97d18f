//! Idle cards taken back from a real Slurm: warned by a webhook, asked for a checkpoint, ended; and who keeps theirs.

use crate::collector::{ended_well, started};
use crate::site::{Rows, Site};
use cardhour_test_prometheus::Receiver;
use cardhour_test_slurm::{Lab, can_run, wait_for};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Four cards: the first at rest, the second at work, the third at rest, the fourth answers nothing after its start.
const SCENE: &str = "\
[[card]]
preset = \"h100\"
[[card]]
preset = \"h100\"
curve.util = 90
curve.sm = 85
curve.dram = 40
curve.power_w = 500
[[card]]
preset = \"h100\"
[[card]]
preset = \"h100\"
[[fault]]
at_s = 3
card = 3
call = \"*\"
rc = 999
";

/// On USR1 it writes what takes two seconds, and marks the end of it; on TERM it ends.
const JOB: &str = "#!/bin/bash
trap 'sleep 2; date +%s%N >>MARKS' USR1
trap 'exit 0' TERM
echo \"READY $$\"
while :; do sleep 0.2; done
";

struct Reclaiming<'a> {
    site: &'a Site,
    config: String,
}

impl Reclaiming<'_> {
    fn command(&self) -> std::process::Command {
        let mut command = self.site.command();
        command.args(["reclaim", "--config", &self.config, "--format", "csv"]);
        command
    }

    /// A look. What couldn't be told or done is for the caller to judge.
    fn look(&self) -> Rows {
        let output = self.command().output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        Rows::parse(&String::from_utf8(output.stdout).unwrap())
    }

    /// A look that is killed after a while.
    fn killed_after(&self, pause: Duration) {
        let mut child: Child = self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(pause);
        _ = child.kill();
        _ = child.wait();
    }

    fn decisions(&self) -> Rows {
        Rows::parse(&self.site.ok("decisions --format csv"))
    }

    /// The decisions of a kind about a job.
    fn of(&self, job: u64, action: &str) -> usize {
        let is_it = |row: &&std::collections::BTreeMap<String, String>| {
            row["job"] == format!("lab/{job}") && row["action"] == action
        };
        self.decisions().0.iter().filter(is_it).count()
    }
}

/// An idle job is warned, asked for a checkpoint, which it writes, and ended; a busy one, one that nobody can see, and one that is opted out are not.
/// Looks are killed at all moments in between: it is asked once, and ended once.
#[test]
fn an_idle_job_of_a_real_slurm_gives_its_card_back_and_nobody_else_does() {
    if !can_run("an_idle_job_of_a_real_slurm_gives_its_card_back_and_nobody_else_does") {
        return;
    }
    let lab = Lab::up();
    let marks = lab.folder.join("jobs/checkpoints");
    std::fs::write(lab.folder.join("etc/job.sh"), JOB.replace("MARKS", &marks.display().to_string())).unwrap();
    let site = Site::new();
    site.ok("init --zone UTC");
    std::fs::create_dir_all(site.ledger().join("incoming")).unwrap();
    let of_lab = |part: &str| lab.folder.join(part).display().to_string();
    let spool = site.file("spool-is-beside", "");
    let collector = site.file(
        "collector.toml",
        format!(
            "cluster = \"lab\"\nnode = \"gpu1\"\nspool = \"{spool}-1\"\nseal_after_s = 2\nstep_s = 1\nmetrics = \"off\"\n\
             [deliver]\nfolder = {:?}\n[slurm]\nnodes = [\"gpu1\"]\ngres_conf = {:?}\nmap_folder = {:?}\nslurm_conf = {:?}\n",
            site.ledger(),
            of_lab("etc/gres.conf"),
            of_lab("jobmap/%n"),
            of_lab("etc/slurm.conf"),
        ),
    );
    let scene = site.file("scene.toml", SCENE);
    let node = started(Path::new(&collector), Path::new(&scene));

    let state = |job: u64| lab.run("squeue", &["-h", "-j", &job.to_string(), "-o", "%T"]);
    // One after the other, so that each gets the next card.
    let submit = |user: usize| {
        let job = lab.submit(user, &["-w", "gpu1", "-t", "10", "-A", "research", "--gres=gpu:1"]);
        wait_for("it runs", || (state(job) == "RUNNING").then_some(()));
        lab.pid(job);
        job
    };
    let [idle, busy, spared, unseen] = [submit(0), submit(0), submit(0), submit(0)];

    let hook = Receiver::start();
    let config = site.file("config.toml", format!("[alerts]\nwebhook = \"http://127.0.0.1:{}/hook\"\n", hook.port()));
    let policy = format!(
        "[reclaim]\nwindow = \"10s\"\ncoverage = \"0.7\"\nends_after = \"2s\"\nstale_after = \"60s\"\nact_within = \"60s\"\nretry_warning = \"5s\"\n\
         blind_from = \"0.9\"\nmost_at_once = \"1\"\nrecovered_for = \"1m\"\n\
         [[reclaim.class]]\nclass = \"other\"\nstartup_grace = \"1s\"\nfirst_use_limit = \"2s\"\nlease = \"10s\"\nloaded_lease = \"10s\"\n\
         grace = \"12s\"\ncheckpoint_wait = \"30s\"\n\
         [reclaim.checkpoint]\nsignal = \"USR1\"\nreach = \"batch\"\nfile = {:?}\n\
         [[opt_out]]\njob = \"{spared}\"\nowner = \"ada\"\nreason = \"demo on Friday\"\nuntil = \"2099-01-01T00:00:00Z\"\n\
         [act]\nmode = \"act\"\nclusters = [\"lab\"]\nend_grace = \"5s\"\n[act.slurm]\nconf = {:?}\n",
        marks.display().to_string(),
        of_lab("etc/slurm.conf"),
    );
    std::fs::write(site.ledger().join("policy.toml"), policy).unwrap();
    let reclaiming = Reclaiming { site: &site, config };

    let since = Instant::now();
    let (mut pause, mut warned_at) = (Duration::from_millis(20), None);
    loop {
        // Killed at ever later moments, then one whole.
        pause += Duration::from_millis(35);
        reclaiming.killed_after(pause);
        reclaiming.look();
        if warned_at.is_none() && !hook.bodies().is_empty() {
            warned_at = Some(Instant::now());
            assert_eq!(state(idle), "RUNNING", "in its grace nothing is done");
        }
        if state(idle).is_empty() || state(idle) == "COMPLETING" {
            break;
        }
        let so_far = || {
            reclaiming
                .decisions()
                .0
                .iter()
                .map(|row| format!("{} {}: {}\n", row["job"], row["action"], row["what"]))
                .collect::<String>()
        };
        assert!(since.elapsed() < Duration::from_secs(240), "not ended; {}", so_far());
    }
    let grace = warned_at.expect("it was warned first").elapsed();
    assert!(grace >= Duration::from_secs(10), "ended {grace:?} after its warning was seen");
    // A few more looks: nothing is done twice, and what came of it is told.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(2));
        reclaiming.look();
    }
    for job in [busy, spared, unseen] {
        assert_eq!(state(job), "RUNNING", "{job} keeps its card");
        assert_eq!(reclaiming.of(job, "stop") + reclaiming.of(job, "warn"), 0);
    }
    let words = std::fs::read_to_string(&marks).expect("it wrote a checkpoint");
    assert_eq!(words.lines().count(), 1, "asked once: {words}");
    assert_eq!((reclaiming.of(idle, "ask_checkpoint"), reclaiming.of(idle, "stop")), (1, 1));
    let told: Vec<_> = hook.bodies();
    let of_idle = |body: &&serde_json::Value| body.to_string().contains("CardhourIdle\"");
    assert_eq!(told.iter().filter(of_idle).count(), 1, "warned once: {told:?}");
    let rows = reclaiming.decisions();
    let done: Vec<&str> =
        rows.0.iter().filter(|row| row["action"] == "carried_out").map(|row| &*row["carried_out"]).collect();
    assert_eq!(done, ["done, and seen to be"; 2], "the checkpoint and the end");
    let stop = rows.0.iter().find(|row| row["action"] == "stop").unwrap();
    assert!(stop["what"].contains("checkpoint"), "{}", stop["what"]);
    assert_eq!(stop["mode"], "act");

    lab.run("scancel", &[&busy.to_string(), &spared.to_string(), &unseen.to_string()]);
    assert!(ended_well(node), "it ends when it is told to");
}
