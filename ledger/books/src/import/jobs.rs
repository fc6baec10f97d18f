//! `import jobs`: from the records of one file to attempts.
//!
//! [`attempts`] reads each record on its own (`jobs/row.rs`), in one pass; what only the whole file can tell (up to when it speaks, what
//! time it covers) is filled in at the end. A record that can't be booked comes back as [`Rejected`]; the rest is booked.

mod cards;
mod identity;
mod row;
#[cfg(test)]
mod tests;

use crate::attempt::{Attempt, Rejected};
use crate::import::ahead::ahead;
use crate::import::map::{MapError, RowKey};
use crate::import::mapping::{BoundMapping, Mapping};
use crate::import::names::Names;
use crate::import::readers::Format;
use crate::import::record::{Columns, Record, RecordText};
use crate::import::when::{Refusal, check_length};
use crate::site::Coverage;
use cardhour_domain::{Interval, Name, Timestamp};
use identity::{EqualRows, RowName};
use row::Row;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What whoever imports says about a file, beside the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `--as-of`: up to when the file speaks. Goes before the map's.
    pub as_of: Option<Timestamp>,
    /// `--covers`: what time the file speaks for, of each of its clusters.
    pub covers: Option<Interval>,
    /// The cluster of rows for which neither a column nor the map names one.
    pub cluster: Option<Name>,
    /// When the import runs: later times than that can't be true.
    pub now: Timestamp,
}

/// What came of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The attempts, in the order of the file. Versions of one attempt may be among them. Each lies where it was made: a site has millions.
    pub attempts: Vec<Arc<Attempt>>,
    /// The rows that can't be booked, in the order of the file.
    pub rejected: Vec<Rejected>,
    /// Records read: attempts (a started range is one record), rejected ones and steps.
    pub rows_read: u64,
    /// Steps, which hold nothing themselves.
    pub steps: u64,
    /// What time the file speaks for, by cluster, in the order of the clusters' names.
    pub coverage: Vec<Coverage>,
    /// Up to when it speaks; none for a file in which nothing is booked and nobody says.
    pub as_of: Option<Timestamp>,
    /// Sentences for whoever imports: what the file can't do, and what to export next time.
    pub notes: Vec<String>,
}

/// The attempts that the records of one file tell of.
///
/// Records are read, and named where they have no ids, on a thread of their own while those before are mapped.
///
/// `input`: the bytes of the file, from which the text of rejected rows is taken. Errors: a map that doesn't fit the file's
/// columns; a single record never is one.
pub fn attempts(
    input: &[u8],
    columns: &Columns,
    records: impl Iterator<Item = Result<Record, Rejected>> + Send,
    mapping: &Mapping,
    options: &Options,
) -> Result<Imported, MapError> {
    let bound = mapping.bind(columns)?;
    let mut file = File {
        said_as_of: options.as_of.or(bound.map_as_of),
        bound: &bound,
        options,
        names: Names::default(),
        imported: Imported::default(),
        open: Vec::new(),
        latest: None,
        seen: Seen::default(),
    };
    let mut equal_rows = EqualRows::default();
    let named = records.map(|record| {
        let record = record?;
        let name = (bound.key == RowKey::Row).then(|| equal_rows.name(&record));
        Ok::<_, Rejected>((record, name))
    });
    ahead(named, |record| {
        file.imported.rows_read += 1;
        match record {
            Err(rejected) => file.imported.rejected.push(rejected.clone()),
            Ok((record, name)) => file.read(input, record, name.take()),
        }
    });
    let mut imported = file.finish(input);
    // sacct ends every row with a line end. A number that was cut in two still reads as a number.
    if mapping.format == Format::Sacct && !imported.attempts.is_empty() && !input.ends_with(b"\n") {
        let note = "the file does not end with a line end: if its export was cut off, its last row may be, too, and is booked as it stands";
        imported.notes.push(note.to_owned());
    }
    Ok(imported)
}

/// What is gathered while a file is read.
struct File<'a> {
    bound: &'a BoundMapping,
    options: &'a Options,
    /// By whoever imports, or by the map.
    said_as_of: Option<Timestamp>,
    names: Names,
    imported: Imported,
    /// Attempts, by index, for which only the latest time in the file can vouch, with their record.
    open: Vec<(usize, u64, RecordText)>,
    /// The latest time in the file.
    latest: Option<Timestamp>,
    seen: Seen,
}

/// What notes are made of.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) unknown_states: BTreeSet<String>,
    pub(crate) unreadable_nodes: u64,
    /// Whether a card is named with its type, in what Slurm allocated.
    pub(crate) typed_cards: bool,
    /// Whether cards are counted over all types there.
    pub(crate) plain_cards: bool,
}

/// Kinds of unknown words that are told; a hostile file may have any number.
const MOST_WORDS_TOLD: usize = 8;

