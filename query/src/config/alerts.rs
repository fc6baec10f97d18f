//! The sections `[alerts]` and `[people]`: who is told what happens, and where people are found.

use super::{AlertsConfig, Endpoint, MailConfig, MailSecurity, PeopleConfig, text_of, unknown};
use axum::http::Uri;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use toml::Value;

const KEYS: [&str; 10] = [
    "alertmanager",
    "alertmanager_token_file",
    "webhook",
    "webhook_token_file",
    "ca_file",
    "smtp",
    "smtp_user",
    "smtp_password_file",
    "mail_from",
    "mail_to",
];

/// The keys of `[alerts]` as they were read, before they are held against each other.
#[derive(Default)]
pub(super) struct Alerts {
    alertmanager: Option<Endpoint>,
    alertmanager_token: Option<PathBuf>,
    webhook: Option<Endpoint>,
    webhook_token: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    smtp: Option<(String, u16, MailSecurity)>,
    smtp_user: Option<String>,
    smtp_password: Option<PathBuf>,
    from: Option<String>,
    to: Vec<String>,
}

impl Alerts {
    /// Reads one key. Errors: what is wrong with it.
    pub fn read(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match key {
            "alertmanager" => self.alertmanager = Some(endpoint(text_of(value)?)?),
            "alertmanager_token_file" => self.alertmanager_token = Some(text_of(value)?.into()),
            "webhook" => self.webhook = Some(endpoint(text_of(value)?)?),
            "webhook_token_file" => self.webhook_token = Some(text_of(value)?.into()),
            "ca_file" => self.ca_file = Some(text_of(value)?.into()),
            "smtp" => self.smtp = Some(smtp(text_of(value)?)?),
            "smtp_user" => self.smtp_user = Some(text_of(value)?.to_owned()),
            "smtp_password_file" => self.smtp_password = Some(text_of(value)?.into()),
            "mail_from" => self.from = Some(mail(text_of(value)?)?),
            "mail_to" => {
                let list = value.as_array().ok_or("not a list of addresses such as [\"finance@example.org\"]")?;
                self.to = list.iter().map(|item| mail(text_of(item)?)).collect::<Result<_, _>>()?;
            }
            _ => return Err(unknown(&KEYS)),
        }
        Ok(())
    }

    /// What is in force; faults that one key alone doesn't have are added.
    pub fn finish(self, faults: &mut Vec<String>) -> AlertsConfig {
        let mut joined =
            |name: &str, endpoint: Option<Endpoint>, token_file: Option<PathBuf>| match (endpoint, token_file) {
                (None, Some(_)) => {
                    faults.push(format!("alerts.{name}_token_file: is there without {name}"));
                    None
                }
                (Some(endpoint), Some(_)) if is_open(&endpoint) => {
                    faults.push(format!("alerts.{name}_token_file: anybody on the way could read it: take https"));
                    None
                }
                (endpoint, token_file) => endpoint.map(|endpoint| Endpoint { token_file, ..endpoint }),
            };
        let alertmanager = joined("alertmanager", self.alertmanager, self.alertmanager_token);
        let webhook = joined("webhook", self.webhook, self.webhook_token);
        let login = match (self.smtp_user, self.smtp_password) {
            (Some(user), Some(file)) => Some((user, file)),
            (None, None) => None,
            _ => {
                faults.push("alerts.smtp_user, alerts.smtp_password_file: one is there without the other".to_owned());
                None
            }
        };
        let mail = match (self.smtp, self.from) {
            (Some((host, port, security)), Some(from)) => {
                Some(MailConfig { host, port, security, login, from, to: self.to })
            }
            (None, None) => {
                if login.is_some() || !self.to.is_empty() {
                    faults.push("alerts.mail_to, alerts.smtp_user: are there without smtp".to_owned());
                }
                None
            }
            _ => {
                faults.push("alerts.smtp, alerts.mail_from: one is there without the other".to_owned());
                None
            }
        };
        AlertsConfig { alertmanager, webhook, ca_file: self.ca_file, mail }
    }
}

fn is_open(endpoint: &Endpoint) -> bool {
    endpoint.url.starts_with("http://") && !crate::import::prometheus::is_this_machine(&endpoint.host)
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    let wrong = || format!("{text:?} is no address such as http://alertmanager:9093");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let host = uri.host().filter(|_| matches!(uri.scheme_str(), Some("http" | "https"))).ok_or_else(wrong)?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("a name or password doesn't belong into it: take the token's file".to_owned());
    }
    Ok(Endpoint { url: text.to_owned(), host: host.to_owned(), token_file: None })
}

