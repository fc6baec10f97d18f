//! Signals that are sent to work.

use serde::{Deserialize, Serialize};

/// A signal, by the name that jobs declare.
///
/// None that stops, resumes or kills: KILL comes after a grace alone, and a stopped job keeps its cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    /// What Lightning and most sites use for "write a checkpoint".
    #[serde(rename = "USR1")]
    Usr1,
    /// The other one.
    #[serde(rename = "USR2")]
    Usr2,
    /// As from a keyboard.
    #[serde(rename = "INT")]
    Int,
    /// Its terminal is gone.
    #[serde(rename = "HUP")]
    Hup,
    /// End, please.
    #[serde(rename = "TERM")]
    Term,
}

impl Signal {
    /// Its name, without `SIG`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usr1 => "USR1",
            Self::Usr2 => "USR2",
            Self::Int => "INT",
            Self::Hup => "HUP",
            Self::Term => "TERM",
        }
    }
}
