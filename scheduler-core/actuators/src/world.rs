//! What is looked at and touched.

use crate::action::What;
use crate::kubernetes::Cluster;
use crate::next::Step;
use crate::past::Answer;
use crate::process::Processes;
use crate::sight::Sight;
use crate::slurm::Slurm;

/// Why nothing could be seen or done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It can't be reached, or says nothing that can be read. It may be otherwise in a while.
    #[error("{0}")]
    Unseen(String),
    /// It can't be done from here at all.
    #[error("{0}")]
    NotHere(String),
}

/// What is looked at and touched. Tests have one of their own.
pub trait World {
    /// Looks, and touches nothing.
    fn look(&mut self, what: &What) -> Result<Sight, Trouble>;
    /// Does one step, on what was just seen.
    fn act(&mut self, what: &What, step: &Step, sight: &Sight) -> Result<Answer, Trouble>;
}

/// The worlds that can be reached from here.
#[derive(Debug, Default)]
pub struct Worlds {
    /// A Slurm, where there is one.
    pub slurm: Option<Slurm>,
    /// This node's processes, where they may be touched.
    pub processes: Option<Processes>,
    /// A Kubernetes cluster, where there is one.
    pub kubernetes: Option<Cluster>,
}

fn not_here<T>(world: Option<T>, name: &str) -> Result<T, Trouble> {
    world.ok_or_else(|| Trouble::NotHere(format!("{name} can't be reached from here")))
}

impl World for Worlds {
    fn look(&mut self, what: &What) -> Result<Sight, Trouble> {
        match what {
            What::SlurmJob(what) => not_here(self.slurm.as_mut(), "Slurm")?.look_at_job(what).map(Sight::Job),
            What::SlurmLimit(what) => not_here(self.slurm.as_mut(), "Slurm")?.look_at_limit(what).map(Sight::Setting),
            What::Process(what) => {
                not_here(self.processes.as_mut(), "a process of a node")?.look(what).map(Sight::Process)
            }
            What::Kubernetes(what) => not_here(self.kubernetes.as_mut(), "Kubernetes")?.look(what),
        }
    }

    fn act(&mut self, what: &What, step: &Step, sight: &Sight) -> Result<Answer, Trouble> {
        match (what, sight) {
            (What::SlurmJob(what), Sight::Job(sight)) => {
                not_here(self.slurm.as_mut(), "Slurm")?.act_on_job(what, step, sight)
            }
            (What::SlurmLimit(what), _) => not_here(self.slurm.as_mut(), "Slurm")?.set_limit(what, step),
            (What::Process(what), _) => not_here(self.processes.as_mut(), "a process of a node")?.act(what, step),
            (What::Kubernetes(what), sight) => not_here(self.kubernetes.as_mut(), "Kubernetes")?.act(what, step, sight),
            (What::SlurmJob(_), _) => Err(Trouble::NotHere("what was seen is no job".to_owned())),
        }
    }
}