/// `smtps://host` or `smtp://host`, with or without a port.
fn smtp(text: &str) -> Result<(String, u16, MailSecurity), String> {
    let wrong =
        || format!("{text:?} is no mail server such as smtp://mail.example.org or smtps://mail.example.org:465");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    let (security, port) = match uri.scheme_str() {
        Some("smtps") => (MailSecurity::Tls, 465),
        Some("smtp") if crate::import::prometheus::is_this_machine(host) => (MailSecurity::ThisMachine, 25),
        Some("smtp") => (MailSecurity::StartTls, 587),
        _ => return Err(wrong()),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    Ok((bare.to_owned(), uri.port_u16().unwrap_or(port), security))
}

fn mail(text: &str) -> Result<String, String> {
    match text.split_once('@') {
        Some((user, domain)) if !user.is_empty() && !domain.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no address such as finance@example.org")),
    }
}

/// Both sections as a config file says them.
pub(super) fn to_toml(alerts: &AlertsConfig, people: &PeopleConfig) -> String {
    let mut out = "\n[alerts]\n".to_owned();
    let mut line = |key: &str, value: Value| _ = writeln!(out, "{key} = {value}");
    let path = |path: &Path| Value::String(path.display().to_string());
    for (name, endpoint) in [("alertmanager", &alerts.alertmanager), ("webhook", &alerts.webhook)] {
        if let Some(endpoint) = endpoint {
            line(name, Value::String(endpoint.url.clone()));
            if let Some(file) = &endpoint.token_file {
                line(&format!("{name}_token_file"), path(file));
            }
        }
    }
    if let Some(file) = &alerts.ca_file {
        line("ca_file", path(file));
    }
    if let Some(MailConfig { host, port, security, login, from, to }) = &alerts.mail {
        let scheme = match security {
            MailSecurity::Tls => "smtps",
            MailSecurity::StartTls | MailSecurity::ThisMachine => "smtp",
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        line("smtp", Value::String(format!("{scheme}://{host}:{port}")));
        if let Some((user, file)) = login {
            line("smtp_user", Value::String(user.clone()));
            line("smtp_password_file", path(file));
        }
        line("mail_from", Value::String(from.clone()));
        line("mail_to", Value::Array(to.iter().cloned().map(Value::String).collect()));
    }
    if *alerts == AlertsConfig::default() {
        out.push_str("# alertmanager, webhook, smtp: none, so nobody is told of anything\n");
    }
    out.push_str("\n[people]\n");
    let mut line = |key: &str, value: Value| _ = writeln!(out, "{key} = {value}");
    if let Some(mail) = &people.mail {
        line("mail", Value::String(mail.clone()));
    }
    if let Some(file) = &people.file {
        line("file", path(file));
    }
    if *people == PeopleConfig::default() {
        out.push_str("# mail, file, ldap: none, so nobody has an address\n");
    }
    if let Some(ldap) = &people.ldap {
        out.push_str(&super::ldap::to_toml(ldap));
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use insta::assert_snapshot;
    use std::path::Path;

    #[test]
    fn who_is_told_is_printed_as_it_was_read() {
        let text = r#"
            [alerts]
            alertmanager = "http://127.0.0.1:9093"
            webhook = "https://chat.example.org/hook"
            webhook_token_file = "/etc/cardhour/hook.token"
            smtp = "smtp://mail.example.org"
            smtp_user = "books"
            smtp_password_file = "/etc/cardhour/smtp"
            mail_from = "books@example.org"
            mail_to = ["finance@example.org"]
            [people]
            mail = "{user}@example.org"
        "#;
        let config = Config::parse(text, Path::new("config.toml")).unwrap();
        let printed = config.to_toml(None);
        assert_snapshot!(printed.split_once("\n[alerts]").unwrap().1.trim(), @r#"
        alertmanager = "http://127.0.0.1:9093"
        webhook = "https://chat.example.org/hook"
        webhook_token_file = "/etc/cardhour/hook.token"
        smtp = "smtp://mail.example.org:587"
        smtp_user = "books"
        smtp_password_file = "/etc/cardhour/smtp"
        mail_from = "books@example.org"
        mail_to = ["finance@example.org"]

        [people]
        mail = "{user}@example.org"
        "#);
        assert_eq!(Config::parse(&printed, Path::new("config.toml")).unwrap().alerts, config.alerts);
    }

    #[test]
    fn every_fault_of_who_is_told_is_told() {
        let text = r#"
            [alerts]
            alertmanager = "alertmanager:9093"
            webhook = "http://chat.example.org/hook"
            webhook_token_file = "t"
            smtp = "mail.example.org"
            smtp_user = "books"
            mail_to = ["finance"]
            [people]
            mail = "all@example.org"
        "#;
        let faults = Config::parse(text, Path::new("config.toml")).unwrap_err().to_string();
        assert_snapshot!(faults, @r#"
        config file config.toml has 6 fault(s):
          alerts.alertmanager: "alertmanager:9093" is no address such as http://alertmanager:9093
          alerts.mail_to: "finance" is no address such as finance@example.org
          alerts.smtp: "mail.example.org" is no mail server such as smtp://mail.example.org or smtps://mail.example.org:465
          people.mail: has no {user} in it, so that all people would be one
          alerts.webhook_token_file: anybody on the way could read it: take https
          alerts.smtp_user, alerts.smtp_password_file: one is there without the other
        "#);
    }
}
