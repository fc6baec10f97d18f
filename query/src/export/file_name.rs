//! What the file of a statement is called: safe on every file system, and never the same for two organisations.

use cardhour_books::statement::{PLATFORM, Statement};

/// Letters of an organisation's name in a file's: a file system takes 255 bytes.
const LETTERS: usize = 80;
/// Hex digits of the hash behind a name that can't stand as it is.
const HASH_DIGITS: usize = 16;

/// `statement-2026-03-acme.xlsx`.
///
/// A name of small letters, digits, `-` and `_` stands as it is. Of any other what can stand does, behind a point the hash of the whole name: so names that
/// differ in case, in signs or after the eightieth letter are different files, also where case doesn't count.
pub fn file_name(statement: &Statement, extension: &str) -> String {
    let name = statement.org.as_deref().map_or_else(|| PLATFORM.to_owned(), safe);
    format!("statement-{}-{name}.{extension}", statement.period)
}

fn safe(org: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !org.is_empty() && org.len() <= LETTERS && org.chars().all(is_plain) && org != PLATFORM {
        return org.to_owned();
    }
    let kept: String =
        org.to_ascii_lowercase().chars().map(|c| if is_plain(c) { c } else { '-' }).take(LETTERS).collect();
    format!("{kept}.{}", &blake3::hash(org.as_bytes()).to_hex()[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_plain_name_stands_as_it_is() {
        assert_eq!(safe("harbor-institute_2"), "harbor-institute_2");
    }

    #[test]
    fn names_that_a_file_system_would_take_for_one_are_several_files() {
        let long = "a".repeat(300);
        let names = [
            "acme",
            "Acme",
            "ACME",
            "acme ",
            "ac/me",
            "ac\\me",
            "..",
            ".",
            "",
            "../../etc/passwd",
            "卡时",
            "时卡",
            "con:",
            "a\0b",
            "platform",
            &long,
            &long[1..],
            "acme.0123456789abcdef",
        ];
        let files: BTreeSet<String> = names.iter().map(|name| safe(name).to_lowercase()).collect();
        assert_eq!(files.len(), names.len(), "{files:?}");
        for file in &files {
            assert!(file.len() <= 100, "{file}");
            assert!(file.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{file}");
            assert_ne!(file, PLATFORM);
        }
    }
}
