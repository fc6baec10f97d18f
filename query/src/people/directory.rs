//! Users in a site's directory, by LDAP.
//!
//! One connection a look-up, all of it within the config's timeout: a few users in a minute are asked for at most, and what was found is kept for a while. The user is escaped as
//! RFC 4515 asks, so that a name with `*` or `)` in it finds nobody else. Start at [`Directory::find`]. Does not: write, or read passwords of people.

use crate::config::LdapConfig;
use ldap3::{LdapConnAsync, LdapConnSettings, LdapError, Scope, SearchEntry, SearchOptions, ldap_escape};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// More than one would do: that there are several is all that has to be known.
const MOST_ENTRIES: i32 = 2;
/// What a server answers that had more than [`MOST_ENTRIES`]. Source: RFC 4511, sizeLimitExceeded.
const SIZE_LIMIT_EXCEEDED: u32 = 4;

/// Why a directory doesn't say who a user is.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It doesn't answer, or refuses.
    #[error("the directory {url} can't be asked: {why}")]
    Away {
        /// Which.
        url: String,
        /// Why; its own cause is in its words.
        why: Box<LdapError>,
    },
    /// It took longer than the config allows.
    #[error("the directory {url} doesn't answer in {}", crate::config::duration_text(*after))]
    Slow {
        /// Which.
        url: String,
        /// After that.
        after: std::time::Duration,
    },
    /// The filter finds more than one.
    #[error("the directory {url} has several entries for user {user:?}: people.ldap.filter has to find one")]
    Several {
        /// Which.
        url: String,
        /// Of whom.
        user: String,
    },
    /// The password's file can't be read, or is empty: with an empty password a server takes anybody for nobody.
    #[error("no password in {}", .0.display())]
    Password(PathBuf),
    /// A certificate that can't be used.
    #[error("certificates of {}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl DirectoryError {
    /// Whether it may say who another user is.
    pub fn is_of_one_user(&self) -> bool {
        match self {
            Self::Several { .. } => true,
            Self::Away { .. } | Self::Slow { .. } | Self::Password(_) | Self::Certificate { .. } => false,
        }
    }
}

/// What a directory says of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub mail: String,
    pub name: Option<String>,
}

/// A directory, and whom it was asked for lately.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    config: LdapConfig,
    known: Arc<Mutex<BTreeMap<String, (Instant, Found)>>>,
}

impl Directory {
    pub fn new(config: &LdapConfig) -> Self {
        Self { config: config.clone(), known: Arc::default() }
    }

    /// Mail and name of a user; none where the directory has no such user, or one without an address. Who isn't found is asked for again, since somebody may be adding them.
    pub async fn find(&self, user: &str) -> Result<Option<Found>, DirectoryError> {
        let fresh = |(at, _): &&(Instant, Found)| at.elapsed() < self.config.cache;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(user).filter(fresh).cloned();
        if let Some((_, found)) = known {
            return Ok(Some(found));
        }
        let (url, after) = (self.config.url.clone(), self.config.timeout);
        let found = match tokio::time::timeout(after, self.ask(user)).await {
            Ok(found) => found?,
            Err(_) => return Err(DirectoryError::Slow { url, after }),
        };
        if let Some(found) = &found {
            let kept = (Instant::now(), found.clone());
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(user.to_owned(), kept);
        }
        Ok(found)
    }

    async fn ask(&self, user: &str) -> Result<Option<Found>, DirectoryError> {
        let LdapConfig { url, login, base, filter, mail, name, .. } = &self.config;
        let away = |why| DirectoryError::Away { url: url.clone(), why: Box::new(why) };
        // Read anew each time, so that a password can be renewed.
        let password = login.as_ref().map(|(_, file)| password(file)).transpose()?;
        let mut settings = LdapConnSettings::new().set_conn_timeout(self.config.timeout);
        if self.config.is_encrypted() {
            settings = settings.set_config(tls(self.config.ca_file.as_deref())?).set_starttls(self.config.starttls);
        }
        let (connection, mut ldap) = LdapConnAsync::with_settings(settings, url).await.map_err(away)?;
        let driven = tokio::spawn(connection.drive());
        let asked = async {
            if let Some(((dn, _), password)) = login.as_ref().zip(password.as_deref()) {
                ldap.simple_bind(dn, password).await?.success()?;
            }
            let filter = filter.replace("{user}", &ldap_escape(user));
            ldap.with_search_options(SearchOptions::new().sizelimit(MOST_ENTRIES));
            let answer = ldap.search(base, Scope::Subtree, &filter, vec![mail, name]).await?;
            let entries: Vec<SearchEntry> =
                answer.0.into_iter().filter(|entry| !entry.is_ref()).map(SearchEntry::construct).collect();
            // No such base is a fault, too: of the config, or of what the one who asks may read.
            if answer.1.rc != SIZE_LIMIT_EXCEEDED {
                answer.1.success()?;
            }
            // That it is let go is a courtesy.
            _ = ldap.unbind().await;
            Ok(entries)
        };
        let entries = asked.await;
        driven.abort();
        let entries = entries.map_err(away)?;
        match &entries[..] {
            [] => Ok(None),
            [entry] => Ok(of_entry(entry, mail, name)),
            _ => Err(DirectoryError::Several { url: url.clone(), user: user.to_owned() }),
        }
    }
}

/// The first of its addresses, and the first of its names. Attributes are called alike in upper and lower case.
fn of_entry(entry: &SearchEntry, mail: &str, name: &str) -> Option<Found> {
    let first = |attribute: &str| {
        let (_, values) = entry.attrs.iter().find(|(known, _)| known.eq_ignore_ascii_case(attribute))?;
        values.iter().map(|value| value.trim()).find(|value| !value.is_empty()).map(str::to_owned)
    };
    Some(Found { mail: first(mail)?, name: first(name) })
}

fn password(file: &Path) -> Result<String, DirectoryError> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err(DirectoryError::Password(file.to_owned())),
        password => Ok(password.to_owned()),
    }
}

/// The system's roots, and those of a file beside them.
fn tls(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, DirectoryError> {
    let mut roots = RootCertStore::empty();
    // A root of the system that can't be read is one fewer.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca_file {
        let unusable = |reason: String| DirectoryError::Certificate { path: path.to_owned(), reason };
        let all = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
        for certificate in all {
            let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows the versions that rustls was built with");
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// RFC 4515, section 3: `*`, `(`, `)`, `\` and NUL are written as a backslash and two hex digits. Its example: `(cn=*\2A*)`.
    #[test]
    fn a_user_is_escaped_in_the_filter() {
        assert_eq!(ldap_escape("a*b(c)d\\e\0"), "a\\2ab\\28c\\29d\\5ce\\00");
        assert_eq!(ldap_escape("Lučić"), "Lučić", "UTF-8 may stand as it is");
    }

    #[test]
    fn an_entry_without_an_address_says_nobody() {
        let entry = |attrs: &[(&str, &str)]| SearchEntry {
            dn: "uid=ann".to_owned(),
            attrs: attrs.iter().map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()])).collect(),
            bin_attrs: HashMap::new(),
        };
        let found = of_entry(&entry(&[("MAIL", "ann@a.example"), ("cn", "Ann Ω")]), "mail", "cn").unwrap();
        assert_eq!((&*found.mail, found.name.as_deref()), ("ann@a.example", Some("Ann Ω")));
        assert_eq!(of_entry(&entry(&[("cn", "Ann")]), "mail", "cn"), None);
        assert_eq!(of_entry(&entry(&[("mail", " ")]), "mail", "cn"), None);
    }
}
