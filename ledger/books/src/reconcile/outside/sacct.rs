//! What `sacct` prints of jobs: cards × elapsed time, and the billing that Slurm makes of them.
//!
//! `sacct -a -X -D -P --format=JobID,JobIDRaw,Cluster,Account,User,State,Start,End,ElapsedRaw,Suspended,AllocTRES`. Elapsed time leaves out what a
//! job was suspended. A row is a run of a job; which of our attempts it is, its id and its start tell.

use super::billing::{Billing, Weights};
use super::{Hours, OutsideError, TheirLine, Theirs, Tool, Who, card_seconds, fault};
use crate::import::duration::{Length, read_length};
use crate::import::job_id::{SlurmJobId, Task};
use crate::import::readers::{Format, ReaderOptions, read as read_rows};
use crate::import::record::Record;
use crate::import::slurm::state_of;
use crate::import::time::{TimeReader, Unit};
use cardhour_domain::{CardShare, CardTime, Interval, Name, Timestamp, Zone};

/// Reads a list of jobs. `zone`: of its times, where they carry no offset. `weights`: what `TRESBillingWeights` is there.
///
/// Errors: no rows can be found, a column is missing, a value can't be read. Jobs without cards and steps are passed over.
pub fn read(text: &str, zone: Zone, weights: Option<&Weights>) -> Result<Theirs, OutsideError> {
    let rows = read_rows(Format::Sacct, text.as_bytes(), &ReaderOptions::default())
        .map_err(|error| OutsideError::Missing(error.to_string()))?;
    let columns = Columns::of(&rows.columns.0)?;
    let mut lines = Vec::new();
    let mut steps = 0u64;
    for row in rows.records {
        let row = row.map_err(|rejected| fault(number(rejected.line), rejected.field, rejected.reason))?;
        match columns.line(&row, zone, weights)? {
            Row::Job(line) => lines.push(*line),
            Row::Step => steps += 1,
            Row::Nothing => {}
        }
    }
    let notes = if steps == 0 {
        Vec::new()
    } else {
        vec![format!("{steps} steps hold nothing of their own, and are passed over")]
    };
    let unit = card_seconds(1).unwrap_or(CardTime::ZERO);
    Ok(Theirs { tool: Tool::Sacct, hours: Hours::WholeJobs, lines, unit, notes })
}

enum Row {
    Job(Box<TheirLine>),
    Step,
    Nothing,
}

struct Columns {
    job: usize,
    raw: Option<usize>,
    cluster: Option<usize>,
    account: usize,
    user: usize,
    state: Option<usize>,
    start: usize,
    end: Option<usize>,
    elapsed_raw: Option<usize>,
    elapsed: Option<usize>,
    suspended: Option<usize>,
    tres: usize,
}

impl Columns {
    fn of(names: &[String]) -> Result<Self, OutsideError> {
        let place = |name: &str| names.iter().position(|known| known.eq_ignore_ascii_case(name));
        let must =
            |name: &str| place(name).ok_or_else(|| OutsideError::Missing(format!("sacct was not asked for {name}")));
        let columns = Self {
            job: must("JobID")?,
            raw: place("JobIDRaw"),
            cluster: place("Cluster"),
            account: must("Account")?,
            user: must("User")?,
            state: place("State"),
            start: must("Start")?,
            end: place("End"),
            elapsed_raw: place("ElapsedRaw"),
            elapsed: place("Elapsed"),
            suspended: place("Suspended"),
            tres: must("AllocTRES")?,
        };
        if columns.elapsed_raw.or(columns.elapsed).is_none() {
            must("ElapsedRaw")?;
        }
        Ok(columns)
    }

