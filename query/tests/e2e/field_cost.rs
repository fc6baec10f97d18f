//! Field reports of cost (`README.md` beside this file has the list), on the real binary.

use crate::site::{Rows, Site, micros};
use rust_decimal::Decimal;
use std::sync::LazyLock;

/// The tests' own map, with nodes and states.
static MAP: LazyLock<String> = LazyLock::new(|| {
    let states = "state = { column = \"phase\", map = { Failed = \"failed\", Succeeded = \"completed\" } }\n";
    format!("{}nodes = \"node\"\n{states}", crate::site::MAP)
});

const HEADER: &str = "id,who,team,cards,model,node,start,end,phase\n";

/// A map by which each row names its card and its share of it.
fn shared_map() -> String {
    MAP.replace("cards = \"cards\"", "share = \"cards\"\ncard_uuid = \"node\"").replace("nodes = \"node\"\n", "")
}

fn priced(per_card_hour: &str, coefficient: &str) -> Site {
    let site = Site::new();
    std::fs::create_dir_all(site.ledger()).unwrap();
    let book = format!(
        "currency = \"USD\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"*\"\nper_card_hour = \"{per_card_hour}\"\n\
         coefficient = \"{coefficient}\"\n"
    );
    std::fs::write(site.ledger().join("prices.toml"), book).unwrap();
    site
}

fn import(site: &Site, name: &str, map: &str, rows: &str, speaks_for: &str) {
    let (file, map) = (site.file(name, format!("{HEADER}{rows}")), site.file("map.toml", map));
    site.import(&format!("jobs {file} --map {map} {speaks_for}"));
}

fn cost(bill: &Rows) -> i128 {
    bill.sum_micros("cost")
}

/// Held for 45 minutes while its image could not be pulled: 0.75 × 8.00 = 6.00, although nothing ever ran.
#[test]
fn m01_a_card_is_charged_from_the_moment_it_is_held() {
    let site = priced("8.00", "1");
    import(&site, "a", &MAP, "pod-1,ann,vision,1,t4,n1,2026-03-01T10:00:00Z,2026-03-01T10:45:00Z,Failed\n", "");
    let bill = site.report("bill --by project");
    assert_eq!((bill.only("card_hours"), bill.only("cost")), ("0.750000", "6.00"));
}

/// The bill and the FOCUS rows of an hour in which tenants share a card alike: what each bill line costs, and `ContractedCost`, which nothing rounds to cents.
fn an_hour_shared(per_card_hour: &str, tenants: u32, share: &str) -> (Site, Rows, Decimal) {
    let site = priced(per_card_hour, "1");
    let map = MAP.replace("\"cards\"", "{ column = \"cards\", times = \"part\" }");
    let rows: String = (0..tenants)
        .map(|i| format!("{i},user{i},vision,1,t4,n1,2026-03-01T10:00:00Z,2026-03-01T11:00:00Z,Succeeded,{share}\n"))
        .collect();
    let file = site.file("a", format!("{},part\n{rows}", HEADER.trim_end()));
    let map = site.file("map.toml", map);
    site.import(&format!("jobs {file} --map {map}"));
    let bill = site.report("bill --by user");
    let folder = site.ledger().with_file_name("focus");
    site.ok(&format!("export focus --month 2026-03 --focus-version 1.2 --output-dir {}", folder.display()));
    let focus = Rows::parse(&std::fs::read_to_string(folder.join("focus-1.2-2026-03-cost-and-usage.csv")).unwrap());
    let contracted = focus.0.iter().map(|row| Decimal::from_str_exact(&row["ContractedCost"]).unwrap()).sum();
    (site, bill, contracted)
}

/// A node at 0.526 an hour, of seven tenants a seventh each (shares are exact: 1/7 of 18,018,000 is 2,574,000), and one at 1.35296 of eight. Over an hour the
/// parts are worth the node's price within 1e-6. On the bill each tenant's leaf is rounded once: 0.526 ÷ 7 is 0.0751, in cents 0.08, seven of them 0.56; 1.35296 ÷ 8 is
/// 0.1691, in cents 0.17, eight of them 1.36. No grouping says another total.
#[test]
fn m02_the_parts_of_a_card_add_up_to_its_price() {
    let millionth = Decimal::new(1, 6);
    for (price, tenants, share, billed) in [("0.526", 7, "0.142857142857", 560_000), ("1.35296", 8, "0.125", 1_360_000)]
    {
        let (site, bill, contracted) = an_hour_shared(price, tenants, share);
        let hours = bill.sum_micros("card_hours");
        assert!((hours - 1_000_000).abs() <= 1, "{hours}: the parts of an hour of a card are an hour");
        let whole = Decimal::from_str_exact(price).unwrap();
        assert!((contracted - whole).abs() <= millionth, "{contracted} is not {whole}");
        assert_eq!(cost(&bill), billed, "each leaf is rounded once");
        for by in ["project", "model", "project,user"] {
            assert_eq!(cost(&site.report(&format!("bill --by {by}"))), billed, "{by}");
        }
    }
}

