//! Decisions about a shared pool of cards: who may have which, who waits, who gives back, and why.
//!
//! What this crate does not do: no input or output, no clock, no async, no floats in comparisons and no unordered maps. The same input gives
//! the same bytes, on any machine, at any time.
//!
//! How to read it. A [`snapshot`] of the pool and a site's [`policy`] go into [`decide()`], a [`plan`] comes out, each step with its reason and its
//! evidence; [`audit()`] finds fault with any plan without sharing a line with what made it. Inside, `pool` is the snapshot by number, `order` says who is looked at
//! next, `entitlement` and [`share`] what is whose, `victims` who gives way, `moves` who moves aside instead, `repair` what becomes of jobs that lost a host. [`rounds`] keeps a pool from one round to the next.
//!
//! Beside it: [`placement`] chooses hosts against fragmentation, [`mig`] cuts cards, [`sharing`] says who may share one, [`lease`] takes idle cards back, [`capacity`]
//! advises on size, and [`replay`] runs all that happened again on a virtual clock.
//!
//! Units: cards in parts (18,018,000 to a card), time in milliseconds, weights and parts of things in thousandths.

mod audit;
pub mod capacity;
mod chance;
mod cup;
mod decide;
pub mod disruption;
mod entitlement;
pub mod fullness;
pub mod lease;
mod leftovers;
pub mod lowered_quota;
pub mod mig;
pub mod min_run;
mod moves;
pub mod names;
mod order;
pub mod placement;
pub mod plan;
pub mod policy;
mod pool;
mod ratio;
mod recall;
mod repair;
pub mod replay;
pub mod rounds;
pub mod share;
#[cfg(test)]
mod shared_data;
pub mod sharing;
pub mod snapshot;
mod victims;
mod waiting;
pub mod windows;
pub mod work_class;

pub use audit::{Fault, audit};
pub use decide::{Progress, decide, decide_watched};
pub use plan::Plan;
pub use policy::Policy;
pub use snapshot::Snapshot;
