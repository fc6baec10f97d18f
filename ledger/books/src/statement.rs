//! Entries and statements: what a month comes to, and what of it never changes again (design §4.5, LED-5).
//!
//! ```text
//! leaves of the bill ─┐
//! free and reserved ──┤                    ┌─ those of earlier months that are closed: less what stands ─► corrections
//! states, policy ─────┼─ draft ─► Entry ───┤
//! cost items ─────────┘                    └─ those of the open month ─► statements, one an org ─ close ─► frozen
//! ```
//!
//! An [`Entry`] is a signed amount of one owner and one month. [`draft()`] makes all entries of a month from its usage, its price book and its
//! [`BillingPolicy`]; the same function is asked again for a closed month, with the book and policy it was closed by, and what then differs from what
//! stands is a correction in an open month ([`corrections()`]). So a refund, a late job and a new price take one road.
//!
//! Does not: read or write tables, know the clock, render anything but the canonical text that is hashed.

mod absorb;
mod canonical;
mod changes;
mod corrections;
mod cost_item;
mod draft;
mod efficiency;
mod entry;
mod export_table;
mod fraction;
mod held;
mod idle;
mod issued;
mod made_of;
mod policy;
mod refunds;
mod seen;
mod shown;
mod side;
mod summary;
mod used_basis;

pub use absorb::{AbsorbedRates, AbsorbedRatesError, OVER_UNDER_RECOVERY, SpreadAt};
pub use canonical::{COLUMNS, canonical_csv};
pub use changes::{Changed, ChangedFigures, ChangedSource, Changes, Comparison, Told, ToldOtherwise};
pub use corrections::corrections;
pub use cost_item::{CostAmount, CostItem};
pub use draft::{Draft, MonthOfBooks, draft};
pub use entry::{Entry, EntryId, EntryKey, EntryKind};
pub use export_table::export_table;
pub use idle::{FREE, RESERVED};
pub use issued::{Coverage, Issue, PLATFORM, SignedOff, Statement, StatementTerms, of_org, statements};
pub use made_of::{LinePart, MadeOf};
pub use policy::{
    BillingMode, BillingPolicy, CapacityPolicy, EfficiencyEffect, EfficiencyPolicy, EfficiencyTier, FreeCapacity,
    RefundCause, RefundOf, RefundPolicy, ReservedCapacity, ShareBy, UsedBasis,
};
pub use refunds::{GivenBack, WRONGFUL_RECLAIM, given_back};
pub use seen::{SeenPart, untold};
pub use shown::{entries_table, statements_table};
pub use summary::{BesideFigures, CorrectionFigures, Figures, ModelFigures, ProjectFigures, Summary};

#[cfg(test)]
mod tests;
