//! Decisions about a shared pool of cards: who may have which, who waits, who gives back, and why.
//!
//! What this crate does not do: no input or output, no clock, no async, no floats in comparisons and no unordered maps. The same input gives
//! the same bytes, on any machine, at any time.

pub mod capacity;
mod chance;
pub mod lease;
pub mod mig;
pub mod placement;
pub mod replay;
#[cfg(test)]
mod shared_data;
pub mod sharing;
pub mod work_class;
