use super::*;
use crate::fixture::{Cells, Pool, To, at, book, changed, row_where, without};
use crate::store::ROWS;
use crate::tables::jobs::JOBS;
use crate::tables::nodes::NODES;
use crate::tables::outages::OUTAGES;
use crate::tables::quarantine::QUARANTINE;
use cardhour_books::attempt::{Attempt, Rejected};
use cardhour_books::demo::{DemoFileKind, demo_site};
use cardhour_books::report::{Dimension, ReportKind, ReportQuery, report};
use cardhour_books::table::Value;
use cardhour_domain::Month;
use cardhour_domain::Name;

/// Parts × milliseconds of a whole card over a bucket: 18,018,000 × 900,000.
const CARD_BUCKET: i64 = 16_216_200_000_000;

async fn verdict(pool: &Pool) -> Verdict {
    pool.ledger.verify(Some(&book()), None).await.unwrap()
}

fn told(verdict: &Verdict) -> String {
    let faults = verdict
        .faults
        .iter()
        .take(40)
        .map(|f| format!("{} {} | {} | {} | {}\n", f.law, f.table, f.place, f.expected, f.found));
    faults.collect()
}

/// Books a pool, lets `damage` loose on it, and looks for a fault of a law in a table that says where and what.
#[track_caller]
fn finds(verdict: &Verdict, law: Law, table: &str, words: &[&str]) {
    assert!(!verdict.holds(), "the damage was not found");
    let is_it = |fault: &&Fault| {
        let text = format!("{} {} {}", fault.place, fault.expected, fault.found);
        fault.law == law && fault.table == table && words.iter().all(|word| text.contains(word))
    };
    assert!(
        verdict.faults.iter().any(|fault| is_it(&fault)),
        "no {law} fault of {table} with {words:?} in\n{}",
        told(verdict)
    );
}

#[tokio::test]
async fn clean_books_are_proven_and_what_cannot_be_is_named() {
    let pool = Pool::booked().await;
    let verdict = verdict(&pool).await;
    assert!(verdict.holds(), "{}", told(&verdict));
    assert_eq!(verdict.not_provable, [Name::from("cloud")], "nobody said what the cloud has");
    assert_eq!(verdict.checks.len(), 16);
    let hours_only = pool.ledger.verify(None, None).await.unwrap();
    assert!(hours_only.holds(), "{}", told(&hours_only));
}

/// By hand. Job 1: 2 × 16:22:47; 2: 2 × 4:10; 3: 4:00:01; on GPU-x, where 5 starts later and takes its 0.75 first: 4 has 0.5 for 2:05 and
/// 0.25 for 1:55, 5 has 0.75 for 1:55; GPU-y: 6 alone for an hour, both halves of an hour, 7 alone for half an hour: 2.5 in all; 8: 3 × 3:20; 9: 8 × 0:50.
#[tokio::test]
async fn the_figures_are_those_of_the_records() {
    let pool = Pool::booked().await;
    let verdict = verdict(&pool).await;
    let card_ms = 2 * (16 * 3600 + 22 * 60 + 47) * 1000
        + 2 * (4 * 3600 + 600) * 1000
        + (4 * 3600 + 1) * 1000
        + (7500 * 1000 / 2 + 6900 * 1000 / 4)
        + 6900 * 1000 / 4 * 3
        + 9000 * 1000
        + 3 * 12_000 * 1000
        + 8 * 3000 * 1000;
    let expected = Some(CardTime::from_part_ms(18_018_000 * i128::from(card_ms)));
    for what in ["usage has each holding's time", "usage of each attempt", "holdings are what"] {
        let check = verdict.checks.iter().find(|check| check.what.starts_with(what)).unwrap();
        assert_eq!(check.card_time, expected, "{what}");
    }
}

#[tokio::test]
async fn empty_books_are_proven() {
    let pool = Pool::empty().await;
    assert!(verdict(&pool).await.holds());
}

