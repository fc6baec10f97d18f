//! One row of an export as named text values: what every reader gives and every mapping takes.

use std::borrow::Cow;
use std::ops::Range;

/// The columns of an export, in the order of each record's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(pub Vec<String>);

/// One row: a job, a step, a node.
///
/// A value that the source leaves out, and an empty one, are the same: absent.
#[derive(Clone, Debug)]
pub struct Record {
    /// The line it begins on, counted from 1; the row number for formats without lines.
    pub line: u64,
    /// How it stood in the file, for `quarantine`.
    pub text: RecordText,
    /// Its values in the order of [`Columns`].
    pub values: csv::StringRecord,
}

/// How a record stood in its file: without a copy where the file has it in one piece.
#[derive(Clone, Debug)]
pub enum RecordText {
    /// These bytes of the input.
    Span(Range<usize>),
    /// This text.
    Owned(String),
}

impl Record {
    /// The value in a column; none where it is absent or empty. White space around it is cut off.
    pub fn get(&self, column: usize) -> Option<&str> {
        self.values.get(column).map(str::trim).filter(|value| !value.is_empty())
    }
}

impl RecordText {
    /// The text, bytes that are no UTF-8 replaced.
    pub fn resolve<'a>(&'a self, input: &'a [u8]) -> Cow<'a, str> {
        match self {
            Self::Span(range) => String::from_utf8_lossy(&input[range.clone()]),
            Self::Owned(text) => Cow::Borrowed(text),
        }
    }
}
