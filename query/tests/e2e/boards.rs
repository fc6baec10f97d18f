//! Grafana's boards of the service: each query finds data in a real Prometheus that scrapes a demo's service, and `/metrics` is as promtool wants it.

use crate::collector::{half_busy, started};
use crate::service::Service;
use crate::site::Site;
use cardhour_test_prometheus::{Board, Job, Prometheus, has, promtool};
use std::path::Path;
use std::time::Duration;

/// A demo whose service one more node delivers to.
fn demo() -> (Site, Service) {
    let site = Site::new();
    site.ok("demo --no-serve --month 2026-05");
    // The node's card has a price, too: its month is the last in the books.
    let prices = site.ledger().join("prices.toml");
    let text = std::fs::read_to_string(&prices).unwrap();
    let any = "\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"*\"\nper_card_hour = \"600.00\"\n";
    std::fs::write(&prices, text + any).unwrap();
    let token = site.file("node.token", site.ok("token gpu01"));
    let service = Service::start(&site);
    let scene = site.file("scene.toml", half_busy(std::process::id()));
    let spool = site.file("spool-is-beside", "");
    let config = site.file(
        "collector.toml",
        format!(
            "cluster = \"demo-sim\"\nnode = \"gpu01\"\nspool = \"{spool}-1\"\nseal_after_s = 1\nstep_s = 1\nmetrics = \"off\"\n\
             [deliver]\nservice = \"http://127.0.0.1:{}\"\ntoken_file = {token:?}\n",
            service.port()
        ),
    );
    let node = started(Path::new(&config), Path::new(&scene));
    std::thread::sleep(Duration::from_secs(5));
    assert!(crate::collector::ended_well(node), "it ends when it is told to");
    (site, service)
}

#[test]
fn each_query_of_a_board_of_the_service_finds_data() {
    let name = "each_query_of_a_board_of_the_service_finds_data";
    if !has("prometheus", name) || !has("promtool", name) {
        return;
    }
    let (site, service) = demo();
    let token = std::fs::read_to_string(site.ledger().join("token")).unwrap();
    let job = Job { name: "cardhour", ports: &[service.port()], token: Some(token.trim()) };
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards/rules/service.yml").canonicalize().unwrap();
    let prometheus = Prometheus::scraping(&[job], &[rules]);
    prometheus.wait("four scrapes", || {
        let scrapes = prometheus.query("count_over_time(cardhour_cards{state=\"held\"}[1m])").unwrap();
        scrapes.first().is_some_and(|(_, n)| *n >= 4.0).then_some(())
    });
    let boards = Board::tagged("cardhour-service");
    assert_eq!(boards.len(), 2, "the pool and the tenant");
    for board in &boards {
        for (title, query) in board.queries() {
            let rows = prometheus.query(&query).unwrap_or_else(|error| panic!("{title}: {query}: {error}"));
            assert!(!rows.is_empty(), "{}: {title}: no data for {query}", board.path.display());
        }
    }
    // What the pool has adds up in Prometheus as it does in the report: LED-1, for 64 cards and the node's two.
    let seconds = prometheus.value("sum(cardhour_card_seconds) / 3600");
    let capacity = site.report("capacity");
    let hours: f64 = ["capacity_card_hours", "over_capacity_card_hours"]
        .map(|column| capacity.only(column).parse::<f64>().unwrap())
        .iter()
        .sum();
    assert!((seconds - hours).abs() < 0.01 * hours.max(1.0), "{seconds} and {hours}");
    assert_eq!(prometheus.warnings(), Vec::<String>::new());
    assert_eq!(prometheus.target_errors(), Vec::<String>::new());
}

#[test]
fn promtool_has_nothing_to_say_of_the_services_metrics() {
    let name = "promtool_has_nothing_to_say_of_the_services_metrics";
    if !has("promtool", name) {
        return;
    }
    let (site, service) = demo();
    let page = service.get("/metrics");
    assert_eq!(page.status, 200);
    let (is_well, said) = promtool(&["check", "metrics"], &page.body, &site.ledger());
    assert!(is_well && said.is_empty(), "{said}");
}
