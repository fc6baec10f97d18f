//! Parquet as rows of text, which the reader of csv takes: one road for every format from there on.
//!
//! Instants are written as RFC 3339, lists of texts with commas, absent values as nothing.

use crate::error::Error;
use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use axum::body::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;

/// Rows decoded together.
const BATCH_ROWS: usize = 8192;

/// The rows of a Parquet file as csv with a header. `name`: for errors. Errors: it is no Parquet, or damaged.
pub fn to_csv(bytes: Bytes, name: &str) -> Result<Vec<u8>, Error> {
    // A footer that was damaged may say what the reader takes for impossible, and asserts.
    let written = std::panic::catch_unwind(AssertUnwindSafe(|| written(bytes, name)));
    written.unwrap_or_else(|_| {
        let source = Box::new(parquet::errors::ParquetError::General("its footer contradicts itself".to_owned()));
        Err(Error::ParquetInput { file: name.to_owned(), source })
    })
}

fn written(bytes: Bytes, name: &str) -> Result<Vec<u8>, Error> {
    let failed =
        |error: parquet::errors::ParquetError| Error::ParquetInput { file: name.to_owned(), source: Box::new(error) };
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(failed)?;
    let header: Vec<String> = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(failed)?;
    let mut out = csv::Writer::from_writer(Vec::new());
    let written = "csv into memory";
    out.write_record(&header).expect(written);
    let options = FormatOptions::default().with_null("");
    let mut text = String::new();
    for batch in reader {
        let batch = batch.map_err(|error| failed(error.into()))?;
        let columns = batch
            .columns()
            .iter()
            .map(|column| match column.data_type() {
                // A dictionary's values are looked up once here instead of at each row.
                DataType::Dictionary(_, value) => cast(column, value),
                _ => Ok(column.clone()),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let formatters =
            columns.iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for (column, formatter) in columns.iter().zip(&formatters) {
                text.clear();
                match column.data_type() {
                    DataType::List(_) | DataType::LargeList(_) if column.is_valid(row) => {
                        list_text(column.as_ref(), row, &mut text)?;
                    }
                    _ => write!(text, "{}", formatter.value(row)).expect("into a string"),
                }
                out.write_field(&text).expect(written);
            }
            out.write_record(None::<&[u8]>).expect(written);
        }
    }
    Ok(out.into_inner().expect(written))
}

fn list_text(column: &dyn Array, row: usize, text: &mut String) -> Result<(), Error> {
    let values = match column.data_type() {
        DataType::LargeList(_) => column.as_list::<i64>().value(row),
        _ => column.as_list::<i32>().value(row),
    };
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(&values, &options)?;
    for i in 0..values.len() {
        let comma = if i > 0 { "," } else { "" };
        write!(text, "{comma}{}", formatter.value(i)).expect("into a string");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, ListBuilder, StringArray, StringBuilder, TimestampMicrosecondArray};
    use arrow::record_batch::RecordBatch;
    use parquet::arrow::ArrowWriter;
    use std::sync::Arc;

    #[test]
    fn rows_become_text_and_absent_stays_absent() {
        let mut nodes = ListBuilder::new(StringBuilder::new());
        nodes.append_value([Some("n1"), Some("n2")]);
        nodes.append_null();
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(Int64Array::from(vec![Some(1), None])) as arrow::array::ArrayRef),
            ("who", Arc::new(StringArray::from(vec!["a,\"b\"", "c"]))),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![0, 1_500_000]).with_timezone("UTC"))),
            ("nodes", Arc::new(nodes.finish())),
        ])
        .unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let text = to_csv(writer.into_inner().unwrap().into(), "jobs.parquet").unwrap();
        insta::assert_snapshot!(String::from_utf8(text).unwrap(), @r#"
        id,who,at,nodes
        1,"a,""b""",1970-01-01T00:00:00Z,"n1,n2"
        ,c,1970-01-01T00:00:01.500Z,
        "#);
        assert!(matches!(to_csv(Bytes::from_static(b"PAR1"), "x"), Err(Error::ParquetInput { .. })));
    }
}
