//! The secret of this machine's service.
//!
//! Made at first start: 32 random bytes in hexadecimal, in a file that only its owner can read (mode 0600). Whoever has
//! it sees everything, as does whoever can read the ledger's folder, which is why that is 0700.

use crate::error::Error;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// 64 hexadecimal digits, compared in constant time.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one. Errors: no random bytes.
    pub fn random() -> Result<Self, Error> {
        Ok(Self(random_hex::<32>()?))
    }

    /// The one in the file, or a new one put there. Errors: the file can't be read or made, others can read it, or it holds
    /// something else.
    pub fn load_or_make(path: &Path) -> Result<Self, Error> {
        let file = |doing| move |source| Error::File { doing, path: path.to_owned(), source };
        match fs::read_to_string(path) {
            Ok(text) => {
                let mode = fs::metadata(path).map_err(file("read"))?.permissions().mode();
                Self::checked(text.trim(), mode, path)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = path.parent() {
                    let mut builder = fs::DirBuilder::new();
                    builder.recursive(true).mode(0o700).create(folder).map_err(file("make the folder of"))?;
                }
                let token = Self::random()?;
                let written = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
                match written.and_then(|mut file| writeln!(file, "{}", token.0)) {
                    Ok(()) => Ok(token),
                    // Another start was faster: its token is the one.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::load_or_make(path),
                    Err(source) => Err(file("write")(source)),
                }
            }
            Err(source) => Err(file("read")(source)),
        }
    }

    fn checked(text: &str, mode: u32, path: &Path) -> Result<Self, Error> {
        let fault = |fault| Error::Token { path: path.to_owned(), fault };
        if mode & 0o077 != 0 {
            return Err(fault("can be read by others: chmod 600 it, or remove it and a new one is made"));
        }
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(fault("does not hold 64 hexadecimal digits: remove it and a new one is made"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Its digits, to print once for whoever started the service.
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// What a browser keeps instead of it: made from it, and of no use as it.
    pub fn cookie(&self) -> String {
        blake3::derive_key("cardhour 2026 browser session", self.0.as_bytes())
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect()
    }
}

/// Whether two secrets are one, in a time that doesn't tell where they differ.
pub fn same(left: &str, right: &str) -> bool {
    // The comparison of blake3::Hash takes constant time, and hashing hides the length.
    blake3::hash(left.as_bytes()) == blake3::hash(right.as_bytes())
}

/// `N` random bytes in hexadecimal. Errors: the system gave none.
pub fn random_hex<const N: usize>() -> Result<String, Error> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("books/token");
        let made = Token::load_or_make(&path).unwrap();
        assert_eq!(Token::load_or_make(&path).unwrap().secret(), made.secret());
        assert_eq!(made.secret().len(), 64);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_ne!(Token::random().unwrap().secret(), made.secret());
        assert_ne!(made.cookie(), made.secret());
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        Token::load_or_make(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Token::load_or_make(&path), Err(Error::Token { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "letmein\n").unwrap();
        assert!(matches!(Token::load_or_make(&path), Err(Error::Token { .. })));
    }

    #[test]
    fn secrets_are_one_only_when_every_digit_is() {
        assert!(same("abc", "abc"));
        for other in ["", "abd", "abcd", "ab"] {
            assert!(!same("abc", other));
        }
    }
}
