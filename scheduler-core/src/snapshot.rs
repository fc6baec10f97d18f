//! The pool at one instant, as plain data: the ground state from which a plan is made.
//!
//! Start at [`Snapshot`]. Nothing here is worked out: totals, free room and shares are found by whoever reads it, so that the two
//! readers, [`decide`](crate::decide()) and [`audit`](crate::audit()), can disagree. Lists may come in any order; a plan doesn't depend on it.
//!
//! Units: cards in [`CardShare`] (18,018,000 parts a card), CPU in thousandths of a core, memory in bytes, time in [`Timestamp`], weights in
//! thousandths. A limit that isn't set is `None`, never zero.

use std::collections::BTreeMap;

use cardhour_domain::{CardShare, CardTime, Timestamp};

use crate::capacity::BandEffect;
use crate::names::{HostName, JobName, Model, QueueName, Tenant};
use crate::policy::QueueRules;

/// The pool at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The instant. Every span of time below is measured to it; nobody looks at a clock.
    pub at: Timestamp,
    /// The quota tree: each queue names its parent. Several roots are several trees.
    pub queues: Vec<Queue>,
    /// The machines. Empty: where a job runs is another's business, and quota alone decides.
    pub hosts: Vec<Host>,
    /// What there is of each resource where [`Self::hosts`] is empty and quota isn't the measure
    /// ([`Fairness::counts_hosts`](crate::policy::Fairness::counts_hosts)).
    pub capacity: BTreeMap<Resource, i64>,
    /// Whether this instant is in an off-peak window, for queues whose new work starts in those only.
    pub off_peak: bool,
    /// What holds cards, including what is on its way out.
    pub running: Vec<Running>,
    /// What waits for cards.
    pub pending: Vec<Pending>,
    /// Room set aside by an earlier plan for a job that still waits.
    pub reservations: Vec<Reservation>,
}

/// Something a quota counts. Each card model is one of its own: borrowing of one never costs a queue its part of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Cards of a model, in parts of a card.
    Cards(Model),
    /// Processor time, in thousandths of a core.
    Cpu,
    /// Host memory, in bytes.
    Memory,
}

/// A node of the quota tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: QueueName,
    /// The node above. `None`: a root.
    pub parent: Option<QueueName>,
    /// Its quota of each resource. A resource that isn't named has no quota: the queue may use what others leave, and isn't judged by it.
    pub quota: BTreeMap<Resource, Quota>,
    /// Its part of what is above quota, in thousandths. Zero: none.
    pub weight_milli: u64,
    /// Among siblings, who is served first above quota. Higher first; it never touches quota itself.
    pub over_quota_priority: i32,
    /// When it was made: of two equal claims the older queue's goes first.
    pub created: Option<Timestamp>,
    /// Whose it is, for the sharing of cards. `None`: its parent's; where no ancestor says, the queue stands for itself.
    pub tenant: Option<Tenant>,
    /// Its own rules of preemption. `None`: its parent's, and the policy's above all.
    pub rules: Option<QueueRules>,
    /// Card-time used lately, decayed, out of the ledger.
    pub past_usage: CardTime,
    /// What its month's card-hours change for new work; see [`month_bucket`](crate::capacity). `None`: nothing. Running work is never ended for it.
    pub band: Option<BandEffect>,
}

/// What a queue may have of one resource. Unit: that of the [`Resource`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Guaranteed.
    pub nominal: i64,
    /// How much it may borrow above [`Self::nominal`]. `None`: no limit of its own.
    pub borrow_limit: Option<i64>,
    /// How much of [`Self::nominal`] others may borrow. `None`: all of it.
    pub lend_limit: Option<i64>,
    /// A cap that nothing passes.
    pub max: Option<i64>,
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: HostName,
    /// The model of its cards.
    pub model: Model,
    /// How many cards it has.
    pub cards: u32,
    /// Processor, in thousandths of a core. `None`: not counted.
    pub cpu_milli: Option<i64>,
    /// Memory in bytes. `None`: not counted.
    pub memory_bytes: Option<i64>,
    /// Where it stands. The name of a domain is read within the domain above it: rack `r1` of two zones is two racks.
    pub domains: BTreeMap<Level, String>,
    /// Whether jobs may be placed on it.
    pub state: HostState,
    /// Capacity that comes and goes with a window of the day.
    pub window: Option<Window>,
}

/// How hosts are grouped, widest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// A zone or a building.
    Zone,
    /// Racks behind one spine.
    Block,
    /// A rack.
    Rack,
    /// Hosts joined by NVLink.
    Island,
    /// One host.
    Host,
}

/// Whether a host can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// It can.
    Healthy,
    /// Nothing new on it; what runs there goes on.
    Draining,
    /// Sick or gone: what ran there has to be placed again.
    Failed,
}

