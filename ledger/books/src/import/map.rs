//! The map file: which column of an export is which of our fields (design §7).
//!
//! Read wholly and checked wholly: every fault is reported at once, with the path of its key.

use crate::import::fields::{Kind, kind_of};
use crate::import::readers::{Format, ReaderOptions};
use crate::import::time::{Moment, TimeReader, Unit};
use cardhour_domain::{JobState, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::fmt;
use toml::{Table, Value};

/// A map file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFile {
    /// How the files are written.
    pub format: Option<Format>,
    /// What stands between two fields.
    pub delimiter: Option<String>,
    /// The columns of files without a line of names.
    pub fields: Option<Vec<String>>,
    /// The zone of times that carry none.
    pub time_zone: Zone,
    /// The cluster of rows that name none by a column of the map's.
    pub cluster: Option<String>,
    /// What tells rows apart.
    pub key: RowKey,
    /// Up to when the files speak.
    pub as_of: Option<Timestamp>,
    /// Which of Slurm's resources counts as a card.
    pub cards_from: String,
    /// For `import nodes`: the column that says how many hosts a row stands for.
    pub count: Option<String>,
    /// Rules by field, labels as `labels.NAME`. None: the file has no `[columns]`.
    pub columns: Option<BTreeMap<String, Rule>>,
}

/// What tells rows apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowKey {
    /// The ids they carry.
    #[default]
    Id,
    /// Their content and how many equal ones stood before them, for files without ids.
    Row,
}

/// Where the values of a field come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Their column; none for a rule that is a `default` alone.
    pub column: Option<String>,
    /// Their words and ours.
    pub map: Option<BTreeMap<String, String>>,
    /// What holds where the column has no value.
    pub default: Option<String>,
    /// What a number of time counts.
    pub unit: Option<Unit>,
    /// From where it counts.
    pub epoch: Option<Timestamp>,
    /// What a number is multiplied with.
    pub scale: Option<Decimal>,
    /// Another column that it is multiplied with.
    pub times: Option<String>,
}

impl Rule {
    /// The values of a column as they stand.
    pub fn column(name: &str) -> Self {
        Self { column: Some(name.to_owned()), ..Self::default() }
    }
}

/// A fault in a map file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The key at fault, as a path: `columns.cards.scale`.
    pub key: String,
    /// What is wrong and what may stand there.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

/// Why a map can't be used: a mistake of whoever wrote it, exit code 2.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// It isn't TOML.
    #[error("the map is not TOML: {0}")]
    Syntax(String),
    /// It says what can't be said.
    #[error("the map has {} fault{}: {}", .0.len(), if .0.len() == 1 { "" } else { "s" }, list(.0))]
    Faults(Vec<Fault>),
    /// The file lacks columns that it names.
    #[error("the map names columns that the file lacks: {}; the file has {}", list(.missing), .has.join(", "))]
    MissingColumns {
        /// Which, each with the key that names it.
        missing: Vec<Fault>,
        /// The columns of the file.
        has: Vec<String>,
    },
    /// Nothing says how many cards a job has.
    #[error("nothing says how many cards a job has: {wanted}; the file has {}", .has.join(", "))]
    NoCards {
        /// What would say so.
        wanted: &'static str,
        /// The columns of the file.
        has: Vec<String>,
    },
    /// Nothing says which job a row is.
    #[error(
        "nothing says which job a row is: {wanted}, or key = \"row\" for a file without ids; the file has {}",
        .has.join(", ")
    )]
    NoJobId {
        /// What would say so.
        wanted: &'static str,
        /// The columns of the file.
        has: Vec<String>,
    },
    /// Nothing says when a job was.
    #[error("nothing says when a job started or was submitted: {wanted}; the file has {}", .has.join(", "))]
    NoTime {
        /// What would say so.
        wanted: &'static str,
        /// The columns of the file.
        has: Vec<String>,
    },
}

fn list(faults: &[Fault]) -> String {
    faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; ")
}

impl Default for MapFile {
    /// What holds without a map: times in UTC, rows by their ids, `gres/gpu` as cards, columns by our or Slurm's names.
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            fields: None,
            time_zone: Zone::UTC,
            cluster: None,
            key: RowKey::Id,
            as_of: None,
            cards_from: "gres/gpu".to_owned(),
            count: None,
            columns: None,
        }
    }
}

