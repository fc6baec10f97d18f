//! A time of the books played again: under today's quotas and under proposed ones, against a calculation by hand.

use crate::site::{POOL_MAP, Rows, Site};

/// One host of eight cards. acme's jobs 1 and 2 fill it from 08:05; nova's job 3 comes at 08:10 and had to wait for job 1 to end at 09:40. Job 5 was never started.
const JOBS: &str = "id,org,team,who,cards,model,node,class,restartable,state,submit,start,end\n\
    1,acme,vision,ann,4,H200,n1,training,true,completed,2026-03-02T08:00:00Z,2026-03-02T08:00:00Z,2026-03-02T09:40:00Z\n\
    2,acme,vision,bob,4,H200,n1,training,true,completed,2026-03-02T08:05:00Z,2026-03-02T08:05:00Z,2026-03-02T09:45:00Z\n\
    3,nova,speech,eve,4,H200,n1,training,true,completed,2026-03-02T08:10:00Z,2026-03-02T09:40:00Z,2026-03-02T10:00:00Z\n\
    4,acme,vision,ann,1,H200,n1,training,true,completed,2026-03-02T11:00:00Z,2026-03-02T11:00:00Z,2026-03-02T12:00:00Z\n\
    5,nova,speech,eve,4,H200,,training,true,cancelled,2026-03-02T08:20:00Z,,2026-03-02T08:30:00Z\n";

const PROPOSED: &str = "[[quota]]\norg = \"acme\"\nmodel = \"H200\"\nguaranteed = 4\n\
                        [[quota]]\norg = \"nova\"\nmodel = \"H200\"\nguaranteed = 4\n";

const PRICES: &str = "currency = \"USD\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"*\"\n\
                      per_card_hour = \"2.00\"\ncoefficient = \"1\"\n";

const SPAN: &str = "--from 2026-03-02T08:00:00Z --to 2026-03-02T12:00:00Z";

fn site() -> Site {
    let site = Site::new();
    site.ok("init --zone UTC");
    let nodes = site.file("nodes.csv", "cluster,node,model,cards,in_service_at\nlab,n1,H200,8,2026-03-01T00:00:00Z\n");
    site.import(&format!("nodes {nodes}"));
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", POOL_MAP));
    site.import(&format!("jobs {jobs} --map {map} --as-of 2026-03-02T12:00:00Z"));
    std::fs::write(site.ledger().join("prices.toml"), PRICES).unwrap();
    site
}

#[track_caller]
fn check(rows: &Rows, team: &str, quotas: &str, expected: &[(&str, &str)]) {
    let row = rows.0.iter().find(|row| row["team"] == team && row["quotas"] == quotas).unwrap();
    for (column, value) in expected {
        assert_eq!(row[*column], *value, "{column} of {team}, {quotas}: {row:?}");
    }
}

