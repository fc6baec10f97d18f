//! What public traces come to, against figures that others computed (they stand in the shared data folder's own README).

use crate::site::{Site, assert_hours, map, micros, shared};
use std::collections::BTreeMap;

/// Parts of a card × milliseconds: what a card held for a second comes to in `usage.card_time`.
const CARD_SECOND: i128 = 18_018_000 * 1000;

#[test]
fn philly_comes_to_978_078_4728_card_hours() {
    let Some(file) = shared("philly/philly.csv") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("philly")));
    let whole = site.report("usage");
    assert_hours(whole.only("card_hours"), "978,078.4728");
    assert_eq!(whole.only("attempts"), "82247", "each row is a job of its own, the 65 repeated ones too");

    let months = site.report("usage --by month --zone UTC").by("month", "card_hours");
    for (month, published) in [
        ("2017-09", "135,584.8014"),
        ("2017-10", "442,067.6128"),
        ("2017-11", "295,879.6731"),
        ("2017-12", "104,546.3856"),
    ] {
        assert_hours(&months[month], published);
    }
    assert_eq!(months.len(), 4);
}

#[test]
fn openb_2023_comes_to_51_470_6742_card_hours_by_declared_share() {
    let Some(file) = shared("openb-2023/openb_pod_list_default.csv") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("openb-2023")));
    assert_hours(site.report("usage").only("card_hours"), "51,470.6742");

    let never = site.sql(
        "select count(*) as pods, count(u.attempt_key) as held from jobs j left join usage u on u.attempt_key = j.attempt_key \
         where j.started_at is null",
    );
    assert_eq!((never.only("pods"), never.only("held")), ("897", "0"), "pods that were never scheduled hold nothing");
}

#[test]
fn openb_2023_comes_to_59_612_2106_card_hours_if_every_share_were_a_card() {
    let Some(file) = shared("openb-2023/openb_pod_list_default.csv") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("openb-2023-whole-cards")));
    assert_hours(site.report("usage").only("card_hours"), "59,612.2106");
}

#[test]
fn phillips_comes_to_its_gpu_hours_by_month_and_day() {
    let Some(file) = shared("slurm-xdmod/phillips.log") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("xdmod-sacct")));
    let months = site.report("usage --by month --zone UTC").by("month", "card_hours");
    assert_hours(&months["2016-12"], "465.4928");
    assert_hours(&months["2017-01"], "41.4200");

    let days = site.report("usage --by day --zone UTC").by("day", "card_hours");
    let held: BTreeMap<&String, &String> = days.iter().filter(|(_, hours)| micros(hours) > 0).collect();
    let mut expected = vec![("2016-12-22".to_owned(), "33.4928")];
    expected.extend((23..=31).map(|day| (format!("2016-12-{day}"), "48")));
    expected.push(("2017-01-01".to_owned(), "41.4200"));
    assert_eq!(
        held.keys().map(|day| day.as_str()).collect::<Vec<_>>(),
        expected.iter().map(|(day, _)| day).collect::<Vec<_>>()
    );
    for (day, published) in expected {
        assert_hours(&days[&day], published);
    }
}

#[test]
fn phillips_comes_to_its_cpu_hours_with_cpu_as_the_unit() {
    let Some(file) = shared("slurm-xdmod/phillips.log") else { return };
    let site = Site::new();
    let text = std::fs::read_to_string(map("xdmod-sacct")).unwrap();
    assert!(text.contains("\ncards_from = \"gres/gpu\"\n"));
    let cpu = site.file("cpu.toml", text.replace("\ncards_from = \"gres/gpu\"\n", "\ncards_from = \"cpu\"\n"));
    site.import(&format!("jobs {} --map {cpu}", file.display()));
    let months = site.report("usage --by month --zone UTC").by("month", "card_hours");
    assert_hours(&months["2016-12"], "9,994.7011");
    assert_hours(&months["2017-01"], "1,773.2872");
}

#[test]
fn uio_comes_to_38_9997_card_hours_with_its_steps_folded_in() {
    let Some(file) = shared("slurm-uio/slurm-sacct.csv") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("sonar-sacct-kv")));
    let usage = site.report("usage");
    assert_hours(usage.only("card_hours"), "38.9997");
    assert_eq!(site.sql("select count(*) as n from jobs").only("n"), "294", "a step is no job");
}

/// 1,024 cards × 79,396 s and 256 × 87,356 s, of records that are broken over lines inside a field.
#[test]
fn gcm_records_broken_over_lines_are_jobs_of_1024_and_256_cards() {
    let Some(file) = shared("slurm-gcm/sample-sacct-one-multiline.txt") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("gcm-sacct")));
    let held = site.sql(
        "select j.job_id, cast(sum(u.card_time) as varchar) as card_time from usage u join jobs j on j.attempt_key = u.attempt_key \
         where u.state = 'held' group by j.job_id",
    );
    let held = held.by("job_id", "card_time");
    assert_eq!(held["201729"].parse::<i128>().unwrap(), 1024 * 79_396 * CARD_SECOND);
    assert_eq!(held["201844"].parse::<i128>().unwrap(), 256 * 87_356 * CARD_SECOND);
}

#[test]
fn eagle_comes_to_10_1350_card_hours_and_23_158_1433_node_hours() {
    let Some(file) = shared("slurm-eagle/sample_eagle_data.csv") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("eagle")));
    assert_hours(site.report("usage").only("card_hours"), "10.1350");

    let nodes = Site::new();
    nodes.import(&format!("jobs {} --map {}", file.display(), map("eagle-nodes")));
    let usage = nodes.report("usage");
    assert_hours(usage.only("card_hours"), "23,158.1433");
    assert_eq!(usage.only("attempts"), "1000", "exact repeats are jobs of their own");
}
