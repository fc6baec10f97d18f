//! Which job a row is, and which run of it (design §4.1, "Key of an attempt").

use crate::import::job_id::{SlurmJobId, Task, tasks_of};
use crate::import::mapping::BoundMapping;
use crate::import::record::Record;
use crate::import::when::{Refusal, When};
use cardhour_domain::AttemptKey;
use std::borrow::Cow;
use std::collections::HashMap;

/// Which job a row is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobName<'r> {
    /// As people know it, without the index where `tasks` has them.
    pub shown: Cow<'r, str>,
    /// As keys have it.
    pub key: Cow<'r, str>,
    /// The tasks of a range; empty where the row is one job.
    pub tasks: Vec<u64>,
}

/// What a row's ids say.
pub(super) enum Named<'r> {
    /// A job.
    Job(JobName<'r>),
    /// A step of one.
    Step,
    /// Nothing.
    Nothing,
}

/// The job that a row names. `has_started` decides whether a range is one job an index or one that waits.
pub(super) fn name_job<'r>(
    bound: &'r BoundMapping,
    record: &'r Record,
    has_started: impl FnOnce() -> bool,
) -> Result<Named<'r>, Refusal> {
    let raw = bound.job_id_raw.get(record);
    let Some(text) = bound.job_id.get(record).or(raw) else { return Ok(Named::Nothing) };
    if text.len() > crate::import::names::LONGEST_NAME {
        return Err(Refusal::new("job_id", "is longer than 1,024 bytes"));
    }
    if bound.slurm.is_none() && !is_range(text) {
        let (shown, key) = (Cow::Borrowed(text), Cow::Borrowed(raw.unwrap_or(text)));
        return Ok(Named::Job(JobName { shown, key, tasks: Vec::new() }));
    }
    let refused = |error: crate::import::job_id::JobIdError| Refusal::new("job_id", error.to_string());
    let id = SlurmJobId::parse(text).map_err(refused)?;
    if id.step.is_some() {
        return Ok(Named::Step);
    }
    let raw = raw.map(SlurmJobId::parse).transpose().map_err(refused)?.map(|raw| raw.base);
    let own = raw.unwrap_or(id.base);
    let name = match (id.task, raw) {
        (Task::Set(set), _) if has_started() => {
            let tasks = tasks_of(set).map_err(refused)?;
            JobName { shown: Cow::Owned(id.base.to_string()), key: Cow::Owned(own.to_string()), tasks }
        }
        (Task::Set(_), _) => JobName { shown: id.job.into(), key: own.to_string().into(), tasks: Vec::new() },
        (Task::One(index), Some(raw)) => {
            JobName { shown: id.job.into(), key: format!("{raw}_{index}").into(), tasks: Vec::new() }
        }
        (Task::None, Some(raw)) => JobName { shown: id.job.into(), key: raw.to_string().into(), tasks: Vec::new() },
        (Task::One(_) | Task::None, None) => JobName { shown: id.job.into(), key: id.job.into(), tasks: Vec::new() },
    };
    Ok(Named::Job(name))
}

/// Whether an id of another source than Slurm is an array range all the same: `123_[1-3]`.
fn is_range(text: &str) -> bool {
    text.ends_with(']') && text.bytes().next().is_some_and(|c| c.is_ascii_digit()) && text.contains("_[")
}

/// Which run of its job a row with ids is.
pub(super) fn name_run(bound: &BoundMapping, record: &Record, restart: Option<u32>, when: &When) -> String {
    for (prefix, column) in [("db", &bound.db_index), ("sluid", &bound.sluid), ("uid", &bound.pod_uid)] {
        if let Some(id) = column.get(record).filter(|id| *id != "0") {
            return format!("{prefix}{id}");
        }
    }
    let submit = when.submitted_at.map(|at| at.unix_ms().div_euclid(1000));
    let start = when.started_at.map(|at| at.unix_ms().div_euclid(1000));
    match (submit, restart, start) {
        (Some(submit), Some(restart), _) => format!("s{submit}r{restart}"),
        (Some(submit), None, Some(start)) => format!("s{submit}b{start}"),
        (Some(submit), None, None) => format!("s{submit}"),
        (None, Some(restart), Some(start)) => format!("r{restart}b{start}"),
        (None, restart, start) => {
            // Neither submit nor start: the end, which `when` has or the row is refused.
            let at = start.or(when.ended_at.map(|at| at.unix_ms().div_euclid(1000))).unwrap_or_default();
            restart.map_or_else(|| format!("b{at}"), |restart| format!("r{restart}b{at}"))
        }
    }
}

/// How often each row stood in the file before, for `key = "row"`.
#[derive(Debug, Default)]
pub(super) struct EqualRows {
    seen: HashMap<[u8; 16], u32>,
    /// The row's values, each with its length, in one piece for the hash.
    content: Vec<u8>,
}

/// A row known by its content.
pub(super) struct RowName {
    /// The run: `row`, 32 hexadecimal digits, and how many equal rows stood before.
    pub run: String,
    /// Short for people: 16 digits, with the count where it isn't 0.
    pub short: String,
}

impl EqualRows {
    /// Names a row by its values and by how many equal ones came before it.
    pub(super) fn name(&mut self, record: &Record) -> RowName {
        self.content.clear();
        for value in &record.values {
            let value = value.trim();
            self.content.extend((value.len() as u64).to_le_bytes());
            self.content.extend(value.as_bytes());
        }
        let mut content = [0; 16];
        content.copy_from_slice(&blake3::hash(&self.content).as_bytes()[..16]);
        let before = self.seen.entry(content).or_default();
        let hex = format!("{:032x}", u128::from_be_bytes(content));
        let short = if *before == 0 { hex[..16].to_owned() } else { format!("{}-{before}", &hex[..16]) };
        let name = RowName { run: format!("row{hex}-{before}"), short };
        *before += 1;
        name
    }
}

/// The key of an attempt; `task` for a started range.
pub(super) fn key_of(cluster: &str, job: &str, task: Option<u64>, run: &str) -> AttemptKey {
    match task {
        Some(task) => AttemptKey::new(cluster, &format!("{job}_{task}"), run),
        None => AttemptKey::new(cluster, job, run),
    }
}
