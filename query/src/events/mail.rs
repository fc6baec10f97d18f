//! Events as mail, through a site's own server.

use super::{ChannelError, Event, News};
use crate::config::{MailConfig, MailSecurity, PeopleConfig};
use crate::error::Error;
use crate::people::{People, one_line};
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
    people: People,
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
        Ok(Self { config: config.clone(), from, to, people: People::new(people) })
    }

    /// Sends one. Errors: nobody to send it to, or the server doesn't take it.
    pub async fn send(&self, event: &Event) -> Result<(), ChannelError> {
        let of_user = match &event.user {
            Some(user) => self.people.find(user).await.map_err(ChannelError::People)?,
            None => None,
        };
        let (envelope, message) = self.message(event, of_user)?;
        let config = self.config.clone();
        // The transport blocks: on a thread that may.
        let sent = tokio::task::spawn_blocking(move || {
            let transport = transport(&config)?;
            transport.send_raw(&envelope, &message).map_err(|error| ChannelError::Mail(crate::error::chain(&error)))
        });
        sent.await.expect("sending does not panic")?;
        Ok(())
    }

    /// A mail and its envelope. `of_user`: the user it is of, where somebody knows them. The same event has the same Message-ID, so that one that comes again is known.
    fn message(&self, event: &Event, of_user: Option<Mailbox>) -> Result<(Envelope, Vec<u8>), ChannelError> {
        let failed = |error: &dyn std::fmt::Display| ChannelError::Mail(error.to_string());
        let mut to: Vec<Mailbox> = self.to.iter().map(|address| Mailbox::new(None, address.clone())).collect();
        to.extend(of_user.filter(|user| !self.to.contains(&user.email)));
        if to.is_empty() {
            return Err(ChannelError::Nobody);
        }
        let news = match event.news {
            News::Reached => "",
            News::Over => "over: ",
        };
        let id = format!("<{}@{}>", event.id(), self.from.email.domain());
        let mut builder = Message::builder()
            .from(self.from.clone())
            // A budget's name or a user's may have anything in it, and a header is one line.
            .subject(one_line(&format!("[cardhour] {news}{}", event.summary)))
            .message_id(Some(id))
            .header(header::ContentType::TEXT_PLAIN);
        for mailbox in to {
            builder = builder.to(mailbox);
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

    fn text(mail: &Mail, event: &Event, of_user: Option<&str>) -> (Envelope, String) {
        let (envelope, text) = mail.message(event, of_user.map(|text| text.parse().unwrap())).unwrap();
        (envelope, String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_mail_says_what_happened_and_has_an_id_of_its_event() {
        let mail = mail(&["finance@pool.example"], PeopleConfig::default());
        let (envelope, text) = text(&mail, &event(None), None);
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
    fn the_user_it_is_of_gets_it_once_by_name() {
        let (envelope, both) = text(
            &mail(&["finance@pool.example"], PeopleConfig::default()),
            &event(Some("ann")),
            Some("Ann A <ann@pool.example>"),
        );
        assert_eq!(
            envelope.to().iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["finance@pool.example", "ann@pool.example"]
        );
        assert!(both.contains("finance@pool.example, \"Ann A\" <ann@pool.example>"), "{both}");
        let once = mail(&["ann@pool.example"], PeopleConfig::default());
        assert_eq!(text(&once, &event(Some("ann")), Some("ann@pool.example")).0.to().len(), 1);
        assert!(mail(&[], PeopleConfig::default()).message(&event(Some("ann")), None).is_err(), "nobody to send it to");
    }

    /// RFC 5322: a header ends with its line. RFC 2047: what isn't ASCII is an encoded word; 预算 is E9 A2 84 E7 AE 97 in UTF-8, 6aKE566X in base 64.
    #[test]
    fn a_name_with_a_line_end_makes_no_header_and_what_is_not_ascii_is_encoded() {
        let mail = mail(&["finance@pool.example"], PeopleConfig::default());
        let evil = Event { summary: "budget a\r\nBcc: all@pool.example\r\n\r\nno".to_owned(), ..event(None) };
        let headers = |event: &Event| text(&mail, event, None).1.split_once("\r\n\r\n").unwrap().0.to_owned();
        let made = headers(&evil);
        assert!(!made.lines().any(|line| line.to_lowercase().starts_with("bcc")), "{made}");
        assert!(made.contains("Bcc: all@pool.example"), "it is part of the subject\n{made}");
        let made = headers(&Event { summary: "预算".to_owned(), ..event(None) });
        assert!(made.is_ascii() && made.contains("=?utf-8?b?") && made.contains("6aKE566X"), "{made}");
    }
}
