//! Prices that change, and prices that are missing.

use crate::site::{Rows, Site, micros};

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
coefficient = "2.4"
off-peak = "0.6"

[[price]]
from = "2025-03-16"
model = "h200*"
per_card_hour = "16.80"
coefficient = "2.4"
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
queue = "queue"
cards = "cards"
model = "model"
nodes = "node"
submitted_at = "start"
started_at = "start"
ended_at = "end"
"#;

fn site(rows: &str) -> Site {
    let site = Site::new();
    std::fs::create_dir_all(site.ledger()).unwrap();
    std::fs::write(site.ledger().join("prices.toml"), BOOK).unwrap();
    let jobs = site.file("jobs.csv", format!("id,who,team,org,queue,cards,model,node,start,end\n{rows}"));
    let map = site.file("map.toml", MAP);
    site.import(&format!("jobs {jobs} --map {map}"));
    site
}

fn cost(bill: &Rows) -> i128 {
    bill.0.iter().filter(|row| !row["cost"].is_empty()).map(|row| micros(&row["cost"])).sum()
}

/// Two cards from 15 March 20:00 to 16 March 06:00, local time:
/// 20 to 22: 4 card-hours × 18.50 = 74.00; 22 to 24, off-peak: 4 × 11.10 = 44.40; 0 to 6, off-peak, new price: 12 × 10.08 = 120.96.
#[test]
fn a_price_that_changes_in_the_middle_of_a_month_and_a_job_splits_the_line() {
    let site = site("1,chen,wm,lumen,train,2,h200,n1,2025-03-15T20:00:00,2025-03-16T06:00:00\n");
    let bill = site.report("bill --by project");
    assert_eq!(cost(&bill), 239_360_000, "{bill:?}");
    let hours: i128 = bill.sum_micros("card_hours");
    assert_eq!(hours, 20_000_000);
    assert_eq!(bill.sum_micros("standard_card_hours"), 48_000_000, "20 × 2.4");
    let charges = site.sql("select * from charges");
    assert_eq!(charges.0.len(), 3, "one leaf for each price and window: {charges:?}");
}

/// Thirds of a card and odd seconds, so that every leaf is rounded.
#[test]
fn every_grouping_adds_up_to_the_same_total() {
    let mut rows = String::new();
    for i in 0..40 {
        let (day, hour, minute) = (10 + i % 9, (i * 7) % 24, (i * 13) % 60);
        rows.push_str(&format!(
            "{i},user{},team{},org{},q{},{},h200,n{},2025-03-{day}T{hour:02}:{minute:02}:{:02},2025-03-{}T{:02}:{:02}:07\n",
            i % 5,
            i % 3,
            i % 2,
            i % 4,
            ["1", "0.333", "3", "0.125"][i % 4],
            i % 3,
            i % 60,
            day + 1,
            (hour + 5) % 24,
            (minute + 11) % 60,
        ));
    }
    let site = site(&rows);
    let total = cost(&site.report("bill --by org"));
    assert!(total > 0);
    for by in [
        "project",
        "user",
        "queue",
        "model",
        "node",
        "cluster",
        "state",
        "day",
        "month",
        "org,project,user",
        "node,queue,day",
    ] {
        assert_eq!(cost(&site.report(&format!("bill --by {by}"))), total, "by {by}");
    }
}

#[test]
fn a_hole_in_the_price_book_is_listed_and_the_rest_is_priced() {
    let site = site(
        "1,chen,wm,lumen,train,2,h200,n1,2025-03-02T10:00:00,2025-03-02T11:00:00\n\
         2,chen,wm,lumen,train,1,mi300x,n2,2025-03-02T10:00:00,2025-03-02T11:00:00\n",
    );
    let answer = site.run("report bill --by model --format csv");
    assert_eq!(answer.code, Some(1), "{answer:?}");
    let rows = Rows::parse(&answer.out);
    assert_eq!(cost(&rows), 37_000_000, "2 × 18.50");
    assert!(
        rows.0.iter().any(|row| row["model"] == "mi300x" && row["cost"].is_empty()),
        "no price is not a price of zero"
    );
    assert!(answer.err.contains("mi300x") || answer.out.contains("mi300x"));
}

#[test]
fn without_a_price_book_hours_are_reported_without_money() {
    let site = Site::new();
    let jobs = site.file(
        "jobs.csv",
        "id,who,team,org,queue,cards,model,node,start,end\n1,chen,wm,lumen,train,2,h200,n1,2025-03-02T10:00:00,2025-03-02T11:00:00\n",
    );
    let map = site.file("map.toml", MAP);
    site.import(&format!("jobs {jobs} --map {map}"));
    let bill = site.report("bill --by project");
    assert_eq!((bill.only("card_hours"), bill.only("cost")), ("2.000000", ""));
}

#[test]
fn a_price_book_of_another_zone_is_refused() {
    let site = site("1,chen,wm,lumen,train,2,h200,n1,2025-03-02T10:00:00,2025-03-02T11:00:00\n");
    let other = site.file("other.toml", BOOK.replace("Asia/Shanghai", "Europe/Berlin"));
    let answer = site.run(&format!("report bill --prices {other}"));
    assert_eq!(answer.code, Some(2), "{answer:?}");
}

/// A line of the bill leads to the attempt that held the card and to the price that was used.
#[test]
fn a_line_is_traced_to_its_holding_and_its_price() {
    let site = site("4711,chen,wm,lumen,train,2,h200,n1,2025-03-02T10:00:00,2025-03-02T11:00:00\n");
    let bill = site.report("bill --by project");
    let trace = site.ok(&format!("trace {}", bill.only("line")));
    for word in ["4711", "18.5", "n1"] {
        assert!(trace.contains(word), "{word} is missing from\n{trace}");
    }
}
