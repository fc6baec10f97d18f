//! Parquet files of a table: encoded and decoded here, on as many threads as there are cores.

mod card_time;

use crate::Error;
use crate::columns::CARD_TIME;
use crate::tables::Table;
use arrow::array::{Array, AsArray};
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, Field, Schema, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use card_time::CardTimes;
use cardhour_domain::Timestamp;
use parquet::arrow::ArrowWriter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowWriterOptions, compute_leaves};
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
}

/// Encodes rows as one Parquet file.
///
/// No Arrow schema goes into the file: indexed text is plain text to every reader (an Arrow hint of dictionaries makes readers slower).
/// All is dictionary-coded but card-time ([`card_time`]), which has no bounds, either: nobody leaves out rows by them. Packed with Snappy:
/// zstd makes files half as large, and a fifth of the time to write and to read them goes into setting it up, a column and day each.
pub(crate) fn encode(table: &Table, batch: &RecordBatch) -> Result<Encoded, Error> {
    let failed = |e: parquet::errors::ParquetError| Error::table("encode rows of", table.name)(e.into());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for (field, values) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let path = || ColumnPath::from(field.name().as_str());
        if *field.data_type() == CARD_TIME {
            properties = properties.set_column_statistics_enabled(path(), EnabledStatistics::None);
        }
        // A dictionary takes tens of kilobytes before it holds anything, and half of the columns of records hold nothing.
        if values.null_count() == values.len() {
            properties = properties.set_column_dictionary_enabled(path(), false);
        }
    }
    let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    let mut bytes = Vec::with_capacity(batch.num_rows() * 16 + 4096);
    let writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).map_err(failed)?;
    let (mut file, columns) = writer.into_serialized_writer().map_err(failed)?;
    for group in 0..batch.num_rows().div_ceil(ROW_GROUP_ROWS) {
        let from = group * ROW_GROUP_ROWS;
        let rows = batch.slice(from, ROW_GROUP_ROWS.min(batch.num_rows() - from));
        encode_group(&mut file, columns.create_column_writers(group).map_err(failed)?, &rows).map_err(failed)?;
    }
    file.close().map_err(failed)?;
    Ok(Encoded { stats: stats(table, batch), bytes })
}

fn encode_group<W: std::io::Write + Send>(
    file: &mut SerializedFileWriter<W>,
    writers: Vec<ArrowColumnWriter>,
    rows: &RecordBatch,
) -> Result<(), parquet::errors::ParquetError> {
    let mut group = file.next_row_group()?;
    let mut card_times = CardTimes::default();
    for ((field, values), mut writer) in rows.schema_ref().fields().iter().zip(rows.columns()).zip(writers) {
        if *field.data_type() == CARD_TIME {
            card_times.write(&mut group, values.as_primitive())?;
            continue;
        }
        for leaf in compute_leaves(field, values)? {
            writer.write(&leaf)?;
        }
        writer.close()?.append_to_row_group(&mut group)?;
    }
    group.close()?;
    Ok(())
}

/// Row count, and the bounds of the instants that readers leave files out by, as Delta's log has them.
fn stats(table: &Table, batch: &RecordBatch) -> String {
    let mut least = serde_json::Map::new();
    let mut most = serde_json::Map::new();
    let mut nulls = serde_json::Map::new();
    for name in table.bounds {
        let array = batch.column_by_name(name).expect("bounds are columns");
        let instants = array.as_primitive::<TimestampMicrosecondType>();
        nulls.insert((*name).to_owned(), array.null_count().into());
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
    let mut metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(parquet)?;
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
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
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
