//! What is served while something is wrong.

use super::names::CARD;
use super::node::{LONG, Node, command};
use super::page::Page;
use cardhour_collector::delivery::Trouble;
use cardhour_test_kubelet::Kubelet;
use cardhour_test_prometheus::free_port;
use fake_nvml::Stage;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// How many ticks were done; none before the first.
fn ticks(page: &Page) -> f64 {
    page.values("cardhour_collector_ticks_total", &[]).first().copied().unwrap_or(0.0)
}

/// C09, C10 and pitfall 14: while a call into the driver hangs, old values end, the page says how old they would be, and health isn't well.
#[test]
fn c09_c10_and_pitfall_14_a_driver_that_hangs_is_told_and_old_values_end() {
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

/// Utilisation that takes 5 to 30 ms now and then, as others met it, and once more than a second: ticks are on time, and the one is counted. By hand: eight cards of which each
/// third answer takes 30 ms more are some 80 ms of a tick's second.
#[test]
fn pitfall_41_a_utilisation_that_is_slow_to_come_holds_no_tick_up() {
    let node = Node::new(
        "[[card]]\npreset = \"h100\"\ncopies = 8\n\
         [[fault]]\ncall = \"nvmlDeviceGetUtilizationRates\"\nat_s = 12\nuntil_s = 15\ncard = 3\nevery = 1000\ndelay_ms = 1100\n\
         [[fault]]\ncall = \"nvmlDeviceGetUtilizationRates\"\nevery = 3\ndelay_ms = 30\n\
         [[fault]]\ncall = \"nvmlDeviceGetUtilizationRates\"\nevery = 2\ndelay_ms = 5\n",
    );
    let page = node.page_when("at work", |page| ticks(page) >= 8.0);
    assert_eq!(page.value("cardhour_collector_late_ticks_total", &[]), 0.0);
    assert_eq!(page.value("cardhour_collector_missed_ticks_total", &[]), 0.0);
    assert_eq!(page.value("cardhour_collector_slow_driver_calls_total", &[]), 0.0);
    // Seven ticks at the least after the first, of eight cards each: 18 slow answers of 30 ms.
    assert!(page.value("cardhour_collector_driver_call_seconds_total", &[]) >= 18.0 * 0.030, "{}", page.0);
    // That one is a second or two late, and the next is not.
    let page = node.page_when("slow", |page| page.value("cardhour_collector_slow_driver_calls_total", &[]) > 0.0);
    let late = page.value("cardhour_collector_late_ticks_total", &[]);
    let page = node.page_when("on", |later| ticks(later) >= ticks(&page) + 4.0);
    assert!(page.value("cardhour_collector_late_ticks_total", &[]) <= late + 1.0, "{}", page.0);
    assert_eq!(page.values("cardhour_card_power_watts", &[]).len(), 8);
}

/// It starts, says so once however often it tries, records who was given a card, and picks the driver up when it comes.
#[test]
fn without_a_driver_the_page_is_there_and_says_so_until_one_comes() {
    let folder = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start(folder.path());
    kubelet.give(&[&format!("team/p/c nvidia.com/gpu {}", CARD[0])]);
    let sections = format!("[kubernetes]\nsocket = {:?}\n", kubelet.socket);
    let scenario = "[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"nvmlInit*\"\nrc = 9\nuntil_s = 6\n";
    let node = Node::with(scenario, "", &sections);
    let page = node.read_page();
    assert_eq!(page.labels("cardhour_holder_info", "work"), ["team/p"]);
    assert_eq!(page.value("cardhour_collector_driver_up", &[]), 0.0);
    assert_eq!(page.value("cardhour_collector_cards", &[]), 0.0);
    assert_eq!(node.get("/health", "*/*").unwrap().0, 200);
    let page = node.page_when("in use", |page| page.value("cardhour_collector_driver_up", &[]) == 1.0);
    assert_eq!(page.value("cardhour_collector_missed_ticks_total", &[]), 0.0);
    node.page_when("read", |page| page.values("cardhour_card_power_watts", &[]) == [60.0]);
    assert_eq!(node.log().matches("no cards can be read").count(), 1, "{}", node.log());
    assert!(node.log().contains("the NVIDIA driver is not loaded"), "{}", node.log());
}

/// A node without any library of a driver: nothing to load, and all else works.
#[test]
fn without_the_library_it_is_said_once_and_ticks_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut child = command(folder.path(), "metrics = \"off\"", "")
        .args(["--nvml-lib", "/nowhere/libnvidia-ml.so.1"])
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let since = Instant::now();
    let delivered =
        || std::fs::read_dir(folder.path().join("ledger/incoming/n1")).is_ok_and(|mut files| files.next().is_some());
    while !delivered() && since.elapsed() < LONG {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let (said, still_runs) = (std::fs::read_to_string(&log).unwrap(), child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(still_runs, "{said}");
    assert_eq!(said.matches("libnvidia-ml.so.1 is not there or can't be loaded").count(), 1, "{said}");
}

/// While the driver is away, who was given a card still holds it.
#[test]
fn while_the_driver_is_away_holders_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start(folder.path());
    kubelet.give(&[&format!("team/p/c nvidia.com/gpu {}", CARD[0])]);
    let sections = format!("[kubernetes]\nsocket = {:?}\n", kubelet.socket);
    let node = Node::with(
        "[[card]]\npreset = \"h100\"\n[[fault]]\ncall = \"*\"\nrc = 9\nat_s = 4\nuntil_s = 1000\n",
        "",
        &sections,
    );
    let holders = |page: &Page| page.values("cardhour_holder_info", &[("work", "team/p")]).len();
    node.page_when("up", |page| holders(page) == 1 && page.value("cardhour_collector_driver_up", &[]) == 1.0);
    let page = node.page_when("away", |page| page.value("cardhour_collector_driver_up", &[]) == 0.0);
    let later = node.page_when("later", |now| ticks(now) >= ticks(&page) + 3.0);
    assert_eq!((holders(&later), later.values("cardhour_device_holders", &[])), (1, vec![1.0]));
    assert_eq!(later.value("cardhour_collector_driver_up", &[]), 0.0);
}

/// Pitfall 15: where the driver was changed and this process has the old library still, another process has to load the new one.
#[test]
fn pitfall_15_a_process_with_the_library_of_before_ends_and_says_why() {
    let mut node = Node::new(
        "[[card]]\npreset = \"h100\"\n[[fault]]\nat_s = 4\nuntil_s = 6\ncall = \"nvmlDeviceGetPowerUsage\"\nrc = 18\n\
         [[fault]]\nat_s = 3\nkind = \"version_mismatch\"\n",
    );
    assert_eq!(node.ended(), Some(3), "{}", node.log());
    assert!(node.log().contains("this process still has the library of before"), "{}", node.log());
    // What it saw is sealed.
    let left = std::fs::read_dir(node.folder.path().join("spool")).unwrap();
    let journals = left.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "journal"));
    assert_eq!(journals.count(), 0);
}

