//! The real binary from outside: what a site types, and what must come out.
//!
//! Expected figures come from the publishers of the traces (independent computations of them), from calculations written beside a test, or
//! from sweeps over the raw file that share no code with the product. Tests that need the public traces or Python say so where they are
//! missing, and fail under `CARDHOUR_REQUIRE_ALL=1`; `tests/README.md` has the list.

mod advice;
mod boards;
mod bucket;
mod budgets;
mod checkpoints;
mod closing;
mod collector;
mod costs;
mod currency;
mod days;
mod delivery;
mod demo;
mod directory;
mod driven;
mod field_cost;
mod field_months;
mod field_slurm;
mod fleet;
mod focus;
mod hung;
mod isolation;
mod kill;
mod mails;
mod manners;
mod metrics;
mod over_capacity;
mod plan;
mod prices;
mod questions;
mod quotas;
mod readers;
mod reclaim;
mod reconciled_with;
mod replay;
mod replay_policy;
mod same_books;
mod service;
mod shredder;
mod site;
mod sliced;
mod slurm;
mod statements;
mod traces;
mod verify;
mod views;
mod zones;
