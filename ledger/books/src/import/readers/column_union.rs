//! The columns of a format whose rows name their own values: the union of the names, in the order in which they first appear.

use crate::import::record::Columns;
use std::collections::HashMap;

/// Columns found by reading an input once before its records are made.
#[derive(Debug, Default)]
pub struct ColumnUnion {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

/// The most columns an input may have: real ones have tens, and each record has a place for every one of them.
pub const MOST_COLUMNS: usize = 4096;

/// The values of one row, put in their columns' places.
#[derive(Debug)]
pub struct Slots<T> {
    values: Vec<Option<T>>,
}

impl ColumnUnion {
    /// The place of a column, a new one where the name is new; none where there are too many.
    ///
    /// `guess`: where it most likely is, since rows name their values in much the same order.
    pub fn add(&mut self, name: &str, guess: usize) -> Option<usize> {
        self.place(name, guess).or_else(|| {
            let place = self.names.len();
            (place < MOST_COLUMNS).then(|| {
                self.names.push(name.to_owned());
                self.places.insert(name.to_owned(), place);
                place
            })
        })
    }

    /// The place of a column, if there is one of that name. `guess` as in [`Self::add`].
    pub fn place(&self, name: &str, guess: usize) -> Option<usize> {
        match self.names.get(guess) {
            Some(guessed) if guessed == name => Some(guess),
            _ => self.places.get(name).copied(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// As columns of records.
    pub fn columns(&self) -> Columns {
        Columns(self.names.clone())
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T: AsRef<str>> Slots<T> {
    /// Puts a value in its place; of two for one place the first stays.
    pub fn put(&mut self, place: usize, value: T) {
        if self.values.len() <= place {
            self.values.resize_with(place + 1, || None);
        }
        self.values[place].get_or_insert(value);
    }

    /// The row as a record of `columns` values, absent ones empty.
    pub fn record(&self, columns: usize) -> csv::StringRecord {
        let length = self.values.iter().flatten().map(|value| value.as_ref().len()).sum();
        let mut record = csv::StringRecord::with_capacity(length, columns);
        for place in 0..columns {
            record.push_field(self.values.get(place).and_then(Option::as_ref).map_or("", T::as_ref));
        }
        record
    }
}