/// A card that is dead from the start is on the page and once in the log, however often it is tried.
#[test]
fn pitfall_07_a_card_that_never_answered_is_on_the_page_and_in_the_log() {
    let scenario =
        "[[card]]\npreset = \"h100\"\ncopies = 2\n[[fault]]\ncard = 1\ncall = \"nvmlDeviceGetHandleBy*\"\nrc = 15\n";
    let node = Node::new(scenario);
    let page = node.read_page();
    let dead = |page: &Page, reason| page.value("cardhour_collector_dead_cards", &[("reason", reason)]);
    assert_eq!([dead(&page, "card_lost"), dead(&page, "no_permission")], [1.0, 0.0]);
    assert_eq!(page.value("cardhour_collector_events_total", &[("kind", "card_lost")]), 1.0);
    assert_eq!(page.value("cardhour_collector_cards", &[]), 1.0);
    assert_eq!(node.log().matches("a card that the driver has doesn't answer").count(), 1, "{}", node.log());
}

/// What a missing right keeps from the collector is in the log once, with what it needs, however many devices and ticks there are.
#[test]
fn pitfall_19_a_missing_right_is_in_the_log_once_with_what_it_costs() {
    let scenario = "[[card]]\npreset = \"h100\"\ncopies = 3\n[[fault]]\ncall = \"nvmlGpmSampleGet\"\nrc = 4\n";
    let node = Node::new(scenario);
    let missing = [("capability", "performance_monitor"), ("reason", "no_permission")];
    let of_page = |page: &Page| page.values("cardhour_collector_capability_missing", &missing);
    node.page_when("counted", |page| ticks(page) >= 4.0 && of_page(page) == [3.0]);
    let log = node.log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("may not be read")).collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(
        ["performance_monitor", "devices=3", "CAP_SYS_ADMIN"].iter().all(|word| told[0].contains(word)),
        "{told:?}"
    );
}

