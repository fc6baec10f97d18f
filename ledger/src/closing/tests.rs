use super::*;
use crate::Maintain;
use crate::fixture::{Pool, at, book, job};
use cardhour_books::attempt::Attempt;
use cardhour_books::prices::PriceBook;
use cardhour_books::report::{ReportKind, ReportQuery, report};
use cardhour_books::slots::Slots;
use cardhour_books::statement::{BillingPolicy, Entry, EntryKind};
use cardhour_books::table::Value;

/// The text of [`book`]: closing keeps it.
const PRICES: &str = crate::fixture::PRICES;

fn march() -> Month {
    Month::parse("2026-03").unwrap()
}

fn request(month: Month, sign_off: Option<&str>) -> CloseRequest {
    CloseRequest {
        month,
        now: at("2026-07-01"),
        by: "ann".into(),
        comment: Some("as agreed".into()),
        sign_off: sign_off.map(Into::into),
        prices: PRICES.to_owned(),
        policy: String::new(),
        code_version: "test".into(),
    }
}

async fn close(pool: &Pool, month: Month, sign_off: Option<&str>) -> CloseOutcome {
    let (book, policy) = (book(), BillingPolicy::default());
    pool.ledger.close(&request(month, sign_off), Terms { book: &book, policy: &policy }).await.unwrap()
}

async fn closed(pool: &Pool, month: Month) -> Closing {
    match close(pool, month, Some("the test is of a part of a month")).await {
        CloseOutcome::Done(closing) => *closing,
        CloseOutcome::Refused(refusals) => panic!("{}", refusals.iter().map(ToString::to_string).collect::<String>()),
    }
}

async fn billed(pool: &Pool, month: Month) -> Billed {
    let (book, policy) = (book(), BillingPolicy::default());
    let reading = pool.ledger.read().await.unwrap();
    reading.billed(month, pool.ledger.zone(), Terms { book: &book, policy: &policy }).await.unwrap()
}

fn entries(billed: &Billed) -> Vec<Entry> {
    billed.statements.iter().flat_map(|statement| statement.entries.clone()).collect()
}

/// The total of the bill of March, and its held hours, by the price book in force beside `open`.
async fn bill(pool: &Pool, open: &PriceBook) -> (String, String) {
    let reading = pool.ledger.read().await.unwrap();
    let zone = pool.ledger.zone();
    let book = reading.prices_in_force(Some(open), zone).unwrap().unwrap().unwrap();
    let range = march().interval(zone);
    let slots = Slots::new(range, Some(&book), zone, None).unwrap();
    let query = ReportQuery { report: ReportKind::Bill, by: Vec::new(), range: Some(range), zone: None };
    let table = report(&reading.input(&slots).await.unwrap(), &slots, Some(&book), &query).table;
    let of = |name: &str| {
        let place = table.columns.iter().position(|column| column.name == name).unwrap();
        match &table.rows[0][place] {
            Value::Decimal(value) => value.to_string(),
            other => panic!("{name}: {other:?}"),
        }
    };
    (of("cost"), of("card_hours"))
}

async fn import(pool: &Pool, jobs: Vec<Attempt>) {
    pool.ledger.import_jobs("late.txt", jobs, Vec::new(), Vec::new()).await.unwrap();
}

/// What the pool's exports cover ends on 4 March, and of nobody's cloud nothing is known.
#[tokio::test]
async fn m20_a_month_that_no_source_speaks_for_is_refused_without_a_reason_and_closed_with_one() {
    let pool = Pool::booked().await;
    let CloseOutcome::Refused(refusals) = close(&pool, march(), None).await else { panic!("closed") };
    let said: String = refusals.iter().map(|refusal| format!("{refusal}\n")).collect();
    assert!(said.contains("cluster \"cloud\" speak at no time"), "{said}");
    assert!(said.contains("cluster \"lab\" speak until 2026-03-04T12:00:00Z"), "{said}");
    assert!(pool.ledger.read().await.unwrap().closings().is_empty(), "nothing is closed by being refused");
    let closing = closed(&pool, march()).await;
    assert_eq!(closing.sign_off.as_deref(), Some("the test is of a part of a month"));
    assert_eq!(bill(&pool, &book()).await.0, closing.amount.to_minor_string(), "the statements are the bill");
}

#[tokio::test]
async fn a_month_is_not_closed_before_it_is_over_nor_out_of_turn() {
    let pool = Pool::booked().await;
    let (prices, policy) = (book(), BillingPolicy::default());
    let early = CloseRequest { now: at("2026-03-31T15:59:59"), ..request(march(), Some("hurry")) };
    let outcome = pool.ledger.close(&early, Terms { book: &prices, policy: &policy }).await.unwrap();
    let CloseOutcome::Refused(refusals) = outcome else { panic!("closed") };
    assert!(matches!(refusals[..], [Refusal::NotOver { .. }]), "{refusals:?}");
    closed(&pool, march()).await;
    let may = Month::parse("2026-05").unwrap();
    let CloseOutcome::Refused(refusals) = close(&pool, may, Some("hurry")).await else { panic!("closed") };
    assert_eq!(refusals, [Refusal::NotTheNext { next: march().next() }]);
    let february = Month::parse("2026-02").unwrap();
    let CloseOutcome::Refused(refusals) = close(&pool, february, Some("hurry")).await else { panic!("closed") };
    assert_eq!(refusals, [Refusal::BeforeTheFirst { first: march() }]);
}

