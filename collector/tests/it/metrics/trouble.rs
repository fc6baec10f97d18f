//! What is served while something is wrong.

use super::node::{LONG, Node, command};
use cardhour_test_prometheus::free_port;
use std::io::Read;
use std::process::Stdio;
use std::time::Instant;

/// C09 and C10: while a call into the driver hangs, old values end and the page says how old they would be.
#[test]
fn c09_and_c10_a_driver_that_hangs_is_told_and_old_values_end() {
    let mut node = Node::new(
        "[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlDeviceGetPowerUsage\"\nat_s = 4\nhang = true\n",
    );
    node.page_when("read", |page| page.values("cardhour_card_power_watts", &[]) == [60.0]);
    assert_eq!(node.get("/health", "*/*").unwrap().0, 200);
    let page = node.page_when("old", |page| {
        page.values("cardhour_collector_last_tick_age_seconds", &[]).first().is_some_and(|age| *age > 4.0)
    });
    // Three steps of a second are over: what a card said then is not what it says.
    assert!(!page.0.contains("cardhour_card_") && !page.0.contains("cardhour_device_"), "{}", page.0);
    assert!(page.value("cardhour_collector_driver_call_age_seconds", &[]) > 3.0);
    assert_eq!(page.value("cardhour_collector_build_info", &[("node", "n1")]), 1.0);
    assert_eq!(node.get("/health", "*/*").unwrap().0, 503);
    assert!(node.runs());
}

#[test]
fn without_a_driver_the_page_is_there_and_says_so() {
    let node = Node::new("[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlInit*\"\nrc = 9\n");
    let page = node.read_page();
    assert_eq!(page.value("cardhour_collector_driver_up", &[]), 0.0);
    assert_eq!(page.value("cardhour_collector_cards", &[]), 0.0);
    assert_eq!(node.get("/health", "*/*").unwrap().0, 200);
}

#[test]
fn an_address_that_is_taken_is_said_and_ticks_go_on() {
    let node = Node::new("[[card]]\npreset = \"h100\"\n");
    node.read_page();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut other = command(folder.path(), &format!("metrics = \"127.0.0.1:{}\"", node.port), "")
        .arg("--nvml-lib")
        .arg(node.stage.library())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let since = Instant::now();
    let delivered =
        || std::fs::read_dir(folder.path().join("ledger/incoming/n1")).is_ok_and(|mut files| files.next().is_some());
    while !delivered() && since.elapsed() < LONG {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let said = std::fs::read_to_string(&log).unwrap();
    let (is_delivered, still_runs) = (delivered(), other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(is_delivered && still_runs, "{said}");
    assert!(said.contains("no metrics: the address can't be had") && said.contains(&node.port.to_string()), "{said}");
}

#[test]
fn what_is_no_address_is_refused_with_exit_code_2() {
    for (more, argument) in [("metrics = \"localhost\"", None), ("", Some("9401")), ("dcgm_once = true", None)] {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = command(folder.path(), more, "");
        if let Some(argument) = argument {
            collector.args(["--metrics", argument]);
        }
        let mut child = collector.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
        assert!(said.contains("metrics") || said.contains("dcgm_once"), "{said}");
    }
}

#[test]
fn metrics_can_be_turned_off() {
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut child = command(folder.path(), &format!("metrics = \"127.0.0.1:{port}\""), "")
        .args(["--metrics", "off"])
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let since = Instant::now();
    let said = || std::fs::read_to_string(&log).unwrap();
    while !said().contains("collecting") && since.elapsed() < LONG {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let is_free = std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said().contains("collecting") && is_free, "{}", said());
}

/// A scrape makes no call: as many calls are counted with a hundred scrapes as the ticks make without.
#[test]
fn a_scrape_makes_no_call_into_the_driver() {
    let node = Node::new(
        "[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlDeviceGetTemperature*\"\nat_s = 4\nhang = true\n",
    );
    // While a call hangs no tick makes others.
    node.page_when("hung", |page| {
        page.values("cardhour_collector_driver_call_age_seconds", &[]).first().is_some_and(|age| *age > 1.0)
    });
    let calls = || node.page().unwrap().value("cardhour_collector_driver_calls_total", &[]);
    let before = calls();
    let all: Vec<f64> = (0..100).map(|_| calls()).collect();
    assert!(all.iter().all(|calls| *calls == before), "{before} {all:?}");
}

#[test]
fn who_asks_for_anything_else_is_answered_in_kind() {
    let node = Node::new("[[card]]\npreset = \"h100\"\n");
    node.read_page();
    assert_eq!(node.get("/", "*/*").unwrap().0, 200);
    assert_eq!(node.get("/etc/passwd", "*/*").unwrap().0, 404);
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let answer = agent.post(format!("http://127.0.0.1:{}/metrics", node.port)).send("x").unwrap();
    assert_eq!(answer.status().as_u16(), 405);
}
