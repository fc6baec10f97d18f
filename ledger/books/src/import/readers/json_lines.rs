//! JSON lines: an object a line, flattened to columns.

use super::column_union::{ColumnUnion, MOST_COLUMNS, Slots};
use super::lines::{Line, Lines};
use super::raw_json::{self, Entry};
use super::{ReadError, Reading, rejected, text_start};
use crate::import::record::{Record, RecordText};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// How deep objects may stand in one another.
const DEEPEST: usize = 32;

/// Reads one JSON object a line.
///
/// An object inside becomes columns `outer.inner`; a list of plain values is joined by `,`, any other list stays JSON; numbers
/// stay as they are written, to the last digit; null and an empty text are absent. The columns are all names, in the order in
/// which they first appear: the input is read twice. Of two values with one name in a line the first counts. Errors: none so
/// far; a line that is no object is rejected.
pub fn read(input: &[u8]) -> Result<Reading<'_>, ReadError> {
    let mut union = ColumnUnion::default();
    let mut lines = Lines::new(input, text_start(input));
    while let Some(line) = lines.next_written() {
        let Ok(values) = flatten(lines.text(&line)) else { continue };
        let mut guess = 0;
        for (name, _) in values {
            guess = union.add(&name, guess).map_or(guess, |place| place + 1);
        }
    }
    let columns = union.columns();

    let mut lines = Lines::new(input, text_start(input));
    let records = std::iter::from_fn(move || {
        let line = lines.next_written()?;
        Some(
            record(&line, lines.text(&line), &union)
                .map_err(|reason| rejected(input, line.range, line.number, "", reason)),
        )
    });
    Ok(Reading { columns, records: Box::new(records), steps: 0 })
}

fn record(line: &Line, text: &[u8], union: &ColumnUnion) -> Result<Record, String> {
    let mut slots = Slots::default();
    let mut guess = 0;
    for (name, value) in flatten(text)? {
        let place = union.place(&name, guess);
        let place =
            place.ok_or_else(|| format!("{name:.60} is one name more than the {MOST_COLUMNS} that are read"))?;
        slots.put(place, value);
        guess = place + 1;
    }
    let values = slots.record(union.len());
    Ok(Record { line: line.number, text: RecordText::Span(line.range.clone()), values })
}

type Flat<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Names and values of a line, absent values left out. Errors: what is wrong with it, for people.
fn flatten(text: &[u8]) -> Result<Flat<'_>, String> {
    let text = std::str::from_utf8(text).map_err(|error| format!("byte {} is not UTF-8", error.valid_up_to() + 1))?;
    let value: &RawValue = serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?;
    let entries = raw_json::object(value).ok_or("not a JSON object")?;
    let mut flat = Vec::with_capacity(entries.len());
    flatten_into(&mut flat, None, entries, 1)?;
    Ok(flat)
}

fn flatten_into<'a>(
    flat: &mut Flat<'a>,
    outer: Option<&str>,
    entries: Vec<Entry<'a>>,
    depth: usize,
) -> Result<(), String> {
    for (name, value) in entries {
        let name = match outer {
            None => name,
            Some(outer) => Cow::Owned(format!("{outer}.{name}")),
        };
        if let Some(inner) = raw_json::object(value) {
            if depth == DEEPEST {
                return Err(format!("objects stand more than {DEEPEST} deep"));
            }
            flatten_into(flat, Some(&name), inner, depth + 1)?;
        } else if let Some(text) = raw_json::text(value) {
            flat.push((name, text));
        }
    }
    Ok(())
}
