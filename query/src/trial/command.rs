//! A command of a trial: started in a process group of its own, heard line by line, ended by its id.

use super::told::{Line, Told, parse};
use super::{Ending, LOOK_EVERY};
use crate::error::Error;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// How long a command may take to end when it is asked to.
const LONGEST_END: Duration = Duration::from_secs(5);

/// What the shell answers where a command isn't there, or is none (POSIX, Shell Command Language, 2.8.2).
const NOT_RUN: [i32; 2] = [126, 127];

/// A command that was started. Ended with all of its group when it goes.
#[derive(Debug)]
pub struct Started {
    child: Child,
    /// Of its group, which is its own.
    id: u32,
    role: &'static str,
    heard: Arc<Mutex<Vec<(Instant, Line)>>>,
    status: Option<ExitStatus>,
    is_gone: bool,
}

impl Started {
    /// By the shell. Called where tokio runs. Errors: the shell can't be started.
    pub fn start(command: &str, role: &'static str, variables: &[(&str, String)]) -> Result<Self, Error> {
        let failed = |source| Error::Stream { doing: "start a command of the trial", source };
        let mut child = Command::new("sh")
            .args(["-c", command])
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let id = child.id().ok_or_else(|| failed(io::Error::other("it has no id")))?;
        let out = child.stdout.take().ok_or_else(|| failed(io::Error::other("it has no output")))?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = heard.clone();
        // Ends with the last process that has the pipe.
        tokio::spawn(async move {
            let mut lines = BufReader::new(out).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(line) = parse(&line) {
                    lock(&hears).push((Instant::now(), line));
                }
            }
        });
        Ok(Self { child, id, role, heard, status: None, is_gone: false })
    }

    /// The id of its process and group.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Waits until it told a latency. Errors: it ended before, or took too long.
    pub async fn first_latency(&mut self, longest: Duration) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            if lock(&self.heard).iter().any(|(_, line)| matches!(line, Line::Latency(_))) {
                return Ok(());
            }
            let why = match self.ending()? {
                Ending::Failed { how } => format!("ended ({how})"),
                Ending::Done => "ended".to_owned(),
                Ending::Running if since.elapsed() < longest => {
                    tokio::time::sleep(LOOK_EVERY).await;
                    continue;
                }
                Ending::Running => format!("ran for {} s", longest.as_secs()),
            };
            return Err(Error::Trial(format!(
                "the {} {why} and told no latency: a line each, latency_ms N or a number of milliseconds alone",
                self.role
            )));
        }
    }

    /// Waits for its end, no longer than that. Comes back with whether it has ended. Errors: the system doesn't tell.
    pub async fn ended_within(&mut self, longest: Duration) -> Result<bool, Error> {
        let since = Instant::now();
        while since.elapsed() < longest {
            if !matches!(self.ending()?, Ending::Running) {
                return Ok(true);
            }
            tokio::time::sleep(LOOK_EVERY.min(longest)).await;
        }
        Ok(false)
    }

    /// How it is now. Errors: the system doesn't tell.
    pub fn ending(&mut self) -> Result<Ending, Error> {
        if self.status.is_none() {
            let failed = |source| Error::Stream { doing: "wait for a command of the trial", source };
            self.status = self.child.try_wait().map_err(failed)?;
        }
        Ok(match self.status {
            None => Ending::Running,
            Some(status) if status.success() => Ending::Done,
            Some(status) => Ending::Failed { how: how(status) },
        })
    }

    /// Errors: the shell couldn't run it, which is no answer to anything.
    pub fn is_runnable(&self) -> Result<(), Error> {
        match self.status.and_then(|status| status.code()) {
            Some(code) if NOT_RUN.contains(&code) => {
                Err(Error::Trial(format!("the {} can't be run: the shell says exit code {code}", self.role)))
            }
            _ => Ok(()),
        }
    }

    /// Latencies that it told in some time. Unit: microseconds.
    pub fn latencies(&self, from: Instant, until: Instant) -> Vec<u64> {
        let of = |(at, line): &(Instant, Line)| match line {
            Line::Latency(us) if from <= *at && *at < until => Some(*us),
            _ => None,
        };
        lock(&self.heard).iter().filter_map(of).collect()
    }

    /// What it told of memory.
    pub fn told(&self) -> Told {
        let mut told = Told::default();
        lock(&self.heard).iter().for_each(|(_, line)| told.hear(*line));
        told
    }

    /// Ends it at once, as a crash does.
    pub async fn kill(&mut self) {
        signal("KILL", self.id);
        self.status = self.child.wait().await.ok().or(self.status);
        self.is_gone = true;
    }

    /// Asks it to end, and ends it where it doesn't.
    pub async fn end(&mut self) {
        signal("TERM", self.id);
        _ = tokio::time::timeout(LONGEST_END, self.child.wait()).await;
        self.kill().await;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_gone {
            signal("KILL", self.id);
        }
    }
}

/// To a group that we made, by `kill`: this crate calls nothing that is unsafe. One that is gone is none the worse for it.
fn signal(name: &str, group: u32) {
    let group = format!("-{group}");
    let mut kill = std::process::Command::new("kill");
    _ = kill.args(["-s", name, "--", &group]).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no exit code".to_owned(),
    }
}

fn lock(heard: &Mutex<Vec<(Instant, Line)>>) -> MutexGuard<'_, Vec<(Instant, Line)>> {
    // A list that a panic left is a list all the same.
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}
