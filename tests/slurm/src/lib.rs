//! A real Slurm for tests: two nodes on this host with four cards each, ended and removed with the test.
//!
//! `slurm-lab.sh` beside it starts and ends the daemons. Needs root and Slurm's programs; where they are missing a test is skipped, and says so, or
//! fails where `CARDHOUR_REQUIRE_ALL` is 1.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 8] = ["slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "sacctmgr", "squeue", "runuser"];

/// Whether it can run; else says why it doesn't, and fails where everything must.
pub fn can_run(test: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_there = |program: &&str| {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]).any(|folder| folder.join(program).exists())
    };
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !is_there(program)).collect();
    if is_root && missing.is_empty() {
        return true;
    }
    assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "{test} needs root and {missing:?}");
    eprintln!("skipped: {test} needs root and {}", PROGRAMS.join(", "));
    false
}

/// The cluster; ended and removed when the test ends.
pub struct Lab {
    /// Where all of it lies.
    pub folder: PathBuf,
    base: u32,
    users: String,
    enforce: &'static str,
}

impl Lab {
    /// Starts it.
    pub fn up() -> Self {
        Self::up_enforcing("associations,limits,qos")
    }

    /// Starts it with these words for `AccountingStorageEnforce`.
    pub fn up_enforcing(enforce: &'static str) -> Self {
        // Folder, ports and users of its own: several may run on one machine.
        let number = std::process::id();
        let base = 20_000 + (number % 900) * 14;
        let users = format!("lab{number}a lab{number}b");
        let lab = Self { folder: format!("/tmp/cardhour-slurm-{number}").into(), base, users, enforce };
        lab.script("up");
        lab
    }

    fn script(&self, what: &str) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("slurm-lab.sh");
        let status = Command::new("bash")
            .arg(script)
            .arg(what)
            .env("LAB", &self.folder)
            .env("BASE", self.base.to_string())
            .env("USERS", &self.users)
            .env("ENFORCE", self.enforce)
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.as_ref().is_ok_and(|status| status.success()), "slurm-lab.sh {what}: {status:?}");
    }

    /// One of its two users.
    pub fn user(&self, which: usize) -> &str {
        self.users.split(' ').nth(which).expect("two users")
    }

    /// Its slurm.conf.
    pub fn conf(&self) -> PathBuf {
        self.folder.join("etc/slurm.conf")
    }

    /// What a program of Slurm's prints; it has to end well.
    pub fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = Command::new(program).args(arguments).env("SLURM_CONF", self.conf()).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {words}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Submits a job of a user, and gives its id.
    pub fn submit(&self, user: usize, options: &[&str]) -> u64 {
        let (conf, job) = (format!("SLURM_CONF={}", self.conf().display()), self.folder.join("etc/job.sh"));
        let (out, job) = (self.folder.join("jobs/%j.out").display().to_string(), job.display().to_string());
        let mut arguments =
            vec!["-u", self.user(user), "--", "env", &conf, "sbatch", "--parsable", "-D", "/tmp", "-o", &out];
        arguments.extend(options);
        arguments.push(&job);
        self.run("runuser", &arguments).parse().expect("an id")
    }

    /// The pid of a job's script, once it runs.
    pub fn pid(&self, job: u64) -> u32 {
        let file = self.folder.join(format!("jobs/{job}.out"));
        let ready = || {
            let text = std::fs::read_to_string(&file).ok()?;
            text.lines().rev().find_map(|line| line.strip_prefix("READY ")?.parse().ok())
        };
        wait_for("the job runs", ready)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for log in ["slurmctld.log", "slurmd-gpu1.log"] {
                let text = std::fs::read_to_string(self.folder.join("log").join(log)).unwrap_or_default();
                let last: Vec<&str> = text.lines().rev().take(15).collect();
                eprintln!("{log}, the last line first:\n{}", last.join("\n"));
            }
        }
        self.script("down");
    }
}

/// Waits until there is an answer.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}