#[tokio::test]
async fn a_dropped_row_of_usage_is_found() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("attempt_key", row).starts_with("lab/2/");
    pool.damage(&USAGE, |batch| row_where(batch, is_it).map(|row| without(batch, row))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led7, "usage", &["lab/2/", "bucket 2026-03-03T05:00:00Z", "1 row of 0.500000", "0 rows"]);
    finds(&verdict, Law::Led1, "usage", &["cluster lab, node a2", "bucket 2026-03-03T05:00:00Z"]);
}

#[tokio::test]
async fn a_doubled_file_of_buckets_is_found() {
    let pool = Pool::booked().await;
    let (file, batch) = pool.rows(&USAGE).await.into_iter().min_by_key(|(file, _)| file.day).unwrap();
    pool.add(&USAGE, file.day, batch).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led7, "usage", &["1 row of", "2 rows of"]);
    finds(&verdict, Law::Led7, "charges", &["card_time"]);
}

#[tokio::test]
async fn a_changed_card_time_is_found_to_the_last_part_and_millisecond() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("attempt_key", row).starts_with("lab/1/");
    pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, "card_time", To::More(1)))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led7, "usage", &["lab/1/", "bucket 2026-03-02T10:00:00Z", "card_time"]);
    finds(&verdict, Law::Led3, "usage", &["lab/1/", "parts of"]);
    finds(&verdict, Law::Led7, "usage", &["as in jobs"]);
}

#[tokio::test]
async fn a_changed_billed_time_is_found() {
    let pool = Pool::booked().await;
    // One that was held and not billed: the node was out.
    let is_it = |cells: &Cells<'_>, row| {
        cells.text("attempt_key", row).starts_with("lab/2/")
            && cells.at("bucket_start", row) == at("2026-03-03T06:00:00")
    };
    pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, "billed_time", To::More(CARD_BUCKET))))
        .await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led7, "usage", &["lab/2/", "bucket 2026-03-03T06:00:00Z", "billed_time 0.000000", "0.250000"]);
    finds(&verdict, Law::Led7, "charges", &["billed_time"]);
    finds(&verdict, Law::Led7, "charges", &["cost"]);
}

#[tokio::test]
async fn a_row_under_another_attempt_is_found() {
    let pool = Pool::booked().await;
    let other = Cells(&pool.rows(&JOBS).await[0].1).text("attempt_key", 0).to_owned();
    let is_it = |cells: &Cells<'_>, row| cells.text("attempt_key", row).starts_with("lab/2/");
    pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, "attempt_key", To::Text(&other)))).await;
    let found = verdict(&pool).await;
    finds(&found, Law::Led7, "usage", &["lab/2/", "1 row of", "0 rows"]);
    finds(&found, Law::Led7, "usage", &[&other, "2026-03-03T05:00:00Z"]);

    // Nobody's.
    let pool = Pool::booked().await;
    pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, "attempt_key", To::Text("lab/x/s1"))))
        .await;
    let found = verdict(&pool).await;
    finds(&found, Law::Led7, "usage", &["an attempt that jobs doesn't have"]);
    finds(&found, Law::Led7, "usage", &["rows that can be billed", "lab/x/s1"]);
}

#[tokio::test]
async fn a_holding_made_longer_is_found_in_holdings_and_in_usage() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("attempt_key", row).starts_with("lab/3/");
    let hour_us = 3_600_000_000;
    pool.damage(&HOLDINGS, |batch| Some(changed(batch, row_where(batch, is_it)?, "ended_at", To::More(hour_us)))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led7, "holdings", &["lab/3/", "to 2026-03-03T05:00:01Z", "to 2026-03-03T06:00:01Z"]);
    finds(&verdict, Law::Led7, "usage", &["lab/3/", "bucket 2026-03-03T05:30:00Z", "0 rows"]);
}

