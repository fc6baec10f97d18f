//! The text of `sacct --parsable2` (`-P`) and `--parsable` (`-p`), whatever the delimiter.
//!
//! sacct quotes nothing. A user's text (job name, submit line, comment, folder) may hold line ends and the delimiter, and
//! such a record is put together again here: with N columns, a line of N fields is a record; shorter lines are joined until N
//! are reached; surplus fields are folded into the one text column where everything else then looks as it should. What stays
//! ambiguous is rejected, never guessed: a value in the wrong column would be billed.

use super::lines::{Line, Lines};
use super::sacct_layout::Layout;
use super::{ReadError, ReaderOptions, Reading, column_names, rejected, text_start};
use crate::attempt::Rejected;
use crate::import::record::{Columns, Record, RecordText};
use std::ops::Range;

/// The most that pieces of one record may add up to before they are given up. Unit: bytes. Slurm's own limit on a job
/// script, the longest text it takes, is 4 MiB; submit lines are far below.
const LONGEST_RECORD: usize = 1024 * 1024;

/// Reads sacct's text.
///
/// Columns come from `fields` or from a first line of sacct's names, in any case; such a line further down (exports put end
/// to end) is passed over if it names the same columns, and what stands below one that names others is rejected. Errors:
/// neither a line of names nor `fields`.
pub fn read<'a>(input: &'a [u8], options: &ReaderOptions) -> Result<Reading<'a>, ReadError> {
    let start = Lines::new(input, text_start(input));
    let layout = Layout::find(start, options)?;
    let columns = Columns(column_names(layout.names()));
    let mut text = SacctText { input, lines: start, names: columns.0.clone(), layout, foreign: None };
    Ok(Reading { columns, records: Box::new(std::iter::from_fn(move || text.next_record())), steps: 0 })
}

struct SacctText<'a> {
    input: &'a [u8],
    lines: Lines<'a>,
    names: Vec<String>,
    layout: Layout,
    /// The line that named other columns than ours, while it is in force.
    foreign: Option<u64>,
}

/// What becomes of some lines.
type Outcome = Result<Record, Rejected>;

impl SacctText<'_> {
    fn next_record(&mut self) -> Option<Outcome> {
        loop {
            let line = self.lines.next_written()?;
            if let Some(same) = self.layout.header_matches(self.lines.text(&line)) {
                self.foreign = (!same).then_some(line.number);
                continue;
            }
            if let Some(header) = self.foreign {
                let reason = format!(
                    "stands below line {header}, which names other columns than the first: import that part as a file of its own"
                );
                return Some(Err(self.reject(line.range, line.number, reason)));
            }
            let fields = self.fields_of(&line);
            return Some(if fields == self.layout.width() {
                let range = self.with_tail(&line);
                self.record(range, line.number)
            } else if fields > self.layout.width() {
                self.fold(&line.range, line.number).unwrap_or_else(|| {
                    Err(self.reject(line.range.clone(), line.number, self.count_reason(fields, true)))
                })
            } else {
                self.join(line, fields)
            });
        }
    }

    /// Joins a line that is too short with the lines after it.
    fn join(&mut self, first: Line, mut fields: usize) -> Outcome {
        let (start, number) = (first.range.start, first.number);
        let mut end = first.range.end;
        // Where to go on should the pieces not fit: the last of them that begins like a record, with what stands before it.
        let mut restart: Option<(Lines, usize)> = None;
        loop {
            let before = self.lines;
            let Some(line) = self.lines.next() else {
                let reason = format!("{}; the input ends here and may be cut off", self.count_reason(fields, false));
                return Err(self.reject(start..end, number, reason));
            };
            let text = self.lines.text(&line);
            let count = self.fields_of(&line);
            if self.layout.begins_anew(text, count) || self.layout.header_matches(text).is_some() {
                self.lines = before;
                return Err(self.reject(start..end, number, self.count_reason(fields, false)));
            }
            if self.layout.begins_like_a_record(text) {
                restart = Some((before, end));
            }
            fields += count - 1;
            end = line.range.end;
            if fields < self.layout.width() && end - start <= LONGEST_RECORD {
                continue;
            }
            if fields == self.layout.width() && self.layout.fits(self.input, &self.layout.cuts(self.input, start..end))
            {
                return self.record(start..end, number);
            }
            if fields > self.layout.width()
                && let Some(Ok(record)) = self.fold(&(start..end), number)
            {
                return Ok(record);
            }
            let reason = format!("{}, also when joined with the lines that follow", self.count_reason(fields, false));
            if let Some((lines, piece_end)) = restart {
                self.lines = lines;
                end = piece_end;
            }
            return Err(self.reject(start..end, number, reason));
        }
    }

    /// Where the last column is a user's text, lines without a delimiter belong to it: a whole record and its tail.
    ///
    /// Not the last line of an input that doesn't end with a line end, and none that begins like a record: either may be
    /// what is left of a record that was cut off.
    fn with_tail(&mut self, line: &Line) -> Range<usize> {
        let mut range = line.range.clone();
        while self.layout.ends_in_free_text() {
            let before = self.lines;
            match self.lines.next_written() {
                Some(next)
                    if next.range.end < self.input.len()
                        && !self.layout.begins_like_a_record(self.lines.text(&next))
                        && self.fields_of(&next) == 1
                        && self.layout.header_matches(self.lines.text(&next)).is_none()
                        && next.range.end - range.start <= LONGEST_RECORD =>
                {
                    range.end = next.range.end;
                }
                _ => {
                    self.lines = before;
                    break;
                }
            }
        }
        range
    }

    /// Puts surplus fields into the one text column where the rest then looks as it should. None where that is not one column.
    fn fold(&self, range: &Range<usize>, line: u64) -> Option<Outcome> {
        let cuts = self.layout.fold(self.input, range.clone())?;
        Some(self.finish(&cuts, range.clone(), line))
    }

    fn record(&self, range: Range<usize>, line: u64) -> Outcome {
        self.finish(&self.layout.cuts(self.input, range.clone()), range, line)
    }

    fn finish(&self, cuts: &[Range<usize>], range: Range<usize>, line: u64) -> Outcome {
        match std::str::from_utf8(&self.input[range.clone()]) {
            Ok(text) => {
                let mut values = csv::StringRecord::with_capacity(text.len(), self.names.len());
                for cut in cuts.iter().take(self.names.len()) {
                    values.push_field(&text[cut.start - range.start..cut.end - range.start]);
                }
                Ok(Record { line, text: RecordText::Span(range), values })
            }
            Err(error) => {
                let at = range.start + error.valid_up_to();
                let field = cuts.iter().position(|cut| at < cut.end).unwrap_or(0);
                let name = self.names.get(field).map_or("", String::as_str).to_owned();
                let reason = format!("field {} is not UTF-8: convert the file, for example with iconv", field + 1);
                Err(rejected(self.input, range, line, &name, reason))
            }
        }
    }

    fn fields_of(&self, line: &Line) -> usize {
        self.layout.count(&self.input[line.range.clone()])
    }

    fn count_reason(&self, found: usize, surplus: bool) -> String {
        let mut reason = format!("{found} fields where {} are expected", self.layout.width());
        if surplus {
            reason.push_str(": the delimiter stands inside a value; export with another one, such as --delimiter='|#'");
        }
        reason
    }

    fn reject(&self, range: Range<usize>, line: u64, reason: String) -> Rejected {
        rejected(self.input, range, line, "", reason)
    }
}
