//! The JSON of Slurm's commands and of its REST daemon, and of Sonar: one document, or several put end to end.
//!
//! Four shapes are told apart by what they hold: jobs of the accounting database (`sacct --json`, `/slurmdb/…/jobs`), jobs of
//! the controller (`squeue --json`, `/slurm/…/jobs`), Sonar's `slurm_jobs`, and one controller job by itself. What becomes of
//! a job is in the module `sacct_json_job`.

use super::raw_json::{self, Entry, Text};
use super::sacct_json_job::{Job, accounting_job, controller_job, sonar_job};
use super::{ReadError, Reading, rejected, text_start};
use crate::attempt::Rejected;
use crate::import::record::{Columns, Record, RecordText};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// Reads Slurm's JSON to records with the names of sacct's fields.
///
/// The columns are always those of [`Job`]. Steps stand inside of their jobs: they are counted and are no records. Where a
/// document breaks off or goes wrong, the jobs before it stay, and one row says where. Errors: nothing before it, or JSON of
/// another kind.
pub fn read(input: &[u8]) -> Result<Reading<'_>, ReadError> {
    let start = text_start(input);
    let (text, not_utf8) = match std::str::from_utf8(&input[start..]) {
        Ok(text) => (text, false),
        Err(error) => {
            let valid = &input[start..start + error.valid_up_to()];
            (std::str::from_utf8(valid).expect("it is valid up to there"), true)
        }
    };
    if text.trim().is_empty() && !not_utf8 {
        return Err(ReadError::Empty);
    }
    let mut found =
        Found { input, text, start, counted: start, line: 1, rows: Vec::new(), steps: 0, lists: 0, keys: Vec::new() };
    let mut documents = serde_json::Deserializer::from_str(text);
    let mut fault = None;
    while fault.is_none() && documents.end().is_err() {
        fault = Document(&mut found).deserialize(&mut documents).err();
    }
    // Text that stops at a byte that is no UTF-8 breaks off for the parser, too.
    let fault = match fault {
        Some(error) if !(not_utf8 && error.is_eof()) => {
            // serde_json ends its message with the place, which stands in front here.
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
            Some((error.line() as u64, error.column() as u64, message))
        }
        _ => not_utf8.then(|| {
            let last_line = text.rsplit('\n').next().unwrap_or(text);
            let line = text.matches('\n').count() as u64 + 1;
            (line, last_line.len() as u64 + 1, "a byte that is not UTF-8".to_owned())
        }),
    };
    if let Some((line, column, message)) = fault {
        if found.rows.is_empty() {
            return Err(ReadError::Document { line, column, message });
        }
        let reason =
            format!("line {line}, column {column}: {message}; the {} jobs before it are read", found.rows.len());
        found.rows.push(Err(Rejected { line, row: String::new(), field: String::new(), reason }));
    } else if found.rows.is_empty() && found.lists == 0 {
        let keys = found.keys.iter().take(12).map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        return Err(ReadError::NoJobs { found: if keys.is_empty() { "nothing".to_owned() } else { keys } });
    }
    let columns = Columns(Job::default().columns().iter().map(|(name, _)| (*name).to_owned()).collect());
    Ok(Reading { columns, records: Box::new(found.rows.into_iter()), steps: found.steps })
}

/// What was found so far.
struct Found<'a> {
    input: &'a [u8],
    text: &'a str,
    /// Where the text begins in the input.
    start: usize,
    /// Lines are counted up to here.
    counted: usize,
    line: u64,
    rows: Vec<Result<Record, Rejected>>,
    steps: u64,
    /// How many lists of jobs there were, empty ones too.
    lists: usize,
    keys: Vec<String>,
}

impl<'a> Found<'a> {
    fn job(&mut self, raw: &'a RawValue) {
        let range = self.range(raw);
        let entries = raw_json::object(raw).unwrap_or_default();
        self.entries(&entries, range);
    }

    fn entries(&mut self, entries: &[Entry<'a>], range: Range<usize>) {
        let has = |name| raw_json::get(entries, name).is_some();
        let job = match () {
            () if has("time") && has("state") => {
                let steps = raw_json::get(entries, "steps").and_then(raw_json::list);
                self.steps += steps.map_or(0, |steps| steps.len() as u64);
                Some(accounting_job(entries))
            }
            () if has("sacct") || has("job_step") => Some(sonar_job(entries, None)),
            () if has("job_state") => Some(controller_job(entries)),
            () => None,
        };
        self.push(job, range);
    }

    fn sonar(&mut self, data: &'a RawValue) {
        let data = raw_json::object(data).unwrap_or_default();
        let attributes = raw_json::get(&data, "attributes").and_then(raw_json::object).unwrap_or_default();
        let cluster = raw_json::get(&attributes, "cluster").and_then(raw_json::text);
        let Some(jobs) = raw_json::get(&attributes, "slurm_jobs") else { return };
        self.lists += 1;
        for raw in raw_json::list(jobs).unwrap_or_default() {
            let range = self.range(raw);
            let job = raw_json::object(raw).map(|entries| sonar_job(&entries, cluster.clone()));
            self.push(job, range);
        }
    }

    fn push(&mut self, job: Option<Job>, range: Range<usize>) {
        self.line += memchr::memchr_iter(b'\n', &self.input[self.counted..range.start]).count() as u64;
        self.counted = range.start;
        self.rows.push(match job {
            Some(job) => Ok(Record { line: self.line, text: RecordText::Span(range), values: job.values() }),
            None => {
                let reason = "not a job: neither `time` and `state` (sacct) nor `job_state` (squeue) is in it";
                Err(rejected(self.input, range, self.line, "", reason.to_owned()))
            }
        });
    }

    /// Where a value stands in the input.
    fn range(&self, raw: &RawValue) -> Range<usize> {
        let from = self.start + (raw.get().as_ptr() as usize - self.text.as_ptr() as usize);
        from..from + raw.get().len()
    }
}

/// One document: an object with a list of jobs, or the list itself.
struct Document<'f, 'a>(&'f mut Found<'a>);

impl<'a> DeserializeSeed<'a> for Document<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Document<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with a list of jobs")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let mut others: Vec<Entry<'a>> = Vec::new();
        while let Some(Text(key)) = map.next_key::<Text<'a>>()? {
            match &*key {
                "jobs" => map.next_value_seed(Jobs(self.0))?,
                "data" => self.0.sonar(map.next_value()?),
                _ => others.push((key, map.next_value()?)),
            }
        }
        if raw_json::get(&others, "job_id").is_some()
            && let (Some(first), Some(last)) = (others.first(), others.last())
        {
            // From brace to brace.
            let (first, last) = (self.0.range(first.1).start, self.0.range(last.1).end);
            let from = self.0.input[..first].iter().rposition(|&byte| byte == b'{').unwrap_or(first);
            self.0.entries(&others, from..last + 1);
        }
        self.0.keys.extend(others.into_iter().map(|(key, _)| key.into_owned()));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, list: A) -> Result<(), A::Error> {
        Jobs(self.0).visit_seq(list)
    }
}

/// A list of jobs, each taken as it comes, so that those before a fault are kept.
struct Jobs<'f, 'a>(&'f mut Found<'a>);

impl<'a> DeserializeSeed<'a> for Jobs<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for Jobs<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.lists += 1;
        while let Some(raw) = list.next_element()? {
            self.0.job(raw);
        }
        Ok(())
    }
}
