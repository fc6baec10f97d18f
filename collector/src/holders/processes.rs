//! The processes of this node.
//!
//! One pass over `/proc/PID/stat` a look; more is read only of processes that matter, and kept while pid, start and program stay the same. A pid
//! alone is never believed: its start is read before and after what is read of it.

use super::cgroup::Place;
use super::environ::Environ;
use super::proc_entry::{self, ProcessId, Stat, TICK_MS};
use cardhour_domain::{Name, Timestamp};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kernel's number for its first namespace of processes: the one whose ids the driver lists.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What is read of an environment or a command line at most: names of files of a data set may come by the megabyte.
const MOST_BYTES: u64 = 128 * 1024;

/// Words of a command line that say what a program is.
const MOST_WORDS: usize = 6;

/// No tree of processes is deeper, unless its parents go in a circle.
const DEEPEST: usize = 64;

/// What is known of a process beside its `stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Which process.
    pub id: ProcessId,
    /// Its program's name.
    pub comm: Name,
    /// Whose it is.
    pub uid: Option<u32>,
    /// Who logged in, also where `sudo` has changed the user since.
    pub login_uid: Option<u32>,
    /// Where it lives; none where its control groups can't be read.
    pub place: Option<Place>,
    /// The first words of its command line.
    pub words: Vec<Name>,
    /// What its environment says; none where it can't be read.
    pub environ: Option<Environ>,
}

impl ProcessFacts {
    /// The user it is counted to: who logged in, where that is somebody, else whose it is.
    pub fn person(&self) -> Option<u32> {
        self.login_uid.or(self.uid)
    }
}

/// Why pids of the driver can't be looked up here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceFault {
    /// It runs in a container with processes of its own.
    #[error(
        "the collector does not run in the host's namespace of processes: pids that the driver lists are not those of its /proc"
    )]
    NotTheHosts,
    /// The kernel doesn't say.
    #[error("the collector cannot tell in which namespace of processes it runs")]
    Unknown,
}

/// The processes of this node, as of the last pass.
#[derive(Debug)]
pub struct Processes {
    root: PathBuf,
    boot: Name,
    booted_at: Timestamp,
    stats: HashMap<u32, Stat>,
    children: HashMap<u32, Vec<u32>>,
    facts: HashMap<u32, Arc<ProcessFacts>>,
}

