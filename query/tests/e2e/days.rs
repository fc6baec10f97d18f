//! Days at a node on which everything that can die dies: the real daemon on a stand-in for the driver, its spool on disk, HTTP, the real service, and
//! the books, held against what truly happened.
//!
//! `CARDHOUR_SEED=N` plays another story, or one again; `CARDHOUR_DAYS=kills` a whole day with 500 kills instead of six hours with 60, `CARDHOUR_DAYS=full`
//! a whole day without a service too.

mod line;
mod random;
mod stage;
mod story;
mod witness;

use crate::site::{Rows, Site};
use stage::Stage;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use story::{Asked, CARDS, Story, TICK_MS, uuid};
use witness::OfCard;

/// The variable that names the folder of a file system which may be filled.
const DISK: &str = "CARDHOUR_TEST_DAY_ON";
/// Parts of a card.
const CARD: i128 = 18_018_000;

/// `full`: the values of `CARDHOUR_DAYS` with which it is a whole day.
fn asked(full: &[&str], service_away: (i64, i64), full_kills: i64, kills: i64) -> Asked {
    let seed = std::env::var("CARDHOUR_SEED").map_or(1, |seed| seed.parse().expect("CARDHOUR_SEED is a number"));
    let is_full = std::env::var("CARDHOUR_DAYS").is_ok_and(|days| full.contains(&&*days));
    let (hours, kills) = if is_full { (24, full_kills) } else { (6, kills) };
    Asked { seed, hours, kills, service_away }
}

/// Runs a test again with a file system of 24 MiB for its spool, in a mount namespace of its own. False, said aloud, where that may not be.
fn again_on_a_disk_of_its_own(test: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-ec"]);
        command.arg(format!("mount -t tmpfs -o size=24m tmpfs \"${DISK}\"\n{script}"));
        command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]).env(DISK, folder.path());
        command
    };
    if !in_namespace("true").output().is_ok_and(|output| output.status.success()) {
        let skipped = "skipped: the full disk of a day needs the right to mount (unshare --map-root-user --mount)";
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none(), "{skipped}");
        _ = writeln!(std::io::stderr(), "{skipped}");
        return false;
    }
    let output = in_namespace("exec \"$0\" \"$@\"").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{said}");
    true
}

#[test]
fn whoever_is_killed_whenever_no_card_second_that_was_on_disk_is_lost_and_none_is_there_twice() {
    let test = "days::whoever_is_killed_whenever_no_card_second_that_was_on_disk_is_lost_and_none_is_there_twice";
    let disk = std::env::var_os(DISK);
    if disk.is_none() && again_on_a_disk_of_its_own(test) {
        return;
    }
    let asked = asked(&["kills", "full"], (480, 600), 500, 60);
    let kills = days(asked, disk.as_deref().map(Path::new));
    assert!(kills >= asked.kills as u64, "only {kills} kills");
}

#[test]
fn a_service_that_is_away_all_day_has_everything_in_the_end() {
    days(asked(&["full"], (1, 999), 40, 10), None);
}

/// Plays a story and holds the books against it; how many were killed.
fn days(asked: Asked, disk: Option<&Path>) -> u64 {
    let replay = format!("{asked:?}; CARDHOUR_SEED={} plays it again", asked.seed);
    println!("{replay}");
    let story = Story::new(asked);
    let site = Site::new();
    site.ok("init --zone UTC");
    let nodes = site.file("nodes.csv", stage::nodes(story.ticks));
    site.import(&format!("nodes {nodes}"));
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::set(&story, &site, folder.path(), disk.unwrap_or(folder.path()), asked.seed);
    let began = Instant::now();
    stage.play();
    let played = began.elapsed();
    stage.come_to_rest();
    println!(
        "killed {:?}, {} starts on a full disk failed; {} ticks on disk, {} in doubt; played in {played:?}, at rest after {:?}",
        stage.kills,
        stage.failed_starts,
        stage.witness.ticks_on_disk,
        stage.witness.ticks_in_doubt,
        began.elapsed(),
    );
    let told = stage.line().told();
    println!("answers {:?}, lost {}, cut requests {}", told.answers, told.lost_answers, told.cut_requests);
    println!("segments {}", told.taken.len());
    assert!(told.answers.keys().all(|status| matches!(status, 200 | 201 | 503)), "{:?}", told.answers);
    if let Ok(kept) = std::env::var("CARDHOUR_KEEP") {
        assert!(Command::new("cp").arg("-r").arg(site.ledger()).arg(kept).status().unwrap().success());
    }

    let verdict = site.ok("verify");
    assert!(verdict.contains("the books balance"), "{verdict}");
    segments_are_there_once(&site, &told.taken.into_keys().collect());
    holds(&story, &stage, &site);
    nothing_lies_about(&site);
    println!("books hold after {:?}; {replay}", began.elapsed());
    stage.kills.values().sum()
}

/// Every segment that the service said it has is in the books, and no row of any of them is there twice.
fn segments_are_there_once(site: &Site, taken: &BTreeSet<String>) {
    let mut in_books = BTreeSet::new();
    // No job of the story has a process, so there is no activity of any.
    for table in ["observations", "watches", "devices", "node_events", "samples"] {
        let rows = site.sql(&format!("select distinct segment from {table}"));
        let name = |row: BTreeMap<String, String>| row["segment"].split(['/', '#']).nth(1).unwrap().to_owned();
        in_books.extend(rows.0.into_iter().map(name));
    }
    assert_eq!(&in_books, taken);
    let twice = site.sql(
        "select segment, ts, device_uuid, count(*) as n from samples group by segment, ts, device_uuid having count(*) > 1",
    );
    assert_eq!(twice.0.len(), 0, "{twice:?}");
}

