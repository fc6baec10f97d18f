//! The ways out: Alertmanager's v2 API, a webhook, mail.

use super::{Event, Mail, News};
use crate::config::{AlertsConfig, Config, Endpoint};
use crate::error::Error;
use crate::people::PeopleError;
use cardhour_domain::Timestamp;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// After that a channel isn't reached, and is tried again with the next look.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a message wasn't delivered.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// Nobody took it.
    #[error("{address} can't be reached")]
    Away {
        /// Who was asked.
        address: String,
        /// Why.
        source: reqwest::Error,
    },
    /// Somebody refused it.
    #[error("{address} answers {status}: {said}")]
    Refused {
        /// Who was asked.
        address: String,
        /// Its status.
        status: StatusCode,
        /// The first of what it said.
        said: String,
    },
    /// A file with a token that can't be read, or isn't one line.
    #[error("no token in {}", file.display())]
    Token {
        /// Which.
        file: PathBuf,
    },
    /// The config names nobody, and the user it is of isn't known.
    #[error("nobody to send a mail to: alerts.mail_to in the config names somebody")]
    Nobody,
    /// Nobody can say to whom.
    #[error("to whom it goes can't be said")]
    People(#[source] PeopleError),
    /// The mail server didn't take it, or it can't be written as a mail.
    #[error("mail: {0}")]
    Mail(String),
}

impl ChannelError {
    /// Whether the next event may be delivered all the same.
    fn is_of_one_event(&self) -> bool {
        match self {
            Self::Nobody | Self::People(PeopleError::Address { .. }) => true,
            Self::People(PeopleError::Directory(error)) => error.is_of_one_user(),
            Self::People(PeopleError::File { .. })
            | Self::Away { .. }
            | Self::Refused { .. }
            | Self::Token { .. }
            | Self::Mail(_) => false,
        }
    }
}

/// One way out.
#[derive(Clone, Debug)]
pub enum Channel {
    /// Alertmanager: all events in one call.
    Alertmanager(Http),
    /// A webhook: a call an event.
    Webhook(Http),
    /// Mail: a mail an event.
    Mail(Box<Mail>),
}

/// An address that takes json.
#[derive(Clone, Debug)]
pub struct Http {
    client: Client,
    address: String,
    token_file: Option<PathBuf>,
}

impl Channel {
    /// Those that the config names. Errors: a certificate or an address of mail that can't be used.
    pub fn of(config: &Config) -> Result<Vec<Self>, Error> {
        let AlertsConfig { alertmanager, webhook, ca_file, mail } = &config.alerts;
        let mut channels = Vec::new();
        if let Some(endpoint) = alertmanager {
            let address = format!("{}/api/v2/alerts", endpoint.url.trim_end_matches('/'));
            channels.push(Self::Alertmanager(Http::new(address, endpoint, ca_file.as_deref())?));
        }
        if let Some(endpoint) = webhook {
            channels.push(Self::Webhook(Http::new(endpoint.url.clone(), endpoint, ca_file.as_deref())?));
        }
        if let Some(mail) = mail {
            channels.push(Self::Mail(Box::new(Mail::new(mail, &config.people)?)));
        }
        Ok(channels)
    }

    /// What the table `alerts` calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Alertmanager(_) => "alertmanager",
            Self::Webhook(_) => "webhook",
            Self::Mail(_) => "mail",
        }
    }

    /// Delivers events in their order, up to the first that fails for a reason that the next would meet, too: those that are delivered, and why not all are.
    pub async fn deliver<'e>(&self, events: &'e [Event]) -> (Vec<&'e Event>, Vec<ChannelError>) {
        if let Self::Alertmanager(http) = self {
            let alerts: Vec<Value> = events.iter().map(alertmanager_alert).collect();
            return match http.post(&Value::Array(alerts)).await {
                Ok(()) => (events.iter().collect(), Vec::new()),
                Err(error) => (Vec::new(), vec![error]),
            };
        }
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for event in events {
            let delivered = match self {
                Self::Alertmanager(http) | Self::Webhook(http) => http.post(&webhook_body(event)).await,
                Self::Mail(mail) => mail.send(event).await,
            };
            match delivered {
                Ok(()) => done.push(event),
                // One user's address keeps nobody else's mail back.
                Err(error) if error.is_of_one_event() => failed.push(error),
                Err(error) => {
                    failed.push(error);
                    break;
                }
            }
        }
        (done, failed)
    }
}

