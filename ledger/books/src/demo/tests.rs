use super::*;
use cardhour_domain::{CardShare, CardTime};
use chrono::{DateTime, NaiveDateTime};
use std::collections::{BTreeMap, BTreeSet};

/// One line of the sacct text, by the header's names.
type Line<'a> = BTreeMap<&'a str, &'a str>;

fn site(seed: u64) -> DemoSite {
    demo_site(seed, Month::new(2025, 10).unwrap())
}

fn text<'a>(site: &'a DemoSite, name: &str) -> &'a str {
    let file = site.files.iter().find(|file| file.name == name).unwrap();
    std::str::from_utf8(&file.bytes).unwrap()
}

/// The jobs of the sacct text without their steps, cut at the bars and nothing else.
fn jobs(site: &DemoSite) -> Vec<Line<'_>> {
    let mut lines = text(site, "jobs.sacct").lines().map(|line| line.split('|').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    lines
        .map(|values| {
            assert_eq!(values.len(), header.len(), "{values:?}");
            header.iter().copied().zip(values).collect::<Line>()
        })
        .filter(|line| !line["JobIDRaw"].contains('.'))
        .collect()
}

fn csv_rows<'a>(site: &'a DemoSite, name: &str) -> Vec<BTreeMap<&'a str, String>> {
    let text = text(site, name);
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.records().map(|r| header.iter().copied().zip(r.unwrap().iter().map(str::to_owned)).collect()).collect()
}

/// A local time of Shanghai, eight hours before UTC all year. Unit: seconds since the epoch.
fn slurm_s(text: &str) -> i64 {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").unwrap().and_utc().timestamp() - 8 * 3600
}

fn rfc3339_s(text: &str) -> i64 {
    DateTime::parse_from_rfc3339(text).unwrap().timestamp()
}

fn cards(line: &Line) -> i64 {
    line["AllocTRES"].split(',').find_map(|part| part.strip_prefix("gres/gpu=")).map_or(0, |n| n.parse().unwrap())
}

/// Start and end of a job that ran; one that goes on ends with the second month.
fn held_s(line: &Line) -> Option<(i64, i64)> {
    let end_s = || slurm_s("2025-11-01T00:00:00");
    line["Start"].as_bytes()[0]
        .is_ascii_digit()
        .then(|| (slurm_s(line["Start"]), if line["End"] == "Unknown" { end_s() } else { slurm_s(line["End"]) }))
}

/// `gpu-[01-02,04]` as names.
fn nodes(list: &str) -> Vec<String> {
    let Some(inside) = list.strip_prefix("gpu-[").and_then(|rest| rest.strip_suffix(']')) else {
        return vec![list.to_owned()];
    };
    let span = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        from.parse::<u32>().unwrap()..=to.parse().unwrap()
    };
    inside.split(',').flat_map(span).map(|n| format!("gpu-{n:02}")).collect()
}

