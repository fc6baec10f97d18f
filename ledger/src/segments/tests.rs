use super::*;
use crate::fixture::{Pool, at, during, job, node};
use arrow::array::Array;
use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use cardhour_domain::columns::Rows;
use cardhour_domain::{
    CardShare, EnergyBasis, Gap, Holder, HolderKind, HolderSource, Interval, JobState, Millijoules, Observation, Owner,
    Percent, Reading, Sample, SampleSource, SeenDevice, Timestamp, UseBasis, Watch,
};
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

/// A card can't give energy back, and draws no more in one row than 2 kW do in almost six days, 10^12 mJ: the sum of what can't be would stop every report.
#[tokio::test]
async fn energy_that_no_card_draws_is_refused() {
    let pool = Pool::empty().await;
    let most = 1_000_000_000_000;
    let rows = [most, most + 1, -1, i64::MAX].map(|mj| Rows::Samples(vec![minute("2026-03-02T09:00:00", 50, mj)]));
    let segments = rows.iter().zip(1..).map(|(rows, sequence)| segment(sequence, rows)).collect();
    let said = |taken: &Result<_, crate::Error>| taken.as_ref().map_or_else(ToString::to_string, |_| "taken".into());
    let said: Vec<String> = pool.ledger.take_segments(segments).await.iter().map(said).collect();
    assert_eq!(said[0], "taken");
    for (said, mj) in said[1..].iter().zip(["1000000000001", "-1", "9223372036854775807"]) {
        assert!(said.contains(&format!("row 1: energy_mj: {mj} is not from 0 to 1000000000000")), "{said}");
    }
    assert_eq!(pool.count(&telemetry::SAMPLES).await, 1);
}

