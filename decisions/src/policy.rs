//! What is reclaimed, when, how far it goes, and by what: `policy.toml` in the ledger's folder.
//!
//! Start at [`ReclaimPolicy::parse`]; [`Default`] is what holds without a file: the machine's own times and floors, in the mode `shadow`.

mod limit;
mod parse;

pub use limit::{LimitOf, LimitRule};

use crate::decision::Mode;
use cardhour_actuators::Signal;
use cardhour_actuators::slurm::{Mark, Reach};
use cardhour_books::document::Faults;
use cardhour_domain::{AttemptKey, Name, Timestamp};
use cardhour_scheduler_core::lease::{LeasePolicy, OptOut};
use std::path::PathBuf;

/// All of `policy.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReclaimPolicy {
    /// The rule: floors, window, times by class, limits.
    pub lease: LeasePolicy,
    /// How old the newest telemetry of a job may be before it counts as unseen: nodes seal what they saw every quarter hour. Unit: milliseconds.
    pub stale_after_ms: i64,
    /// Cards that came free count as recovered for this long: how much longer the job would have held them isn't known. Unit: milliseconds.
    pub recovered_for_ms: i64,
    /// How jobs write a checkpoint, where their labels don't say.
    pub checkpoint: Option<CheckpointRule>,
    /// Limits that change with a month's card-hours or a budget.
    pub limits: Vec<LimitRule>,
    /// Jobs that aren't reclaimed.
    pub opt_outs: Vec<OptOutRule>,
    /// How far it goes, and by what.
    pub act: ActPolicy,
}

/// How jobs of a queue or class write a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRule {
    /// At which signal.
    pub signal: Signal,
    /// To what of a Slurm job it goes.
    pub reach: Reach,
    /// How it is seen that one was written; none: it isn't, and is waited for to the end of its time.
    pub mark: Option<Mark>,
}

/// Jobs that aren't reclaimed: all that what is given names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptOutRule {
    /// One job, as people or as tables write it.
    pub job: Option<Name>,
    /// A user's.
    pub user: Option<Name>,
    /// A project's.
    pub project: Option<Name>,
    /// A queue's.
    pub queue: Option<Name>,
    /// A cluster's.
    pub cluster: Option<Name>,
    /// Who stands for it, why, and until when.
    pub opt_out: OptOut,
}

/// How far it goes, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActPolicy {
    /// How far, where nobody has set another by command.
    pub mode: Mode,
    /// How far in the mode `act` where neither cluster nor queue is on the list.
    pub elsewhere: Mode,
    /// Clusters in which it is done; empty: none by cluster alone.
    pub clusters: Vec<Name>,
    /// Queues in which it is done, `QUEUE` or `CLUSTER/QUEUE`.
    pub queues: Vec<Name>,
    /// Actions that are begun within an hour, at most.
    pub most_an_hour: u32,
    /// Of them for one project.
    pub most_an_hour_a_project: Option<u32>,
    /// Everything stops while this file is there.
    pub off_file: Option<PathBuf>,
    /// How long an end may take until it is given up. Unit: milliseconds.
    pub deadline_ms: i64,
    /// How long a job has from its end's signal to the kill. Unit: seconds.
    pub end_grace_s: u32,
    /// Slurm, where jobs of it are ended.
    pub slurm: Option<SlurmPolicy>,
    /// Kubernetes, where pods of it are.
    pub kubernetes: Option<KubernetesPolicy>,
    /// Whether processes of nodes are ended by their own collectors.
    pub processes: bool,
}

/// A Slurm whose jobs are ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmPolicy {
    /// Clusters that it is the controller of; empty: each whose holders are Slurm's jobs.
    pub clusters: Vec<Name>,
    /// `slurm.conf`, where it isn't at its usual place.
    pub conf: Option<PathBuf>,
    /// The folder of its commands; none: by the path.
    pub commands: Option<PathBuf>,
    /// How long one command may take. Unit: milliseconds.
    pub timeout_ms: i64,
}

/// A Kubernetes cluster whose pods are ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesPolicy {
    /// Clusters that it is the API of; empty: each whose holders are pods.
    pub clusters: Vec<Name>,
    /// Its address.
    pub url: Name,
    /// The certificates that it is known by; none: the system's.
    pub ca_file: Option<PathBuf>,
    /// The token of a service account.
    pub token_file: Option<PathBuf>,
    /// How long a question may take. Unit: milliseconds.
    pub timeout_ms: i64,
}

impl Default for ReclaimPolicy {
    fn default() -> Self {
        const MINUTE: i64 = 60_000;
        Self {
            // What a collector that seals every minute told is in the books well within this.
            lease: LeasePolicy { act_within_ms: 5 * MINUTE, ..LeasePolicy::default() },
            // A segment is sealed after a quarter hour, and may be on its way for a while.
            stale_after_ms: 20 * MINUTE,
            recovered_for_ms: 24 * 60 * MINUTE,
            checkpoint: None,
            limits: Vec::new(),
            opt_outs: Vec::new(),
            act: ActPolicy::default(),
        }
    }
}

impl Default for ActPolicy {
    fn default() -> Self {
        Self {
            mode: Mode::Shadow,
            elsewhere: Mode::Shadow,
            clusters: Vec::new(),
            queues: Vec::new(),
            most_an_hour: 20,
            most_an_hour_a_project: None,
            off_file: None,
            deadline_ms: 15 * 60_000,
            end_grace_s: 60,
            slurm: None,
            kubernetes: None,
            processes: false,
        }
    }
}

impl ReclaimPolicy {
    /// From the text of a file; the default for a text that says nothing. Errors: all faults of it, each with its line and key.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        parse::parse(text)
    }

    /// How far it goes for a job. `set`: the mode in force, by command or by this policy.
    pub fn mode_of(&self, set: Mode, cluster: &str, queue: Option<&str>) -> Mode {
        let is_listed = self.act.clusters.iter().any(|of| of == cluster)
            || queue.is_some_and(|queue| {
                self.act.queues.iter().any(|of| match of.split_once('/') {
                    Some((of_cluster, of_queue)) => of_cluster == cluster && of_queue == queue,
                    None => of == queue,
                })
            });
        match set {
            Mode::Act if !is_listed => self.act.elsewhere,
            Mode::Off | Mode::Shadow | Mode::Notify | Mode::Act => set,
        }
    }
}

impl OptOutRule {
    /// Whether it names a job.
    pub fn names(&self, key: &AttemptKey, job_id: &str, [cluster, queue, project, user]: [Option<&Name>; 4]) -> bool {
        let is = |of: &Option<Name>, value: Option<&Name>| of.as_ref().is_none_or(|of| value == Some(of));
        let job = self.job.as_ref().is_none_or(|job| *job == job_id || *job == key.as_str() || *job == key.job());
        job && is(&self.cluster, cluster)
            && is(&self.queue, queue)
            && is(&self.project, project)
            && is(&self.user, user)
    }

    /// Whether it is over.
    pub fn is_over(&self, at: Timestamp) -> bool {
        !self.opt_out.is_in_force(at)
    }
}
