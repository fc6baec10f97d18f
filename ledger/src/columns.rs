//! Columns of a batch, written and read by name.
//!
//! A table's one list of columns is the function that writes its rows: its schema is that of the batch of no rows. Only types that Delta
//! Lake and its other readers have are offered here: signed integers, microseconds of UTC, text, decimals, booleans. Unsigned columns are
//! written without complaint and can't be read back, so there are none.

mod indexed;

use crate::Error;
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Decimal128Type, Field, Int32Type, Int64Type, Schema, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use cardhour_domain::{Money, Name, Timestamp};
pub(crate) use indexed::Indexed;
use std::collections::HashMap;
use std::sync::Arc;

/// Builds a batch column by column.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

/// Decimal digits of card-time: any sum of parts × milliseconds.
pub(crate) const CARD_TIME: DataType = DataType::Decimal128(38, 0);

/// Values of a column of card-time, or of several that are the same.
pub(crate) struct CardTimes(ArrayRef);

impl CardTimes {
    pub(crate) fn new(values: Indexed<i128>) -> Self {
        Self(values.finish(|values| Arc::new(Decimal128Array::from(values).with_data_type(CARD_TIME))))
    }
}

impl Columns {
    fn add(mut self, name: &str, array: ArrayRef, nullable: bool) -> Self {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
        self
    }

    pub(crate) fn text<'a>(self, name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        let array = StringArray::from_iter_values(values);
        self.add(name, Arc::new(array), false)
    }

    pub(crate) fn opt_text<'a>(self, name: &str, values: impl Iterator<Item = Option<&'a str>>) -> Self {
        self.add(name, Arc::new(values.collect::<StringArray>()), true)
    }

    /// Text that repeats. Stored as plain text; only faster to write.
    pub(crate) fn indexed_text(self, name: &str, values: Indexed<&str>, nullable: bool) -> Self {
        self.add(name, values.finish(|texts| Arc::new(StringArray::from(texts))), nullable)
    }

    pub(crate) fn indexed_instant(self, name: &str, values: Indexed<Timestamp>, nullable: bool) -> Self {
        let array = |instants: Vec<Timestamp>| {
            let instants = instants.into_iter().map(Timestamp::unix_us);
            Arc::new(TimestampMicrosecondArray::from_iter_values(instants).with_timezone("UTC")) as ArrayRef
        };
        self.add(name, values.finish(array), nullable)
    }

    pub(crate) fn indexed_long(self, name: &str, values: Indexed<i64>, nullable: bool) -> Self {
        self.add(name, values.finish(|numbers| Arc::new(Int64Array::from(numbers))), nullable)
    }

    pub(crate) fn indexed_boolean(self, name: &str, values: Indexed<bool>, nullable: bool) -> Self {
        self.add(name, values.finish(|values| Arc::new(BooleanArray::from(values))), nullable)
    }

    /// A column of which nothing is known yet.
    pub(crate) fn no_text(self, name: &str, rows: usize) -> Self {
        self.add(name, Arc::new(StringArray::new_null(rows)), true)
    }

    /// A column of which nothing is known yet.
    pub(crate) fn no_long(self, name: &str, rows: usize) -> Self {
        self.add(name, Arc::new(Int64Array::new_null(rows)), true)
    }

    pub(crate) fn long(self, name: &str, values: impl Iterator<Item = i64>) -> Self {
        self.add(name, Arc::new(Int64Array::from_iter_values(values)), false)
    }

    pub(crate) fn opt_long(self, name: &str, values: impl Iterator<Item = Option<i64>>) -> Self {
        self.add(name, Arc::new(values.collect::<Int64Array>()), true)
    }

    pub(crate) fn instant(self, name: &str, values: impl Iterator<Item = Timestamp>) -> Self {
        let array = TimestampMicrosecondArray::from_iter_values(values.map(Timestamp::unix_us)).with_timezone("UTC");
        self.add(name, Arc::new(array), false)
    }

    pub(crate) fn opt_instant(self, name: &str, values: impl Iterator<Item = Option<Timestamp>>) -> Self {
        let array: TimestampMicrosecondArray = values.map(|at| at.map(Timestamp::unix_us)).collect();
        self.add(name, Arc::new(array.with_timezone("UTC")), true)
    }

    /// Whole numbers of up to 38 digits.
    pub(crate) fn card_time(self, name: &str, values: &CardTimes, nullable: bool) -> Self {
        self.add(name, values.0.clone(), nullable)
    }

    /// Millionths, as a decimal with six places.
    pub(crate) fn indexed_micros(self, name: &str, values: Indexed<i128>, nullable: bool) -> Self {
        let array = |micros| Arc::new(Decimal128Array::from(micros).with_data_type(DataType::Decimal128(20, 6))) as _;
        self.add(name, values.finish(array), nullable)
    }

    /// Millionths, as a decimal with six places.
    pub(crate) fn opt_micros(self, name: &str, values: impl Iterator<Item = Option<i128>>) -> Self {
        let array = values.collect::<Decimal128Array>().with_data_type(DataType::Decimal128(20, 6));
        self.add(name, Arc::new(array), true)
    }

    /// Amounts, as a decimal with six places.
    pub(crate) fn money(self, name: &str, values: impl Iterator<Item = Option<Money>>) -> Self {
        let micros: Decimal128Array = values.map(|amount| amount.map(Money::micros)).collect();
        self.add(name, Arc::new(micros.with_data_type(DataType::Decimal128(38, 6))), true)
    }

    pub(crate) fn finish(self) -> RecordBatch {
        let schema = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays).expect("columns of one batch have one length")
    }
}

