//! How a month is billed beyond its prices: what `billing.toml` in the ledger's folder says.

use cardhour_domain::Name;

/// How a month is billed. The default is that of a ledger without `billing.toml`: cards held at the price of the book, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BillingPolicy {
    /// Who issues statements.
    pub issuer: Option<Name>,
}
