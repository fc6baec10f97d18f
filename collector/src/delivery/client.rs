//! The HTTP client by which segments go out.

use super::DeliveryError;
use cardhour_reach::https::{self, ClientSettings};
use std::path::Path;
use std::time::Duration;
use ureq::Agent;

/// A segment is a few hundred kilobytes: one that isn't through by then is tried again.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Trusts those of `ca_file` alone, else the system's. `is_here`: it asks this machine. Errors: there are no certificates.
pub(super) fn over_tls(is_here: bool, ca_file: Option<&Path>) -> Result<Agent, DeliveryError> {
    Ok(https::over_tls(&settings(is_here), ca_file)?)
}

/// For this machine.
pub(super) fn without_tls() -> Agent {
    https::without_tls(&settings(true))
}

fn settings(is_here: bool) -> ClientSettings {
    ClientSettings {
        user_agent: concat!("cardhour-collector/", env!("CARGO_PKG_VERSION")).to_owned(),
        timeout: TIMEOUT,
        connect_timeout: CONNECT_TIMEOUT,
        is_direct: is_here,
    }
}
