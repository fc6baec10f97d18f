//! Segments to a service, over HTTP.

use super::{Answer, DeliveryError, Trouble, client};
use cardhour_domain::SegmentName;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::Agent;
use ureq::http::Uri;

/// What is read of an answer: an outcome or a reason.
const ANSWER_BYTES: u64 = 4096;

/// A cardhour service.
pub(super) struct Service {
    agent: Agent,
    /// Up to the segment's name.
    prefix: String,
    node: String,
    token_file: PathBuf,
}

impl Service {
    pub(super) fn new(
        url: &str,
        node: &str,
        token_file: PathBuf,
        ca_file: Option<&Path>,
    ) -> Result<Self, DeliveryError> {
        let bad = |reason: String| DeliveryError::Url { url: url.to_owned(), reason };
        let uri: Uri = url.parse().map_err(|error: ureq::http::uri::InvalidUri| bad(error.to_string()))?;
        let authority = uri.authority().ok_or_else(|| bad("it has no host".to_owned()))?;
        if authority.as_str().contains('@') {
            return Err(bad("a name or password doesn't belong here: the token is in its file".to_owned()));
        }
        if uri.query().is_some() {
            return Err(bad("it has a query".to_owned()));
        }
        let is_here = is_this_machine(authority.host());
        let agent = match uri.scheme_str() {
            Some("https") => client::over_tls(is_here, ca_file)?,
            Some("http") if is_here => client::without_tls(),
            Some("http") => {
                let reason =
                    "without TLS only this machine is asked, since anybody on the way could read the token: use https";
                return Err(bad(reason.to_owned()));
            }
            _ => return Err(bad("it begins with neither https:// nor http://".to_owned())),
        };
        let base = url.trim_end_matches('/');
        Ok(Self {
            agent,
            prefix: format!("{base}/api/v1/intake/{}/", encoded(node)),
            node: node.to_owned(),
            token_file,
        })
    }

    pub(super) fn take(&self, name: &SegmentName, bytes: &[u8]) -> Result<Answer, Trouble> {
        let token = self.token()?;
        let url = format!("{}{name}", self.prefix);
        let request = self
            .agent
            .put(&url)
            .header("Authorization", format!("Bearer {token}"))
            .header("Content-Type", "application/vnd.apache.parquet")
            .header("X-Cardhour-Blake3", blake3::hash(bytes).to_hex().as_str());
        let unreachable = |error: ureq::Error| Trouble::Unreachable { to: self.prefix.clone(), source: error.into() };
        let mut response = request.send(bytes).map_err(unreachable)?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get("Retry-After").and_then(|value| value.to_str().ok());
        let retry_after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let body = response.body_mut().with_config().limit(ANSWER_BYTES).read_to_vec();
        let body: Option<serde_json::Value> = body.ok().and_then(|body| serde_json::from_slice(&body).ok());
        self.judged(status, retry_after, body.as_ref())
    }

    /// Read for each segment, so that a new token is used as soon as it is there.
    fn token(&self) -> Result<String, Trouble> {
        let unreadable = |source| Trouble::Token { path: self.token_file.clone(), source };
        let token = std::fs::read_to_string(&self.token_file).map_err(unreadable)?;
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = "it is empty, or more than a word";
            return Err(unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, reason)));
        }
        Ok(token.to_owned())
    }

    fn judged(
        &self,
        status: u16,
        retry_after: Option<Duration>,
        body: Option<&serde_json::Value>,
    ) -> Result<Answer, Trouble> {
        let text = |field: &str| body.and_then(|body| body.get(field)).and_then(serde_json::Value::as_str);
        let not_the_service = || Err(Trouble::NotTheService { to: self.prefix.clone(), status });
        match status {
            201 => Ok(Answer::Taken),
            200 => match text("outcome") {
                Some("taken") => Ok(Answer::Taken),
                Some("known") => Ok(Answer::Known),
                _ => not_the_service(),
            },
            401 | 403 => {
                Err(Trouble::Unauthorized { status, token_file: self.token_file.clone(), node: self.node.clone() })
            }
            408 | 421 | 425 | 429 | 500..=599 => {
                Err(Trouble::Busy { who: "service", status, reason: said(text("message")), retry_after })
            }
            404 | 405 | 407 | 410 => not_the_service(),
            400 if text("code").is_none() => not_the_service(),
            400..=499 => Ok(Answer::Refused(format!("the service answers {status}: {}", said(text("message"))))),
            _ => not_the_service(),
        }
    }
}

/// What somebody else wrote, fit for a log line.
fn said(message: Option<&str>) -> String {
    let Some(message) = message else { return "without a reason that can be read".to_owned() };
    message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

fn is_this_machine(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A name as one segment of a path: all but what needs no encoding is encoded (RFC 3986, 2.3).
fn encoded(name: &str) -> String {
    let mut path = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(byte.into());
        } else {
            write!(path, "%{byte:02X}").expect("a text takes any text");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(url: &str) -> Result<Service, DeliveryError> {
        Service::new(url, "node 1/ä", "/nowhere".into(), None)
    }

    #[test]
    fn a_node_and_a_path_before_the_service_are_part_of_the_address() {
        let service = service("http://localhost:7780/books/").unwrap();
        assert_eq!(service.prefix, "http://localhost:7780/books/api/v1/intake/node%201%2F%C3%A4/");
    }

    #[test]
    fn a_token_goes_to_nobody_without_tls_but_this_machine() {
        for here in ["http://127.0.0.1:1", "http://127.8.0.1", "http://[::1]:7780", "http://localhost"] {
            assert!(service(here).is_ok(), "{here}");
        }
        for elsewhere in ["http://10.0.0.1", "http://localhost.example", "http://ledger:7780", "http://[::2]"] {
            let error = service(elsewhere).err().expect(elsewhere).to_string();
            assert!(error.contains("use https"), "{error}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (odd, reason) in [
            ("ledger", "it begins with neither"),
            ("ftp://ledger", "it begins with neither"),
            ("https://me:secret@ledger", "the token is in its file"),
            ("http://localhost/?a=b", "it has a query"),
            ("/path", "it has no host"),
        ] {
            let error = service(odd).err().expect(odd).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn only_what_says_so_has_taken_a_segment() {
        let service = service("http://localhost").unwrap();
        let judged = |status, body: &str| service.judged(status, None, serde_json::from_str(body).ok().as_ref());
        assert_eq!(judged(201, "").unwrap(), Answer::Taken);
        assert_eq!(judged(200, r#"{"outcome": "taken"}"#).unwrap(), Answer::Taken);
        assert_eq!(judged(200, r#"{"outcome": "known"}"#).unwrap(), Answer::Known);
        for (status, body) in
            [(200, ""), (200, "<html>"), (200, "{}"), (204, ""), (302, ""), (404, ""), (400, "<html>")]
        {
            assert_eq!(judged(status, body).unwrap_err().name(), "not_the_service", "{status} {body}");
        }
        for status in [409, 413, 415, 422, 418] {
            assert!(matches!(judged(status, "").unwrap(), Answer::Refused(_)), "{status}");
        }
        let refused = judged(400, r#"{"code": "bad-rows", "message": "row 3:\nno card"}"#).unwrap();
        assert_eq!(refused, Answer::Refused("the service answers 400: row 3: no card".to_owned()));
        for (status, name) in
            [(401, "unauthorized"), (403, "unauthorized"), (429, "busy"), (503, "busy"), (500, "busy")]
        {
            assert_eq!(judged(status, "").unwrap_err().name(), name, "{status}");
        }
    }
}
