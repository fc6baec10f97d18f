//! The books on Delta Lake.
//!
//! Facts (what sources said) go into tables of their own; holdings and usage are derived from them, and each derived commit says which
//! version of every fact table it was made from. So whatever is killed in between, the next command sees that the books lag
//! behind the facts, and works out the days that were touched (`derive`).
//!
//! ```text
//! import ─► jobs, nodes, reservations, outages, coverage ────────────┬─ derive ─► holdings, usage, conflicts ─ fold ─► reports
//!              └► jobs_history, quarantine                             │            observed_jobs
//! import metrics, segments ─► samples, activity, observations, watches, devices, node_events
//! ```
//!
//! What this crate does not do: no HTTP, no NVML, no prices' files, no formats for people. It is the only writer of the tables; `store`
//! is the only file that commits.
//!
//! Start reading at [`Ledger`]. Units as in `cardhour_domain`.

mod alerts;
mod billed;
mod closed;
mod closing;
mod columns;
mod course;
mod decisions;
mod deliveries;
mod derive;
#[cfg(test)]
mod earlier_landings;
mod error;
mod facts;
mod files;
#[cfg(test)]
mod fixture;
mod intake;
mod job_use;
mod ledger;
mod maintain;
mod memory;
mod meta;
mod reading;
mod reconciled;
mod recorded;
mod segments;
mod sick;
mod sources;
mod standing;
mod store;
mod tables;
mod touched;
mod verify;
mod version;
mod watched;

pub use billed::{Billed, ChangedLine, Terms, statement_rows};
pub use closing::{CloseOutcome, CloseRequest, Prepared, Refusal};
pub use course::Course;
pub use deltalake::DeltaTable;
pub use error::{Error, Remedy};
pub use ledger::{Booked, Ledger};
pub use maintain::{Maintain, Maintained, RETAIN_HOURS};
pub use meta::Meta;
pub use reading::Reading;
pub use reconciled::Reconciled;
pub use segments::{MOST_SEGMENT_BYTES, Segment, Taken};
pub use standing::Standing;
pub use tables::alerts::ToldAlert;
pub use tables::closings::Closing;
pub use tables::deliveries::Delivered;
pub use verify::{Check, ExportedBill, ExportedBillError, Fault, Law, Verdict};
pub use version::BooksVersion;
pub use watched::Watched;
