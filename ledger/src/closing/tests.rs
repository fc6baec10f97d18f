use super::*;
use crate::Maintain;
use crate::billed::Unchanged;
use crate::fixture::{Pool, at, book, during, job, node};
use crate::sources::Sources;
use cardhour_books::attempt::Attempt;
use cardhour_books::prices::PriceBook;
use cardhour_books::report::{ReportKind, ReportQuery, report};
use cardhour_books::site::{Coverage, Reservation};
use cardhour_books::slots::Slots;
use cardhour_books::statement::{BillingPolicy, CostAmount, CostItem, Entry, EntryKind};
use cardhour_books::table::Value;
use cardhour_domain::{CardShare, CardTime, Interval};

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
    let book = reading.prices_in_force(Some(open), zone, None).unwrap().unwrap().unwrap();
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
    assert_eq!(verdict.checks.len(), 20, "four of them are of closed months");
}

/// Closes a month by another policy than the default. Refusals come back as they are said.
async fn close_by(pool: &Pool, month: Month, policy: &str, sign_off: Option<&str>) -> Result<Closing, Vec<Refusal>> {
    let (book, parsed) = (book(), BillingPolicy::parse(policy).unwrap());
    let request = CloseRequest { policy: policy.to_owned(), ..request(month, sign_off) };
    match pool.ledger.close(&request, Terms { book: &book, policy: &parsed }).await.unwrap() {
        CloseOutcome::Done(closing) => Ok(*closing),
        CloseOutcome::Refused(refusals) => Err(refusals),
    }
}

fn sum_of(entries: &[Entry]) -> String {
    let zero = Money::zero(book().currency());
    entries.iter().fold(zero, |sum, entry| sum + entry.amount).to_minor_string()
}

/// March's rent.
fn rent(org: Option<&str>, micros: i64) -> CostItem {
    CostItem {
        month: march(),
        name: "rent".into(),
        org: org.map(Into::into),
        project: None,
        user: None,
        cluster: None,
        pool: None,
        model: None,
        quantity: None,
        amount: CostAmount::Fixed(Money::from_micros(micros.into(), book().currency())),
        reason: None,
    }
}

/// A month's 1,000.00 are spread over its jobs. A late job costs the frozen rate, and what that is too much goes back: April's corrections come to nothing, March to
/// the cost put in, to the byte as it was signed, and nothing is corrected twice.
#[tokio::test]
async fn a_month_closed_in_absorb_mode_comes_to_the_cost_put_in_also_with_a_late_job() {
    let pool = Pool::booked().await;
    let rent = rent(None, 1_000_000_000);
    pool.ledger.import_costs("costs", vec![rent], vec![]).await.unwrap();
    let policy = "mode = \"absorb\"\n";
    let closing = close_by(&pool, march(), policy, Some("a part of a month")).await.unwrap();
    let march_as_signed = billed(&pool, march()).await;
    assert_eq!(sum_of(&entries(&march_as_signed)), "1000.00");
    let signed = canonical_csv(&march_as_signed.statements);
    assert_eq!(sha256_of(&signed), closing.sha256);

    import(&pool, vec![job("lab 1000 late a1 1 2026-03-03T06:00:00 2026-03-03T07:00:00")]).await;
    assert_eq!(canonical_csv(&billed(&pool, march()).await.statements), signed);
    let april = entries(&billed(&pool, march().next()).await);
    assert_eq!(sum_of(&april), "0.00");
    let projects: HashSet<&str> = april.iter().filter_map(|entry| entry.key.project.as_deref()).collect();
    assert_eq!(projects, HashSet::from(["late", "over-under-recovery"]));
    close_by(&pool, march().next(), "", Some("nothing else is known of it")).await.unwrap();
    assert_eq!(entries(&billed(&pool, march().next().next()).await), []);
    let verdict = pool.ledger.verify(Some(&book()), None).await.unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
}

