//! Traces played through our own rules and through published ones, on a virtual clock.
//!
//! [`placement`] fills a pool with requests that never leave and asks how much of its cards is in use; [`queue`] runs jobs through tenants' pools and asks
//! how long they wait. Both have published right answers. Files come as bytes with their names; the same bytes, options and seeds give the same figures.

pub mod placement;
pub mod queue;
mod rows;

pub use rows::{RowFault, RowFaults};
