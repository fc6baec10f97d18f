//! How a month is billed beyond its prices: what `billing.toml` in the ledger's folder says.

use super::PLATFORM;
use cardhour_domain::{Month, Name};
use rust_decimal::Decimal;

/// How a month is billed. The default is that of a ledger without `billing.toml`: cards held at the price of the book, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BillingPolicy {
    /// Who issues statements.
    pub issuer: Option<Name>,
}

impl BillingPolicy {
    /// How much of a month has to be proven before it is closed without a reason.
    pub fn minimum_coverage(&self) -> Decimal {
        // A twentieth of a month is a day and a half in which nobody looked.
        Decimal::new(95, 2)
    }

    /// The number of an organisation's statement.
    pub fn number(&self, period: Month, org: Option<&Name>) -> Name {
        format!("CH-{period}-{}", org.map_or(PLATFORM, |org| org)).into()
    }

    /// What an organisation is called on its statement.
    pub fn account(&self, org: Option<&Name>) -> Name {
        org.cloned().unwrap_or_else(|| PLATFORM.into())
    }
}
