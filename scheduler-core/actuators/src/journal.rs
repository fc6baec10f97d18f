//! What was planned, tried and seen: plain data that outlives the program.

mod file;

pub use file::FileJournal;

use crate::action::{Action, DecisionId};
use crate::next::Step;
use crate::past::{Answer, Past, Standing, Try};
use crate::sight::Sight;
use cardhour_domain::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What happened.
///
/// Kept for ever as lines of JSON: names of variants and fields stay (`a_line_of_the_journal_is_read_for_ever` pins them).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It was asked for.
    Planned(Action),
    /// A step is about to be done.
    Trying {
        /// Which.
        step: Step,
        /// What is seen just before.
        before: Sight,
    },
    /// What came of the step that was begun last.
    Tried(Answer),
    /// It is over.
    Over {
        /// How.
        standing: Standing,
        /// What was seen last, where anything was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Sight>,
    },
}

/// An event, of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Whose.
    pub decision: DecisionId,
    /// When.
    #[serde(with = "crate::instant")]
    pub at: Timestamp,
    /// What.
    pub event: Event,
}

/// Why a journal can't be kept. Nothing is touched then.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Its file can't be read or written.
    #[error("cannot keep the journal {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another program keeps it.
    #[error("the journal {} is kept by another program", path.display())]
    Locked {
        /// Which.
        path: PathBuf,
    },
    /// A line of it can't be read.
    #[error("line {line} of the journal {} can't be read: {reason}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// An event that can't come there.
    #[error("decision {decision}: {reason}")]
    OutOfOrder {
        /// Whose.
        decision: DecisionId,
        /// Why it can't.
        reason: &'static str,
    },
    /// Another store of it failed.
    #[error("cannot keep the journal")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Where it is kept. An entry is there for good when `record` returns.
pub trait Journal {
    /// Adds an entry. Errors: it isn't there.
    fn record(&mut self, entry: Entry) -> Result<(), JournalError>;
    /// All of a decision.
    fn past(&self, decision: &DecisionId) -> Option<&Past>;
    /// Actions whose first step was tried at that instant or later, of one tenant or of all.
    fn begun_since(&self, since: Timestamp, tenant: Option<&str>) -> usize;
    /// Actions that are not over: what a program that starts goes on with.
    fn open(&self) -> Vec<Action>;
}

/// The journal in memory: entries folded, by decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pasts(BTreeMap<DecisionId, Past>);

impl Pasts {
    /// Whether an entry may come now. Errors: why not.
    pub fn check(&self, entry: &Entry) -> Result<(), JournalError> {
        let reason = match (&entry.event, self.0.get(&entry.decision)) {
            (Event::Planned(action), None) if action.decision == entry.decision => return Ok(()),
            (Event::Planned(_), None) => "its action is of another decision",
            (Event::Planned(_), Some(_)) => "it is planned already",
            (Event::Trying { .. } | Event::Tried(_) | Event::Over { .. }, None) => "it was never planned",
            (_, Some(past)) if past.standing.is_over() => "it is over",
            (Event::Tried(_), Some(past)) if past.tries.last().is_none_or(|tried| tried.answer.is_some()) => {
                "an answer to nothing"
            }
            (Event::Trying { .. } | Event::Tried(_) | Event::Over { .. }, Some(_)) => return Ok(()),
        };
        Err(JournalError::OutOfOrder { decision: entry.decision.clone(), reason })
    }

    /// Adds an entry. Errors: it can't come there.
    pub fn fold(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.check(&entry)?;
        match (entry.event, self.0.get_mut(&entry.decision)) {
            (Event::Planned(action), _) => {
                self.0.insert(entry.decision, Past::planned(action));
            }
            (Event::Trying { step, before }, Some(past)) => {
                past.tries.push(Try { step, at: entry.at, before, answer: None });
            }
            (Event::Tried(answer), Some(past)) => {
                if let Some(tried) = past.tries.last_mut() {
                    tried.answer = Some(answer);
                }
            }
            (Event::Over { standing, after }, Some(past)) => (past.standing, past.after) = (standing, after),
            (Event::Trying { .. } | Event::Tried(_) | Event::Over { .. }, None) => unreachable!("checked above"),
        }
        Ok(())
    }

    /// All of a decision.
    pub fn past(&self, decision: &DecisionId) -> Option<&Past> {
        self.0.get(decision)
    }

    /// Actions whose first step was tried at that instant or later, of one tenant or of all.
    pub fn begun_since(&self, since: Timestamp, tenant: Option<&str>) -> usize {
        let counts = |past: &&Past| {
            let is_theirs = tenant.is_none_or(|tenant| past.action.tenant.as_deref() == Some(tenant));
            is_theirs && past.first().is_some_and(|tried| tried.at >= since)
        };
        self.0.values().filter(counts).count()
    }

    /// Actions that are not over.
    pub fn open(&self) -> Vec<Action> {
        self.0.values().filter(|past| !past.standing.is_over()).map(|past| past.action.clone()).collect()
    }
}

impl Journal for Pasts {
    fn record(&mut self, entry: Entry) -> Result<(), JournalError> {
        self.fold(entry)
    }

    fn past(&self, decision: &DecisionId) -> Option<&Past> {
        Pasts::past(self, decision)
    }

    fn begun_since(&self, since: Timestamp, tenant: Option<&str>) -> usize {
        Pasts::begun_since(self, since, tenant)
    }

    fn open(&self) -> Vec<Action> {
        Pasts::open(self)
    }
}
