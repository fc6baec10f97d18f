//! Tests of the collector from outside, against stand-ins for what is on a node.

mod deploy;
mod holders;
mod hung;
mod kubernetes;
mod lives;
mod metrics;
mod reading;
mod spool;
