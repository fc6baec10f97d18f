//! A fleet whose exports arrive the way they do in life, with faults drawn from a seed.
//!
//! The world (`cardhour demo`'s) knows who really held which card. The command sees only dumps of its accounting, each of some days and as
//! the database stood at its midnight: waiting, then `RUNNING`, then ended. They come late, twice, out of order, cut off and sent again, with
//! rubbish between the rows, killed in the middle and sent again, two at a time. In the end the books are those of one import of everything,
//! and what they say was held is what was held.

use crate::demo::{assert_true, import_of, world};
use crate::same_books::assert_same;
use crate::site::{Site, answer};
use cardhour_books::demo::{DemoFileKind, DemoSite};
use chrono::{NaiveDate, NaiveDateTime, TimeDelta};
use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Seeds from 0 on; `FLEET_SEEDS` sets another number, `SIM_SEED` the one to replay.
const SEEDS: u64 = 2;

/// xorshift64*, enough to draw faults.
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// From 0 up to, without, `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    fn per_cent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }
}

/// Local midnights between which a dump asks, as Slurm writes them.
#[derive(Clone, Debug)]
struct Window {
    from: String,
    to: String,
}

/// The two months in pieces of one to `most` days.
fn windows(rng: &mut Rng, most: usize) -> Vec<Window> {
    let text = |day: NaiveDate| format!("{day}T00:00:00");
    let end = NaiveDate::from_ymd_opt(2025, 11, 1).unwrap();
    let mut day = NaiveDate::from_ymd_opt(2025, 9, 1).unwrap();
    let mut windows = Vec::new();
    while day < end {
        let next = (day + TimeDelta::days(1 + rng.below(most) as i64)).min(end);
        windows.push(Window { from: text(day), to: text(next) });
        day = next;
    }
    windows
}

/// Columns of the demo's sacct text.
const SUBMIT: usize = 7;
const START: usize = 8;
const END: usize = 9;
const ELAPSED: usize = 10;
const SUSPENDED: usize = 11;
const STATE: usize = 12;
const NODE_LIST: usize = 14;
const ALLOC_TRES: usize = 15;
const EXIT: usize = 17;
const JOB_NAME: usize = 19;

/// A row as the database had it at the end of the window; none where it isn't asked for or wasn't there. Times of one zone without daylight
/// saving, all in one layout, so that texts compare as times do; `Unknown` and `None` are greater than all of them.
fn as_it_stood(row: &str, window: &Window) -> Option<String> {
    let mut fields: Vec<&str> = row.split('|').collect();
    if fields[SUBMIT] >= window.to.as_str() || fields[END] < window.from.as_str() {
        return None;
    }
    if fields[END] <= window.to.as_str() {
        return Some(row.to_owned());
    }
    let was_last = fields[END] == "Unknown" && window.to == "2025-11-01T00:00:00";
    if was_last {
        return Some(row.to_owned());
    }
    let time = |text: &str| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").unwrap();
    let elapsed;
    fields[END] = "Unknown";
    fields[SUSPENDED] = "00:00:00";
    fields[EXIT] = "0:0";
    if fields[START] < window.to.as_str() {
        elapsed = (time(&window.to) - time(fields[START])).num_seconds().to_string();
        fields[STATE] = "RUNNING";
    } else {
        elapsed = "0".to_owned();
        (fields[START], fields[STATE], fields[NODE_LIST], fields[ALLOC_TRES]) =
            ("Unknown", "PENDING", "None assigned", "");
    }
    fields[ELAPSED] = &elapsed;
    Some(fields.join("|"))
}

/// The rows that `sacct -S from -E to` prints at `to`. A step that hadn't begun isn't there.
fn sacct_rows(text: &str, window: &Window) -> Vec<String> {
    let rows = text.lines().skip(1).filter(|row| {
        let is_step = row.split('|').next().unwrap().contains('.');
        !is_step || row.split('|').nth(START).unwrap() < window.to.as_str()
    });
    rows.filter_map(|row| as_it_stood(row, window)).collect()
}

/// The sessions that the hub lists at `to`: those that were there since `from`. Its times carry the offset of the same zone.
fn session_rows(text: &str, window: &Window) -> Vec<String> {
    let rows = text.lines().skip(1).filter_map(|row| {
        let mut fields: Vec<&str> = row.split(',').collect();
        let (start, end) = (fields[8], fields[9]);
        let over = !end.is_empty() && &end[..19] <= window.to.as_str();
        if &start[..19] >= window.to.as_str() || (over && &end[..19] < window.from.as_str()) {
            return None;
        }
        if !over {
            (fields[9], fields[10]) = ("", "running");
        }
        Some(fields.join(","))
    });
    rows.collect()
}

