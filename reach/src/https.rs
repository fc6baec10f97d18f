//! A blocking HTTP client: statuses are answers, redirects aren't followed, one connection is kept.

use crate::tls;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::Agent;
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, DefaultConnector};

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The certificates can't be read.
    #[error("cannot read certificates from {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The system has no certificates.
    #[error(
        "the system has no certificates to know a service by ({reason}): install them (package ca-certificates), or name a file of them"
    )]
    NoneOfSystem {
        /// What was found.
        reason: String,
    },
}

/// How a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// As whom: `cardhour-collector/0.1.0`.
    pub user_agent: String,
    /// How long one question and its answer may take.
    pub timeout: Duration,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// Whether a proxy that the environment names is left aside: it is for what is elsewhere.
    pub is_direct: bool,
}

/// A client over TLS that trusts those of `ca_file` alone, else the system's. Errors: there are no certificates.
pub fn over_tls(settings: &ClientSettings, ca_file: Option<&Path>) -> Result<Agent, CertificateError> {
    let connector = DefaultConnector::new().chain(tls::TlsConnector::new(ca_file)?);
    Ok(Agent::with_parts(config(settings), connector, DefaultResolver::default()))
}

/// A client without TLS.
pub fn without_tls(settings: &ClientSettings) -> Agent {
    Agent::with_parts(config(settings), DefaultConnector::new(), DefaultResolver::default())
}

fn config(settings: &ClientSettings) -> Config {
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(settings.timeout))
        .timeout_connect(Some(settings.connect_timeout))
        .max_idle_connections(1)
        .max_idle_connections_per_host(1)
        .user_agent(settings.user_agent.clone());
    if settings.is_direct {
        config = config.proxy(None);
    }
    config.build()
}
