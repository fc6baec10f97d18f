//! What is wrong with a price book, all of it at once.

use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceFault {
    /// The line it is on, counted from 1.
    pub line: usize,
    /// The key at fault, such as `price[2].per_card_hour`, its tables counted from 1; empty for a text that is no TOML.
    pub key: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

/// All faults of a price book, by line; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PriceFaults(pub Vec<PriceFault>);

impl fmt::Display for PriceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.reason)
    }
}

impl fmt::Display for PriceFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}
