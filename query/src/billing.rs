//! The billing policy of a ledger: `billing.toml` in its folder.

use crate::error::Error;
use cardhour_books::statement::BillingPolicy;
use std::path::Path;

/// The policy's name in the ledger's folder.
pub const BILLING_FILE: &str = "billing.toml";

/// A billing policy with the text that it was read from; the default and an empty text where there is no file. Errors: it can't be read, or is faulty.
pub fn read_policy(path: &Path) -> Result<(BillingPolicy, String), Error> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(Error::File { doing: "read", path: path.to_owned(), source }),
    };
    match BillingPolicy::parse(&text) {
        Ok(policy) => Ok((policy, text)),
        Err(faults) => Err(Error::Billing { path: path.to_owned(), faults }),
    }
}
