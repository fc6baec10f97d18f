//! Rows out of columns.

use super::writer::PERCENT;
use crate::{Gap, Interval, Name, Percent, Reading, Timestamp};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use rustc_hash::FxHashSet;
use std::cell::RefCell;

/// Columns that are not what a stream has.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ColumnError {
    /// A column that must be there isn't.
    #[error("has no column {column}")]
    Missing {
        /// Which.
        column: String,
    },
    /// A column is of another type.
    #[error("column {column} is of type {found}, not {wanted}")]
    WrongType {
        /// Which.
        column: String,
        /// What it is.
        found: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// No value where there must be one.
    #[error("row {row}: {column} is empty")]
    Empty {
        /// Which column.
        column: String,
        /// Which row, counted from 1.
        row: usize,
    },
    /// A value that can't be.
    #[error("row {row}: {column}: {reason}")]
    BadValue {
        /// Which column.
        column: String,
        /// Which row, counted from 1.
        row: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// The columns of a batch by name. Texts are shared between the rows that have them.
pub(super) struct Reader<'a> {
    batch: &'a RecordBatch,
    names: RefCell<FxHashSet<Name>>,
    gaps: Option<Texts>,
}

/// Values of a column, by row.
pub(super) struct Longs(Option<(String, Int64Array)>);
pub(super) struct Texts(Option<(String, StringArray)>);
pub(super) struct Instants(Option<(String, TimestampMicrosecondArray)>);
pub(super) struct Percents(Option<(String, Decimal128Array)>);
pub(super) struct Truths(Option<(String, BooleanArray)>);

impl<'a> Reader<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        let mut reader = Self { batch, names: RefCell::default(), gaps: None };
        reader.gaps = Some(reader.texts("gaps")?);
        Ok(reader)
    }

    pub(super) fn rows(&self) -> std::ops::Range<usize> {
        0..self.batch.num_rows()
    }

    fn column(
        &self,
        name: &str,
        wanted: &'static str,
        is: impl Fn(&DataType) -> bool,
    ) -> Result<Option<ArrayRef>, ColumnError> {
        let Some(array) = self.batch.column_by_name(name) else { return Ok(None) };
        if !is(array.data_type()) {
            let found = array.data_type().to_string();
            return Err(ColumnError::WrongType { column: name.to_owned(), found, wanted });
        }
        Ok(Some(array.clone()))
    }

    pub(super) fn longs(&self, name: &str) -> Result<Longs, ColumnError> {
        let array = self.column(name, "a 64-bit integer", |t| *t == DataType::Int64)?;
        Ok(Longs(array.map(|a| (name.to_owned(), a.as_primitive::<Int64Type>().clone()))))
    }

    pub(super) fn texts(&self, name: &str) -> Result<Texts, ColumnError> {
        // Other writers give texts as views.
        let array =
            self.column(name, "text", |t| matches!(t, DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8))?;
        let plain = |array: ArrayRef| arrow::compute::cast(&array, &DataType::Utf8).expect("any text is one");
        Ok(Texts(array.map(|a| (name.to_owned(), plain(a).as_string::<i32>().clone()))))
    }

    pub(super) fn instants(&self, name: &str) -> Result<Instants, ColumnError> {
        let is = |t: &DataType| matches!(t, DataType::Timestamp(TimeUnit::Microsecond, Some(_)));
        let array = self.column(name, "microseconds of UTC", is)?;
        Ok(Instants(array.map(|a| (name.to_owned(), a.as_primitive::<TimestampMicrosecondType>().clone()))))
    }

    pub(super) fn percents(&self, name: &str) -> Result<Percents, ColumnError> {
        let array = self.column(name, "a decimal(6, 3)", |t| *t == DataType::Decimal128(PERCENT.0, PERCENT.1))?;
        Ok(Percents(array.map(|a| (name.to_owned(), a.as_primitive::<Decimal128Type>().clone()))))
    }

    pub(super) fn truths(&self, name: &str) -> Result<Truths, ColumnError> {
        let array = self.column(name, "true or false", |t| *t == DataType::Boolean)?;
        Ok(Truths(array.map(|a| (name.to_owned(), a.as_boolean().clone()))))
    }

    /// A shared text.
    pub(super) fn name(&self, text: &str) -> Name {
        let mut names = self.names.borrow_mut();
        if let Some(name) = names.get(text) {
            return name.clone();
        }
        let name = Name::from(text);
        names.insert(name.clone());
        name
    }

    /// A reading from its value, or with the reason that the column `gaps` has for it; a value that is absent without one was not recorded.
    pub(super) fn reading<V>(&self, name: &str, row: usize, value: Option<V>) -> Result<Reading<V>, ColumnError> {
        if let Some(value) = value {
            return Ok(Reading::Seen(value));
        }
        let gaps = self.gaps.as_ref().and_then(|gaps| gaps.get(row)).unwrap_or_default();
        let reason = gaps.split(' ').find_map(|gap| gap.strip_prefix(name)?.strip_prefix('='));
        let Some(reason) = reason else { return Ok(Reading::Missing(Gap::NotRecorded)) };
        let gap = Gap::from_name(reason).ok_or_else(|| bad("gaps", row, format!("{reason:?} is no reason we know")))?;
        Ok(Reading::Missing(gap))
    }
}

