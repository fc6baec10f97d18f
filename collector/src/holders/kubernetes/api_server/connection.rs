//! A connection to the API server, one a question.

use super::{ApiError, ApiSettings};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::http::Request;
use hyper::http::header::{ACCEPT, AUTHORIZATION, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// Where an API server is, and as whom it is asked.
///
/// Files are read anew for each connection: tokens live an hour, and certificates are renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAddress {
    /// Its host: a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The certificates that it is known by; none for one without TLS, as `kubectl proxy` has.
    pub ca_file: Option<PathBuf>,
    /// The token of the service account.
    pub token_file: Option<PathBuf>,
}

impl ApiAddress {
    /// As a pod finds it: host and port from `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`, and the folder where its service account's
    /// files are, `/var/run/secrets/kubernetes.io/serviceaccount`.
    pub fn of_pod(host: &str, port: u16, service_account: &Path) -> Self {
        Self {
            host: host.to_owned(),
            port,
            ca_file: Some(service_account.join("ca.crt")),
            token_file: Some(service_account.join("token")),
        }
    }

    /// As a URL writes it: an address of IPv6 in brackets.
    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// An answer that has begun. Its connection lives as long as it does.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) body: Incoming,
    connection: JoinHandle<()>,
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// Asks for a path. Errors: anything but a status of success.
pub(super) async fn get(settings: &ApiSettings, path: &str) -> Result<Reply, ApiError> {
    let timed_out = |_| ApiError::TimedOut { path: path.to_owned(), after: settings.timeout };
    tokio::time::timeout(settings.timeout, ask(&settings.address, path)).await.map_err(timed_out)?
}

async fn ask(address: &ApiAddress, path: &str) -> Result<Reply, ApiError> {
    let at = address.authority();
    let unreachable =
        |source: Box<dyn std::error::Error + Send + Sync>| ApiError::Unreachable { at: at.clone(), source };
    let mut request = Request::get(path).header(HOST, &at).header(ACCEPT, "application/json");
    request = request.header(USER_AGENT, concat!("cardhour-collector/", env!("CARGO_PKG_VERSION")));
    if let Some(file) = &address.token_file {
        let token = std::fs::read_to_string(file).map_err(|error| credentials(file, error))?;
        request = request.header(AUTHORIZATION, format!("Bearer {}", token.trim()));
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| unreachable(error.into()))?;

    let stream =
        TcpStream::connect((address.host.as_str(), address.port)).await.map_err(|error| unreachable(error.into()))?;
    let (mut sender, connection) = match &address.ca_file {
        None => handshake(stream).await.map_err(|error| unreachable(error.into()))?,
        Some(ca_file) => {
            let name = ServerName::try_from(address.host.clone()).map_err(|error| unreachable(error.into()))?;
            let connector = TlsConnector::from(Arc::new(tls(ca_file)?));
            let stream = connector.connect(name, stream).await.map_err(|error| unreachable(error.into()))?;
            handshake(stream).await.map_err(|error| unreachable(error.into()))?
        }
    };
    let reply = sender.send_request(request).await.map_err(|error| unreachable(error.into()))?;
    let status = reply.status();
    let reply = Reply { body: reply.into_body(), connection };
    match status.is_success() {
        true => Ok(reply),
        false => Err(ApiError::Refused { path: path.to_owned(), status: status.as_u16() }),
    }
}

/// Speaks HTTP over a stream.
async fn handshake<S>(stream: S) -> Result<(SendRequest<Empty<Bytes>>, JoinHandle<()>), hyper::Error>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(async move {
        // What breaks here is told by the body or by the answer that doesn't come.
        let _ = connection.await;
    });
    Ok((sender, connection))
}

/// TLS by the cluster's own certificates alone.
fn tls(ca_file: &Path) -> Result<ClientConfig, ApiError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca_file).map_err(|error| credentials(ca_file, error))? {
        let certificate = certificate.map_err(|error| credentials(ca_file, error))?;
        roots.add(certificate).map_err(|error| credentials(ca_file, error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| credentials(ca_file, error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn credentials(path: &Path, source: impl std::error::Error + Send + Sync + 'static) -> ApiError {
    ApiError::Credentials { path: path.to_owned(), source: Box::new(source) }
}
