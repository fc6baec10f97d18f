//! Processes of this node, by handles of the kernel.
//!
//! A process is known by its boot, its number and when it started; a handle (pidfd) is opened first and that is read after, so a signal goes to that
//! process or to none. A tree is signalled from its leader on: a data loader that dies first takes its training down (R18). Never touched: process 1,
//! the kernel's, this program and what started it, services of the driver, and users below a number that the site gives.

mod stat;

use crate::instant::after_s;
use crate::next::{AGAIN_AFTER_S, Next, Step};
use crate::past::{Answer, Past};
use crate::signal::Signal;
use crate::world::Trouble;
use cardhour_domain::Timestamp;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use stat::Stat;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// What a process that was told KILL may take to be gone. Unit: seconds.
const KILLED_AGAIN_AFTER_S: u32 = 30;

/// What is done to which process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessAction {
    /// Which.
    pub process: ProcessTarget,
    /// What belongs to it.
    pub scope: Scope,
    /// What is done.
    pub deed: ProcessDeed,
}

/// One process of one boot. A number alone comes round again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessTarget {
    /// The boot, as `/proc/sys/kernel/random/boot_id` has it.
    pub boot_id: String,
    /// Its number in the host's namespace.
    pub pid: u32,
    /// When it started. Unit: clock ticks since the boot.
    pub start_ticks: u64,
    /// Whose it is: the effective user.
    pub uid: u32,
}

/// What belongs to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Itself alone.
    Main,
    /// Its session: all that was started from one terminal or by one `setsid`.
    Session {
        /// The session's number, its leader's.
        id: u32,
    },
    /// Its control group: a folder with `cgroup.procs`, which holds nothing else.
    Group {
        /// The folder.
        folder: PathBuf,
    },
}

/// What is done to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProcessDeed {
    /// A signal to the process itself, and no more.
    Warn(Signal),
    /// A signal, a grace, and KILL for what is left.
    End {
        /// The signal that it ends by itself at.
        first: Signal,
        /// How long it has. Unit: seconds.
        grace_s: u32,
    },
}

impl ProcessDeed {
    pub(crate) fn own_wait_s(&self) -> u32 {
        match self {
            Self::Warn(_) => 0,
            Self::End { grace_s, .. } => *grace_s,
        }
    }
}

/// What a look at a process showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessSight {
    /// Whether the process itself is there.
    pub is_there: bool,
    /// What else belongs to it and is there: how many.
    pub others: u32,
    /// Why it isn't touched, where it isn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untouchable: Option<String>,
}

/// What comes next.
pub(crate) fn next(action: &ProcessAction, sight: &ProcessSight, past: &Past, now: Timestamp) -> Next {
    let is_gone = !sight.is_there && (sight.others == 0 || !past.has_touched());
    if is_gone {
        let has_ended = "it ended meanwhile".to_owned();
        return if past.has_touched() { Next::True } else { Next::Refuse(has_ended) };
    }
    if let Some(reason) = &sight.untouchable {
        return if past.has_touched() { Next::GiveUp(reason.clone()) } else { Next::Refuse(reason.clone()) };
    }
    match &action.deed {
        ProcessDeed::Warn(signal) => match past.tries.last().map(|tried| &tried.answer) {
            None => Next::Do(Step::Signal(*signal)),
            Some(Some(Answer::Taken)) => Next::True,
            Some(Some(Answer::Declined(reason))) => Next::Refuse(reason.clone()),
            Some(Some(Answer::Later { .. } | Answer::Unknown(_)) | None) => {
                Next::GiveUp("whether the signal was sent can't be told, and it isn't sent twice".to_owned())
            }
        },
        ProcessDeed::End { first, grace_s } => {
            let Some(asked) = past.last(|step| matches!(step, Step::Signal(_))) else {
                return Next::Do(Step::Signal(*first));
            };
            if let Some(Answer::Declined(reason)) = &asked.answer {
                return Next::Refuse(reason.clone());
            }
            let until = after_s(asked.at, *grace_s);
            if now < until {
                return Next::Wait(until);
            }
            let Some(killed) = past.last(|step| *step == Step::Kill) else { return Next::Do(Step::Kill) };
            let again_at = match &killed.answer {
                Some(Answer::Declined(reason)) => return Next::GiveUp(reason.clone()),
                Some(Answer::Taken) => after_s(killed.at, KILLED_AGAIN_AFTER_S),
                Some(Answer::Later { .. } | Answer::Unknown(_)) => after_s(killed.at, AGAIN_AFTER_S),
                None => killed.at,
            };
            if now < again_at { Next::Wait(again_at) } else { Next::Do(Step::Kill) }
        }
    }
}

/// Whom a site leaves alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// Users below it are never touched: those of the system.
    pub lowest_uid: u32,
    /// Programs that are never touched, by the name that the kernel has of them (15 bytes).
    pub spared: Vec<String>,
    /// Where `/proc` is.
    pub proc_root: PathBuf,
    /// Where control groups are: a group elsewhere is refused.
    pub group_root: PathBuf,
}