/// One file that arrives, and what befalls it.
#[derive(Clone, Debug)]
struct Delivery {
    text: String,
    map: &'static str,
    window: Window,
    /// Killed after this part of the time that an import takes, in per cent; it is sent again at once.
    killed_at: Option<usize>,
    /// Sent at the same time as the one before.
    with_the_one_before: bool,
}

/// What arrives, in order, and the rubbish in it.
struct Deliveries {
    in_order: Vec<Delivery>,
    rubbish: BTreeSet<String>,
    cut_off: Vec<String>,
}

fn rubbish(rng: &mut Rng, number: usize, good: &str) -> String {
    let word = format!("rubbish-{number}");
    let mut fields: Vec<&str> = good.split('|').collect();
    fields[JOB_NAME] = &word;
    match rng.below(4) {
        0 => return word,
        1 => fields[0] = "nobody's",
        2 => {
            (fields[0], fields[1], fields[STATE], fields[ALLOC_TRES]) =
                ("999999", "999999", "COMPLETED", "gres/gpu=lots")
        }
        _ => {
            (fields[0], fields[1], fields[STATE]) = ("999998", "999998", "COMPLETED");
            (fields[START], fields[END]) = ("2025-09-20T00:00:00", "2025-09-19T00:00:00");
        }
    }
    fields.join("|")
}

fn deliveries(rng: &mut Rng, world: &DemoSite) -> Deliveries {
    let mut arriving: Vec<(usize, Delivery)> = Vec::new();
    let mut out = Deliveries { in_order: Vec::new(), rubbish: BTreeSet::new(), cut_off: Vec::new() };
    for file in world.files.iter().filter(|file| file.kind == DemoFileKind::Jobs) {
        let all = std::str::from_utf8(&file.bytes).unwrap();
        let header = all.lines().next().unwrap();
        let is_sacct = file.name == "jobs.sacct";
        for (day, window) in windows(rng, if is_sacct { 5 } else { 14 }).into_iter().enumerate() {
            let mut rows = if is_sacct { sacct_rows(all, &window) } else { session_rows(all, &window) };
            if is_sacct && rng.per_cent(30) {
                for _ in 0..1 + rng.below(3) {
                    let good = rows.iter().find(|row| row.contains("RUNNING")).unwrap().clone();
                    let row = rubbish(rng, out.rubbish.len(), &good);
                    out.rubbish.insert(row.clone());
                    // Not before a step or a line of another kind only: anywhere.
                    rows.insert(rng.below(rows.len() + 1), row);
                }
            }
            let text = format!("{header}\n{}\n", rows.join("\n"));
            let late = |rng: &mut Rng| day * 4 + if rng.per_cent(30) { rng.below(60) } else { rng.below(6) };
            let whole = Delivery {
                text,
                map: file.map.unwrap(),
                window,
                killed_at: rng.per_cent(20).then(|| rng.below(130)),
                with_the_one_before: rng.per_cent(15),
            };
            let mut at = late(rng);
            if is_sacct && rng.per_cent(20) {
                let last = rows.last().unwrap();
                // Somewhere before the last field: what is left of that one can't be told from the whole of it.
                let kept = 1 + rng.below(last.rfind('|').unwrap() - 1);
                out.cut_off.push(last[..kept].to_owned());
                let text = whole.text[..whole.text.len() - 1 - (last.len() - kept)].to_owned();
                arriving.push((at, Delivery { text, killed_at: None, ..whole.clone() }));
                at += 1 + rng.below(12);
            }
            if rng.per_cent(20) {
                arriving.push((at + rng.below(40), whole.clone()));
            }
            arriving.push((at, whole));
        }
    }
    arriving.sort_by_key(|(at, _)| *at);
    out.in_order = arriving.into_iter().map(|(_, delivery)| delivery).collect();
    out
}

/// Everything the books hold of attempts, holdings, usage and money, in an order of its own. Not quarantine: the rubbish is beside it.
fn books(site: &Site) -> String {
    let mut books = String::new();
    for report in ["usage --by month,project", "usage", "bill --by month,project,user", "capacity --by day"] {
        books += &site.ok(&format!("report {report} --format csv"));
    }
    for digest in [
        "select attempt_key, content_hash from jobs order by 1",
        "select attempt_key, node, model, card_uuid, share_parts, started_at, ended_at, source, estimated from holdings \
         order by 1, 2, 3, 4, 5, 6, 7, 8, 9",
        "select attempt_key, state, node, model, card_uuid, date_trunc('day', bucket_start) as utc_day, count(*) as buckets, \
         sum(card_time) as card_time, sum(billed_time) as billed_time, sum(unseen) as unseen from usage \
         group by attempt_key, state, node, model, card_uuid, utc_day order by 1, 2, 3, 4, 5, 6",
        "select * from charges order by 1, 2, 3, 4, 5, 6, 7, 8, 9",
    ] {
        books += &site.sql_text(digest);
    }
    books
}

