//! The checkpoint reports and the cost of a unit of output, on the real binary.

use crate::site::{Rows, Site, micros};
use cardhour_test_prometheus::{Prometheus, free_port, has};

const PRICES: &str = "currency = \"CNY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2016-01-01\"\nper_card_hour = \"2\"\n";

const MAP: &str = r#"
format = "csv"
cluster = "c"
[columns]
job_id = "id"
user = "who"
project = "team"
queue = "queue"
cards = "cards"
model = "model"
state = "state"
submitted_at = "submit"
started_at = "start"
ended_at = "end"
"#;

const HEADER: &str = "id,who,team,queue,cards,model,state,submit,start,end\n";

fn site(jobs: &str, options: &str) -> Site {
    let site = Site::new();
    std::fs::create_dir_all(site.ledger()).unwrap();
    std::fs::write(site.ledger().join("prices.toml"), PRICES).unwrap();
    let jobs = site.file("jobs.csv", format!("{HEADER}{jobs}"));
    let map = site.file("map.toml", MAP);
    site.import(&format!("jobs {jobs} --map {map} {options}"));
    site
}

/// Week 20 of 2026 is 11 to 17 May. By hand: vision 4 cards × 10 h = 40 card-hours, 80.00, after a wait of 2 h; speech failed after 5 h, 10.00. The last job is of week 21.
fn may() -> Site {
    site(
        "1,ann,vision,main,4,h200,completed,2026-05-11T00:00:00Z,2026-05-11T02:00:00Z,2026-05-11T12:00:00Z\n\
         2,bob,speech,main,1,h200,failed,2026-05-12T00:00:00Z,2026-05-12T00:00:00Z,2026-05-12T05:00:00Z\n\
         3,ann,vision,main,1,a100,completed,2026-05-20T00:00:00Z,2026-05-20T00:00:00Z,2026-05-20T01:00:00Z\n",
        "",
    )
}

/// The figure of a section's row and column.
#[track_caller]
fn figure<'r>(rows: &'r Rows, section: &str, row: &str, column: &str) -> &'r str {
    let found = rows.0.iter().find(|of| of["section"] == section && of["row"] == row && of["column"] == column);
    &found.unwrap_or_else(|| panic!("no {column} in row {row} of {section}: {rows:?}"))["value"]
}

#[test]
fn the_weekly_report_is_of_the_last_week_that_is_over_and_costs_what_the_bill_says() {
    let site = may();
    let rows = site.report("weekly");
    let of = |section, row, column| figure(&rows, section, row, column);
    assert_eq!(of("queue_wait_by_queue", "1", "started"), "2");
    assert_eq!(of("queue_wait_by_queue", "1", "median_wait_hours"), "0.000000");
    assert_eq!(of("queue_wait_by_queue", "1", "p90_wait_hours"), "2.000000");
    assert_eq!(of("failures", "1", "state"), "failed");
    assert_eq!((of("failures", "1", "card_hours"), of("failures", "1", "cost")), ("5.000000", "10.000000"));
    assert_eq!(of("cost_trend", "1", "week"), "2026-W20");
    assert_eq!(of("cost_trend", "1", "cost"), "90.000000");
    let bill = site.report("bill --from 2026-05-11 --to 2026-05-18 --by project");
    assert_eq!(bill.sum_micros("cost"), micros(of("cost_trend", "1", "cost")));
    assert_eq!(site.report("weekly --week 2026-W20"), rows);
}

