//! Questions to the API server, one connection each.

use crate::world::Trouble;
use cardhour_reach::https::{self, ClientSettings};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use ureq::http::Request;

/// An answer is one object; a longer one isn't read.
const ANSWER_BYTES: u64 = 4 * 1024 * 1024;

/// Where an API server is, and as whom it is asked. Files are read anew for each question: tokens live an hour, and certificates are renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Its address: `https://10.0.0.1:443`, or `http://127.0.0.1:8001` of a `kubectl proxy`.
    pub url: String,
    /// The certificates that it is known by; none: the system's.
    pub ca_file: Option<PathBuf>,
    /// The token of a service account.
    pub token_file: Option<PathBuf>,
    /// How long a question may take.
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Client {
    settings: ClusterSettings,
    is_tls: bool,
    is_here: bool,
}

/// What the server said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
    /// Unit: seconds.
    pub(super) retry_after_s: Option<u32>,
}

impl Reply {
    /// Why it doesn't, in its words.
    pub(super) fn reason(&self) -> String {
        let text = |name: &str| self.body[name].as_str().filter(|text| !text.is_empty());
        let words = text("message").or(text("reason")).unwrap_or("no reason is given");
        format!("the API server answers {}: {words}", self.status)
    }
}

/// How a body is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Post,
    Put,
    /// Keys that are there are set, those that are null are taken away.
    MergePatch,
    /// Operations, with tests among them.
    JsonPatch,
}

impl Client {
    pub(super) fn new(settings: ClusterSettings) -> Result<Self, String> {
        let url = settings.url.trim_end_matches('/').to_owned();
        let uri: ureq::http::Uri = url.parse().map_err(|error| format!("{url:?} is no address: {error}"))?;
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let is_here = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if is_here => false,
            Some("http") => return Err(format!("{url} is another machine: it is asked over https only")),
            _ => return Err(format!("{url:?} is no address: https://HOST:PORT")),
        };
        Ok(Self { settings: ClusterSettings { url, ..settings }, is_tls, is_here })
    }

    pub(super) fn get(&self, path: &str) -> Result<Reply, Trouble> {
        self.ask("GET", path, None, &[])
    }

    pub(super) fn send(&self, method: Method, path: &str, body: &Value) -> Result<Reply, Trouble> {
        let (verb, kind) = match method {
            Method::Post => ("POST", "application/json"),
            Method::Put => ("PUT", "application/json"),
            Method::MergePatch => ("PATCH", "application/merge-patch+json"),
            Method::JsonPatch => ("PATCH", "application/json-patch+json"),
        };
        // Who changed it stays visible in the object's managed fields.
        let path = format!("{path}?fieldManager=cardhour");
        self.ask(verb, &path, Some(kind), body.to_string().as_bytes())
    }

    /// The version of a group that the server prefers. Errors: it has no such group, or doesn't say.
    pub(super) fn version(&self, group: &str) -> Result<String, Trouble> {
        let reply = self.get(&format!("/apis/{group}"))?;
        match (reply.status, reply.body["preferredVersion"]["version"].as_str()) {
            (200, Some(version)) => Ok(version.to_owned()),
            (404, _) => Err(Trouble::NotHere(format!("this cluster has no {group}"))),
            _ => Err(Trouble::Unseen(reply.reason())),
        }
    }

    fn ask(&self, verb: &str, path: &str, kind: Option<&str>, body: &[u8]) -> Result<Reply, Trouble> {
        let failed = |error: String| Trouble::Unseen(format!("cannot ask the API server: {error}"));
        let settings = ClientSettings {
            user_agent: concat!("cardhour/", env!("CARGO_PKG_VERSION")).to_owned(),
            timeout: self.settings.timeout,
            connect_timeout: self.settings.timeout,
            is_direct: self.is_here,
        };
        let agent = match self.is_tls {
            true => https::over_tls(&settings, self.settings.ca_file.as_deref())
                .map_err(|error| failed(error.to_string()))?,
            false => https::without_tls(&settings),
        };
        let mut request = Request::builder().method(verb).uri(format!("{}{path}", self.settings.url));
        request = request.header("accept", "application/json");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        if let Some(file) = &self.settings.token_file {
            let token =
                std::fs::read_to_string(file).map_err(|error| failed(format!("{}: {error}", file.display())))?;
            request = request.header("authorization", format!("Bearer {}", token.trim()));
        }
        let request = request.body(body.to_vec()).map_err(|error| failed(error.to_string()))?;
        let mut response = agent.run(request).map_err(|error| failed(error.to_string()))?;
        let status = response.status().as_u16();
        let header = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let bytes = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
        let bytes = bytes.map_err(|error| failed(error.to_string()))?;
        let body = match serde_json::from_slice(&bytes) {
            Ok(body) => body,
            Err(_) if !(200..300).contains(&status) => Value::Null,
            Err(error) => return Err(failed(format!("its answer to {path} can't be read: {error}"))),
        };
        let told = body["details"]["retryAfterSeconds"].as_u64().and_then(|seconds| u32::try_from(seconds).ok());
        Ok(Reply { status, retry_after_s: header.or(told).filter(|seconds| *seconds > 0), body })
    }
}

/// A name as a part of a path. Errors: it isn't a name of an object.
pub(super) fn part(name: &str) -> Result<&str, Trouble> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_name = !name.is_empty() && name.len() <= 253 && name.chars().all(is_allowed) && !name.starts_with('.');
    if is_name { Ok(name) } else { Err(Trouble::NotHere(format!("{name:?} is no name of an object"))) }
}