impl MapFile {
    /// Reads a map whose fields are `fields`, such as [`crate::import::fields::JOB_FIELDS`].
    ///
    /// Errors: not TOML, or any fault in it, all of them at once.
    pub fn parse(text: &str, fields: &[(&str, Kind)]) -> Result<Self, MapError> {
        let table: Table =
            text.parse().map_err(|e: toml::de::Error| MapError::Syntax(e.to_string().trim().to_owned()))?;
        let mut checker = Checker { faults: Vec::new(), zone: Zone::UTC };
        let map = checker.map(&table, fields);
        checker.faults.sort();
        if checker.faults.is_empty() { Ok(map) } else { Err(MapError::Faults(checker.faults)) }
    }

    /// What a reader of the files has to know of the map.
    pub fn reader_options(&self) -> ReaderOptions {
        ReaderOptions { delimiter: self.delimiter.clone(), fields: self.fields.clone() }
    }
}

/// Collects the faults of a map while it is read.
struct Checker {
    faults: Vec<Fault>,
    /// Of times without an offset in the map itself.
    zone: Zone,
}

impl Checker {
    fn fault(&mut self, key: &str, problem: impl Into<String>) {
        self.faults.push(Fault { key: key.to_owned(), problem: problem.into() });
    }

    fn map(&mut self, table: &Table, fields: &[(&str, Kind)]) -> MapFile {
        const KEYS: [&str; 10] =
            ["format", "delimiter", "fields", "time_zone", "cluster", "key", "as_of", "cards_from", "count", "columns"];
        for key in table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            self.fault(key, format!("no such key; there are {}", KEYS.join(", ")));
        }
        let mut map = MapFile::default();
        if let Some(name) = self.text(table, "time_zone", "time_zone") {
            match Zone::parse(&name) {
                Ok(zone) => map.time_zone = zone,
                Err(error) => self.fault("time_zone", error.to_string()),
            }
        }
        self.zone = map.time_zone;
        if let Some(name) = self.text(table, "format", "format") {
            map.format = Format::from_name(&name);
            if map.format.is_none() {
                let names = Format::ALL.map(Format::name).join(", ");
                self.fault("format", format!("{name:?} is no format; there are {names}"));
            }
        }
        map.delimiter = self.text(table, "delimiter", "delimiter");
        map.cluster = self.text(table, "cluster", "cluster");
        map.count = self.text(table, "count", "count");
        if let Some(resource) = self.text(table, "cards_from", "cards_from") {
            map.cards_from = resource;
        }
        match self.text(table, "key", "key").as_deref() {
            None | Some("id") => {}
            Some("row") => map.key = RowKey::Row,
            Some(other) => self.fault("key", format!("{other:?} is neither \"id\" nor \"row\"")),
        }
        map.as_of = table.get("as_of").and_then(|value| self.instant("as_of", value));
        map.fields = table.get("fields").and_then(|value| self.names("fields", value));
        match table.get("columns") {
            None => {}
            Some(Value::Table(columns)) => map.columns = Some(self.columns(columns, fields)),
            Some(_) => self.fault("columns", "is not a table of ours = theirs"),
        }
        map
    }

    fn columns(&mut self, table: &Table, fields: &[(&str, Kind)]) -> BTreeMap<String, Rule> {
        let mut rules = BTreeMap::new();
        let mut add = |checker: &mut Self, name: String, value: &Value| {
            let path = format!("columns.{name}");
            match kind_of(fields, &name) {
                None => {
                    let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
                    checker.fault(&path, format!("no such field; there are {}, labels.NAME", names.join(", ")));
                }
                Some(kind) => {
                    let rule = checker.rule(&path, kind, value);
                    rules.insert(name, rule);
                }
            }
        };
        for (name, value) in table {
            match value {
                Value::Table(labels) if name == "labels" => {
                    for (label, value) in labels {
                        add(self, format!("labels.{label}"), value);
                    }
                }
                _ => add(self, name.clone(), value),
            }
        }
        rules
    }

    fn rule(&mut self, path: &str, kind: Kind, value: &Value) -> Rule {
        let table = match value {
            Value::String(column) => return Rule::column(column),
            Value::Table(table) => table,
            _ => {
                self.fault(path, "is neither the name of a column nor a table with `column`");
                return Rule::default();
            }
        };
        for key in table.keys().filter(|key| *key != "column" && !kind.keys().contains(&key.as_str())) {
            let keys = kind.keys().join(", ");
            self.fault(&format!("{path}.{key}"), format!("no such key here; there are column, {keys}"));
        }
        let text = |checker: &mut Self, key: &str| checker.text(table, key, &format!("{path}.{key}"));
        let mut rule = Rule {
            column: text(self, "column"),
            times: text(self, "times"),
            default: table.get("default").and_then(|value| self.scalar(&format!("{path}.default"), value)),
            ..Rule::default()
        };
        if rule.column.is_none() && rule.default.is_none() {
            self.fault(path, "has neither `column` nor `default`");
        }
        if let Some(unit) = text(self, "unit") {
            rule.unit = Unit::from_name(&unit);
            if rule.unit.is_none() {
                self.fault(&format!("{path}.unit"), format!("{unit:?} is no unit; there are s, ms, us, ns, min, h"));
            }
        }
        rule.epoch = table.get("epoch").and_then(|value| self.instant(&format!("{path}.epoch"), value));
        let scale = table.get("scale").and_then(|value| self.scalar(&format!("{path}.scale"), value));
        if let Some(scale) = scale {
            match Decimal::from_str_exact(&scale) {
                Ok(scale) => rule.scale = Some(scale),
                Err(_) => self.fault(&format!("{path}.scale"), format!("{scale:?} is not a decimal such as \"0.001\"")),
            }
        }
        rule.map = table.get("map").map(|value| self.words(&format!("{path}.map"), kind, value));
        self.check_default(path, kind, &rule);
        rule
    }

    fn check_default(&mut self, path: &str, kind: Kind, rule: &Rule) {
        let Some(default) = &rule.default else { return };
        let problem = match kind {
            Kind::State if JobState::from_name(default).is_none() => not_a_state(default),
            Kind::Number if Decimal::from_str_exact(default).is_err() => format!("{default:?} is not a number"),
            _ => return,
        };
        self.fault(&format!("{path}.default"), problem);
    }

    fn words(&mut self, path: &str, kind: Kind, value: &Value) -> BTreeMap<String, String> {
        let Value::Table(table) = value else {
            self.fault(path, "is not a table of theirs = ours");
            return BTreeMap::new();
        };
        let mut words = BTreeMap::new();
        for (theirs, ours) in table {
            let path = format!("{path}.{theirs}");
            let Some(ours) = self.scalar(&path, ours) else { continue };
            match kind {
                Kind::State if JobState::from_name(&ours).is_none() => self.fault(&path, not_a_state(&ours)),
                Kind::Number if Decimal::from_str_exact(&ours).is_err() => {
                    self.fault(&path, format!("{ours:?} is not a number"));
                }
                _ => {
                    words.insert(theirs.clone(), ours);
                }
            }
        }
        words
    }

    /// A text that is not empty.
    fn text(&mut self, table: &Table, key: &str, path: &str) -> Option<String> {
        match table.get(key)? {
            Value::String(text) if !text.is_empty() => return Some(text.clone()),
            Value::String(_) => self.fault(path, "is empty"),
            _ => self.fault(path, "is not a text in quotes"),
        }
        None
    }

    /// A text, or a number as it is written.
    fn scalar(&mut self, path: &str, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Boolean(word) => Some(word.to_string()),
            Value::Float(_) => {
                self.fault(path, "is a float, which is never exact: write it as a text, such as \"0.001\"");
                None
            }
            _ => {
                self.fault(path, "is not a text");
                None
            }
        }
    }

    fn instant(&mut self, path: &str, value: &Value) -> Option<Timestamp> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Datetime(at) => at.to_string(),
            Value::Integer(s) => s.to_string(),
            _ => String::new(),
        };
        match TimeReader::in_zone(self.zone).read(&text) {
            Ok(Some(moment @ (Moment::Once(_) | Moment::Twice(..)))) => Some(moment.earlier()),
            Ok(None) | Err(_) => {
                self.fault(path, format!("{text:?} is not a time such as \"2026-03-01T00:00:00Z\""));
                None
            }
        }
    }

    fn names(&mut self, path: &str, value: &Value) -> Option<Vec<String>> {
        let names: Option<Vec<String>> =
            value.as_array().and_then(|all| all.iter().map(|name| name.as_str().map(str::to_owned)).collect());
        if names.is_none() {
            self.fault(path, "is not a list of column names");
        }
        names
    }
}

fn not_a_state(word: &str) -> String {
    format!("{word:?} is no state; there are {}", JobState::ALL.map(JobState::name).join(", "))
}

#[cfg(test)]
#[path = "map/tests.rs"]
mod tests;