    fn line(&self, row: &Record, zone: Zone, weights: Option<&Weights>) -> Result<Row, OutsideError> {
        let at = number(row.line);
        let get = |column: Option<usize>| column.and_then(|column| row.get(column));
        let Some(shown) = get(Some(self.job)) else { return Ok(Row::Nothing) };
        let Some(job) = job_of(shown, get(self.raw)).map_err(|reason| fault(at, "JobID", reason))? else {
            return Ok(Row::Step);
        };
        let tres = get(Some(self.tres)).unwrap_or_default();
        let cards = whole_cards(tres).map_err(|reason| fault(at, "AllocTRES", reason))?;
        if cards == 0 {
            return Ok(Row::Nothing);
        }
        let time = |column: Option<usize>, name: &str| -> Result<Option<Timestamp>, OutsideError> {
            let Some(text) = get(column) else { return Ok(None) };
            let moment = TimeReader::in_zone(zone).read(text).map_err(|error| fault(at, name, error.to_string()))?;
            Ok(moment.map(|moment| moment.earlier()))
        };
        let length = |column: Option<usize>, name: &str| -> Result<Option<i64>, OutsideError> {
            let Some(text) = get(column) else { return Ok(None) };
            let length = read_length(text, Unit::Seconds).map_err(|error| fault(at, name, error.to_string()))?;
            Ok(length.and_then(|length| if let Length::Ms(ms) = length { Some(ms) } else { None }))
        };
        let (start, end) = (time(Some(self.start), "Start")?, time(self.end, "End")?);
        let Some(elapsed) = length(self.elapsed_raw, "ElapsedRaw")?.or(length(self.elapsed, "Elapsed")?) else {
            return Ok(Row::Nothing);
        };
        let whole = start.zip(end).and_then(|(start, end)| Interval::new(start, end));
        let suspended = length(self.suspended, "Suspended")?
            .or_else(|| whole.map(|whole| (whole.length_ms() - elapsed).max(0)))
            .unwrap_or_default();
        let share = CardShare::from_cards(cards).map_err(|error| fault(at, "AllocTRES", error.to_string()))?;
        let of = |ms: i64| CardTime::from_part_ms(i128::from(share.parts()) * i128::from(ms));
        let name = |column: Option<usize>| get(column).map(Name::from);
        let who = Who {
            cluster: name(self.cluster),
            project: name(Some(self.account)),
            user: name(Some(self.user)),
            job: Some(job),
        };
        let billing = Billing::of(tres, weights, elapsed).map_err(|reason| fault(at, "AllocTRES", reason))?;
        Ok(Row::Job(Box::new(TheirLine {
            started_at: start,
            ended_at: end,
            cards: Some(share),
            suspended: of(suspended),
            is_open: get(self.state).is_some_and(|state| state_of(state).is_open()),
            billing,
            ..TheirLine::new(who, of(elapsed))
        })))
    }
}

fn number(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}

/// The job as keys have it: its raw id, with the index of a task. None of a step.
fn job_of(shown: &str, raw: Option<&str>) -> Result<Option<Name>, String> {
    let id = SlurmJobId::parse(shown).map_err(|error| error.to_string())?;
    if id.step.is_some() {
        return Ok(None);
    }
    let raw =
        raw.map(|raw| SlurmJobId::parse(raw).map(|raw| raw.base)).transpose().map_err(|error| error.to_string())?;
    Ok(Some(match (id.task, raw) {
        (Task::One(index), Some(raw)) => format!("{raw}_{index}").into(),
        (Task::None | Task::Set(_), Some(raw)) => raw.to_string().into(),
        (_, None) => id.job.into(),
    }))
}

/// How many cards Slurm counts: whole ones, a slice of a card as one.
fn whole_cards(tres: &str) -> Result<i64, String> {
    let mut typed = 0i64;
    for part in tres.split(',') {
        let Some((name, count)) = part.rsplit_once('=') else { continue };
        let is_typed = match name.strip_prefix("gres/gpu") {
            Some("") => false,
            Some(kind) if kind.starts_with(':') => true,
            _ => continue,
        };
        let count: i64 = count.parse().map_err(|_| format!("{part:?} is not a whole number of cards"))?;
        if !is_typed {
            return Ok(count);
        }
        typed = typed.checked_add(count).ok_or_else(|| format!("{tres:?} has too many cards"))?;
    }
    Ok(typed)
}
