//! What is on the page, and how it is named.

use super::node::Node;
use super::page::name_of;
use cardhour_test_prometheus::{has, promtool};
use std::collections::BTreeSet;
use std::path::Path;

/// A whole card that works and has a process, one that is cut, one without a performance monitor and of an odd name, and one without figures of memory.
pub const MIXED: &str = r#"
[[card]]
preset = "h100"
curve = { power_w = 300, sm = 60, util = 80, dram = 30, tensor = 20, memory_used_mib = 2000, nvlink_tx_kib_s = 1024, pcie_tx_mib_s = 2 }
[[card]]
preset = "h100"
curve = { power_w = 400 }
[[card.layout]]
slice = [{ profile = "3g.40gb", gi = 1, uuid = "MIG-a", curve.sm = 80 }, { profile = "1g.10gb", gi = 9, uuid = "MIG-b", curve.sm = 0 }]
[[card]]
preset = "l40s"
model = 'An "L40S" \ 卡'
curve = { util = 25, memory_temperature_c = 255 }
[[card]]
preset = "gb10"
[[process]]
pid = 1
card = 0
memory_mib = 500
[[event]]
at_s = 2
card = 0
kind = 0x8
data = 43
"#;

pub const CARD: [&str; 4] = [
    "GPU-00000000-0000-4000-8000-000000000001",
    "GPU-00000000-0000-4000-8000-000000000002",
    "GPU-00000000-0000-4000-8000-000000000003",
    "GPU-00000000-0000-4000-8000-000000000004",
];

#[test]
fn promtool_finds_nothing_to_say_about_our_own_names() {
    if !has("promtool", "promtool_finds_nothing_to_say_about_our_own_names") {
        return;
    }
    let page = Node::new(MIXED).read_page();
    assert_eq!(promtool(&["check", "metrics"], &page.0, Path::new("/")), (true, String::new()));
}

/// The names, types and labels are DCGM's, and what promtool holds against them is what it holds against the exporter's own page.
#[test]
fn what_promtool_says_with_dcgms_names_is_of_dcgms_names_alone() {
    if !has("promtool", "what_promtool_says_with_dcgms_names_is_of_dcgms_names_alone") {
        return;
    }
    let page = Node::dcgm(MIXED).read_page();
    let (_, said) = promtool(&["check", "metrics"], &page.0, Path::new("/"));
    let of_theirs = [
        "label names should be written in 'snake_case' not 'camelCase'",
        "counter metrics should have \"_total\" suffix",
        "metric name should not include type 'counter'",
    ];
    assert!(!said.is_empty());
    for line in said.lines() {
        let (name, complaint) = line.split_once(' ').unwrap();
        assert!(name.starts_with("DCGM_FI_") && of_theirs.contains(&complaint), "{line}");
    }
}

