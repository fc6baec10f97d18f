//! Statements as files, and another price list on past usage.

use crate::site::{Rows, Site, micros};
use std::collections::BTreeMap;
use std::path::Path;

const BOOK: &str = r#"
currency = "CNY"
zone = "Asia/Shanghai"

[[window]]
name = "off-peak"
days = "mon-sun"
from = "22:00"
to = "08:00"

[[price]]
from = "2025-01-01"
model = "h200*"
per_card_hour = "18.50"
off-peak = "0.6"
"#;

const MAP: &str = r#"
format = "csv"
time_zone = "Asia/Shanghai"
cluster = "c"
[columns]
job_id = "id"
user = "who"
project = "team"
org = "org"
cards = "cards"
model = "model"
submitted_at = "start"
started_at = "start"
ended_at = "end"
"#;

/// Two organisations whose names differ in case alone, a project called like a formula, and a job of nobody's.
///
/// By hand: acme 2 cards × 10 h of the day × 18.50 = 370.00; Acme 4 cards from 21:00 to 24:00: 4 × 18.50 + 8 × 11.10 = 162.80; the platform's own
/// 1 card × 1 h × 18.50 = 18.50.
const JOBS: &str = r#"id,who,team,org,cards,model,start,end
1,ann,"=HYPERLINK(""http://x"",""y"")",acme,2,h200,2025-03-03T09:00:00,2025-03-03T19:00:00
2,bob,speech,Acme,4,h200,2025-03-04T21:00:00,2025-03-05T00:00:00
3,,,,1,h200,2025-03-06T10:00:00,2025-03-06T11:00:00
"#;

fn site() -> Site {
    let site = Site::new();
    std::fs::create_dir_all(site.ledger()).unwrap();
    std::fs::write(site.ledger().join("prices.toml"), BOOK).unwrap();
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", MAP));
    site.import(&format!("jobs {jobs} --map {map}"));
    site
}

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn each_statement_is_a_file_of_its_own_and_the_same_bytes_again() {
    let site = site();
    let export = |folder: &str| {
        let folder = site.ledger().with_file_name(folder);
        for format in ["xlsx", "csv", "html", "parquet"] {
            let told = site.ok(&format!("export {format} --month 2025-03 --output-dir {}", folder.display()));
            assert_eq!(told.lines().count(), 3, "{told}");
        }
        files(&folder)
    };
    let once = export("once");
    assert_eq!(once.len(), 12, "{:?}", once.keys());
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert!(export("again") == once, "an export has nothing of the moment it was written in");

    let text = |name: &str| String::from_utf8(once[name].clone()).unwrap();
    let sum = |name: &str| -> i128 { Rows::parse(&text(name)).0.iter().map(|row| micros(&row["amount"])).sum() };
    assert_eq!(sum("statement-2025-03-acme.csv"), 370_000_000);
    assert_eq!(sum("statement-2025-03-platform.csv"), 18_500_000);
    let other = once
        .keys()
        .find(|name| name.starts_with("statement-2025-03-acme.") && name.ends_with(".csv") && name.len() > 30);
    assert_eq!(sum(other.expect("Acme")), 162_800_000);

    let csv = text("statement-2025-03-acme.csv");
    assert!(csv.contains("\"'=HYPERLINK("), "{csv}");
    let html = text("statement-2025-03-acme.html");
    assert!(html.contains("370.00") && html.contains("DRAFT") && !html.contains("<script"), "{html}");
    assert!(!html.contains("src=") && !html.contains("href=") && !html.contains("url("), "it fetches nothing");
}

#[test]
fn an_organisation_without_a_statement_is_told() {
    let site = site();
    let folder = site.ledger().with_file_name("none");
    let answer = site.run(&format!("export csv --month 2025-03 --org nobody --output-dir {}", folder.display()));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains("no statement of 2025-03 for \"nobody\""), "{}", answer.err);
}

/// By hand, at 20.00 and half of it at night: acme 20 × 20.00 = 400.00 (30.00 more); Acme 4 × 20.00 + 8 × 10.00 = 160.00 (2.80 less); nobody's 20.00.
#[test]
fn price_try_shows_who_would_pay_what_beside_today() {
    let site = site();
    let then = site.file("then.toml", BOOK.replace("18.50", "20.00").replace("\"0.6\"", "\"0.5\""));
    let rows = Rows::parse(&site.ok(&format!("price try {then} --month 2025-03 --by org --format csv")));
    let shown: Vec<[&str; 4]> = rows
        .0
        .iter()
        .map(|row| ["org", "cost_now", "cost_then", "difference"].map(|column| row[column].as_str()))
        .collect();
    let nobody = shown[0][0];
    assert_eq!(
        shown,
        [
            [nobody, "18.50", "20.00", "1.50"],
            ["Acme", "162.80", "160.00", "-2.80"],
            ["acme", "370.00", "400.00", "30.00"]
        ]
    );
    let hole = site.file("hole.toml", BOOK.replace("h200*", "l40s"));
    let answer = site.run(&format!("price try {hole} --month 2025-03 --by org"));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.out.contains("then: hole in the price book: no price for model h200"), "{}", answer.out);
}
