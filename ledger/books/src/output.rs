//! What jobs brought forth, as a site counts it: tokens, samples, experiments; and what a unit of it cost.
//!
//! The books know what a job held and what that cost; what came of it only its owner knows. `import output` takes that in, and [`per_unit()`] divides the one by
//! the other. Start at [`Output`]. Does not: guess an output, or weigh one unit against another.

mod per_unit;

pub use per_unit::per_unit;

use cardhour_domain::{AttemptKey, Name, Timestamp};

/// How much of one thing one job, or one run of it, brought forth.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Output {
    /// Whose it is.
    pub of: OutputOf,
    /// What is counted, in the site's own word: `tokens`, `samples`, `experiments`.
    pub unit: Name,
    /// How many. Unit: its `unit`; at least 0.
    pub amount: i64,
    /// When it was counted; none: when the job was over.
    pub at: Option<Timestamp>,
}

/// Whose output it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputOf {
    /// A job's, all its runs together.
    Job {
        /// Its cluster; empty where records name none.
        cluster: Name,
        /// Its id, with `_INDEX` for a task of an array.
        job_id: Name,
    },
    /// One run's, by the key that the books know it by.
    Attempt(AttemptKey),
}

impl OutputOf {
    /// `cluster/job`, as [`AttemptKey::job`] has it.
    pub fn job(&self) -> Name {
        match self {
            Self::Job { cluster, job_id } => AttemptKey::new(cluster, job_id, "").job().into(),
            Self::Attempt(key) => key.job().into(),
        }
    }
}