/// The same node in absorb mode, over 1,000 hours: 4,000 × 0.010603 = 42.412, 16,000 × 0.001421 = 22.736 and 1,000 × 0.461814 = 461.814, in cents 42.41, 22.74 and 461.81.
/// What its holders are charged is the sum of these parts to the cent, 526.96, whoever had how much.
#[test]
fn m02_what_is_charged_is_the_sum_of_the_parts_that_a_node_costs() {
    let site = priced("1", "1");
    std::fs::write(site.ledger().join("billing.toml"), "mode = \"absorb\"\n").unwrap();
    let hours = [100, 150, 50, 200, 250, 125, 125];
    let rows: String = (0..)
        .zip(hours)
        .map(|(i, hours)| {
            let (day, hour) = (1 + hours / 24, hours % 24);
            format!("{i},user{i},vision,1,t4,n{i},2026-03-01T00:00:00Z,2026-03-{day:02}T{hour:02}:00:00Z,Succeeded\n")
        })
        .collect();
    import(&site, "a", &MAP, &rows, "");
    let costs = site.file(
        "costs.csv",
        "month,name,org,quantity,unit,unit_price,amount,currency\n\
         2026-03,cpu,,4000,vCPU-hour,0.010603,,USD\n\
         2026-03,memory,,16000,GiB-hour,0.001421,,USD\n\
         2026-03,gpu,,1000,hour,0.461814,,USD\n",
    );
    site.import(&format!("costs {costs}"));
    let entries = Rows::parse(&site.ok("statement --month 2026-03 --entries --format csv"));
    let charged: i128 = entries.0.iter().filter(|row| row["kind"] == "charge").map(|row| micros(&row["amount"])).sum();
    assert_eq!((charged, entries.sum_micros("amount")), (526_960_000, 526_960_000), "{entries:?}");
}

/// Three pods say of one card that all of it is theirs, all day. A day of it costs 24 × 0.90 = 21.60, and no more is charged.
#[test]
fn m03_what_stands_on_a_card_never_costs_more_than_the_card() {
    let site = priced("0.90", "1");
    let rows: String = (0..3)
        .map(|i| format!("p{i},ann,team{i},1,nc6,GPU-1,2026-03-01T00:00:00Z,2026-03-02T00:00:00Z,Succeeded\n"))
        .collect();
    import(&site, "a", &shared_map(), &rows, "");
    let bill = site.report("bill --by project");
    assert_eq!(bill.sum_micros("card_hours"), 24_000_000, "{bill:?}");
    assert_eq!(cost(&bill), 21_600_000, "{bill:?}");
    assert_ne!(site.sql("select count(*) as n from conflicts").only("n"), "0", "what was cut is told");
}

/// One card, nobody on it for 27 hours: all 27 are on the line of what is free, and they are all there is.
#[test]
fn m09_time_in_which_nothing_but_free_cards_was_there_is_kept() {
    let site = priced("1.00", "1");
    let nodes = site.file("nodes.csv", "cluster,node,model,cards,in_service_at\nc,n1,t4,1,2026-03-01T00:00:00Z\n");
    site.import(&format!("nodes {nodes}"));
    let rows = "1,ann,vision,1,t4,n1,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z,Succeeded\n";
    import(&site, "a", &MAP, rows, "--as-of 2026-03-03T00:00:00Z --covers 2026-03-01..2026-03-03");
    for (span, held, free) in
        [("--from 2026-03-01T01:00 --to 2026-03-02T04:00", 0, 27), ("--from 2026-03-01 --to 2026-03-03", 1, 47)]
    {
        let row = site.report(&format!("capacity {span}"));
        let hours = |column: &str| micros(row.only(column));
        assert_eq!(hours("card_hours"), held * 1_000_000, "{span}");
        assert_eq!(hours("free_card_hours"), free * 1_000_000, "{span}");
        assert_eq!(hours("capacity_card_hours"), (held + free) * 1_000_000, "{span}");
    }
}