/// Nobody saw the cards of `acme` at work, whose queue is charged by use: its month comes to nothing, and isn't closed so without a reason.
#[tokio::test]
async fn a_month_that_is_charged_by_use_and_that_nobody_saw_is_refused_without_a_reason() {
    let pool = Pool::booked().await;
    let policy = "[[used_basis]]\nqueue = \"main\"\n";
    let refusals = close_by(&pool, march(), policy, None).await.unwrap_err();
    let seen = refusals.iter().find(|refusal| matches!(refusal, Refusal::Seen { .. })).expect("it says so");
    assert!(seen.yields_to_sign_off());
    let said = "0 % of the card-time of org acme that is charged by use was seen, and 95 % has to be";
    assert_eq!(seen.to_string(), said);
    let lenient = format!("[statement]\nminimum_seen = \"0\"\n{policy}");
    let refusals = close_by(&pool, march(), &lenient, None).await.unwrap_err();
    assert!(!refusals.iter().any(|refusal| matches!(refusal, Refusal::Seen { .. })), "{refusals:?}");
    let closing = close_by(&pool, march(), policy, Some("the exporter was broken")).await.unwrap();
    assert_eq!(closing.amount.to_minor_string(), "0.00");
    let closed = billed(&pool, march()).await;
    assert!(closed.seen.is_empty(), "it was signed");
    let hours = "card-hours that nobody saw are not charged";
    assert!(entries(&closed).iter().all(|entry| entry.reason.as_deref().is_some_and(|reason| reason.ends_with(hours))));
    let verdict = pool.ledger.verify(Some(&book()), None).await.unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
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

/// Capacity in card-hours of March in Shanghai, as a report has it.
async fn capacity(pool: &Pool) -> String {
    let (reading, zone) = (pool.ledger.read().await.unwrap(), pool.ledger.zone());
    let range = march().interval(zone);
    let slots = Slots::new(range, None, zone, None).unwrap();
    let query = ReportQuery { report: ReportKind::Capacity, by: Vec::new(), range: Some(range), zone: None };
    let table = report(&reading.input(&slots).await.unwrap(), &slots, None, &query).table;
    let place = table.columns.iter().position(|column| column.name == "capacity_card_hours").unwrap();
    match &table.rows[0][place] {
        Value::Decimal(value) => value.to_string(),
        other => panic!("{other:?}"),
    }
}

/// By hand, as exports cover 2 March 00:00 to 4 March 12:00, 60 hours: a1 4 × 60, a2 4 × (from 2 March 07:20 to 4 March 09:00) = 4 × 49⅔, s1 2 × 60:
/// 558⅔. A node of two cards more is 120 more where March is open.
#[tokio::test]
async fn a_closed_month_keeps_the_capacity_that_it_was_closed_with() {
    let (pool, open) = (Pool::booked().await, Pool::booked().await);
    closed(&pool, march()).await;
    assert_eq!(capacity(&pool).await, "558.666667");
    for pool in [&pool, &open] {
        pool.ledger.import_nodes("nodes", vec![node("lab", "a3", "A100", 2)], vec![]).await.unwrap();
    }
    assert_eq!(capacity(&pool).await, "558.666667", "closed");
    assert_eq!(capacity(&open).await, "678.666667", "open");
    let verdict = pool.ledger.verify(Some(&book()), None).await.unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
}

/// What a reader finds to correct, and what it would if it passed nothing over; and which closed months it looked at.
async fn corrected(pool: &Pool, open: Month) -> (Vec<Entry>, Vec<Entry>, Vec<Month>) {
    let (reading, zone) = (pool.ledger.read().await.unwrap(), pool.ledger.zone());
    let sources = Sources::load(&reading, zone).await.unwrap();
    let found = reading.corrections(open, zone, &sources, Unchanged::PassedOver).await.unwrap();
    let all = reading.corrections(open, zone, &sources, Unchanged::WorkedOut).await.unwrap();
    assert_eq!(found.sources, all.sources);
    let known = &reading.closings().last().unwrap().sources;
    let looked_at = reading.closings().iter().map(|closing| closing.month);
    let looked_at = looked_at.filter(|month| known.get(month) != found.sources.get(month)).collect();
    (found.entries, all.entries, looked_at)
}

/// Months that nothing touched are not worked out again, those that something touched are: a late job, another owner, another reservation, merged files.
#[tokio::test]
async fn only_closed_months_that_something_touched_are_worked_out_again() {
    let pool = Pool::booked().await;
    let (april, may, june) = (march().next(), march().next().next(), march().next().next().next());
    import(&pool, vec![job("lab 900 april a1 1 2026-04-10T06:00:00 2026-04-10T07:00:00")]).await;
    for month in [march(), april] {
        closed(&pool, month).await;
    }
    let (found, all, looked_at) = corrected(&pool, may).await;
    assert_eq!((found, all, looked_at), (vec![], vec![], vec![]));

    import(&pool, vec![job("lab 1000 late a1 1 2026-04-11T06:00:00 2026-04-11T07:00:00")]).await;
    let (found, all, looked_at) = corrected(&pool, may).await;
    assert_eq!((found.len(), looked_at), (1, vec![april]), "of April, where the late job is");
    assert_eq!(found, all);
    closed(&pool, may).await;
    let (found, all, looked_at) = corrected(&pool, june).await;
    assert_eq!((found, all, looked_at), (vec![], vec![], vec![]), "it was corrected in May");

    let mut moved = job("lab 900 april a1 1 2026-04-10T06:00:00 2026-04-10T07:00:00");
    moved.project = Some("theirs".into());
    moved.as_of = Some(at("2026-06-02"));
    import(&pool, vec![moved]).await;
    let (found, all, looked_at) = corrected(&pool, june).await;
    assert_eq!((found.len(), looked_at.contains(&april)), (2, true), "less for one, more for the other");
    assert_eq!(found, all);
    closed(&pool, june).await;

    pool.ledger.maintain(Maintain::default()).await.unwrap();
    let (found, all, _) = corrected(&pool, june.next()).await;
    assert_eq!((found, all), (vec![], vec![]), "merging files corrects nothing");
}

/// A reservation of a later month says nothing of an earlier one, be its name the same.
#[tokio::test]
async fn a_reservation_of_another_month_changes_no_closed_one() {
    let pool = Pool::booked().await;
    closed(&pool, march()).await;
    let later = Reservation {
        cluster: "lab".into(),
        name: "course".into(),
        during: during("2026-05-03", "2026-05-03T12:00:00"),
        nodes: vec!["a1".into()],
        cards: Some(CardShare::from_cards(2).unwrap()),
        model: None,
        org: Some("others".into()),
        project: None,
        user: None,
    };
    pool.ledger.import_reservations("reservations", vec![later], vec![]).await.unwrap();
    let (found, all, looked_at) = corrected(&pool, march().next()).await;
    assert_eq!((found, all, looked_at), (vec![], vec![], vec![]));
}

/// Every table of a closed month that is gone as a whole is missed: by whoever reads where a month would be open again, else by `verify`.
#[tokio::test]
async fn a_table_of_closed_months_that_is_gone_is_missed() {
    for table in crate::tables::OF_CLOSINGS {
        let pool = Pool::booked().await;
        let rent = rent(Some("acme"), 100_000_000);
        pool.ledger.import_costs("costs", vec![rent], vec![]).await.unwrap();
        closed(&pool, march()).await;
        std::fs::remove_dir_all(pool.dir.path().join("ledger").join(table.name)).unwrap();
        let said = match pool.ledger.verify(Some(&book()), None).await {
            Err(error) => error.to_string(),
            Ok(verdict) => verdict.faults.iter().map(|fault| format!("{} {}\n", fault.table, fault.place)).collect(),
        };
        assert!(said.contains(table.name), "{}: {said:?}", table.name);
    }
}

/// Rows of a closed month that somebody took out of a table by a commit of their own: each reader of the month says which table lacks what, and gives no figure.
#[tokio::test]
async fn a_closed_month_with_fewer_rows_than_were_frozen_is_an_error_and_no_other_figure() {
    for table in [&CLOSED_USAGE, &CLOSED_JOBS, &CLOSED_NODES, &CLOSED_RESERVATIONS, &ENTRIES] {
        let pool = Pool::booked().await;
        closed(&pool, march()).await;
        let snapshot = pool.ledger.store.open_or_create(table).await.unwrap();
        let remove: Vec<FileView> = snapshot.files.iter().take(1).cloned().collect();
        assert!(!remove.is_empty(), "{} has rows of March", table.name);
        let change = Change { remove, ..Change::default() };
        assert!(matches!(pool.ledger.store.commit(&snapshot, change).await.unwrap(), Outcome::Landed));

        let (book, policy) = (book(), BillingPolicy::default());
        let (reading, zone) = (pool.ledger.read().await.unwrap(), pool.ledger.zone());
        let statement = reading.billed(march(), zone, Terms { book: &book, policy: &policy }).await;
        let slots = Slots::new(march().interval(zone), None, zone, None).unwrap();
        let report = reading.input(&slots).await;
        let mut told = vec![statement.err().map(|error| error.to_string())];
        // A report of hours reads no entries.
        if table.name != ENTRIES.name {
            told.push(report.err().map(|error| error.to_string()));
        }
        for told in told {
            let told = told.unwrap_or_default();
            assert!(told.contains(table.name) && told.contains("2026-03 was closed with"), "{}: {told:?}", table.name);
        }
        let verdict = pool.ledger.verify(Some(&book), None).await.unwrap();
        assert!(!verdict.holds() && verdict.faults.iter().any(|fault| fault.table == table.name), "{}", table.name);
    }
}

/// A file that was cut off on the disk, of a table of closed months and of one of holdings: both are named, and what needs neither is proven all the same.
#[tokio::test]
async fn verify_names_each_file_that_is_cut_off_and_goes_on() {
    let pool = Pool::booked().await;
    closed(&pool, march()).await;
    let mut cut = Vec::new();
    for table in [&CLOSED_JOBS, &HOLDINGS] {
        let snapshot = pool.ledger.store.open_or_create(table).await.unwrap();
        let file = snapshot.files[0].path.clone();
        let path = pool.dir.path().join("ledger").join(table.name).join(&file);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        cut.push((table.name, format!("file {file}")));
    }
    let verdict = pool.ledger.verify(Some(&book()), None).await.unwrap();
    assert!(!verdict.holds());
    for (table, place) in cut {
        let is_told = verdict.faults.iter().any(|fault| fault.table == table && fault.place == place);
        assert!(is_told, "{table} {place}: {:?}", verdict.faults);
    }
    let frozen =
        verdict.checks.iter().find(|check| check.what == "all that was frozen with each closed month is there");
    assert!(frozen.is_some_and(|check| check.rows > 0), "the tables that can be read were counted");
}

/// March is closed in yuan, and today's price book is in euro: what is asked of March alone is in yuan, of April in euro, and all time is in two pieces.
#[tokio::test]
async fn a_month_closed_in_another_currency_keeps_it() {
    let pool = Pool::booked().await;
    closed(&pool, march()).await;
    let (reading, zone) = (pool.ledger.read().await.unwrap(), pool.ledger.zone());
    let euro = PriceBook::parse(&PRICES.replace("CNY", "EUR")).unwrap().unwrap();
    let over = |during| reading.prices_in_force(Some(&euro), zone, during).unwrap();
    let of = |month: Month| over(Some(month.interval(zone))).unwrap().unwrap().currency().to_string();
    assert_eq!([of(march()), of(march().next())], ["CNY", "EUR"]);
    assert!(over(None).is_err(), "a currency never mixes with another");
    let all = Interval::new(march().interval(zone).start(), at("2026-05-01")).unwrap();
    let pieces = reading.prices_by_currency(Some(&euro), zone, all).unwrap();
    let april = Interval::new(march().interval(zone).end(), at("2026-05-01")).unwrap();
    let of = |book: &Option<PriceBook>| book.as_ref().unwrap().currency().to_string();
    let said: Vec<_> = pieces.iter().map(|(piece, book)| (*piece, of(book))).collect();
    assert_eq!(said, [(march().interval(zone), "CNY".to_owned()), (april, "EUR".to_owned())]);
    let without = reading.prices_by_currency(None, zone, all).unwrap();
    assert_eq!(without[1], (april, None), "nothing has a price today");

    // April, in euro, can be billed; what is owed of March can't stand in it, and is told until it can.
    import(&pool, vec![job("lab 1000 late a1 1 2026-03-03T06:00:00 2026-03-03T07:00:00")]).await;
    let reading = pool.ledger.read().await.unwrap();
    let policy = BillingPolicy::default();
    let billed = reading.billed(march().next(), zone, Terms { book: &euro, policy: &policy }).await.unwrap();
    let owed = "a correction of 2026-03 by 16.11 CNY for acme / late / late-4: this month is in EUR";
    assert_eq!((entries(&billed), billed.uncorrected), (vec![], vec![owed.to_owned()]));
    assert!(!billed.sources.contains_key(&march()), "told again the next time");
}

/// A month in which nobody held anything is closed with its free cards: by hand 744 hours of March in Shanghai less nothing, of 4 cards.
#[tokio::test]
async fn a_month_that_nobody_used_keeps_its_free_cards() {
    let pool = Pool::empty().await;
    let mut quiet = node("lab", "a1", "A100", 4);
    quiet.in_service_at = Some(at("2026-02-28T16:00:00"));
    pool.ledger.import_nodes("nodes", vec![quiet], vec![]).await.unwrap();
    let covers = Coverage { cluster: "lab".into(), covers: during("2026-02-28T16:00:00", "2026-04-30T16:00:00") };
    let april = vec![job("lab 900 april a1 1 2026-04-10T06:00:00 2026-04-10T07:00:00")];
    pool.ledger.import_jobs("jobs", april, vec![], vec![covers]).await.unwrap();
    let free = |slots: Slots| {
        let pool = &pool;
        async move {
            let input = pool.ledger.read().await.unwrap().input(&slots).await.unwrap();
            input.cells.iter().map(|cell| cell.card_time).sum::<CardTime>().card_hours().normalize().to_string()
        }
    };
    let slots = Slots::new(march().interval(pool.ledger.zone()), None, pool.ledger.zone(), None).unwrap();
    assert_eq!(free(slots.clone()).await, "2976");
    closed(&pool, march()).await;
    assert_eq!(free(slots).await, "2976");
    let verdict = pool.ledger.verify(Some(&book()), None).await.unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
}

/// A late job of a model that the closed book has no price for is told of, again and again: its book can't change, and no statement has it.
#[tokio::test]
async fn a_late_job_without_a_price_in_the_closed_book_is_told_of() {
    let pool = Pool::booked().await;
    let of_a = PRICES.replacen("from = \"2026-01-01\"", "from = \"2026-01-01\"\nmodel = \"A*\"", 1);
    let of_t = "[[price]]\nfrom = \"2026-01-01\"\nmodel = \"T*\"\nper_card_hour = \"18.37\"\nnight = \"0.6\"\n";
    let dear = format!("{of_a}\n{of_t}");
    let (book, policy) = (PriceBook::parse(&dear).unwrap().unwrap(), BillingPolicy::default());
    let terms = Terms { book: &book, policy: &policy };
    let request = CloseRequest { prices: dear.clone(), ..request(march(), Some("test")) };
    let CloseOutcome::Done(_) = pool.ledger.close(&request, terms).await.unwrap() else { panic!("refused") };
    let mut late = job("cloud 1000 late - 5 2026-03-03T06:00:00 2026-03-03T07:00:00");
    late.model = Some("B200".into());
    import(&pool, vec![late]).await;
    let reading = pool.ledger.read().await.unwrap();
    let billed = reading.billed(march().next(), pool.ledger.zone(), terms).await.unwrap();
    assert_eq!(entries(&billed), []);
    let told = billed.uncorrected.concat();
    assert!(told.contains("of 2026-03, closed:") && told.contains("B200"), "{told:?}");
    assert!(!billed.sources.contains_key(&march()), "told again the next time");
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
    // As it begins.
    pool.ledger.store.open_or_create(&CLOSINGS).await.unwrap();
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