fn number(row: &BTreeMap<String, String>, column: &str) -> i128 {
    let text = &row[column];
    text.parse().unwrap_or_else(|_| if text.is_empty() { 0 } else { panic!("{column}: {text}") })
}

/// Card-time in milliseconds of a whole card.
fn card_ms(row: &BTreeMap<String, String>, column: &str) -> i64 {
    let part_ms = number(row, column);
    assert_eq!(part_ms % CARD, 0, "whole cards are held for whole milliseconds: {row:?}");
    i64::try_from(part_ms / CARD).unwrap()
}

fn holds(story: &Story, stage: &Stage<'_>, site: &Site) {
    let (of_jobs, of_cards) = stage.witness.expected(story);
    let until = witness::time(story.ticks);
    let rows = site.sql(&format!(
        "select card_uuid, state, sum(card_time) as t, sum(energy_mj) as e, sum(effective) as busy from usage \
         where bucket_start < timestamp '{until}' group by card_uuid, state"
    ));
    let (mut pool, mut times, mut energy_mj) = (OfCard::default(), BTreeMap::<&str, i64>::new(), 0);
    for row in &rows.0 {
        *times.entry(row["state"].as_str()).or_default() += card_ms(row, "t");
        energy_mj += number(row, "e") as i64;
    }
    for (card, expected) in of_cards.iter().enumerate() {
        let what = uuid(card);
        let row = rows.0.iter().find(|row| row["card_uuid"] == what && row["state"] == "held").unwrap();
        expected.held.check(card_ms(row, "t"), &format!("{what} held"));
        let busy_ms = i64::try_from(number(row, "busy") / CARD).unwrap();
        // Where the clock was set, one sample of a card is the mean of an hour: a tick for each of the four times.
        assert!(busy_ms <= expected.busy_ms + 4 * TICK_MS, "{what} busy {busy_ms}, truly {}", expected.busy_ms);
        pool = pool.with(expected);
    }
    // What nobody holds is told of the cards of a model together.
    let time = |state: &str| times.get(state).copied().unwrap_or(0);
    let all: i64 = times.values().sum();
    assert_eq!(all, time("held") + time("free") + time("unaccounted"), "no other state: {times:?}");
    assert_eq!(all, CARDS as i64 * story.ticks * TICK_MS, "every card-second is accounted for: {times:?}");
    for (range, told, what) in [
        (pool.held, time("held"), "held"),
        (pool.free, time("free"), "free"),
        (pool.unaccounted, time("unaccounted"), "unaccounted"),
        (pool.energy_mj, energy_mj, "energy"),
    ] {
        println!("{what}: {told}, from {} to {}", range.least, range.most);
        range.check(told, what);
    }
    let jobs = site.sql(
        "select attempt_key, sum(card_time) as t, sum(unseen) as unseen, sum(effective) as busy, sum(energy_mj) as e \
         from usage where state = 'held' group by attempt_key",
    );
    each_job_is_true(story, &of_jobs, &jobs);
}

fn each_job_is_true(story: &Story, of_jobs: &[witness::OfJob], rows: &Rows) {
    let mut exact = 0;
    let by_id: BTreeMap<String, &BTreeMap<String, String>> =
        rows.0.iter().map(|row| (row["attempt_key"].split('/').nth(1).unwrap_or_default().to_owned(), row)).collect();
    assert_eq!(by_id.len(), rows.0.len(), "one attempt a job: {:?}", rows.0);
    for (job, expected) in story.jobs.iter().zip(of_jobs) {
        let Some(row) = by_id.get(&job.id.to_string()) else {
            assert_eq!(expected.held.least, 0, "{job:?} isn't in the books");
            continue;
        };
        let (held, unseen) = (card_ms(row, "t"), card_ms(row, "unseen"));
        let what = format!("{job:?}, of which {expected:?}");
        expected.held.check(held, &what);
        if expected.is_odd {
            continue;
        }
        exact += 1;
        assert!(held <= (job.until - job.from) * TICK_MS, "{what}: held {held}");
        expected.unseen.check(unseen, &format!("unseen of {what}"));
        let seen = i128::from(held - unseen);
        assert_eq!(number(row, "busy"), CARD * seen * i128::from(job.busy_pct) / 100, "busy of {what}, seen {seen}");
        // What the card's counter grew by while no collector ran is the holder's too, drawn evenly: no more than the card draws at its most.
        let (least, most_w) =
            (seen * i128::from(job.power_w), (0..story.ticks).map(|tick| story.power_w(job.card, tick)).max());
        let most = least + i128::from(unseen * most_w.unwrap_or_default());
        assert!((least..=most).contains(&number(row, "e")), "energy of {what}, seen {seen}: {least} to {most}");
    }
    println!("{} jobs, {exact} of them exactly", story.jobs.len());
    // Of six hours two are shown twice or not at all, and jobs lie in them.
    assert!(exact > 0, "too few jobs to tell");
}

/// No file that was being written, and no lock.
fn nothing_lies_about(site: &Site) {
    let mut folders = vec![site.ledger()];
    let mut odd = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.contains("tmp") || name.contains(".new") || name.contains("lock") {
                odd.push(path);
            }
        }
    }
    assert_eq!(odd, Vec::<std::path::PathBuf>::new());
}
