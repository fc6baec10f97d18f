//! A month that is closed, on the real binary: what it comes to, what it refuses, and that nothing changes it again (LED-5).

use crate::service::Service;
use crate::site::{Rows, Site, answer, micros};
use std::process::Stdio;
use std::time::Duration;

const BOOK: &str = r#"
currency = "CNY"
zone = "Asia/Shanghai"
[[window]]
name = "off-peak"
days = "mon-sun"
from = "22:00"
to = "08:00"
[[price]]
from = "2026-01-01"
per_card_hour = "18.50"
off-peak = "0.6"
"#;

const MAP: &str = r#"
format = "csv"
time_zone = "Asia/Shanghai"
cluster = "lab"
[columns]
job_id = "id"
org = "org"
project = "team"
user = "who"
cards = "cards"
model = "model"
state = "state"
submitted_at = "start"
started_at = "start"
ended_at = "end"
"#;

const HEADER: &str = "id,org,team,who,cards,model,state,start,end\n";

/// By hand: 4 × 10 h × 18.50 = 740.00; 2 × 1 h × 18.50 and 2 × 2 h × 11.10 = 81.40 (the node failed); 2 × 5 h × 11.10 = 111.00; the last one has a
/// name that a spreadsheet would take for a formula: 1 h × 18.50.
const JOBS: &str = "101,acme,vision,ann,4,h200,completed,2026-03-02T09:00:00,2026-03-02T19:00:00\n\
                    102,acme,speech,bob,2,h200,node_fail,2026-03-02T21:00:00,2026-03-03T00:00:00\n\
                    103,acme,speech,bob,2,h200,completed,2026-03-03T01:00:00,2026-03-03T06:00:00\n\
                    104,\"=HYPERLINK(\"\"http://x\"\")\",@team,+eve,1,h200,completed,2026-03-04T10:00:00,2026-03-04T11:00:00\n";

/// What March comes to without a policy: 740.00 + 81.40 + 111.00 + 18.50.
const MARCH: &str = "950.90";

fn site() -> Site {
    let site = Site::new();
    site.ok("init --zone Asia/Shanghai");
    std::fs::write(site.ledger().join("prices.toml"), BOOK).unwrap();
    import(&site, "jobs.csv", JOBS, "2026-04-02");
    site
}

fn import(site: &Site, name: &str, rows: &str, as_of: &str) {
    let (file, map) = (site.file(name, format!("{HEADER}{rows}")), site.file("map.toml", MAP));
    site.import(&format!("jobs {file} --map {map} --as-of {as_of} --covers 2026-03-01..{as_of}"));
}

fn statements(site: &Site, words: &str) -> Rows {
    Rows::parse(&site.ok(&format!("statement {words} --format csv")))
}

fn canonical(site: &Site, month: &str) -> String {
    site.ok(&format!("statement --month {month} --canonical"))
}

