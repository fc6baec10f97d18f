//! The collector: what each card of a node did, and who held it.
//!
//! It reads the driver ([`probe`]), makes rows of what that says ([`sampler`]), looks for holders ([`holders`]), and puts what it saw on disk before the next tick ([`spool`]), from where it is
//! delivered to the ledger ([`delivery`]). What it does not do: no DataFusion, no Delta, no money, no decision about who pays beyond the site's
//! own rules ([`owners`]).
//!
//! Start reading at [`run`]. Units are in the names; rows are those of `cardhour-domain`.

pub mod chain;
pub mod config;
pub mod delivery;
pub mod eyes;
pub mod holders;
pub mod metrics;
pub mod owners;
pub mod probe;
pub mod release;
pub mod rows;
pub mod run;
pub mod sampler;
pub mod spool;
