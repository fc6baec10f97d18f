//! The pure core of the ledger: plain functions over plain data, from a site's records to a bill.
//!
//! ```text
//! bytes ─ import ─► Attempt ─ versions ─► the one that stands ─ holdings ─► Holding ─ usage ─► buckets ─ bill ─► lines
//!                     │                                                        ▲                   ▲
//!                     └► Rejected (quarantine)            nodes, outages, reservations          prices
//! ```
//!
//! Beside it, what nodes say: their [`Sample`](cardhour_domain::Sample)s become one timeline a device in [`telemetry`]; [`idle`] finds what did
//! nothing, [`mod@split`] says where each holding's time went, and [`energy`] whose energy it was.
//!
//! What this crate does not do: no files, no clock, no Delta Lake, no DataFusion, no async. `cardhour-ledger` gathers the
//! input, calls this crate once, and stores what came back.
//!
//! Start reading at [`attempt::Attempt`], the record everything else is made from. Units as in `cardhour_domain`.

pub mod advice;
pub mod attempt;
pub mod bill;
pub mod budgets;
pub mod cell;
pub mod checkpoint;
pub mod cluster;
pub mod delivery;
pub mod demo;
pub mod document;
pub mod energy;
pub mod focus;
pub mod gaps;
pub mod holdings;
pub mod idle;
pub mod import;
pub mod inventory;
pub mod job_use;
pub mod line;
pub mod nearest;
pub mod observed;
pub mod output;
pub mod pool_past;
pub mod price_trial;
pub mod prices;
pub mod quotas;
pub mod quote;
pub mod reconcile;
pub mod report;
pub mod run_costs;
pub mod set_aside;
pub mod site;
pub mod slots;
pub mod split;
pub mod statement;
pub mod states;
pub mod table;
pub mod telemetry;
pub mod trace;
pub mod usage;
pub mod versions;
#[cfg(test)]
mod world;
