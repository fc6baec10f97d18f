//! Who may share a card with whom, and whether those who do keep to it.
//!
//! Two questions, kept apart. [`may_join`] is the rule, asked before a holder comes to a card. [`audit_card`] looks at holders that were
//! observed and finds what breaks it, or what it can't prevent: more memory than the share, a fault of one that hits the others, a neighbour
//! that takes more of the processors than is its own.
//!
//! | who | may share by |
//! |---|---|
//! | one tenant | time-slicing, MPS, MIG, vGPU |
//! | different tenants, or one that isn't known | MIG, vGPU |
//! | training and critical work | nothing: a whole card |
//!
//! A tenant that isn't known is a different one from everybody, also from another that isn't known. What wasn't seen breaks no rule: it is counted
//! as not judged.
//!
//! Start at [`may_join`], [`audit_card`] and, for a victim and an aggressor on one card, [`trial`]. Does not: stop anybody, decide what a tenant is: that is the site's
//! word, most often the project.

mod audit;
mod faults;
mod mode;
mod rule;
pub mod trial;

pub use audit::{AuditLimits, CardAudit, Finding, ObservedCard, ObservedHolder, Severity, Violation, audit_card};
pub use faults::{FaultReach, HolderEnd, XidSeen, reach_of};
pub use mode::Mode;
pub use rule::{Breach, Party, may_join, modes_for};
