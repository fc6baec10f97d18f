//! The rows of a CSV, with their lines and where they stand.

use super::rejected;
use crate::attempt::Rejected;
use std::ops::Range;

/// Rows of a CSV of any delimiter: fields may stand in double quotes, a quote inside is doubled, blank lines are passed over.
pub struct Rows<'a> {
    input: &'a [u8],
    delimiter: u8,
    reader: csv::Reader<&'a [u8]>,
    /// Where in the input the reader began.
    base: usize,
    /// Lines are counted up to here…
    counted: usize,
    /// …and this is the number of the line there.
    line: u64,
    /// Size of the row before, the best guess at the size of the next.
    bytes: usize,
    fields: usize,
}

/// A row: one line, or several where a quoted value has line ends inside.
pub struct Row {
    /// The line it begins on, counted from 1.
    pub line: u64,
    /// Its bytes, without the line end.
    pub range: Range<usize>,
    /// Its fields.
    pub values: csv::StringRecord,
    /// Nothing follows it: where the row is short, the file may be cut off.
    pub last: bool,
}

impl<'a> Rows<'a> {
    /// The rows of `input` from byte `start` on, which is on line 1.
    pub fn new(input: &'a [u8], start: usize, delimiter: u8) -> Self {
        let reader = reader(&input[start..], delimiter);
        Self { input, delimiter, reader, base: start, counted: start, line: 1, bytes: 64, fields: 8 }
    }

    /// The next row; none after the last. `names`: of the columns, for saying which field is at fault.
    pub fn read(&mut self, names: &[String]) -> Option<Result<Row, Rejected>> {
        let mut record = csv::ByteRecord::with_capacity(self.bytes, self.fields);
        let before = self.offset();
        // A slice can't fail to be read, and rows may have any number of fields.
        if !self.reader.read_byte_record(&mut record).unwrap_or(false) {
            return None;
        }
        (self.bytes, self.fields) = (record.as_slice().len() + 16, record.len());
        let range = self.trim(before..self.offset());
        self.line += memchr::memchr_iter(b'\n', &self.input[self.counted..range.start]).count() as u64;
        self.counted = range.start;
        let line = self.line;
        let last = self.offset() >= self.input.len();
        if last && ends_inside_quotes(&self.input[range.clone()], self.delimiter) {
            return Some(Err(self.open_quote(range)));
        }
        match csv::StringRecord::from_byte_record(record) {
            Ok(values) => Some(Ok(Row { line, range, values, last })),
            Err(error) => {
                let field = error.utf8_error().field();
                let name = names.get(field).map_or("", String::as_str);
                let reason = format!("field {} is not UTF-8: convert the file, for example with iconv", field + 1);
                Some(Err(rejected(self.input, range, line, name, reason)))
            }
        }
    }

    fn offset(&self) -> usize {
        self.base + usize::try_from(self.reader.position().byte()).expect("a place in the input")
    }

    /// Without line ends before (blank lines) and after.
    fn trim(&self, range: Range<usize>) -> Range<usize> {
        let is_text = |byte: &u8| !matches!(byte, b'\r' | b'\n');
        let bytes = &self.input[range.clone()];
        let start = range.start + bytes.iter().position(is_text).unwrap_or(0);
        let end = range.start + bytes.iter().rposition(is_text).map_or(0, |last| last + 1);
        start..end.max(start)
    }

    /// A quote that runs to the end of the input has swallowed the lines after it: only the first is at fault, and
    /// reading goes on behind it.
    fn open_quote(&mut self, range: Range<usize>) -> Rejected {
        let first_end = memchr::memchr(b'\n', &self.input[range.clone()]).map(|at| range.start + at);
        let reason = match first_end {
            None => "the input ends inside a quoted value: it may be cut off",
            Some(_) => "a quote that opens on this line is never closed",
        };
        let row = range.start..first_end.unwrap_or(range.end);
        if let Some(end) = first_end {
            self.base = end + 1;
            self.reader = reader(&self.input[self.base..], self.delimiter);
        }
        rejected(self.input, row, self.line, "", reason.to_owned())
    }
}

fn reader(input: &[u8], delimiter: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(input)
}

/// Whether a row stops in the middle of a quoted field, by the rules of the `csv` crate: a quote opens only at the start of a
/// field, a doubled one stands for itself, and text after a closing quote is taken as it is.
fn ends_inside_quotes(row: &[u8], delimiter: u8) -> bool {
    #[derive(PartialEq)]
    enum At {
        Start,
        Plain,
        Quoted,
        Quote,
    }
    let at = row.iter().fold(At::Start, |at, &byte| match (at, byte) {
        (At::Start, b'"') | (At::Quote, b'"') => At::Quoted,
        (At::Quoted, b'"') => At::Quote,
        (At::Quoted, _) => At::Quoted,
        (_, byte) if byte == delimiter => At::Start,
        _ => At::Plain,
    });
    at == At::Quoted
}
