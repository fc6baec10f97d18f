//! Slurm, by the site's own commands.
//!
//! Jobs ([`job`]): a signal to the part of it that the job names (R18), a checkpoint that is asked for and waited for (R17), an end with grace, a requeue.
//! Limits ([`limit`]): `sacctmgr`, where it can't end what runs. Only fields that Slurm itself writes are believed: a job's name or comment may say
//! anything, and is read only where the action says so.
//!
//! The commands run as whoever runs this: an operator of Slurm's is enough.

pub mod job;
pub mod limit;
mod queue;
mod watched_file;

pub use job::{JobAction, JobDeed, JobSight, JobTarget, Mark, Reach, RunSight};
pub use limit::{LimitAction, LimitHolder, LimitKind};

use crate::world::Trouble;
use cardhour_reach::command::{self, CommandError};
use std::path::PathBuf;
use std::time::Duration;

/// Where Slurm's commands are, and how long each may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmSettings {
    /// `slurm.conf`, where it isn't at its usual place.
    pub slurm_conf: Option<PathBuf>,
    /// The path of `squeue`.
    pub squeue: PathBuf,
    /// The path of `scontrol`.
    pub scontrol: PathBuf,
    /// The path of `scancel`.
    pub scancel: PathBuf,
    /// The path of `sacctmgr`.
    pub sacctmgr: PathBuf,
    /// How long one command may take.
    pub timeout: Duration,
}

impl Default for SlurmSettings {
    fn default() -> Self {
        Self {
            slurm_conf: None,
            squeue: "squeue".into(),
            scontrol: "scontrol".into(),
            scancel: "scancel".into(),
            sacctmgr: "sacctmgr".into(),
            // Slurm's own commands give up after a message timeout of ten seconds, or keep trying for minutes.
            timeout: Duration::from_secs(20),
        }
    }
}

/// A Slurm that is looked at and touched.
#[derive(Clone, Debug)]
pub struct Slurm {
    settings: SlurmSettings,
}

impl Slurm {
    /// By these commands.
    pub fn new(settings: SlurmSettings) -> Self {
        Self { settings }
    }

    fn run(&self, program: &std::path::Path, arguments: &[&str]) -> Result<String, CommandError> {
        let conf = self.settings.slurm_conf.as_ref().map(|path| path.to_string_lossy().into_owned());
        // Times as seconds of the epoch: those of a locale or zone are no instants.
        let mut variables = vec![("SLURM_TIME_FORMAT", "%s"), ("LC_ALL", "C")];
        variables.extend(conf.as_deref().map(|path| ("SLURM_CONF", path)));
        command::run(program, arguments, &variables, self.settings.timeout)
    }
}

fn unseen(error: CommandError) -> Trouble {
    match error {
        CommandError::Start { .. } => Trouble::NotHere(error.to_string()),
        CommandError::TimedOut { .. } | CommandError::Failed { .. } | CommandError::Unreadable { .. } => {
            Trouble::Unseen(error.to_string())
        }
    }
}

/// What a command's failure means for the step that it was to do.
fn refused(error: CommandError) -> Result<crate::past::Answer, Trouble> {
    use crate::past::Answer;
    let for_good = ["denied", "Nothing modified", "disabled", "Unknown", "Invalid user", "must be", "not permitted"];
    match error {
        CommandError::Failed { message, .. } if for_good.iter().any(|words| message.contains(words)) => {
            Ok(Answer::Declined(message))
        }
        CommandError::Start { .. } => Err(Trouble::NotHere(error.to_string())),
        // It may have been done all the same: the next look tells.
        CommandError::Failed { .. } | CommandError::TimedOut { .. } | CommandError::Unreadable { .. } => {
            Ok(Answer::Unknown(error.to_string()))
        }
    }
}
