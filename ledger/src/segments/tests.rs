use super::*;
use crate::fixture::{Pool, at, during, job, node};
use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use cardhour_domain::columns::Rows;
use cardhour_domain::{CardShare, Holder, HolderKind, HolderSource, Observation, Owner, SeenDevice, Watch};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

const BOOT: u128 = 7;

fn parquet(batch: &RecordBatch) -> Bytes {
    let mut bytes = Vec::new();
    let packed = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(packed)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes.into()
}

fn segment(sequence: u64, rows: &Rows) -> Segment {
    let name = SegmentName::new(BOOT, sequence, rows.stream());
    Segment { node: "a1".into(), name, bytes: parquet(&rows.batch()) }
}

/// Seen on node a1 of cluster lab: `ID RUN CARD FROM TO`.
fn seen(line: &str) -> Observation {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [id, run, card, from, to] = fields[..] else { panic!("{line}") };
    Observation {
        during: during(from, to),
        node: "a1".into(),
        card_uuid: card.into(),
        device_uuid: card.into(),
        mig_profile: None,
        share: Some(CardShare::CARD),
        source: HolderSource::PrologMap,
        holder: Holder {
            kind: HolderKind::SlurmJob,
            cluster: "lab".into(),
            job_id: id.into(),
            shown_id: None,
            run: run.into(),
            started_at: None,
        },
        owner: Owner { org: Some("acme".into()), project: Some("night".into()), ..Owner::default() },
    }
}

fn watch(card: &str, from: &str, to: &str) -> Watch {
    Watch { during: during(from, to), node: "a1".into(), cluster: "lab".into(), card_uuid: card.into() }
}

fn card(uuid: &str, from: &str) -> SeenDevice {
    SeenDevice {
        at: at(from),
        node: "a1".into(),
        cluster: "lab".into(),
        card_uuid: uuid.into(),
        device_uuid: uuid.into(),
        pci_bus_id: None,
        model: Some("A100".into()),
        memory_bytes: None,
        driver: None,
        mig_mode: None,
        mig_profile: None,
        share: CardShare::CARD,
        power_limit_mw: None,
    }
}

/// Two cards, looked at from eight to noon; job 1 has two by its record and one is seen; job 9 has no record.
fn told() -> Vec<Segment> {
    let watches = ["GPU-1", "GPU-2"].map(|c| watch(c, "2026-03-02T08:00:00", "2026-03-02T12:00:00"));
    let devices = ["GPU-1", "GPU-2"].map(|c| card(c, "2026-03-02T08:00:00"));
    let observations = vec![
        seen("1 b1 GPU-1 2026-03-02T09:00:10 2026-03-02T09:59:55"),
        seen("9 b2 GPU-2 2026-03-02T10:15:00 2026-03-02T10:30:00"),
        seen("9 b2 GPU-2 2026-03-02T10:30:00 2026-03-02T10:45:00"),
    ];
    vec![
        segment(1, &Rows::Watches(watches.into())),
        segment(2, &Rows::Devices(devices.into())),
        segment(3, &Rows::Observations(observations)),
    ]
}

fn record() -> cardhour_books::attempt::Attempt {
    job("lab 1 vision a1 1 2026-03-02T09:00:00 2026-03-02T10:00:00")
}

/// Books the record of job 1, and nothing of what it covers.
async fn record_booked(pool: &Pool) {
    pool.ledger.import_jobs("jobs", vec![record()], vec![], vec![]).await.unwrap();
}

/// Held, free, unaccounted of usage, in quarter hours of a card.
async fn quarters(pool: &Pool) -> [i128; 3] {
    let mut sums = [0; 3];
    for (_, batch) in pool.rows(&crate::tables::usage::USAGE).await {
        let rows = crate::columns::Rows::new("usage", &batch);
        let (states, times) = (rows.text("state").unwrap(), rows.decimals("card_time").unwrap());
        for row in 0..batch.num_rows() {
            let state = ["held", "free", "unaccounted"].iter().position(|s| *s == states.value(row)).unwrap();
            sums[state] += times.value(row);
        }
    }
    sums.map(|part_ms| {
        assert_eq!(part_ms % (18_018_000 * 900_000), 0);
        part_ms / (18_018_000 * 900_000)
    })
}

async fn holds(pool: &Pool) {
    let verdict = pool.ledger.verify(None, None).await.unwrap();
    assert!(verdict.holds(), "{:#?}", verdict.faults);
}

/// By hand: two cards from 8:00 to 12:00 are 32 quarters. Held: job 1 by its record, one hour on GPU-1, and job 9 as it was seen, two quarters:
/// six. All else was looked at: 26 are free.
#[tokio::test]
async fn what_nodes_tell_is_in_the_books_once() {
    let pool = Pool::empty().await;
    record_booked(&pool).await;
    let taken: Vec<Taken> = pool.ledger.take_segments(told()).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(taken, [Taken::New(2), Taken::New(2), Taken::New(3)]);
    holds(&pool).await;
    assert_eq!(quarters(&pool).await, [6, 26, 0]);
    // The reply was lost: it comes again.
    let again: Vec<Taken> = pool.ledger.take_segments(told()).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(again, [Taken::Known; 3]);
    holds(&pool).await;
    assert_eq!(quarters(&pool).await, [6, 26, 0]);
}

