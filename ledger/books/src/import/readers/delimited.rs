//! CSV: a line of column names (or a given list of them), then a row a record.

use super::rows::{Row, Rows};
use super::{Format, ReadError, ReaderOptions, Reading, column_names, rejected, text_start};
use crate::attempt::Rejected;
use crate::import::record::{Columns, Record, RecordText};

/// Reads CSV of any delimiter of one byte.
///
/// With `fields` the file has no line of names; one that repeats them all the same is passed over, wherever it stands.
/// A row with fewer or more fields than columns is rejected. Errors: no line of names, or a delimiter of more than one byte.
pub fn read<'a>(input: &'a [u8], options: &ReaderOptions) -> Result<Reading<'a>, ReadError> {
    let delimiter = delimiter_byte(options, Format::Csv)?;
    let mut rows = Rows::new(input, text_start(input), delimiter);
    let header: Vec<String> = match &options.fields {
        Some(fields) => fields.iter().map(|name| name.trim().to_owned()).collect(),
        None => header(&mut rows)?,
    };
    let names = column_names(header.iter().map(String::as_str));
    let columns = Columns(names.clone());
    let records = std::iter::from_fn(move || {
        loop {
            return Some(match rows.read(&names)? {
                Ok(row) if repeats(&row, &header) => continue,
                Ok(row) => record(row, names.len(), input),
                Err(rejected) => Err(rejected),
            });
        }
    });
    Ok(Reading { columns, records: Box::new(records), steps: 0 })
}

/// The one byte between two fields; `\t` may be written out. Errors: a delimiter that CSV can't have.
pub(super) fn delimiter_byte(options: &ReaderOptions, format: Format) -> Result<u8, ReadError> {
    let refuse = |delimiter: &str, why| Err(ReadError::Delimiter { delimiter: delimiter.to_owned(), format, why });
    match options.delimiter.as_deref() {
        None => Ok(b','),
        Some("\\t") => Ok(b'\t'),
        Some(delimiter @ ("\"" | "\r" | "\n")) => refuse(delimiter, "quotes and line ends have a meaning of their own"),
        Some(delimiter) => match delimiter.as_bytes() {
            [byte] => Ok(*byte),
            _ => refuse(delimiter, "it must be one ASCII character"),
        },
    }
}

fn header(rows: &mut Rows) -> Result<Vec<String>, ReadError> {
    match rows.read(&[]) {
        None => Err(ReadError::Empty),
        Some(Ok(row)) => Ok(row.values.iter().map(|name| name.trim().to_owned()).collect()),
        Some(Err(row)) if row.reason.contains("UTF-8") => Err(ReadError::HeaderNotUtf8 { line: row.line }),
        Some(Err(row)) => Err(ReadError::HeaderQuote { line: row.line }),
    }
}

/// Whether a row is the line of names once more, as files put end to end have it.
fn repeats(row: &Row, header: &[String]) -> bool {
    row.values.len() == header.len()
        && row.values.iter().zip(header).all(|(value, name)| name == "-" || value.trim().eq_ignore_ascii_case(name))
}

fn record(row: Row, expected: usize, input: &[u8]) -> Result<Record, Rejected> {
    let found = row.values.len();
    if found == expected {
        return Ok(Record { line: row.line, text: RecordText::Span(row.range), values: row.values });
    }
    let mut reason = format!("{found} fields where {expected} are expected");
    if found < expected && row.last {
        reason.push_str("; the input ends here and may be cut off");
    }
    Err(rejected(input, row.range, row.line, "", reason))
}
