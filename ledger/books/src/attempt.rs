//! One run of a job, as a record source tells it: a row of the table `jobs`.

use cardhour_domain::{AttemptKey, CardShare, JobState, Name, Timestamp};
use std::collections::BTreeMap;

/// One run of a job.
///
/// Every field but the key, the cluster and the state may be absent, and absent is never an empty text or a zero (LED-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Who it is.
    pub key: AttemptKey,
    /// The cluster; empty where neither row nor map names one.
    pub cluster: Name,
    /// The job's id as people know it: `123`, `123_4`, `19+1`.
    pub job_id: Name,
    /// Which run of the job it is, counted from 0, where the source says so.
    pub restart: Option<u32>,
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// Partition, queue or local queue.
    pub queue: Option<Name>,
    /// training, inference, evaluation, development or batch; or what the map says.
    pub class: Option<Name>,
    /// Model of the cards.
    pub model: Option<Name>,
    /// MIG profile, such as `1g.10gb`.
    pub mig_profile: Option<Name>,
    /// Free labels, by name.
    pub labels: BTreeMap<Name, Name>,
    /// How it stands.
    pub state: JobState,
    /// Whether it is over. By the state in sacct, by an end in the rest (design §4.1).
    pub is_final: bool,
    /// When it was asked for.
    pub submitted_at: Option<Timestamp>,
    /// When it got its cards.
    pub started_at: Option<Timestamp>,
    /// When it gave them back; none for an open one.
    pub ended_at: Option<Timestamp>,
    /// For an open one: the last moment its source vouches for. For a final one: its end, else its start or submit.
    pub as_of: Option<Timestamp>,
    /// For how long of start to end it was suspended. Unit: milliseconds.
    pub suspended_ms: i64,
    /// Cards asked for.
    pub cards_requested: Option<CardShare>,
    /// Cards it has, over all its nodes: parts of them where it shares.
    pub cards: CardShare,
    /// Its share of one card was declared (whole cards are); undeclared holders split evenly what the others leave.
    pub share_declared: bool,
    /// The card, where the source names it; then `cards` is the share of that card.
    pub card_uuid: Option<Name>,
    /// Nodes in the order of the record, host lists expanded.
    pub nodes: Vec<Name>,
    /// Main memory asked for. Unit: MiB.
    pub memory_requested_mib: Option<i64>,
    /// The dated reservation it ran under.
    pub reservation: Option<Name>,
    /// Container image.
    pub image: Option<Name>,
    /// As the source writes it: `0:0`, `137`.
    pub exit_code: Option<Name>,
    /// Why it failed, in the source's words.
    pub failure_reason: Option<Name>,
    /// Where its result lies.
    pub artifact_uri: Option<Name>,
    /// Priority, as the source gives it.
    pub priority: Option<i64>,
    /// Whether it can be stopped and started again.
    pub restartable: Option<bool>,
}

impl Attempt {
    /// An attempt of which nothing is known but who it is: for readers to fill.
    pub fn new(key: AttemptKey, cluster: Name, job_id: Name, state: JobState) -> Self {
        Self {
            key,
            cluster,
            job_id,
            restart: None,
            org: None,
            project: None,
            user: None,
            queue: None,
            class: None,
            model: None,
            mig_profile: None,
            labels: BTreeMap::new(),
            state,
            is_final: false,
            submitted_at: None,
            started_at: None,
            ended_at: None,
            as_of: None,
            suspended_ms: 0,
            cards_requested: None,
            cards: CardShare::ZERO,
            share_declared: true,
            card_uuid: None,
            nodes: Vec::new(),
            memory_requested_mib: None,
            reservation: None,
            image: None,
            exit_code: None,
            failure_reason: None,
            artifact_uri: None,
            priority: None,
            restartable: None,
        }
    }
}

/// A row that could not be booked, for the table `quarantine`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rejected {
    /// Line of its file, counted from 1: the first line of a record that is broken over several. Row number for Parquet.
    pub line: u64,
    /// The record as it stood, bytes that are no UTF-8 replaced; at most 64 KiB of it.
    pub row: String,
    /// The field at fault, by our name; empty when it is the row as a whole.
    pub field: String,
    /// What is wrong, for people: names the value.
    pub reason: String,
}