/// By hand. Without quotas it goes as it went: job 3 waits 90 minutes, the other three jobs none; means 1.5 ÷ 4 h of all and 1.5 of nova's one. With four cards guaranteed to each, job 1 gives way once
/// it has run half an hour, at 08:30 (job 2 has to run until 08:35), having lost 4 × 0.5 h; job 3 has waited 20 minutes and runs until 08:50; then job 1 runs again in full, until 10:30.
///
/// Held in the four hours, of 8 × 4 = 32 card-hours: acme 4 × 100 min twice and 1 h = 14.333333, under the proposal 2 more; nova 4 × 20 min = 1.333333. Guaranteed: nova asks for its four cards from
/// 08:10 to 08:50 and has them the second half of it; acme always has four while it asks for as many. At 2.00 a card-hour ann's 7.666667 h are 15.33, bob's 6.666667 h 13.33, eve's 2.67; ann's 9.666667 h 19.33.
#[test]
fn a_proposal_is_held_against_today_and_against_what_happened() {
    let site = site();
    let new = site.file("new.toml", PROPOSED);
    let answer = site.run(&format!("replay policy {SPAN} --quotas {new} --format csv"));
    assert_eq!(answer.code, Some(0), "{}\n{}", answer.out, answer.err);
    let rows = Rows::parse(&answer.out);
    // Two teams and the total, each with what was recorded, today, the proposal and the difference.
    assert_eq!(rows.0.len(), 12, "{}", answer.out);
    for quotas in ["recorded", "today"] {
        check(
            &rows,
            "total",
            quotas,
            &[
                ("jobs", "4"),
                ("mean_wait_hours", "0.375000"),
                ("median_wait_hours", "0.000000"),
                ("p95_wait_hours", "1.500000"),
                ("card_hours", "15.666667"),
                ("utilisation", "0.489583"),
                ("preemptions", "0"),
                ("lost_card_hours", "0.000000"),
                ("guarantee_met", ""),
                ("cost", "31.33"),
                ("currency", "USD"),
            ],
        );
        check(&rows, "nova", quotas, &[("mean_wait_hours", "1.500000"), ("cost", "2.67")]);
        check(&rows, "acme", quotas, &[("card_hours", "14.333333"), ("cost", "28.66")]);
    }
    check(
        &rows,
        "total",
        "proposed",
        &[
            ("jobs", "4"),
            ("mean_wait_hours", "0.083333"),
            ("p95_wait_hours", "0.333333"),
            ("card_hours", "17.666667"),
            ("utilisation", "0.552083"),
            ("preemptions", "1"),
            ("moves", "0"),
            ("lost_card_hours", "2.000000"),
            ("unstarted", "0"),
            ("cost", "35.33"),
        ],
    );
    check(
        &rows,
        "nova",
        "proposed",
        &[("mean_wait_hours", "0.333333"), ("guarantee_met", "0.500000"), ("preemptions", "0")],
    );
    check(
        &rows,
        "acme",
        "proposed",
        &[("guarantee_met", "1.000000"), ("lost_card_hours", "2.000000"), ("cost", "32.66")],
    );
    check(
        &rows,
        "total",
        "difference",
        &[("mean_wait_hours", "-0.291667"), ("lost_card_hours", "2.000000"), ("preemptions", "1"), ("cost", "4.00")],
    );
    check(&rows, "nova", "difference", &[("mean_wait_hours", "-1.166667"), ("guarantee_met", "")]);
    assert!(answer.err.contains("1 never started"), "{}", answer.err);
    // The books are as before, and the same is said again.
    assert_eq!(site.run(&format!("replay policy {SPAN} --quotas {new} --format csv")).out, answer.out);
}

/// What is in force is what `quotas.toml` in the ledger's folder says: with the proposal there, today's column is what was proposed.
#[test]
fn quotas_that_are_in_force_are_todays() {
    let site = site();
    std::fs::write(site.ledger().join("quotas.toml"), PROPOSED).unwrap();
    let rows = Rows::parse(&site.ok(&format!("replay policy {SPAN} --format csv")));
    assert_eq!(rows.0.len(), 6, "{rows:?}");
    check(&rows, "nova", "today", &[("mean_wait_hours", "0.333333"), ("guarantee_met", "0.500000")]);
    // As it went, nova asked from 08:10 to 10:00 and had its cards the last 20 of 110 minutes.
    check(&rows, "nova", "recorded", &[("mean_wait_hours", "1.500000"), ("guarantee_met", "0.181818")]);
    let projects = Rows::parse(&site.ok(&format!("replay policy {SPAN} --by project --format csv")));
    check(&projects, "nova/speech", "today", &[("mean_wait_hours", "0.333333"), ("guarantee_met", "")]);
}

#[test]
fn people_see_it_side_by_side_and_drawn() {
    let site = site();
    let new = site.file("new.toml", PROPOSED);
    let words = format!("replay policy {SPAN} --quotas {new}");
    let text = site.ok(&words);
    for part in [
        "recorded",
        "today",
        "proposed",
        "difference",
        "Mean wait, hours",
        "nothing was started, moved or ended by this",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let page = site.ok(&format!("{words} --format html"));
    assert!(page.contains("nova, proposed") && page.contains("<rect") && !page.contains("<script"), "{page}");
    let text = site.ok(&format!("{words} --format md"));
    // Of today's 40 letters for 1.5 h, 20 minutes are 2/9: eight.
    assert!(text.contains(&format!("nova, today     {} 1.5000", "█".repeat(40))), "{text}");
    assert!(text.contains(&format!("nova, proposed  {} 0.3333", "█".repeat(8))), "{text}");
}

#[test]
fn what_cannot_be_played_is_told() {
    let site = site();
    let answer = site.run(&format!("replay policy {SPAN} --quotas nowhere.toml"));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    let faulty = site.file("faulty.toml", "[[quota]]\nproject = \"vision\"\nweight = 1\n");
    let answer = site.run(&format!("replay policy {SPAN} --quotas {faulty}"));
    assert_eq!(answer.code, Some(2), "{}", answer.err);
    assert!(answer.err.contains("line 1: quota[1].org: is missing"), "{}", answer.err);
    assert!(site.ok("replay policy --month 2025-01").contains("the books do not speak of this time"));
}