#[tokio::test]
async fn a_row_in_the_partition_of_another_day_is_found() {
    let pool = Pool::booked().await;
    let (file, batch) = pool.rows(&USAGE).await.into_iter().min_by_key(|(file, _)| file.day).unwrap();
    pool.damage(&USAGE, |other| (*other == batch).then(|| without(other, 0))).await;
    pool.add(&USAGE, file.day.map(|day| day + 1), batch.slice(0, 1)).await;
    finds(&verdict(&pool).await, Law::Led7, "usage", &["a quarter hour of the day of its partition", "2026-03-03"]);
}

#[tokio::test]
async fn free_time_said_to_be_down_is_found_though_every_sum_is_the_same() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("state", row) == "free" && cells.text("node", row) == "a1";
    pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, "state", To::Text("down")))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led1, "usage", &["node a1", "free", "no row"]);
    finds(&verdict, Law::Led1, "usage", &["node a1", "down", "no row"]);
    let balance = verdict.checks.iter().find(|check| check.what.starts_with("held + down")).unwrap();
    assert!(balance.ok, "the sums are as they were");
}

#[tokio::test]
async fn time_that_no_export_speaks_for_said_to_be_free_is_found() {
    let pool = Pool::booked().await;
    // Nothing speaks for `lab` after its coverage, so give it a job that does not end with it.
    pool.import(vec![crate::fixture::job("lab 10 late a1 1 2026-03-04T11:00:00 2026-03-04T14:00:00")]).await;
    let is_it = |cells: &Cells<'_>, row| cells.text("state", row) == "unaccounted";
    pool.damage(&USAGE, |batch| Some(changed(batch, row_where(batch, is_it)?, "state", To::Text("free")))).await;
    finds(&verdict(&pool).await, Law::Led1, "usage", &["unaccounted", "no row"]);
}

#[tokio::test]
async fn a_row_of_a_state_that_is_dropped_breaks_the_balance() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("state", row) == "reserved";
    pool.damage(&USAGE, |batch| row_where(batch, is_it).map(|row| without(batch, row))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led1, "usage", &["reserved course", "no row"]);
    finds(&verdict, Law::Led1, "usage", &["states of", "node a1"]);
}

#[tokio::test]
async fn a_node_that_is_dropped_breaks_the_balance() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("node", row) == "s1";
    pool.damage(&NODES, |batch| row_where(batch, is_it).map(|row| without(batch, row))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led1, "usage", &["cluster small", "a group of cards that there is"]);
    finds(&verdict, Law::Led1, "conflicts", &["cluster small"]);
}

#[tokio::test]
async fn an_outage_that_is_dropped_is_found() {
    let pool = Pool::booked().await;
    pool.damage(&OUTAGES, |batch| Some(batch.slice(0, 0))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led1, "usage", &["node a2", "down", "no row"]);
    finds(&verdict, Law::Led7, "usage", &["lab/2/", "billed_time"]);
}

#[tokio::test]
async fn an_attempt_dropped_from_jobs_is_found() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("job_id", row) == "2";
    pool.damage(&JOBS, |batch| row_where(batch, is_it).map(|row| without(batch, row))).await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led7, "holdings", &["lab/2/", "an attempt that jobs doesn't have"]);
    finds(&verdict, Law::Led7, "usage", &["lab/2/", "an attempt that jobs doesn't have"]);
    assert!(verdict.checks.iter().any(|check| check.what.starts_with("each leaf") && !check.ok), "it can't be billed");
}