/// Every bit of a file's footer turned over, one at a time: whatever the reader thinks of it, the file is refused or read, and the next one is taken.
#[tokio::test]
async fn a_damaged_footer_is_refused_and_nothing_else_suffers() {
    let pool = Pool::empty().await;
    let rows = Rows::Devices(vec![card("GPU-1", "2026-03-02T08:00:00")]);
    let good = segment(1, &rows);
    let length = good.bytes.len();
    let footer = u32::from_le_bytes(good.bytes[length - 8..length - 4].try_into().unwrap()) as usize;
    let mut contradicting = 0;
    for at in length - 8 - footer..length {
        for bit in 0..8 {
            let mut bytes = good.bytes.to_vec();
            bytes[at] ^= 1 << bit;
            let refused = unpack::rows(Stream::Devices, bytes.into()).err().unwrap_or_default();
            contradicting += usize::from(refused.contains("contradicts itself"));
        }
    }
    assert!(contradicting > 0, "some of them have the reader assert");
    assert_eq!(pool.ledger.take_segments(vec![good]).await.remove(0).unwrap(), Taken::New(1));
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

/// A minute of GPU-1 as its collector says it: percent busy, millijoules.
fn minute(from: &str, busy_pct: i32, energy_mj: i64) -> Sample {
    let start = at(from);
    let end = Timestamp::from_unix_ms(start.unix_ms() + 60_000);
    let missing = Gap::NotSupported;
    Sample {
        during: Interval::new(start, end).unwrap(),
        card_uuid: "GPU-1".into(),
        device_uuid: "GPU-1".into(),
        node: "a1".into(),
        attempt_key: None,
        sm_active_pct: Reading::Seen(Percent::from_thousandths(busy_pct * 1000).unwrap()),
        use_basis: UseBasis::Gpm,
        mem_active_pct: Reading::Missing(missing),
        media_active_pct: Reading::Missing(missing),
        mem_used_bytes: Reading::Missing(missing),
        nvlink_bytes: Reading::Missing(missing),
        pcie_bytes: Reading::Missing(missing),
        power_mw: Reading::Missing(missing),
        energy_mj: Reading::Seen(Millijoules(energy_mj)),
        energy_basis: EnergyBasis::Counter,
        temperature_c: Reading::Missing(missing),
        source: SampleSource::Collector,
    }
}

/// Sum of a column of usage over the rows of a state.
async fn sum(pool: &Pool, state: &str, column: &str) -> i128 {
    let mut sum = 0;
    for (_, batch) in pool.rows(&crate::tables::usage::USAGE).await {
        let rows = crate::columns::Rows::new("usage", &batch);
        let states = rows.text("state").unwrap();
        for row in (0..batch.num_rows()).filter(|row| states.value(*row) == state) {
            sum += match column {
                "energy_mj" => {
                    rows.long(column).map(|c| i128::from(if c.is_null(row) { 0 } else { c.value(row) })).unwrap()
                }
                _ => rows.decimals(column).map(|c| if c.is_null(row) { 0 } else { c.value(row) }).unwrap(),
            };
        }
    }
    sum
}

/// Job 1 on GPU-1, seen from 8:45 to 9:30.
async fn seen_in_part() -> Pool {
    let pool = Pool::empty().await;
    record_booked(&pool).await;
    let mut minutes: Vec<Sample> = (45..60).map(|m| minute(&format!("2026-03-02T08:{m}:00"), 0, 3_000)).collect();
    minutes.extend((0..30).map(|m| minute(&format!("2026-03-02T09:{m:02}:00"), 80, 30_000)));
    let mut segments = told();
    segments.push(segment(4, &Rows::Samples(minutes)));
    pool.ledger.take_segments(segments).await.into_iter().for_each(|taken| _ = taken.unwrap());
    pool
}

/// By hand: both cards serve from 8:00 to 12:00 and are looked at all the time. GPU-1 is read from 8:45 to 9:30, so for 45 and 150 minutes it isn't;
/// GPU-2 never is, for 240.
#[tokio::test]
async fn what_nobody_read_is_in_gaps() {
    let pool = seen_in_part().await;
    holds(&pool).await;
    let mut lines = Vec::new();
    for (_, batch) in pool.rows(&crate::tables::gaps::GAPS).await {
        let rows = crate::columns::Rows::new("gaps", &batch);
        let [what, card, reason] = ["what", "card_uuid", "reason"].map(|name| rows.text(name).unwrap());
        let (from, time) = (rows.instants("started_at").unwrap(), rows.decimals("card_time").unwrap());
        for row in 0..batch.num_rows() {
            let (from, minutes) = (Timestamp::from_unix_us(from.value(row)), time.value(row) / (18_018_000 * 60_000));
            lines.push(format!("{} {} {from} {minutes} {}", what.value(row), card.value(row), reason.value(row)));
        }
    }
    lines.sort();
    let expected = [
        "use GPU-1 2026-03-02T08:00:00Z 45 collector_down",
        "use GPU-1 2026-03-02T09:30:00Z 150 collector_down",
        "use GPU-2 2026-03-02T08:00:00Z 240 collector_down",
    ];
    assert_eq!(lines, expected);
}

/// A ledger of an earlier landing has no such table: opening it makes one.
#[tokio::test]
async fn gaps_are_worked_out_where_an_earlier_landing_had_none() {
    let pool = seen_in_part().await;
    pool.ledger.catch_up().await.unwrap();
    let before = pool.derived().await;
    std::fs::remove_dir_all(pool.ledger.folder().unwrap().join("gaps")).unwrap();
    let ledger = crate::Ledger::open(pool.ledger.place()).await.unwrap();
    ledger.catch_up().await.unwrap();
    assert_eq!(pool.derived().await, before);
}

/// Whatever made usage, its use can't be more than samples tell: each kind of damage is found where it is.
#[tokio::test]
async fn verify_holds_use_against_samples() {
    use crate::fixture::{Cells, To, changed, row_where};
    use crate::tables::usage::USAGE;
    let bucket = |text: &'static str| {
        move |cells: &Cells<'_>, row: usize| {
            cells.text("card_uuid", row) == "GPU-1"
                && cells.text("state", row) == "held"
                && cells.at("bucket_start", row) == at(text)
        }
    };
    let minute = 18_018_000 * 60_000;
    // From, to, how much, in which quarter hour, and what is said of it.
    for (from, to, more, of, words) in [
        ("unseen", "underused", 15 * minute, "2026-03-02T09:30:00", " seen"),
        ("underused", "effective", 2 * minute, "2026-03-02T09:15:00", "busy"),
        ("effective", "lost", minute, "2026-03-02T09:00:00", "lost of 0.000000 card-hours"),
    ] {
        let pool = seen_in_part().await;
        holds(&pool).await;
        let is_it = bucket(of);
        pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, from, To::More(-more)))).await;
        pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, to, To::More(more)))).await;
        let verdict = pool.ledger.verify(None, None).await.unwrap();
        let told: Vec<String> =
            verdict.faults.iter().map(|f| format!("{} {} {}", f.place, f.expected, f.found)).collect();
        assert!(
            told.iter().any(|fault| fault.contains(words) && fault.contains(&at(of).to_string())),
            "{from} {told:?}"
        );
    }
    let pool = seen_in_part().await;
    holds(&pool).await;
    pool.damage(&USAGE, |batch| {
        Some(changed(batch, row_where(batch, bucket("2026-03-02T09:00:00"))?, "energy_mj", To::More(1)))
    })
    .await;
    let verdict = pool.ledger.verify(None, None).await.unwrap();
    assert!(verdict.faults.iter().any(|fault| fault.expected == "at most 945000 mJ"), "{:?}", verdict.faults);
}

/// By hand. Job 1 holds GPU-1 from 9:00 to 10:00. It is seen from 8:45 to 9:30, a minute each, 80 % busy from 9:00 on, at 3 J a minute before and 30 J
/// from then on; nobody looks after 9:30. Held: 60 minutes = 24 effective + 6 underused + 30 unseen. Energy: 30 × 30 J are the job's, 15 × 3 J
/// are of the free card.
#[tokio::test]
async fn held_time_is_split_and_energy_is_somebodys() {
    let pool = seen_in_part().await;
    holds(&pool).await;
    let minutes = |part_ms: i128| part_ms / (18_018_000 * 60_000);
    let mut split = Vec::new();
    for column in ["effective", "underused", "idle", "lost"] {
        split.push(minutes(sum(&pool, "held", column).await));
    }
    assert_eq!(split, [24, 6, 0, 0]);
    // Half an hour of job 1, and the half hour of job 9 that nobody metered.
    assert_eq!(minutes(sum(&pool, "held", "unseen").await), 30 + 30);
    assert_eq!(sum(&pool, "held", "energy_mj").await, 900_000);
    assert_eq!(sum(&pool, "free", "energy_mj").await, 45_000);
}

