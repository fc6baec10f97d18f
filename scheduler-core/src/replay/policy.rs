//! A pool's jobs played under a policy: when each would have started, who would have given way, what would have been lost.
//!
//! At each instant hosts change, jobs that are finished give their cards back, then jobs that arrive begin to wait, then [`decide`](crate::decide()) is asked about the pool, and what it says is
//! done at once: who starts, starts; who is to give way is gone, queues again as it was submitted and runs again in full; who is promised room has it kept and starts in a round of the same
//! instant. There are no checkpoints and no grace: what an ended or moved run had done is lost. It goes on until every job has run or can't be started any more.
//!
//! Start at [`Trace::play`]; [`Trace::play_audited`] has every plan looked at by [`audit`](crate::audit()). [`measure`](measure::measure) says what a course came to, of a played one and of a
//! recorded one alike. Units: milliseconds, parts of a card.
//!
//! Does not: shrink jobs (each has all its workers or none), fail hosts (one that is taken out goes on with what runs there).

pub mod measure;

mod machine;
mod past;

use crate::audit::Fault;
use crate::names::{HostName, JobName, Model, QueueName};
use crate::policy::Policy;
use crate::snapshot::{Host, Pending, Piece, Snapshot};
use cardhour_domain::{CardShare, Interval, Timestamp};
use machine::Machine;

/// What is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The pool as it begins, at its instant: hosts and queues with their quotas. Who runs and who waits comes from [`Self::jobs`]; what it has of that, and its queues' past usage, isn't looked at.
    pub pool: Snapshot,
    /// The jobs, each name once.
    pub jobs: Vec<Job>,
    /// What becomes of hosts later, in any order.
    pub hosts: Vec<HostChange>,
    /// What was used before it begins, for the shares above quota.
    pub used: Vec<Use>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What it asks for. It arrives when it was submitted, or when the play begins, and starts with all its workers.
    pub ask: Pending,
    /// How long it runs, not interrupted.
    pub runs_ms: i64,
    /// Whether it comes back by itself after being ended.
    pub restartable: bool,
    /// It has cards when the play begins.
    pub holds: Option<Holds>,
}

/// Where a job runs when the play begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Since when.
    pub since: Timestamp,
    /// Its workers' places.
    pub pieces: Vec<Piece>,
}

/// A host that comes, goes, or is in another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostChange {
    /// When.
    pub at: Timestamp,
    /// Which.
    pub name: HostName,
    /// As it is from then on. `None`: taken out, as soon as what runs there has ended.
    pub becomes: Option<Host>,
}

/// Cards that were used before the play begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// By whom.
    pub queue: QueueName,
    /// How many.
    pub cards: CardShare,
    /// From when to when.
    pub during: Interval,
}

/// One run of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// When it began.
    pub from: Timestamp,
    /// The job, by its place in [`Trace::jobs`].
    pub job: usize,
    /// When it ended.
    pub to: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// On which model. `None`: not known.
    pub model: Option<Model>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The job was done.
    Done,
    /// It gave way, and what it had done is lost.
    GaveWay,
    /// It went elsewhere to make room, and what it had done is lost.
    Moved,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// By start, then by job.
    pub runs: Vec<Run>,
    /// Jobs that could never start, by their place.
    pub unstarted: Vec<usize>,
    /// How often it was decided.
    pub rounds: u64,
    /// What the auditor found, and when; empty where it wasn't asked.
    pub faults: Vec<(Timestamp, Fault)>,
}

impl Job {
    /// Of all its workers.
    pub fn cards(&self) -> CardShare {
        CardShare::from_parts(self.ask.shape.cards.parts().saturating_mul(i64::from(self.ask.workers)))
    }

    /// Its name.
    pub fn name(&self) -> &JobName {
        &self.ask.name
    }
}

impl Trace {
    /// Plays it. The same trace and policy give the same course.
    pub fn play(&self, policy: &Policy) -> Course {
        Machine::new(self, policy).play(None)
    }

    /// Plays it, and has the auditor look at every plan.
    pub fn play_audited(&self, policy: &Policy) -> Course {
        Machine::new(self, policy).play(Some(policy))
    }
}

#[cfg(test)]
mod tests;
