//! What Delta Lake and delta-rs do and don't do, where it touches the books: each trap that was found is a test.

use super::*;
use crate::Ledger;
use crate::columns::{CARD_TIME, CardTimes, Columns, Indexed};
use crate::fixture::{Pool, job, jobs};
use crate::tables::{ALL, jobs::JOBS, usage::USAGE};
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType as Arrow, Decimal128Type, SchemaRef, TimeUnit, TimestampMicrosecondType};
use std::sync::Arc;

const ROWS_OF_A_JOB: usize = 1;

/// delta-rs lets a repeated transaction id through: what is known already is decided before the commit, and a commit on an older
/// version is lost.
#[tokio::test]
async fn t15_the_same_import_after_a_lost_reply_changes_nothing() {
    let pool = Pool::booked().await;
    let before = pool.ledger.store.open_or_create(&JOBS).await.unwrap();
    let rows = pool.count(&JOBS).await;
    let new = job("lab 50 vision a1 1 2026-03-03T20:00:00 2026-03-03T21:00:00");
    pool.import(vec![new.clone()]).await;
    // The reply was lost, so the writer, who looked before, commits again what it had planned.
    let batch = pool.rows(&JOBS).await.into_iter().find(|(_, batch)| batch.num_rows() == ROWS_OF_A_JOB).unwrap();
    let again = Change { add: vec![NewFile::of(batch.0.day, batch.1)], ..Change::default() };
    assert!(matches!(pool.ledger.store.commit(&before, again).await.unwrap(), Outcome::Lost));
    // And, having looked again, finds that nothing is left to do.
    let booked = pool.import(vec![new]).await;
    assert_eq!((booked.booked, booked.unchanged), (0, 1));
    assert_eq!(pool.count(&JOBS).await, rows + 1);
}

/// A commit that fails leaves its files behind; no reader takes them for rows.
#[tokio::test]
async fn a_failed_commit_leaves_files_and_no_rows() {
    let pool = Pool::booked().await;
    let before = pool.ledger.store.open_or_create(&JOBS).await.unwrap();
    pool.import(vec![job("lab 51 vision a1 1 2026-03-03T20:00:00 2026-03-03T21:00:00")]).await;
    let rows = pool.count(&JOBS).await;
    let (file, batch) = pool.rows(&JOBS).await.remove(0);
    let files = |pool: &Pool| {
        let day = pool.dir.path().join("ledger/jobs").join(format!("day={}", day_text(file.day.unwrap())));
        std::fs::read_dir(day).unwrap().count()
    };
    let there = files(&pool);
    let late = Change { add: vec![NewFile::of(file.day, batch)], ..Change::default() };
    assert!(matches!(pool.ledger.store.commit(&before, late).await.unwrap(), Outcome::Lost));
    assert_eq!(files(&pool), there + 1, "an orphan");
    assert_eq!(pool.count(&JOBS).await, rows);
    assert!(pool.ledger.verify(None, None).await.unwrap().holds());
    let now = crate::Maintain { retain_hours: 0, force: true, dry_run: false };
    pool.ledger.maintain(now).await.unwrap();
    assert_eq!(pool.count(&JOBS).await, rows);
    assert!(pool.ledger.verify(None, None).await.unwrap().holds());
}

fn table(schema: fn() -> SchemaRef) -> Table {
    Table { name: "trap", schema_version: 1, schema, by_day: false, bounds: &[], comment: "for a test" }
}

/// Unsigned columns are committed without complaint and kill every later read: they are refused before there is a table.
#[tokio::test]
#[should_panic(expected = "column n of trap is of type UInt64")]
async fn an_unsigned_column_never_becomes_a_table() {
    let unsigned = table(|| {
        Arc::new(arrow::datatypes::Schema::new(vec![arrow::datatypes::Field::new("n", Arrow::UInt64, false)]))
    });
    let pool = Pool::empty().await;
    let _ = pool.ledger.store.open_or_create(&unsigned).await;
}

#[test]
fn every_column_of_every_table_is_of_a_type_that_all_readers_have() {
    for table in ALL {
        for field in (table.schema)().fields() {
            let is_known = match stored_type(field) {
                Arrow::Utf8 | Arrow::Int64 | Arrow::Boolean => true,
                Arrow::Timestamp(unit, zone) => unit == TimeUnit::Microsecond && zone.as_deref() == Some("UTC"),
                Arrow::Decimal128(precision, scale) => precision <= 38 && scale >= 0,
                _ => false,
            };
            assert!(is_known, "{}.{} is {}", table.name, field.name(), field.data_type());
        }
    }
}

const MOST: i128 = 10i128.pow(38) - 1;
const TIME: [Option<i128>; 4] = [Some(MOST), Some(-MOST), Some(0), Some(1)];
const MAYBE: [Option<i128>; 4] = [None, Some(MOST), Some(0), None];

fn widest() -> RecordBatch {
    let at = |us: i64| Timestamp::from_unix_us(us);
    Columns::default()
        .card_time("time", &CardTimes::new(Indexed::of(TIME.into_iter())), false)
        .card_time("maybe", &CardTimes::new(Indexed::of(MAYBE.into_iter())), true)
        .instant("at", [at(-1_000), at(0), at(253_402_300_799_999_000), at(1_772_409_600_123_000)].into_iter())
        .finish()
}

#[tokio::test]
async fn decimals_of_38_digits_and_instants_before_1970_come_back_as_they_went() {
    let wide = table(|| widest().schema());
    let pool = Pool::empty().await;
    pool.ledger.store.open_or_create(&wide).await.unwrap();
    pool.add(&wide, None, widest()).await;
    let (_, found) = pool.rows(&wide).await.remove(0);
    for (name, went) in [("time", TIME), ("maybe", MAYBE)] {
        let column = found.column_by_name(name).unwrap();
        assert_eq!(*column.data_type(), CARD_TIME);
        assert_eq!(column.as_primitive::<Decimal128Type>().iter().collect::<Vec<_>>(), went);
    }
    let column = found.column_by_name("at").unwrap();
    assert_eq!(*column.data_type(), Arrow::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    let times: Vec<i64> = column.as_primitive::<TimestampMicrosecondType>().values().to_vec();
    assert_eq!(times, [-1_000, 0, 253_402_300_799_999_000, 1_772_409_600_123_000]);
}

/// A ledger of a newer cardhour is refused before anything of it is read.
#[tokio::test]
async fn a_schema_newer_than_the_binary_is_refused() {
    let pool = Pool::booked().await;
    let log = pool.dir.path().join("ledger/usage/_delta_log/00000000000000000000.json");
    let text = std::fs::read_to_string(&log).unwrap();
    let newer = text.replace("\"cardhour.schema\":\"1\"", "\"cardhour.schema\":\"2\"");
    assert_ne!(text, newer);
    std::fs::write(&log, newer).unwrap();
    let ledger = Ledger::open(pool.ledger.place()).await.unwrap();
    let refused = ledger.read().await.err().unwrap();
    assert!(matches!(&refused, Error::TooNew { table, found: 2, known: 1, .. } if table == USAGE.name), "{refused}");
    assert!(matches!(ledger.import_jobs("jobs", jobs(), vec![], vec![]).await, Err(Error::TooNew { .. })));

    let file = pool.dir.path().join("ledger/ledger.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"format\":1", "\"format\":2")).unwrap();
    assert!(matches!(Ledger::open(pool.ledger.place()).await, Err(Error::TooNew { found: 2, .. })));
}
