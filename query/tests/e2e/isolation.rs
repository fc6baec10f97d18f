//! How cards are shared: what the books find, what is told of it, and real commands put side by side.

use crate::collector::{ended_well, started};
use crate::service::Service;
use crate::site::{Answer, Rows, Site};
use cardhour_test_prometheus::Receiver;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One H100 (81,559 MiB by its preset) that is 60 % busy.
const CARD: &str =
    "[[card]]\npreset = \"h100\"\nuuid = \"GPU-shared\"\ncurve.sm = 60\ncurve.util = 60\ncurve.power_w = 300\n";

/// A request each 20 ms that always tells 10 ms.
const VICTIM: &str = "while :; do echo latency_ms 10; sleep 0.02; done";

fn trial(site: &Site, options: &[&str]) -> Answer {
    let scene = site.file("scene.toml", CARD);
    let mut command = site.command();
    command.args(["isolation-test", "--format", "csv", "--nvml-lib"]).arg(fake_nvml::library_path());
    command.env("FAKE_NVML_SCENARIO", scene).args(options);
    let output = command.output().unwrap();
    Answer {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The aggressor is refused what it asks for, is not felt, and dies alone. By hand: half of 81,559 MiB is 40,779, and one and a half times that 61,169.
#[test]
fn a_victim_that_is_left_alone_passes_all_three_trials() {
    let site = Site::new();
    let aggressor = "case $CARDHOUR_TRIAL in \
        memory) echo asked_mib $CARDHOUR_ASK_MIB; echo got_mib $CARDHOUR_ALLOWED_MIB; echo refused; exit 1;; \
        compute) sleep 60;; crash) sleep 0.3; kill -SEGV $$;; esac";
    let answer = trial(&site, &["--victim", VICTIM, "--aggressor", aggressor, "--card", "GPU-shared", "--part-s", "2"]);
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    let rows = Rows::parse(&answer.out).0;
    let verdicts: Vec<_> = rows.iter().map(|row| (&*row["trial"], &*row["verdict"])).collect();
    assert_eq!(verdicts, [("memory", "passed"), ("compute", "passed"), ("crash", "passed")]);
    assert_eq!(rows[0]["what"], "it asked for 61169 MiB of a share of 40779 and had at most 40779; the victim went on");
    assert_eq!((&*rows[1]["p50_ms_alone"], &*rows[1]["spread_beside"]), ("10.000000", "0.000000"));
    assert!(rows[2]["what"].starts_with("the aggressor ended by itself, signal 11"), "{}", rows[2]["what"]);
}

/// Real contention for a real thing: both take one lock, the aggressor for 30 ms of each 40, and the victim tells how long it waited.
#[test]
fn a_victim_that_waits_for_its_aggressor_fails() {
    let site = Site::new();
    let lock = site.file("lock", "");
    let victim = format!(
        "exec python3 -u -c 'import fcntl,time\nf=open(\"{lock}\")\nwhile True:\n b=time.monotonic(); fcntl.flock(f,fcntl.LOCK_EX); time.sleep(0.01); fcntl.flock(f,fcntl.LOCK_UN)\n print(\"latency_ms\",(time.monotonic()-b)*1000)\n time.sleep(0.005)'"
    );
    let aggressor = format!(
        "exec python3 -c 'import fcntl,time\nf=open(\"{lock}\")\nwhile True:\n fcntl.flock(f,fcntl.LOCK_EX); time.sleep(0.03); fcntl.flock(f,fcntl.LOCK_UN); time.sleep(0.01)'"
    );
    // A busy machine makes a sleep of 10 ms longer: the limit leaves room for that, and waiting for 30 ms doesn't fit into it.
    let options =
        ["--victim", &victim, "--aggressor", &aggressor, "--trials", "compute", "--part-s", "3", "--limit", "60"];
    let answer = trial(&site, &options);
    assert_eq!(answer.code, Some(1), "{}{}", answer.out, answer.err);
    assert_eq!(Rows::parse(&answer.out).0[0]["verdict"], "failed", "{}", answer.out);
}

/// More memory than its share by its own word; a crash that takes the victim with it: the victim watches the aggressor's pid and ends with it.
#[test]
fn memory_that_is_given_and_a_crash_that_spreads_fail() {
    let site = Site::new();
    let pid = site.file("pid", "");
    let victim = format!("while [ ! -s {pid} ] || kill -0 $(cat {pid}); do echo 10; sleep 0.02; done; exit 3");
    let aggressor = format!(
        "case $CARDHOUR_TRIAL in memory) echo asked_mib $CARDHOUR_ASK_MIB; echo got_mib $CARDHOUR_ASK_MIB; sleep 60;; \
         crash) echo $$ >{pid}; sleep 60;; esac"
    );
    let options = ["--victim", &victim, "--aggressor", &aggressor, "--trials", "memory,crash", "--part-s", "2"];
    let answer = trial(&site, &options);
    assert_eq!(answer.code, Some(1), "{}{}", answer.out, answer.err);
    let rows = Rows::parse(&answer.out).0;
    let what: Vec<_> = rows.iter().map(|row| (&*row["verdict"], &*row["what"])).collect();
    assert_eq!(
        what,
        [
            ("failed", "the aggressor had 61169 MiB, by its own word, and 40779 MiB is its share"),
            ("failed", "the aggressor was killed at work: the victim ended with it: exit code 3"),
        ]
    );
}

#[test]
fn what_cannot_be_tried_is_usage_and_says_what_is_missing() {
    let site = Site::new();
    for (options, says) in [
        (vec!["--victim", "true", "--aggressor", "true"], "told no latency"),
        (
            vec!["--victim", VICTIM, "--aggressor", "true", "--card", "GPU-none"],
            "no card GPU-none: there are GPU-shared",
        ),
        (vec!["--victim", VICTIM, "--aggressor", "no-such-program", "--part-s", "2"], "can't be run"),
        (vec!["--victim", VICTIM, "--aggressor", "true", "--share", "2"], "not a part of a card"),
    ] {
        let answer = trial(&site, &options);
        assert_eq!(answer.code, Some(2), "{options:?}: {}", answer.err);
        assert!(answer.err.contains(says), "{options:?}: {}", answer.err);
    }
}

/// Both commands leave their ids; after Ctrl-C none of them lives.
#[test]
fn nothing_outlives_a_trial_that_is_interrupted() {
    let site = Site::new();
    let pids = site.file("pids", "");
    let scene = site.file("scene.toml", CARD);
    let mut command = site.command();
    command.args(["isolation-test", "--nvml-lib"]).arg(fake_nvml::library_path()).env("FAKE_NVML_SCENARIO", scene);
    command.arg("--victim").arg(format!("echo $$ >>{pids}; {VICTIM}"));
    // It doesn't end when it is asked to, and has a child.
    command.arg("--aggressor").arg(format!("trap '' TERM; sleep 61 & echo $$ $! >>{pids}; wait; sleep 62"));
    let child: Child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let words = || std::fs::read_to_string(&pids).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    wait_until(|| words().len() == 3);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let lives = |pid: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A zombie has ended.
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    wait_until(|| !words().iter().any(lives));
}

/// Two processes of two users, and so of strangers, on one card: in the report, with both, and told once by the webhook.
#[test]
fn strangers_on_one_card_are_reported_and_told_once() {
    let site = Site::new();
    site.ok("init --zone UTC");
    let holders: Vec<Asleep> = (0..2).map(|_| Asleep::start()).collect();
    let process =
        |holder: &Asleep| format!("[[process]]\npid = {}\ncard = 0\nmemory_mib = 30000\nsm_pct = 30\n", holder.0);
    let scene = format!("{CARD}{}", holders.iter().map(process).collect::<String>());
    let scene = site.file("scene.toml", scene);
    let spool = tempfile::tempdir().unwrap();
    let config = format!(
        "cluster = \"lab\"\nnode = \"gpu01\"\nspool = \"{}\"\nstep_s = 1\nseal_after_s = 2\nmetrics = \"off\"\n[deliver]\nfolder = \"{}\"\n",
        spool.path().display(),
        site.ledger().display()
    );
    let config = site.file("collector.toml", config);
    let collector = started(std::path::Path::new(&config), std::path::Path::new(&scene));
    let receiver = Receiver::start();
    let alerts =
        site.file("config.toml", format!("[alerts]\nwebhook = \"http://127.0.0.1:{}/hook\"\n", receiver.port()));
    let service = Service::start_with(&site, "http", &["--config", &alerts]);
    // Of each stretch the last minute doesn't count.
    wait_for(Duration::from_secs(240), || site.run("report isolation --format csv").code == Some(1));
    let rows = Rows::parse(&site.run("report isolation --format csv").out).0;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(
        (&*rows[0]["severity"], &*rows[0]["kind"], &*rows[0]["card_uuid"]),
        ("violation", "sharing_rule", "GPU-shared")
    );
    assert!(!rows[0]["job"].is_empty() && !rows[0]["others"].is_empty() && rows[0]["job"] != rows[0]["others"]);
    wait_for(Duration::from_secs(150), || told(&receiver) > 0);
    std::thread::sleep(Duration::from_secs(65));
    assert_eq!(told(&receiver), 1);
    assert!(ended_well(collector));
    drop(service);
}

/// A process that hangs on nobody, so that each is a holder of its own; it ends with the test.
struct Asleep(u32);

impl Asleep {
    fn start() -> Self {
        let script = "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $!";
        let output = Command::new("sh").args(["-c", script]).output().unwrap();
        Self(String::from_utf8(output.stdout).unwrap().trim().parse().unwrap())
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        _ = Command::new("kill").arg(self.0.to_string()).status();
    }
}

fn told(receiver: &Receiver) -> usize {
    receiver.bodies().iter().filter(|body| body.to_string().contains("CardhourIsolation")).count()
}

fn wait_until(is_so: impl Fn() -> bool) {
    wait_for(Duration::from_secs(30), is_so);
}

#[track_caller]
fn wait_for(longest: Duration, is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < longest, "it never came to that");
        std::thread::sleep(Duration::from_millis(100));
    }
}
