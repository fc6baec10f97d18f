//! From the books to decisions, and from decisions to what is carried out: idle reclaim, one round at a time.
//!
//! The lease machine of `cardhour-scheduler-core` judges one job from what is seen of it; `cardhour-actuators` carry one action out. This crate joins
//! them with the books: who holds which card by the records and by what nodes saw, what those cards and the job's processes did, what owners asked for,
//! what became of warnings.
//!
//! ```text
//! records, observations ─ who ─► jobs and their cards ─┐
//! samples, activity, watches ──── looks ───────────────┴► Observation ─ lease machine ─► Step ─┬► Decision (a row of `decisions`)
//! kept leases, requests, notices, checkpoints ──────────────────────────────────────────────►  ├► Warning, OperatorAlert
//!                                                                                              └► Order (an action of an actuator)
//! ```
//!
//! Beside it, [`mod@limits`] lowers what an account may have at once while its month's card-hours or its budget are spent, and puts it back; [`month`] says how such a month stands.
//!
//! Start at [`round()`]. What it does not do: read tables, look at a clock, send a message, signal a process. Whoever calls it appends
//! [`RoundOutput::decisions`] and keeps [`RoundOutput::leases`] *first*, and sends and acts after that: killed in between, the next round says the same
//! again, under the same ids.
//!
//! Units: instants are [`Timestamp`](cardhour_domain::Timestamp)s, lengths `_ms` milliseconds, card-time `_card_ms` whole card-milliseconds, rounded down.

pub mod advised;
pub mod decision;
pub mod fitted;
pub mod isolation;
pub mod kept;
pub mod limits;
pub mod month;
pub mod policy;
pub mod round;
pub mod summed;

mod acting;
mod cells;
mod judge;
mod looks;
mod rows;
mod who;

pub use decision::{Decision, DecisionKind, Mode};
pub use kept::KeptLease;
pub use policy::ReclaimPolicy;
pub use round::{RoundInput, RoundOutput, round};
