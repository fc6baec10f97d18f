//! LED-4 through kill -9, and with two writers at once.

use crate::site::{MAP, Site, micros};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Kills of an import, over all ledgers. `CARDHOUR_KILLS` sets another number.
const KILLS: usize = 200;
/// Imports into one ledger: enough that a kill meets a ledger with history, few enough that it stays quick.
const BATCHES: usize = 20;
const JOBS: usize = 8;

/// A batch of jobs that no other batch has, and its card-seconds: each job is 1 to 4 cards for 900 s and a bit.
fn batch(index: usize) -> (String, i128) {
    let mut text = String::from("id,who,team,cards,model,start,end\n");
    let mut card_s = 0;
    for job in 0..JOBS {
        let id = index * JOBS + job;
        let cards = 1 + job as i64 % 4;
        let start_s = 1_741_000_000 + (id as i64) * 1009;
        let end_s = start_s + 900 + 61 * job as i64;
        card_s += i128::from(cards * (end_s - start_s));
        let time = |s: i64| chrono::DateTime::from_timestamp(s, 0).unwrap().to_rfc3339();
        text.push_str(&format!("{id},u{},team{},{cards},h200,{},{}\n", id % 3, id % 2, time(start_s), time(end_s)));
    }
    (text, card_s)
}

#[track_caller]
fn assert_holds(site: &Site, batches: usize, when: &str) {
    let card_s: i128 = (0..batches).map(|index| batch(index).1).sum();
    let usage = site.report("usage");
    assert_eq!(usage.only("attempts"), (batches * JOBS).to_string(), "{when}");
    let off = micros(usage.only("card_hours")) * 3600 - card_s * 1_000_000;
    assert!(off.abs() <= 1800, "{when}: {} card-hours, {card_s} card-seconds were imported", usage.only("card_hours"));
}

/// One ledger: each import is killed at a random moment, the books are verified, and the import is run again.
fn kills_of_one_ledger(seed: u64, kills: usize) {
    let site = Site::new();
    let map = site.file("map.toml", MAP);
    let mut random = seed;
    let mut longest = Duration::from_millis(20);
    for index in 0..kills {
        let file = site.file(&format!("batch-{index}.csv"), batch(index).0);
        let words = format!("import jobs {file} --map {map}");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let moment = longest.mul_f64((random >> 33) as f64 / f64::from(u32::MAX >> 1));
        let mut child =
            site.command().args(words.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        // SIGKILL; an error means that it was done before.
        let _ = child.kill();
        child.wait().unwrap();
        let when = format!("seed {seed}, import {index} killed after {moment:?}");
        if index > 0 || site.ledger().exists() {
            let verified = site.run("verify");
            // A kill before the ledger was whole leaves none to verify, and says so.
            assert!(
                verified.code == Some(0) || (index == 0 && verified.code != Some(1)),
                "{when}: {} {}",
                verified.out,
                verified.err
            );
        }
        let began = Instant::now();
        site.ok(&words);
        longest = longest.max(began.elapsed());
        assert_holds(&site, index + 1, &when);
    }
    site.ok("verify");
}

#[test]
fn an_import_killed_at_random_moments_doubles_and_loses_nothing() {
    let kills = std::env::var("CARDHOUR_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let ledgers = kills.div_ceil(BATCHES);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let ledger = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if ledger >= ledgers {
                        break;
                    }
                    kills_of_one_ledger(ledger as u64, BATCHES.min(kills - ledger * BATCHES));
                }
            });
        }
    });
}

#[test]
fn two_imports_at_once_double_and_lose_nothing() {
    for round in 0..4 {
        let site = Site::new();
        let map = site.file("map.toml", MAP);
        let files: Vec<String> = (0..4).map(|i| site.file(&format!("batch-{i}.csv"), batch(i).0)).collect();
        // The first two ledgers begin with nothing, so that both writers also create the tables.
        let before = if round < 2 { 0 } else { 2 };
        for file in &files[..before] {
            site.ok(&format!("import jobs {file} --map {map}"));
        }
        // Both take in all of it, in opposite orders: the same rows at once, and other rows at once.
        let orders = [[0, 1, 2, 3], [3, 2, 1, 0]];
        std::thread::scope(|scope| {
            for order in orders {
                let (site, map, files) = (&site, &map, &files);
                scope.spawn(move || {
                    for index in order {
                        site.ok(&format!("import jobs {} --map {map}", files[index]));
                    }
                });
            }
        });
        assert_holds(&site, 4, &format!("round {round}"));
        site.ok("verify");
    }
}