/// A job that never started has no holding, no usage and no bill: only the count of rows has a gap.
#[tokio::test]
async fn a_row_that_nothing_refers_to_is_missed() {
    let waits = || {
        let mut waits = crate::fixture::job("lab 11 late - 1 2026-03-04T11:00:00 2026-03-04T14:00:00");
        (waits.started_at, waits.ended_at) = (None, None);
        waits
    };
    let rejected = Rejected { line: 7, row: "x".into(), field: "cards".into(), reason: "is no number".into() };
    let booked = async || {
        let pool = Pool::booked().await;
        pool.ledger.import_jobs("jobs", vec![waits()], vec![rejected.clone()], vec![]).await.unwrap();
        pool
    };
    let is_it = |cells: &Cells<'_>, row| cells.text("job_id", row) == "11";
    let pool = booked().await;
    assert!(verdict(&pool).await.holds());
    pool.damage(&JOBS, |batch| row_where(batch, is_it).map(|row| without(batch, row))).await;
    // Nine jobs of the pool, and this one.
    finds(&verdict(&pool).await, Law::Led4, "jobs", &["10 rows", "9 rows"]);

    let pool = booked().await;
    pool.damage(&QUARANTINE, |batch| Some(without(batch, 0))).await;
    finds(&verdict(&pool).await, Law::Led4, "quarantine", &["1 rows", "0 rows"]);

    // Another engine deletes a row by the book, and knows nothing of our count.
    let pool = booked().await;
    let delta = pool.ledger.store.open_or_create(&JOBS).await.unwrap().delta;
    delta.delete().with_predicate("job_id = '11'").await.unwrap();
    finds(&verdict(&pool).await, Law::Led4, "jobs", &["10 rows", "9 rows"]);
    // What comes after is counted, and the gap stays.
    pool.import(vec![crate::fixture::job("lab 12 late a1 1 2026-03-04T11:00:00 2026-03-04T14:00:00")]).await;
    finds(&verdict(&pool).await, Law::Led4, "jobs", &["11 rows", "10 rows"]);
}

/// An earlier cardhour writes rows and keeps no count: then nobody knows how many there should be, until the next commit counts them.
#[tokio::test]
async fn rows_of_a_writer_that_does_not_count_are_no_fault() {
    let pool = Pool::booked().await;
    let rejected =
        |row: &str| Rejected { line: 7, row: row.into(), field: "cards".into(), reason: "is no number".into() };
    let import =
        async |row: &str| pool.ledger.import_jobs("jobs", Vec::<Attempt>::new(), vec![rejected(row)], vec![]).await;
    let said = async || pool.ledger.store.open_or_create(&QUARANTINE).await.unwrap().rows_said().await.unwrap();
    import("counted").await.unwrap();
    assert_eq!(said().await, Some(1));

    let snapshot = pool.ledger.store.open_or_create(&QUARANTINE).await.unwrap();
    let old = rejected("uncounted");
    let batch = crate::tables::quarantine::batch("old", &[(crate::tables::quarantine::hash(&old), old)]);
    // It leaves the count as it was, of the version before.
    let marks = [(ROWS.to_owned(), 1)].into();
    let change =
        crate::store::Change { add: vec![crate::store::NewFile::of(None, batch)], marks, ..Default::default() };
    pool.ledger.store.commit(&snapshot, change).await.unwrap();
    assert_eq!(said().await, None);
    assert!(verdict(&pool).await.holds(), "{}", told(&verdict(&pool).await));

    import("counted again").await.unwrap();
    assert_eq!(said().await, Some(3));
    assert!(verdict(&pool).await.holds());
}

#[tokio::test]
async fn a_doubled_attempt_is_found() {
    let pool = Pool::booked().await;
    let (file, batch) = pool.rows(&JOBS).await.remove(0);
    pool.add(&JOBS, file.day, batch.slice(0, 1)).await;
    finds(&verdict(&pool).await, Law::Led4, "jobs", &["one row", "another row of the same attempt"]);
}

#[tokio::test]
async fn an_attempt_given_to_another_project_is_found_by_its_hash() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("job_id", row) == "1";
    pool.damage(&JOBS, |batch| Some(changed(batch, row_where(batch, is_it)?, "project", To::Text("speech")))).await;
    finds(&verdict(&pool).await, Law::Led4, "jobs", &["lab/1/", "content_hash"]);
}

/// The books are made from `share_parts`; people read `cards` beside it.
#[tokio::test]
async fn cards_that_are_not_their_parts_are_found() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("job_id", row) == "1";
    pool.damage(&JOBS, |batch| Some(changed(batch, row_where(batch, is_it)?, "cards", To::More(1)))).await;
    finds(&verdict(&pool).await, Law::Led4, "jobs", &["lab/1/", "share_parts"]);
}

