//! A map's rules bound to the columns of a list, and what they make of a record.

use super::ListError;
use super::sheet::{Sheet, Written};
use crate::attempt::Rejected;
use crate::import::fields::{Kind, kind_of};
use crate::import::jobs::reject;
use crate::import::map::{Fault, MapError, MapFile, Rule};
use crate::import::mapping::read_number;
use crate::import::names::printable;
use crate::import::node_list::expand_nodes;
use crate::import::record::{Columns, Record};
use crate::import::time::TimeReader;
use crate::import::when::Refusal;
use cardhour_domain::{CardShare, Interval, Name, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// Rules by field, each with its columns.
pub struct Rules {
    rules: BTreeMap<String, Bound>,
    columns: Columns,
    zone: Zone,
    cluster: Option<String>,
}

struct Bound {
    rule: Rule,
    /// Where its values stand; several where the list uses several names for it, each in rows of its own.
    columns: Vec<usize>,
    times: Option<usize>,
}

impl Rules {
    /// Binds a map to a list.
    ///
    /// `fields`: those of the list. `others`: other names of columns that stand for our fields where no map says more, such
    /// as scontrol's. Errors: columns that the map names and the list lacks.
    pub fn bind(
        sheet: &Sheet,
        map: &MapFile,
        fields: &[(&str, Kind)],
        others: &[(&str, &str)],
    ) -> Result<Self, ListError> {
        let columns = &sheet.columns;
        let mut rules: BTreeMap<String, Bound> = BTreeMap::new();
        if map.columns.is_none() || sheet.written == Written::Scontrol {
            for (i, column) in columns.0.iter().enumerate() {
                let ours = others.iter().find(|(_, theirs)| theirs == column).map(|(ours, _)| *ours);
                let ours = kind_of(fields, column).map(|_| column.as_str()).or(ours);
                if let Some(ours) = ours {
                    let unbound = || Bound { rule: Rule::default(), columns: Vec::new(), times: None };
                    rules.entry(ours.to_owned()).or_insert_with(unbound).columns.push(i);
                }
            }
        }
        let mut missing = Vec::new();
        let mut place = |key: String, name: &Option<String>| {
            let name = name.as_ref()?;
            let found = columns.0.iter().position(|column| column == name);
            if found.is_none() {
                missing.push(Fault { key, problem: format!("no column {name:?}") });
            }
            found
        };
        for (field, rule) in map.columns.iter().flatten() {
            let columns = place(format!("columns.{field}"), &rule.column).into_iter().collect();
            let times = place(format!("columns.{field}.times"), &rule.times);
            rules.insert(field.clone(), Bound { rule: rule.clone(), columns, times });
        }
        if !missing.is_empty() {
            return Err(MapError::MissingColumns { missing, has: has(columns) }.into());
        }
        Ok(Self { rules, columns: columns.clone(), zone: map.time_zone, cluster: map.cluster.clone() })
    }

    /// Errors: no rule for a field that every row needs. `what`: what it says.
    pub fn require(&self, field: &'static str, what: &'static str) -> Result<(), ListError> {
        match self.rules.contains_key(field) {
            true => Ok(()),
            false => Err(ListError::Missing { what, wanted: field, has: has(&self.columns) }),
        }
    }

    /// Whether a rule says something of a field.
    pub fn knows(&self, field: &str) -> bool {
        self.rules.contains_key(field)
    }

    /// The place of a column of the list.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.0.iter().position(|column| column == name)
    }

    /// The columns of the list, for messages.
    pub fn has(&self) -> Vec<String> {
        has(&self.columns)
    }

    /// The value of a field; a word that a `map` doesn't name is none.
    pub fn text<'a>(&'a self, record: &'a Record, field: &str) -> Option<&'a str> {
        let bound = self.rules.get(field)?;
        let value = bound.columns.iter().find_map(|column| record.get(*column));
        let value = match &bound.rule.map {
            Some(map) => value.and_then(|value| map.get(value).map(String::as_str)),
            None => value,
        };
        value.or(bound.rule.default.as_deref())
    }

    /// The same as a name.
    pub fn name(&self, record: &Record, field: &str) -> Option<Name> {
        self.text(record, field).map(|text| Name::from(&*printable(text)))
    }

    /// The cluster: of the row, else of the map, else empty.
    pub fn cluster(&self, record: &Record) -> Name {
        let of_map = || Name::from(self.cluster.as_deref().unwrap_or_default());
        self.name(record, "cluster").unwrap_or_else(of_map)
    }

    /// A number, multiplied as its rule says.
    pub fn number(&self, record: &Record, field: &'static str) -> Result<Option<Decimal>, Refusal> {
        let refuse = |reason: String| Refusal::new(field, reason);
        let Some(text) = self.text(record, field) else { return Ok(None) };
        let mut number = read_number(text).map_err(refuse)?;
        let bound = &self.rules[field];
        let times = match bound.times {
            Some(column) => match record.get(column) {
                Some(text) => Some(read_number(text).map_err(refuse)?),
                None => return Ok(None),
            },
            None => None,
        };
        for factor in bound.rule.scale.into_iter().chain(times) {
            number = number.checked_mul(factor).ok_or_else(|| refuse("is beyond 28 digits".to_owned()))?;
        }
        Ok(Some(number))
    }

    /// A count of cards.
    pub fn cards(&self, record: &Record) -> Result<Option<CardShare>, Refusal> {
        let share = |cards| CardShare::from_decimal(cards).map_err(|error| Refusal::new("cards", error.to_string()));
        self.number(record, "cards")?.map(share).transpose()
    }

    /// A time; of two that the clock showed, the earlier.
    pub fn time(&self, record: &Record, field: &'static str) -> Result<Option<Timestamp>, Refusal> {
        let Some(text) = self.text(record, field) else { return Ok(None) };
        let rule = &self.rules[field].rule;
        let mut reader = TimeReader::in_zone(self.zone);
        reader.unit = rule.unit.unwrap_or_default();
        reader.epoch = rule.epoch.unwrap_or(reader.epoch);
        let moment = reader.read(text).map_err(|error| Refusal::new(field, error.to_string()))?;
        Ok(moment.map(|moment| moment.earlier()))
    }

    /// From `started_at` to `ended_at`. Errors: either absent, or no time between them.
    pub fn during(&self, record: &Record) -> Result<Interval, Refusal> {
        let need = |field: &'static str, why: &str| {
            let absent = || Refusal::new(field, format!("is absent: {why}"));
            self.time(record, field)?.ok_or_else(absent)
        };
        let start = need("started_at", "say from when")?;
        let end = need("ended_at", "say until when, or up to when it is known to last")?;
        Interval::new(start, end)
            .ok_or_else(|| Refusal::new("ended_at", format!("{end} is not after the start, {start}")))
    }

    /// A host list; none for `ALL` and `*`.
    pub fn nodes(&self, record: &Record, field: &'static str) -> Result<Vec<Name>, Refusal> {
        let Some(text) = self.text(record, field).filter(|text| !matches!(*text, "ALL" | "*")) else {
            return Ok(Vec::new());
        };
        let names = expand_nodes(text).map_err(|error| Refusal::new(field, error.to_string()))?;
        Ok(names.iter().map(|name| Name::from(&*printable(name))).collect())
    }

    /// The labels that a record has.
    pub fn labels(&self, record: &Record) -> BTreeMap<Name, Name> {
        let label = |field: &String| {
            let label = field.strip_prefix("labels.")?;
            Some((Name::from(&*printable(label)), self.name(record, field)?))
        };
        self.rules.keys().filter_map(label).collect()
    }
}

/// A record that was refused, as a row for `quarantine`.
pub fn refused(record: &Record, input: &[u8], refusal: Refusal) -> Rejected {
    reject(input, record.line, &record.text, refusal)
}

/// In TOML a key that is none of ours is a slip of whoever wrote it, not a column that nobody asked for. Errors: names it.
pub fn known_keys(
    sheet: &Sheet,
    record: &Record,
    map: &MapFile,
    fields: &[(&str, Kind)],
    others: &[(&str, &str)],
) -> Result<(), Refusal> {
    if sheet.written != Written::Toml || map.columns.is_some() {
        return Ok(());
    }
    let known = |key: &str| kind_of(fields, key).is_some() || others.iter().any(|(_, other)| *other == key);
    let mut keys = sheet.columns.0.iter().enumerate();
    match keys.find(|(i, key)| !known(key) && record.get(*i).is_some()) {
        None => Ok(()),
        Some((_, key)) => {
            let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
            Err(Refusal::new("", format!("has a key {key:?} that is not known; there are {}", names.join(", "))))
        }
    }
}

fn has(columns: &Columns) -> Vec<String> {
    columns.0.iter().filter(|name| !name.is_empty()).cloned().collect()
}
