//! A map bound to the columns of a file: where in a record each of our fields stands.
//!
//! Slurm's formats know their own columns (`JobID`, `AllocTRES`, …, in any case of letters) and the map overrides them. In
//! the others a map says all, and without a `[columns]` our own names are the columns.

use crate::import::duration::{Length, LengthError, read_length};
use crate::import::fields::{JOB_FIELDS, kind_of};
use crate::import::map::{Fault, MapError, MapFile, RowKey, Rule};
use crate::import::readers::Format;
use crate::import::record::{Columns, Record};
use crate::import::time::{Moment, TimeError, TimeReader, Unit};
use crate::import::when::OverBy;
use cardhour_domain::{JobState, Name, Timestamp};
use rust_decimal::Decimal;
use std::collections::{BTreeMap, HashMap};

/// What is known of a file before it is opened: how it is written, and the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// How it is written.
    pub format: Format,
    /// The map; [`MapFile::default`] without one.
    pub map: MapFile,
}

/// Slurm's columns and our fields, in the order of preference where several of Slurm's say the same.
const SLURM_COLUMNS: &[(&str, &[&str])] = &[
    ("cluster", &["cluster"]),
    ("job_id", &["jobid", "jobidraw"]),
    ("job_id_raw", &["jobidraw"]),
    ("attempt", &["restarts"]),
    ("db_index", &["dbindex"]),
    ("sluid", &["sluid"]),
    ("project", &["account"]),
    ("user", &["user"]),
    ("queue", &["partition"]),
    ("state", &["state"]),
    ("submitted_at", &["submit"]),
    ("started_at", &["start"]),
    ("ended_at", &["end"]),
    ("duration_s", &["elapsedraw", "elapsed"]),
    ("suspended_s", &["suspended"]),
    ("nodes", &["nodelist"]),
    ("reservation", &["reservation"]),
    ("exit_code", &["exitcode"]),
    ("failure_reason", &["reason"]),
    ("priority", &["priority"]),
    ("labels.qos", &["qos"]),
    ("labels.name", &["jobname"]),
    ("labels.comment", &["comment"]),
    ("labels.group", &["group"]),
];

/// A text field.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextColumn {
    column: Option<usize>,
    map: Option<HashMap<String, String>>,
    default: Option<String>,
}

impl TextColumn {
    /// What holds where the column has no value.
    pub(crate) fn fallback(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Its value in a record; a word that the map doesn't name is none.
    pub(crate) fn get<'a>(&'a self, record: &'a Record) -> Option<&'a str> {
        let value = self.column.and_then(|column| record.get(column));
        let value = match &self.map {
            Some(map) => value.and_then(|value| map.get(value).map(String::as_str)),
            None => value,
        };
        value.or(self.default.as_deref())
    }
}

/// The state.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateColumn {
    column: Option<usize>,
    map: Option<HashMap<String, JobState>>,
    default: Option<JobState>,
}

impl StateColumn {
    /// The state, and the word where it is an unknown one. Words are Slurm's or ours where no map names them.
    pub(crate) fn get<'a>(&self, record: &'a Record) -> (Option<JobState>, Option<&'a str>) {
        let Some(word) = self.column.and_then(|column| record.get(column)) else { return (self.default, None) };
        let state = match &self.map {
            Some(map) => map.get(word).copied().unwrap_or(JobState::Unknown),
            None => match crate::import::slurm::state_of(word) {
                JobState::Unknown => JobState::from_name(word).unwrap_or(JobState::Unknown),
                state => state,
            },
        };
        (Some(state), (state == JobState::Unknown).then_some(word))
    }
}

/// An instant.
#[derive(Clone, Debug)]
pub(crate) struct TimeColumn {
    text: TextColumn,
    reader: TimeReader,
}

impl TimeColumn {
    /// Its value in a record. Errors: a text that is no time.
    pub(crate) fn get(&self, record: &Record) -> Result<Option<Moment>, TimeError> {
        self.text.get(record).map_or(Ok(None), |text| self.reader.read(text))
    }
}

/// A length of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct LengthColumn {
    text: TextColumn,
    unit: Unit,
}

impl LengthColumn {
    /// Its value in a record. Unit: milliseconds. None: absent or unlimited. Errors: a text that is no length.
    pub(crate) fn get_ms(&self, record: &Record) -> Result<Option<i64>, LengthError> {
        let length = self.text.get(record).map_or(Ok(None), |text| read_length(text, self.unit))?;
        Ok(length.and_then(Length::ms))
    }
}