#[tokio::test]
async fn more_than_a_card_held_of_one_card_is_found() {
    let pool = Pool::booked().await;
    let is_it = |cells: &Cells<'_>, row| cells.text("attempt_key", row).starts_with("lab/5/");
    let tenth = 1_801_800;
    pool.damage(&HOLDINGS, |batch| Some(changed(batch, row_where(batch, is_it)?, "share_parts", To::More(tenth))))
        .await;
    let verdict = verdict(&pool).await;
    finds(&verdict, Law::Led2, "holdings", &["card GPU-x", "at 2026-03-02T09:05:00Z", "19819800 parts"]);
    finds(&verdict, Law::Led7, "holdings", &["lab/5/"]);
}

#[tokio::test]
async fn a_cut_that_is_not_said_and_an_excess_that_is_not_said_are_found() {
    let pool = Pool::booked().await;
    let cut = |cells: &Cells<'_>, row| cells.text("kind", row) == "share_cut";
    pool.damage(&CONFLICTS, |batch| row_where(batch, cut).map(|row| without(batch, row))).await;
    finds(&verdict(&pool).await, Law::Led2, "conflicts", &["lab/4/", "GPU-x"]);

    let pool = Pool::booked().await;
    let over = |cells: &Cells<'_>, row| cells.text("kind", row) == "over_capacity";
    pool.damage(&CONFLICTS, |batch| Some(changed(batch, row_where(batch, over)?, "card_time", To::More(-1)))).await;
    finds(&verdict(&pool).await, Law::Led1, "conflicts", &["cluster small", "T4"]);
}

#[tokio::test]
async fn a_derived_table_of_other_facts_is_found() {
    let pool = Pool::booked().await;
    let snapshot = pool.ledger.store.open_or_create(&HOLDINGS).await.unwrap();
    let marks = [("jobs".to_owned(), 0)].into();
    let change = crate::store::Change { marks, ..Default::default() };
    pool.ledger.store.commit(&snapshot, change).await.unwrap();
    finds(&verdict(&pool).await, Law::Led4, "holdings", &["made from jobs", "version 0"]);
}

/// The bill as `report bill --format csv` writes it.
async fn exported(pool: &Pool, by: &str) -> String {
    let reading = pool.ledger.read().await.unwrap();
    let by = Dimension::parse_list(by).unwrap();
    let query = ReportQuery { report: ReportKind::Bill, by, range: None, zone: None };
    let slots = query.slots(reading.extent().unwrap(), Some(&book()), pool.ledger.zone()).unwrap();
    let table = report(&reading.input(&slots).await.unwrap(), &slots, Some(&book()), &query).table;
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(table.columns.iter().map(|column| &column.name)).unwrap();
    for row in &table.rows {
        let cell = |value: &Value| match value {
            Value::Absent => String::new(),
            Value::Text(text) => text.to_string(),
            Value::Count(count) => count.to_string(),
            Value::Decimal(number) => number.to_string(),
        };
        csv.write_record(row.iter().map(cell)).unwrap();
    }
    String::from_utf8(csv.into_inner().unwrap()).unwrap()
}

async fn hold_against(pool: &Pool, text: &str) -> Verdict {
    let bill = ExportedBill::parse("march.csv", text.as_bytes()).unwrap();
    pool.ledger.verify(Some(&book()), Some(&bill)).await.unwrap()
}

