//! From the bytes of an export to records: one reader a format, all with the same outcome.
//!
//! A reader knows how its format is written and nothing of what the columns mean. Rows it cannot read come out as
//! [`Rejected`], in their place among the good ones; only an input in which nothing can be found at all is an error.
//! Columns are known before the first record, so that a map can be checked against them.
//!
//! Start at [`read`]. Does not: open files, undo compression (that is [`compression::expand`]), parse times or numbers.

pub mod column_union;
pub mod compression;
pub mod delimited;
pub mod json_lines;
pub mod kv;
pub mod lines;
pub mod raw_json;
pub mod rows;
pub mod sacct_json;
pub mod sacct_json_job;
pub mod sacct_layout;
pub mod sacct_names;
pub mod sacct_text;
#[cfg(test)]
pub(crate) mod shared_data;
#[cfg(test)]
mod tests;

use crate::attempt::Rejected;
use crate::import::record::{Columns, Record};
use std::ops::Range;

/// How an export is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// Text of `sacct --parsable` or `--parsable2`.
    Sacct,
    /// JSON of `sacct`, `squeue`, slurmrestd or Sonar.
    SacctJson,
    /// CSV of `key=value` fields.
    SacctKv,
    /// CSV with a line of column names.
    Csv,
    /// A JSON object a line.
    Jsonl,
    /// Parquet.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Sacct, Self::SacctJson, Self::SacctKv, Self::Csv, Self::Jsonl, Self::Parquet];

    /// Its name on the command line and in a map.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sacct => "sacct",
            Self::SacctJson => "sacct-json",
            Self::SacctKv => "sacct-kv",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// What a map says about how its files are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReaderOptions {
    /// What stands between two fields. None: `,` for csv and sacct-kv; for sacct what its first line shows, else `|`.
    pub delimiter: Option<String>,
    /// The columns of a file without a line of names; `-` or an empty name for one that nobody asks for.
    pub fields: Option<Vec<String>>,
}

/// What a reader makes of an input.
pub struct Reading<'a> {
    /// The columns. An empty name is a column that nobody can ask for: a second one of the same name, or `-` in `fields`.
    pub columns: Columns,
    /// The records, and the rows that are none, in the order of the input.
    pub records: Box<dyn Iterator<Item = Result<Record, Rejected>> + Send + 'a>,
    /// Steps that the reader met inside of jobs and left out. Steps with rows of their own are records.
    pub steps: u64,
}

/// Why nothing can be read from an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Nothing is in it, where a line of names should stand.
    #[error("the file is empty: its first line should name the columns, or the map should with `fields`")]
    Empty,

    /// The first line of a sacct text holds no field names.
    #[error(
        "line {line} does not name sacct's fields (JobID, State, …) but reads {text:?}: export with a header, \
         or name the columns with `fields` in the map"
    )]
    NoHeader {
        /// The first line that isn't blank.
        line: u64,
        /// Its beginning.
        text: String,
    },

    /// The line of names is no UTF-8.
    #[error("line {line}, which should name the columns, is not UTF-8: convert the file, for example with iconv")]
    HeaderNotUtf8 {
        /// Where it stands.
        line: u64,
    },

    /// The line of names opens a quote that nothing closes.
    #[error("line {line}, which should name the columns, opens a quote that is never closed")]
    HeaderQuote {
        /// Where it stands.
        line: u64,
    },

    /// A delimiter that this format can't have.
    #[error("delimiter {delimiter:?} cannot be used with {}: {why}", format.name())]
    Delimiter {
        /// As the map gives it.
        delimiter: String,
        /// The format.
        format: Format,
        /// What it may be.
        why: &'static str,
    },

    /// A list of fields that names none.
    #[error("`fields` in the map names no column: list the columns of the file in their order")]
    NoFields,

    /// A document that breaks off or goes wrong before its first job.
    #[error("line {line}, column {column}: {message}; no job was read before it")]
    Document {
        /// Where it goes wrong, counted from 1.
        line: u64,
        /// Column, counted from 1.
        column: u64,
        /// What the parser says.
        message: String,
    },

    /// A JSON document of another kind.
    #[error(
        "no jobs in this JSON: expected `jobs` (sacct, squeue, slurmrestd) or `data.attributes.slurm_jobs` (Sonar), \
         found {found}"
    )]
    NoJobs {
        /// Its keys, or what it is instead of an object.
        found: String,
    },

    /// Parquet isn't read from here.
    #[error("parquet is read by columns, not from text: this reader takes sacct, sacct-json, sacct-kv, csv and jsonl")]
    Parquet,
}

/// Reads an input of a format.
///
/// `input`: the whole of it, expanded; a byte order mark of UTF-8 at its front is passed over. Errors: where nothing can be
/// read at all; a single row that can't be comes out as [`Rejected`].
pub fn read<'a>(format: Format, input: &'a [u8], options: &ReaderOptions) -> Result<Reading<'a>, ReadError> {
    if options.fields.as_ref().is_some_and(|fields| fields.iter().all(|name| blank(name))) {
        return Err(ReadError::NoFields);
    }
    match format {
        Format::Sacct => sacct_text::read(input, options),
        Format::SacctJson => sacct_json::read(input),
        Format::SacctKv => kv::read(input, options),
        Format::Csv => delimited::read(input, options),
        Format::Jsonl => json_lines::read(input),
        Format::Parquet => Err(ReadError::Parquet),
    }
}

/// Whether a name in `fields` stands for a column that nobody asks for.
fn blank(name: &str) -> bool {
    matches!(name.trim(), "" | "-")
}

/// Column names as records are aligned with them: trimmed, `-` and later ones of a name that came before made empty.
fn column_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names
        .into_iter()
        .map(|name| {
            let name = name.trim();
            if blank(name) || !seen.insert(name.to_owned()) { String::new() } else { name.to_owned() }
        })
        .collect()
}

/// Where the text begins: behind a byte order mark of UTF-8.
pub(crate) fn text_start(input: &[u8]) -> usize {
    if input.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
}

/// The most of a row that is kept. Unit: bytes. Enough for any submit line, and a bound on what bad files do to the books.
const LONGEST_KEPT_ROW: usize = 64 * 1024;

/// A row that is no record: `range` of the input.
fn rejected(input: &[u8], range: Range<usize>, line: u64, field: &str, reason: String) -> Rejected {
    let kept = &input[range.start..range.end.min(range.start + LONGEST_KEPT_ROW)];
    let mut row = String::from_utf8_lossy(kept).into_owned();
    let mut cut = row.len().min(LONGEST_KEPT_ROW);
    while !row.is_char_boundary(cut) {
        cut -= 1;
    }
    row.truncate(cut);
    Rejected { line, row, field: field.to_owned(), reason }
}