/// The most that is ever taken at one time, where each is (start, end, amount).
fn peak(taken: &[(i64, i64, i64)]) -> i64 {
    let mut steps: Vec<(i64, i64)> = taken.iter().flat_map(|(start, end, n)| [(*start, *n), (*end, -n)]).collect();
    steps.sort_unstable();
    let mut now = 0;
    steps
        .into_iter()
        .map(|(_, change)| {
            now += change;
            now
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn the_same_seed_and_month_give_the_same_bytes() {
    assert_eq!(site(7), site(7));
    assert_ne!(text(&site(7), "jobs.sacct"), text(&site(8), "jobs.sacct"));
}

/// Cards that are out of service, not there yet, or set aside for somebody else count as taken.
#[test]
fn no_node_ever_holds_more_than_its_cards() {
    for seed in 0..6 {
        let site = site(seed);
        let mut taken: BTreeMap<String, Vec<(i64, i64, i64)>> = BTreeMap::new();
        for line in jobs(&site) {
            let Some((start_s, end_s)) = held_s(&line) else { continue };
            let names = nodes(line["NodeList"]);
            assert_eq!(names.len().to_string(), line["NNodes"]);
            let reservation = line["Reservation"];
            for name in &names {
                // What runs under a reservation is checked against the reservation's own cards.
                let place = if reservation.is_empty() { name.clone() } else { format!("{name}/{reservation}") };
                taken.entry(place).or_default().push((start_s, end_s, cards(&line) / names.len() as i64));
            }
        }
        for row in csv_rows(&site, "outages.csv") {
            let out = (rfc3339_s(&row["started_at"]), rfc3339_s(&row["ended_at"]), row["cards"].parse().unwrap_or(8));
            taken.entry(row["nodes"].clone()).or_default().push(out);
        }
        for row in csv_rows(&site, "reservations.csv") {
            let (start_s, end_s) = (rfc3339_s(&row["started_at"]), rfc3339_s(&row["ended_at"]));
            for name in row["nodes"].split(',') {
                taken.entry(name.to_owned()).or_default().push((start_s, end_s, 8));
                let camp = taken.get(&format!("{name}/{}", row["name"])).cloned().unwrap_or_default();
                assert!(camp.iter().all(|(start, end, _)| start_s <= *start && *end <= end_s), "seed {seed}");
            }
        }
        for row in csv_rows(&site, "nodes.csv") {
            let in_service_s = rfc3339_s(&row["in_service_at"]);
            taken.entry(row["node"].clone()).or_default().push((0, in_service_s, 8));
        }
        for (place, taken) in taken {
            let slurm_cards = if place == "gpu-08" { 4 } else { 8 };
            // gpu-08 has its later four cards from the start; only the first four are Slurm's.
            let taken: Vec<_> = taken.into_iter().map(|(a, b, n)| (a, b, n.min(slurm_cards))).collect();
            assert!(peak(&taken) <= slurm_cards, "{place} holds {} cards, seed {seed}", peak(&taken));
        }
    }
}

#[test]
fn the_shares_of_one_card_never_add_up_to_more_than_one() {
    for seed in 0..6 {
        let site = site(seed);
        let mut taken: BTreeMap<String, Vec<(i64, i64, i64)>> = BTreeMap::new();
        for row in csv_rows(&site, "sessions.csv") {
            let end_s = if row["end"].is_empty() { site.as_of.unix_ms() / 1000 } else { rfc3339_s(&row["end"]) };
            let milli: i64 = row["share"].strip_prefix("0.").unwrap().parse().unwrap();
            taken.entry(row["card_uuid"].clone()).or_default().push((rfc3339_s(&row["start"]), end_s, milli));
        }
        assert_eq!(taken.len(), 4, "four cards are shared");
        assert!(taken.values().all(|taken| peak(taken) <= 1000), "seed {seed}");
        assert!(
            taken.values().any(|taken| peak(taken) == 1000),
            "a full card is what makes sharing a test, seed {seed}"
        );
    }
}

/// The truth is added up from the schedule; here the same is added up from the text, as an importer would have it.
#[test]
fn the_truth_is_what_the_text_says() {
    let site = site(7);
    // September has 30 days and October 31; Shanghai's days have 24 hours.
    let starts = ["2025-09-01T00:00:00", "2025-10-01T00:00:00", "2025-11-01T00:00:00"].map(slurm_s);
    let mut told: BTreeMap<(String, usize), i128> = BTreeMap::new();
    let mut add = |project: &str, start_s: i64, end_s: i64, milli: i64| {
        for month in 0..2 {
            let (from, to) = (start_s.max(starts[month]), end_s.min(starts[month + 1]));
            if from < to {
                *told.entry((project.to_owned(), month)).or_default() += i128::from(to - from) * i128::from(milli);
            }
        }
    };
    for line in jobs(&site) {
        if let Some((start_s, end_s)) = held_s(&line)
            && cards(&line) > 0
        {
            add(line["Account"], start_s, end_s, 1000 * cards(&line));
        }
    }
    for row in csv_rows(&site, "sessions.csv") {
        let end_s = if row["end"].is_empty() { starts[2] } else { rfc3339_s(&row["end"]) };
        add(&row["team"], rfc3339_s(&row["start"]), end_s, row["share"].strip_prefix("0.").unwrap().parse().unwrap());
    }
    let part_ms = i128::from(CardShare::PARTS_PER_CARD); // thousandths of a card × seconds = parts × ms / parts a card
    let told: BTreeMap<_, _> =
        told.into_iter().map(|(key, milli_s)| (key, CardTime::from_part_ms(milli_s * part_ms))).collect();
    let truth: BTreeMap<_, _> = site
        .truth
        .held
        .iter()
        .filter(|(_, time)| !time.is_zero())
        .map(|((project, month), time)| {
            let index = site.months.iter().position(|m| m == month).unwrap();
            (((*project).to_owned(), index), *time)
        })
        .collect();
    assert_eq!(truth, told);
    assert_eq!(truth.len(), 18, "nine projects in two months");
}

/// 56 cards all of September and eight from day 8, 10:00: 56 × 720 + 8 × (720 − 178). All 64 in October: 64 × 744.
/// Down: 8 × 12 h in September; 8 × (32 h 12 min 18 s) + 1 × (50 h 40 min) in October, from the windows in `pool.rs`.
#[test]
fn the_pool_is_always_something() {
    let site = site(7);
    let [september, october] = site.months.map(|month| site.truth.pool[&month]);
    assert_eq!(september.capacity.card_hours().to_string(), "44656.000000");
    assert_eq!(october.capacity.card_hours().to_string(), "47616.000000");
    assert_eq!(september.down.card_hours().to_string(), "96.000000");
    assert_eq!(october.down.card_hours().to_string(), "308.306667");
    for pool in [september, october] {
        assert!(pool.free > CardTime::ZERO && pool.reserved > CardTime::ZERO && pool.held > pool.free);
        assert_eq!(pool.held + pool.down + pool.reserved + pool.free, pool.capacity);
    }
}

#[test]
fn whatever_can_happen_to_a_job_happens() {
    let site = site(7);
    let jobs = jobs(&site);
    let states: BTreeSet<&str> = jobs.iter().map(|line| line["State"].split(' ').next().unwrap()).collect();
    for state in [
        "COMPLETED",
        "FAILED",
        "OUT_OF_MEMORY",
        "TIMEOUT",
        "CANCELLED",
        "NODE_FAIL",
        "PREEMPTED",
        "REQUEUED",
        "RUNNING",
        "PENDING",
    ] {
        assert!(states.contains(state), "{state} is missing from {states:?}");
    }
    assert!((2_000..=4_500).contains(&jobs.len()), "{} jobs", jobs.len());
    assert!(jobs.iter().any(|line| line["State"].starts_with("CANCELLED") && line["Start"] == "None"));
    assert!(jobs.iter().any(|line| line["Suspended"] != "00:00:00"));
    assert!(jobs.iter().any(|line| line["JobID"].contains('_')), "arrays");
    assert!(jobs.iter().any(|line| line["NNodes"] == "2" && cards(line) == 16), "gangs over two nodes");
    assert!(jobs.iter().any(|line| line["Start"] != "Unknown" && cards(line) == 0), "jobs without cards");
    assert!(jobs.iter().any(|line| !line["Reservation"].is_empty()));

    let db_indices: BTreeSet<&str> = jobs.iter().map(|line| line["DBIndex"]).collect();
    assert_eq!(db_indices.len(), jobs.len(), "each run has a record of its own");
    for line in jobs.iter().filter(|line| ["REQUEUED", "PREEMPTED"].contains(&line["State"])) {
        assert!(
            jobs.iter().any(|next| next["JobID"] == line["JobID"] && next["DBIndex"] > line["DBIndex"]),
            "{} runs again or waits to",
            line["JobID"]
        );
    }
    let failed: Vec<_> = jobs.iter().filter(|line| line["State"] == "NODE_FAIL").collect();
    let outages = csv_rows(&site, "outages.csv");
    let outage = outages.iter().find(|row| row["reason"].starts_with("power")).unwrap();
    for line in failed {
        assert_eq!(
            slurm_s(line["End"]),
            rfc3339_s(&outage["started_at"]),
            "a node failure ends its jobs when it happens"
        );
    }
}

#[test]
fn everything_says_that_it_is_simulated() {
    let site = site(7);
    for file in &site.files {
        let text = std::str::from_utf8(&file.bytes).unwrap();
        assert!(text.contains(CLUSTER) || text.contains(REMARK) || file.name == "sessions.csv", "{}", file.name);
    }
    // The hub's export has no cluster; its map names it.
    assert!(text(&site, "sessions.toml").contains(CLUSTER));
}

/// What advice is made of: the run that waits for its data is busy for less than a fifth (by hand (310 + 210 + 120 + 60) ÷ 4 = 17.5 %) and uses about a third of its cards' memory, so that it
/// is told of a larger batch and of a cheaper model; nobody else uses less than half.
#[test]
fn who_waits_for_data_needs_little_memory_and_all_others_need_much() {
    let site = site(1);
    let tale = site.tales.iter().find(|tale| tale.kind == TaleKind::InputBound).unwrap();
    let of_node = |node: &str| pool::NODES.iter().find(|known| known.name == node).unwrap();
    let (mut starved, mut others) = (Vec::new(), Vec::new());
    for spool in site.spools() {
        for sample in &spool.rows.samples {
            let (Some(key), Some(used)) = (&sample.attempt_key, sample.mem_used_bytes.seen()) else { continue };
            let whole = i64::from(of_node(&sample.node).card_memory_gib) << 30;
            let milli = used * 1000 / whole;
            if *key == tale.seen_as { starved.push(milli) } else { others.push(milli) }
        }
    }
    assert!(!starved.is_empty() && starved.iter().all(|milli| (330..=340).contains(milli)), "{starved:?}");
    assert!(others.iter().all(|milli| *milli > 500));
}
