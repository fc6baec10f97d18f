//! A month in FOCUS, as files.
//!
//! Rows and columns come from [`cardhour_books::focus`]; here they become bytes, get their hashes, and are put in place. Nothing of it depends on the
//! clock or on the machine: the same month is the same files.

use crate::cli::FileFormat;
use crate::error::Error;
use crate::render::parquet;
use crate::statements::BilledMonth;
use crate::terminal::write_file;
use arrow::array::{ArrayRef, Decimal128Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use cardhour_books::focus::{
    Column, DECIMAL_DIGITS, Dataset, FileOfDelivery, FocusMonth, Kind, Value, Version, metadata,
};
use cardhour_domain::CardTime;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a month.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Names and bytes of the files with rows.
    files: Vec<(String, Vec<u8>)>,
    /// Name and text of the metadata, which says what the others are.
    metadata: (String, String),
    /// Held and billed time of the month that no price is for, and that no row tells of.
    pub unpriced: CardTime,
}

/// What a month is in FOCUS. `note` stands in the metadata. Errors: Parquet that can't be written.
pub fn delivery(
    billed: &BilledMonth,
    version: Version,
    format: FileFormat,
    note: Option<&str>,
) -> Result<Delivery, Error> {
    let month = FocusMonth {
        month: billed.month,
        statements: &billed.statements,
        input: &billed.input,
        slots: &billed.slots,
        book: &billed.book,
        policy: &billed.policy,
    };
    let stem = format!("focus-{version}-{}", billed.month);
    let mut writer = Writer { stem: &stem, format, files: Vec::new(), told: Vec::new() };
    writer.add(&month.cost_and_usage(version))?;
    match version {
        Version::V1_2 => {}
        Version::V1_4 => {
            writer.add(&month.invoice_detail())?;
            writer.add(&month.billing_period())?;
        }
    }
    let text = metadata(&month, version, env!("CARGO_PKG_VERSION"), &writer.told, note);
    Ok(Delivery {
        files: writer.files,
        metadata: (format!("{stem}-metadata.json"), text),
        unpriced: month.unpriced_time(),
    })
}

impl Delivery {
    /// Names and bytes of the files, the metadata last: where it is, all are that it names.
    pub fn into_files(self) -> Vec<(String, Vec<u8>)> {
        let (name, text) = self.metadata;
        self.files.into_iter().chain([(name, text.into_bytes())]).collect()
    }

    /// Puts the files into a folder, which is made where it isn't there, each whole or not at all. Comes back with where they are.
    ///
    /// The metadata goes first and comes last: a folder with it has all that it names. Errors: a file can't be written.
    pub fn put(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        std::fs::create_dir_all(folder).map_err(|source| Error::File {
            doing: "make",
            path: folder.to_owned(),
            source,
        })?;
        let (name, text) = &self.metadata;
        let metadata = folder.join(name);
        match std::fs::remove_file(&metadata) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::File { doing: "replace", path: metadata, source });
            }
            _ => {}
        }
        let mut paths = Vec::with_capacity(self.files.len() + 1);
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            write_file(&path, bytes)?;
            paths.push(path);
        }
        write_file(&metadata, text.as_bytes())?;
        paths.push(metadata);
        Ok(paths)
    }
}

struct Writer<'a> {
    stem: &'a str,
    format: FileFormat,
    files: Vec<(String, Vec<u8>)>,
    told: Vec<FileOfDelivery>,
}

impl Writer<'_> {
    fn add<R>(&mut self, dataset: &Dataset<R>) -> Result<(), Error> {
        let bytes = match self.format {
            FileFormat::Csv => dataset.csv(),
            FileFormat::Parquet => {
                let batch = batch(dataset)?;
                parquet::write(&batch.schema(), &[batch])?
            }
        };
        let name = format!("{}-{}.{}", self.stem, dataset.kind.file_name(), self.format.name());
        let mut sha256 = String::with_capacity(64);
        for byte in Sha256::digest(&bytes) {
            write!(sha256, "{byte:02x}").expect("into memory");
        }
        self.told.push(FileOfDelivery::new(dataset, name.clone(), self.format.name(), bytes.len(), sha256));
        self.files.push((name, bytes));
        Ok(())
    }
}

/// A dataset as columns. Shape: texts and JSON Utf8, decimals Decimal128(38, the column's scale), instants microseconds of UTC; a column that may not be
/// null isn't nullable.
fn batch<R>(dataset: &Dataset<R>) -> Result<RecordBatch, Error> {
    let mut fields = Vec::with_capacity(dataset.columns.len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(dataset.columns.len());
    for column in &dataset.columns {
        let array = array(column, &dataset.rows)?;
        fields.push(Field::new(column.name, array.data_type().clone(), column.may_be_null));
        columns.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(dataset.rows.len()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

fn array<R>(column: &Column<R>, rows: &[R]) -> Result<ArrayRef, Error> {
    let values = rows.iter().map(column.value);
    Ok(match column.kind {
        Kind::Text | Kind::Json => Arc::new(values.map(|value| value.written()).collect::<StringArray>()),
        Kind::Decimal { scale } => {
            let scaled = |value| match value {
                Value::Decimal(decimal) => {
                    let decimal = decimal.normalize();
                    let up = 10i128.pow(u32::from(scale) - decimal.scale());
                    Some(decimal.mantissa().checked_mul(up).expect("LED-10: amounts fit 38 digits"))
                }
                _ => None,
            };
            let array = values.map(scaled).collect::<Decimal128Array>();
            Arc::new(array.with_precision_and_scale(DECIMAL_DIGITS, scale.cast_signed())?)
        }
        Kind::Instant => {
            let micros = |value| match value {
                // Whole seconds, as in CSV.
                Value::Instant(at) => Some(at.unix_ms().div_euclid(1000) * 1_000_000),
                _ => None,
            };
            Arc::new(values.map(micros).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
    })
}
