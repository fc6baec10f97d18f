//! What a site has decided about sharing its pool: the knobs, as data.
//!
//! Start at [`Policy`]; [`Policy::default`] is what cardhour proposes. The switches that differ from it are what other schedulers do, so that
//! their cases can be replayed under them. All numbers are integers, shares of things in thousandths.

use std::collections::BTreeMap;

use crate::names::QueueName;

/// Who goes before whom, who may be ended for whom, and how much at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How queues are weighed against one another.
    pub fairness: Fairness,
    /// What holds where a queue and its ancestors say nothing.
    pub rules: QueueRules,
    /// In which order jobs are looked at.
    pub order: Order,
    /// How the loss of a victim is counted.
    pub victim_cost: VictimCost,
    /// Whether a job that can't be ended may use more than its queue's quota. What can't be taken back isn't lent.
    pub lends_to_unpreemptible: bool,
    /// At most this part of ordinary running jobs is ended at once, in thousandths. `None`: no budget.
    pub disruption_per_mille: Option<u32>,
    /// How often a job may be ended for others in a day. `None`: no limit.
    pub preemptions_a_day: Option<u32>,
    /// How long a job runs before it may be ended for others.
    pub min_run: MinRunTable,
    /// Whether the least run is asked of the queue itself or of the branch just under the common ancestor.
    pub min_run_from: MinRunFrom,
    /// How long after being ended a job waits behind others, and can't be ended again, in ms.
    pub cool_down_ms: i64,
    /// What a job without one of its workers may still hold its cards for, in ms.
    pub broken_grace_ms: i64,
    /// What becomes of a job whose lost workers find no room.
    pub node_failure: NodeFailure,
    /// Whether an elastic job has others ended to start larger than its least. `false`: it starts small and grows when there is room.
    pub elastic_ends_others_to_grow: bool,
    /// Whether two tenants may share a card in time. Only for replaying schedulers that don't care.
    pub tenants_share_cards: bool,
    /// Cards moved to make room for a job, as a multiple of what it asks for, in thousandths.
    pub moved_per_mille: u32,
    /// The most moves for one job.
    pub moves: u32,
    /// How past usage moves what is above quota. `None`: not at all.
    pub past_usage: Option<PastUsage>,
    /// How long a reservation holds, in ms.
    pub reservation_ms: i64,
    /// Within what span those who own quota get it back, see [`GiveBack`]. `None`: at once.
    pub give_back: Option<GiveBack>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            fairness: Fairness::DeservedShare,
            rules: QueueRules::default(),
            order: Order::SkipBlocked,
            victim_cost: VictimCost::CardTimeLost,
            lends_to_unpreemptible: false,
            disruption_per_mille: Some(200),
            preemptions_a_day: Some(3),
            // Half an hour: a job has loaded its data and written its first checkpoint.
            min_run: MinRunTable {
                default: MinRun { preempt_ms: Some(1_800_000), reclaim_ms: Some(1_800_000) },
                queues: BTreeMap::new(),
            },
            min_run_from: MinRunFrom::Branch,
            cool_down_ms: 1_800_000,
            broken_grace_ms: 60_000,
            node_failure: NodeFailure::FailFast,
            elastic_ends_others_to_grow: false,
            tenants_share_cards: false,
            moved_per_mille: 1_000,
            moves: 16,
            // A week: long enough to forgive a busy day, short enough to be felt.
            past_usage: Some(PastUsage { strength_milli: 1_000, window_ms: 7 * 24 * 3_600_000 }),
            reservation_ms: 1_800_000,
            give_back: None,
        }
    }
}

/// The rules of one queue about ending others' work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueRules {
    /// Whom its jobs may end inside the queue itself.
    pub within_queue: WithinQueue,
    /// Whom its jobs may end in queues that are above quota, while it stays within its own.
    pub reclaim: Reclaim,
    /// Whom its jobs may end in other queues in order to borrow. `None`: nobody.
    pub while_borrowing: Option<WhileBorrowing>,
}

