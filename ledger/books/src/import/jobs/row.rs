//! One record: the attempts it tells of, a step, or why it can't be booked.

use super::identity::{JobName, Named, RowName, key_of, name_job, name_run};
use super::{File, MOST_WORDS_TOLD, Seen, cards};
use crate::attempt::Attempt;
use crate::import::map::RowKey;
use crate::import::mapping::{BoundMapping, TextColumn, TimeColumn};
use crate::import::names::{Names, printable};
use crate::import::node_list::expand_nodes;
use crate::import::record::Record;
use crate::import::slurm::requested_memory_mib;
use crate::import::time::{Moment, is_absent};
use crate::import::when::{OverBy, Refusal, Told, When, check_length, check_past};
use cardhour_domain::{JobState, Name, Timestamp};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a record is.
pub(super) enum Row {
    /// A job: its attempts were put behind the others.
    Job,
    /// A step, which holds nothing.
    Step {
        /// The latest time it tells of, for the file's as-of.
        latest: Option<Timestamp>,
    },
}

/// Reads a record. Errors: why it can't be booked; then what was put behind the attempts is to be taken away again.
///
/// `row_name`: what it is called under `key = "row"`.
pub(super) fn read(file: &mut File<'_>, record: &Record, row_name: Option<RowName>) -> Result<Row, Refusal> {
    let bound = file.bound;
    let (state, unknown_word) = bound.state.get(record);
    let started = time("started_at", &bound.started_at, record);
    let has_started = || {
        let waits = bound.over_by == OverBy::State && state == Some(JobState::Pending);
        !waits && matches!(started, Ok(Some(_)))
    };
    let name = match name_job(bound, record, has_started)? {
        Named::Job(name) => Some(name),
        Named::Step => return Ok(Row::Step { latest: latest_of_step(file, record) }),
        Named::Nothing if bound.key == RowKey::Id => {
            return Err(Refusal::new("job_id", "is absent, so a later export could not be told from this one"));
        }
        Named::Nothing => None,
    };
    let suspended_ms = suspended(bound, record)?;
    let told = Told {
        submitted: time("submitted_at", &bound.submitted_at, record)?,
        started: started?,
        ended: time("ended_at", &bound.ended_at, record)?,
        length_ms: length(bound, record, suspended_ms)?,
    };
    if told.submitted.is_none() && told.started.is_none() && told.ended.is_none() {
        return Err(Refusal::new("started_at", "is absent, and so are submit and end: nothing says when the job was"));
    }
    let when = When::of(told, state.unwrap_or(JobState::Unknown), bound.over_by, file.options.now)?;
    let state = state.unwrap_or(match (when.is_final, when.started_at) {
        (true, _) => JobState::Unknown,
        (false, Some(_)) => JobState::Running,
        (false, None) => JobState::Pending,
    });
    let restart = bound.attempt.get(record).ok().flatten().and_then(|n| u32::try_from(n).ok());
    let (name, run) = match bound.key {
        RowKey::Row if !when.is_final => {
            return Err(Refusal::new("ended_at", "open_without_key"));
        }
        RowKey::Row => {
            let row = row_name.expect("rows are named under this key");
            let name = match name {
                // Rows are jobs of their own, also where they share an id.
                Some(name) => JobName { key: format!("{}.{}", name.key, row.short).into(), ..name },
                None => JobName { shown: row.short.clone().into(), key: row.short.into(), tasks: Vec::new() },
            };
            (name, row.run)
        }
        RowKey::Id => {
            let run = name_run(bound, record, restart, &when);
            (name.expect("refused above under this key"), run)
        }
    };
    let as_of = as_of(file, record, &when)?;
    let row_cards = cards::held(bound, record, when.started_at.is_some())?;
    let cluster = cluster(file, record);

    let seen = &mut file.seen;
    note_state(seen, unknown_word);
    if !row_cards.cards.share.is_zero() && bound.cards.is_none() && bound.slurm.is_some() {
        seen.typed_cards |= row_cards.cards.is_typed;
        seen.plain_cards |= row_cards.cards.is_plain;
    }

    let mut attempt = Attempt::new(key_of(&cluster, &name.key, None, &run), cluster, Name::from(""), state);
    attempt.is_final = when.is_final;
    attempt.submitted_at = when.submitted_at;
    attempt.started_at = when.started_at;
    attempt.ended_at = when.ended_at;
    attempt.as_of = as_of;
    attempt.restart = restart;
    attempt.suspended_ms = match (when.started_at, when.ended_at.or(when.vouched_until)) {
        (Some(start), Some(end)) => suspended_ms.min(end.ms_since(start)),
        _ => suspended_ms,
    };
    attempt.cards = row_cards.cards.share;
    attempt.share_declared = row_cards.declared;
    attempt.cards_requested = cards::requested(bound, record);
    fill(&mut attempt, bound, record, &mut file.names, seen);
    if attempt.model.is_none() {
        attempt.model = row_cards.cards.model.map(|model| file.names.intern(model));
    }
    if attempt.mig_profile.is_none() {
        attempt.mig_profile = row_cards.cards.mig_profile.map(|profile| file.names.intern(profile));
    }
    if name.tasks.is_empty() {
        attempt.job_id = Name::from(&*printable(&name.shown));
        file.imported.attempts.push(Arc::new(attempt));
        return Ok(Row::Job);
    }
    for task in &name.tasks {
        let mut one = attempt.clone();
        one.key = key_of(&one.cluster, &name.key, Some(*task), &run);
        one.job_id = Name::from(format!("{}_{task}", name.shown));
        file.imported.attempts.push(Arc::new(one));
    }
    Ok(Row::Job)
}