#[test]
fn the_weekly_report_is_written_for_people_with_its_charts() {
    let site = may();
    let page = site.ok("report weekly --week 2026-W20 --format html");
    assert!(page.contains("<svg") && page.contains("weekly checkpoint, 2026-W20, UTC"), "{page}");
    assert!(!page.contains("<script") && !page.contains("http"), "a page of its own");
    let text = site.ok("report weekly --week 2026-W20 --format md");
    assert!(text.contains("### Queue wait by queue") && text.contains("### Cost trend"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&site.ok("report weekly --format json")).unwrap();
    assert_eq!(json["failures"][0]["attempts"], 1);
    for words in ["report weekly --month 2026-05", "report bill --week 2026-W20", "report monthly --by queue"] {
        assert_eq!(site.run(words).code, Some(2), "{words}");
    }
}

/// By hand: four cards, all of them held all May by a job that had waited for three hours; nothing was free.
#[test]
fn a_month_of_a_full_pool_with_a_queue_is_real_demand() {
    let site = site(
        "1,ann,vision,main,4,h200,completed,2026-05-01T00:00:00Z,2026-05-01T03:00:00Z,2026-06-01T00:00:00Z\n",
        "--covers 2026-04-01..2026-06-01",
    );
    let nodes = site.file("nodes.csv", "cluster,node,model,cards,in_service_at\nc,n1,h200,4,2026-04-01T00:00:00Z\n");
    site.import(&format!("nodes {nodes}"));
    let text = site.ok("report monthly --month 2026-05 --format md");
    assert!(text.contains("Real demand: nine of ten attempts started within 3.0 h"), "{text}");
    let rows = site.report("monthly --month 2026-05");
    let april = |column| figure(&rows, "demand", "1", column);
    assert_eq!((april("month"), april("free_of_capacity")), ("2026-04", "1.000000"));
    // 4 × 744, of which 4 × 3 were free.
    let may = |column| figure(&rows, "demand", "2", column);
    assert_eq!((may("capacity_card_hours"), may("free_card_hours")), ("2976.000000", "12.000000"));
}

/// By hand: 80.00 CNY and 40 card-hours for 20,000,000 tokens: 4.00 and 2 a million. A second import of the same rows changes nothing, a later count replaces the one before.
#[test]
fn output_gives_cost_by_unit_and_bad_rows_go_to_quarantine() {
    let site = may();
    let header = "cluster,job_id,unit,amount\n";
    let first = site.file("first.csv", format!("{header}c,1,tokens,10000000\nc,9,tokens,1\n"));
    site.import(&format!("output {first}"));
    let second = site.file("second.csv", format!("{header}c,1,tokens,20000000\n"));
    site.import(&format!("output {second}"));
    site.import(&format!("output {second}"));
    let rows = site.report("output");
    assert_eq!((rows.only("project"), rows.only("model"), rows.only("unit")), ("vision", "h200", "tokens"));
    assert_eq!((rows.only("amount"), rows.only("per")), ("20000000", "1000000"));
    assert_eq!((rows.only("cost"), rows.only("cost_per")), ("80.000000", "4.000000"));
    assert_eq!((rows.only("card_hours_per"), rows.only("output_coverage")), ("2.000000", "1.000000"));
    assert_eq!(site.sql("select count(*) as n from outputs").only("n"), "2");
    let bad = site.file("bad.csv", format!("{header}c,1,tokens,0.5\nc,,tokens,1\n"));
    assert_eq!(site.run(&format!("import output {bad}")).code, Some(4));
    let fields = site.sql("select line, field from quarantine").by("line", "field");
    let fields: Vec<(&str, &str)> = fields.iter().map(|(line, field)| (&**line, &**field)).collect();
    assert_eq!(fields, [("2", "amount"), ("3", "job_id")]);
}

/// By hand, of one latency each in the first, second and thirteenth five minutes of the week: 0.1 s, 0.2 s, 0.6 s. By nearest rank the median is 200
/// ms and p99 600 ms, three times it. The first hour's median is 100 ms, the second's 600 ms.
#[test]
fn the_weekly_report_has_the_jitter_of_services_as_a_real_prometheus_tells_it_or_why_not() {
    let test = "the_weekly_report_has_the_jitter_of_services_as_a_real_prometheus_tells_it_or_why_not";
    if !has("prometheus", test) || !has("promtool", test) {
        return;
    }
    // 2026-05-11, 20,584 days after 1970.
    let point = |minute: i64, value: &str| {
        let at = 20_584 * 86_400 + minute * 60;
        format!("latency_seconds{{model=\"qwen\",route=\"chat\"}} {value} {at}\n")
    };
    let series = [point(3, "0.1"), point(8, "0.2"), point(63, "0.6")].concat();
    let prometheus = Prometheus::holding(&format!("# TYPE latency_seconds gauge\n{series}# EOF\n"));
    let site = may();
    let weekly = |url: &str, query: &str| {
        let config = format!(
            "[inference]\nprometheus = {url:?}\nquery = {query:?}\nmodel_label = \"model\"\nservice_label = \"route\"\n"
        );
        site.file("config.toml", config)
    };
    let config = weekly(&prometheus.url(), "last_over_time(latency_seconds[5m])");
    let rows = site.report(&format!("weekly --week 2026-W20 --config {config}"));
    let of = |column| figure(&rows, "inference_jitter", "1", column);
    assert_eq!((of("model"), of("service"), of("hours")), ("qwen", "chat", "2"));
    assert_eq!((of("median_ms"), of("p99_ms")), ("200.000000", "600.000000"));
    assert_eq!((of("p99_to_median"), of("largest_hourly_change_ms")), ("3.000000", "500.000000"));
    assert_eq!(of("changed_at"), "2026-05-11 01:00");
    for format in ["html", "md"] {
        let page = site.ok(&format!("report weekly --week 2026-W20 --config {config} --format {format}"));
        assert!(page.contains("Inference jitter") && page.contains("600.0000"), "{page}");
    }
    // What isn't told is left out, with the reason, and the rest of the report is there.
    for (url, query, reason) in [
        (prometheus.url(), "no_such_metric", "the query gives no series in that week"),
        (prometheus.url(), "rate(", "refuses the query"),
        (format!("http://127.0.0.1:{}", free_port()), "up", "gives no answer"),
    ] {
        let config = weekly(&url, query);
        let page = site.ok(&format!("report weekly --week 2026-W20 --config {config} --format md"));
        let left_out = page.lines().find(|line| line.contains("inference jitter is left out")).unwrap_or(&page);
        assert!(left_out.contains(reason) && !page.contains("Inference jitter"), "{reason}: {left_out}");
        assert!(page.contains("Queue wait by queue"), "{page}");
    }
}