pub(super) fn bad(column: &str, row: usize, reason: impl Into<String>) -> ColumnError {
    ColumnError::BadValue { column: column.to_owned(), row: row + 1, reason: reason.into() }
}

/// A stretch from its start and length.
pub(super) fn during(starts: &Instants, lengths: &Longs, row: usize) -> Result<Interval, ColumnError> {
    let (start, length_ms) = (starts.must("ts", row)?, lengths.must("interval_ms", row)?);
    let end = start.unix_ms().checked_add(length_ms).map(Timestamp::from_unix_ms);
    end.and_then(|end| Interval::new(start, end))
        .ok_or_else(|| bad("interval_ms", row, format!("{length_ms} is not above zero")))
}

/// The array, where it has a value in the row.
fn present<A: Array>(column: &Option<(String, A)>, row: usize) -> Option<&A> {
    column.as_ref().map(|(_, array)| array).filter(|array| !array.is_null(row))
}

/// A value that must be there, in the column `name`.
fn must<A, V>(column: &Option<(String, A)>, value: Option<V>, name: &str, row: usize) -> Result<V, ColumnError> {
    value.ok_or_else(|| match column {
        Some(_) => ColumnError::Empty { column: name.to_owned(), row: row + 1 },
        None => ColumnError::Missing { column: name.to_owned() },
    })
}

impl Longs {
    /// The value, if there is one.
    pub(super) fn get(&self, row: usize) -> Option<i64> {
        present(&self.0, row).map(|array| array.value(row))
    }

    /// The value that must be there, in the column `name`.
    pub(super) fn must(&self, name: &str, row: usize) -> Result<i64, ColumnError> {
        must(&self.0, self.get(row), name, row)
    }
}

impl Instants {
    /// The value, if there is one.
    pub(super) fn get(&self, row: usize) -> Option<Timestamp> {
        present(&self.0, row).map(|array| Timestamp::from_unix_ms(array.value(row).div_euclid(1000)))
    }

    /// The value that must be there, in the column `name`.
    pub(super) fn must(&self, name: &str, row: usize) -> Result<Timestamp, ColumnError> {
        must(&self.0, self.get(row), name, row)
    }
}

impl Truths {
    /// The value, if there is one.
    pub(super) fn get(&self, row: usize) -> Option<bool> {
        present(&self.0, row).map(|array| array.value(row))
    }
}

impl Texts {
    /// The value, if there is one.
    pub(super) fn get(&self, row: usize) -> Option<&str> {
        present(&self.0, row).map(|array| array.value(row))
    }

    /// The value that must be there, in the column `name`.
    pub(super) fn must(&self, name: &str, row: usize) -> Result<&str, ColumnError> {
        must(&self.0, self.get(row), name, row)
    }
}

impl Percents {
    /// The value, if there is one.
    pub(super) fn get(&self, row: usize) -> Result<Option<Percent>, ColumnError> {
        let Some((name, array)) = self.0.as_ref().filter(|(_, array)| !array.is_null(row)) else { return Ok(None) };
        let thousandths = array.value(row);
        let percent = i32::try_from(thousandths).ok().and_then(Percent::from_thousandths);
        percent
            .map(Some)
            .ok_or_else(|| bad(name, row, format!("{thousandths} thousandths of a percent is not from 0 to 100 %")))
    }
}