/// Whether revocable capacity is given at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// It is, to jobs that accept to lose it.
    Open,
    /// It isn't.
    Closed,
}

/// What a job asks of each of its workers, and where they may stand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// The models it runs on, best first. Empty: any.
    pub models: Vec<Model>,
    /// Cards of a worker. Less than one is a part of one card; above one, whole cards of one host and at most one part.
    pub cards: CardShare,
    /// Processor of a worker, in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory of a worker in bytes.
    pub memory_bytes: i64,
    /// All workers inside one domain of this level. `None`: no such need.
    pub same: Option<Level>,
    /// One domain of this level is better, but no condition.
    pub prefer: Option<Level>,
    /// Apart rather than packed.
    pub spread: bool,
    /// Whether it may be given windowed capacity.
    pub accepts_revocation: bool,
}

/// A job that holds cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The job.
    pub name: JobName,
    /// Whose quota it counts on. Fixed when it was admitted.
    pub queue: QueueName,
    /// Its rank inside its queue. Higher is more important.
    pub priority: i32,
    /// What each worker has.
    pub shape: Shape,
    /// Where its workers are. The sum of their numbers is how many it has.
    pub pieces: Vec<Piece>,
    /// The fewest workers it can run with. What it has above that is surplus and can be given back.
    pub min_workers: u32,
    /// Workers it should have and hasn't, since when. `None`: it is whole.
    pub missing: Option<Missing>,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it was admitted.
    pub admitted: Timestamp,
    /// The last checkpoint that was seen on storage. `None`: none, so all since admission would be lost.
    pub checkpoint: Option<Timestamp>,
    /// When it ends at the latest. `None`: not known.
    pub ends_by: Option<Timestamp>,
    /// What a start again costs before work goes on, in ms.
    pub restart_ms: i64,
    /// Whether it may be ended at all. `false` for interactive and critical services.
    pub preemptible: bool,
    /// Whether it comes back by itself after being ended.
    pub restartable: bool,
    /// A window in which nobody may touch it.
    pub critical: Option<CriticalWindow>,
    /// It has been told to go, and still holds its cards.
    pub leaving: bool,
    /// How often it was ended for others in the last day.
    pub preempted_today: u32,
    /// When it was last ended for others, or moved.
    pub last_preempted: Option<Timestamp>,
}

/// Workers that a job has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// How many.
    pub workers: u32,
    /// Since when. `None`: longer than anybody remembers.
    pub since: Option<Timestamp>,
}

/// Some workers of a job on one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// The host. `None`: not known; they count for quota, and are put anywhere for room.
    pub host: Option<HostName>,
    /// How many workers.
    pub workers: u32,
    /// Which cards, by their place on the host, worker after worker. Empty: not known.
    pub cards: Vec<u32>,
}

/// A job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The job.
    pub name: JobName,
    /// Whose quota it will count on.
    pub queue: QueueName,
    /// Its rank inside its queue. Higher is more important.
    pub priority: i32,
    /// What each worker asks.
    pub shape: Shape,
    /// How many workers it wants.
    pub workers: u32,
    /// With how many it can start. Equal to [`Self::workers`]: all or nothing.
    pub min_workers: u32,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Whether it may be ended later. What can't be taken back isn't lent.
    pub preemptible: bool,
    /// A window of precedence over others.
    pub critical: Option<CriticalWindow>,
    /// How long it runs at most. `None`: not known; it is never used to fill a gap.
    pub longest_ms: Option<i64>,
    /// When it was last ended for others: until the cool-down is over it waits behind those it was ended for.
    pub last_preempted: Option<Timestamp>,
}

/// A stretch of time in which a job goes before others. It counts only when somebody other than its asker approved it, and it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalWindow {
    /// Who asked.
    pub asked_by: String,
    /// Who approved. `None`: nobody yet.
    pub approved_by: Option<String>,
    /// From when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

impl CriticalWindow {
    /// Whether it counts at `at`: approved by another than its asker, begun and not over.
    pub fn holds_at(&self, at: Timestamp) -> bool {
        self.approved_by.as_ref().is_some_and(|approver| *approver != self.asked_by)
            && self.from <= at
            && at < self.until
    }
}

/// Room that an earlier plan has set aside. It is held from the first eviction until its job starts or `until` has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The pending job it is for.
    pub job: JobName,
    /// Where, as [`Action::Reserve`](crate::plan::Action::Reserve) said. Empty where hosts aren't counted.
    pub pieces: Vec<Piece>,
    /// How many workers.
    pub workers: u32,
    /// The model it was made for.
    pub model: Model,
    /// When it lapses.
    pub until: Timestamp,
}
