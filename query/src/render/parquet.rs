//! Columns as Apache Parquet.

use crate::error::Error;
use arrow::array::{ArrayRef, Decimal128Array, Int64Array, StringArray};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use cardhour_books::table::{Kind, Table, Value};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// Decimals of every decimal column: hours, ratios and money have at most six.
const SCALE: i8 = 6;

/// A report as columns. Shape: texts Utf8, counts Int64, the rest Decimal128(38, 6); every column may be null. Errors: a
/// column whose values aren't of its kind.
pub fn batch(table: &Table) -> Result<RecordBatch, Error> {
    let mut fields = Vec::with_capacity(table.columns.len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(table.columns.len());
    for (i, column) in table.columns.iter().enumerate() {
        let values = table.rows.iter().map(|row| &row[i]);
        let array: ArrayRef = match column.kind {
            Kind::Text => Arc::new(values.map(text).collect::<StringArray>()),
            Kind::Count => Arc::new(values.map(count).collect::<Int64Array>()),
            Kind::Hours | Kind::Ratio | Kind::Money => {
                Arc::new(values.map(decimal).collect::<Decimal128Array>().with_precision_and_scale(38, SCALE)?)
            }
        };
        fields.push(Field::new(&column.name, array.data_type().clone(), true));
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(table.rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

/// Record batches as one Parquet file. Errors: a type that Parquet doesn't know.
pub fn write(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>, Error> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties))?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?)
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Absent => None,
        Value::Text(text) => Some(text.to_string()),
        Value::Count(count) => Some(count.to_string()),
        Value::Decimal(decimal) => Some(decimal.to_string()),
    }
}

fn count(value: &Value) -> Option<i64> {
    match value {
        Value::Count(count) => Some(i64::try_from(*count).expect("fewer than 2^63 of anything")),
        Value::Absent => None,
        other => panic!("a column of counts holds {other:?}"),
    }
}

fn decimal(value: &Value) -> Option<i128> {
    match value {
        Value::Decimal(decimal) => {
            let scale = u32::from(SCALE.unsigned_abs());
            assert!(decimal.scale() <= scale, "LED-6: {decimal} has more than {SCALE} decimals");
            Some(decimal.mantissa() * 10i128.pow(scale - decimal.scale()))
        }
        Value::Absent => None,
        other => panic!("a column of decimals holds {other:?}"),
    }
}