#[tokio::test]
async fn records_and_segments_in_any_order_are_the_same_books() {
    let mut books = Vec::new();
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let pool = Pool::empty().await;
        for step in order {
            match told().into_iter().nth(step) {
                Some(segment) => _ = pool.ledger.take_segments(vec![segment]).await.remove(0).unwrap(),
                None => record_booked(&pool).await,
            }
            holds(&pool).await;
        }
        books.push(pool.derived().await);
    }
    assert_eq!(books[0], books[1]);
    assert_eq!(books[0], books[2]);
}

#[tokio::test]
async fn a_name_never_has_two_contents() {
    let pool = Pool::empty().await;
    let rows = |to: &str| Rows::Watches(vec![watch("GPU-1", "2026-03-02T08:00:00", to)]);
    pool.ledger.take_segments(vec![segment(1, &rows("2026-03-02T09:00:00"))]).await.remove(0).unwrap();
    let other = pool.ledger.take_segments(vec![segment(1, &rows("2026-03-02T10:00:00"))]).await.remove(0);
    assert!(matches!(other, Err(Error::SegmentDiffers { .. })), "{other:?}");
    // Also of two that come together.
    let both = vec![segment(2, &rows("2026-03-02T09:00:00")), segment(2, &rows("2026-03-02T10:00:00"))];
    let outcomes = pool.ledger.take_segments(both).await;
    assert!(matches!(outcomes[..], [Ok(Taken::New(1)), Err(Error::SegmentDiffers { .. })]), "{outcomes:?}");
}

#[tokio::test]
async fn a_file_that_is_no_segment_of_its_node_is_refused_whole() {
    let pool = Pool::empty().await;
    let good = Rows::Watches(vec![watch("GPU-1", "2026-03-02T08:00:00", "2026-03-02T09:00:00")]);
    let foreign = Segment { node: "b7".into(), ..segment(1, &good) };
    let wrong_stream = Segment { name: SegmentName::new(BOOT, 2, Stream::Samples), ..segment(1, &good) };
    let garbage = Segment { bytes: Bytes::from_static(b"PAR1 and then nothing PAR1"), ..segment(3, &good) };
    let early = Rows::Watches(vec![watch("GPU-1", "1970-01-01T00:00:01", "1970-01-01T00:01:00")]);
    let long_name = Rows::Watches(vec![watch(&"G".repeat(2000), "2026-03-02T08:00:00", "2026-03-02T09:00:00")]);
    let all = vec![foreign, wrong_stream, garbage, segment(4, &early), segment(5, &long_name), segment(6, &good)];
    let outcomes = pool.ledger.take_segments(all).await;
    let said: Vec<String> =
        outcomes.iter().map(|o| o.as_ref().map_or_else(ToString::to_string, |_| "taken".into())).collect();
    let expected = [
        "row 1: node: is of \"a1\", not of \"b7\"",
        "has no column",
        "is no Parquet file that can be read",
        "row 1: ts: 1970-01-01T00:00:01Z is before 2000 or after 9999",
        "row 1: has a text of 2000 bytes, more than 1024",
        "taken",
    ];
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(pool.count(&telemetry::WATCHES).await, 1);
}

/// A text of 20 MB, four times: a few kilobytes on disk.
#[tokio::test]
async fn a_file_that_unpacks_to_more_than_there_is_memory_is_refused() {
    let text = "x".repeat(20 << 20);
    let array = StringArray::from_iter_values(std::iter::repeat_n(text.as_str(), 4));
    let schema = Arc::new(Schema::new(vec![Field::new("card_uuid", DataType::Utf8, false)]));
    let bytes = parquet(&RecordBatch::try_new(schema, vec![Arc::new(array)]).unwrap());
    let pool = Pool::empty().await;
    let bomb = Segment { node: "a1".into(), name: SegmentName::new(BOOT, 1, Stream::Watches), bytes };
    let said = pool.ledger.take_segments(vec![bomb]).await.remove(0).unwrap_err().to_string();
    assert!(said.contains("column card_uuid unpacks to"), "{said}");
}

/// A file of nodes says four cards: two of them nobody ever saw, and nobody speaks for them.
#[tokio::test]
async fn cards_that_no_node_saw_are_unaccounted() {
    let pool = Pool::empty().await;
    pool.ledger.import_nodes("nodes", vec![node("lab", "a1", "A100", 4)], vec![]).await.unwrap();
    pool.ledger.take_segments(told()).await.into_iter().for_each(|taken| _ = taken.unwrap());
    holds(&pool).await;
    // By hand: 4 cards × 16 quarters = 64. Seen held: job 1 for 9:00:10 … 9:59:55 without its record is no whole quarter, so it is left out here.
    let pool = Pool::empty().await;
    pool.ledger.import_nodes("nodes", vec![node("lab", "a1", "A100", 4)], vec![]).await.unwrap();
    record_booked(&pool).await;
    pool.ledger.take_segments(told()).await.into_iter().for_each(|taken| _ = taken.unwrap());
    holds(&pool).await;
    assert_eq!(quarters(&pool).await, [6, 26, 32]);
}
