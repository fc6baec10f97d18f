//! Parquet files of a table: encoded and decoded here, on as many threads as there are cores.

use crate::Error;
use crate::tables::Table;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, Decimal128Type, Field, Int32Type, Schema, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use cardhour_domain::Timestamp;
use parquet::arrow::ArrowWriter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
/// Instants are delta-coded, the rest dictionary-coded; zstd level 1, which reads as fast as 3 and writes faster, but for columns of one
/// value, for which a reader would set up zstd to unpack a few bytes. Card-time has no bounds: nobody leaves out rows by them.
pub(crate) fn encode(table: &Table, batch: &RecordBatch) -> Result<Encoded, Error> {
    let failed = |e: parquet::errors::ParquetError| Error::table("encode rows of", table.name)(e.into());
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).map_err(failed)?))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for (field, values) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let path = || ColumnPath::from(field.name().as_str());
        match field.data_type() {
            DataType::Timestamp(..) => {
                properties = properties
                    .set_column_dictionary_enabled(path(), false)
                    .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
            }
            DataType::Decimal128(..) => {
                properties = properties.set_column_statistics_enabled(path(), EnabledStatistics::None);
            }
            _ => {}
        }
        if is_of_one_value(values) {
            properties = properties.set_column_compression(path(), Compression::UNCOMPRESSED);
        }
    }
    let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    let mut bytes = Vec::with_capacity(batch.num_rows() * 16 + 4096);
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, batch.schema(), options).map_err(failed)?;
    writer.write(batch).map_err(failed)?;
    writer.close().map_err(failed)?;
    Ok(Encoded { stats: stats(table, batch), bytes })
}

/// Whether a column is null throughout, or the same number or text in every row.
fn is_of_one_value(values: &ArrayRef) -> bool {
    fn same<T: PartialEq>(values: &[T]) -> bool {
        values.windows(2).all(|pair| pair[0] == pair[1])
    }
    if values.null_count() == values.len() {
        return true;
    }
    let numbers = values.as_primitive_opt::<Decimal128Type>().is_some_and(|numbers| same(numbers.values()));
    let texts = values.as_dictionary_opt::<Int32Type>().is_some_and(|texts| same(texts.keys().values()));
    values.null_count() == 0 && (numbers || texts)
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
pub(crate) fn parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let n = items.len();
    let items: Vec<std::sync::Mutex<Option<T>>> = items.into_iter().map(|i| std::sync::Mutex::new(Some(i))).collect();
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, R)> = Vec::with_capacity(n);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(i) else { return mine };
                        let item = item.lock().expect("no one panics holding it").take().expect("taken once");
                        mine.push((i, work(item)));
                    }
                })
            })
            .collect();
        for worker in workers {
            done.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}
