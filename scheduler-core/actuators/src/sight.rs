//! What a look showed: plain data, kept in the journal as before and after.

use crate::kubernetes::ObjectSight;
use crate::process::ProcessSight;
use crate::setting::SettingSight;
use crate::slurm::JobSight;
use serde::{Deserialize, Serialize};

/// What a look showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// Of a job.
    Job(JobSight),
    /// Of a process.
    Process(ProcessSight),
    /// Of a limit or quota, wherever it is kept.
    Setting(SettingSight),
    /// Of a Kubernetes object that ends, is stopped or started.
    Object(ObjectSight),
}
