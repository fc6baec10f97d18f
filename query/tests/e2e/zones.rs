//! LED-9: months by the rules of a zone.

use crate::site::{Site, assert_hours, map, micros, shared};

const ZONES: [&str; 3] = ["Asia/Shanghai", "America/New_York", "Asia/Kathmandu"];

#[test]
fn months_of_any_zone_add_up_to_the_whole() {
    let Some(file) = shared("philly/philly.csv") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("philly")));
    let mut seen = Vec::new();
    for zone in ZONES {
        let months = site.report(&format!("usage --by month --zone {zone}"));
        assert_eq!(months.0.len(), 4, "{zone}");
        // Each month is rounded to a millionth; four of them may be off by two.
        assert!((months.sum_micros("card_hours") - 978_078_472_778).abs() <= 2, "{zone}");
        let days = site.report(&format!("usage --by day --zone {zone}"));
        assert!((days.sum_micros("card_hours") - 978_078_472_778).abs() <= days.0.len() as i128 / 2, "{zone}");
        seen.push(months);
    }
    assert_hours(site.report("usage").only("card_hours"), "978,078.4728");
    assert_ne!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2], "two hours and a quarter make a difference");
}

/// One card in service from January 2017 to July 2018, so a month's capacity is its hours. From the calendar: days × 24, one less in March
/// 2018 and one more in November 2017 where clocks changed.
#[test]
fn the_hours_of_each_month_are_as_the_calendar_says() {
    for (zone, october, november, february, march) in [
        ("Asia/Shanghai", 744, 720, 672, 744),
        ("America/New_York", 744, 721, 672, 743),
        ("Asia/Kathmandu", 744, 720, 672, 744),
    ] {
        let site = Site::new();
        let nodes = site.file(
            "nodes.csv",
            "cluster,node,model,cards,in_service_at,retired_at\nc,n1,h200,1,2017-01-01T00:00:00Z,2018-07-01T00:00:00Z\n",
        );
        let jobs = site.file(
            "jobs.csv",
            "id,who,team,cards,model,node,start,end\n1,u,p,1,h200,n1,2017-11-01T00:00:00Z,2017-11-01T02:00:00Z\n",
        );
        let map = site.file(
            "map.toml",
            "format = \"csv\"\ncluster = \"c\"\n[columns]\njob_id = \"id\"\nuser = \"who\"\nproject = \"team\"\ncards = \"cards\"\n\
             model = \"model\"\nnodes = \"node\"\nsubmitted_at = \"start\"\nstarted_at = \"start\"\nended_at = \"end\"\n",
        );
        site.import(&format!("nodes {nodes}"));
        site.import(&format!(
            "jobs {jobs} --map {map} --as-of 2018-07-01T00:00:00Z --covers 2017-01-01T00:00:00Z..2018-07-01T00:00:00Z"
        ));
        let capacity = site.report(&format!("capacity --by month --zone {zone}"));
        let hours = capacity.by("month", "capacity_card_hours");
        for (month, expected) in
            [("2017-10", october), ("2017-11", november), ("2018-02", february), ("2018-03", march)]
        {
            assert_eq!(micros(&hours[month]), expected * 1_000_000, "{month} in {zone}");
        }
        for row in &capacity.0 {
            let parts: i128 =
                ["card_hours", "free_card_hours", "reserved_card_hours", "down_card_hours", "unaccounted_card_hours"]
                    .into_iter()
                    .map(|column| micros(&row[column]))
                    .sum();
            assert_eq!(parts, micros(&row["capacity_card_hours"]), "LED-1 in {row:?}");
        }
        site.ok("verify");
    }
}
