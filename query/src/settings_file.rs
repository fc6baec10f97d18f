//! The text of a settings file: a price book, a billing policy, budgets.
//!
//! Start at [`read`]. Does not: know what it says.

use crate::error::Error;
use std::path::Path;

/// The text of a file; none where there is no such file. Errors: it can't be read, or isn't UTF-8, which is said with the line.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::File { doing: "read", path: path.to_owned(), source }),
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Error::NotUtf8 { path: path.to_owned(), line }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ü is FC in Latin-1, which no UTF-8 begins a character with.
    #[test]
    fn a_file_that_is_not_utf8_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("billing.toml");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, b"mode = \"rate\"\n# f\xfcr alle\n").unwrap();
        let error = read(&path).unwrap_err();
        assert!(error.to_string().ends_with("billing.toml, line 2: is not UTF-8: save it in that encoding"), "{error}");
        std::fs::write(&path, "# für alle\n").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("# für alle\n"));
    }
}
