//! A list as columns and records, whatever it is written in.

use super::{ListError, scontrol};
use crate::attempt::Rejected;
use crate::import::map::MapFile;
use crate::import::readers::column_union::{ColumnUnion, Slots};
use crate::import::readers::lines::{Line, Lines};
use crate::import::readers::{Format, read, text_start};
use crate::import::record::{Columns, Record, RecordText};
use std::ops::Range;
use toml::{Table, Value};

/// A list, not yet understood.
pub struct Sheet {
    /// Its columns.
    pub columns: Columns,
    /// Its rows.
    pub records: Vec<Result<Record, Rejected>>,
    /// What it is written in.
    pub written: Written,
}

/// What a list is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A format with columns of any name.
    Columns(Format),
    /// TOML, whose keys are ours.
    Toml,
    /// The text of `scontrol show`.
    Scontrol,
}

impl Sheet {
    /// Reads a list of `table`s, such as `reservation`: `[[reservation]]` in TOML.
    ///
    /// The format is that of the map; where it names none, the text itself tells. Errors: nothing can be read.
    pub fn read(input: &[u8], table: &'static str, map: &MapFile) -> Result<Self, ListError> {
        let written = match map.format {
            Some(format) => Written::Columns(format),
            None => guess(input, table),
        };
        let (columns, records) = match written {
            Written::Columns(format) => {
                let reading = read(format, input, &map.reader_options())?;
                (reading.columns, reading.records.collect())
            }
            Written::Toml => toml_tables(input, table)?,
            Written::Scontrol => scontrol::records(input),
        };
        Ok(Self { columns, records, written })
    }
}

/// What a text is written in, by its first line, or by a line that begins one of the tables.
fn guess(input: &[u8], table: &str) -> Written {
    let mut lines = Lines::new(input, text_start(input));
    let Some(first) = lines.next_written() else { return Written::Columns(Format::Csv) };
    let text = lines.text(&first);
    if scontrol::begins_record(text) {
        return Written::Scontrol;
    }
    if text.trim_ascii_start().starts_with(b"{") {
        return Written::Columns(Format::Jsonl);
    }
    let is_table = |line: Line| is_head(&input[line.range], table);
    if Lines::new(input, text_start(input)).any(is_table) { Written::Toml } else { Written::Columns(Format::Csv) }
}

/// Whether a line is `[[table]]`.
fn is_head(line: &[u8], table: &str) -> bool {
    let inner = line.trim_ascii().strip_prefix(b"[[").and_then(|rest| {
        let end = rest.windows(2).position(|pair| pair == b"]]")?;
        Some(rest[..end].trim_ascii())
    });
    inner == Some(table.as_bytes())
}

type Rows = (Columns, Vec<Result<Record, Rejected>>);

/// The tables of that name. Line and text of each are those from its head to the next.
fn toml_tables(input: &[u8], table: &'static str) -> Result<Rows, ListError> {
    let text = std::str::from_utf8(&input[text_start(input)..]).map_err(|error| ListError::Toml(error.to_string()))?;
    let document: Table = text.parse().map_err(|error: toml::de::Error| ListError::Toml(error.to_string()))?;
    let keys: Vec<String> = document.keys().filter(|key| *key != table).cloned().collect();
    if !keys.is_empty() {
        return Err(ListError::Keys { table, keys });
    }
    let tables: Vec<Vec<(String, String)>> = match document.get(table) {
        Some(Value::Array(tables)) => tables.iter().map(|table| cells(table, "")).collect(),
        _ => Vec::new(),
    };
    let mut union = ColumnUnion::default();
    for (key, _) in tables.iter().flatten() {
        union.add(key, 0);
    }
    let places = places(input, table);
    let records = tables.iter().enumerate().map(|(i, cells)| {
        let mut slots = Slots::default();
        for (key, value) in cells {
            if let Some(place) = union.place(key, 0) {
                slots.put(place, value);
            }
        }
        let (line, range) = places.get(i).cloned().unwrap_or((1, 0..input.len()));
        Ok(Record { line, text: RecordText::Span(range), values: slots.record(union.len()) })
    });
    Ok((union.columns(), records.collect()))
}

/// Line and bytes of each table.
fn places(input: &[u8], table: &str) -> Vec<(u64, Range<usize>)> {
    let heads: Vec<Line> =
        Lines::new(input, text_start(input)).filter(|line| is_head(&input[line.range.clone()], table)).collect();
    let starts = heads.iter().map(|line| line.range.start);
    let ends = starts.clone().skip(1).chain(std::iter::once(input.len()));
    heads.iter().zip(starts.zip(ends)).map(|(line, (start, end))| (line.number, start..end)).collect()
}

/// Keys and values of a table as a sheet has them: lists joined by `,`, tables inside as `outer.inner`.
fn cells(value: &Value, outer: &str) -> Vec<(String, String)> {
    let Value::Table(table) = value else { return Vec::new() };
    let cell = |(key, value): (&String, &Value)| {
        let key = if outer.is_empty() { key.clone() } else { format!("{outer}.{key}") };
        match value {
            Value::Table(_) => cells(value, &key),
            Value::Array(all) => vec![(key, all.iter().map(scalar).collect::<Vec<_>>().join(","))],
            _ => vec![(key, scalar(value))],
        }
    };
    table.iter().flat_map(cell).collect()
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
