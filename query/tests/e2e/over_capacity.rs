//! Philly with the hosts of its tenants: what is held beyond capacity stays held, and is said.

use crate::site::{Site, assert_hours, map, micros, shared};
use chrono::NaiveDateTime;
use std::collections::BTreeMap;
use std::path::Path;

/// Tenants without hosts in `philly_vc.csv`.
const NO_HOSTS: [&str; 4] = ["23dbec", "51b7ef", "795a4c", "925e2b"];

/// What each tenant with hosts holds beyond 8 cards a host. Unit: card-seconds. A sweep over the raw file.
fn beyond(jobs: &Path, hosts: &Path) -> BTreeMap<String, i64> {
    let mut steps: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
    for record in csv::Reader::from_path(jobs).unwrap().records() {
        let record = record.unwrap();
        let start_s = NaiveDateTime::parse_from_str(&record[0], "%Y-%m-%d %H:%M:%S").unwrap().and_utc().timestamp();
        let duration_s: i64 = record[1].strip_suffix(".0").unwrap().parse().unwrap();
        let cards: i64 = record[2].parse().unwrap();
        steps.entry(record[4].to_owned()).or_default().extend([(start_s, cards), (start_s + duration_s, -cards)]);
    }
    let mut beyond = BTreeMap::new();
    for record in csv::Reader::from_path(hosts).unwrap().records() {
        let record = record.unwrap();
        let capacity = 8 * record[1].parse::<i64>().unwrap();
        let mut steps = steps.remove(&record[0]).unwrap();
        steps.sort_unstable();
        let (mut held, mut since, mut over) = (0, 0, 0);
        for (at, change) in steps {
            over += (at - since) * (held - capacity).max(0);
            held += change;
            since = at;
        }
        beyond.insert(record[0].to_owned(), over);
    }
    beyond
}

#[test]
fn seven_tenants_of_philly_hold_more_than_their_hosts_and_all_of_it_stays_held() {
    let (Some(jobs), Some(hosts)) = (shared("philly/philly.csv"), shared("philly/philly_vc.csv")) else { return };
    let site = Site::new();
    site.import(&format!("nodes {} --map {}", hosts.display(), map("philly-nodes")));
    site.import(&format!("jobs {} --map {}", jobs.display(), map("philly")));

    let usage = site.report("usage");
    assert_hours(usage.only("card_hours"), "978,078.4728");
    let bill = site.report("bill --by cluster");
    assert!((bill.sum_micros("billed_card_hours") - 978_078_472_778).abs() <= 8, "all of it is billed");

    let beyond = beyond(&jobs, &hosts);
    assert_eq!(beyond.values().filter(|over| **over > 0).count(), 7);
    let capacity = site.report("capacity --by cluster");
    let over = capacity.by("cluster", "over_capacity_card_hours");
    for (tenant, card_s) in &beyond {
        let hours = over.get(tenant).filter(|hours| !hours.is_empty()).map_or(0, |hours| micros(hours));
        let expected = (i128::from(*card_s) * 2_000_000 + 3600) / 7200; // to a millionth
        assert!((hours - expected).abs() <= 1, "{tenant}: {hours} millionths of a card-hour, a sweep says {expected}");
    }
    for row in &capacity.0 {
        for column in ["free_card_hours", "reserved_card_hours", "down_card_hours", "unaccounted_card_hours"] {
            assert!(row[column].is_empty() || micros(&row[column]) >= 0, "{column} of {row:?}");
        }
    }
    assert!(site.sql_text("select * from conflicts limit 3").contains("over_capacity"));

    let verified = site.ok("verify");
    for tenant in NO_HOSTS {
        assert!(verified.contains(tenant), "{tenant} has no hosts, so nothing can be proven of it: {verified}");
    }
}