#[test]
fn m13_a_quarter_of_an_hour_of_a_job_that_runs_all_the_time_is_a_quarter_of_an_hour() {
    let site = priced("4.00", "1");
    import(&site, "a", &MAP, "1,ann,vision,1,t4,n1,2026-03-01T00:00:00Z,2026-03-03T00:00:00Z,Succeeded\n", "");
    for (from, to) in [("10:00", "10:15"), ("10:15", "10:30"), ("10:30", "10:45"), ("10:45", "11:00")] {
        let span = format!("--from 2026-03-02T{from} --to 2026-03-02T{to}");
        assert_eq!(site.report(&format!("usage {span}")).only("card_hours"), "0.250000", "{span}");
        let bill = site.report(&format!("bill {span} --by project"));
        assert_eq!(bill.only("card_hours"), "0.250000", "{span}");
        assert_eq!(micros(bill.only("cost")), 1_000_000, "{span}: 0.25 × 4.00");
    }
}

/// The same pod, as two services that watch the cluster tell of it: in two files, in two formats, in one file twice.
#[test]
fn m15_the_same_job_from_two_sources_counts_once() {
    let site = priced("4.00", "1");
    let row = "1,ann,vision,2,t4,n1,2026-03-01T00:00:00Z,2026-03-01T03:00:00Z,Succeeded\n";
    import(&site, "first.csv", &MAP, row, "");
    import(&site, "second.csv", &MAP, &row.repeat(2), "");
    let json = site.file(
        "third.jsonl",
        "{\"id\":\"1\",\"who\":\"ann\",\"team\":\"vision\",\"cards\":2,\"model\":\"t4\",\"node\":\"n1\",\"phase\":\"Succeeded\",\
         \"start\":\"2026-03-01T00:00:00Z\",\"end\":\"2026-03-01T03:00:00Z\"}\n",
    );
    let map = site.file("jsonl.toml", MAP.replace("\"csv\"", "\"jsonl\""));
    site.import(&format!("jobs {json} --map {map}"));
    let bill = site.report("bill --by project");
    assert_eq!((bill.only("attempts"), bill.only("card_hours"), bill.only("cost")), ("1", "6.000000", "24.00"));
}

/// One card; the export of the second of three days was lost. Two thirds of the time are accounted for, and the third is shown as the hole it
/// is. The export turns up: all is whole. Each command is a process of its own, so every import here is one after a restart.
#[test]
fn m14_m19_m20_a_lost_day_is_a_hole_that_shows_until_its_export_turns_up() {
    let site = priced("4.00", "1");
    let nodes = site.file("nodes.csv", "cluster,node,model,cards,in_service_at\nc,n1,t4,1,2026-03-01T00:00:00Z\n");
    site.import(&format!("nodes {nodes}"));
    let day = |day: u32| {
        let rows = format!("{day},ann,vision,1,t4,n1,2026-03-0{day}T00:00:00Z,2026-03-0{day}T12:00:00Z,Succeeded\n");
        let next = day + 1;
        let speaks_for = format!("--as-of 2026-03-0{next}T00:00:00Z --covers 2026-03-0{day}..2026-03-0{next}");
        import(&site, &format!("day-{day}"), &MAP, &rows, &speaks_for);
    };
    let figures = || {
        let row = site.report("capacity --from 2026-03-01 --to 2026-03-04");
        let hours = |column: &str| micros(row.only(column)) / 1_000_000;
        (
            hours("card_hours"),
            hours("free_card_hours"),
            hours("unaccounted_card_hours"),
            row.only("coverage").to_owned(),
        )
    };
    day(1);
    day(3);
    assert_eq!(figures(), (24, 24, 24, "0.666667".to_owned()));
    let days = site.report("capacity --from 2026-03-01 --to 2026-03-04 --by day").by("day", "coverage");
    assert_eq!((micros(&days["2026-03-01"]), micros(&days["2026-03-02"])), (1_000_000, 0));
    // What is billed is what is proven: the hole makes no line smaller or larger.
    let bill = site.report("bill --by project");
    assert_eq!((bill.only("card_hours"), bill.only("cost"), bill.only("coverage")), ("24.000000", "96.00", "1.000000"));
    day(2);
    assert_eq!(figures(), (36, 36, 0, "1.000000".to_owned()));
    assert_eq!(site.report("bill --by project").only("cost"), "144.00");
}

/// Slurm's billing of weights that give 4.5 is 4. Here it is 4.5.
#[test]
fn m21_a_weight_of_four_and_a_half_is_not_cut_to_four() {
    let site = priced("1.00", "4.5");
    import(&site, "a", &MAP, "1,ann,vision,1,t4,n1,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z,Succeeded\n", "");
    assert_eq!(site.report("bill --by project").only("standard_card_hours"), "4.500000");
}
