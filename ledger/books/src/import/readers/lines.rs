//! The lines of a text, with their numbers.

use std::ops::Range;

/// A place in a text from which lines can be taken; a copy of it is a bookmark.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    input: &'a [u8],
    at: usize,
    line: u64,
}

/// A line: its number, counted from 1, and where it stands without its line end (`\n` or `\r\n`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number.
    pub number: u64,
    /// Its bytes.
    pub range: Range<usize>,
}

impl<'a> Lines<'a> {
    /// The lines of `input` from `at` on, which is on line 1.
    pub fn new(input: &'a [u8], at: usize) -> Self {
        Self { input, at, line: 1 }
    }

    /// What stands on a line.
    pub fn text(&self, line: &Line) -> &'a [u8] {
        &self.input[line.range.clone()]
    }

    /// The next line that has more than white space on it.
    pub fn next_written(&mut self) -> Option<Line> {
        let input = self.input;
        self.find(|line| !input[line.range.clone()].trim_ascii().is_empty())
    }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let start = self.at;
        let rest = self.input.get(start..).filter(|rest| !rest.is_empty())?;
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let number = self.line;
        self.at = start + length + 1;
        self.line += 1;
        let end = start + rest[..length].strip_suffix(b"\r").map_or(length, <[u8]>::len);
        Some(Line { number, range: start..end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_cut_before_either_line_end() {
        let input = b"a\r\n\n b\nlast";
        let all: Vec<_> = Lines::new(input, 0).map(|line| (line.number, &input[line.range])).collect();
        assert_eq!(all, [(1, &b"a"[..]), (2, b""), (3, b" b"), (4, b"last")]);
        let mut lines = Lines::new(input, 0);
        lines.next();
        assert_eq!(lines.next_written().map(|line| line.number), Some(3));
        assert_eq!(Lines::new(b"", 0).next(), None);
    }
}
