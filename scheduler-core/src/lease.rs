//! Idle leases: how a job that does nothing gives its cards back, and how one that does something never loses them.
//!
//! [`step`] takes what a job's lease was, what was seen of the job at one instant, and the policy; it returns what the lease is now, and what is
//! to be done. It never looks at a clock and never acts. [`step_round`] does so for all jobs at once and holds still when the telemetry goes away.
//!
//! ```text
//!             all cards and processes quiet           quiet for the lease's length
//!    active ────────── for a window ────────► suspect ───────────────► notified
//!      ▲ ▲                                       │                        │ the warning was delivered
//!      │ └──── work, or nothing seen, at any ────┴────────── grace ◄──────┘
//!      │       step: withdrawn                                 │ the grace is over
//!      │                                                       ▼
//!      └───────────────────────────────────────────── checkpoint asked
//!                                                              │ it was seen, or its time is over
//!    extended ◄── the owner asks, at any step                  ▼
//!        │                                                 stopping ──── the devices are free ───► reclaimed
//!        └─ its end: suspect, or active
//! ```
//!
//! # What keeps a job safe
//!
//! - All seen signals must be under their floors over the whole window, of which 90 % was seen. Whether the card's processors did anything must be
//!   among them: a processor at rest proves nothing of a card.
//! - Nothing seen is not idle: a gap, a failed check, an exemption list that couldn't be read, an owner who isn't proven, signals that
//!   contradict each other. None of them ever moves a lease forward.
//! - Two thresholds: idle begins below a floor and ends above twice the floor for two minutes, or at once when somebody is there. After each end a
//!   whole new window is needed, so that a lease doesn't flap.
//! - A lease goes forward one phase an observation, only on the newest one, and only if that very one is quiet.
//! - The grace begins when the warning was delivered. A warning that can't be delivered ends in an alert to the operator, never in a stop.
//! - Not while a checkpoint is being written, or seen starting; not while the job says that it sets up or loads data,
//!   for two hours at most on its word alone.
//! - A job of several cards is judged card by card and acted on as one: one idle card of four is a line of advice.
//! - When more than a part of all cards can't be seen at once, nobody's lease goes forward, and the operator is told.
//!
//! Each [`Step`] has its [`Evidence`] in card-hours, and [`Step::words`] says it to the owner. Does not: send a warning, signal a process, look at
//! the devices, price what was recovered, refund what was taken wrongly.

mod advance;
mod evidence;
mod exemption;
mod observation;
mod phase;
mod policy;
mod round;
mod signals;
mod state;
mod watch;

#[cfg(test)]
mod field_reports;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod properties;

pub use advance::{catch_up, step};
pub use evidence::{
    Action, Alert, CardEvidence, CheckpointOutcome, Evidence, ExtensionRefusal, IdleAdvice, Step, Withdrawal,
};
pub use exemption::{ExtensionRequest, OptOut};
pub use observation::{
    Attribution, CardNow, Check, CheckpointActivity, CheckpointSigns, NoticeReport, Observation, Release, ReportedPhase,
};
pub use phase::Phase;
pub use policy::{ClassPolicy, ExtensionLimits, Floors, LeasePolicy, LeasePolicyFault, Reclaim, UnseenCheckpoint};
pub use round::{Round, RoundAlert, RoundOutcome, step_round};
pub use signals::{CardReading, Presence, ProcessReading, Verdict, judge_card, judge_processes};
pub use state::{CheckpointWay, Job, Lease, SignalTarget};
