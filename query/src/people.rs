//! Who a user is: the address that mail goes to, and a name.
//!
//! ```text
//! user ─► file of people ─► directory (LDAP) ─► template ─► Person
//!           the first that knows the user
//! ```
//!
//! Start at [`People::find`]. Does not: send anything, guess: a directory that can't be asked is an error, and not the template's turn.

mod directory;

pub use directory::DirectoryError;

use crate::config::PeopleConfig;
use directory::Directory;
use lettre::Address;
use lettre::message::Mailbox;
use std::path::PathBuf;

/// Where users are looked up.
#[derive(Clone, Debug)]
pub struct People {
    config: PeopleConfig,
    directory: Option<Directory>,
}

/// Why nobody can say who a user is.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// The file of people can't be read.
    #[error("{}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is said of a user is no address.
    #[error("{text:?} of user {user:?} is no address: {reason}")]
    Address {
        /// As it is written.
        text: String,
        /// Of whom.
        user: String,
        /// Why.
        reason: String,
    },
    /// The directory doesn't answer, or not in a way that says it.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
}

impl People {
    /// As the config says.
    pub fn new(config: &PeopleConfig) -> Self {
        Self { config: config.clone(), directory: config.ldap.as_ref().map(Directory::new) }
    }

    /// Who a user is; none where nobody says. Errors: the file can't be read, the directory can't be asked, or an address is none.
    pub async fn find(&self, user: &str) -> Result<Option<Mailbox>, PeopleError> {
        if let Some(text) = self.in_file(user)? {
            return mailbox(user, &text, None).map(Some);
        }
        if let Some(directory) = &self.directory
            && let Some(found) = directory.find(user).await?
        {
            return mailbox(user, &found.mail, found.name.as_deref()).map(Some);
        }
        let of_template = self.config.mail.as_ref().map(|template| template.replace("{user}", user));
        of_template.map(|text| mailbox(user, &text, None)).transpose()
    }

    /// Read anew each time, so that people can come and go.
    fn in_file(&self, user: &str) -> Result<Option<String>, PeopleError> {
        let Some(path) = &self.config.file else { return Ok(None) };
        let text = std::fs::read_to_string(path).map_err(|source| PeopleError::File { path: path.clone(), source })?;
        Ok(in_lines(&text, user))
    }
}

fn mailbox(user: &str, text: &str, name: Option<&str>) -> Result<Mailbox, PeopleError> {
    let wrong = |reason: lettre::address::AddressError| PeopleError::Address {
        text: text.to_owned(),
        user: user.to_owned(),
        reason: reason.to_string(),
    };
    let address = text.parse::<Address>().map_err(wrong)?;
    Ok(Mailbox::new(name.map(one_line).filter(|name| !name.is_empty()), address))
}

/// A text without line ends and other control characters, which have no place in a header: a blank for each run of them.
pub fn one_line(text: &str) -> String {
    text.split(char::is_control).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The address of a user in a file of lines `USER,ADDRESS`; lines that begin with # say nothing.
fn in_lines(text: &str, user: &str) -> Option<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mut people = lines.filter_map(|line| line.split_once(','));
    people.find(|(name, _)| name.trim() == user).map(|(_, address)| address.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(people: &People, user: &str) -> Result<Option<Mailbox>, PeopleError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(people.find(user))
    }

    #[test]
    fn a_user_is_found_by_file_or_by_template() {
        assert_eq!(in_lines("# people\nann, ann@a.example\nbob,bob@b.example\n", "bob").unwrap(), "bob@b.example");
        assert_eq!(in_lines("ann,ann@a.example", "an"), None);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("people.csv");
        std::fs::write(&file, "ann,ann@a.example\n").unwrap();
        let template = Some("{user}@pool.example".to_owned());
        let people = People::new(&PeopleConfig { mail: template, file: Some(file.clone()), ldap: None });
        assert_eq!(found(&people, "ann").unwrap().unwrap().to_string(), "ann@a.example");
        assert_eq!(found(&people, "bob").unwrap().unwrap().to_string(), "bob@pool.example");
        assert_eq!(found(&People::new(&PeopleConfig::default()), "bob").unwrap(), None);
        std::fs::remove_file(file).unwrap();
        assert!(matches!(found(&people, "bob"), Err(PeopleError::File { .. })), "what can't be read says nothing");
    }

    /// A name comes from whoever keeps the directory, and a user from whoever submits jobs.
    #[test]
    fn a_user_or_name_with_a_line_end_makes_no_header() {
        let evil = mailbox("ann", "ann@a.example", Some("Ann\r\nBcc: all@pool.example")).unwrap();
        assert_eq!(evil.name.as_deref(), Some("Ann Bcc: all@pool.example"));
        let people =
            People::new(&PeopleConfig { mail: Some("{user}@pool.example".to_owned()), ..PeopleConfig::default() });
        for user in ["ann\r\nBcc: all@pool.example", "ann@other.example,bob", "ann\n"] {
            assert!(matches!(found(&people, user), Err(PeopleError::Address { .. })), "{user:?}");
        }
    }
}