impl Processes {
    /// Of the `/proc` at `root`. Errors: it has no id of the boot or no time of it.
    pub fn new(root: PathBuf) -> io::Result<Self> {
        let boot = std::fs::read_to_string(root.join("sys/kernel/random/boot_id"))?;
        // Eight digits tell the boots of one node apart.
        let boot: String = boot.trim().chars().filter(|c| *c != '-').take(8).collect();
        let stat = std::fs::read_to_string(root.join("stat"))?;
        let booted = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok());
        let booted = booted.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no btime in /proc/stat"))?;
        Ok(Self {
            root,
            boot: boot.into(),
            booted_at: Timestamp::from_unix_s(booted),
            stats: HashMap::new(),
            children: HashMap::new(),
            facts: HashMap::new(),
        })
    }

    /// Whether pids that the driver lists are those of this `/proc`. Errors: they aren't, or nobody can say.
    pub fn check_namespace(&self) -> Result<(), NamespaceFault> {
        match std::fs::read_link(self.root.join("self/ns/pid")) {
            Ok(link) if link == Path::new(FIRST_PID_NAMESPACE) => Ok(()),
            Ok(_) => Err(NamespaceFault::NotTheHosts),
            Err(_) => Err(NamespaceFault::Unknown),
        }
    }

    /// Reads all processes anew. Errors: `/proc` can't be listed.
    pub fn scan(&mut self) -> io::Result<()> {
        self.stats.clear();
        self.children.clear();
        let (mut text, mut path) = (String::new(), self.root.clone());
        for entry in std::fs::read_dir(&self.root)? {
            let name = entry?.file_name();
            if !name.as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            path.push(&name);
            path.push("stat");
            text.clear();
            // One that ends meanwhile is simply no more; a name of any bytes is read as far as it is text.
            let stat = read_text(&path, &mut text).ok().and_then(|()| Stat::parse(&text));
            path.pop();
            path.pop();
            if let Some(stat) = stat {
                self.children.entry(stat.parent).or_default().push(stat.id.pid);
                self.stats.insert(stat.id.pid, stat);
            }
        }
        let stats = &self.stats;
        self.facts.retain(|pid, facts| stats.get(pid).is_some_and(|stat| stat.id == facts.id));
        Ok(())
    }

    /// The boot: eight digits of its id.
    pub fn boot(&self) -> &Name {
        &self.boot
    }

    /// When something started, given in clock ticks since the boot.
    pub fn time_of(&self, ticks: u64) -> Timestamp {
        let ms = i64::try_from(ticks.saturating_mul(TICK_MS)).unwrap_or(i64::MAX);
        self.booted_at.checked_add_ms(ms).unwrap_or(self.booted_at)
    }

    /// A process that was there at the last pass, and lives.
    pub fn stat(&self, pid: u32) -> Option<&Stat> {
        self.stats.get(&pid).filter(|stat| !stat.is_dead())
    }

    /// All that were there.
    pub fn all(&self) -> impl Iterator<Item = &Stat> {
        self.stats.values()
    }

    /// A process and its parents, the nearest first.
    pub fn lineage(&self, pid: u32) -> Vec<&Stat> {
        let mut line: Vec<&Stat> = Vec::new();
        let mut next = self.stats.get(&pid);
        while let Some(stat) = next.filter(|_| line.len() < DEEPEST) {
            line.push(stat);
            next = self.stats.get(&stat.parent).filter(|parent| parent.id.pid != stat.id.pid);
        }
        line
    }

    /// These processes and all that come from them.
    pub fn tree(&self, roots: &BTreeSet<u32>) -> Vec<&Stat> {
        let mut seen = BTreeSet::new();
        let mut left: Vec<u32> = roots.iter().copied().collect();
        let mut found = Vec::new();
        while let Some(pid) = left.pop() {
            let Some(stat) = self.stats.get(&pid).filter(|_| seen.insert(pid)) else { continue };
            found.push(stat);
            left.extend(self.children.get(&pid).into_iter().flatten());
        }
        found
    }

    /// What is known of a process; none if it is gone, or is another by now.
    pub fn facts(&mut self, pid: u32) -> Option<Arc<ProcessFacts>> {
        let stat = self.stat(pid)?;
        let (id, comm) = (stat.id, stat.comm.clone());
        let folder = self.root.join(pid.to_string());
        let kept = self.facts.get(&pid).filter(|facts| facts.id == id && facts.comm == comm).cloned();
        if let Some(kept) = kept {
            // A process can be moved into another group while it runs, as Slurm does with its steps.
            let place = self.place(&folder);
            if place == kept.place || place.is_none() {
                return Some(kept);
            }
        }
        let facts = self.read_facts(&folder, id, comm)?;
        let facts = Arc::new(facts);
        self.facts.insert(pid, facts.clone());
        Some(facts)
    }

    fn read_facts(&self, folder: &Path, id: ProcessId, comm: Name) -> Option<ProcessFacts> {
        let start =
            || read_to_string(&folder.join("stat")).ok().and_then(|text| Stat::parse(&text)).map(|stat| stat.id);
        if start()? != id {
            return None;
        }
        let status = read_to_string(&folder.join("status")).ok();
        let login = read_to_string(&folder.join("loginuid")).ok();
        let cmdline = read_bytes(&folder.join("cmdline")).unwrap_or_default();
        let facts = ProcessFacts {
            id,
            comm,
            uid: status.as_deref().and_then(proc_entry::effective_uid),
            login_uid: login.as_deref().and_then(proc_entry::login_uid),
            place: self.place(folder),
            words: proc_entry::words(&cmdline).take(MOST_WORDS).map(Name::from).collect(),
            environ: read_bytes(&folder.join("environ")).ok().map(|bytes| Environ::parse(&bytes)),
        };
        // Had the pid been given to another process meanwhile, parts of what was read would be that one's.
        (start()? == id).then_some(facts)
    }

    fn place(&self, folder: &Path) -> Option<Place> {
        read_to_string(&folder.join("cgroup")).ok().map(|text| Place::parse(&text))
    }

    /// Whose a process is.
    pub fn uid(&self, pid: u32) -> Option<u32> {
        let status = read_to_string(&self.root.join(pid.to_string()).join("status")).ok()?;
        proc_entry::effective_uid(&status)
    }

    /// What a process read and wrote since it started. Unit: bytes.
    pub fn io_bytes(&self, pid: u32) -> Option<u64> {
        let text = read_to_string(&self.root.join(pid.to_string()).join("io")).ok()?;
        proc_entry::io_bytes(&text)
    }

    /// The whole command line of a process.
    pub fn command_line(&self, pid: u32) -> Vec<Name> {
        let bytes = read_bytes(&self.root.join(pid.to_string()).join("cmdline")).unwrap_or_default();
        proc_entry::words(&bytes).map(Name::from).collect()
    }

    /// Whether a process has one of these files open.
    pub fn has_open(&self, pid: u32, files: &[PathBuf]) -> bool {
        let folder = self.root.join(pid.to_string()).join("fd");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|file| files.contains(&file)))
    }

    /// The root of a process's own file system, as seen from here.
    pub fn file_root(&self, pid: u32) -> PathBuf {
        self.root.join(pid.to_string()).join("root")
    }
}

fn read_text(path: &Path, text: &mut String) -> io::Result<()> {
    let mut bytes = std::mem::take(text).into_bytes();
    let read = File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes);
    *text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    read.map(|_| ())
}

fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    read_text(path, &mut text)?;
    Ok(text)
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
