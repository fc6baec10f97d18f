//! Grafana's boards: each query finds data in a real Prometheus that scrapes collectors.

use super::names::MIXED;
use super::node::Node;
use super::rules;
use cardhour_test_prometheus::{Board, Job, Prometheus, has};

/// What Grafana 11 asks of a board that is imported from a file: panels with a place, and data sources that are chosen when it is.
#[test]
fn each_board_is_one_that_grafana_takes() {
    for board in Board::tagged("cardhour") {
        let at = board.path.display();
        assert!(board.json["schemaVersion"].as_u64().unwrap() >= 39, "{at}");
        assert!(board.json["title"].is_string() && board.json["uid"].is_string(), "{at}");
        assert!(board.json["id"].is_null(), "{at}: an id of some Grafana");
        let mut ids = std::collections::BTreeSet::new();
        for panel in board.json["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{at}: two panels of one id");
            let place = &panel["gridPos"];
            assert!(place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24, "{at}: {panel}");
            if panel["type"] != "row" {
                assert_eq!(panel["datasource"]["uid"], "${datasource}", "{at}: {}", panel["title"]);
                assert!(panel["description"].as_str().is_some_and(|text| !text.is_empty()), "{at}: {}", panel["title"]);
            }
        }
        let sources = board.json["templating"]["list"].as_array().unwrap();
        assert!(sources.iter().any(|variable| variable["type"] == "datasource"), "{at}");
    }
}

#[test]
fn each_query_of_a_board_of_the_collector_finds_data() {
    if !has("prometheus", "each_query_of_a_board_of_the_collector_finds_data") {
        return;
    }
    let boards = Board::tagged("cardhour-collector");
    assert!(!boards.is_empty());
    let node = Node::new(MIXED);
    node.page_when("an error of the driver", |page| !page.values("cardhour_card_last_xid", &[]).is_empty());
    let mut files = rules::files(".yml");
    files.retain(|path| !path.to_string_lossy().ends_with(".test.yml"));
    let prometheus =
        Prometheus::scraping(&[Job { name: "cardhour-collector", ports: &[node.port], token: None }], &files);
    prometheus.wait("six scrapes", || {
        let scrapes = prometheus.query("count_over_time(up[1m])").unwrap();
        scrapes.first().is_some_and(|(_, n)| *n >= 6.0).then_some(())
    });
    for board in &boards {
        let queries = board.queries();
        assert!(queries.len() > 5);
        for (title, query) in queries {
            let rows = prometheus.query(&query).unwrap_or_else(|error| panic!("{title}: {query}: {error}"));
            assert!(!rows.is_empty(), "{}: {title}: no data for {query}", board.path.display());
        }
    }
    assert_eq!(prometheus.warnings(), Vec::<String>::new());
}
