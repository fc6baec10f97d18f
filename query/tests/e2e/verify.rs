//! `verify` and `maintain` as a site runs them.

use crate::site::Site;

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
per_card_hour = "18.37"
coefficient = "2.4"
off-peak = "0.6"
[[price]]
from = "2025-03-16"
per_card_hour = "16.81"
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
cards = "cards"
nodes = "node"
submitted_at = "start"
started_at = "start"
ended_at = "end"
"#;

/// Forty jobs of a third or three cards over three weeks and a change of month, on nodes of four cards.
fn site() -> Site {
    let site = Site::new();
    std::fs::create_dir_all(site.ledger()).unwrap();
    std::fs::write(site.ledger().join("prices.toml"), BOOK).unwrap();
    let nodes = site.file("nodes.csv", "cluster,node,model,cards\nc,n0,H200,4\nc,n1,H200,4\nc,n2,H200,4\n");
    site.import(&format!("nodes {nodes}"));
    let map = site.file("map.toml", MAP);
    for part in 0..2 {
        let mut rows = String::from("id,who,team,cards,node,start,end\n");
        for i in (0..40).filter(|i| i % 2 == part) {
            let (month, day) = (2 + (i + 8) / 28, 1 + (i + 8) % 28);
            let cards = ["0.333", "3", "1"][i % 3];
            rows.push_str(&format!(
                "{i},u{},team{},{cards},n{},2025-{month:02}-{day:02}T{:02}:{:02}:11,2025-{month:02}-{day:02}T23:{:02}:07\n",
                i % 5,
                i % 2,
                i % 3,
                i % 20,
                i * 7 % 60,
                i * 13 % 60
            ));
        }
        let jobs = site.file("jobs.csv", rows);
        site.import(&format!("jobs {jobs} --map {map}"));
    }
    site
}

#[test]
fn a_bill_of_any_shape_is_proven_and_a_changed_cent_is_named() {
    let site = site();
    site.ok("verify");
    for words in [
        "--by project",
        "--month 2025-03 --by project,user",
        "--from 2025-02-14 --to 2025-03-03T06:00 --by node,user",
        "--from 2025-02-14 --to 2025-02-20 --by day,project",
        "--zone Europe/Berlin --by month,project",
        "--month 2025-03 --zone UTC --by day",
        "--by price,window,cluster",
    ] {
        let bill = site.ok(&format!("report bill {words} --format csv"));
        let file = site.file("bill.csv", &bill);
        let proven = site.run(&format!("verify --bill {file}"));
        assert_eq!(proven.code, Some(0), "{words}\n{bill}\n{}", proven.out);

        // The last digit of some amount of money, another.
        let header: Vec<&str> = bill.lines().next().unwrap().split(',').collect();
        let from_right = header.len() - header.iter().position(|name| *name == "cost").unwrap();
        let line = bill.lines().nth(1).unwrap();
        let cells: Vec<&str> = line.rsplitn(from_right + 1, ',').collect();
        let cost = cells[from_right - 1];
        let last = if cost.ends_with('9') { "8" } else { "9" };
        let other = format!("{}{last}", &cost[..cost.len() - 1]);
        let at = line.rfind(&format!(",{cost},")).unwrap() + 1;
        let wrong = format!("{}{other}{}", &line[..at], &line[at + cost.len()..]);
        let file = site.file("bill.csv", bill.replacen(line, &wrong, 1));
        let broken = site.run(&format!("verify --bill {file} --format json"));
        assert_eq!(broken.code, Some(1), "{words}: {wrong}");
        let verdict: serde_json::Value = serde_json::from_str(&broken.out).unwrap();
        assert_eq!(verdict["fault_count"], 1, "{words}: {}", broken.out);
        let fault = &verdict["faults"][0];
        assert_eq!(fault["found"], other.parse::<rust_decimal::Decimal>().unwrap().to_string());
        assert!(fault["where"].as_str().unwrap().starts_with("line 2 of "), "{fault}");
    }
    // All rows, or the column that matters, are gone: nothing that is left is wrong, and it is no proof.
    let bill = site.ok("report bill --by project --format csv");
    let header = bill.lines().next().unwrap();
    let cost = header.split(',').position(|name| name == "cost").unwrap();
    let without = |line: &str| {
        let cells = line.split(',').enumerate().filter(|(i, _)| *i != cost);
        cells.map(|(_, cell)| cell).collect::<Vec<_>>().join(",")
    };
    let without_cost: String = bill.lines().map(|line| without(line) + "\n").collect();
    for left in [format!("{header}\n"), without_cost] {
        let answer = site.run(&format!("verify --bill {}", site.file("bill.csv", &left)));
        assert_eq!(answer.code, Some(1), "{left}\n{}", answer.out);
    }
    let answer = site.run(&format!("verify --bill {}", site.file("bill.csv", "what,is,this\n")));
    assert_eq!(answer.code, Some(2), "{answer:?}");
}

#[test]
fn maintain_changes_no_figure() {
    let site = site();
    let before = site.ok("report bill --by project,day --format csv");
    let told = site.ok("maintain --format csv");
    assert!(told.lines().any(|line| line.starts_with("jobs,") && !line.contains(",0,0,")), "{told}");
    assert_eq!(site.ok("report bill --by project,day --format csv"), before);
    site.ok("verify");
    assert_eq!(site.run("maintain --retain-hours 1").code, Some(2));
    site.ok("maintain --retain-hours 0 --force-retention");
    assert_eq!(site.ok("report bill --by project,day --format csv"), before);
    site.ok("verify");
}
