//! The text of `scontrol show node` and `scontrol show reservation`, one record over several lines or (`-o`) on one.

use crate::attempt::Rejected;
use crate::import::readers::column_union::{ColumnUnion, Slots};
use crate::import::readers::lines::Lines;
use crate::import::readers::text_start;
use crate::import::record::{Columns, Record, RecordText};
use crate::import::time::is_absent;
use std::ops::Range;

/// Whether a line begins a record: `ReservationName=` or `NodeName=` at its very start. Further in it is a part of one.
pub fn begins_record(line: &[u8]) -> bool {
    line.starts_with(b"ReservationName=") || line.starts_with(b"NodeName=")
}

/// The records of a text. The columns are Slurm's keys; `(null)`, `N/A` and the like are absent.
pub fn records(input: &[u8]) -> (Columns, Vec<Result<Record, Rejected>>) {
    let blocks = blocks(input);
    let text = |range: &Range<usize>| String::from_utf8_lossy(&input[range.clone()]);
    let mut union = ColumnUnion::default();
    for (_, range) in &blocks {
        for (key, _) in pairs(&text(range)) {
            union.add(&key, 0);
        }
    }
    let record = |(line, range): (u64, Range<usize>)| {
        let mut slots = Slots::default();
        for (key, value) in pairs(&text(&range)) {
            if let Some(place) = union.place(&key, 0) {
                slots.put(place, if is_absent(&value) { String::new() } else { value });
            }
        }
        Ok(Record { line, text: RecordText::Span(range), values: slots.record(union.len()) })
    };
    let records = blocks.into_iter().map(record).collect();
    (union.columns(), records)
}

/// First line and bytes of each record.
fn blocks(input: &[u8]) -> Vec<(u64, Range<usize>)> {
    let mut blocks: Vec<(u64, Range<usize>)> = Vec::new();
    for line in Lines::new(input, text_start(input)) {
        let text = &input[line.range.clone()];
        if begins_record(text) {
            blocks.push((line.number, line.range));
        } else if let Some((_, block)) = blocks.last_mut()
            && !text.trim_ascii().is_empty()
        {
            block.end = line.range.end;
        }
    }
    blocks
}

/// `Key=value` pairs; words without `=` go on with the value before, as those of a reason do.
fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some((key, value)) if key.starts_with(|c: char| c.is_ascii_uppercase()) => {
                pairs.push((key.to_owned(), value.to_owned()));
            }
            _ => {
                if let Some((_, value)) = pairs.last_mut() {
                    value.push(' ');
                    value.push_str(word);
                }
            }
        }
    }
    pairs
}
