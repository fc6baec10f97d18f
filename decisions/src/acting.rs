//! From what is decided about a job to the action of an actuator; or why there is none.
//!
//! A Slurm job gets its checkpoint's signal, and is ended with a signal and a grace, never requeued: it would take its cards again. A pod is evicted, so
//! that disruption budgets hold; one that a notebook, a job or a set of pods owns comes back, so there the owner is stopped or scaled to none, where
//! labels say which it is. A session or plain processes are ended by their node's own collector.

use crate::policy::{CheckpointRule, ReclaimPolicy};
use crate::round::{Order, Place};
use crate::who::RunningJob;
use cardhour_actuators::kubernetes::stopped::Stoppable;
use cardhour_actuators::kubernetes::{KubernetesAction, PodTarget, ScaleTarget, Scaled, StoppedTarget};
use cardhour_actuators::process::{ProcessAction, ProcessDeed, ProcessTarget, Scope};
use cardhour_actuators::setting::{Aim, From};
use cardhour_actuators::slurm::{JobAction, JobDeed, JobTarget, Mark, Reach};
use cardhour_actuators::{Action, DecisionId, Signal, What};
use cardhour_domain::{Holder, HolderKind, Name, Timestamp};
use std::collections::BTreeMap;

/// The label by which a job says at which signal it writes a checkpoint: `USR1`, `USR1:steps`, `none`.
pub const CHECKPOINT_LABEL: &str = "cardhour-checkpoint";
/// The label that names the file which is written last of a checkpoint, seen from the service.
pub const CHECKPOINT_FILE_LABEL: &str = "cardhour-checkpoint-file";
/// Labels that say what owns a pod: kind, name and uid.
pub const OWNER_LABELS: [&str; 3] = ["cardhour-owner-kind", "cardhour-owner-name", "cardhour-owner-uid"];

/// What is asked of an actuator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// A checkpoint. Unit: seconds that it is waited for.
    AskCheckpoint { within_s: u32 },
    /// Its end.
    End,
}

/// Who carries it out for a job.
pub(crate) struct Reached<'a> {
    pub job: &'a RunningJob,
    pub policy: &'a ReclaimPolicy,
    pub uids: &'a BTreeMap<Name, u32>,
}

