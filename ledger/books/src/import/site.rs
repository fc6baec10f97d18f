//! From a site's own lists to what it has, when it was out of service and what it cost, and what its jobs brought forth: nodes, reservations, outages,
//! costs, output.
//!
//! Lists are small and written by hand or by a script, so they come in whatever is at hand: CSV or JSON lines (with our own
//! column names, or a map), TOML (`[[node]]`, `[[reservation]]`, `[[outage]]`, `[[cost]]`, `[[output]]`), or the text of `scontrol show node` and
//! `scontrol show reservation`. Which one it is, the file itself tells.
//!
//! Start at [`nodes::nodes`], [`reservations::reservations`], [`outages::outages`], [`costs::costs`] and [`outputs::outputs`].

pub mod costs;
pub mod nodes;
pub mod outages;
pub mod outputs;
pub mod reservations;
pub mod rules;
pub mod scontrol;
pub mod sheet;
#[cfg(test)]
mod tests;

use crate::attempt::Rejected;
use crate::import::map::MapError;
use crate::import::readers::ReadError;

/// What a list tells of, and its rows that can't be booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// In the order of the file.
    pub rows: Vec<T>,
    /// In the order of the file.
    pub rejected: Vec<Rejected>,
    /// Rows of the file, the rejected ones too.
    pub rows_read: u64,
}

/// Why a list can't be read at all.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The file can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The map doesn't fit it.
    #[error(transparent)]
    Map(#[from] MapError),
    /// It looks like TOML and isn't.
    #[error("the file is not TOML: {0}")]
    Toml(String),
    /// TOML without the tables that are asked for.
    #[error("the file has keys beside [[{table}]]: {}", .keys.join(", "))]
    Keys {
        /// The tables that it may have.
        table: &'static str,
        /// What it has.
        keys: Vec<String>,
    },
    /// A column that every row needs.
    #[error("nothing says {what}: name a column {wanted}, or a rule for it in the map; the file has {}", .has.join(", "))]
    Missing {
        /// What it would say.
        what: &'static str,
        /// Our name of it.
        wanted: &'static str,
        /// The columns of the file.
        has: Vec<String>,
    },
}