/// SHA-256 of a text, by the system's own program.
fn sha256(site: &Site, text: &str) -> String {
    let file = site.file("hashed", text);
    answer(std::process::Command::new("sha256sum").arg(file)).out.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_month_is_closed_as_the_dry_run_shows_and_its_hash_is_that_of_its_text() {
    let site = site();
    let dry = site.run("close --month 2026-03 --by ann --dry-run --format csv");
    assert_eq!(dry.code, Some(0), "{}\n{}", dry.out, dry.err);
    assert_eq!(Rows::parse(&dry.out).sum_micros("amount"), micros(MARCH));
    assert!(Rows::parse(&site.ok("statement --format csv")).0.is_empty(), "a dry run closes nothing");

    site.ok("close --month 2026-03 --by ann --comment agreed");
    let said = site.ok("--version");
    let signed = site.sql("select code_version from closings").only("code_version").to_owned();
    assert_eq!(said.trim(), format!("cardhour {signed}"), "the build that closed it");
    let closed = Rows::parse(&site.ok("statement --format csv"));
    assert_eq!((closed.only("month"), closed.only("closed_by")), ("2026-03", "ann"));
    assert_eq!((closed.only("amount"), closed.only("comment")), (MARCH, "agreed"));
    assert_eq!(closed.only("sha256"), sha256(&site, &canonical(&site, "2026-03")));
    assert!(dry.err.contains(closed.only("sha256")), "the dry run shows what would be signed: {}", dry.err);
    assert_eq!(micros(&site.report("bill --month 2026-03 --by month").0[0]["cost"]), micros(MARCH));
    assert_eq!(
        site.sql("select sum(amount) as amount from entries where period = '2026-03'").sum_micros("amount"),
        micros(MARCH)
    );
    site.ok("verify");
}

/// T14. By hand: 105 held one card for two hours of 20 March by day: 37.00, in April, of March. And 101 turns out to have been vision's other project's.
#[test]
fn t14_a_late_job_and_another_owner_are_corrections_in_april_and_march_keeps_its_bytes() {
    let site = site();
    site.ok("close --month 2026-03 --by ann");
    let (before, bill) =
        (canonical(&site, "2026-03"), site.ok("report bill --month 2026-03 --by project,user --format csv"));
    import(
        &site,
        "late.csv",
        "105,acme,vision,ann,1,h200,completed,2026-03-20T10:00:00,2026-03-20T12:00:00\n",
        "2026-04-03",
    );
    import(
        &site,
        "moved.csv",
        "101,acme,robots,ann,4,h200,completed,2026-03-02T09:00:00,2026-03-02T19:00:00\n",
        "2026-04-04",
    );
    std::fs::write(site.ledger().join("prices.toml"), BOOK.replace("18.50", "99.00")).unwrap();

    let exported = site.file("march.csv", &bill);
    site.ok(&format!("verify --bill {exported}"));
    assert_eq!(canonical(&site, "2026-03"), before);
    assert_eq!(site.ok("report bill --month 2026-03 --by project,user --format csv"), bill);
    let april = statements(&site, "--month 2026-04 --entries");
    let lines: Vec<_> = april
        .0
        .iter()
        .map(|row| [&row["kind"], &row["original_period"], &row["project"], &row["amount"]].map(String::as_str))
        .collect();
    // vision had 740.00 of job 101 and has 37.00 of job 105: 703.00 less.
    let expected = [["correction", "2026-03", "robots", "740.00"], ["correction", "2026-03", "vision", "-703.00"]];
    assert_eq!(lines, expected);
    assert!(!april.0[1]["original_entry"].is_empty() && april.0[0]["original_entry"].is_empty());
    let traced = site.ok(&format!("trace {}", april.0[1]["entry_id"]));
    assert!(traced.contains("was 740.00 CNY for 40 card-hours, is 37.00 CNY for 2 card-hours"), "{traced}");
    assert!(["lab/101/", "lab/105/"].iter().all(|attempt| traced.contains(attempt)), "whose doing it is: {traced}");
    site.ok("verify");
}

/// M25. By hand: the node failed under job 102, which cost 81.40: it is given back, and the entry says of which charge.
#[test]
fn m25_time_that_a_failed_node_took_is_given_back_by_an_entry_that_points_at_its_charge() {
    let site = site();
    std::fs::write(site.ledger().join("billing.toml"), "[refunds]\nnode_fail = \"1\"\n").unwrap();
    let rows = statements(&site, "--month 2026-03 --org acme");
    let of = |kind: &str| rows.0.iter().filter(|row| row["kind"] == kind).cloned().collect::<Vec<_>>();
    let refunds = of("refund");
    assert_eq!(refunds.iter().map(|row| micros(&row["amount"])).sum::<i128>(), micros("-81.40"));
    let charges: Vec<String> = of("charge").iter().map(|row| row["entry_id"].clone()).collect();
    assert!(
        refunds.iter().all(|row| row["what"] == "node_fail" && charges.contains(&row["original_entry"])),
        "{refunds:?}"
    );
    site.ok("close --month 2026-03 --by ann");
    // The policy that it was closed by stays with it.
    std::fs::write(site.ledger().join("billing.toml"), "").unwrap();
    assert_eq!(statements(&site, "--month 2026-03").sum_micros("amount"), micros(MARCH) - micros("81.40"));
    let april = site.run("statement --month 2026-04 --format csv");
    assert_eq!(
        (Rows::parse(&april.out).0.len(), april.code),
        (0, Some(1)),
        "a policy of today corrects no closed month"
    );
    assert!(april.err.contains("nothing is booked in 2026-04"), "{}", april.err);
    site.ok("verify");
}

/// LED-8. By hand: under job 102 the node failed, and its hours by night, 2 × 2 h × 11.10 = 44.40, are in one leaf with those of job 103, which ended well: the refund is of 102
/// alone. Eight cards less what was held were free, which the projects share: the trace of one's part has the cards, the whole, and what it is shared by. What was frozen tells what the facts told.
#[test]
fn an_entry_of_any_kind_is_traced_to_what_it_is_made_of() {
    let site = site();
    let nodes = "cluster,node,model,cards,in_service_at\nlab,n1,h200,8,2026-02-28T16:00:00Z\n";
    let nodes = site.file("nodes.csv", nodes);
    site.import(&format!("nodes {nodes}"));
    let policy = "[refunds]\nnode_fail = \"1\"\n[capacity]\nfree = \"shared\"\n";
    std::fs::write(site.ledger().join("billing.toml"), policy).unwrap();
    let entry = |kind: &str, window: &str| {
        let rows = Rows::parse(&site.ok("statement --month 2026-03 --entries --format csv"));
        let mut of_speech = rows.0.iter().filter(|row| row["project"] == "speech");
        let found = of_speech.find(|row| row["kind"] == kind && row["window"] == window);
        found.unwrap_or_else(|| panic!("no {kind}"))["entry_id"].clone()
    };
    let (refund, idle) = (entry("refund", "off-peak"), entry("idle", ""));
    let trace = |id: &str| site.ok(&format!("trace {id}"));
    let (open_refund, open_idle) = (trace(&refund), trace(&idle));
    assert!(
        open_refund.contains("attempts: whose time is given back") && open_refund.contains("/102/"),
        "{open_refund}"
    );
    assert!(!open_refund.contains("/103/"), "{open_refund}");
    for part in ["parts: what it is made of", "lab", "of: the lines of which it is a part", "shared by:", "prices:"] {
        assert!(open_idle.contains(part), "{part}: {open_idle}");
    }
    site.ok("close --month 2026-03 --by ann");
    let as_open = |trace: String| trace.replace("(closed)", "(open)");
    assert_eq!((as_open(trace(&refund)), as_open(trace(&idle))), (open_refund, open_idle));
}

/// M20, and the rest of what a close refuses.
#[test]
fn m20_close_says_why_not_and_a_reason_mends_only_what_is_a_matter_of_trust() {
    let site = site();
    let refused = |words: &str, because: &str| {
        let answer = site.run(&format!("close --by ann {words}"));
        assert_eq!(answer.code, Some(1), "{words}: {}{}", answer.out, answer.err);
        let said = format!("{}{}", answer.out, answer.err);
        assert!(said.contains(because), "{words}: {said}");
    };
    refused("--month 2026-04", "there is usage since 2026-03");
    refused("--month 2036-04 --sign-off now", "isn't over before 2036-04-30T16:00:00Z");
    std::fs::write(site.ledger().join("prices.toml"), BOOK.replace("per_card", "model = \"a100\"\nper_card")).unwrap();
    refused("--month 2026-03 --sign-off now", "holes");
    std::fs::write(site.ledger().join("prices.toml"), BOOK).unwrap();
    import(&site, "open.csv", "106,acme,vision,ann,1,h200,running,2026-03-30T10:00:00,\n", "2026-03-31");
    refused("--month 2026-03", "lab/106");
    let signed =
        site.command().args(["close", "--month", "2026-03", "--by", "ann", "--sign-off", "job 106 is known"]).output();
    assert_eq!(signed.unwrap().status.code(), Some(0));
    assert_eq!(Rows::parse(&site.ok("statement --format csv")).only("sign_off"), "job 106 is known");
}

/// Nobody told anything of April, nor of the year before: neither is closed as a month in which nothing happened.
#[test]
fn a_month_that_nobody_speaks_for_is_not_closed_as_an_empty_one() {
    let site = site();
    let early = site.run("close --month 2025-03 --by ann --sign-off now");
    assert_eq!(early.code, Some(1));
    assert!(format!("{}{}", early.out, early.err).contains("nothing is booked before 2026-03"), "{}", early.out);
    site.ok("close --month 2026-03 --by ann");
    let april = site.run("close --month 2026-04 --by ann");
    assert_eq!(april.code, Some(1), "{}", april.out);
    assert!(format!("{}{}", april.out, april.err).contains("speak until 2026-04-01T16:00:00Z"), "{}", april.out);
}

/// What has no price is in no statement, and the statement says so.
#[test]
fn a_statement_says_what_it_leaves_out_and_answers_no() {
    let site = site();
    std::fs::write(site.ledger().join("prices.toml"), BOOK.replace("per_card", "project = \"vision\"\nper_card"))
        .unwrap();
    let stated = site.run("statement --month 2026-03 --format csv");
    assert_eq!(stated.code, Some(1));
    assert_eq!(Rows::parse(&stated.out).sum_micros("amount"), micros("740.00"));
    assert!(stated.err.contains("no price"), "{}", stated.err);
    assert_eq!(site.run("statement --month 2026-03 --org nobody").code, Some(1));
}

#[test]
fn two_who_close_a_month_at_once_close_it_once() {
    let site = site();
    let mut closers: Vec<_> = ["ann", "bob"]
        .map(|by| {
            let words = ["close", "--month", "2026-03", "--by", by];
            site.command().args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .into();
    for closer in &mut closers {
        assert_eq!(closer.wait().unwrap().code(), Some(0));
    }
    let closed = Rows::parse(&site.ok("statement --format csv"));
    assert_eq!(closed.only("amount"), MARCH);
    assert_eq!(site.sql("select count(*) as n from closings").only("n"), "1");
    site.ok("verify");
}

/// LED-4 and LED-5 through kill -9.
#[test]
fn a_close_that_is_killed_at_any_moment_is_closed_by_the_next_and_nothing_is_there_twice() {
    let site = site();
    let mut wait = Duration::from_millis(5);
    let mut kills = 0;
    loop {
        let words = ["close", "--month", "2026-03", "--by", "ann"];
        let mut close = site.command().args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(wait);
        if close.try_wait().unwrap().is_some() {
            break;
        }
        close.kill().unwrap();
        close.wait().unwrap();
        kills += 1;
        site.ok("verify");
        wait += Duration::from_millis(25);
    }
    assert!(kills > 3, "the close was done before it could be killed");
    site.ok("close --month 2026-03 --by ann");
    assert_eq!(Rows::parse(&site.ok("statement --format csv")).only("amount"), MARCH);
    let twice = "select entry_id from entries group by entry_id having count(*) > 1";
    assert!(site.sql(twice).0.is_empty());
    site.ok("verify");
}

#[test]
fn statements_are_the_same_over_http() {
    let site = site();
    let service = Service::start(&site);
    let over_http = service.get("/api/v1/statement?month=2026-03&format=csv");
    assert_eq!(over_http.body, site.ok("statement --month 2026-03 --format csv"));
}
