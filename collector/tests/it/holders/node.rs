//! A node drawn in a folder: its `/proc`, `/sys`, `/dev`, map files and `gres.conf`, and one look at it as text.

use cardhour_collector::holders::{
    Aliases, CardAlias, Claimant, ControllerSettings, DeviceProcess, LookInput, LookSettings, Looker, MapNumbers, Pods,
    ProcessKind, Scheduling, SlurmSettings, VgpuInstance,
};
use cardhour_collector::owners::Rules;
use cardhour_domain::{CardShare, Gap, Name, Reading, SeenDevice, Timestamp};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// When the node was booted. Unit: seconds since the epoch.
pub const BOOTED_AT_S: i64 = 1_700_000_000;

pub struct Node {
    pub folder: TempDir,
    pub devices: Vec<SeenDevice>,
    pub aliases: Aliases,
    pub on_devices: Vec<DeviceProcess>,
    pub pods: Pods,
    pub vgpus: Vec<VgpuInstance>,
    pub rules: Rules,
    pub scheduling: Scheduling,
    pub has_slurm: bool,
    pub controller: Option<ControllerSettings>,
    pub unlisted: BTreeSet<Name>,
}

/// One look as text, a row a line.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// `a job_id run source share user`.
    pub held: Vec<String>,
    /// `a job_id processes cpu_ms io_bytes is_attended`; `-` for what is missing.
    pub worked: Vec<String>,
    /// `kind detail`.
    pub events: Vec<String>,
    /// Letters of the cards that were watched.
    pub watched: String,
}

pub fn uuid(letter: char) -> Name {
    Name::from(format!("GPU-{letter}0000000"))
}

impl Node {
    /// With a card a letter, `/dev/nvidia0` the last of them: the driver's order is the other way round.
    pub fn new(letters: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for part in ["proc/sys/kernel/random", "proc/self/ns", "sys/bus/pci/devices", "dev/pts", "jobmap"] {
            fs::create_dir_all(root.join(part)).unwrap();
        }
        fs::write(root.join("proc/sys/kernel/random/boot_id"), "b001b001-1111-2222-3333-444444444444\n").unwrap();
        fs::write(root.join("proc/stat"), format!("cpu 1 2 3\nbtime {BOOTED_AT_S}\n")).unwrap();
        std::os::unix::fs::symlink("pid:[4026531836]", root.join("proc/self/ns/pid")).unwrap();
        let count = letters.chars().count() as u32;
        let card = |(i, letter): (usize, char)| SeenDevice {
            at: Timestamp::from_unix_s(BOOTED_AT_S),
            node: "n1".into(),
            cluster: "lab".into(),
            card_uuid: uuid(letter),
            device_uuid: uuid(letter),
            pci_bus_id: Some(Name::from(format!("00000000:{:02X}:00.0", i + 1))),
            model: None,
            memory_bytes: Some(40 << 30),
            driver: None,
            mig_mode: None,
            mig_profile: None,
            share: CardShare::CARD,
            power_limit_mw: None,
        };
        let alias = |(i, letter): (usize, char)| CardAlias {
            card_uuid: uuid(letter),
            minor: Some(count - 1 - i as u32),
            nvml_index: Some(i as u32),
            pci_bus_id: None,
        };
        // gres.conf lists the files from 0 on: Slurm's 0 is the last letter.
        fs::write(root.join("gres.conf"), format!("Name=gpu File=/dev/nvidia[0-{}]\n", count - 1)).unwrap();
        let mut node = Self {
            devices: letters.chars().enumerate().map(card).collect(),
            aliases: Aliases { cards: letters.chars().enumerate().map(alias).collect(), instances: vec![] },
            on_devices: vec![],
            pods: Pods::default(),
            vgpus: vec![],
            rules: Rules::default(),
            scheduling: Scheduling::Open,
            has_slurm: false,
            controller: None,
            unlisted: BTreeSet::new(),
            folder,
        };
        node.process(1, "systemd", 0, 0, "/init.scope", "", "/sbin/init");
        node
    }

    pub fn path(&self, part: &str) -> std::path::PathBuf {
        self.folder.path().join(part)
    }

    /// A process that started `pid` seconds after the boot.
    #[expect(clippy::too_many_arguments, reason = "a row of a table that tests read")]
    pub fn process(&mut self, pid: u32, comm: &str, parent: u32, uid: u32, cgroup: &str, environ: &str, command: &str) {
        let folder = self.path(&format!("proc/{pid}"));
        fs::create_dir_all(folder.join("fd")).unwrap();
        self.stat(pid, comm, parent, 0, 0);
        fs::write(folder.join("status"), format!("Name:\t{comm}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")).unwrap();
        fs::write(folder.join("loginuid"), "4294967295").unwrap();
        fs::write(folder.join("cgroup"), format!("0::{cgroup}\n")).unwrap();
        fs::write(folder.join("environ"), environ.replace(' ', "\0")).unwrap();
        fs::write(folder.join("cmdline"), command.replace(' ', "\0")).unwrap();
        self.io(pid, 0);
    }