/// A number.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberColumn {
    text: TextColumn,
    scale: Option<Decimal>,
    times: Option<usize>,
}

impl NumberColumn {
    /// Its value in a record, exact. Errors: a text that is no number, or a product beyond 28 digits.
    pub(crate) fn get(&self, record: &Record) -> Result<Option<Decimal>, String> {
        let Some(mut number) = self.text.get(record).map(read_number).transpose()? else { return Ok(None) };
        let too_large = || "is beyond 28 digits".to_owned();
        if let Some(scale) = self.scale {
            number = number.checked_mul(scale).ok_or_else(too_large)?;
        }
        if let Some(column) = self.times {
            let Some(times) = record.get(column).map(read_number).transpose()? else { return Ok(None) };
            number = number.checked_mul(times).ok_or_else(too_large)?;
        }
        Ok(Some(number))
    }
}

/// Reads a decimal number, `1.5e3` too. Errors: the reason, which names the text.
pub(crate) fn read_number(text: &str) -> Result<Decimal, String> {
    if text.len() <= 9 && text.bytes().all(|c| c.is_ascii_digit()) {
        return Ok(Decimal::from(text.bytes().fold(0u32, |n, c| n * 10 + u32::from(c - b'0'))));
    }
    Decimal::from_str_exact(text)
        .or_else(|_| Decimal::from_scientific(text))
        .map_err(|_| format!("{:?} is not a number", text.chars().take(80).collect::<String>()))
}

/// Where Slurm's texts of resources stand.
#[derive(Clone, Debug)]
pub(crate) struct SlurmResources {
    /// Which resource counts as a card.
    pub(crate) cards_from: String,
    pub(crate) alloc_tres: Option<usize>,
    pub(crate) alloc_gres: Option<usize>,
    pub(crate) req_tres: Option<usize>,
    pub(crate) req_gres: Option<usize>,
    pub(crate) req_mem: Option<usize>,
    pub(crate) node_count: Option<usize>,
    pub(crate) cpu_count: Option<usize>,
}

/// A map bound to the columns of a file.
#[derive(Clone, Debug)]
pub struct BoundMapping {
    pub(crate) over_by: OverBy,
    pub(crate) key: RowKey,
    pub(crate) map_as_of: Option<Timestamp>,
    /// Slurm's own columns; none in other formats.
    pub(crate) slurm: Option<SlurmResources>,
    pub(crate) cluster: TextColumn,
    pub(crate) job_id: TextColumn,
    pub(crate) job_id_raw: TextColumn,
    pub(crate) attempt: NumberColumn,
    pub(crate) db_index: TextColumn,
    pub(crate) sluid: TextColumn,
    pub(crate) pod_uid: TextColumn,
    pub(crate) org: TextColumn,
    pub(crate) project: TextColumn,
    pub(crate) user: TextColumn,
    pub(crate) queue: TextColumn,
    pub(crate) class: TextColumn,
    pub(crate) model: TextColumn,
    pub(crate) mig_profile: TextColumn,
    pub(crate) labels: Vec<(Name, TextColumn)>,
    pub(crate) state: StateColumn,
    pub(crate) submitted_at: TimeColumn,
    pub(crate) started_at: TimeColumn,
    pub(crate) ended_at: TimeColumn,
    pub(crate) as_of: TimeColumn,
    pub(crate) duration: LengthColumn,
    pub(crate) suspended: LengthColumn,
    /// None where no rule says them: then Slurm's resources do, or the card that the row names.
    pub(crate) cards: Option<NumberColumn>,
    pub(crate) cards_requested: Option<NumberColumn>,
    pub(crate) share: Option<NumberColumn>,
    pub(crate) card_uuid: TextColumn,
    pub(crate) nodes: TextColumn,
    pub(crate) memory_requested_mib: Option<NumberColumn>,
    pub(crate) reservation: TextColumn,
    pub(crate) image: TextColumn,
    pub(crate) exit_code: TextColumn,
    pub(crate) failure_reason: TextColumn,
    pub(crate) artifact_uri: TextColumn,
    pub(crate) priority: NumberColumn,
    pub(crate) restartable: TextColumn,
}

impl Mapping {
    /// Without a map: Slurm's columns for its formats, ours for the others.
    pub fn without_map(format: Format) -> Self {
        Self { format, map: MapFile::default() }
    }

