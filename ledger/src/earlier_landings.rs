//! Ledgers that earlier landings made, under `tests/ledgers`: each opens, is proven, reports what it held, and goes on.

use crate::fixture::{Pool, at, during, job, node};
use crate::{Billed, CloseOutcome, CloseRequest, Ledger, Maintain, Terms};
use cardhour_books::attempt::Attempt;
use cardhour_books::site::{Coverage, Outage};
use cardhour_books::statement::BillingPolicy;
use cardhour_domain::{CardTime, Month, Zone};
use std::path::{Path, PathBuf};

/// Kept so far. `v2` is of the landing since which files are written as runs and rows are counted.
const KEPT: [&str; 2] = ["v1", "v2"];

/// What is in each: three jobs on a node of four cards over two hours, an outage in them.
fn jobs() -> Vec<Attempt> {
    vec![
        job("lab 1 vision n1 2 2026-03-02T10:00:00 2026-03-02T11:00:00"),
        job("lab 2 speech n1 1 2026-03-02T10:20:00 2026-03-02T11:45:30"),
        job("lab 3 vision n1 0.5@GPU-x 2026-03-02T10:00:00 2026-03-02T10:30:00"),
    ]
}

fn covers() -> Vec<Coverage> {
    vec![Coverage { cluster: "lab".into(), covers: during("2026-03-02T10:00:00", "2026-03-02T12:00:00") }]
}

fn kept(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledgers").join(version)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy(&path, &to) } else { _ = std::fs::copy(&path, &to).unwrap() }
    }
}

/// By hand: 2 × 1 h + 1 × 1:25:30 + 0.5 × 0.5 h.
fn held() -> CardTime {
    CardTime::from_part_ms(18_018_000 * (2 * 3_600_000 + 5_130_000 + 900_000))
}

#[tokio::test]
async fn a_ledger_of_an_earlier_landing_opens_and_goes_on() {
    for version in KEPT {
        opens_and_goes_on(version).await;
    }
}

async fn opens_and_goes_on(version: &str) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("ledger");
    copy(&kept(version), &place);
    let ledger = Ledger::open(place.to_str().unwrap()).await.unwrap();
    assert_eq!(ledger.zone(), Zone::parse("Asia/Shanghai").unwrap());
    let holds = || async {
        let verdict = ledger.verify(Some(&crate::fixture::book()), None).await.unwrap();
        assert!(verdict.holds(), "{version}: {:?}", verdict.faults);
        verdict.checks.iter().find(|check| check.what.starts_with("holdings are")).unwrap().card_time.unwrap()
    };
    assert_eq!(holds().await, held());
    let again = ledger.import_jobs("jobs", jobs(), vec![], covers()).await.unwrap();
    assert_eq!((again.booked, again.unchanged), (0, 3), "it knows its own rows");
    let new = job("lab 4 vision n1 1 2026-03-02T11:00:00 2026-03-02T12:00:00");
    ledger.import_jobs("jobs", vec![new], vec![], covers()).await.unwrap();
    ledger.maintain(Maintain::default()).await.unwrap();
    assert_eq!(holds().await, held() + CardTime::from_part_ms(18_018_000 * 3_600_000));
}

/// `v3-closed` is of the landing before closings said what they froze: March is closed with 2 cards for an hour and one for 1:25:30 at 18.50, which is 37.00
/// and 26.3625, so 63.36. It stays what it was, and April can be closed.
#[tokio::test]
async fn a_month_that_an_earlier_landing_closed_stays_closed() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("ledger");
    copy(&kept("v3-closed"), &place);
    let ledger = Ledger::open(place.to_str().unwrap()).await.unwrap();
    let ledger = &ledger;
    let (march, april) = (Month::parse("2026-03").unwrap(), Month::parse("2026-04").unwrap());
    let (book, policy) = (crate::fixture::book(), BillingPolicy::default());
    let terms = Terms { book: &book, policy: &policy };
    let total = |billed: Billed| billed.statements.iter().map(|statement| statement.total.micros()).sum::<i128>();
    let of = |month| async move { ledger.read().await.unwrap().billed(month, ledger.zone(), terms).await.unwrap() };
    assert_eq!(total(of(march).await), 63_360_000);
    let verdict = ledger.verify(Some(&book), None).await.unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
    let request = CloseRequest {
        month: april,
        now: at("2026-07-01"),
        by: "ann".into(),
        comment: None,
        sign_off: Some("nothing is known of it".into()),
        prices: crate::fixture::PRICES.to_owned(),
        policy: String::new(),
        code_version: "test".into(),
    };
    let CloseOutcome::Done(closing) = ledger.close(&request, terms).await.unwrap() else { panic!("refused") };
    assert_eq!(closing.amount.micros(), 0, "nothing to correct");
    assert!(closing.sources.contains_key(&march), "from now on March is passed over");
    let reading = ledger.read().await.unwrap();
    let zones: Vec<_> = reading.closings().iter().map(|closing| closing.zone).collect();
    assert_eq!(zones, [None, Some(ledger.zone())], "a column that March has not");
}

/// Makes the ledger of this landing: `cargo nextest run -p cardhour-ledger make_a_ledger --run-ignored only`, for the folder that it
/// prints to be put under `tests/ledgers` when the schema of a table, or the way its files are
/// written, has changed.
#[tokio::test]
#[ignore = "makes a ledger to keep, once a landing"]
async fn make_a_ledger_to_keep() {
    let pool = Pool::empty().await;
    let mut n1 = node("lab", "n1", "A100", 4);
    n1.in_service_at = Some(at("2026-03-02T10:00:00"));
    pool.ledger.import_nodes("nodes", vec![n1], vec![]).await.unwrap();
    let outage = Outage {
        cluster: "lab".into(),
        during: during("2026-03-02T10:30:00", "2026-03-02T11:10:00"),
        nodes: vec!["n1".into()],
        cards: None,
        reason: Some("fan".into()),
    };
    pool.ledger.import_outages("outages", vec![outage], vec![]).await.unwrap();
    pool.ledger.import_jobs("jobs", jobs(), vec![], covers()).await.unwrap();
    println!("{}", pool.dir.keep().display());
}