#[tokio::test]
async fn a_changed_cent_of_an_exported_bill_is_named_by_its_line() {
    let pool = Pool::booked().await;
    for by in ["org,project", "month,user", "", "node,day", "price,window"] {
        let text = exported(&pool, by).await;
        let clean = hold_against(&pool, &text).await;
        assert!(clean.holds(), "by {by}: {}", told(&clean));
    }
    let text = exported(&pool, "project").await;
    let cost_at = text.lines().next().unwrap().split(',').position(|name| name == "cost").unwrap();
    let line = text.lines().position(|line| line.starts_with("speech,")).unwrap();
    let cost = text.lines().nth(line).unwrap().split(',').nth(cost_at).unwrap().to_owned();
    let (whole, cents) = cost.split_once('.').unwrap();
    let other = format!("{whole}.{:02}", (cents[..2].parse::<u32>().unwrap() + 1) % 100);
    let bad = text.replace(&cost, &other);
    let verdict = hold_against(&pool, &bad).await;
    let number = format!("line {} of march.csv: project=speech", line + 1);
    finds(&verdict, Law::Led6, "march.csv", &[&number, "cost ", &other]);

    let hours = text.lines().nth(line).unwrap().split(',').nth(4).unwrap().to_owned();
    let verdict = hold_against(&pool, &text.replace(&hours, "1.000000")).await;
    finds(&verdict, Law::Led6, "march.csv", &["project=speech", "card_hours", "1.000000"]);

    let dropped: String =
        text.lines().filter(|line| !line.starts_with("speech,")).map(|line| format!("{line}\n")).collect();
    finds(&hold_against(&pool, &dropped).await, Law::Led6, "march.csv", &["project=speech", "no such row in the file"]);
    let doubled = format!("{text}{}\n", text.lines().nth(line).unwrap());
    finds(&hold_against(&pool, &doubled).await, Law::Led6, "march.csv", &["project=speech", "the line again"]);
    let renamed = text.replacen("\nspeech,", "\nvision,", 1);
    finds(&hold_against(&pool, &renamed).await, Law::Led6, "march.csv", &["speech", "vision"]);
}

#[tokio::test]
async fn a_simulated_site_is_proven_with_its_prices() {
    use cardhour_books::import::fields::JOB_FIELDS;
    use cardhour_books::import::jobs::{Options, attempts};
    use cardhour_books::import::map::MapFile;
    use cardhour_books::import::mapping::Mapping;
    use cardhour_books::import::readers::read;
    use cardhour_books::import::site::{nodes::nodes, outages::outages, reservations::reservations};
    let site = demo_site(3, Month::parse("2026-02").unwrap());
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open_or_make(dir.path().join("demo").to_str().unwrap(), Some(site.zone), true).await.unwrap();
    let file = |name: &str| &site.files.iter().find(|file| file.name == name).unwrap().bytes;
    let ours = MapFile::default();
    ledger.import_nodes("n", nodes(file("nodes.csv"), &ours).unwrap().rows, vec![]).await.unwrap();
    ledger.import_outages("o", outages(file("outages.csv"), &ours).unwrap().rows, vec![]).await.unwrap();
    let rows = reservations(file("reservations.csv"), &ours).unwrap().rows;
    ledger.import_reservations("r", rows, vec![]).await.unwrap();
    for jobs in site.files.iter().filter(|file| file.kind == DemoFileKind::Jobs) {
        let map = MapFile::parse(std::str::from_utf8(file(jobs.map.unwrap())).unwrap(), JOB_FIELDS).unwrap();
        let format = map.format.unwrap();
        let reading = read(format, &jobs.bytes, &map.reader_options()).unwrap();
        let options = Options { as_of: None, covers: Some(site.covers), cluster: None, now: site.as_of };
        let mapping = Mapping { format, map };
        let imported = attempts(&jobs.bytes, &reading.columns, reading.records, &mapping, &options).unwrap();
        ledger.import_jobs(jobs.name, imported.attempts, imported.rejected, imported.coverage).await.unwrap();
    }
    let book = PriceBook::parse(std::str::from_utf8(file("prices.toml")).unwrap()).unwrap().unwrap();
    let verdict = ledger.verify(Some(&book), None).await.unwrap();
    assert!(verdict.holds(), "{}", told(&verdict));
    let truth: CardTime = site.truth.held.values().copied().sum();
    let check = verdict.checks.iter().find(|check| check.what.starts_with("holdings are")).unwrap();
    assert_eq!(check.card_time, Some(truth), "and it is what the simulated world held");
}
