//! The billing policy of a ledger: `billing.toml` in its folder.

use crate::error::Error;
use crate::settings_file;
use cardhour_books::statement::BillingPolicy;
use std::path::Path;

/// The policy's name in the ledger's folder.
pub const BILLING_FILE: &str = "billing.toml";

/// A billing policy with the text that it was read from; the default and an empty text where there is no file. Errors: it can't be read, or is faulty.
pub fn read_policy(path: &Path) -> Result<(BillingPolicy, String), Error> {
    let text = settings_file::read(path)?.unwrap_or_default();
    match BillingPolicy::parse(&text) {
        Ok(policy) => Ok((policy, text)),
        Err(faults) => Err(Error::Billing { path: path.to_owned(), faults }),
    }
}
