//! Columns out of rows.

use crate::{Percent, Reading, Timestamp};
use arrow::array::{ArrayRef, BooleanArray, Decimal128Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use std::fmt::Write;
use std::sync::Arc;

/// Precision and scale of a percent: 100.000.
pub(super) const PERCENT: (u8, i8) = (6, 3);

/// Builds the columns of `rows` one by one; each takes its values from a row.
pub(super) struct Writer<'a, T> {
    rows: &'a [T],
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
    /// Reasons of missing readings, a text a row.
    gaps: Vec<String>,
}

impl<'a, T> Writer<'a, T> {
    pub(super) fn new(rows: &'a [T]) -> Self {
        Self { rows, fields: Vec::new(), arrays: Vec::new(), gaps: vec![String::new(); rows.len()] }
    }

    fn push(mut self, name: &str, may_be_null: bool, array: ArrayRef) -> Self {
        self.fields.push(Field::new(name, array.data_type().clone(), may_be_null));
        self.arrays.push(array);
        self
    }

    pub(super) fn instant(self, name: &str, of: impl Fn(&'a T) -> Timestamp) -> Self {
        let micros = self.rows.iter().map(|row| of(row).unix_ms() * 1000);
        let array = TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC");
        self.push(name, false, Arc::new(array))
    }

    pub(super) fn optional_instant(self, name: &str, of: impl Fn(&'a T) -> Option<Timestamp>) -> Self {
        let micros = self.rows.iter().map(|row| of(row).map(|at| at.unix_ms() * 1000));
        let array = TimestampMicrosecondArray::from_iter(micros).with_timezone("UTC");
        self.push(name, true, Arc::new(array))
    }

    pub(super) fn text(self, name: &str, of: impl Fn(&'a T) -> &'a str) -> Self {
        let array = StringArray::from_iter_values(self.rows.iter().map(of));
        self.push(name, false, Arc::new(array))
    }

    pub(super) fn optional_text(self, name: &str, of: impl Fn(&'a T) -> Option<&'a str>) -> Self {
        let array = StringArray::from_iter(self.rows.iter().map(of));
        self.push(name, true, Arc::new(array))
    }

    pub(super) fn made_text(self, name: &str, of: impl Fn(&'a T) -> Option<String>) -> Self {
        let array = StringArray::from_iter(self.rows.iter().map(of));
        self.push(name, true, Arc::new(array))
    }

    pub(super) fn long(self, name: &str, of: impl Fn(&'a T) -> i64) -> Self {
        let array = Int64Array::from_iter_values(self.rows.iter().map(of));
        self.push(name, false, Arc::new(array))
    }

    pub(super) fn optional_long(self, name: &str, of: impl Fn(&'a T) -> Option<i64>) -> Self {
        let array = Int64Array::from_iter(self.rows.iter().map(of));
        self.push(name, true, Arc::new(array))
    }

    pub(super) fn long_reading(mut self, name: &str, of: impl Fn(&'a T) -> Reading<i64>) -> Self {
        let rows = self.rows;
        let values: Vec<Option<i64>> = rows.iter().enumerate().map(|(i, row)| self.seen(name, i, of(row))).collect();
        self.push(name, true, Arc::new(Int64Array::from(values)))
    }

    pub(super) fn percent_reading(mut self, name: &str, of: impl Fn(&'a T) -> Reading<Percent>) -> Self {
        let rows = self.rows;
        let percent = |percent: Percent| i128::from(percent.thousandths());
        let values: Vec<Option<i128>> =
            rows.iter().enumerate().map(|(i, row)| self.seen(name, i, of(row)).map(percent)).collect();
        let array = Decimal128Array::from(values).with_data_type(DataType::Decimal128(PERCENT.0, PERCENT.1));
        self.push(name, true, Arc::new(array))
    }

    pub(super) fn truth_reading(mut self, name: &str, of: impl Fn(&'a T) -> Reading<bool>) -> Self {
        let rows = self.rows;
        let values: Vec<Option<bool>> = rows.iter().enumerate().map(|(i, row)| self.seen(name, i, of(row))).collect();
        self.push(name, true, Arc::new(BooleanArray::from(values)))
    }

    /// The value, or a note of why there is none.
    fn seen<V>(&mut self, name: &str, row: usize, reading: Reading<V>) -> Option<V> {
        match reading {
            Reading::Seen(value) => Some(value),
            Reading::Missing(gap) => {
                let gaps = &mut self.gaps[row];
                let space = if gaps.is_empty() { "" } else { " " };
                write!(gaps, "{space}{name}={}", gap.name()).expect("a text takes any text");
                None
            }
        }
    }

    /// With the column `gaps`, for rows that have readings.
    pub(super) fn gaps(mut self) -> Self {
        let gaps = std::mem::take(&mut self.gaps);
        let array = StringArray::from_iter(gaps.iter().map(|gaps| (!gaps.is_empty()).then_some(gaps)));
        self.push("gaps", true, Arc::new(array))
    }

    pub(super) fn finish(self) -> RecordBatch {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
            .expect("a value of each row in each column")
    }
}
