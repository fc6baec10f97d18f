//! CSV of `key=value` fields without a line of names, as Sonar and Jobanalyzer keep sacct's output.

use super::column_union::{ColumnUnion, MOST_COLUMNS, Slots};
use super::delimited::delimiter_byte;
use super::rows::{Row, Rows};
use super::{Format, ReadError, ReaderOptions, Reading, rejected, text_start};
use crate::attempt::Rejected;
use crate::import::record::{Record, RecordText};

/// Reads `key=value` fields: the first `=` splits, so that a value may hold more of them; in quotes it may hold the delimiter.
///
/// The columns are all keys, in the order in which they first appear: the input is read twice. Of two fields with one key in
/// a row the first counts. Errors: a delimiter of more than one byte.
pub fn read<'a>(input: &'a [u8], options: &ReaderOptions) -> Result<Reading<'a>, ReadError> {
    let delimiter = delimiter_byte(options, Format::SacctKv)?;
    let start = text_start(input);
    let union = union(Rows::new(input, start, delimiter));
    let columns = union.columns();

    let mut rows = Rows::new(input, start, delimiter);
    let records = std::iter::from_fn(move || {
        Some(match rows.read(&[])? {
            Ok(row) => record(row, &union, input),
            Err(rejected) => Err(rejected),
        })
    });
    Ok(Reading { columns, records: Box::new(records), steps: 0 })
}

/// The keys of all rows that have a key in each field.
fn union(mut rows: Rows) -> ColumnUnion {
    let mut union = ColumnUnion::default();
    while let Some(row) = rows.read(&[]) {
        let Ok(row) = row else { continue };
        if row.values.iter().all(|field| split(field).is_some()) {
            let mut guess = 0;
            for (key, _) in row.values.iter().filter_map(split) {
                guess = union.add(key, guess).map_or(guess, |place| place + 1);
            }
        }
    }
    union
}

/// Key and value of a field; none without a key.
fn split(field: &str) -> Option<(&str, &str)> {
    field.split_once('=').map(|(key, value)| (key.trim(), value)).filter(|(key, _)| !key.is_empty())
}

/// Puts a row's values in the places of their columns.
fn record(row: Row, union: &ColumnUnion, input: &[u8]) -> Result<Record, Rejected> {
    let mut slots = Slots::default();
    let mut guess = 0;
    for (i, field) in row.values.iter().enumerate() {
        let fault = match split(field) {
            None => format!("field {} is {:?}, not key=value", i + 1, shorten(field)),
            Some((key, value)) => match union.place(key, guess) {
                Some(place) => {
                    slots.put(place, value);
                    guess = place + 1;
                    continue;
                }
                None => format!("key {:?} is one more than the {MOST_COLUMNS} that are read", shorten(key)),
            },
        };
        return Err(rejected(input, row.range, row.line, "", fault));
    }
    Ok(Record { line: row.line, text: RecordText::Span(row.range), values: slots.record(union.len()) })
}

/// Enough of a text to know it by.
fn shorten(text: &str) -> String {
    text.chars().take(60).collect()
}