/// Reads a batch by column names.
pub(crate) struct Rows<'a> {
    pub(crate) table: &'static str,
    pub(crate) batch: &'a RecordBatch,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(table: &'static str, batch: &'a RecordBatch) -> Self {
        Self { table, batch }
    }

    fn column(&self, name: &str) -> Result<&'a ArrayRef, Error> {
        self.batch.column_by_name(name).ok_or_else(|| Error::damaged(self.table, format!("no column {name}")))
    }

    fn wrong(&self, name: &str, array: &ArrayRef) -> Error {
        Error::damaged(self.table, format!("column {name} is of type {}", array.data_type()))
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'a StringArray, Error> {
        let array = self.column(name)?;
        array.as_string_opt::<i32>().ok_or_else(|| self.wrong(name, array))
    }

    /// Text of a column that rows of an earlier landing lack; none of those.
    pub(crate) fn later_text(&self, name: &str) -> Result<Option<&'a StringArray>, Error> {
        self.batch.column_by_name(name).map(|_| self.text(name)).transpose()
    }

    pub(crate) fn indexed(&self, name: &str) -> Result<(&'a Int32Array, &'a StringArray), Error> {
        let array = self.column(name)?;
        let indexed = array.as_dictionary_opt::<Int32Type>().ok_or_else(|| self.wrong(name, array))?;
        let values = indexed.values().as_string_opt::<i32>().ok_or_else(|| self.wrong(name, array))?;
        Ok((indexed.keys(), values))
    }

    pub(crate) fn long(&self, name: &str) -> Result<&'a Int64Array, Error> {
        let array = self.column(name)?;
        array.as_primitive_opt::<Int64Type>().ok_or_else(|| self.wrong(name, array))
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<&'a BooleanArray, Error> {
        let array = self.column(name)?;
        array.as_boolean_opt().ok_or_else(|| self.wrong(name, array))
    }

    pub(crate) fn instants(&self, name: &str) -> Result<&'a TimestampMicrosecondArray, Error> {
        let array = self.column(name)?;
        array.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(|| self.wrong(name, array))
    }

    pub(crate) fn decimals(&self, name: &str) -> Result<&'a Decimal128Array, Error> {
        let array = self.column(name)?;
        array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| self.wrong(name, array))
    }
}

/// The value of a row, absent where it is null.
pub(crate) fn opt_text(array: &StringArray, row: usize) -> Option<&str> {
    array.is_valid(row).then(|| array.value(row))
}

/// The instant of a row, absent where it is null.
pub(crate) fn opt_instant(array: &TimestampMicrosecondArray, row: usize) -> Option<Timestamp> {
    array.is_valid(row).then(|| Timestamp::from_unix_us(array.value(row)))
}

/// The number of a row, absent where it is null.
pub(crate) fn opt_long(array: &Int64Array, row: usize) -> Option<i64> {
    array.is_valid(row).then(|| array.value(row))
}

/// Names that many rows share, each held once.
#[derive(Default)]
pub(crate) struct Interned {
    names: HashMap<Box<str>, Name>,
}

impl Interned {
    pub(crate) fn get(&mut self, text: &str) -> Name {
        if let Some(name) = self.names.get(text) {
            return name.clone();
        }
        let name: Name = text.into();
        self.names.insert(text.into(), name.clone());
        name
    }

    pub(crate) fn opt(&mut self, array: &StringArray, row: usize) -> Option<Name> {
        opt_text(array, row).map(|text| self.get(text))
    }
}