/// The fields that nothing else hangs on.
fn fill(attempt: &mut Attempt, bound: &BoundMapping, record: &Record, names: &mut Names, seen: &mut Seen) {
    let mut name = |column: &TextColumn| text(bound, column, record).map(|text| names.intern(text));
    attempt.org = name(&bound.org);
    attempt.project = name(&bound.project);
    attempt.user = name(&bound.user);
    attempt.queue = name(&bound.queue);
    attempt.class = name(&bound.class);
    attempt.model = name(&bound.model);
    attempt.mig_profile = name(&bound.mig_profile);
    attempt.card_uuid = name(&bound.card_uuid);
    attempt.reservation = name(&bound.reservation);
    attempt.image = name(&bound.image);
    attempt.exit_code = name(&bound.exit_code);
    attempt.artifact_uri = name(&bound.artifact_uri);
    // What Slurm calls a reason is, of a job that waits, why it waits.
    let tells_failure = bound.slurm.is_none() || attempt.is_final && attempt.state != JobState::Completed;
    attempt.failure_reason = name(&bound.failure_reason).filter(|reason| tells_failure && !is_absent(reason));
    let labels = bound.labels.iter().filter_map(|(label, column)| Some((label.clone(), name(column)?)));
    attempt.labels = labels.collect::<BTreeMap<_, _>>();
    attempt.nodes = match bound.nodes.get(record).map(expand_nodes) {
        None => Vec::new(),
        Some(Ok(nodes)) => nodes.iter().map(|node| names.intern(node)).collect(),
        Some(Err(_)) => {
            seen.unreadable_nodes += 1;
            Vec::new()
        }
    };
    attempt.memory_requested_mib = memory(bound, record);
    attempt.priority = bound.priority.get(record).ok().flatten().and_then(|n| i64::try_from(n).ok());
    attempt.restartable = bound.restartable.get(record).and_then(|word| match word {
        "1" | "true" | "True" | "TRUE" | "yes" | "Yes" => Some(true),
        "0" | "false" | "False" | "FALSE" | "no" | "No" => Some(false),
        _ => None,
    });
}

