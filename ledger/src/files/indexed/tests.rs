//! What is written here is what Parquet's own reader reads.

use crate::columns::{CardTimes, Columns, Indexed};
use crate::files::{ROW_GROUP_ROWS, Wanted, decode, encode};
use crate::tables::Table;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Decimal128Type, Int64Type, TimestampMicrosecondType};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use cardhour_domain::Timestamp;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;

/// Runs of a row's values, none in half of them: a text, a number, a small number.
type Run = (Option<u32>, usize);

const TABLE: Table = Table {
    name: "usage",
    schema_version: 1,
    schema: || columns(&[]).schema(),
    by_day: false,
    bounds: &["instant"],
    comment: "",
};

fn text(n: u32) -> String {
    format!("{n} é")
}

fn columns(runs: &[Run]) -> RecordBatch {
    fn indexed<T: Copy + Eq + std::hash::Hash>(runs: &[Run], value: impl Fn(u32) -> T) -> Indexed<T> {
        let mut indexed = Indexed::default();
        runs.iter().for_each(|(n, rows)| indexed.push(n.map(&value), *rows));
        indexed
    }
    let rows = runs.iter().map(|(_, rows)| rows).sum();
    let texts: Vec<String> = (0..=runs.iter().filter_map(|(n, _)| *n).max().unwrap_or(0)).map(text).collect();
    let whole: Vec<Run> = runs.iter().map(|(n, rows)| (Some(n.unwrap_or(7)), *rows)).collect();
    Columns::default()
        .indexed_text("text", indexed(runs, |n| texts[n as usize].as_str()), true)
        .indexed_instant("instant", indexed(runs, |n| Timestamp::from_unix_ms(i64::from(n) * 900_000)), true)
        .indexed_long("long", indexed(&whole, |n| i64::from(n) - 5), false)
        .indexed_boolean("boolean", indexed(runs, |n| n % 3 == 0), true)
        .card_time("card_time", &CardTimes::new(indexed(runs, |n| -i128::from(n) << 90)), true)
        .indexed_micros("micros", indexed(&whole, |n| i128::from(n) - 3), false)
        .no_text("nothing", rows)
        .finish()
}

fn file(runs: &[Run]) -> Bytes {
    Bytes::from(encode(&TABLE, &columns(runs)).unwrap().bytes)
}

fn read_back(file: Bytes) -> RecordBatch {
    let batches = decode("usage", file, Wanted { columns: None, indexed: &[] }).unwrap();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// Row by row, against the runs.
fn check(runs: &[Run]) {
    let rows: Vec<Option<u32>> = runs.iter().flat_map(|(n, rows)| std::iter::repeat_n(*n, *rows)).collect();
    let read = read_back(file(runs));
    assert_eq!(read.num_rows(), rows.len());
    let column = |name| -> &ArrayRef { read.column_by_name(name).unwrap() };
    let (texts, booleans) = (column("text").as_string::<i32>(), column("boolean").as_boolean());
    let instants = column("instant").as_primitive::<TimestampMicrosecondType>();
    let longs = column("long").as_primitive::<Int64Type>();
    let times = column("card_time").as_primitive::<Decimal128Type>();
    let micros = column("micros").as_primitive::<Decimal128Type>();
    assert_eq!(column("nothing").null_count(), rows.len());
    for (row, n) in rows.into_iter().enumerate() {
        let whole = n.unwrap_or(7);
        assert_eq!(longs.value(row), i64::from(whole) - 5);
        assert_eq!(micros.value(row), i128::from(whole) - 3);
        let Some(n) = n else {
            assert!(
                [texts.is_null(row), instants.is_null(row), booleans.is_null(row), times.is_null(row)] == [true; 4]
            );
            continue;
        };
        assert_eq!(texts.value(row), text(n));
        assert_eq!(instants.value(row), i64::from(n) * 900_000_000);
        assert_eq!(booleans.value(row), n % 3 == 0);
        assert_eq!(times.value(row), -i128::from(n) << 90);
    }
}

proptest! {
    #[test]
    fn every_row_has_its_value(
        runs in proptest::collection::vec((proptest::option::of(0..40u32), 1..40usize), 1..60),
    ) {
        check(&runs);
    }
}

#[test]
fn a_file_of_several_row_groups_keeps_its_rows_apart() {
    // Runs that end before, at and behind the end of a group.
    check(&[(Some(1), ROW_GROUP_ROWS - 1), (None, 1), (Some(2), 3), (Some(900), ROW_GROUP_ROWS), (Some(1), 5)]);
}

#[test]
fn bounds_are_those_of_the_rows_of_a_group() {
    let runs = [(Some(3), ROW_GROUP_ROWS - 1), (None, 1), (Some(5), 1), (Some(4), 1)];
    let reader = SerializedFileReader::new(file(&runs)).unwrap();
    let groups = reader.metadata().row_groups();
    let bounds = |group: usize, column: usize| {
        let statistics = groups[group].column(column).statistics().unwrap().clone();
        let bytes = |bytes: Option<&[u8]>| bytes.unwrap().to_vec();
        (bytes(statistics.min_bytes_opt()), bytes(statistics.max_bytes_opt()), statistics.null_count_opt())
    };
    let instant = |n: i64| (n * 900_000_000).to_le_bytes().to_vec();
    assert_eq!(bounds(0, 0), ("3 é".into(), "3 é".into(), Some(1)));
    assert_eq!(bounds(0, 1), (instant(3), instant(3), Some(1)));
    assert_eq!(bounds(1, 0), ("4 é".into(), "5 é".into(), Some(0)));
    assert_eq!(bounds(1, 1), (instant(4), instant(5), Some(0)));
    // Delta's log has those of the file: 2,700 s to 4,500 s.
    let stats: serde_json::Value = serde_json::from_str(&encode(&TABLE, &columns(&runs)).unwrap().stats).unwrap();
    assert_eq!(stats["minValues"]["instant"], "1970-01-01T00:45:00.000Z");
    assert_eq!(stats["maxValues"]["instant"], "1970-01-01T01:15:00.000Z");
    assert_eq!(stats["nullCount"]["instant"], 1);
}