/// T14, LED-5. By hand: `late` held a card of a1 from 14:00 to 15:00 in Shanghai, outside of the night, at the 16.11 that A100s cost since 3 March: 16.11.
#[tokio::test]
async fn t14_a_late_job_changes_no_closed_byte_and_is_a_correction_in_the_open_month() {
    let pool = Pool::booked().await;
    let closing = closed(&pool, march()).await;
    let before = (canonical_csv(&billed(&pool, march()).await.statements), bill(&pool, &book()).await);
    assert_eq!(sha256_of(&before.0), closing.sha256);

    import(&pool, vec![job("lab 1000 late a1 1 2026-03-03T06:00:00 2026-03-03T07:00:00")]).await;
    let after = (canonical_csv(&billed(&pool, march()).await.statements), bill(&pool, &book()).await);
    assert_eq!(before, after, "the closed month is what it was");
    let april = entries(&billed(&pool, march().next()).await);
    let [correction] = &april[..] else { panic!("{april:?}") };
    assert_eq!(correction.amount.to_minor_string(), "16.11");
    assert_eq!((correction.kind(), correction.key.original_period), (EntryKind::Correction, march()));

    closed(&pool, march().next()).await;
    assert_eq!(entries(&billed(&pool, march().next().next()).await), [], "it was corrected once");
    let verdict = pool.ledger.verify(Some(&book()), None).await.unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
    assert_eq!(verdict.checks.len(), 18, "two of them are of closed months");
}

/// The month keeps its prices and its owners, whatever is written into the price book or said of a job later.
#[tokio::test]
async fn a_closed_month_keeps_the_prices_and_the_owners_that_it_was_closed_with() {
    let pool = Pool::booked().await;
    let before = bill(&pool, &book()).await;
    closed(&pool, march()).await;
    let dearer = PriceBook::parse(&PRICES.replace("18.37", "99.99").replace("night = \"0.6\"", "night = \"0.1\""));
    assert_eq!(bill(&pool, &dearer.unwrap().unwrap()).await, before);

    let mut moved = job("lab 1 vision a1 2 2026-03-02T10:07:13 2026-03-03T02:30:00");
    moved.project = Some("theirs".into());
    moved.as_of = Some(at("2026-04-02"));
    import(&pool, vec![moved]).await;
    assert_eq!(bill(&pool, &book()).await, before);
    let april = entries(&billed(&pool, march().next()).await);
    let sum: i128 = april.iter().map(|entry| entry.amount.micros()).sum();
    let projects: HashSet<&str> = april.iter().filter_map(|entry| entry.key.project.as_deref()).collect();
    assert_eq!(projects, HashSet::from(["vision", "theirs"]));
    // Two windows, and each leaf is rounded by itself: half a cent for each of four.
    assert!(sum.abs() <= 4 * 5_000, "what one pays more the other pays less: {sum}");
}

/// M25 and T11: run twice is run once; a closing that was killed before its last commit counts for nothing.
#[tokio::test]
async fn t11_a_closing_that_was_killed_counts_for_nothing_and_the_same_again_lands_once() {
    let pool = Pool::booked().await;
    let (prices, policy) = (book(), BillingPolicy::default());
    let terms = Terms { book: &prices, policy: &policy };
    let reading = pool.ledger.read().await.unwrap();
    let request = request(march(), Some("killed"));
    let prepared = prepare(&reading, pool.ledger.zone(), march(), request.now, terms).await.unwrap();
    let killed = closing_of(&request, &reading, &prepared, terms);
    pool.ledger.freeze(&reading, &prepared, &killed).await.unwrap();
    assert!(pool.ledger.read().await.unwrap().closings().is_empty());

    import(&pool, vec![job("lab 1000 late a1 1 2026-03-03T06:00:00 2026-03-03T07:00:00")]).await;
    let with_late = bill(&pool, &book()).await;
    let closing = closed(&pool, march()).await;
    assert_ne!(closing.id, killed.id, "the late job is in it");
    assert_eq!(bill(&pool, &book()).await, with_late);
    assert_eq!(closed(&pool, march()).await, closing, "closing it again gives the closing that there is");
    closed(&pool, march().next()).await;
    let entries = pool.ledger.store.open_or_create(&ENTRIES).await.unwrap();
    assert!(!entries.files.iter().any(|file| file.is_of(std::iter::once(&killed))), "what can't land any more is gone");
}

#[tokio::test]
async fn upkeep_leaves_closed_months_alone() {
    let pool = Pool::booked().await;
    closed(&pool, march()).await;
    let done = pool.ledger.maintain(Maintain::default()).await.unwrap();
    assert!(done.iter().all(|table| crate::tables::OF_CLOSINGS.iter().all(|frozen| frozen.name != table.table)));
}

#[tokio::test]
async fn a_closing_is_known_by_its_files() {
    let pool = Pool::booked().await;
    let closing = closed(&pool, march()).await;
    let usage = pool.ledger.store.open_or_create(&CLOSED_USAGE).await.unwrap();
    let name = format!("/closing-2026-03-{}-", closing.id);
    assert!(!usage.files.is_empty() && usage.files.iter().all(|file| file.path.contains(&name)));
}
