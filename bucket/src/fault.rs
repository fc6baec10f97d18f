//! What a bucket says where it doesn't do what it was asked.

use quick_xml::Reader;
use quick_xml::events::Event;
use std::fmt;
use std::time::Duration;

/// An answer that isn't the one that was hoped for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its status.
    pub status: u16,
    /// Its code, such as `AccessDenied`; none: what answers says none, and may be no bucket at all.
    pub code: Option<String>,
    /// What it says, fit for a log line.
    pub message: Option<String>,
    /// When it wants to be asked again.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// From an answer: `body` is XML, if a bucket speaks; `retry_after` that header.
    pub fn new(status: u16, body: &[u8], retry_after: Option<&str>) -> Self {
        let (code, message) = code_and_message(&String::from_utf8_lossy(body));
        let retry_after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        Self { status, code, message, retry_after }
    }

    /// Whether it can't just now. Any other fault stays until somebody mends it.
    pub fn is_passing(&self) -> bool {
        matches!(self.status, 408 | 425 | 429 | 500..=599) || self.code.as_deref() == Some("RequestTimeout")
    }

    /// Whether what was asked for isn't there, in a bucket that is.
    pub fn is_gone(&self) -> bool {
        self.status == 404 && self.code.as_deref() == Some("NoSuchKey")
    }

    /// What may mend it.
    fn hint(&self) -> Option<&'static str> {
        Some(match (self.code.as_deref(), self.status) {
            (Some("RequestTimeTooSkewed"), _) => "the clock of this machine is wrong, or the bucket's",
            (Some("SignatureDoesNotMatch"), _) => "the secret is not the one of the access key",
            (Some("InvalidAccessKeyId"), _) => "nobody has this access key there",
            (Some("ExpiredToken" | "InvalidToken"), _) => "the session token is over: new credentials are needed",
            (Some("AccessDenied"), _) => "the access key may not do that there: its policy says what it may",
            (Some("NoSuchBucket"), _) => "there is no such bucket: check its name and the endpoint",
            (Some("AuthorizationHeaderMalformed" | "PermanentRedirect" | "TemporaryRedirect"), _) | (_, 300..=399) => {
                "the bucket is in another region or at another endpoint: say which"
            }
            (None, 200..=299 | 400..=499) => "what answers there is no bucket: check the endpoint and proxies between",
            _ => return None,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        if let Some(message) = &self.message {
            write!(f, " ({message})")?;
        }
        match self.hint() {
            Some(hint) => write!(f, ": {hint}"),
            None => Ok(()),
        }
    }
}

/// Of `<Error><Code>…</Code><Message>…</Message>…</Error>`.
fn code_and_message(body: &str) -> (Option<String>, Option<String>) {
    let mut reader = Reader::from_str(body);
    let (mut code, mut message, mut inside) = (String::new(), String::new(), Vec::new());
    // Whatever else it is, as much of it as can be read.
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) => inside.push(start.local_name().as_ref().to_vec()),
            Event::End(_) => _ = inside.pop(),
            Event::Text(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                match inside.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
                    [b"Error", b"Code"] => code.push_str(&text),
                    [b"Error", b"Message"] => message.push_str(&text),
                    _ => {}
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let said = |text: String| {
        let line = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect::<String>();
        Some(line.trim().to_owned()).filter(|line| !line.is_empty())
    };
    (said(code), said(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_bucket_says_is_told_with_what_may_mend_it() {
        // As Amazon's reference, "Error responses", has it.
        let body = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>\n  <Code>NoSuchKey</Code>\n  <Message>The resource you requested does not exist</Message>\n  <Resource>/mybucket/myfoto.jpg</Resource> \n  <RequestId>4442587FB7D0A2F9</RequestId>\n</Error>";
        let fault = Fault::new(404, body, None);
        assert!(fault.is_gone() && !fault.is_passing());
        assert_eq!(fault.to_string(), "404 NoSuchKey (The resource you requested does not exist)");
        let denied = Fault::new(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>", None);
        assert_eq!(
            denied.to_string(),
            "403 AccessDenied (Access Denied): the access key may not do that there: its policy says what it may"
        );
        let slow = Fault::new(503, b"<Error><Code>SlowDown</Code></Error>", Some("7"));
        assert!(slow.is_passing());
        assert_eq!(slow.retry_after, Some(Duration::from_secs(7)));
    }

    #[test]
    fn what_is_no_bucket_is_taken_for_none() {
        for (status, body) in [(404, "<html><body>404</body></html>"), (200, "Welcome"), (403, "<Error>"), (405, "")] {
            let fault = Fault::new(status, body.as_bytes(), None);
            assert!(fault.to_string().contains("no bucket") && !fault.is_gone() && !fault.is_passing(), "{fault}");
        }
    }

    #[test]
    fn of_what_somebody_else_wrote_no_line_of_a_log_is_made_up() {
        let body = format!("<Error><Code>X</Code><Message>a\nb\u{1b}[1m{}</Message></Error>", "c".repeat(1000));
        let fault = Fault::new(400, body.as_bytes(), None);
        let message = fault.message.unwrap();
        assert!(message.starts_with("a b [1mccc") && message.chars().count() == 200, "{message}");
    }
}
