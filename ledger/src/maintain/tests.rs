use super::*;
use crate::fixture::{Pool, job};
use crate::tables::{ALL, FACTS, coverage::COVERAGE, jobs::HISTORY, jobs::JOBS};
use arrow::util::pretty::pretty_format_batches;

const NOW: Maintain = Maintain { retain_hours: 0, force: true, dry_run: false };

/// A pool whose jobs of one day came in several imports, with a version that lost and is history.
async fn many_files() -> Pool {
    let pool = Pool::booked().await;
    for i in 0..4 {
        let line = format!("lab {} vision a1 1 2026-03-03T1{i}:00:00 2026-03-03T1{i}:30:00", 20 + i);
        pool.import(vec![job(&line)]).await;
    }
    pool
}

/// All rows of a table as text, in an order of its own.
async fn content(pool: &Pool, table: &Table) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (file, batch) in pool.rows(table).await {
        let text = pretty_format_batches(&[batch]).unwrap().to_string();
        lines.extend(text.lines().filter(|line| line.starts_with('|')).skip(1).map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            format!("{:?} {}", file.day, cells.join("|"))
        }));
    }
    lines.sort();
    lines
}

fn of<'a>(done: &'a [Maintained], table: &Table) -> &'a Maintained {
    done.iter().find(|done| done.table == table.name).unwrap()
}

#[tokio::test]
async fn merging_changes_no_row_and_leaves_one_file_a_day() {
    let pool = many_files().await;
    let before = content(&pool, &JOBS).await;
    let files = pool.rows(&JOBS).await.len();
    let done = pool.ledger.maintain(Maintain::default()).await.unwrap();
    assert_eq!(content(&pool, &JOBS).await, before);
    let days: Vec<Option<i32>> = pool.rows(&JOBS).await.iter().map(|(file, _)| file.day).collect();
    assert_eq!(days.len(), 2, "2 and 3 March");
    let jobs = of(&done, &JOBS);
    // Four imports of a job each on 3 March, beside the first import's file of that day.
    assert_eq!((jobs.files, jobs.merged, jobs.into, jobs.rows, jobs.deleted), (files as u64, 5, 1, 6, 0));
    assert!(jobs.checkpoint);
    assert!(pool.ledger.verify(None, None).await.unwrap().holds());

    let again = pool.ledger.maintain(Maintain::default()).await.unwrap();
    assert!(again.iter().all(|done| done.merged == 0 && done.deleted == 0), "there is nothing left to do: {again:?}");
}

#[tokio::test]
async fn merging_facts_makes_derived_tables_remember_and_rewrites_none_of_them() {
    let pool = many_files().await;
    let files = |table: Table| {
        let pool = &pool;
        async move {
            let mut paths: Vec<String> = pool.rows(&table).await.into_iter().map(|(file, _)| file.path).collect();
            paths.sort();
            paths
        }
    };
    let before = [files(USAGE).await, files(HOLDINGS).await, files(CONFLICTS).await];
    pool.ledger.maintain(Maintain::default()).await.unwrap();
    assert_eq!([files(USAGE).await, files(HOLDINGS).await, files(CONFLICTS).await], before);
    let crate::Reading { facts, usage, .. } = pool.ledger.consistent().await.unwrap();
    for table in FACTS {
        assert_eq!(usage.mark(table.name).await.unwrap(), Some(facts.of(table).version()), "{}", table.name);
    }
    // And the next import goes on from there.
    pool.import(vec![job("lab 30 vision a1 1 2026-03-03T20:00:00 2026-03-03T21:00:00")]).await;
    assert!(pool.ledger.verify(None, None).await.unwrap().holds());
}

#[tokio::test]
async fn two_compactions_of_one_snapshot_do_not_both_land() {
    let pool = many_files().await;
    let rows = pool.count(&JOBS).await;
    let store = &pool.ledger.store;
    let (a, b) = (store.open_or_create(&JOBS).await.unwrap(), store.open_or_create(&JOBS).await.unwrap());
    let of = |snapshot: &Snapshot| plan(snapshot).into_values().flatten().collect::<Vec<_>>();
    let (first, second) = (merged(&a, of(&a)).await.unwrap().0, merged(&b, of(&b)).await.unwrap().0);
    assert!(matches!(store.commit(&a, first).await.unwrap(), Outcome::Landed));
    assert!(matches!(store.commit(&b, second).await.unwrap(), Outcome::Lost));
    assert_eq!(pool.count(&JOBS).await, rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_maintainers_and_an_import_at_once_double_and_lose_nothing() {
    let pool = many_files().await;
    let rows = pool.count(&JOBS).await;
    let import = async {
        for i in 0..3 {
            pool.import(vec![job(&format!("lab {} speech a2 1 2026-03-04T0{i}:00:00 2026-03-04T0{i}:40:00", 40 + i))])
                .await;
        }
    };
    let (one, other, ()) =
        tokio::join!(pool.ledger.maintain(Maintain::default()), pool.ledger.maintain(Maintain::default()), import);
    one.unwrap();
    other.unwrap();
    assert_eq!(pool.count(&JOBS).await, rows + 3);
    let verdict = pool.ledger.verify(None, None).await.unwrap();
    assert!(verdict.holds(), "{:?}", verdict.faults);
}

#[tokio::test]
async fn old_files_go_when_the_retention_is_over_and_the_books_stay() {
    let pool = many_files().await;
    let before = content(&pool, &USAGE).await;
    assert!(of(&pool.ledger.maintain(Maintain::default()).await.unwrap(), &USAGE).deleted == 0, "they are too young");
    let done = pool.ledger.maintain(NOW).await.unwrap();
    assert!(of(&done, &USAGE).deleted > 0, "days that were replaced left files behind: {done:?}");
    assert_eq!(of(&done, &JOBS).deleted, 5, "those that were merged");
    assert_eq!(content(&pool, &USAGE).await, before);
    assert!(pool.ledger.verify(None, None).await.unwrap().holds());
    for table in ALL {
        let live = pool.rows(table).await.len();
        let folder = pool.dir.path().join("ledger").join(table.name);
        assert_eq!(parquet_files(&folder), live, "{} has no other files", table.name);
    }
}

fn parquet_files(folder: &std::path::Path) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("_delta_log") {
            count += parquet_files(&path);
        } else if path.extension().is_some_and(|end| end == "parquet") {
            count += 1;
        }
    }
    count
}

#[tokio::test]
async fn a_retention_under_a_week_has_to_be_meant() {
    let pool = Pool::booked().await;
    let asked = Maintain { retain_hours: 167, ..Maintain::default() };
    assert!(matches!(pool.ledger.maintain(asked).await, Err(Error::RetentionTooShort { asked: 167, least: 168 })));
}

#[tokio::test]
async fn a_dry_run_tells_and_changes_nothing() {
    let pool = many_files().await;
    let version = |table: Table| {
        let pool = &pool;
        async move { pool.ledger.store.open_or_create(&table).await.unwrap().version() }
    };
    let before = (version(JOBS).await, version(HISTORY).await, version(COVERAGE).await, version(USAGE).await);
    let done = pool.ledger.maintain(Maintain { dry_run: true, ..NOW }).await.unwrap();
    assert_eq!((of(&done, &JOBS).merged, of(&done, &JOBS).into), (5, 1));
    assert!(of(&done, &USAGE).deleted > 0);
    assert_eq!((version(JOBS).await, version(HISTORY).await, version(COVERAGE).await, version(USAGE).await), before);
}
