//! A segment's file, looked into with care: it comes from a machine that others may have taken over.

use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use cardhour_domain::columns::{Rows, schema};
use cardhour_domain::{Interval, Millijoules, Name, Reading, Stream, Timestamp};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

/// The most bytes a segment's file may have. A quarter of an hour of 64 devices has less than one million.
pub const MOST_BYTES: usize = 32 << 20;
/// The most rows.
const MOST_ROWS: i64 = 2_000_000;
/// The most bytes a column may unpack to in one row group: no single text can be larger, so that a batch of few rows is small.
const MOST_COLUMN_BYTES: i64 = 16 << 20;
/// Rows that are unpacked at a time.
const AT_ONCE: usize = 64;
/// The longest text, as everywhere. Unit: bytes.
const LONGEST_NAME: usize = 1024;
/// The longest stretch a row may tell of: a segment is sealed at least once a day. Unit: milliseconds.
const LONGEST_MS: i64 = 2 * 86_400_000;
/// The most energy a row may tell of, a card's at 2 kW for almost six days: a sum of all rows that a segment may have still fits. Unit: millijoules.
const MOST_MJ: i64 = 1_000_000_000_000;

/// The rows of a file. Errors: in words, for whoever sent it.
pub(super) fn rows(stream: Stream, bytes: Bytes) -> Result<Rows, String> {
    // A footer that was damaged may say what the reader takes for impossible, and asserts.
    let decoded = std::panic::catch_unwind(AssertUnwindSafe(|| decoded(stream, bytes)));
    decoded.unwrap_or_else(|_| Err("is no Parquet file that can be read: its footer contradicts itself".to_owned()))
}

fn decoded(stream: Stream, bytes: Bytes) -> Result<Rows, String> {
    if bytes.len() > MOST_BYTES {
        return Err(format!("has {} bytes, more than {MOST_BYTES}", bytes.len()));
    }
    let said = |error: parquet::errors::ParquetError| format!("is no Parquet file that can be read: {error}");
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(&bytes, options).map_err(said)?;
    let groups = metadata.metadata().row_groups();
    let count: i64 = groups.iter().map(|group| group.num_rows()).sum();
    if !(0..=MOST_ROWS).contains(&count) {
        return Err(format!("has {count} rows, more than {MOST_ROWS}"));
    }
    for column in groups.iter().flat_map(|group| group.columns()) {
        if !(0..=MOST_COLUMN_BYTES).contains(&column.uncompressed_size()) {
            let (name, size) = (column.column_path().string(), column.uncompressed_size());
            return Err(format!("column {name} unpacks to {size} bytes, more than {MOST_COLUMN_BYTES}"));
        }
    }
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(bytes, metadata).with_batch_size(AT_ONCE);
    let reader = builder.build().map_err(said)?;
    let mut all = Rows::none(stream);
    let mut decoded = 0;
    for batch in reader {
        let batch: RecordBatch = batch.map_err(|error| format!("is no Parquet file that can be read: {error}"))?;
        let read = Rows::read(stream, &batch).map_err(|error| match error {
            // Rows are counted in the file, not in the piece of it.
            cardhour_domain::columns::ColumnError::BadValue { column, row, reason } => {
                format!("row {}: {column}: {reason}", decoded + row)
            }
            other => other.to_string(),
        })?;
        decoded += batch.num_rows();
        append(&mut all, read);
    }
    // A file of no rows has its columns all the same.
    if decoded == 0 {
        Rows::read(stream, &RecordBatch::new_empty(schema(stream))).map_err(|error| error.to_string())?;
    }
    Ok(all)
}

fn append(all: &mut Rows, more: Rows) {
    match (all, more) {
        (Rows::Samples(all), Rows::Samples(more)) => all.extend(more),
        (Rows::Activity(all), Rows::Activity(more)) => all.extend(more),
        (Rows::Observations(all), Rows::Observations(more)) => all.extend(more),
        (Rows::Watches(all), Rows::Watches(more)) => all.extend(more),
        (Rows::Devices(all), Rows::Devices(more)) => all.extend(more),
        (Rows::Events(all), Rows::Events(more)) => all.extend(more),
        _ => unreachable!("rows are read of one stream"),
    }
}

/// What a row tells of, whatever its stream.
struct Told<'a> {
    node: &'a Name,
    from: Timestamp,
    during: Option<Interval>,
    names: Vec<&'a str>,
}

