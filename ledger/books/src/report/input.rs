//! What a report is made of: attempts, cells of usage, and capacity.

use crate::attempt::Attempt;
use crate::cell::Cell;
use crate::site::Reservation;
use cardhour_domain::{AttemptKey, CardShare, CardTime, Interval, JobState, Name, Timestamp};
use std::collections::BTreeMap;

/// All that a report reads. Shape: cells and capacity of the whole months that [`crate::slots::Slots::covers`], numbered by those slots;
/// any order, and cut in any way: every figure is a sum (LED-7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportInput {
    /// Attempts, each once: at least those that the cells point at, and those that never held anything. One that changed after a month of its was closed is
    /// there as it was then, too; then all are in order of their keys.
    pub attempts: Vec<ReportAttempt>,
    /// Usage, folded.
    pub cells: Vec<Cell>,
    /// How much there is to be held, where that is known.
    pub capacity: Vec<CapacityCell>,
    /// Reservations, for whose they are.
    pub reservations: Vec<Reservation>,
}

/// What a report needs of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportAttempt {
    /// Who it is.
    pub key: AttemptKey,
    /// Its cluster.
    pub cluster: Name,
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// Queue or partition.
    pub queue: Option<Name>,
    /// Class.
    pub class: Option<Name>,
    /// Free labels.
    pub labels: BTreeMap<Name, Name>,
    /// How it stands.
    pub state: JobState,
    /// Cards asked for.
    pub cards_requested: Option<CardShare>,
    /// Cards it had.
    pub cards: CardShare,
    /// When it was asked for.
    pub submitted_at: Option<Timestamp>,
    /// From its start to its end, or to the last moment its source vouches for; none for one that never started, or ended at once.
    pub held: Option<Interval>,
}

impl ReportAttempt {
    /// Whether it never held any card-time, in no month: counted where it was submitted, since no cell tells of it.
    pub fn never_held(&self) -> bool {
        self.held.is_none() || self.cards.is_zero()
    }

    /// Whether it belongs to nobody we know: shown as `(unowned)`, never dropped (design §6).
    pub fn is_unowned(&self) -> bool {
        self.org.is_none() && self.project.is_none() && self.user.is_none()
    }
}

impl From<&Attempt> for ReportAttempt {
    fn from(attempt: &Attempt) -> Self {
        let end = attempt.ended_at.or(attempt.as_of);
        Self {
            key: attempt.key.clone(),
            cluster: attempt.cluster.clone(),
            org: attempt.org.clone(),
            project: attempt.project.clone(),
            user: attempt.user.clone(),
            queue: attempt.queue.clone(),
            class: attempt.class.clone(),
            labels: attempt.labels.clone(),
            state: attempt.state,
            cards_requested: attempt.cards_requested,
            cards: attempt.cards,
            submitted_at: attempt.submitted_at,
            held: attempt.started_at.zip(end).and_then(|(start, end)| Interval::new(start, end)),
        }
    }
}

/// Capacity over one slot of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityCell {
    /// Cluster.
    pub cluster: Name,
    /// Pool.
    pub pool: Option<Name>,
    /// Node.
    pub node: Option<Name>,
    /// Model of its cards.
    pub model: Option<Name>,
    /// Slot of time.
    pub slot: u32,
    /// Cards in service times the time they were.
    pub card_time: CardTime,
}

/// Whether an attempt in this state failed as a whole, for `failed_card_hours`.
///
/// It ended without having done what it was started for, and nobody chose that: an error of its own, its node, memory or time limit. One that was
/// cancelled, preempted or requeued was stopped on purpose; what that cost is `lost`, not `failed`.
pub fn is_failed(state: JobState) -> bool {
    match state {
        JobState::Failed | JobState::Timeout | JobState::OutOfMemory | JobState::NodeFail => true,
        JobState::Pending
        | JobState::Running
        | JobState::Suspended
        | JobState::Completed
        | JobState::Cancelled
        | JobState::Preempted
        | JobState::Requeued
        | JobState::Resized
        | JobState::Reclaimed
        | JobState::Unknown => false,
    }
}