    /// Finds every column that the map names in the file's.
    ///
    /// Errors: columns that the file lacks, all at once; nothing that says which job a row is, when it was or how many cards it
    /// had.
    pub fn bind(&self, columns: &Columns) -> Result<BoundMapping, MapError> {
        let is_slurm = matches!(self.format, Format::Sacct | Format::SacctJson | Format::SacctKv);
        let mut binder = Binder { map: &self.map, columns, is_slurm, missing: Vec::new(), rules: BTreeMap::new() };
        binder.choose_rules();
        let bound = binder.bind();
        if !binder.missing.is_empty() {
            binder.missing.sort();
            return Err(MapError::MissingColumns { missing: binder.missing, has: has(columns) });
        }
        binder.check(&bound)?;
        Ok(bound)
    }
}

/// The columns of a file that can be named.
fn has(columns: &Columns) -> Vec<String> {
    columns.0.iter().filter(|name| !name.is_empty()).cloned().collect()
}

struct Binder<'a> {
    map: &'a MapFile,
    columns: &'a Columns,
    is_slurm: bool,
    missing: Vec<Fault>,
    rules: BTreeMap<String, Rule>,
}

impl Binder<'_> {
    fn choose_rules(&mut self) {
        if self.is_slurm {
            for (field, theirs) in SLURM_COLUMNS {
                if let Some(column) = theirs.iter().find_map(|name| self.find(name)) {
                    self.rules.insert((*field).to_owned(), Rule::column(&self.columns.0[column]));
                }
            }
        } else if self.map.columns.is_none() {
            for name in self.columns.0.iter().filter(|name| kind_of(JOB_FIELDS, name).is_some()) {
                self.rules.insert(name.clone(), Rule::column(name));
            }
        }
        self.rules.extend(self.map.columns.iter().flatten().map(|(field, rule)| (field.clone(), rule.clone())));
        // A fixed cluster goes before Slurm's own column, and stands in where a column of the map's is empty.
        if let Some(cluster) = &self.map.cluster {
            let named = self.map.columns.as_ref().and_then(|rules| rules.get("cluster")).cloned();
            let rule = Rule { default: Some(cluster.clone()), ..named.unwrap_or_default() };
            self.rules.insert("cluster".to_owned(), rule);
        }
    }

    /// The place of a column. Slurm writes its names in any case of letters.
    fn find(&self, name: &str) -> Option<usize> {
        let exact = self.columns.0.iter().position(|column| column == name);
        exact.or_else(|| self.columns.0.iter().position(|column| self.is_slurm && column.eq_ignore_ascii_case(name)))
    }

    fn place(&mut self, key: String, name: &str) -> Option<usize> {
        let found = self.find(name);
        if found.is_none() {
            self.missing.push(Fault { key, problem: format!("no column {name:?}") });
        }
        found
    }

    fn rule(&mut self, field: &str) -> Option<(Rule, Option<usize>)> {
        let rule = self.rules.get(field)?.clone();
        let column = match &rule.column {
            Some(name) => self.place(format!("columns.{field}"), name),
            None => None,
        };
        Some((rule, column))
    }

    fn text(&mut self, field: &str) -> TextColumn {
        let Some((rule, column)) = self.rule(field) else { return TextColumn::default() };
        TextColumn { column, map: rule.map.map(|map| map.into_iter().collect()), default: rule.default }
    }

    fn state(&mut self) -> StateColumn {
        let Some((rule, column)) = self.rule("state") else { return StateColumn::default() };
        let state = |word: &String| JobState::from_name(word).unwrap_or(JobState::Unknown);
        StateColumn {
            column,
            map: rule.map.map(|map| map.iter().map(|(theirs, ours)| (theirs.clone(), state(ours))).collect()),
            default: rule.default.as_ref().map(state),
        }
    }

    fn time(&mut self, field: &str) -> TimeColumn {
        let (unit, epoch) = self.rules.get(field).map(|rule| (rule.unit, rule.epoch)).unwrap_or_default();
        let reader = TimeReader {
            unit: unit.unwrap_or_default(),
            epoch: epoch.unwrap_or(Timestamp::from_unix_ms(0)),
            // Slurm writes 0 for a time that isn't yet; a trace may begin at 0.
            zero_is_absent: self.is_slurm && epoch.is_none(),
            zone: self.map.time_zone,
        };
        TimeColumn { text: self.text(field), reader }
    }

    fn length(&mut self, field: &str) -> LengthColumn {
        let unit = self.rules.get(field).and_then(|rule| rule.unit).unwrap_or_default();
        LengthColumn { text: self.text(field), unit }
    }

    fn number(&mut self, field: &str) -> Option<NumberColumn> {
        let (rule, column) = self.rule(field)?;
        let times = match &rule.times {
            Some(name) => self.place(format!("columns.{field}.times"), name),
            None => None,
        };
        let text = TextColumn { column, map: rule.map.map(|map| map.into_iter().collect()), default: rule.default };
        Some(NumberColumn { text, scale: rule.scale, times })
    }

    fn labels(&mut self) -> Vec<(Name, TextColumn)> {
        let fields: Vec<String> = self.rules.keys().filter(|field| field.starts_with("labels.")).cloned().collect();
        fields.iter().map(|field| (Name::from(&field["labels.".len()..]), self.text(field))).collect()
    }

    fn slurm(&self) -> Option<SlurmResources> {
        self.is_slurm.then(|| SlurmResources {
            cards_from: self.map.cards_from.clone(),
            alloc_tres: self.find("alloctres"),
            alloc_gres: self.find("allocgres"),
            req_tres: self.find("reqtres"),
            req_gres: self.find("reqgres"),
            req_mem: self.find("reqmem"),
            node_count: self.find("nnodes").or_else(|| self.find("allocnodes")).or_else(|| self.find("reqnodes")),
            cpu_count: self.find("reqcpus").or_else(|| self.find("ncpus")).or_else(|| self.find("alloccpus")),
        })
    }

    fn bind(&mut self) -> BoundMapping {
        let over_by = if self.is_slurm && self.rules.contains_key("state") {
            OverBy::State
        } else if self.rules.contains_key("ended_at") || !self.rules.contains_key("duration_s") {
            OverBy::End
        } else {
            OverBy::Length
        };
        BoundMapping {
            over_by,
            key: self.map.key,
            map_as_of: self.map.as_of,
            slurm: self.slurm(),
            cluster: self.text("cluster"),
            job_id: self.text("job_id"),
            job_id_raw: self.text("job_id_raw"),
            attempt: self.number("attempt").unwrap_or_default(),
            db_index: self.text("db_index"),
            sluid: self.text("sluid"),
            pod_uid: self.text("pod_uid"),
            org: self.text("org"),
            project: self.text("project"),
            user: self.text("user"),
            queue: self.text("queue"),
            class: self.text("class"),
            model: self.text("model"),
            mig_profile: self.text("mig_profile"),
            labels: self.labels(),
            state: self.state(),
            submitted_at: self.time("submitted_at"),
            started_at: self.time("started_at"),
            ended_at: self.time("ended_at"),
            as_of: self.time("as_of"),
            duration: self.length("duration_s"),
            suspended: self.length("suspended_s"),
            cards: self.number("cards"),
            cards_requested: self.number("cards_requested"),
            share: self.number("share"),
            card_uuid: self.text("card_uuid"),
            nodes: self.text("nodes"),
            memory_requested_mib: self.number("memory_requested_mib"),
            reservation: self.text("reservation"),
            image: self.text("image"),
            exit_code: self.text("exit_code"),
            failure_reason: self.text("failure_reason"),
            artifact_uri: self.text("artifact_uri"),
            priority: self.number("priority").unwrap_or_default(),
            restartable: self.text("restartable"),
        }
    }

    /// Whether the rules say enough to book anything. A file that doesn't say how many cards is refused as a whole: its jobs
    /// would otherwise hold nothing (LED-3).
    fn check(&self, bound: &BoundMapping) -> Result<(), MapError> {
        let has = || has(self.columns);
        let named = |field| self.rules.contains_key(field);
        if bound.key == RowKey::Id && !named("job_id") {
            let wanted = if self.is_slurm { "export JobID" } else { "name job_id in the map" };
            return Err(MapError::NoJobId { wanted, has: has() });
        }
        if !named("started_at") {
            let wanted = if self.is_slurm { "export Start" } else { "name started_at in the map" };
            return Err(MapError::NoTime { wanted, has: has() });
        }
        let by_rule = named("cards") || named("share") || named("card_uuid");
        let by_slurm = bound.slurm.as_ref().is_some_and(|slurm| {
            slurm.alloc_tres.is_some()
                || slurm.cards_from.starts_with("gres/") && (slurm.alloc_gres.is_some() || slurm.req_gres.is_some())
        });
        if !by_rule && !by_slurm {
            let wanted = if self.is_slurm {
                "export AllocTRES (AllocGRES before Slurm 20.11), or name cards in the map"
            } else {
                "name cards, share or card_uuid in the map"
            };
            return Err(MapError::NoCards { wanted, has: has() });
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "mapping/tests.rs"]
mod tests;
