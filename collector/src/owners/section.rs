//! A section of the config, read key by key, so that every fault in it is told at once.

use cardhour_domain::Name;
use std::fmt;
use toml::{Table, Value};

/// A fault in the config, with where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key's path, such as `owners.account[2].project`.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// One section. Each key is taken once; what nobody took in the end is a key that doesn't exist.
pub(super) struct Section<'t> {
    path: String,
    table: &'t Table,
    taken: Vec<&'static str>,
}

impl<'t> Section<'t> {
    pub(super) fn new(path: String, table: &'t Table) -> Self {
        Self { path, table, taken: Vec::new() }
    }

    fn take(&mut self, key: &'static str) -> Option<(String, &'t Value)> {
        self.taken.push(key);
        self.table.get(key).map(|value| (format!("{}.{key}", self.path), value))
    }

    /// A text, which is not empty.
    pub(super) fn text(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Option<Name> {
        let (path, value) = self.take(key)?;
        text_at(path, value, faults)
    }

    /// A text that must be there.
    pub(super) fn needed(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Option<Name> {
        if !self.table.contains_key(key) {
            self.taken.push(key);
            faults.push(Fault { path: format!("{}.{key}", self.path), what: "missing".to_owned() });
            return None;
        }
        self.text(key, faults)
    }

    /// Texts in a list; none where the key isn't there.
    pub(super) fn texts(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Option<Vec<Name>> {
        let (path, value) = self.take(key)?;
        let Some(list) = value.as_array() else {
            faults.push(Fault { path, what: format!("not a list of texts but {}", value.type_str()) });
            return None;
        };
        let texts = list.iter().enumerate().filter_map(|(i, value)| text_at(format!("{path}[{i}]"), value, faults));
        Some(texts.collect())
    }

    /// A whole number from 1 to `most`.
    pub(super) fn count(&mut self, key: &'static str, most: usize, faults: &mut Vec<Fault>) -> Option<usize> {
        let (path, value) = self.take(key)?;
        let count = value.as_integer().and_then(|count| usize::try_from(count).ok());
        let count = count.filter(|count| (1..=most).contains(count));
        if count.is_none() {
            faults.push(Fault { path, what: format!("not a whole number from 1 to {most}") });
        }
        count
    }

    /// The sections of a list `[[key]]`, each with its number, counted from 0 as in the path.
    pub(super) fn list(&mut self, key: &'static str, faults: &mut Vec<Fault>) -> Vec<Section<'t>> {
        let Some((path, value)) = self.take(key) else { return Vec::new() };
        let Some(list) = value.as_array() else {
            faults.push(Fault { path, what: format!("not a list of sections [[{key}]] but {}", value.type_str()) });
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (i, value) in list.iter().enumerate() {
            let path = format!("{path}[{i}]");
            match value.as_table() {
                Some(table) => sections.push(Section::new(path, table)),
                None => faults.push(Fault { path, what: format!("not a section but {}", value.type_str()) }),
            }
        }
        sections
    }

    /// Adds a fault of one of its keys.
    pub(super) fn fault(&self, key: &str, what: String, faults: &mut Vec<Fault>) {
        faults.push(Fault { path: format!("{}.{key}", self.path), what });
    }

    /// Names the keys that nobody took.
    pub(super) fn finish(self, faults: &mut Vec<Fault>) {
        for key in self.table.keys().filter(|key| !self.taken.contains(&key.as_str())) {
            let what = format!("no such key; known here: {}", self.taken.join(", "));
            faults.push(Fault { path: format!("{}.{key}", self.path), what });
        }
    }
}

fn text_at(path: String, value: &Value, faults: &mut Vec<Fault>) -> Option<Name> {
    match value.as_str() {
        Some("") => faults.push(Fault { path, what: "empty; leave it out instead".to_owned() }),
        Some(text) => return Some(Name::from(text)),
        None => faults.push(Fault { path, what: format!("not a text in quotes but {}", value.type_str()) }),
    }
    None
}
