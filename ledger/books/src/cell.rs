//! Usage folded for a report: the sums of the buckets that no question of the report tells apart.

use cardhour_domain::{CardShare, CardState, CardTime, Name};

/// The sum of some rows of `usage`: those of one attempt (or of none), one place and one slot of time.
///
/// A *slot* is a set of buckets with the same month, prices and price window, numbered by [`crate::slots::Slots`]. Texts that many
/// cells share are best one [`Name`]: reports know an equal text again much faster when it is the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index into the report's attempts; none for time that nobody held.
    pub attempt: Option<u32>,
    /// What the cards were.
    pub state: CardState,
    /// Cluster.
    pub cluster: Name,
    /// Pool.
    pub pool: Option<Name>,
    /// Node.
    pub node: Option<Name>,
    /// Model.
    pub model: Option<Name>,
    /// MIG profile.
    pub mig_profile: Option<Name>,
    /// The share of a card that is held, where it is less than one; none for whole cards. Prices may select by it.
    pub share: Option<CardShare>,
    /// The reservation, for reserved time.
    pub reservation: Option<Name>,
    /// Slot of time.
    pub slot: u32,
    /// Time held, or in the state.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// Of the held time, what nobody has telemetry for (LED-3).
    pub unseen: CardTime,
    /// Of the held time, what is estimated rather than proven by accounting or observation.
    pub unproven: CardTime,
}