impl Http {
    fn new(address: String, endpoint: &Endpoint, ca_file: Option<&Path>) -> Result<Self, Error> {
        let mut builder = Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("cardhour/", env!("CARGO_PKG_VERSION")));
        if crate::import::prometheus::is_this_machine(&endpoint.host) {
            // A proxy that the environment names is for what is elsewhere.
            builder = builder.no_proxy();
        }
        let unusable = |path: &Path, reason: String| Error::Certificate { path: path.to_owned(), reason };
        if let Some(path) = ca_file {
            let pem =
                std::fs::read(path).map_err(|source| Error::File { doing: "read", path: path.to_owned(), source })?;
            let all = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| unusable(path, error.to_string()))?;
            for certificate in all {
                builder = builder.add_root_certificate(certificate);
            }
        }
        let client = builder
            .build()
            .map_err(|error| unusable(ca_file.unwrap_or(Path::new("(none)")), crate::error::chain(&error)))?;
        Ok(Self { client, address, token_file: endpoint.token_file.clone() })
    }

    async fn post(&self, body: &Value) -> Result<(), ChannelError> {
        let request = self.client.post(&self.address).header("content-type", "application/json");
        let request = self.signed(request)?.body(body.to_string());
        let away =
            |source: reqwest::Error| ChannelError::Away { address: self.address.clone(), source: source.without_url() };
        let answer = request.send().await.map_err(away)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let said: String =
            answer.text().await.unwrap_or_default().chars().filter(|c| !c.is_control()).take(200).collect();
        Err(ChannelError::Refused { address: self.address.clone(), status, said })
    }

    /// Read anew each time, so that a token can be renewed.
    fn signed(&self, request: RequestBuilder) -> Result<RequestBuilder, ChannelError> {
        let Some(file) = &self.token_file else { return Ok(request) };
        let token = std::fs::read_to_string(file).unwrap_or_default();
        let token = token.trim();
        if token.is_empty() || token.chars().any(char::is_control) {
            return Err(ChannelError::Token { file: file.clone() });
        }
        Ok(request.bearer_auth(token))
    }
}

fn rfc3339(at: Timestamp) -> String {
    at.to_string()
}

/// An alert as Alertmanager's v2 API takes it. One that began is told until when it holds, so that it need not be told again; one that is over ends now.
fn alertmanager_alert(event: &Event) -> Value {
    let mut labels = event.labels.clone();
    labels.insert("alertname".to_owned(), event.name.to_owned());
    labels.insert("severity".to_owned(), event.severity.name().to_owned());
    let mut annotations = json!({"summary": event.summary});
    if let Some(description) = &event.description {
        annotations["description"] = json!(description);
    }
    let mut alert = json!({"labels": labels, "annotations": annotations});
    match event.news {
        News::Reached => {
            alert["startsAt"] = json!(rfc3339(event.at));
            if let Some(ends_at) = event.ends_at {
                alert["endsAt"] = json!(rfc3339(ends_at));
            }
        }
        News::Over => alert["endsAt"] = json!(rfc3339(event.at)),
    }
    alert
}

/// What a webhook is told. Stability: a public contract, described in docs/budgets.md; pinned by the test `a_webhook_is_told_as_before`.
fn webhook_body(event: &Event) -> Value {
    json!({
        "id": event.id(),
        "event": event.name,
        "news": event.news.name(),
        "severity": event.severity.name(),
        "labels": event.labels,
        "at": rfc3339(event.at),
        "ends_at": event.ends_at.map(rfc3339),
        "summary": event.summary,
        "description": event.description,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Severity;
    use std::collections::BTreeMap;

    fn event(news: News) -> Event {
        Event {
            name: "CardhourBudget",
            labels: BTreeMap::from([("budget".to_owned(), "lab".to_owned())]),
            news,
            severity: Severity::Info,
            at: Timestamp::from_unix_s(1_772_323_200),
            ends_at: Some(Timestamp::from_unix_s(1_775_001_600)),
            summary: "half of it".to_owned(),
            description: None,
            user: None,
        }
    }

    #[test]
    fn a_webhook_is_told_as_before() {
        insta::assert_snapshot!(webhook_body(&event(News::Reached)).to_string().replace(&event(News::Reached).id(), "ID"),
            @r#"{"id":"ID","event":"CardhourBudget","news":"reached","severity":"info","labels":{"budget":"lab"},"at":"2026-03-01T00:00:00Z","ends_at":"2026-04-01T00:00:00Z","summary":"half of it","description":null}"#);
        assert_ne!(event(News::Reached).id(), event(News::Over).id());
    }

    #[test]
    fn alertmanager_is_told_until_when_an_alert_holds_and_when_it_ended() {
        insta::assert_snapshot!(alertmanager_alert(&event(News::Reached)), @r#"{"labels":{"alertname":"CardhourBudget","budget":"lab","severity":"info"},"annotations":{"summary":"half of it"},"startsAt":"2026-03-01T00:00:00Z","endsAt":"2026-04-01T00:00:00Z"}"#);
        insta::assert_snapshot!(alertmanager_alert(&event(News::Over)), @r#"{"labels":{"alertname":"CardhourBudget","budget":"lab","severity":"info"},"annotations":{"summary":"half of it"},"endsAt":"2026-03-01T00:00:00Z"}"#);
    }
}
