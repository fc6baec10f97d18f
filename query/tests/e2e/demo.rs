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

/// The seed's demo by the command itself, in September and October 2025: files, prices, and what its nodes told.
fn run_demo(site: &Site) -> (DemoSite, String) {
    let printed = site.ok("demo --no-serve --seed 7 --month 2025-10");
    (world(7), printed)
}

/// As `ledger/books` says of ticks, here through Parquet, tables and reports: exact where looks can tell, else within the truth's own bound.
#[test]
fn what_held_time_went_into_is_what_the_simulated_world_did() {
    let site = Site::new();
    let (world, _) = run_demo(&site);
    assert_true(&site, &world);
    let report = site.report("usage --by project,month");
    for ((project, month), truth) in &world.truth.used {
        let month = month.to_string();
        let of =
            |row: &&std::collections::BTreeMap<String, String>| row["project"] == *project && row["month"] == month;
        let row = report.0.iter().find(of).unwrap();
        let is_near = |column: &str, expected: CardTime, off_by: CardTime| {
            // Of a month that nobody saw these are absent, and nothing was.
            let told = if row[column].is_empty() { 0 } else { micros(&row[column]) };
            let off = (told - hours(expected)).abs();
            assert!(off <= hours(off_by) + 1, "{column} of {project} in {month}: {told} is {expected:?}, off by {off}");
        };
        is_near("unseen_card_hours", truth.unseen, CardTime::ZERO);
        is_near("lost_card_hours", truth.lost, CardTime::ZERO);
        is_near("effective_card_hours", truth.effective, truth.busy_off_by);
        is_near("idle_card_hours", truth.idle, truth.idle_off_by);
        is_near("underused_card_hours", truth.underused, truth.busy_off_by + truth.idle_off_by);
        // A kWh has 3,600,000,000 mJ, and six decimals in a report.
        let told = if row["energy_kwh"].is_empty() { 0 } else { micros(&row["energy_kwh"]) };
        let off = (told - truth.energy_micro / 3_600_000).abs();
        assert!(off <= i128::from(truth.energy_off_by_mj) / 3_600 + 1, "energy of {project} in {month}: off by {off}");
    }
    // All that cards drew while they were read, held or not, is in the tables to the last mJ.
    let drawn = site.sql("select cast(sum(energy_mj) as bigint) as mj from usage");
    assert_eq!(drawn.only("mj"), world.truth.drawn_mj.values().sum::<i64>().to_string());
    assert_eq!(site.sql("select count(*) as n from conflicts").only("n"), "0");
    let verdict = site.ok("verify");
    assert!(verdict.contains("the books balance: every check is proven"), "{verdict}");
}

/// The commands that the demo names are run as they stand, and show what it says.
#[test]
fn a_demo_names_what_is_worth_a_look_and_the_command_that_shows_it() {
    let site = Site::new();
    let (world, printed) = run_demo(&site);
    let commands: Vec<&str> = printed.lines().filter(|line| line.starts_with("    cardhour ")).collect();
    assert_eq!(commands.len(), 3, "{printed}");
    let run = |command: &str| {
        let binary = std::path::Path::new(env!("CARGO_BIN_EXE_cardhour")).parent().unwrap().display().to_string();
        let path = format!("{binary}:{}", std::env::var("PATH").unwrap_or_default());
        let shell = std::process::Command::new("sh")
            .args(["-c", &format!("{} --format csv", command.trim())])
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(shell.status.success(), "{command}: {}", String::from_utf8_lossy(&shell.stderr));
        crate::site::Rows::parse(&String::from_utf8(shell.stdout).unwrap())
    };
    let [notebook, _, fault] = &world.tales[..] else { panic!("three tales: {:?}", world.tales) };
    let idle = run(commands[0]).by("user", "idle_card_hours");
    // Five days and four hours, less the hour of work, the odd quarter hour beside it, and what else its user leaves open.
    assert!(micros(&idle[notebook.user]) > 122 * 1_000_000, "{idle:?}");
    let samples = run(commands[1]);
    assert_eq!(samples.0.len(), 12);
    for row in &samples.0 {
        // A saw-tooth of 310, 210, 120 and 60 thousandths, each give or take ten.
        let busy = row["sm_pct"].parse::<f64>().unwrap();
        assert!((5.0..=32.0).contains(&busy), "{row:?}");
    }
    let events = run(commands[2]);
    let told: Vec<(&str, &str)> = events.0.iter().map(|row| (row["kind"].as_str(), row["number"].as_str())).collect();
    assert!(told.contains(&("xid", "79")) && told.contains(&("card_lost", "15")) && told.contains(&("card_found", "")));
    // From the quarter hour before its start to that after its end: usage is kept by those.
    let quarter = 900_000;
    let from = fault.during.start().bucket_start();
    let to = cardhour_domain::Timestamp::from_unix_ms(fault.during.end().bucket_start().unix_ms() + quarter);
    let lost = site.report(&format!("waste --by user,state --from {from} --to {to}"));
    let lost: Vec<_> = lost.0.iter().filter(|row| row["user"] == fault.user && row["state"] == "failed").collect();
    assert!(!lost.is_empty() && micros(&lost[0]["lost_card_hours"]) > 0, "{lost:?}");
}
