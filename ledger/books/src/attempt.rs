//! One run of a job, as a record source tells it: a row of the table `jobs`.

use cardhour_domain::{CardShare, JobState, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A short text that many rows share: a project, a queue, a user. Readers intern it, so that a million rows of one project
/// hold its name once.
pub type Name = Arc<str>;

/// Who an attempt is, the same in every export that tells of it (LED-4).
///
/// `cluster/job/attempt`, each part percent-encoded where it has a `/` or `%`. What the parts are made of is said at
/// [`AttemptKey::new`]. Stability: stored in every table; pinned by the test `keys_are_written_as_before`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey(Arc<str>);

impl AttemptKey {
    /// From its three parts.
    ///
    /// `cluster`: as the record names it, empty where it has none. `job`: the raw job id, with `_INDEX` for a task of an array.
    /// `run`: what tells one run of that job from another: `db…` (DBIndex), `sluid…`, `uid…` (pod), or the
    /// submit time with the restart number or the start, each in seconds since the epoch: `s1700000000r2`,
    /// `s1700000000b1700000100`; `s1700000000` alone for one that hasn't started; `row…` for a row without ids.
    pub fn new(cluster: &str, job: &str, run: &str) -> Self {
        let mut key = String::with_capacity(cluster.len() + job.len() + run.len() + 2);
        for (i, part) in [cluster, job, run].into_iter().enumerate() {
            if i > 0 {
                key.push('/');
            }
            let mut rest = part;
            while let Some(at) = rest.find(['/', '%']) {
                key.push_str(&rest[..at]);
                key.push_str(if rest.as_bytes()[at] == b'/' { "%2F" } else { "%25" });
                rest = &rest[at + 1..];
            }
            key.push_str(rest);
        }
        Self(key.into())
    }

    /// A key that was written by [`Self::new`], as a table gives it back.
    pub fn from_stored(key: &str) -> Self {
        Self(key.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `cluster/job`, without the run: what `report`'s column `jobs` counts.
    pub fn job(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(job, _)| job)
    }
}

impl fmt::Display for AttemptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_before() {
        assert_eq!(AttemptKey::new("gpu", "16_2", "db77").as_str(), "gpu/16_2/db77");
        assert_eq!(AttemptKey::new("a/b", "50%", "s1").as_str(), "a%2Fb/50%25/s1");
        assert_eq!(AttemptKey::new("a/b", "5", "s1").job(), "a%2Fb/5");
    }
}