impl Default for ProcessSettings {
    fn default() -> Self {
        let spared = ["nvidia-cuda-mps", "nvidia-persiste", "nv-hostengine", "nvidia-fabricma", "Xorg", "systemd"];
        let spared = spared.map(str::to_owned).to_vec();
        Self { lowest_uid: 1000, spared, proc_root: "/proc".into(), group_root: "/sys/fs/cgroup".into() }
    }
}

/// The processes of this node.
#[derive(Clone, Debug)]
pub struct Processes {
    settings: ProcessSettings,
}

/// A process that is held.
struct Held {
    handle: OwnedFd,
    stat: Stat,
}

impl Processes {
    /// With these spared.
    pub fn new(settings: ProcessSettings) -> Self {
        Self { settings }
    }

    /// Which process has a number now, as a target names it; none where there is none.
    pub fn target(&self, pid: u32) -> Result<Option<ProcessTarget>, Trouble> {
        let Some(held) = self.hold(pid)? else { return Ok(None) };
        let Some(uid) = self.uid(pid)? else { return Ok(None) };
        Ok(Some(ProcessTarget { boot_id: self.boot_id()?, pid, start_ticks: held.stat.start_ticks, uid }))
    }

    fn boot_id(&self) -> Result<String, Trouble> {
        let path = self.settings.proc_root.join("sys/kernel/random/boot_id");
        std::fs::read_to_string(&path).map(|text| text.trim().to_owned()).map_err(|error| unread(&path, &error))
    }

