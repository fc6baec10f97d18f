//! One round: what is known of all jobs at an instant goes in, what is decided comes out.
//!
//! Actions of rows, by [`Decision::action`]: `suspect`, `advise`, `warn`, `grace`, `ask_checkpoint`, `stop`, `reclaimed`, `ended`, `recovered`,
//! `extended`, `refuse_extension`, `withdraw`, `spare`, `alert`, `no_actuator`; of requests `extend` and `cancel`; of the rim `carried_out` and `mode`.
//!
//! Whoever calls, in this order: appends the decisions (leaving out ids that are there) and keeps the leases, both in one commit where it can; sends the
//! warnings and alerts; gives the orders to actuators, which carry each decision out once.

use crate::decision::{Decision, Mode};
use crate::kept::KeptLease;
use crate::policy::ReclaimPolicy;
use cardhour_actuators::Action;
use cardhour_books::attempt::Attempt;
use cardhour_books::observed::Seen;
use cardhour_domain::{Activity, AttemptKey, Name, Reading, Sample, Timestamp};
use std::collections::BTreeMap;

/// What is known at an instant.
///
/// Rows of telemetry: all that overlap `[reads_from(…), at)`, in any order, as often as they come. More does no harm; less makes jobs unseen.
#[derive(Clone, Copy, Debug)]
pub struct RoundInput<'a> {
    /// Now.
    pub at: Timestamp,
    /// The rule.
    pub policy: &'a ReclaimPolicy,
    /// The mode in force: the last that was set by command, else [`crate::policy::ActPolicy::mode`].
    pub mode: Mode,
    /// Whether telemetry could be read at all.
    pub source: Reading<()>,
    /// Whether the list of opt-outs could be read: with an unreadable `policy.toml`, the default policy and a gap, and nothing goes forward.
    pub opt_outs: Reading<()>,
    /// Attempts that hold cards by the records: `Standing::running`.
    pub running: &'a [Attempt],
    /// Who was seen on which card, when it was looked for (tables `observations` and `watches`), and the devices as last seen (`devices`).
    pub seen: &'a Seen,
    /// What cards said: table `samples`.
    pub samples: &'a [Sample],
    /// What holders' processes did: table `activity`.
    pub activity: &'a [Activity],
    /// The least power that a card was seen to draw, over as long as is known; where absent, the least of the given samples counts. Unit: milliwatts.
    pub least_power_mw: &'a BTreeMap<Name, i64>,
    /// The leases that the last round gave.
    pub kept: &'a [KeptLease],
    /// What people asked for: all requests about running jobs, also those that were answered.
    pub requests: &'a [Request],
    /// What became of warnings: the last of each job.
    pub notices: &'a [NoticeOutcome],
    /// Checkpoints that were seen: by actuators, or otherwise.
    pub checkpoints: &'a [SeenCheckpoint],
    /// Numbers of users on nodes, for processes that a collector ends.
    pub uids: &'a BTreeMap<Name, u32>,
}

/// Somebody asked for something: a row of `decisions` with the action `extend` or `cancel`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its id: the row's.
    pub id: Name,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Name,
    /// About which job.
    pub job: AttemptKey,
    /// What.
    pub wish: Wish,
}

/// What somebody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// More time. Unit: milliseconds.
    Extend {
        /// How much.
        for_ms: i64,
    },
    /// An operator calls off what was begun; the job is judged anew.
    Cancel,
}

/// What became of a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeOutcome {
    /// About which job.
    pub job: AttemptKey,
    /// The warning's number.
    pub notice: u32,
    /// When it was delivered, or why it couldn't be.
    pub delivered: Result<Timestamp, Name>,
}

/// A checkpoint that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCheckpoint {
    /// Whose.
    pub job: AttemptKey,
    /// When it was whole.
    pub done_at: Timestamp,
}