#[test]
fn a_page_is_open_metrics_for_who_asks_for_that() {
    let node = Node::new(MIXED);
    node.read_page();
    let (status, kind, text) =
        node.get("/metrics", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5").unwrap();
    assert_eq!((status, kind.as_str()), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(text.ends_with("# EOF\n"));
    for line in [
        "# TYPE cardhour_card_energy_joules counter",
        "# UNIT cardhour_card_energy_joules joules",
        "# UNIT cardhour_device_memory_used_bytes bytes",
    ] {
        assert!(text.lines().any(|l| l == line), "no {line}");
    }
    let (_, kind, text) = node.get("/metrics", "*/*").unwrap();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert!(!text.contains("# EOF"));
}

/// OpenMetrics has no counter that isn't called `_total`, and DCGM has.
#[test]
fn a_page_with_dcgms_names_is_text_whatever_is_asked_for() {
    let node = Node::dcgm(MIXED);
    node.read_page();
    let (_, kind, text) = node.get("/metrics", "application/openmetrics-text;version=1.0.0").unwrap();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert!(text.contains("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n"));
    assert!(text.contains(r#"modelName="An \"L40S\" \\ 卡""#) && text.contains(r#"model="An \"L40S\" \\ 卡""#));
}

/// By hand from the scenario.
#[test]
fn values_are_the_scenarios_in_units_of_their_names() {
    let page = Node::new(MIXED)
        .page_when("an error of the driver", |page| page.values("cardhour_card_last_xid", &[]) == [43.0]);
    let whole = [("device_uuid", CARD[0])];
    let card = [("card_uuid", CARD[0])];
    assert_eq!(page.value("cardhour_device_sm_active_ratio", &[whole[0], ("basis", "gpm")]), 0.6);
    assert_eq!(
        page.value("cardhour_device_sm_active_ratio", &[("device_uuid", CARD[2]), ("basis", "duty_cycle")]),
        0.25
    );
    assert_eq!(
        page.value("cardhour_device_sm_active_ratio", &[("device_uuid", "MIG-a"), ("mig_profile", "3g.40gb")]),
        0.8
    );
    assert_eq!(page.value("cardhour_device_sm_active_ratio", &[("device_uuid", "MIG-b")]), 0.0);
    assert_eq!(page.value("cardhour_device_memory_used_bytes", &whole), 2500.0 * 1_048_576.0);
    assert_eq!(page.value("cardhour_device_tensor_active_ratio", &whole), 0.2);
    assert_eq!(page.value("cardhour_device_memory_active_ratio", &whole), 0.3);
    assert_eq!(
        page.value("cardhour_device_share_ratio", &[("device_uuid", "MIG-a")]),
        (3.0 / 7.0 * 18_018_000.0) / 18_018_000.0
    );
    assert_eq!(page.value("cardhour_card_power_watts", &card), 300.0);
    assert_eq!(page.value("cardhour_card_power_limit_watts", &card), 700.0);
    assert_eq!(page.value("cardhour_card_temperature_celsius", &card), 35.0);
    assert_eq!(page.value("cardhour_card_sm_clock_hertz", &card), 1.98e9);
    assert_eq!(page.value("cardhour_card_xid_errors_total", &card), 1.0);
    assert_eq!(page.value("cardhour_card_xid_errors_total", &[("card_uuid", CARD[1])]), 0.0);
    assert_eq!(page.value("cardhour_device_holders", &whole), 1.0);
    assert_eq!(page.value("cardhour_holder_info", &[whole[0], ("kind", "process"), ("source", "process")]), 1.0);
    assert_eq!(page.value("cardhour_collector_cards", &[]), 4.0);
    let parent = page.series("cardhour_device_info", &[("device_uuid", "MIG-b")]);
    assert!(parent[0].contains(&format!("card_uuid=\"{}\"", CARD[1])) && parent[0].contains("gpu_instance=\"9\""));
}

/// LED-3.
#[test]
fn what_is_missing_is_no_series() {
    let page = Node::new(MIXED).read_page();
    let none =
        |name: &str, key: &str, device: &str| assert_eq!(page.values(name, &[(key, device)]), [0.0; 0], "{name}");
    none("cardhour_device_tensor_active_ratio", "device_uuid", CARD[2]);
    none("cardhour_card_memory_temperature_celsius", "card_uuid", CARD[2]);
    none("cardhour_device_memory_size_bytes", "device_uuid", CARD[3]);
    none("cardhour_card_ecc_errors_total", "card_uuid", CARD[3]);
    none("cardhour_card_last_xid", "card_uuid", CARD[1]);
    // A card that is cut is no device: its instances are.
    none("cardhour_device_sm_active_ratio", "device_uuid", CARD[1]);
    none("cardhour_device_memory_used_bytes", "device_uuid", CARD[1]);
    // What a board has once, an instance has not.
    assert_eq!(page.values("cardhour_card_power_watts", &[("card_uuid", CARD[1])]), [400.0]);
}

#[test]
fn no_series_is_there_twice() {
    let page = Node::dcgm(MIXED).read_page();
    let all: Vec<&str> = page.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

#[test]
fn every_name_is_in_the_documentation_and_every_documented_name_is_known() {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md")).unwrap();
    let documented: BTreeSet<&str> = docs
        .split('`')
        .filter(|word| word.starts_with("cardhour_") && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .collect();
    let node = Node::new(MIXED);
    let page = node.page_when("an error of the driver", |page| !page.values("cardhour_card_last_xid", &[]).is_empty());
    let served: BTreeSet<&str> = page.lines().map(name_of).collect();
    assert_eq!(served.difference(&documented).collect::<Vec<_>>(), Vec::<&&str>::new(), "not in docs/metrics.md");
    // Needs a pod or a job with a declared share; virtual GPUs; a card that never answered; one from before Ampere, below.
    let elsewhere = [
        "cardhour_holder_share_ratio",
        "cardhour_card_active_vgpus",
        "cardhour_collector_dead_card_info",
        "cardhour_card_retired_pages_total",
        "cardhour_card_page_retirement_pending",
        // Needs a second list of processes, ten seconds later.
        "cardhour_device_processes_active_ratio",
    ];
    let unknown: Vec<_> = documented.difference(&served).filter(|name| !elsewhere.contains(name)).collect();
    assert_eq!(unknown, Vec::<&&str>::new(), "not served");
}

/// Volta has links whose errors are summed up, and pages that are retired.
#[test]
fn links_and_retired_pages_are_there_under_both_names() {
    let page = Node::dcgm(
        "[[card]]\npreset = \"v100\"\n[[card.health]]\nnvlinks_down = [5]\nnvlink_crc_flit = 7\nnvlink_crc_data = 11\nnvlink_replay = 5\n\
         nvlink_recovery = 2\nretired_single_bit = 3\nretired_double_bit = 1\nretire_pending = 1\n",
    )
    .read_page();
    let of = |name: &str, key: &'static str, value: &str| page.values(name, &[(key, value)]);
    // Six links, of which one is down.
    assert_eq!(
        (of("cardhour_card_nvlinks", "state", "up"), of("cardhour_card_nvlinks", "state", "down")),
        (vec![5.0], vec![1.0])
    );
    for (kind, dcgm, errors) in [
        ("crc_flit", "CRC_FLIT", 7.0),
        ("crc_data", "CRC_DATA", 11.0),
        ("replay", "REPLAY", 5.0),
        ("recovery", "RECOVERY", 2.0),
    ] {
        assert_eq!(of("cardhour_card_nvlink_errors_total", "kind", kind), [errors]);
        assert_eq!(of(&format!("DCGM_FI_DEV_NVLINK_{dcgm}_ERROR_COUNT_TOTAL"), "gpu", "0"), [errors]);
    }
    for kind in ["crc", "ecc_data"] {
        assert_eq!(of("cardhour_card_nvlink_errors_total", "kind", kind), [0.0; 0]);
    }
    for (cause, dcgm, pages) in [("single_bit", "SBE", 3.0), ("double_bit", "DBE", 1.0)] {
        assert_eq!(of("cardhour_card_retired_pages_total", "cause", cause), [pages]);
        assert_eq!(of(&format!("DCGM_FI_DEV_RETIRED_{dcgm}"), "gpu", "0"), [pages]);
    }
    assert_eq!(of("cardhour_card_page_retirement_pending", "card_uuid", CARD[0]), [1.0]);
    assert_eq!(of("DCGM_FI_DEV_RETIRED_PENDING", "gpu", "0"), [1.0]);
    assert_eq!(page.values("cardhour_card_remapped_rows_total", &[]), [0.0; 0]);
    assert_eq!(page.values("DCGM_FI_DEV_ROW_REMAP_PENDING", &[]), [0.0; 0]);
}
