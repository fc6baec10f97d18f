//! Columns whose values repeat: each value once, and runs of rows that have it.

use arrow::array::{ArrayRef, DictionaryArray, Int32Array, RunArray};
use arrow::datatypes::Int32Type;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Builds such a column: an Arrow array of runs, whose values are indexes into the ones that occur.
pub(crate) struct Indexed<T> {
    /// Where each run ends.
    ends: Vec<i32>,
    /// What each run has.
    keys: Vec<Option<i32>>,
    /// Of the last run.
    last: Option<T>,
    values: Vec<T>,
    known: FxHashMap<T, i32>,
}

impl<T: Copy + Eq + Hash> Default for Indexed<T> {
    fn default() -> Self {
        Self { ends: Vec::new(), keys: Vec::new(), last: None, values: Vec::new(), known: FxHashMap::default() }
    }
}

impl<T: Copy + Eq + Hash> Indexed<T> {
    pub(crate) fn of(values: impl Iterator<Item = Option<T>>) -> Self {
        let mut indexed = Self::default();
        indexed.known.reserve(values.size_hint().0.min(1024));
        values.for_each(|value| indexed.push(value, 1));
        indexed
    }

    /// Values that hardly ever repeat: nobody looks whether they do.
    pub(crate) fn each(values: impl Iterator<Item = T>) -> Self {
        let values: Vec<T> = values.collect();
        let n = i32::try_from(values.len()).expect("fewer than 2³¹ rows a file");
        Self { ends: (1..=n).collect(), keys: (0..n).map(Some).collect(), values, ..Self::default() }
    }

    /// For about `rows` runs.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self { ends: Vec::with_capacity(rows), keys: Vec::with_capacity(rows), ..Self::default() }
    }

    pub(crate) fn the_same(value: Option<T>, rows: usize) -> Self {
        let mut indexed = Self::default();
        indexed.push(value, rows);
        indexed
    }

    /// The same value, or none, in `rows` rows more.
    pub(crate) fn push(&mut self, value: Option<T>, rows: usize) {
        let rows = i32::try_from(rows).expect("fewer than 2³¹ rows a file");
        match self.ends.last_mut() {
            _ if rows == 0 => {}
            Some(end) if self.last == value => *end += rows,
            end => {
                let end = end.map_or(0, |end| *end) + rows;
                self.ends.push(end);
                let key = value.map(|value| self.key(value));
                self.keys.push(key);
                self.last = value;
            }
        }
    }

    fn key(&mut self, value: T) -> i32 {
        *self.known.entry(value).or_insert_with(|| {
            self.values.push(value);
            i32::try_from(self.values.len() - 1).expect("no more than rows")
        })
    }

    /// The column. `array`: the values as Arrow has them.
    pub(crate) fn finish(self, array: impl FnOnce(Vec<T>) -> ArrayRef) -> ArrayRef {
        let values = DictionaryArray::<Int32Type>::new(Int32Array::from(self.keys), array(self.values));
        let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(self.ends), &values);
        Arc::new(runs.expect("ends ascend, one a run"))
    }
}