/// What is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundOutput {
    /// Rows to append, by attempt and in order.
    pub decisions: Vec<Decision>,
    /// All leases to keep; what isn't here is dropped.
    pub leases: Vec<KeptLease>,
    /// Messages to owners. Of a warning it has to be told what became of it ([`NoticeOutcome`]): without that nothing is taken, and it is given again
    /// in each round, under the same decision.
    pub warnings: Vec<Warning>,
    /// What actuators have to do: given again in each round while it is wanted, since an actuator carries out each decision once. An order of an
    /// earlier round that isn't here isn't wanted any more.
    pub orders: Vec<Order>,
    /// What the operator has to know.
    pub alerts: Vec<OperatorAlert>,
}

/// A message to an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The decision that it tells of.
    pub decision: Name,
    /// The job.
    pub job: AttemptKey,
    /// What sort of message.
    pub matter: Matter,
    /// Whose the job is.
    pub user: Option<Name>,
    /// The project, for its contacts.
    pub project: Option<Name>,
    /// The organisation.
    pub org: Option<Name>,
    /// What it says.
    pub words: Name,
}

/// What sort of message an owner gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// A warning with its number, sent again until it is delivered: cards are taken after its grace.
    Warning {
        /// The number.
        notice: u32,
    },
    /// Something to know; whether it arrives changes nothing.
    Notice,
}

/// What an actuator has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The action, under the decision's id.
    pub action: Action,
    /// Where.
    pub place: Place,
    /// About which job; none of one about a limit.
    pub job: Option<AttemptKey>,
}

/// Where an action is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// By the Slurm of a cluster.
    Slurm {
        /// The cluster.
        cluster: Name,
    },
    /// By the API of a Kubernetes cluster.
    Kubernetes {
        /// The cluster.
        cluster: Name,
    },
    /// By the collector of a node.
    Node {
        /// The node.
        node: Name,
    },
}

/// What the operator has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorAlert {
    /// Which, in a word: `no_telemetry`, `blind`, `lease_unreadable`, or that of a lease: `warning_undeliverable`, `still_held` …
    pub alert: Name,
    /// The cluster, where it is of one.
    pub cluster: Option<Name>,
    /// The job, where it is of one.
    pub job: Option<AttemptKey>,
    /// What it says.
    pub words: Name,
}

impl Request {
    /// What a row asks for; none of a row of anything else.
    pub fn of(row: &Decision) -> Option<Self> {
        let wish = match &*row.action {
            "extend" => Wish::Extend { for_ms: row.until?.unix_ms() - row.at.unix_ms() },
            "cancel" => Wish::Cancel,
            _ => return None,
        };
        Some(Self { id: row.id.clone(), at: row.at, by: row.actor.clone()?, job: row.attempt_key.clone()?, wish })
    }
}

impl Wish {
    /// For how long; none of what has no length. Unit: milliseconds.
    pub(crate) const fn for_ms(self) -> Option<i64> {
        match self {
            Self::Extend { for_ms } => Some(for_ms),
            Self::Cancel => None,
        }
    }

    /// The action of its row.
    pub const fn action(self) -> &'static str {
        match self {
            Self::Extend { .. } => "extend",
            Self::Cancel => "cancel",
        }
    }
}

/// From when on telemetry is needed for a round at `at`: since the last round and the age that it may have, for what came late; without one before,
/// a window more. Leases keep what they were told, so that a row isn't needed twice.
pub fn reads_from(at: Timestamp, policy: &ReclaimPolicy, kept: &[KeptLease]) -> Timestamp {
    let back = |at: Timestamp, ms: i64| Timestamp::from_unix_ms(at.unix_ms() - ms);
    match kept.iter().map(|lease| lease.at).max() {
        Some(last) => back(last.min(at), policy.stale_after_ms),
        None => back(at, policy.stale_after_ms + policy.lease.window_ms),
    }
}

/// One round further.
///
/// Shape: the same input gives the same bytes; rows by attempt, in the order in which they belong. Errors: none; what isn't known keeps the job.
pub fn round(input: RoundInput<'_>) -> RoundOutput {
    crate::judge::Judging::of(input).finish()
}
