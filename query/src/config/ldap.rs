//! The section `[people.ldap]`: a directory of people.

use super::{LdapConfig, duration_text, parse_duration, text_of, unknown};
use axum::http::Uri;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::{Table, Value};

const KEYS: [&str; 11] =
    ["url", "starttls", "bind_dn", "password_file", "base", "filter", "mail", "name", "ca_file", "timeout", "cache"];

/// Attributes as inetOrgPerson has them (RFC 2798), which most directories do.
const FILTER: &str = "(uid={user})";
const MAIL: &str = "mail";
const NAME: &str = "cn";
/// An alert can wait for the next look, a minute later.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Long enough that a look each minute asks once, short enough for a changed address.
const CACHE: Duration = Duration::from_secs(3600);

/// What it says. Faults are added, each with its key path; none where there are any.
pub(super) fn read(table: &Table, faults: &mut Vec<String>) -> Option<LdapConfig> {
    let before = faults.len();
    let mut config = LdapConfig {
        url: String::new(),
        starttls: false,
        login: None,
        base: String::new(),
        filter: FILTER.to_owned(),
        mail: MAIL.to_owned(),
        name: NAME.to_owned(),
        ca_file: None,
        timeout: TIMEOUT,
        cache: CACHE,
    };
    let (mut host, mut starttls, mut bind_dn, mut password_file): (_, _, _, Option<PathBuf>) = (None, None, None, None);
    for (key, value) in table {
        let mut read = || -> Result<(), String> {
            match &**key {
                "url" => (config.url, host) = url(text_of(value)?).map(|(url, host)| (url, Some(host)))?,
                "starttls" => starttls = Some(value.as_bool().ok_or("has to be true or false")?),
                "bind_dn" => bind_dn = Some(text_of(value)?.to_owned()),
                "password_file" => password_file = Some(text_of(value)?.into()),
                "base" => config.base = text_of(value)?.to_owned(),
                "filter" => config.filter = filter(text_of(value)?)?,
                "mail" => config.mail = attribute(text_of(value)?)?,
                "name" => config.name = attribute(text_of(value)?)?,
                "ca_file" => config.ca_file = Some(text_of(value)?.into()),
                "timeout" => config.timeout = parse_duration(text_of(value)?)?,
                "cache" => config.cache = parse_duration(text_of(value)?)?,
                _ => return Err(unknown(&KEYS)),
            }
            Ok(())
        };
        if let Err(fault) = read() {
            faults.push(format!("people.ldap.{key}: {fault}"));
        }
    }
    let missing = |key: &str| format!("people.ldap.{key}: is missing");
    faults.extend(["url", "base"].into_iter().filter(|key| !table.contains_key(*key)).map(missing));
    match (bind_dn, password_file) {
        (Some(dn), Some(file)) => config.login = Some((dn, file)),
        (None, None) => {}
        _ => faults.push("people.ldap.bind_dn, people.ldap.password_file: one is there without the other".to_owned()),
    }
    if let Some(host) = host {
        let (is_tls, is_here) = (config.url.starts_with("ldaps://"), crate::import::prometheus::is_this_machine(&host));
        match starttls {
            Some(true) if is_tls => {
                faults.push("people.ldap.starttls: ldaps:// has TLS from the first byte".to_owned())
            }
            Some(false) if !is_tls && !is_here => faults.push(
                "people.ldap.starttls: anybody on the way could read passwords and people: leave it out".to_owned(),
            ),
            _ => config.starttls = !is_tls && starttls.unwrap_or(!is_here),
        }
    }
    (faults.len() == before).then_some(config)
}

/// An address of a server, and its host.
fn url(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} is no directory such as ldaps://ldap.example.org or ldap://ldap.example.org:389");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    let is_server = matches!(uri.scheme_str(), Some("ldap" | "ldaps")) && matches!(uri.path(), "" | "/");
    if !is_server || uri.query().is_some() || uri.authority().is_some_and(|all| all.as_str().contains('@')) {
        return Err(wrong());
    }
    Ok((text.trim_end_matches('/').to_owned(), host.to_owned()))
}

