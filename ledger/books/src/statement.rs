//! Entries and statements: what a month comes to, and what of it never changes again (design §4.5, LED-5).
//!
//! ```text
//! leaves of the bill ─┐
//! free and reserved ──┤                    ┌─ those of earlier months that are closed: less what stands ─► corrections
//! states, policy ─────┼─ draft ─► Entry ───┤
//! cost items ─────────┘                    └─ those of the open month ─► statements, one an org ─ close ─► frozen
//! ```
//!
//! An [`Entry`] is a signed amount of one owner and one month. [`mod@draft`] makes all entries of a month from its usage, its price book and its
//! [`BillingPolicy`]; the same function is asked again for a closed month, with the book and policy it was closed by, and what then differs from what
//! stands is a correction in an open month ([`corrections()`]). So a refund, a late job and a new price take one road.
//!
//! Does not: read or write tables, know the clock, render anything but the canonical text that is hashed.

mod canonical;
mod corrections;
mod draft;
mod entry;
mod issued;
mod policy;
mod shown;

pub use canonical::{COLUMNS, canonical_csv};
pub use corrections::corrections;
pub use draft::{CostItem, MonthOfBooks, draft};
pub use entry::{Entry, EntryId, EntryKey, EntryKind};
pub use issued::{Coverage, Issue, PLATFORM, SignedOff, Statement, statements};
pub use policy::BillingPolicy;
pub use shown::{entries_table, statements_table};