impl File<'_> {
    fn read(&mut self, input: &[u8], record: &Record, row_name: Option<RowName>) {
        let from = self.imported.attempts.len();
        match row::read(self, record, row_name) {
            Ok(Row::Step { latest }) => {
                self.imported.steps += 1;
                self.latest = self.latest.max(latest);
            }
            Ok(Row::Job) => {
                for (i, attempt) in self.imported.attempts.iter().enumerate().skip(from) {
                    self.latest = self.latest.max(latest_of(attempt));
                    if !attempt.is_final && attempt.as_of.is_none() {
                        self.open.push((i, record.line, record.text.clone()));
                    }
                }
            }
            Err(refusal) => {
                self.imported.attempts.truncate(from);
                self.imported.rejected.push(reject(input, record.line, &record.text, refusal));
            }
        }
    }

    fn finish(mut self, input: &[u8]) -> Imported {
        self.imported.as_of = self.said_as_of.or(self.latest);
        let mut too_long = Vec::new();
        for (i, line, text) in std::mem::take(&mut self.open) {
            let attempt = Arc::make_mut(&mut self.imported.attempts[i]);
            attempt.as_of = self.imported.as_of;
            if let (Some(start), Some(end)) = (attempt.started_at, attempt.as_of)
                && let Err(refusal) = check_length(start, end)
            {
                too_long.push(i);
                self.imported.rejected.push(reject(input, line, &text, refusal));
            }
        }
        if !too_long.is_empty() {
            self.imported.rejected.sort_by_key(|rejected| rejected.line);
            self.imported.rejected.dedup();
            let mut i = 0;
            self.imported.attempts.retain(|_| {
                i += 1;
                too_long.binary_search(&(i - 1)).is_err()
            });
        }
        // A file that is said to speak up to a moment speaks for nothing after it, and none for what is to come: cards would be free there.
        let now = self.options.now;
        let speaks_until = |covers: Interval| covers.end().min(self.said_as_of.unwrap_or(now)).min(now);
        let said = self.options.covers.map(|said| Interval::new(said.start(), speaks_until(said)));
        self.imported.coverage = match said {
            None => coverage(&self.imported, None),
            Some(None) => Vec::new(),
            Some(covers) => coverage(&self.imported, covers),
        };
        // An export in which nobody ran speaks for its time all the same, where the cluster is known without a row.
        if let (true, Some(covers)) = (self.imported.attempts.is_empty(), said.flatten())
            && let Some(cluster) =
                self.bound.cluster.fallback().map(Name::from).or_else(|| self.options.cluster.clone())
        {
            self.imported.coverage.push(Coverage { cluster, covers });
        }
        self.imported.notes = self.notes();
        if self.options.covers.is_some_and(|covers| covers.end() > now)
            && self.said_as_of.is_none_or(|as_of| as_of > now)
        {
            let note =
                "what the file is said to cover ends at the moment of the import: nobody knows what is free later";
            self.imported.notes.push(note.to_owned());
        }
        self.imported
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.bound.key == RowKey::Row {
            notes.push(
                "rows are told apart by their content (key = \"row\"): a later export can't update them, open ones are not \
                 booked, and a part of a file is not the file"
                    .to_owned(),
            );
        }
        if !self.seen.unknown_states.is_empty() {
            let words: Vec<&str> = self.seen.unknown_states.iter().map(String::as_str).collect();
            notes.push(format!("states that mean nothing here are booked as unknown: {}", words.join(", ")));
        }
        if self.seen.unreadable_nodes > 0 {
            notes.push(format!("{} node lists could not be read and are left out", self.seen.unreadable_nodes));
        }
        // Source: Slurm's documentation of AccountingStorageTRES: a type that is listed without its plain name counts only what asked for
        // that type.
        if self.seen.typed_cards && !self.seen.plain_cards {
            notes.push(
                "AllocTRES names types (gres/gpu:TYPE) and never the plain gres/gpu, so jobs that asked for any card aren't \
                 accounted: list gres/gpu beside the typed names in Slurm's AccountingStorageTRES"
                    .to_owned(),
            );
        }
        if self.seen.plain_cards && !self.seen.typed_cards {
            notes.push(
                "AllocTRES never says the model of a card: list gres/gpu:TYPE in Slurm's AccountingStorageTRES beside \
                 gres/gpu, or give the model in the map"
                    .to_owned(),
            );
        }
        notes
    }
}

/// The latest moment that an attempt tells of.
fn latest_of(attempt: &Attempt) -> Option<Timestamp> {
    let own_as_of = attempt.as_of.filter(|_| !attempt.is_final && attempt.started_at.is_some());
    attempt.submitted_at.max(attempt.started_at).max(attempt.ended_at).max(own_as_of)
}

/// By default from a cluster's first submit (else start) to the file's as-of.
fn coverage(imported: &Imported, covers: Option<Interval>) -> Vec<Coverage> {
    let mut first: BTreeMap<&Name, Timestamp> = BTreeMap::new();
    for of_one in imported.attempts.chunk_by(|a, b| a.cluster == b.cluster) {
        let moments = of_one.iter().filter_map(|a| a.submitted_at.or(a.started_at).or(a.ended_at));
        if let Some(at) = moments.min() {
            first.entry(&of_one[0].cluster).and_modify(|first| *first = at.min(*first)).or_insert(at);
        }
    }
    let coverage = first.into_iter().filter_map(|(cluster, first)| {
        let covers = covers.or_else(|| Interval::new(first, imported.as_of?))?;
        Some(Coverage { cluster: cluster.clone(), covers })
    });
    coverage.collect()
}

/// The most of a row that is kept. Unit: bytes.
const LONGEST_KEPT_ROW: usize = 64 * 1024;

pub(crate) fn reject(input: &[u8], line: u64, text: &RecordText, refusal: Refusal) -> Rejected {
    let shortened = match text {
        RecordText::Span(range) => RecordText::Span(range.start..range.end.min(range.start + LONGEST_KEPT_ROW)),
        RecordText::Owned(text) => RecordText::Owned(text.clone()),
    };
    let mut row = shortened.resolve(input).into_owned();
    let mut end = row.len().min(LONGEST_KEPT_ROW);
    while !row.is_char_boundary(end) {
        end -= 1;
    }
    row.truncate(end);
    Rejected { line, row, field: refusal.field.to_owned(), reason: refusal.reason }
}
