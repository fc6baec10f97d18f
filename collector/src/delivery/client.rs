//! The HTTP client by which segments go out.

use super::{DeliveryError, tls};
use std::path::Path;
use std::time::Duration;
use ureq::Agent;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, DefaultConnector};

/// A segment is a few hundred kilobytes: one that isn't through by then is tried again.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Trusts those of `ca_file` alone, else the system's. `is_here`: it asks this machine. Errors: there are no certificates.
pub(super) fn over_tls(is_here: bool, ca_file: Option<&Path>) -> Result<Agent, DeliveryError> {
    let connector = DefaultConnector::new().chain(tls::TlsConnector::new(ca_file)?);
    Ok(Agent::with_parts(config(is_here), connector, DefaultResolver::default()))
}

/// For this machine.
pub(super) fn without_tls() -> Agent {
    Agent::with_parts(config(true), DefaultConnector::new(), DefaultResolver::default())
}

fn config(is_here: bool) -> Config {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .max_idle_connections(1)
        .max_idle_connections_per_host(1)
        .user_agent(concat!("cardhour-collector/", env!("CARGO_PKG_VERSION")));
    if is_here {
        // A proxy that the environment names is for what is elsewhere.
        config = config.proxy(None);
    }
    config.build()
}
