//! A running Prometheus or VictoriaMetrics, asked by `query_range`.

use crate::cli::MetricsArgs;
use crate::error::Error;
use axum::http::Uri;
use cardhour_domain::Timestamp;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, RequestBuilder, StatusCode};
use std::path::Path;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Prometheus itself gives up after two minutes.
const TIMEOUT: Duration = Duration::from_secs(150);
/// How often a question is asked before the import gives up.
const TRIES: u32 = 5;
/// The first wait, doubled with each try.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// What a server may ask for at most: it could be wrong.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// Its address is none, or not one that may be asked so.
    #[error("--url {url}: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The certificates of `--ca-file` can't be used.
    #[error("no certificate can be read from --ca-file {file}: {reason}")]
    Certificate {
        /// Which.
        file: String,
        /// Why.
        reason: String,
    },
    /// A file that should hold a token or a password.
    #[error("{file} is empty, or has more than one line: a token or password is one line")]
    Secret {
        /// Which.
        file: String,
    },
    /// It doesn't let us.
    #[error("{address} answers {status} to {query:?}: --token-file, or --user with --password-file, says who asks")]
    Unauthorized {
        /// Who was asked.
        address: String,
        /// Its status.
        status: u16,
        /// What was asked.
        query: String,
    },
    /// Nobody answers, or it has too much to do, again and again.
    #[error("{address} gives no answer to {query:?}, asked {tries} times: {reason}")]
    NoAnswer {
        /// Who was asked.
        address: String,
        /// What was asked.
        query: String,
        /// How often.
        tries: u32,
        /// What came of the last.
        reason: String,
    },
}

impl PrometheusError {
    /// Whether asking otherwise helps.
    pub fn is_callers(&self) -> bool {
        !matches!(self, Self::NoAnswer { .. })
    }
}

/// Who asks.
enum Credentials {
    Nobody,
    Token(String),
    User(String, String),
}

/// One to ask.
pub struct Prometheus {
    client: Client,
    address: String,
    credentials: Credentials,
}

/// What came of one try.
enum Tried {
    Answer(Vec<u8>),
    Again(String, Option<Duration>),
}

/// Whom to ask, and as whom.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The address.
    pub url: &'a str,
    /// A file with a bearer token.
    pub token_file: Option<&'a Path>,
    /// A user, and the file with the password.
    pub login: Option<(&'a str, &'a Path)>,
    /// Certificates of who may vouch for it.
    pub ca_file: Option<&'a Path>,
}

impl Prometheus {
    /// The one that the command names. Errors: as [`Self::new`].
    pub fn of(args: &MetricsArgs) -> Result<Self, Error> {
        Self::new(&Asked {
            url: args.url.as_deref().unwrap_or_default(),
            token_file: args.token_file.as_deref(),
            login: args.user.as_deref().zip(args.password_file.as_deref()),
            ca_file: args.ca_file.as_deref(),
        })
    }

