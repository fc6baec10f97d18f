//! Who asks.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// An access key. What is secret of it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Its public part.
    pub access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) session_token: Option<String>,
}

/// Where credentials are from. They are read anew for each run, so that new ones are used without a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialsSource {
    /// A file as Amazon's tools write it; none: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` of the environment.
    pub file: Option<PathBuf>,
}

/// Why there are none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The file can't be read.
    #[error("cannot read the bucket's credentials in {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Others can read it.
    #[error("others can read the bucket's credentials in {}: chmod 600 it", path.display())]
    Open {
        /// Which.
        path: PathBuf,
    },
    /// It isn't what it should be.
    #[error("the bucket's credentials in {} are no use: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong; nothing of what is in it.
        reason: String,
    },
    /// Nothing in the environment, and no file.
    #[error(
        "nobody says who asks the bucket: {variable} isn't set, or isn't a word; name a credentials_file, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    Environment {
        /// Which is missing.
        variable: &'static str,
    },
}

impl Credentials {
    /// From their parts.
    pub fn new(access_key_id: String, secret_access_key: String, session_token: Option<String>) -> Self {
        Self { access_key_id, secret_access_key, session_token }
    }
}

impl CredentialsSource {
    /// Reads them; `variable` gives the environment's. Errors: there are none, or others can read the file.
    pub fn load(&self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Credentials, CredentialsError> {
        match &self.file {
            Some(path) => of_file(path.clone()),
            None => of_environment(variable),
        }
    }
}

fn of_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Credentials, CredentialsError> {
    let word = |name: &'static str| {
        let value = variable(name).and_then(|value| value.into_string().ok());
        value.filter(|value| is_word(value)).ok_or(CredentialsError::Environment { variable: name })
    };
    Ok(Credentials {
        access_key_id: word("AWS_ACCESS_KEY_ID")?,
        secret_access_key: word("AWS_SECRET_ACCESS_KEY")?,
        session_token: word("AWS_SESSION_TOKEN").ok(),
    })
}

fn of_file(path: PathBuf) -> Result<Credentials, CredentialsError> {
    let unreadable = |source| CredentialsError::Read { path: path.clone(), source };
    let metadata = std::fs::metadata(&path).map_err(unreadable)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(CredentialsError::Open { path });
    }
    let text = std::fs::read_to_string(&path).map_err(unreadable)?;
    parse(&text).map_err(|reason| CredentialsError::File { path, reason })
}

/// Lines `key = value`, one section at most.
fn parse(text: &str) -> Result<Credentials, String> {
    let [mut id, mut secret, mut token] = [const { None }; 3];
    let mut sections = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            sections += 1;
            if sections > 1 {
                return Err(format!("line {number}: a second section; which is meant isn't said"));
            }
            continue;
        }
        let (key, value) = line.split_once('=').ok_or_else(|| format!("line {number} is not key = value"))?;
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let place = match key.as_str() {
            "aws_access_key_id" => &mut id,
            "aws_secret_access_key" => &mut secret,
            "aws_session_token" => &mut token,
            _ => continue,
        };
        if !is_word(value) {
            return Err(format!("line {number}: {key} is empty, or more than a word"));
        }
        *place = Some(value.to_owned());
    }
    let missing = |key| format!("no {key} in it");
    Ok(Credentials {
        access_key_id: id.ok_or_else(|| missing("aws_access_key_id"))?,
        secret_access_key: secret.ok_or_else(|| missing("aws_secret_access_key"))?,
        session_token: token,
    })
}

/// Goes into a header, so nothing but what can be seen.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    #[test]
    fn a_file_of_amazons_tools_is_read_if_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        let source = CredentialsSource { file: Some(path.clone()) };
        let load = || source.load(|_| None);
        assert!(matches!(load(), Err(CredentialsError::Read { .. })));
        fs::write(&path, "[default]\n# of gpu01\naws_access_key_id = AKIA\nAWS_SECRET_ACCESS_KEY=a=b/c\nregion = x\n")
            .unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(load().unwrap_err().to_string().ends_with("credentials: chmod 600 it"));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let loaded = load().unwrap();
        assert_eq!(loaded, Credentials::new("AKIA".into(), "a=b/c".into(), None));
        assert!(!format!("{loaded:?}").contains("a=b/c"));
    }

    #[test]
    fn what_is_no_file_of_credentials_is_told_without_what_is_in_it() {
        for (text, expected) in [
            ("", "no aws_access_key_id in it"),
            ("aws_access_key_id = A", "no aws_secret_access_key in it"),
            ("s3cret", "line 1 is not key = value"),
            ("aws_secret_access_key = s3 cret", "line 1: aws_secret_access_key is empty, or more than a word"),
            ("[a]\n[b]", "line 2: a second section; which is meant isn't said"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn the_environment_says_who_asks_where_no_file_does() {
        let load = |set: &'static [(&str, &str)]| {
            let variable = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            CredentialsSource::default().load(variable)
        };
        let all = [("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "s"), ("AWS_SESSION_TOKEN", "t")];
        let loaded = load(Box::leak(Box::new(all))).unwrap();
        assert_eq!(loaded, Credentials::new("A".into(), "s".into(), Some("t".into())));
        let error = load(&[("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "")]).unwrap_err().to_string();
        assert!(error.contains("AWS_SECRET_ACCESS_KEY isn't set"), "{error}");
    }
}
