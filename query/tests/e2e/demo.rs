//! What is billed is what the simulated world held.

use crate::site::{Site, micros};
use cardhour_books::demo::{DemoFileKind, DemoSite, demo_site};
use cardhour_domain::{CardTime, Month};

/// The simulated site of a seed, in September and October 2025.
pub fn world(seed: u64) -> DemoSite {
    demo_site(seed, Month::parse("2025-10").unwrap())
}

/// Imports the simulated site as a user would, file by file; of the jobs only the first lines, where a number is given.
pub fn import(site: &Site, first_lines: Option<usize>) -> DemoSite {
    let world = world(7);
    import_of(site, &world, first_lines);
    world
}

/// The same of another world.
pub fn import_of(site: &Site, world: &DemoSite, first_lines: Option<usize>) {
    let mut import = Vec::new();
    for file in &world.files {
        let mut bytes = file.bytes.clone();
        if let (DemoFileKind::Jobs, Some(lines)) = (file.kind, first_lines) {
            bytes = bytes.split_inclusive(|byte| *byte == b'\n').take(lines).collect::<Vec<_>>().concat();
        }
        let written = site.file(file.name, &bytes);
        let map = file.map.map_or(String::new(), |map| format!(" --map {}", path_of(&written, map)));
        let speaks_for = format!("--as-of {} --covers {}..{}", world.as_of, world.covers.start(), world.covers.end());
        match file.kind {
            DemoFileKind::Jobs => import.push(format!("jobs {written}{map} {speaks_for}")),
            DemoFileKind::Nodes => import.push(format!("nodes {written}")),
            DemoFileKind::Reservations => import.push(format!("reservations {written}")),
            DemoFileKind::Outages => import.push(format!("outages {written}")),
            DemoFileKind::Prices => {
                std::fs::create_dir_all(site.ledger()).unwrap();
                std::fs::copy(&written, site.ledger().join("prices.toml")).unwrap();
            }
            DemoFileKind::Map => {}
        }
    }
    for words in import {
        site.import(&words);
    }
}

fn path_of(beside: &str, name: &str) -> String {
    std::path::Path::new(beside).with_file_name(name).display().to_string()
}

fn hours(time: CardTime) -> i128 {
    micros(&time.card_hours().to_string())
}

/// Asserts that what is held and billed, and what the pool was, is what the simulated world held and was.
#[track_caller]
pub fn assert_true(site: &Site, world: &DemoSite) {
    assert_held(site, world);
    assert_pool(site, world);
}

#[track_caller]
fn assert_held(site: &Site, world: &DemoSite) {
    let bill = site.report("bill --by project,month");
    for ((project, month), held) in &world.truth.held {
        let month = month.to_string();
        let rows: Vec<_> = bill.0.iter().filter(|row| row["project"] == *project && row["month"] == month).collect();
        let sum = |column: &str| rows.iter().map(|row| micros(&row[column])).sum::<i128>();
        let off_by = rows.len() as i128; // each row is rounded to a millionth
        assert!((sum("card_hours") - hours(*held)).abs() <= off_by, "{project} in {month}: held");
        assert!((sum("billed_card_hours") - hours(*held)).abs() <= off_by, "{project} in {month}: billed");
        assert!(rows.iter().all(|row| row["coverage"] == "1.000000"), "{rows:?}");
    }
    let usage = site.report("usage");
    assert_eq!(usage.only("jobs"), world.truth.jobs.to_string());
    assert_eq!(usage.only("attempts"), world.truth.attempts.to_string());
}

#[track_caller]
fn assert_pool(site: &Site, world: &DemoSite) {
    let capacity = site.report("capacity --by month");
    for (month, pool) in &world.truth.pool {
        let row = capacity.0.iter().find(|row| row["month"] == month.to_string()).unwrap();
        for (column, expected) in [
            ("card_hours", pool.held),
            ("capacity_card_hours", pool.capacity),
            ("free_card_hours", pool.free),
            ("reserved_card_hours", pool.reserved),
            ("down_card_hours", pool.down),
            ("unaccounted_card_hours", CardTime::ZERO),
            ("over_capacity_card_hours", CardTime::ZERO),
        ] {
            assert!(
                (micros(&row[column]) - hours(expected)).abs() <= 1,
                "{column} of {month}: {} is {expected}",
                row[column]
            );
        }
    }
}

#[test]
fn what_is_billed_is_what_the_simulated_world_held() {
    let site = Site::new();
    let world = import(&site, None);
    assert_eq!(site.sql("select count(*) as n from quarantine").only("n"), "0");
    assert_held(&site, &world);
}

#[test]
fn the_pool_is_what_the_simulated_world_was() {
    let site = Site::new();
    let world = import(&site, None);
    assert_pool(&site, &world);
    site.ok("verify");
}
