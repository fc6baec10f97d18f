//! Rows as a Parquet file, small in memory while it is written.

use super::error::SpoolError;
use super::folder;
use cardhour_domain::columns::{Rows, schema};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnPath;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Rows that are columns at once, beside the rows themselves.
const ROWS_A_BATCH: usize = 256;

/// Rows in a row group. Its encoded pages are in memory until it is full.
const ROWS_A_GROUP: usize = 4096;

/// Columns that grow, and counters: whole numbers of many values. All others have few values and are packed with a dictionary.
const DELTA_PACKED: [&str; 7] = ["ts", "started_at", "nvlink_bytes", "pcie_bytes", "energy_mj", "cpu_ms", "io_bytes"];

/// Writes rows to `path`, which has its name only when all of it is on the medium.
///
/// The same rows make the same bytes. No Arrow schema goes into the file: to every reader texts are texts and instants are microseconds of UTC.
/// Errors: the disk's; what was written so far is removed.
pub(crate) fn write(path: &Path, rows: &Rows) -> Result<(), SpoolError> {
    let temporary = path.with_extension(format!("parquet.{}", folder::TEMPORARY));
    let written = write_to(&temporary, rows)
        .and_then(|()| fs::rename(&temporary, path).map_err(SpoolError::disk("name the segment", path)));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_to(path: &Path, rows: &Rows) -> Result<(), SpoolError> {
    let disk = |error| SpoolError::disk("write the segment", path)(error);
    let failed = |error: ParquetError| match error {
        ParquetError::External(cause) => match cause.downcast::<std::io::Error>() {
            Ok(error) => disk(*error),
            Err(cause) => SpoolError::Segment { path: path.to_owned(), source: ParquetError::External(cause) },
        },
        source => SpoolError::Segment { path: path.to_owned(), source },
    };
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path).map_err(disk)?;
    let options = ArrowWriterOptions::new().with_properties(properties()).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(&file, schema(rows.stream()), options).map_err(failed)?;
    for_each_batch(rows, |some| writer.write(&some.batch())).map_err(failed)?;
    writer.close().map_err(failed)?;
    file.sync_all().map_err(disk)
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).expect("a level that zstd has")))
        .set_max_row_group_row_count(Some(ROWS_A_GROUP))
        .set_offset_index_disabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for column in DELTA_PACKED {
        let column = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

fn for_each_batch(rows: &Rows, mut each: impl FnMut(Rows) -> Result<(), ParquetError>) -> Result<(), ParquetError> {
    match rows {
        Rows::Samples(rows) => rows.chunks(ROWS_A_BATCH).try_for_each(|some| each(Rows::Samples(some.to_vec()))),
        Rows::Activity(rows) => rows.chunks(ROWS_A_BATCH).try_for_each(|some| each(Rows::Activity(some.to_vec()))),
        Rows::Observations(rows) => {
            rows.chunks(ROWS_A_BATCH).try_for_each(|some| each(Rows::Observations(some.to_vec())))
        }
        Rows::Watches(rows) => rows.chunks(ROWS_A_BATCH).try_for_each(|some| each(Rows::Watches(some.to_vec()))),
        Rows::Devices(rows) => rows.chunks(ROWS_A_BATCH).try_for_each(|some| each(Rows::Devices(some.to_vec()))),
        Rows::Events(rows) => rows.chunks(ROWS_A_BATCH).try_for_each(|some| each(Rows::Events(some.to_vec()))),
    }
}

/// How many rows a segment has; none where it can't be read.
pub(crate) fn row_count(path: &Path) -> Option<u64> {
    let reader = SerializedFileReader::new(File::open(path).ok()?).ok()?;
    u64::try_from(reader.metadata().file_metadata().num_rows()).ok()
}