impl Reached<'_> {
    /// How the job writes a checkpoint at a signal; none where it doesn't, or where no signal reaches it.
    pub fn checkpoint(&self) -> Option<CheckpointRule> {
        let is_reached = matches!(self.job.holder.as_ref()?.kind, HolderKind::SlurmJob);
        let file = self.job.labels.get(CHECKPOINT_FILE_LABEL).map(|path| Mark::File(path.as_str().into()));
        let of_policy = self.policy.checkpoint.clone();
        let rule = match self.job.labels.get(CHECKPOINT_LABEL) {
            None => of_policy,
            Some(label) => {
                let (signal, reach) = label.split_once(':').unwrap_or((label, "batch"));
                let reach = match reach {
                    "steps" => Reach::Steps,
                    "all" => Reach::All,
                    _ => Reach::Batch,
                };
                signal_of(signal).map(|signal| CheckpointRule { signal, reach, mark: of_policy.and_then(|p| p.mark) })
            }
        };
        let rule = rule.map(|rule| CheckpointRule { mark: file.or(rule.mark.clone()), ..rule });
        rule.filter(|_| is_reached)
    }

    /// The order. `at`: when it is given. Errors: why no actuator can carry it out.
    pub fn order(&self, decision: &Name, deed: Deed, at: Timestamp) -> Result<Order, String> {
        let (what, place) = self.what(deed)?;
        let wait_ms = match deed {
            Deed::AskCheckpoint { within_s } => i64::from(within_s) * 1000,
            Deed::End => i64::from(self.policy.act.end_grace_s) * 1000,
        };
        let deadline = at.checked_add_ms(wait_ms + self.policy.act.deadline_ms).unwrap_or(at);
        let tenant = self.job.told.project.as_ref().map(|project| project.to_string());
        let action = Action { decision: DecisionId::new(decision.as_str()), tenant, what, deadline };
        Ok(Order { action, place, job: Some(self.job.key.clone()) })
    }

    fn what(&self, deed: Deed) -> Result<(What, Place), String> {
        let Some(holder) = &self.job.holder else {
            return Err("no node sees what it is".to_owned());
        };
        let cluster = &self.job.told.cluster;
        let is_of = |clusters: &[Name]| clusters.is_empty() || clusters.contains(cluster);
        let act = &self.policy.act;
        match holder.kind {
            HolderKind::SlurmJob => match &act.slurm {
                Some(slurm) if is_of(&slurm.clusters) => {
                    let what = What::SlurmJob(JobAction { job: self.slurm_job(holder)?, deed: self.slurm_deed(deed)? });
                    Ok((what, Place::Slurm { cluster: cluster.clone() }))
                }
                Some(_) => Err(format!("[act.slurm] in policy.toml isn't of cluster {cluster}")),
                None => Err("it is a Slurm job, and policy.toml has no [act.slurm]".to_owned()),
            },
            HolderKind::Pod => match &act.kubernetes {
                Some(kubernetes) if is_of(&kubernetes.clusters) => {
                    let what = What::Kubernetes(self.pod(holder)?);
                    Ok((what, Place::Kubernetes { cluster: cluster.clone() }))
                }
                Some(_) => Err(format!("[act.kubernetes] in policy.toml isn't of cluster {cluster}")),
                None => Err("it is a pod, and policy.toml has no [act.kubernetes]".to_owned()),
            },
            HolderKind::Session | HolderKind::Process if act.processes => self.process(holder),
            HolderKind::Session | HolderKind::Process => {
                Err("it is a process of a node, and policy.toml has no processes = true in [act]".to_owned())
            }
            HolderKind::VirtualMachine => Err("it is a virtual machine, which nothing here ends".to_owned()),
        }
    }

    fn slurm_job(&self, holder: &Holder) -> Result<JobTarget, String> {
        let id = holder.job_id.parse().map_err(|_| format!("{:?} is no number of a Slurm job", &*holder.job_id))?;
        let Some(user) = &self.job.told.user else { return Err("its user isn't known".to_owned()) };
        Ok(JobTarget {
            id,
            user: user.to_string(),
            // Another run than this is left alone: it began at another time.
            restarts: self.job.restart.unwrap_or(0),
            started_at: self.job.started_at,
        })
    }

    fn slurm_deed(&self, deed: Deed) -> Result<JobDeed, String> {
        let rule = self.checkpoint();
        Ok(match (deed, rule) {
            (Deed::AskCheckpoint { within_s }, Some(CheckpointRule { signal, reach, mark: Some(mark) })) => {
                JobDeed::AskCheckpoint { signal, reach, mark, within_s }
            }
            (Deed::AskCheckpoint { .. }, Some(CheckpointRule { signal, reach, mark: None })) => {
                JobDeed::Warn { signal, reach }
            }
            (Deed::AskCheckpoint { .. }, None) => return Err("it writes no checkpoint at a signal".to_owned()),
            (Deed::End, _) => {
                JobDeed::End { first: Some((Signal::Term, Reach::Batch)), grace_s: self.policy.act.end_grace_s }
            }
        })
    }

    fn pod(&self, holder: &Holder) -> Result<KubernetesAction, String> {
        let shown = &*holder.job_id;
        let Some((namespace, name)) = shown.split_once('/') else {
            return Err(format!("{shown:?} is no NAMESPACE/POD"));
        };
        let Some(uid) = holder.run.strip_prefix("uid") else {
            return Err("its pod's uid isn't known".to_owned());
        };
        let label = |name: &str| self.job.labels.get(name).map(ToString::to_string);
        let [kind, owner, owner_uid] = OWNER_LABELS.map(label);
        let (Some(kind), Some(owner), Some(owner_uid)) = (kind, owner, owner_uid) else {
            let pod = PodTarget { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() };
            return Ok(KubernetesAction::Evict { pod, grace_s: Some(self.policy.act.end_grace_s) });
        };
        let namespace = namespace.to_owned();
        let stop =
            |kind| StoppedTarget { kind, namespace: namespace.clone(), name: owner.clone(), uid: owner_uid.clone() };
        let scale = |kind| {
            let owner = ScaleTarget { kind, namespace: namespace.clone(), name: owner.clone(), uid: owner_uid.clone() };
            KubernetesAction::Scale { owner, aim: Aim::Value { to: Some(0), from: From::Anything } }
        };
        match kind.as_str() {
            "Notebook" => Ok(KubernetesAction::Stop(stop(Stoppable::Notebook))),
            "Job" => Ok(KubernetesAction::Stop(stop(Stoppable::Job))),
            "Workload" => Ok(KubernetesAction::Stop(stop(Stoppable::Workload))),
            "Deployment" => Ok(scale(Scaled::Deployment)),
            "StatefulSet" => Ok(scale(Scaled::StatefulSet)),
            "ReplicaSet" => Ok(scale(Scaled::ReplicaSet)),
            other => Err(format!("its pod belongs to a {other}, which nothing here stops")),
        }
    }

    fn process(&self, holder: &Holder) -> Result<(What, Place), String> {
        let unknown = || format!("{:?} names no process of a boot", &*holder.run);
        // `bootBOOT-PID-TICKS`, and the boot has dashes of its own.
        let rest = holder.run.strip_prefix("boot").ok_or_else(unknown)?;
        let (rest, ticks) = rest.rsplit_once('-').ok_or_else(unknown)?;
        let (boot_id, pid) = rest.rsplit_once('-').ok_or_else(unknown)?;
        let (Ok(pid), Ok(start_ticks)) = (pid.parse(), ticks.parse()) else { return Err(unknown()) };
        let user = self.job.told.user.as_ref();
        let Some(uid) = user.and_then(|user| self.uids.get(user)) else {
            return Err("the number of its user on the node isn't known".to_owned());
        };
        let Some(node) = self.job.nodes.first().filter(|_| self.job.nodes.len() == 1) else {
            return Err("it isn't on exactly one node".to_owned());
        };
        let process = ProcessTarget { boot_id: boot_id.to_owned(), pid, start_ticks, uid: *uid };
        let scope = match holder.kind {
            HolderKind::Session => Scope::Session { id: pid },
            HolderKind::SlurmJob | HolderKind::Pod | HolderKind::Process | HolderKind::VirtualMachine => Scope::Main,
        };
        let deed = ProcessDeed::End { first: Signal::Term, grace_s: self.policy.act.end_grace_s };
        let what = What::Process(ProcessAction { process, scope, deed });
        Ok((what, Place::Node { node: node.clone() }))
    }
}

/// A signal by its name.
pub(crate) fn signal_of(name: &str) -> Option<Signal> {
    [Signal::Usr1, Signal::Usr2, Signal::Int, Signal::Hup, Signal::Term]
        .into_iter()
        .find(|signal| signal.name() == name)
}