/// The seed's fleet, from its first delivery to the last.
fn fleet(seed: u64) {
    let world = world(seed);
    let whole = Site::new();
    import_of(&whole, &world, None);
    let once = books(&whole);

    let site = Site::new();
    // All but the jobs, and of those only the header.
    import_of(&site, &world, Some(1));
    let mut rng = Rng::new(seed);
    let deliveries = deliveries(&mut rng, &world);
    let mut longest = Duration::from_millis(20);
    let mut i = 0;
    while i < deliveries.in_order.len() {
        let together = 1 + usize::from(deliveries.in_order.get(i + 1).is_some_and(|next| next.with_the_one_before));
        let words: Vec<String> = (i..i + together).map(|i| words(&site, i, &deliveries.in_order[i])).collect();
        if let Some(per_cent) = deliveries.in_order[i].killed_at {
            let mut child = site
                .command()
                .args(words[0].split_whitespace())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(longest * per_cent as u32 / 100);
            // SIGKILL; an error means that it was done before.
            let _ = child.kill();
            child.wait().unwrap();
        }
        let began = Instant::now();
        std::thread::scope(|scope| {
            for words in &words {
                let site = &site;
                scope.spawn(move || {
                    let done = answer(site.command().args(words.split_whitespace()));
                    assert!(matches!(done.code, Some(0 | 4)), "{words}, replay with SIM_SEED={seed}: {done:?}");
                });
            }
        });
        longest = longest.max(began.elapsed() / together as u32);
        i += together;
    }

    let replay = format!("seed {seed}, replay with SIM_SEED={seed}");
    assert_same(&format!("delivered piece by piece, {replay}"), &once, &books(&site));
    let quarantined: Vec<String> =
        site.sql("select \"row\" from quarantine").0.into_iter().map(|row| row["row"].clone()).collect();
    let (told, cut): (Vec<&String>, Vec<&String>) = quarantined.iter().partition(|row| row.contains("rubbish-"));
    assert_eq!(told.len(), deliveries.rubbish.len(), "every row of rubbish once, {replay}: {told:#?}");
    for row in cut {
        assert!(deliveries.cut_off.iter().any(|part| row.starts_with(part.as_str())), "{row:?}, {replay}");
    }
    // The whole export is the last that vouches: it says nothing new, and vouches for each attempt that is over up to its own as-of.
    let said = |site: &Site| site.sql_text("select attempt_key, content_hash from jobs order by 1");
    let attempts = |site: &Site| site.sql_text("select attempt_key, content_hash, as_of from jobs order by 1");
    let before = said(&site);
    import_of(&site, &world, None);
    assert_same(&format!("and then everything, {replay}"), &before, &said(&site));
    assert_same(&format!("vouched for as by everything at once, {replay}"), &attempts(&whole), &attempts(&site));
    let replaced = site.sql("select count(*) as n from jobs_history").only("n").to_owned();
    import_of(&site, &world, None);
    assert_same(&format!("and everything again, {replay}"), &attempts(&whole), &attempts(&site));
    assert_eq!(site.sql("select count(*) as n from jobs_history").only("n"), replaced, "{replay}");
    println!("{replay}");
    assert_true(&site, &world);
    site.ok("verify");
}

/// The words that import a delivery, whose file is written under a name of its own.
fn words(site: &Site, number: usize, delivery: &Delivery) -> String {
    let file = site.file(&format!("delivery-{number}"), &delivery.text);
    let map = std::path::Path::new(&file).with_file_name(delivery.map);
    let Window { from, to } = &delivery.window;
    format!("import jobs {file} --map {} --as-of {to}+08:00 --covers {from}+08:00..{to}+08:00", map.display())
}

#[test]
fn whatever_befalls_the_exports_on_their_way_the_books_are_true() {
    let seeds: Vec<u64> = match std::env::var("SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("SIM_SEED is a number")],
        Err(_) => {
            (0..std::env::var("FLEET_SEEDS").map_or(SEEDS, |n| n.parse().expect("FLEET_SEEDS is a number"))).collect()
        }
    };
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers.min(seeds.len()) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    fleet(*seed);
                }
            });
        }
    });
}