impl Default for QueueRules {
    fn default() -> Self {
        Self { within_queue: WithinQueue::LowerPriority, reclaim: Reclaim::Any, while_borrowing: None }
    }
}

/// Who may be ended inside the queue of the job that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithinQueue {
    /// Nobody.
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Those of lower priority, and of equal priority those that were submitted later.
    LowerOrNewerEqual,
}

/// Who may be ended in other queues that are above quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// Nobody.
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Whoever is there: quota is quota.
    Any,
}

/// When a job may end others' work although its own queue would then be borrowing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhileBorrowing {
    /// The highest priority that may be ended. `None`: any that is lower than the asker's.
    pub victim_priority_max: Option<i32>,
    /// Whether the victim's queue must still have its quota in use afterwards: a mere borrower never pushes a lender under it.
    pub keep_victim_queue_at_nominal: bool,
}

/// How queues are weighed against one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// Not at all: quota, priority, and who came first.
    None,
    /// By what each borrows: the greatest part of what its parent can lend, over its weight.
    BorrowShare(ShareRules),
    /// Quota first, the rest by queue priority, then weight: each has a fair share in cards.
    DeservedShare,
    /// Quota and a cap; nothing is reclaimed for what is above quota.
    DeservedCap,
    /// As [`Self::DeservedCap`], from the side of the guarantee.
    Guaranteed,
    /// By what each has used lately over its weight.
    PastUsage,
}

impl Fairness {
    /// Whether the room is what the hosts have; else it is the sum of all quota.
    pub fn counts_hosts(self) -> bool {
        match self {
            Self::None | Self::BorrowShare(_) | Self::PastUsage => false,
            Self::DeservedShare | Self::DeservedCap | Self::Guaranteed => true,
        }
    }
}

/// Which comparisons of shares allow a job to be ended for another queue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRules {
    /// The asker's share afterwards is at most the victim's queue's share afterwards.
    pub final_at_most: bool,
    /// The asker's share afterwards is less than the victim's queue's share before.
    pub initial_less: bool,
}

/// In which order jobs are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One that can't start doesn't hold up those behind it.
    SkipBlocked,
    /// Where the first of a queue can't start, the rest of that queue isn't looked at this round.
    StrictHead,
}

/// How the loss of a victim is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimCost {
    /// Card-time since the last checkpoint that was seen, and what a start again costs.
    CardTimeLost,
    /// The one admitted last loses least: what schedulers do that see no checkpoints.
    Age,
}

/// What becomes of a job whose lost workers find no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFailure {
    /// It gives all its cards back and queues again.
    FailFast,
    /// It keeps them and waits.
    KeepTrying,
}

/// Where the least run of a victim is read when the asker is of another queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinRunFrom {
    /// At the branch just under the common ancestor: nobody shields itself from cousins by a long value of its own.
    Branch,
    /// At the victim's own queue.
    Queue,
}

/// How long a job runs before it may be ended, by whom it is ended for. `None`: the queue above says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinRun {
    /// For a job of its own queue, in ms.
    pub preempt_ms: Option<i64>,
    /// For a job of another queue, in ms.
    pub reclaim_ms: Option<i64>,
}

/// The least run of each queue; what a queue doesn't say it has from the queue above, in the end from the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinRunTable {
    /// Above all queues.
    pub default: MinRun,
    /// By queue.
    pub queues: BTreeMap<QueueName, MinRun>,
}

/// How past usage moves weights above quota; quota itself is never lost by having been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastUsage {
    /// How strongly, in thousandths: `weight + strength × (weight − used)`.
    pub strength_milli: u64,
    /// The span over which the ledger's decayed usage was gathered, in ms: what the pool could have given in it is all.
    pub window_ms: i64,
}

/// How quickly lent quota is called back, so that one owner's large job doesn't end forty small ones in one minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GiveBack {
    /// At least this much in a round, in parts of a card.
    pub step_parts: i64,
    /// Or this part of what is owed, in thousandths, whichever is more.
    pub owed_per_mille: u32,
}
