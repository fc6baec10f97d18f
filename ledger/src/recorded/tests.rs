use super::*;
use crate::fixture::{Pool, at};
use cardhour_books::import::metrics::{Setting, smi_log};
use cardhour_domain::Interval;

/// Lines `SECOND CARD UTIL`, minute by minute: a log of nvidia-smi on node a1 of cluster lab.
fn log(lines: &[&str]) -> Telemetry {
    let setting = Setting { node: Some("a1".into()), ..Setting::of_cluster("lab") };
    let mut text = "timestamp, uuid, utilization.gpu [%], power.draw [W]\n".to_owned();
    for line in lines {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [time, card, util] = fields[..] else { panic!("{line}") };
        text.push_str(&format!("2026/03/02 {time}.000, GPU-{card}, {util} %, 100.00 W\n"));
    }
    Telemetry::of([smi_log::read(text.as_bytes(), None, &setting).unwrap()], &setting)
}

async fn imported(pool: &Pool, told: Telemetry) -> (u64, u64, u64) {
    let booked = pool.ledger.import_telemetry(told, vec![]).await.unwrap();
    let verdict = pool.ledger.verify(None, None).await.unwrap();
    assert!(verdict.holds(), "{:#?}", verdict.faults);
    (booked.booked, booked.unchanged, booked.superseded)
}

const EARLY: [&str; 3] = ["08:01:00 1 10", "08:02:00 1 20", "08:03:00 1 30"];
const LATE: [&str; 3] = ["08:02:00 1 20", "08:03:00 1 30", "08:04:00 1 40"];

/// Three samples; the device at its first sample and at its last.
#[tokio::test]
async fn an_import_that_comes_again_changes_nothing() {
    let pool = Pool::empty().await;
    assert_eq!(imported(&pool, log(&EARLY)).await, (5, 0, 0));
    let books = pool.derived().await;
    assert_eq!(imported(&pool, log(&EARLY)).await, (0, 5, 0));
    assert_eq!(pool.derived().await, books);
}

/// Two of the later three are known, and so the device at neither of its ends is: one sample and two rows of the device.
#[tokio::test]
async fn imports_that_overlap_come_to_the_same_in_any_order() {
    let mut books = Vec::new();
    for order in [[EARLY, LATE], [LATE, EARLY]] {
        let pool = Pool::empty().await;
        assert_eq!(imported(&pool, log(&order[0])).await, (5, 0, 0));
        assert_eq!(imported(&pool, log(&order[1])).await, (3, 2, 0));
        books.push(pool.derived().await);
    }
    assert_eq!(books[0], books[1]);
}

/// An instant with another value: the smaller counts, the other is kept and never counted.
#[tokio::test]
async fn of_two_versions_of_an_instant_one_gives_way_whichever_came_first() {
    let other = ["08:01:00 1 10", "08:02:00 1 25", "08:03:00 1 30"];
    let pool = Pool::empty().await;
    imported(&pool, log(&EARLY)).await;
    assert_eq!(imported(&pool, log(&other)).await, (0, 4, 1), "25 % gives way to 20 %");
    assert_eq!(imported(&pool, log(&other)).await, (0, 5, 0), "and is known from then on");
    let turned = Pool::empty().await;
    imported(&turned, log(&other)).await;
    assert_eq!(imported(&turned, log(&EARLY)).await, (1, 4, 1));
    assert_eq!(turned.derived().await, pool.derived().await);
}

#[tokio::test]
async fn an_import_that_was_killed_is_finished_by_whoever_comes_next() {
    let whole = Pool::empty().await;
    imported(&whole, log(&EARLY)).await;
    for tables_done in 0..=2 {
        let pool = Pool::empty().await;
        let told = log(&EARLY);
        let devices = told.devices.iter().cloned().chain(told.last_seen()).collect();
        let all = vec![Rows::Devices(devices), Rows::Samples(told.samples)];
        let pending = pool.ledger.put_aside(&all).unwrap().unwrap();
        assert!(pool.ledger.left_aside().unwrap().is_empty(), "somebody is at it");
        for rows in &all[..tables_done] {
            add(&pool.ledger.store, rows.clone()).await.unwrap();
        }
        // Its process ends here.
        drop(pending);
        pool.ledger.catch_up().await.unwrap();
        assert_eq!(pool.derived().await, whole.derived().await, "killed after {tables_done} tables");
        assert!(pool.ledger.left_aside().unwrap().is_empty());
        assert_eq!(imported(&pool, log(&EARLY)).await, (0, 5, 0));
    }
}

/// Killed before it was whole: nothing of it is in the books, and nothing stays in the folder.
#[tokio::test]
async fn an_import_that_was_killed_before_it_was_whole_never_was() {
    let pool = Pool::empty().await;
    let folder = pool.dir.path().join("ledger/importing/x.tmp");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("lock"), "").unwrap();
    std::fs::write(folder.join("samples.parquet"), "PAR1").unwrap();
    pool.ledger.catch_up().await.unwrap();
    assert!(!folder.exists());
}

/// By hand: one card from 08:00 to 08:03, in which nobody is known to hold it: all of it is unaccounted, in one quarter hour.
#[tokio::test]
async fn a_card_of_which_only_its_use_is_known_is_unaccounted() {
    let pool = Pool::empty().await;
    imported(&pool, log(&EARLY)).await;
    let mut states = Vec::new();
    for (_, batch) in pool.rows(&crate::tables::usage::USAGE).await {
        let rows = crate::columns::Rows::new("usage", &batch);
        let (names, times) = (rows.text("state").unwrap(), rows.decimals("card_time").unwrap());
        let buckets = rows.instants("bucket_start").unwrap();
        for row in 0..batch.num_rows() {
            let bucket = Timestamp::from_unix_us(buckets.value(row));
            states.push((names.value(row).to_owned(), bucket, times.value(row)));
        }
    }
    let whole = Interval::new(at("2026-03-02T08:00:00"), at("2026-03-02T08:03:00")).unwrap();
    let expected = ("unaccounted".to_owned(), whole.start(), 18_018_000 * i128::from(whole.length_ms()));
    assert_eq!(states, [expected]);
}
