//! Who a node saw holding a device: what the collector tells of holders.

use crate::{AttemptKey, CardShare, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// A node saw that a holder had a device, from a first proof of life to a last one: a row of the table `observations`.
///
/// Shape: one row a holder, device and unbroken stretch; a stretch that goes on comes as several rows that touch, one a segment. What of
/// it counts beside a scheduler's accounting is decided in the books (design §4.1). Source: design §6.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Observation {
    /// From the first proof to the last, at most one tick over.
    pub during: Interval,
    /// The node that saw it.
    pub node: Name,
    /// The physical card's UUID, never its index.
    pub card_uuid: Name,
    /// The MIG instance's UUID; the card's own where it is not cut.
    pub device_uuid: Name,
    /// The instance's profile, such as `1g.10gb`.
    pub mig_profile: Option<Name>,
    /// Its declared share of the *card*; none where nothing declares one: then it splits evenly what the others leave.
    pub share: Option<CardShare>,
    /// What told of it; the best where several did.
    pub source: HolderSource,
    /// Who it is.
    pub holder: Holder,
    /// Who pays, by the site's rules.
    pub owner: Owner,
}

/// One run of something that can have a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// What it is.
    pub kind: HolderKind,
    /// Its cluster, as the collector's config names it.
    pub cluster: Name,
    /// Its id as machines know it: Slurm's raw job id, `namespace/pod`, a unit or session, `comm[pid]`.
    pub job_id: Name,
    /// Its id as people know it, where that differs: `123_4` for a task of an array.
    pub shown_id: Option<Name>,
    /// What tells this run from another of that id: `uid…` (pod), `sluid…`, `b…` (start, seconds since the epoch), `boot…` (boot, pid
    /// and start of a process).
    pub run: Name,
    /// When it started, where that is known better than by its first proof of life.
    pub started_at: Option<Timestamp>,
}

impl Holder {
    /// Its key, where no record of a scheduler gives it another.
    pub fn key(&self) -> AttemptKey {
        AttemptKey::new(&self.cluster, &self.job_id, &self.run)
    }
}

/// What can have a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HolderKind {
    /// A Slurm job.
    SlurmJob,
    /// A Kubernetes pod.
    Pod,
    /// A notebook, an editor's server, a login: something somebody sits at.
    Session,
    /// Processes that belong to nothing better known.
    Process,
    /// A virtual machine, by a vGPU instance or a card passed through.
    VirtualMachine,
}

impl HolderKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::SlurmJob, Self::Pod, Self::Session, Self::Process, Self::VirtualMachine];

    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlurmJob => "slurm_job",
            Self::Pod => "pod",
            Self::Session => "session",
            Self::Process => "process",
            Self::VirtualMachine => "virtual_machine",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What told of a holder, the most trusted first: the ranks of LED-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HolderSource {
    /// The scheduler itself: `scontrol`, `squeue`, or the hypervisor for a virtual machine.
    Scheduler,
    /// A file that the scheduler's prolog wrote.
    PrologMap,
    /// The kubelet's list of pod resources.
    Kubelet,
    /// The control group of a process.
    Cgroup,
    /// A process on the device and who runs it.
    Process,
}

impl HolderSource {
    /// All of them, the most trusted first.
    pub const ALL: [Self; 5] = [Self::Scheduler, Self::PrologMap, Self::Kubelet, Self::Cgroup, Self::Process];

    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::PrologMap => "prolog_map",
            Self::Kubelet => "kubelet",
            Self::Cgroup => "cgroup",
            Self::Process => "process",
        }
    }

    /// The source of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// Who pays, by the site's rules and not by what a user writes (design §6).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays; none is shown as `(unowned)`.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// Partition, queue or local queue.
    pub queue: Option<Name>,
    /// training, inference, evaluation, development or batch.
    pub class: Option<Name>,
    /// Labels that the site lets through, by name.
    pub labels: BTreeMap<Name, Name>,
    /// A project that a label asked for and the rules refuse: it becomes a row of `conflicts`.
    pub refused_project: Option<Name>,
}

/// Over this stretch the collector looked for holders of a card and missed none: what nobody held in it is free, not unaccounted. A row of
/// the table `watches`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watch {
    /// From when to when.
    pub during: Interval,
    /// The node.
    pub node: Name,
    /// The node's cluster.
    pub cluster: Name,
    /// The card.
    pub card_uuid: Name,
}
