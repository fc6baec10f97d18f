//! Traces played through our own rules and through published ones, on a virtual clock.
//!
//! [`placement`] fills a pool with requests that never leave and asks how much of its cards is in use; [`queue`] runs jobs through tenants' pools and asks
//! how long they wait. Both have published right answers, and their files come as bytes with their names; the same bytes, options and seeds give the same figures. [`policy`]
//! plays a pool's own jobs under quotas, once as they are and once as they might be.

pub mod placement;
pub mod policy;
pub mod queue;
mod rows;

pub use rows::{RowFault, RowFaults};
