//! A settings file as its author wrote it: TOML walked by hand, so that all its faults come at once, each with its line and key.
//!
//! `serde` stops at the first fault and forgets the lines. The price book ([`crate::prices`]) and the billing policy
//! ([`crate::statement::BillingPolicy`]) are read with this, and so is the policy of idle reclaim. Start at [`read`]. Does not: know any key, touch files.

use cardhour_domain::Name;
use rust_decimal::Decimal;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The line it is on, counted from 1.
    pub line: usize,
    /// The key at fault, such as `price[2].per_card_hour`, its tables counted from 1; empty for a text that is no TOML.
    pub key: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

/// All faults of a file, by line; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.reason)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

/// A value with where it stands.
pub type Value<'t> = Spanned<DeValue<'t>>;

/// A table with where it begins and its path: empty at the top, else such as `price[2]`.
#[derive(Clone, Debug)]
pub struct Place<'r, 't> {
    /// The table.
    pub table: &'r DeTable<'t>,
    /// Where it begins. Unit: bytes.
    pub at: usize,
    /// Its path.
    pub path: String,
}

/// What is wrong so far with a text.
pub struct Reader<'t> {
    text: &'t str,
    faults: Vec<Fault>,
}

/// Reads a text: `make` is given its top table, unless it says nothing at all. None for that. Errors: every fault at once.
pub fn read<T>(
    text: &str,
    make: impl FnOnce(&mut Reader<'_>, &Place<'_, '_>) -> Option<T>,
) -> Result<Option<T>, Faults> {
    let (root, syntax) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, faults: Vec::new() };
    for error in syntax {
        reader.fault(error.span().map_or(0, |span| span.start), "", error.message());
    }
    let root = root.get_ref();
    if root.is_empty() && reader.faults.is_empty() {
        return Ok(None);
    }
    let made = make(&mut reader, &Place { table: root, at: 0, path: String::new() });
    match made {
        Some(made) if reader.faults.is_empty() => Ok(Some(made)),
        _ => {
            assert!(!reader.faults.is_empty(), "what can't be made has a fault");
            reader.faults.sort();
            reader.faults.dedup();
            Err(Faults(reader.faults))
        }
    }
}

impl Place<'_, '_> {
    /// The path of a key in it.
    pub fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl Reader<'_> {
    /// A fault at a place in the text.
    pub fn fault(&mut self, at: usize, key: &str, reason: impl ToString) {
        let line = 1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|&&b| b == b'\n').count();
        self.faults.push(Fault { line, key: key.to_owned(), reason: reason.to_string() });
    }

    /// A fault of a value.
    pub fn fault_of(&mut self, value: &Value<'_>, key: &str, reason: impl ToString) {
        self.fault(value.span().start, key, reason);
    }

    /// The tables of an array of tables.
    pub fn tables<'r, 's>(&mut self, place: &Place<'r, 's>, key: &str) -> Vec<Place<'r, 's>> {
        let path = place.key(key);
        let Some(value) = place.table.get(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.fault_of(value, &path, format!("has to be written as [[{path}]]"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (i, item) in (1..).zip(array) {
            let item_path = format!("{path}[{i}]");
            match item.get_ref().as_table() {
                Some(table) => tables.push(Place { table, at: item.span().start, path: item_path }),
                None => self.fault_of(item, &item_path, format!("has to be a table: [[{path}]]")),
            }
        }
        tables
    }

    /// A table in it; none where there is none.
    pub fn table<'r, 's>(&mut self, place: &Place<'r, 's>, key: &str) -> Option<Place<'r, 's>> {
        let value = place.table.get(key)?;
        let path = place.key(key);
        match value.get_ref().as_table() {
            Some(table) => Some(Place { table, at: value.span().start, path }),
            None => {
                self.fault_of(value, &path, format!("has to be a table: [{path}]"));
                None
            }
        }
    }

    /// Each key that isn't among the known is a fault.
    pub fn known_keys(&mut self, place: &Place<'_, '_>, known: &[&str]) {
        for key in place.table.keys() {
            if !known.contains(&&**key.get_ref()) {
                let reason = format!("unknown key; known here are {}", known.join(", "));
                self.fault(key.span().start, &place.key(key.get_ref()), reason);
            }
        }
    }

    /// A value that has to be there, with its path.
    pub fn required<'r, 's>(&mut self, place: &Place<'r, 's>, key: &str) -> Option<(&'r Value<'s>, String)> {
        let path = place.key(key);
        match place.table.get(key) {
            Some(value) => Some((value, path)),
            None => {
                self.fault(place.at, &path, "is missing");
                None
            }
        }
    }

    /// A text.
    pub fn string<'r>(&mut self, value: &'r Value<'_>, key: &str) -> Option<&'r str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.fault_of(value, key, format!("has to be a text in quotes, not {}", value.get_ref().type_str()));
        }
        text
    }

    /// A text that says something, where the key is there.
    pub fn name(&mut self, place: &Place<'_, '_>, key: &str) -> Option<Name> {
        let value = place.table.get(key)?;
        let path = place.key(key);
        match self.string(value, &path)?.trim() {
            "" => {
                self.fault_of(value, &path, "is an empty text; leave the key out");
                None
            }
            text => Some(text.into()),
        }
    }

    /// Yes or no, where the key is there.
    pub fn flag(&mut self, place: &Place<'_, '_>, key: &str) -> Option<bool> {
        let value = place.table.get(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.fault_of(
                value,
                &place.key(key),
                format!("has to be true or false, not {}", value.get_ref().type_str()),
            );
        }
        flag
    }

    /// One of some words, where the key is there.
    pub fn word<T: Copy>(&mut self, place: &Place<'_, '_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = place.table.get(key)?;
        let path = place.key(key);
        let text = self.string(value, &path)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.fault_of(value, &path, format!("{text:?} is none of {}", known.join(", ")));
        }
        found
    }

    /// A part of a whole, from 0 to 1, where the key is there; at most six decimals.
    pub fn part(&mut self, place: &Place<'_, '_>, key: &str) -> Option<Decimal> {
        let value = place.table.get(key)?;
        let path = place.key(key);
        let number = self.decimal(value, &path, 6, i64::MAX)?;
        if number > Decimal::ONE {
            self.fault_of(value, &path, format!("{number} is more than 1: write half as \"0.5\""));
            return None;
        }
        Some(number)
    }

    /// A number that isn't below zero, from a text or as TOML writes it; never through a float.
    pub fn decimal(&mut self, value: &Value<'_>, key: &str, decimals: u32, largest: i64) -> Option<Decimal> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => {
                let reason = format!("has to be a number such as \"18.50\", not {}", other.type_str());
                self.fault_of(value, key, reason);
                return None;
            }
        };
        let reason = match text.trim().parse::<Decimal>() {
            Err(_) => format!("{text:?} is not a number such as \"18.50\""),
            Ok(number) if number.is_sign_negative() && !number.is_zero() => format!("{text} is below zero"),
            Ok(number) if number > Decimal::from(largest) => format!("{text} is more than {largest}"),
            Ok(number) if number.normalize().scale() > decimals => format!("{text} has more than {decimals} decimals"),
            Ok(number) => return Some(number),
        };
        self.fault_of(value, key, reason);
        None
    }
}
