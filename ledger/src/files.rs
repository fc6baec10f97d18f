//! Parquet files of a table: encoded and decoded here, on as many threads as there are cores.

mod indexed;

use crate::Error;
use crate::tables::{Table, stored_type};
use arrow::array::{Array, AsArray};
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, Field, Schema, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use cardhour_domain::Timestamp;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{ArrowSchemaConverter, ProjectionMask};
use parquet::basic::Compression;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use std::sync::Arc;

/// Rows in a row group: several to a large file, so that all cores can read it.
const ROW_GROUP_ROWS: usize = 128 * 1024;

/// A file's bytes and what the log says of it.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stats: String,
    pub(crate) rows: i64,
}

/// Encodes rows as one Parquet file.
///
/// No Arrow schema goes into the file: indexed text is plain text to every reader (an Arrow hint of dictionaries makes readers slower).
/// Indexed columns are written as they are ([`indexed`]), the others by Arrow's writer, packed with Snappy: zstd makes them half as large,
/// and a fifth of the time to write and to read them goes into setting it up, a column and day each.
pub(crate) fn encode(table: &Table, batch: &RecordBatch) -> Result<Encoded, Error> {
    let failed = |e: parquet::errors::ParquetError| Error::table("encode rows of", table.name)(e.into());
    let mut bytes = Vec::with_capacity(batch.num_rows() * 4 + 4096);
    write(&mut bytes, batch).map_err(failed)?;
    let rows = i64::try_from(batch.num_rows()).expect("fewer than 2⁶³ rows");
    Ok(Encoded { stats: stats(table, batch), bytes, rows })
}

fn write(out: &mut Vec<u8>, batch: &RecordBatch) -> Result<(), parquet::errors::ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for (field, values) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        // Arrow's writer of a column that is not written by it: a dictionary takes tens of kilobytes before it holds anything.
        if indexed::is_indexed(values) {
            properties = properties.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), false);
        }
    }
    let fields =
        batch.schema_ref().fields().iter().map(|field| field.as_ref().clone().with_data_type(stored_type(field)));
    let stored = Schema::new(fields.collect::<Vec<_>>());
    let schema = ArrowSchemaConverter::new().convert(&stored)?;
    let mut file = SerializedFileWriter::new(out, schema.root_schema_ptr(), properties.build().into())?;
    let arrow_writers = ArrowRowGroupWriterFactory::new(&file, stored.into());
    for group in 0..batch.num_rows().div_ceil(ROW_GROUP_ROWS) {
        let from = group * ROW_GROUP_ROWS;
        let rows = batch.slice(from, ROW_GROUP_ROWS.min(batch.num_rows() - from));
        let all_indexed = rows.columns().iter().all(|values| indexed::is_indexed(values));
        let writers = if all_indexed { Vec::new() } else { arrow_writers.create_column_writers(group)? };
        let mut writers = writers.into_iter();
        let mut into = file.next_row_group()?;
        for ((field, values), column) in rows.schema_ref().fields().iter().zip(rows.columns()).zip(schema.columns()) {
            let writer = writers.next();
            if indexed::is_indexed(values) {
                indexed::write(&mut into, column, values)?;
                continue;
            }
            let mut writer = writer.expect("a writer a column");
            for leaf in compute_leaves(field, values)? {
                writer.write(&leaf)?;
            }
            writer.close()?.append_to_row_group(&mut into)?;
        }
        into.close()?;
    }
    file.close()?;
    Ok(())
}

/// Row count, and the bounds of the instants that readers leave files out by, as Delta's log has them.
fn stats(table: &Table, batch: &RecordBatch) -> String {
    let mut least = serde_json::Map::new();
    let mut most = serde_json::Map::new();
    let mut nulls = serde_json::Map::new();
    for name in table.bounds {
        let array = batch.column_by_name(name).expect("bounds are columns");
        let instants = indexed::values(array).unwrap_or(array).as_primitive::<TimestampMicrosecondType>();
        nulls.insert((*name).to_owned(), array.logical_null_count().into());
        if let (Some(lo), Some(hi)) = (min(instants), max(instants)) {
            let text = |us: i64| serde_json::Value::from(milliseconds(Timestamp::from_unix_us(us)));
            least.insert((*name).to_owned(), text(lo));
            most.insert((*name).to_owned(), text(hi));
        }
    }
    serde_json::json!({"numRecords": batch.num_rows(), "minValues": least, "maxValues": most, "nullCount": nulls})
        .to_string()
}

/// An instant as Delta's statistics write it: always with milliseconds.
fn milliseconds(at: Timestamp) -> String {
    match at.to_utc() {
        Some(utc) => utc.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        None => at.to_string(),
    }
}

/// Which columns of a file to read, and which of them as indexed text.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Names; none: all.
    pub(crate) columns: Option<&'a [&'a str]>,
    /// Text columns to give as indexes into the file's values.
    pub(crate) indexed: &'a [&'a str],
}

/// Decodes a file. Shape: one batch a row group at least.
pub(crate) fn decode<R: ChunkReader + 'static>(
    table: &str,
    file: R,
    wanted: Wanted<'_>,
) -> Result<Vec<RecordBatch>, Error> {
    let parquet = |e: parquet::errors::ParquetError| Error::table("read a file of", table)(e.into());
    let arrow = |e: arrow::error::ArrowError| Error::table("read a file of", table)(e.into());
    // What Parquet says of its columns, and no hint for Arrow: other writers of a table leave theirs, of views and the like.
    let plainly = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let mut metadata = ArrowReaderMetadata::load(&file, plainly()).map_err(parquet)?;
    if !wanted.indexed.is_empty() {
        let fields: Vec<Field> = metadata
            .schema()
            .fields()
            .iter()
            .map(|field| {
                if wanted.indexed.contains(&field.name().as_str()) {
                    let indexed = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
                    field.as_ref().clone().with_data_type(indexed)
                } else {
                    field.as_ref().clone()
                }
            })
            .collect();
        let options = plainly().with_schema(Arc::new(Schema::new(fields)));
        metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), options).map_err(parquet)?;
    }
    let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).with_batch_size(64 * 1024);
    if let Some(columns) = wanted.columns {
        let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
        builder = builder.with_projection(mask);
    }
    builder.build().map_err(parquet)?.collect::<Result<Vec<_>, _>>().map_err(arrow)
}

/// A file's content, as a local file or in memory.
pub(crate) enum Content {
    Local(std::fs::File),
    Memory(Bytes),
}

impl Content {
    pub(crate) fn decode(self, table: &str, wanted: Wanted<'_>) -> Result<Vec<RecordBatch>, Error> {
        match self {
            Self::Local(file) => decode(table, file, wanted),
            Self::Memory(bytes) => decode(table, bytes, wanted),
        }
    }
}

/// Does `work` to every item on as many threads as there are cores; results in the order of the items.
pub(crate) fn parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    items.into_par_iter().with_max_len(1).map(work).collect()
}

/// As [`parallel`], for many small items: in stretches, into memory that is there once.
pub(crate) fn parallel_small<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    const AT_ONCE: usize = 1024;
    items.into_par_iter().with_min_len(AT_ONCE).map(work).collect()
}

/// Drops what millions of small things hang on, while others go on.
pub(crate) fn drop_aside<T: Send + 'static>(value: T) {
    rayon::spawn(move || drop(value));
}