/// A text, with the words by which Slurm says that there is none left out.
fn text<'r>(bound: &BoundMapping, column: &'r TextColumn, record: &'r Record) -> Option<&'r str> {
    column.get(record).filter(|text| bound.slurm.is_none() || !matches!(*text, "(null)" | "None assigned" | "N/A"))
}

fn time(field: &'static str, column: &TimeColumn, record: &Record) -> Result<Option<Moment>, Refusal> {
    column.get(record).map_err(|error| Refusal::new(field, error.to_string()))
}

fn suspended(bound: &BoundMapping, record: &Record) -> Result<i64, Refusal> {
    match bound.suspended.get_ms(record) {
        Ok(ms) => Ok(ms.unwrap_or(0)),
        Err(error) => Err(Refusal::new("suspended_s", error.to_string())),
    }
}

/// From start to end. Slurm's elapsed time leaves out what was suspended, though the cards stayed allocated.
fn length(bound: &BoundMapping, record: &Record, suspended_ms: i64) -> Result<Option<i64>, Refusal> {
    match bound.duration.get_ms(record) {
        Ok(Some(ms)) if bound.slurm.is_some() => Ok(ms.checked_add(suspended_ms)),
        Ok(ms) => Ok(ms),
        Err(error) => Err(Refusal::new("duration_s", error.to_string())),
    }
}

/// Up to when a row's source vouches for it: what whoever imports says, the row, or the map; else of one that is over its end, else its
/// start or submit, before which nobody vouches for it, and of an open one its length. None: only the whole file can say.
fn as_of(file: &File<'_>, record: &Record, when: &When) -> Result<Option<Timestamp>, Refusal> {
    let own = time("as_of", &file.bound.as_of, record)?.map(Moment::earlier);
    if let Some(own) = own {
        check_past("as_of", own, file.options.now)?;
    }
    let said = file.options.as_of.or(own).or(file.bound.map_as_of);
    if when.is_final {
        return Ok(said.max(when.ended_at.or(when.started_at).or(when.submitted_at)));
    }
    let as_of = said.or(when.vouched_until);
    if let (Some(start), Some(end)) = (when.started_at, as_of) {
        check_length(start, end)?;
    }
    Ok(as_of)
}

fn cluster(file: &mut File<'_>, record: &Record) -> Name {
    match text(file.bound, &file.bound.cluster, record) {
        Some(cluster) => file.names.intern(cluster),
        None => file.options.cluster.clone().unwrap_or_else(|| file.names.intern("")),
    }
}

fn memory(bound: &BoundMapping, record: &Record) -> Option<i64> {
    if let Some(column) = &bound.memory_requested_mib {
        let mib = column.get(record).ok().flatten().map(|mib: Decimal| mib.round())?;
        return i64::try_from(mib).ok().filter(|mib| *mib > 0);
    }
    let slurm = bound.slurm.as_ref()?;
    let text = slurm.req_mem.and_then(|column| record.get(column))?;
    let cpus = slurm.cpu_count.and_then(|column| record.get(column)).and_then(|text| text.parse().ok());
    requested_memory_mib(text, cards::node_count(slurm, record), cpus)
}

fn note_state(seen: &mut Seen, word: Option<&str>) {
    if let Some(word) = word
        && seen.unknown_states.len() < MOST_WORDS_TOLD
        && !seen.unknown_states.contains(word)
    {
        seen.unknown_states.insert(printable(word).chars().take(40).collect());
    }
}

fn latest_of_step(file: &File<'_>, record: &Record) -> Option<Timestamp> {
    let bound = file.bound;
    let is_open = bound.state.get(record).0.is_none_or(JobState::is_open);
    let told = [
        time("", &bound.submitted_at, record),
        time("", &bound.started_at, record),
        if is_open { Ok(None) } else { time("", &bound.ended_at, record) },
    ];
    let times = told.into_iter().flatten().flatten().map(Moment::earlier);
    times.filter(|at| check_past("", *at, file.options.now).is_ok()).max()
}