/// The same samples hour by hour, last hour first, are the same books as all at once.
#[tokio::test]
async fn samples_in_any_order_are_the_same_books() {
    let minutes: Vec<Sample> = (0..240)
        .map(|m| minute(&format!("2026-03-02T{:02}:{:02}:00", 8 + m / 60, m % 60), (m % 7) as i32 * 10, 1_000 + m))
        .collect();
    let mut books = Vec::new();
    for is_reversed in [false, true] {
        let pool = Pool::empty().await;
        record_booked(&pool).await;
        pool.ledger.take_segments(told()).await.into_iter().for_each(|taken| _ = taken.unwrap());
        let mut hours: Vec<Segment> = minutes
            .chunks(60)
            .zip(10..)
            .map(|(hour, sequence)| segment(sequence, &Rows::Samples(hour.to_vec())))
            .collect();
        if is_reversed {
            hours.reverse();
            for hour in hours {
                pool.ledger.take_segments(vec![hour]).await.remove(0).unwrap();
                pool.ledger.catch_up().await.unwrap();
            }
        } else {
            pool.ledger.take_segments(hours).await.into_iter().for_each(|taken| _ = taken.unwrap());
        }
        holds(&pool).await;
        books.push(pool.derived().await);
    }
    assert_eq!(books[0], books[1]);
}

/// By hand: job 7 holds GPU-1 from 20:00 to 2:00 of the next day and is seen 50 % busy from 21:00 to 22:00: those 60 minutes, on the first day, are
/// lost once it has failed. It was booked as running at 1:00 before.
#[tokio::test]
async fn a_job_that_fails_the_next_day_lost_the_day_before() {
    let minutes = (0..60).map(|m| minute(&format!("2026-03-02T21:{m:02}:00"), 50, 1_000)).collect();
    let seen = [
        Rows::Watches(vec![watch("GPU-1", "2026-03-02T21:00:00", "2026-03-02T22:00:00")]),
        Rows::Devices(vec![card("GPU-1", "2026-03-02T21:00:00")]),
        Rows::Samples(minutes),
    ];
    let mut failed = job("lab 7 vision a1 1@GPU-1 2026-03-02T20:00:00 2026-03-03T02:00:00");
    failed.state = JobState::Failed;
    let mut running = failed.clone();
    (running.state, running.is_final, running.ended_at) = (JobState::Running, false, None);
    running.as_of = Some(at("2026-03-03T01:00:00"));
    let mut books = Vec::new();
    for versions in [vec![running, failed.clone()], vec![failed]] {
        let pool = Pool::empty().await;
        let segments = seen.iter().zip(1..).map(|(rows, sequence)| segment(sequence, rows)).collect();
        pool.ledger.take_segments(segments).await.into_iter().for_each(|taken| _ = taken.unwrap());
        for version in versions {
            pool.ledger.import_jobs("jobs", vec![version], vec![], vec![]).await.unwrap();
            pool.ledger.catch_up().await.unwrap();
        }
        holds(&pool).await;
        assert_eq!(sum(&pool, "held", "lost").await, 60 * 60_000 * 18_018_000);
        books.push(pool.derived().await);
    }
    assert_eq!(books[0], books[1]);
}

#[tokio::test]
async fn what_lies_in_the_folder_is_taken_in_and_what_is_refused_kept_aside() {
    let pool = Pool::empty().await;
    pool.ledger.make_incoming().unwrap();
    let folder = pool.ledger.folder().unwrap().join("incoming/a1");
    std::fs::create_dir_all(&folder).unwrap();
    for segment in told() {
        std::fs::write(folder.join(segment.name.to_string()), &segment.bytes).unwrap();
    }
    let odd = SegmentName::new(BOOT, 9, Stream::Watches).to_string();
    std::fs::write(folder.join(&odd), "no Parquet").unwrap();
    std::fs::write(folder.join("being-written.tmp"), "half").unwrap();
    // A pipe would be waited for, and a folder can't be read.
    let pipe = SegmentName::new(BOOT, 10, Stream::Watches).to_string();
    assert!(std::process::Command::new("mkfifo").arg(folder.join(&pipe)).status().unwrap().success());
    let inner = SegmentName::new(BOOT, 11, Stream::Watches).to_string();
    std::fs::create_dir(folder.join(&inner)).unwrap();
    record_booked(&pool).await;
    pool.ledger.catch_up().await.unwrap();
    holds(&pool).await;
    assert_eq!(quarters(&pool).await, [6, 26, 0]);
    let mut left: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["being-written.tmp", "refused"]);
    assert!([odd, pipe, inner].into_iter().all(|name| folder.join("refused").join(name).exists()));
    assert!(!pool.ledger.has_incoming());
}