    fn stat(&self, pid: u32) -> Result<Option<Stat>, Trouble> {
        let path = self.settings.proc_root.join(pid.to_string()).join("stat");
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(unread(&path, &error)),
        };
        let stat = Stat::parse(&text).ok_or_else(|| Trouble::Unseen(format!("cannot read {}", path.display())))?;
        Ok((!stat.is_dead()).then_some(stat))
    }

    /// Its effective user.
    fn uid(&self, pid: u32) -> Result<Option<u32>, Trouble> {
        // Not the owner of the folder: the kernel shows root for a process that may not be looked into.
        let path = self.settings.proc_root.join(pid.to_string()).join("status");
        match std::fs::read(&path) {
            Ok(bytes) => stat::effective_uid(&String::from_utf8_lossy(&bytes))
                .map(Some)
                .ok_or_else(|| Trouble::Unseen(format!("{} names no user", path.display()))),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(unread(&path, &error)),
        }
    }

    /// Opens a handle first, then reads who it is: what has that number afterwards is what the handle is of, or it is gone and the handle says so.
    fn hold(&self, pid: u32) -> Result<Option<Held>, Trouble> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(number) = number else { return Ok(None) };
        let handle = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Ok(None),
            // A thread's number: not a process.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(error) => return Err(Trouble::NotHere(format!("no handle of process {pid}: {error}"))),
        };
        Ok(self.stat(pid)?.map(|stat| Held { handle, stat }))
    }

    /// The process itself, where it is still the one.
    fn main(&self, target: &ProcessTarget) -> Result<Option<Held>, Trouble> {
        if self.boot_id()? != target.boot_id {
            return Ok(None);
        }
        Ok(self.hold(target.pid)?.filter(|held| held.stat.start_ticks == target.start_ticks))
    }

    /// All else that belongs to it: of its user, and of the same session or group as it was.
    fn others(&self, action: &ProcessAction) -> Result<Vec<Held>, Trouble> {
        let target = &action.process;
        if self.boot_id()? != target.boot_id {
            return Ok(vec![]);
        }
        let pids = match &action.scope {
            Scope::Main => return Ok(vec![]),
            Scope::Session { id } => {
                // A session's number isn't given away while it has members, so a leader that is younger leads another one.
                if self.stat(*id)?.is_some_and(|leader| leader.start_ticks > target.start_ticks) {
                    return Ok(vec![]);
                }
                self.all()?
            }
            Scope::Group { folder } => {
                let is_plain = !folder.components().any(|part| part == Component::ParentDir);
                if !is_plain || !folder.starts_with(&self.settings.group_root) || *folder == self.settings.group_root {
                    return Err(Trouble::NotHere(format!("{} is no control group", folder.display())));
                }
                members(folder)?
            }
        };
        let mut others = Vec::new();
        for pid in pids.into_iter().filter(|pid| *pid != target.pid) {
            let Some(held) = self.hold(pid)? else { continue };
            let belongs = match &action.scope {
                Scope::Main => false,
                Scope::Session { id } => held.stat.session == *id,
                Scope::Group { .. } => true,
            };
            if belongs && self.uid(pid)? == Some(target.uid) {
                others.push(held);
            }
        }
        Ok(others)
    }

    fn all(&self) -> Result<Vec<u32>, Trouble> {
        let root = &self.settings.proc_root;
        let entries = std::fs::read_dir(root).map_err(|error| unread(root, &error))?;
        Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
    }

    /// Looks at a process and what belongs to it.
    pub(crate) fn look(&self, action: &ProcessAction) -> Result<ProcessSight, Trouble> {
        let main = self.main(&action.process)?;
        let others = self.others(action)?;
        let mut untouchable = None;
        for held in main.iter().chain(&others) {
            if let Some(reason) = self.untouchable(&held.stat, action.process.uid)? {
                untouchable = Some(reason);
                break;
            }
        }
        if let (Some(held), Scope::Session { id }) = (&main, &action.scope)
            && held.stat.session != *id
        {
            untouchable = Some(format!("process {} is of session {}, not {id}", held.stat.pid, held.stat.session));
        }
        let others = u32::try_from(others.len()).unwrap_or(u32::MAX);
        Ok(ProcessSight { is_there: main.is_some(), others, untouchable })
    }

    fn untouchable(&self, stat: &Stat, uid: u32) -> Result<Option<String>, Trouble> {
        let pid = stat.pid;
        if pid == 1 {
            return Ok(Some("process 1 is never touched".to_owned()));
        }
        if stat.is_of_kernel() {
            return Ok(Some(format!("process {pid} is the kernel's")));
        }
        let mut above = Some(std::process::id());
        while let Some(own) = above.filter(|own| *own > 1) {
            if own == pid {
                return Ok(Some(format!("process {pid} is this program or what started it")));
            }
            above = self.stat(own)?.map(|stat| stat.parent);
        }
        if self.settings.spared.contains(&stat.comm) {
            return Ok(Some(format!("process {pid} is {}, which is spared", stat.comm)));
        }
        let Some(owner) = self.uid(pid)? else { return Ok(None) };
        if owner < self.settings.lowest_uid {
            return Ok(Some(format!("process {pid} is of user {owner}, below {}", self.settings.lowest_uid)));
        }
        if owner != uid {
            return Ok(Some(format!("process {pid} is of user {owner}, not {uid}")));
        }
        Ok(None)
    }

    /// Sends a step's signal, to the process itself first.
    pub(crate) fn act(&self, action: &ProcessAction, step: &Step) -> Result<Answer, Trouble> {
        let signal = match step {
            Step::Signal(signal) => *signal,
            Step::Kill => return self.kill(action),
            Step::Cancel | Step::Requeue | Step::Evict | Step::Stop | Step::Start | Step::Set(_) => {
                return Ok(Answer::Declined("no step for a process".to_owned()));
            }
        };
        let signal = match signal {
            Signal::Usr1 => rustix::process::Signal::USR1,
            Signal::Usr2 => rustix::process::Signal::USR2,
            Signal::Int => rustix::process::Signal::INT,
            Signal::Hup => rustix::process::Signal::HUP,
            Signal::Term => rustix::process::Signal::TERM,
        };
        let Some(main) = self.main(&action.process)? else {
            return Ok(Answer::Declined("it ended this moment".to_owned()));
        };
        if let Some(reason) = self.untouchable(&main.stat, action.process.uid)? {
            return Ok(Answer::Declined(reason));
        }
        send(&main.handle, signal, main.stat.pid)
    }

    /// What is left after the grace: the process, then what belongs to it, until there is nothing new.
    fn kill(&self, action: &ProcessAction) -> Result<Answer, Trouble> {
        let mut answer = Answer::Taken;
        // Something may have been started between the list and the signals.
        for _ in 0..3 {
            let main = self.main(&action.process)?;
            let others = self.others(action)?;
            if main.is_none() && others.is_empty() {
                break;
            }
            for held in main.iter().chain(&others) {
                if let Some(reason) = self.untouchable(&held.stat, action.process.uid)? {
                    return Ok(Answer::Declined(reason));
                }
                if let Answer::Declined(reason) = send(&held.handle, rustix::process::Signal::KILL, held.stat.pid)? {
                    answer = Answer::Declined(reason);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(answer)
    }
}

fn send(handle: impl AsFd, signal: rustix::process::Signal, pid: u32) -> Result<Answer, Trouble> {
    match pidfd_send_signal(handle, signal) {
        // Gone this moment: what was wanted.
        Ok(()) | Err(Errno::SRCH) => Ok(Answer::Taken),
        Err(Errno::PERM) => Ok(Answer::Declined(format!("process {pid} may not be signalled from here"))),
        Err(error) => Err(Trouble::NotHere(format!("cannot signal process {pid}: {error}"))),
    }
}

fn members(folder: &Path) -> Result<Vec<u32>, Trouble> {
    let path = folder.join("cgroup.procs");
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect()),
        Err(error) if is_gone(&error) => Ok(vec![]),
        Err(error) => Err(unread(&path, &error)),
    }
}

fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

fn unread(path: &Path, error: &std::io::Error) -> Trouble {
    Trouble::Unseen(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
