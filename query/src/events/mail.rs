//! Events as mail, through a site's own server.

use super::{ChannelError, Event, News};
use crate::config::{MailConfig, MailSecurity, PeopleConfig};
use crate::error::Error;
use lettre::address::Envelope;
use lettre::message::{Mailbox, header};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Address, Message, SmtpTransport, Transport};
use std::path::Path;
use std::time::Duration;

/// After that a mail isn't sent, and is tried again with the next look.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A server, who writes, and to whom.
#[derive(Clone, Debug)]
pub struct Mail {
    config: MailConfig,
    from: Mailbox,
    to: Vec<Address>,
    people: PeopleConfig,
}

impl Mail {
    /// As the config says. Errors: an address that is none.
    pub fn new(config: &MailConfig, people: &PeopleConfig) -> Result<Self, Error> {
        let wrong = |text: &str, error: &dyn std::fmt::Display| Error::MailAddress {
            text: text.to_owned(),
            reason: error.to_string(),
        };
        let from = config.from.parse::<Mailbox>().map_err(|error| wrong(&config.from, &error))?;
        let to = config
            .to
            .iter()
            .map(|text| text.parse::<Address>().map_err(|error| wrong(text, &error)))
            .collect::<Result<_, _>>()?;
        Ok(Self { config: config.clone(), from, to, people: people.clone() })
    }

    /// Sends one. Errors: nobody to send it to, or the server doesn't take it.
    pub async fn send(&self, event: &Event) -> Result<(), ChannelError> {
        let (envelope, message) = self.message(event)?;
        let config = self.config.clone();
        // The transport blocks: on a thread that may.
        let sent = tokio::task::spawn_blocking(move || {
            let transport = transport(&config)?;
            transport.send_raw(&envelope, &message).map_err(|error| ChannelError::Mail(crate::error::chain(&error)))
        });
        sent.await.expect("sending does not panic")?;
        Ok(())
    }

    /// A mail and its envelope. The same event has the same Message-ID, so that one that comes again is known.
    fn message(&self, event: &Event) -> Result<(Envelope, Vec<u8>), ChannelError> {
        let failed = |error: &dyn std::fmt::Display| ChannelError::Mail(error.to_string());
        let mut to = self.to.clone();
        if let Some(user) = &event.user {
            to.extend(self.address_of(user)?.filter(|address| !self.to.contains(address)));
        }
        if to.is_empty() {
            return Err(ChannelError::Mail(
                "nobody to send it to: alerts.mail_to in the config names somebody".to_owned(),
            ));
        }
        let news = match event.news {
            News::Reached => "",
            News::Over => "over: ",
        };
        let id = format!("<{}@{}>", event.id(), self.from.email.domain());
        let mut builder = Message::builder()
            .from(self.from.clone())
            .subject(format!("[cardhour] {news}{}", event.summary))
            .message_id(Some(id))
            .header(header::ContentType::TEXT_PLAIN);
        for address in &to {
            builder = builder.to(Mailbox::new(None, address.clone()));
        }
        let mut body = format!("{}\n", event.summary);
        if let Some(description) = &event.description {
            body.push_str(&format!("{description}\n"));
        }
        body.push('\n');
        for (name, value) in &event.labels {
            body.push_str(&format!("{name}: {value}\n"));
        }
        let message = builder.body(body).map_err(|error| failed(&error))?;
        Ok((message.envelope().clone(), message.formatted()))
    }

    /// The address of a user: by the file of people, else by the template; none where neither says one. Errors: the file can't be read, or has an address that is none.
    fn address_of(&self, user: &str) -> Result<Option<Address>, ChannelError> {
        let of_file = match &self.people.file {
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| ChannelError::Mail(format!("{}: {error}", file.display())))?;
                in_file(&text, user)
            }
            None => None,
        };
        let of_template = || self.people.mail.as_ref().map(|template| template.replace("{user}", user));
        let Some(text) = of_file.or_else(of_template) else { return Ok(None) };
        text.parse::<Address>()
            .map(Some)
            .map_err(|error| ChannelError::Mail(format!("{text:?} of user {user:?}: {error}")))
    }
}

/// The address of a user in a file of lines `USER,ADDRESS`; lines that begin with # say nothing.
fn in_file(text: &str, user: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut people = lines.filter_map(|line| line.split_once(','));
    people.find(|(name, _)| name.trim() == user).map(|(_, address)| address.trim().to_owned())
}

fn transport(config: &MailConfig) -> Result<SmtpTransport, ChannelError> {
    let failed = |error: lettre::transport::smtp::Error| ChannelError::Mail(crate::error::chain(&error));
    let mut builder = match config.security {
        MailSecurity::Tls => SmtpTransport::relay(&config.host).map_err(failed)?,
        MailSecurity::StartTls => SmtpTransport::starttls_relay(&config.host).map_err(failed)?,
        MailSecurity::ThisMachine => SmtpTransport::builder_dangerous(&config.host),
    };
    builder = builder.port(config.port).timeout(Some(TIMEOUT));
    if let Some((user, file)) = &config.login {
        builder = builder.credentials(Credentials::new(user.clone(), password(file)?));
    }
    Ok(builder.build())
}

fn password(file: &Path) -> Result<String, ChannelError> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let password = text.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        return Err(ChannelError::Mail(format!("no password in {}", file.display())));
    }
    Ok(password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Severity;
    use cardhour_domain::Timestamp;
    use std::collections::BTreeMap;

    fn mail(to: &[&str], people: PeopleConfig) -> Mail {
        let config = MailConfig {
            host: "localhost".to_owned(),
            port: 25,
            security: MailSecurity::ThisMachine,
            login: None,
            from: "books@pool.example".to_owned(),
            to: to.iter().map(|text| (*text).to_owned()).collect(),
        };
        Mail::new(&config, &people).unwrap()
    }

    fn event(user: Option<&str>) -> Event {
        Event {
            name: "CardhourBudget",
            labels: BTreeMap::from([("budget".to_owned(), "lab".to_owned())]),
            news: News::Reached,
            severity: Severity::Info,
            at: Timestamp::from_unix_s(1_772_323_200),
            ends_at: None,
            summary: "budget lab: 50 % reached".to_owned(),
            description: Some("it will last".to_owned()),
            user: user.map(str::to_owned),
        }
    }

    #[test]
    fn a_mail_says_what_happened_and_has_an_id_of_its_event() {
        let (envelope, text) = mail(&["finance@pool.example"], PeopleConfig::default()).message(&event(None)).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(envelope.to().len(), 1);
        for part in [
            "From: books@pool.example",
            "To: finance@pool.example",
            "Subject: [cardhour] budget lab: 50 % reached",
            &format!("Message-ID: <{}@pool.example>", event(None).id()),
            "it will last",
            "budget: lab",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn a_user_is_found_by_file_or_by_template() {
        assert_eq!(in_file("# people\nann, ann@a.example\nbob,bob@b.example\n", "bob").unwrap(), "bob@b.example");
        assert_eq!(in_file("ann,ann@a.example", "an"), None);
        let people = PeopleConfig { mail: Some("{user}@pool.example".to_owned()), file: None };
        let (envelope, _) = mail(&[], people).message(&event(Some("ann"))).unwrap();
        assert_eq!(envelope.to()[0].to_string(), "ann@pool.example");
        assert!(mail(&[], PeopleConfig::default()).message(&event(Some("ann"))).is_err(), "nobody to send it to");
    }
}
