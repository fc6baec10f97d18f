//! The tables of the books: one file a table, with its columns and both conversions.
//!
//! `jobs`, `nodes`, `reservations`, `outages` and `coverage` are *facts*, what sources said, and so is what nodes told: `samples`, `activity`,
//! `observations`, `watches`, `devices` and `node_events`, which a ledger of records alone never makes. `holdings`, `observed_jobs`, `gaps`, `usage`
//! and `conflicts` are *derived* from them and can be made again from nothing else. `jobs_history` keeps versions of attempts that lost,
//! `quarantine` rows that could not be booked, `costs` what a site listed as costs and `outputs` what its jobs brought forth: facts that no
//! derived table is made from; `alerts` what was told, `deliveries` what was
//! delivered by schedule, `decisions` what was decided about jobs, `leases` how far that is.

pub(crate) mod alerts;
pub(crate) mod closings;
pub(crate) mod conflicts;
pub(crate) mod costs;
pub(crate) mod coverage;
pub(crate) mod decisions;
pub(crate) mod deliveries;
pub(crate) mod entries;
pub(crate) mod frozen;
pub(crate) mod gaps;
pub(crate) mod holdings;
pub(crate) mod jobs;
pub(crate) mod leases;
pub(crate) mod nodes;
pub(crate) mod observed_jobs;
pub(crate) mod outages;
pub(crate) mod outputs;
pub(crate) mod quarantine;
pub(crate) mod reservations;
pub(crate) mod statements;
pub(crate) mod telemetry;
pub(crate) mod usage;

use arrow::datatypes::{DataType, Field, SchemaRef};

/// A table: its name and what its files look like.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    /// Its name in SQL and its folder.
    pub(crate) name: &'static str,
    /// The version of its schema. A ledger with a greater one is refused, one with a smaller one is migrated when opened.
    pub(crate) schema_version: u32,
    /// Its columns, those of a batch of no rows, without the partition.
    pub(crate) schema: fn() -> SchemaRef,
    /// Whether it is partitioned by UTC day, in a column `day`.
    pub(crate) by_day: bool,
    /// Instants whose least and greatest go into the log, so that readers can leave files out.
    pub(crate) bounds: &'static [&'static str],
    /// What it holds, for people.
    pub(crate) comment: &'static str,
}

/// Every table that a ledger has from its first day, facts first.
pub(crate) const ALL: &[Table] = &[
    jobs::JOBS,
    jobs::HISTORY,
    nodes::NODES,
    reservations::RESERVATIONS,
    outages::OUTAGES,
    coverage::COVERAGE,
    costs::COSTS,
    outputs::OUTPUTS,
    quarantine::QUARANTINE,
    holdings::HOLDINGS,
    usage::USAGE,
    conflicts::CONFLICTS,
];

/// The facts that derived tables are made from, of every ledger. Those of [`OF_NODES`] are made when the first node tells something.
pub(crate) const FACTS: &[Table] =
    &[jobs::JOBS, nodes::NODES, reservations::RESERVATIONS, outages::OUTAGES, coverage::COVERAGE];

/// Every table that only a ledger with collectors has: facts of nodes, and what is derived from them alone.
pub(crate) const OF_NODES: &[Table] = &[
    telemetry::SAMPLES,
    telemetry::ACTIVITY,
    telemetry::OBSERVATIONS,
    telemetry::WATCHES,
    telemetry::DEVICES,
    telemetry::NODE_EVENTS,
    observed_jobs::OBSERVED_JOBS,
    gaps::GAPS,
];

/// Every table that only a ledger with closed months has. A month is closed by its row in the first; rows of the others whose closing isn't there are
/// of a closing that was killed, and count for nothing.
pub(crate) const OF_CLOSINGS: &[Table] = &[
    closings::CLOSINGS,
    statements::STATEMENTS,
    entries::ENTRIES,
    frozen::CLOSED_USAGE,
    frozen::CLOSED_JOBS,
    frozen::CLOSED_HOLDINGS,
    frozen::CLOSED_COSTS,
    frozen::CLOSED_RESERVATIONS,
    frozen::CLOSED_NODES,
];

/// What cardhour itself did: made when there is something of it to remember.
pub(crate) const OF_SERVICE: &[Table] = &[alerts::ALERTS, deliveries::DELIVERIES, decisions::DECISIONS, leases::LEASES];

/// The type a column has in its files and in Delta Lake: text that was only indexed to write it faster is text.
pub(crate) fn stored_type(field: &Field) -> DataType {
    match field.data_type() {
        DataType::RunEndEncoded(_, indexed) => stored_type(indexed),
        DataType::Dictionary(_, value) => value.as_ref().clone(),
        other => other.clone(),
    }
}
