//! Texts that many rows share, held once.

use cardhour_domain::Name;
use std::borrow::Cow;
use std::collections::HashSet;

/// The most texts that are remembered; later new ones stand alone. A bound on what a hostile file can fill.
const MOST_NAMES: usize = 200_000;

/// The longest text that is kept. Unit: bytes. Longer ones are comments, or no names at all.
pub const LONGEST_NAME: usize = 1024;

/// The texts seen so far.
#[derive(Debug, Default)]
pub struct Names {
    seen: HashSet<Name>,
}

impl Names {
    /// The shared copy of a text, made printable by [`printable`].
    pub fn intern(&mut self, text: &str) -> Name {
        if let Some(name) = self.seen.get(text) {
            return name.clone();
        }
        let text = printable(text);
        if let Some(name) = self.seen.get(&*text) {
            return name.clone();
        }
        let name: Name = Name::from(&*text);
        if self.seen.len() < MOST_NAMES {
            self.seen.insert(name.clone());
        }
        name
    }
}

/// A text as tables and terminals can have it: control characters replaced, cut at [`LONGEST_NAME`] bytes.
pub fn printable(text: &str) -> Cow<'_, str> {
    let mut end = text.len().min(LONGEST_NAME);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = &text[..end];
    if !kept.contains(char::is_control) {
        return Cow::Borrowed(kept);
    }
    let replaced = kept.chars().map(|c| match c {
        '\t' | '\n' | '\r' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    Cow::Owned(replaced.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_held_once_and_printable() {
        let mut names = Names::default();
        assert!(Name::ptr_eq(&names.intern("aàb"), &names.intern("aàb")));
        assert_eq!(&*names.intern("a\0b\tc"), "a\u{fffd}b c");
        assert_eq!(names.intern(&"é".repeat(1000)).len(), 1024);
    }
}
