//! The states of a card and of a job.

/// What a part of a card is, at an instant: exactly one, the first that matches (LED-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CardState {
    /// Has a holder.
    Held,
    /// Node or card out of service.
    Down,
    /// Set aside by a dated reservation and not held under it.
    Reserved,
    /// A source speaks for the time, and nobody held it.
    Free,
    /// Nobody saw it, and no accounting speaks for the time.
    Unaccounted,
}

impl CardState {
    /// In the order in which they claim an instant.
    pub const ALL: [Self; 5] = [Self::Held, Self::Down, Self::Reserved, Self::Free, Self::Unaccounted];

    /// Its name in `usage.state`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Down => "down",
            Self::Reserved => "reserved",
            Self::Free => "free",
            Self::Unaccounted => "unaccounted",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// The state of one attempt, in the words of `jobs.state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Waits to start.
    Pending,
    /// Has started and not ended.
    Running,
    /// Stopped for a while; its cards stay allocated.
    Suspended,
    /// Ended well.
    Completed,
    /// Ended with an error of its own.
    Failed,
    /// Stopped by somebody.
    Cancelled,
    /// Passed its time limit (or deadline).
    Timeout,
    /// Ran out of memory.
    OutOfMemory,
    /// Its node failed, or would not boot.
    NodeFail,
    /// Gave way to another.
    Preempted,
    /// Put back into the queue; the next run is an attempt of its own.
    Requeued,
    /// Changed its size; the next size is an attempt of its own.
    Resized,
    /// An idle session that was taken back.
    Reclaimed,
    /// Any other word.
    Unknown,
}

impl JobState {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Pending,
        Self::Running,
        Self::Suspended,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Timeout,
        Self::OutOfMemory,
        Self::NodeFail,
        Self::Preempted,
        Self::Requeued,
        Self::Resized,
        Self::Reclaimed,
        Self::Unknown,
    ];

    /// Its name in `jobs.state`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out_of_memory",
            Self::NodeFail => "node_fail",
            Self::Preempted => "preempted",
            Self::Requeued => "requeued",
            Self::Resized => "resized",
            Self::Reclaimed => "reclaimed",
            Self::Unknown => "unknown",
        }
    }

    /// The state of that name, in our own words; none for any other word.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether an attempt in this state may go on: then its end isn't known yet.
    ///
    /// `Unknown` is not open by its state; a row's end decides there (design §7).
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::Suspended)
    }
}