    /// One of these words. Errors: no address, a file that can't be read, a secret that would go out in the open.
    pub fn new(asked: &Asked<'_>) -> Result<Self, Error> {
        let url = asked.url.to_owned();
        let wrong = |reason| Error::from(PrometheusError::Url { url: url.clone(), reason });
        let uri: Uri = url.parse().map_err(|_| wrong("is no address such as http://prometheus:9090"))?;
        let host = uri.host().ok_or_else(|| wrong("has no host: take an address such as http://prometheus:9090"))?;
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("a name or password doesn't belong into it: take --user and --password-file"));
        }
        if uri.query().is_some() {
            return Err(wrong("has a query: what is asked is ours"));
        }
        let credentials = match (asked.token_file, asked.login) {
            (Some(file), _) => Credentials::Token(secret(file)?),
            (None, Some((user, file))) => Credentials::User(user.to_owned(), secret(file)?),
            (None, None) => Credentials::Nobody,
        };
        let is_open = match uri.scheme_str() {
            Some("https") => false,
            Some("http") => true,
            _ => return Err(wrong("begins with neither http:// nor https://")),
        };
        if is_open && !matches!(credentials, Credentials::Nobody) && !is_this_machine(host) {
            return Err(wrong("anybody on the way could read the token or password: take https"));
        }
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("cardhour/", env!("CARGO_PKG_VERSION")));
        if is_this_machine(host) {
            // A proxy that the environment names is for what is elsewhere.
            builder = builder.no_proxy();
        }
        if let Some(path) = asked.ca_file {
            let pem =
                std::fs::read(path).map_err(|source| Error::File { doing: "read", path: path.to_owned(), source })?;
            let failed = |reason: String| PrometheusError::Certificate { file: path.display().to_string(), reason };
            let all = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| failed(error.to_string()))?;
            if all.is_empty() {
                return Err(failed("there is none in it".to_owned()).into());
            }
            builder = builder.tls_built_in_root_certs(false);
            for certificate in all {
                builder = builder.add_root_certificate(certificate);
            }
        }
        let client = builder.build().map_err(|error| PrometheusError::NoAnswer {
            address: url.clone(),
            query: String::new(),
            tries: 0,
            reason: crate::error::chain(&error),
        })?;
        Ok(Self { client, address: url.trim_end_matches('/').to_owned(), credentials })
    }

    /// Its address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The answer to a query over a range, as it came: it may be a refusal. Errors: none came, however often it was asked.
    pub async fn query_range(
        &self,
        expression: &str,
        start: Timestamp,
        end: Timestamp,
        step_s: u32,
    ) -> Result<Vec<u8>, Error> {
        let seconds = |at: Timestamp| format!("{}.{:03}", at.unix_ms().div_euclid(1000), at.unix_ms().rem_euclid(1000));
        let words = [
            ("query", expression.to_owned()),
            ("start", seconds(start)),
            ("end", seconds(end)),
            ("step", step_s.to_string()),
        ];
        let mut wait = FIRST_WAIT;
        let mut tries = 1;
        loop {
            let request = self.client.get(format!("{}/api/v1/query_range", self.address)).query(&words);
            match self.tried(self.signed(request), expression).await? {
                Tried::Answer(answer) => return Ok(answer),
                Tried::Again(reason, _) if tries == TRIES => {
                    let (address, query) = (self.address.clone(), expression.to_owned());
                    return Err(PrometheusError::NoAnswer { address, query, tries, reason }.into());
                }
                Tried::Again(_, asked_for) => tokio::time::sleep(asked_for.unwrap_or(wait).min(LONGEST_WAIT)).await,
            }
            tries += 1;
            wait *= 2;
        }
    }

    fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.credentials {
            Credentials::Nobody => request,
            Credentials::Token(token) => request.bearer_auth(token),
            Credentials::User(user, password) => request.basic_auth(user, Some(password)),
        }
    }

    async fn tried(&self, request: RequestBuilder, expression: &str) -> Result<Tried, Error> {
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Ok(Tried::Again(crate::error::chain(&error), None)),
        };
        let status = response.status();
        let asked_for = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let asked_for = asked_for.map(Duration::from_secs);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let (address, query) = (self.address.clone(), expression.to_owned());
                Err(PrometheusError::Unauthorized { address, status: status.as_u16(), query }.into())
            }
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Ok(Tried::Again(format!("it answers {status}"), asked_for)),
            _ => match response.bytes().await {
                Ok(bytes) => Ok(Tried::Answer(bytes.into())),
                Err(error) => Ok(Tried::Again(crate::error::chain(&error), None)),
            },
        }
    }
}

/// Reads a file that holds one secret. Errors: it can't be read, or holds none, or more.
fn secret(path: &Path) -> Result<String, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::File { doing: "read", path: path.to_owned(), source })?;
    let secret = text.trim();
    if secret.is_empty() || secret.chars().any(char::is_control) {
        return Err(PrometheusError::Secret { file: path.display().to_string() }.into());
    }
    Ok(secret.to_owned())
}

pub(crate) fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
