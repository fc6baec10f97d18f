//! How an owner keeps cards: opting out, and extending.

use cardhour_domain::{Name, Timestamp};
use serde::{Deserialize, Serialize};

/// A job that isn't reclaimed. It has an owner, a reason and an end: one without an end would be for ever, and can't be written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OptOut {
    /// Who stands for it.
    pub owner: Name,
    /// Why.
    pub reason: Name,
    /// The first instant at which it isn't in force any more.
    pub until: Timestamp,
}

impl OptOut {
    /// Whether it is in force.
    pub fn is_in_force(&self, at: Timestamp) -> bool {
        at < self.until
    }
}

/// Somebody asks for more time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExtensionRequest {
    /// Its id: asking twice with one id is asking once.
    pub id: Name,
    /// Who.
    pub by: Name,
    /// How long, from when it is granted. Unit: milliseconds.
    pub for_ms: i64,
}
