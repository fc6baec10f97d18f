//! A real Prometheus on both pages.

use super::names::{CARD, MIXED};
use super::node::Node;
use cardhour_test_prometheus::{Job, Prometheus, has};

/// The queries of Grafana's DCGM board (grafana.com 12239, revision 2), for all instances and cards.
const STOCK_BOARD: [&str; 7] = [
    "DCGM_FI_DEV_GPU_TEMP{instance=~\".+\", gpu=~\".+\"}",
    "avg(DCGM_FI_DEV_GPU_TEMP{instance=~\".+\", gpu=~\".+\"})",
    "DCGM_FI_DEV_POWER_USAGE{instance=~\".+\", gpu=~\".+\"}",
    "sum(DCGM_FI_DEV_POWER_USAGE{instance=~\".+\", gpu=~\".+\"})",
    "DCGM_FI_DEV_SM_CLOCK{instance=~\".+\", gpu=~\".+\"} * 1000000",
    "DCGM_FI_DEV_FB_USED{instance=~\".+\", gpu=~\".+\"}",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~\".+\", gpu=~\".+\"}",
];

#[test]
fn a_real_prometheus_scrapes_both_pages_without_a_warning() {
    if !has("prometheus", "a_real_prometheus_scrapes_both_pages_without_a_warning") {
        return;
    }
    let (own, dcgm) = (Node::new(MIXED), Node::dcgm(MIXED));
    own.read_page();
    dcgm.read_page();
    let prometheus =
        Prometheus::scraping(&[Job { name: "cardhour-collector", ports: &[own.port, dcgm.port], token: None }], &[]);
    // A dozen scrapes of each, all well.
    prometheus.wait("ten scrapes", || {
        let scrapes = prometheus.query("min(count_over_time(up[1m]))").unwrap();
        scrapes.first().is_some_and(|(_, n)| *n >= 10.0).then_some(())
    });
    assert_eq!(prometheus.value("min(min_over_time(up[1m]))"), 1.0);
    assert_eq!(prometheus.value("count(up)"), 2.0);
    assert_eq!(prometheus.target_errors(), Vec::<String>::new());

    let of = |port: u16| format!("instance=\"127.0.0.1:{port}\", card_uuid=\"{}\"", CARD[0]);
    assert_eq!(prometheus.value(&format!("cardhour_card_power_watts{{{}}}", of(own.port))), 300.0);
    assert_eq!(prometheus.value(&format!("cardhour_device_sm_active_ratio{{{}}}", of(own.port))), 0.6);
    // 300 W are 300 J a second; over 8 s of samples a second apart the slope is that within a few hundredths.
    let watts = prometheus.value(&format!("rate(cardhour_card_energy_joules_total{{{}}}[8s])", of(own.port)));
    assert!((watts - 300.0).abs() < 15.0, "{watts} W");
    assert_eq!(prometheus.value("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"}"), 80.0);
    for query in STOCK_BOARD {
        assert!(!prometheus.query(query).unwrap().is_empty(), "no data for {query}");
    }
    // Two collectors of one node are two instances, and a query that means one of them counts a device once.
    assert_eq!(prometheus.warnings(), Vec::<String>::new());
}

/// R22, and the clash of labels in general: what Prometheus calls its targets by must not be among ours.
#[test]
fn r22_no_label_of_ours_is_one_that_prometheus_gives_its_targets() {
    let page = Node::new(MIXED).read_page();
    for line in page.lines() {
        for key in ["job", "instance", "pod", "namespace", "container"] {
            assert_eq!(super::page::label(line, key), None, "{line}");
        }
    }
}