    /// Its counters of time, and its terminal (`/dev/pts/N` plus one; 0 for none).
    pub fn stat(&self, pid: u32, comm: &str, parent: u32, ticks: u64, terminal: u32) {
        let tty = if terminal == 0 { 0 } else { 136 * 256 + terminal - 1 };
        let start = u64::from(pid) * 100;
        let text =
            format!("{pid} ({comm}) S {parent} {pid} {pid} {tty} -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {start} 0 0\n");
        fs::write(self.path(&format!("proc/{pid}/stat")), text).unwrap();
    }

    pub fn io(&self, pid: u32, bytes: u64) {
        fs::write(self.path(&format!("proc/{pid}/io")), format!("rchar: {bytes}\nwchar: 0\nread_bytes: 7\n")).unwrap();
    }

    pub fn end(&self, pid: u32) {
        fs::remove_dir_all(self.path(&format!("proc/{pid}"))).unwrap();
    }

    /// A process on a card.
    pub fn on(&mut self, letter: char, pid: u32) {
        self.on_devices.push(DeviceProcess {
            card_uuid: uuid(letter),
            device_uuid: uuid(letter),
            pid,
            memory_bytes: Reading::Seen(1 << 30),
            kind: ProcessKind::Compute,
            work_weight: Reading::Missing(Gap::NotSupported),
        });
    }

    pub fn looker(&self) -> Looker {
        let slurm = self.has_slurm.then(|| SlurmSettings {
            nodes: vec!["n1".into()],
            gres_conf: self.path("gres.conf"),
            map_folder: Some(self.path("jobmap")),
            map_numbers: MapNumbers::Slurm,
            controller: self.controller.clone(),
        });
        // Names of users come from a command that these tests give.
        let getent = self.path("getent");
        if !getent.exists() {
            write_program(&getent, "case $2 in 1000) echo alice:x:1000:;; 1001) echo bob:x:1001:;; *) exit 2;; esac");
        }
        let settings = LookSettings {
            cluster: "lab".into(),
            proc_root: self.path("proc"),
            sys_root: self.path("sys"),
            dev_root: self.path("dev"),
            getent,
            getent_timeout: Duration::from_secs(30),
            own_pid: 99_999,
            scheduling: self.scheduling,
            slurm,
            rules: self.rules.clone(),
        };
        Looker::new(settings).unwrap()
    }

    pub fn look(&self, looker: &mut Looker, at_s: i64) -> Seen {
        let look = looker.look(LookInput {
            at: Timestamp::from_unix_s(at_s),
            devices: &self.devices,
            aliases: &self.aliases,
            processes: &self.on_devices,
            unlisted: &self.unlisted,
            unwatched: &BTreeSet::new(),
            pods: &self.pods,
            given: vec![],
            vgpus: &self.vgpus,
            odd: vec![],
        });
        let letter = |uuid: &Name| uuid[4..5].to_owned();
        let held = look.held.iter().map(|h| {
            let share = h.share.map_or("-".to_owned(), |share| share.cards().normalize().to_string());
            let user = h.owner.user.as_deref().unwrap_or("-");
            let Claimant { holder, .. } = Claimant { holder: h.holder.clone(), owner: h.owner.clone() };
            format!("{} {} {} {} {share} {user}", letter(&h.card_uuid), holder.job_id, holder.run, h.source.name())
        });
        let number = |reading: Reading<i64>| reading.seen().map_or("-".to_owned(), |n| n.to_string());
        let worked = look.worked.iter().map(|w| {
            let job = w.holder.job().rsplit_once('/').unwrap().1.replace("%2F", "/");
            let attended = w.is_attended.seen().map_or("-".to_owned(), |attended| attended.to_string());
            let (cpu, io) = (number(w.cpu_ms), number(w.io_bytes));
            format!("{} {job} {} {cpu} {io} {attended}", letter(&w.card_uuid), w.processes)
        });
        Seen {
            held: held.collect(),
            worked: worked.collect(),
            events: look.events.iter().map(|event| format!("{} {}", event.kind.name(), event.detail)).collect(),
            watched: look.watched.iter().map(letter).collect(),
        }
    }
}

pub fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