fn filter(text: &str) -> Result<String, String> {
    if !text.contains("{user}") {
        return Err("has no {user} in it, so that all people would be one".to_owned());
    }
    match ldap3::parse_filter(text.replace("{user}", "user")) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!("{text:?} is no LDAP filter such as {FILTER} or (&(objectClass=person)(uid={{user}}))")),
    }
}

fn attribute(text: &str) -> Result<String, String> {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | ';' | '.'));
    if is_name { Ok(text.to_owned()) } else { Err(format!("{text:?} is no attribute such as mail")) }
}

/// The section as a config file says it.
pub(super) fn to_toml(config: &LdapConfig) -> String {
    let LdapConfig { url, starttls, login, base, filter, mail, name, ca_file, timeout, cache } = config;
    let mut out = "\n[people.ldap]\n".to_owned();
    let mut line = |key: &str, value: Value| _ = writeln!(out, "{key} = {value}");
    let text = |text: &str| Value::String(text.to_owned());
    let path = |path: &Path| Value::String(path.display().to_string());
    line("url", text(url));
    if !url.starts_with("ldaps://") {
        line("starttls", Value::Boolean(*starttls));
    }
    if let Some((dn, file)) = login {
        line("bind_dn", text(dn));
        line("password_file", path(file));
    }
    line("base", text(base));
    line("filter", text(filter));
    line("mail", text(mail));
    line("name", text(name));
    if let Some(file) = ca_file {
        line("ca_file", path(file));
    }
    line("timeout", text(&duration_text(*timeout)));
    line("cache", text(&duration_text(*cache)));
    out
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use insta::assert_snapshot;
    use std::path::Path;

    #[test]
    fn a_directory_is_printed_as_it_was_read() {
        let text = r#"
            [people.ldap]
            url = "ldap://ldap.example.org"
            bind_dn = "cn=cardhour,dc=example,dc=org"
            password_file = "/etc/cardhour/ldap.password"
            base = "ou=people,dc=example,dc=org"
            timeout = "5s"
        "#;
        let config = Config::parse(text, Path::new("config.toml")).unwrap();
        let printed = config.to_toml(None);
        assert_snapshot!(printed.split_once("\n[people.ldap]").unwrap().1.trim(), @r#"
        url = "ldap://ldap.example.org"
        starttls = true
        bind_dn = "cn=cardhour,dc=example,dc=org"
        password_file = "/etc/cardhour/ldap.password"
        base = "ou=people,dc=example,dc=org"
        filter = "(uid={user})"
        mail = "mail"
        name = "cn"
        timeout = "5s"
        cache = "1h"
        "#);
        assert_eq!(Config::parse(&printed, Path::new("config.toml")).unwrap().people, config.people);
        let here = Config::parse("[people.ldap]\nurl = \"ldap://127.0.0.1:389\"\nbase = \"o=x\"\n", Path::new("c"));
        assert!(!here.unwrap().people.ldap.unwrap().is_encrypted(), "on this machine nobody is on the way");
    }

    #[test]
    fn every_fault_of_a_directory_is_told() {
        let text = r#"
            [people.ldap]
            url = "http://ldap.example.org"
            bind_dn = "cn=cardhour"
            filter = "(uid=ann)"
            mail = "e mail"
            colour = 1
        "#;
        let faults = Config::parse(text, Path::new("config.toml")).unwrap_err().to_string();
        assert_snapshot!(faults, @r#"
        config file config.toml has 6 fault(s):
          people.ldap.colour: no such key; known here: url, starttls, bind_dn, password_file, base, filter, mail, name, ca_file, timeout, cache
          people.ldap.filter: has no {user} in it, so that all people would be one
          people.ldap.mail: "e mail" is no attribute such as mail
          people.ldap.url: "http://ldap.example.org" is no directory such as ldaps://ldap.example.org or ldap://ldap.example.org:389
          people.ldap.base: is missing
          people.ldap.bind_dn, people.ldap.password_file: one is there without the other
        "#);
        let open = "[people.ldap]\nurl = \"ldap://ldap.example.org\"\nstarttls = false\nbase = \"o=x\"\nfilter = \"(uid={user}\"\n";
        let faults = Config::parse(open, Path::new("config.toml")).unwrap_err().to_string();
        assert!(faults.contains("anybody on the way") && faults.contains("is no LDAP filter"), "{faults}");
    }
}