fn told(rows: &Rows) -> Box<dyn Iterator<Item = Told<'_>> + '_> {
    fn stretch<'a>(node: &'a Name, during: Interval, names: Vec<&'a str>) -> Told<'a> {
        Told { node, from: during.start(), during: Some(during), names }
    }
    match rows {
        Rows::Samples(rows) => Box::new(rows.iter().map(|r| {
            let key = r.attempt_key.as_ref().map_or("", |key| key.as_str());
            stretch(&r.node, r.during, vec![&r.card_uuid, &r.device_uuid, key])
        })),
        Rows::Activity(rows) => Box::new(
            rows.iter().map(|r| stretch(&r.node, r.during, vec![&r.card_uuid, &r.device_uuid, r.holder.as_str()])),
        ),
        Rows::Observations(rows) => Box::new(rows.iter().map(|r| {
            let mut names: Vec<&str> = vec![&r.card_uuid, &r.device_uuid];
            names.extend([&r.holder.cluster, &r.holder.job_id, &r.holder.run].map(|name| name.as_str()));
            let owner = [&r.owner.org, &r.owner.project, &r.owner.user, &r.owner.queue, &r.owner.class];
            names.extend(owner.into_iter().flatten().map(|name| name.as_str()));
            names.extend(r.owner.labels.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]));
            names.extend(
                [&r.holder.shown_id, &r.mig_profile, &r.owner.refused_project]
                    .into_iter()
                    .flatten()
                    .map(|n| n.as_str()),
            );
            stretch(&r.node, r.during, names)
        })),
        Rows::Watches(rows) => {
            Box::new(rows.iter().map(|r| stretch(&r.node, r.during, vec![&r.card_uuid, &r.cluster])))
        }
        Rows::Devices(rows) => Box::new(rows.iter().map(|r| {
            let mut names: Vec<&str> = vec![&r.card_uuid, &r.device_uuid, &r.cluster];
            let rest = [&r.pci_bus_id, &r.model, &r.driver, &r.mig_mode, &r.mig_profile];
            names.extend(rest.into_iter().flatten().map(|name| name.as_str()));
            Told { node: &r.node, from: r.at, during: None, names }
        })),
        Rows::Events(rows) => Box::new(rows.iter().map(|r| {
            let names = [&r.card_uuid, &r.device_uuid, &r.detail].into_iter().flatten().map(|name| name.as_str());
            Told { node: &r.node, from: r.at, during: None, names: names.collect() }
        })),
    }
}

/// Whether every row is of the node, at a time that can be, with texts that can be. Errors: in words, with the row.
pub(super) fn check(rows: &Rows, node: &str) -> Result<(), String> {
    for (row, told) in (1..).zip(told(rows)) {
        if told.node != node {
            return Err(format!("row {row}: node: is of {:?}, not of {node:?}", told.node.as_str()));
        }
        // The books begin with the first cards there were, and end where days have four digits of a year.
        let years = Timestamp::from_utc_day(10_957)..Timestamp::from_utc_day(2_932_896);
        if !years.contains(&told.from) {
            return Err(format!("row {row}: ts: {} is before 2000 or after 9999", told.from));
        }
        if told.during.is_some_and(|during| during.length_ms() > LONGEST_MS) {
            return Err(format!("row {row}: interval_ms: is longer than two days"));
        }
        if let Some(name) = told.names.iter().find(|name| name.len() > LONGEST_NAME) {
            return Err(format!("row {row}: has a text of {} bytes, more than {LONGEST_NAME}", name.len()));
        }
    }
    if let Rows::Samples(samples) = rows {
        for (row, sample) in (1..).zip(samples) {
            if let Reading::Seen(Millijoules(mj)) = sample.energy_mj
                && !(0..=MOST_MJ).contains(&mj)
            {
                return Err(format!("row {row}: energy_mj: {mj} is not from 0 to {MOST_MJ}"));
            }
        }
    }
    Ok(())
}

/// Rows by the UTC day of their start.
pub(crate) fn by_day(rows: Rows) -> BTreeMap<i32, Rows> {
    fn split<T>(rows: Vec<T>, at: impl Fn(&T) -> Timestamp, of: impl Fn(Vec<T>) -> Rows) -> BTreeMap<i32, Rows> {
        let mut days: BTreeMap<i32, Vec<T>> = BTreeMap::new();
        for row in rows {
            days.entry(at(&row).utc_day()).or_default().push(row);
        }
        days.into_iter().map(|(day, rows)| (day, of(rows))).collect()
    }
    match rows {
        Rows::Samples(rows) => split(rows, |r| r.during.start(), Rows::Samples),
        Rows::Activity(rows) => split(rows, |r| r.during.start(), Rows::Activity),
        Rows::Observations(rows) => split(rows, |r| r.during.start(), Rows::Observations),
        Rows::Watches(rows) => split(rows, |r| r.during.start(), Rows::Watches),
        Rows::Devices(rows) => split(rows, |r| r.at, Rows::Devices),
        Rows::Events(rows) => split(rows, |r| r.at, Rows::Events),
    }
}