/// Pitfall 24: early drivers of the 535 line write past the end of process lists, so they aren't asked; all else is read.
#[test]
fn pitfall_24_a_driver_that_writes_past_the_end_of_lists_is_not_asked_for_them() {
    let scenario = "[[card]]\npreset = \"h100\"\ncurve.sm = 50\n[[process]]\npid = 1\ncard = 0\nmemory_mib = 500\n";
    let stage = Stage::new(scenario).unwrap().without(&["nvmlDeviceGetRunningProcessDetailList"]).unwrap();
    let node = Node::on(stage, "", "");
    let page = node.page_when("read", |page| page.values("cardhour_device_sm_active_ratio", &[]) == [0.5]);
    assert!(page.values("cardhour_card_processes", &[]).is_empty());
    // Who holds it can't be told: that isn't the same as nobody.
    assert!(page.values("cardhour_device_holders", &[]).is_empty());
    let missing = [("capability", "processes"), ("reason", "not_supported")];
    assert_eq!(page.value("cardhour_collector_capability_missing", &missing), 1.0);
    node.page_when("later", |page| ticks(page) >= 12.0);
    drop(node.ask(&["release"]));
    let asked = |call| node.stage.calls(call) > 0;
    assert_eq!([asked("nvmlDeviceGetPowerUsage"), asked("nvmlDeviceGetComputeRunningProcesses_v3")], [true, false]);
}

/// What is odd about what the kubelet gives is told once, and counted.
#[test]
fn a_device_that_leads_nowhere_is_in_the_log_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut kubelet = Kubelet::start(folder.path());
    kubelet.give(&["team/p/c nvidia.com/gpu nonsense"]);
    let sections = format!("[kubernetes]\nsocket = {:?}\n", kubelet.socket);
    let node = Node::with("[[card]]\npreset = \"h100\"\n", "", &sections);
    let odd = |page: &Page, kind| page.value("cardhour_collector_oddities_total", &[("kind", kind)]);
    node.page_when("later", |page| ticks(page) >= 5.0);
    assert_eq!(odd(&node.page().unwrap(), "unknown_device"), 1.0, "{}", node.log());
    let said = "pod team/p was given nonsense, which leads to no device of this node";
    assert_eq!(node.log().matches(said).count(), 1, "{}", node.log());
    kubelet.stop();
    node.page_when("the kubelet is away", |page| odd(page, "source_failed") > 0.0);
    assert!(node.log().contains("the kubelet's list can't be had"), "{}", node.log());
}

/// Each reason that delivery has is a series from the start, and is documented.
#[test]
fn every_reason_of_a_failed_delivery_is_a_series_and_documented() {
    let page = Node::new("[[card]]\npreset = \"h100\"\n").read_page();
    let served = page.labels("cardhour_collector_delivery_failures_total", "reason");
    let mut names = Trouble::NAMES;
    names.sort_unstable();
    assert_eq!(served, names);
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md")).unwrap();
    let line = docs.lines().find(|line| line.contains("`cardhour_collector_delivery_failures_total`")).unwrap();
    for name in Trouble::NAMES {
        assert!(line.contains(&format!("`{name}`")), "{name}");
    }
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
