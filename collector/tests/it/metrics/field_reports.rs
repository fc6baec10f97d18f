//! What others met with exporters, each under the id of its report.

use super::names::CARD;
use super::node::Node;
use super::page::{Page, label, name_of};
use cardhour_test_kubelet::Kubelet;

const CUT: &str = "[[card]]\npreset = \"h100\"\ncurve = { util = 90, power_w = 500 }\n[[card.layout]]\nslice = [{ profile = \"1g.10gb\", copies = 7, gi = 7, curve.sm = 40 }]\n";

/// C01: what isn't supported is no number, such as 9.22e18. C13: nor is it 0.
#[test]
fn c01_and_c13_what_a_cut_card_cannot_tell_is_no_number() {
    let page = Node::dcgm(CUT).read_page();
    assert!(page.values("DCGM_FI_DEV_GPU_UTIL", &[]).is_empty());
    assert!(page.values("cardhour_card_encoder_active_ratio", &[]).is_empty());
    for line in page.lines() {
        let value: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
        assert!(value.is_finite() && value.abs() < 1e15, "{line}");
    }
}

/// C02: activity of instances is by the performance monitor. S17: and from 0 to 1 as all ratios are.
#[test]
fn c02_and_s17_instances_have_the_monitors_activity_as_a_ratio() {
    let page = Node::dcgm(CUT).read_page();
    assert_eq!(page.values("cardhour_device_sm_active_ratio", &[("basis", "gpm")]), [0.4; 7]);
    assert_eq!(page.values("DCGM_FI_PROF_GR_ENGINE_ACTIVE", &[]), [0.4; 7]);
    for line in page.lines().filter(|line| name_of(line).ends_with("_ratio")) {
        let value: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
        assert!((0.0..=1.0).contains(&value), "{line}");
    }
}

/// C03: new instances are there within a tick, and those of before have no series any more.
#[test]
fn c03_a_card_cut_anew_has_its_new_instances_and_none_of_the_old() {
    let node = Node::dcgm(
        "[[card]]\npreset = \"a100\"\n[[card.layout]]\nslice = [{ profile = \"3g.40gb\", copies = 2, gi = 1 }]\n[[card.layout]]\nat_s = 4\nslice = [{ profile = \"1g.10gb\", copies = 7, gi = 1 }]\n",
    );
    let profiles = |page: &Page| -> Vec<String> {
        page.labels("cardhour_device_holders", "mig_profile").into_iter().map(str::to_owned).collect()
    };
    node.page_when("two instances", |page| profiles(page) == ["3g.40gb"; 2]);
    let page = node.page_when("seven instances", |page| profiles(page) == ["1g.10gb"; 7]);
    assert!(!page.0.contains("3g.40gb"), "a series of an instance that is no more");
    assert_eq!(page.labels("DCGM_FI_DEV_FB_USED", "GPU_I_PROFILE"), ["1g.10gb"; 7]);
}

/// C07: instances whose monitor says nothing are there, without a figure for their use.
#[test]
fn c07_instances_without_the_monitor_are_there_and_have_no_use() {
    let text = format!(
        "{}[[card]]\npreset = \"h100\"\n[[card.layout]]\nslice = [{{ profile = \"1g.10gb\", copies = 3, curve.sm = 40 }}]\n[[fault]]\ncard = 1\ncall = \"nvmlGpmMigSampleGet\"\nrc = 3\n",
        CUT
    );
    let page = Node::new(&text).read_page();
    assert_eq!(page.values("cardhour_device_holders", &[]).len(), 10);
    assert_eq!(page.values("cardhour_device_sm_active_ratio", &[]), [0.4; 7]);
    assert_eq!(page.values("cardhour_device_telemetry", &[("card_uuid", CARD[1])]), [0.0; 3]);
    let missing = [("capability", "performance_monitor"), ("reason", "not_supported")];
    assert_eq!(page.value("cardhour_collector_capability_missing", &missing), 3.0);
}

/// C11: one figure that can't be read takes nothing else with it, and what is forbidden is said to be.
#[test]
fn c11_a_figure_that_cannot_be_read_is_missing_alone() {
    let page = Node::new(
        "[[card]]\npreset = \"h100\"\ncurve.sm = 50\n[[fault]]\ncall = \"nvmlDeviceGetPowerUsage\"\nrc = 4\n",
    )
    .read_page();
    assert!(page.values("cardhour_card_power_watts", &[]).is_empty());
    assert_eq!(page.values("cardhour_card_temperature_celsius", &[]), [35.0]);
    assert_eq!(page.values("cardhour_device_sm_active_ratio", &[]), [0.5]);
    let missing = |capability| {
        page.value("cardhour_collector_capability_missing", &[("capability", capability), ("reason", "no_permission")])
    };
    assert_eq!((missing("power"), missing("temperature")), (1.0, 0.0));
}

/// C12: after a failure the next tick tries again.
#[test]
fn c12_a_driver_that_comes_back_has_its_series_back() {
    let node = Node::new(
        "[[card]]\npreset = \"h100\"\ncurve.sm = 50\n[[fault]]\ncall = \"*\"\nrc = 9\nat_s = 4\nuntil_s = 6\n",
    );
    let is_up = |page: &Page| page.values("cardhour_card_up", &[]);
    node.page_when("up", |page| is_up(page) == [1.0]);
    let page = node.page_when("away", |page| is_up(page) == [0.0]);
    assert!(
        page.values("cardhour_device_sm_active_ratio", &[]).is_empty()
            && page.values("cardhour_card_power_watts", &[]).is_empty()
    );
    let page = node.page_when("back", |page| page.values("cardhour_device_sm_active_ratio", &[]) == [0.5]);
    assert_eq!(is_up(&page), [1.0]);
    assert_eq!(page.value("cardhour_collector_driver_loads_total", &[]), 2.0);
}

/// C15: memory that can't be asked for is missing, and all else goes on.
#[test]
fn c15_a_card_with_the_hosts_memory_has_the_rest() {
    let page = Node::dcgm("[[card]]\npreset = \"gb10\"\ncurve = { sm = 50, power_w = 90 }\n").read_page();
    assert!(page.values("DCGM_FI_DEV_FB_USED", &[]).is_empty());
    assert_eq!(page.values("DCGM_FI_DEV_POWER_USAGE", &[]), [90.0]);
    assert_eq!(page.values("cardhour_device_sm_active_ratio", &[]), [0.5]);
}

/// C19: a card is there whoever has it, and when it is lost: then as lost.
#[test]
fn c19_every_card_is_on_every_page_also_when_lost_or_free() {
    let node =
        Node::new("[[card]]\npreset = \"h100\"\ncopies = 2\n[[fault]]\nkind = \"card_lost\"\ncard = 1\nat_s = 4\n");
    let up = |page: &Page, card: usize| page.values("cardhour_card_up", &[("card_uuid", CARD[card])]);
    let page = node.page_when("two cards", |page| up(page, 0) == [1.0] && up(page, 1) == [1.0]);
    // Free, and known to be.
    assert_eq!(page.values("cardhour_device_holders", &[]), [0.0, 0.0]);
    let page = node.page_when("one lost", |page| up(page, 1) == [0.0]);
    assert_eq!(up(&page, 0), [1.0]);
    assert_eq!(page.values("cardhour_collector_events_total", &[("kind", "card_lost")]), [1.0]);
    assert!(page.values("cardhour_card_power_watts", &[("card_uuid", CARD[1])]).is_empty());
}

/// S01: a figure is its card's by UUID, whatever the driver's number of it; `gpu` of DCGM's names is that number.
#[test]
fn s01_a_card_has_its_own_figures_when_the_driver_counts_otherwise() {
    let scenario = "[[card]]\npreset = \"h100\"\ncurve.power_w = 100\n[[card]]\npreset = \"h100\"\ncurve.power_w = 200\n[[fault]]\nkind = \"indexes_reversed\"\n";
    let page = Node::dcgm(scenario).read_page();
    for (card, watts, index) in [(CARD[0], 100.0, "1"), (CARD[1], 200.0, "0")] {
        assert_eq!(page.values("cardhour_card_power_watts", &[("card_uuid", card)]), [watts]);
        assert_eq!(page.values("DCGM_FI_DEV_POWER_USAGE", &[("UUID", card), ("gpu", index)]), [watts]);
    }
}

/// A node of Kubernetes: its collector asks this kubelet.
fn in_kubernetes(scenario: &str) -> (Kubelet, Node, tempfile::TempDir) {
    in_kubernetes_with(scenario, "")
}

fn in_kubernetes_with(scenario: &str, more: &str) -> (Kubelet, Node, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start(folder.path());
    let sections = format!("[kubernetes]\nsocket = {:?}\n", kubelet.socket);
    let node = Node::with(scenario, &format!("dcgm_names = true\n{more}"), &sections);
    (kubelet, node, folder)
}

fn works(page: &Page) -> Vec<String> {
    page.labels("cardhour_holder_info", "work").into_iter().map(str::to_owned).collect()
}

/// K01: four pods on the replicas of one card are four holders, and their shares make a card.
#[test]
fn k01_four_pods_that_share_a_card_are_four_holders_of_a_quarter() {
    let (kubelet, node, _folder) = in_kubernetes("[[card]]\npreset = \"h100\"\ncurve.sm = 50\n");
    let replicas: Vec<String> = (0..4).map(|n| format!("{}::{n}", CARD[0])).collect();
    kubelet.offer("nvidia.com/gpu", &replicas);
    let lines: Vec<String> = (0..4).map(|n| format!("team/p{n}/c nvidia.com/gpu {}", replicas[n])).collect();
    kubelet.give(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let page = node.page_when("four holders", |page| {
        works(page).len() == 4 && !page.values("cardhour_device_sm_active_ratio", &[]).is_empty()
    });
    assert_eq!(works(&page), ["team/p0", "team/p1", "team/p2", "team/p3"]);
    assert_eq!(page.values("cardhour_holder_share_ratio", &[]), [0.25; 4]);
    assert_eq!(page.values("cardhour_device_holders", &[]), [4.0]);
    // The device's own figure is there once, under DCGM's names as well.
    assert_eq!(page.values("cardhour_device_sm_active_ratio", &[]), [0.5]);
    assert_eq!(page.values("DCGM_FI_PROF_SM_ACTIVE", &[]), [0.5]);
}

/// K01, as boards that group by pod want it: a series for each of those that share a card, of the card's figure, as the exporter has them by its
/// `--kubernetes-virtual-gpus`. Our own figure of the device stays one.
#[test]
fn k01_those_that_share_a_card_have_a_series_each_where_that_is_wanted() {
    let (kubelet, node, _folder) =
        in_kubernetes_with("[[card]]\npreset = \"h100\"\ncurve.sm = 50\n", "dcgm_virtual_gpus = true");
    let id = |replica: u32| format!("{}::{replica}", CARD[0]);
    kubelet.offer("nvidia.com/gpu", &(0..4).map(id).collect::<Vec<_>>());
    kubelet.give(&[
        &format!("team/p0/c nvidia.com/gpu {}", id(0)),
        &format!("team/p1/a nvidia.com/gpu {}", id(3)),
        &format!("team/p1/b nvidia.com/gpu {}", id(1)),
    ]);
    let page = node.page_when("two holders", |page| {
        works(page).len() == 2 && !page.values("cardhour_device_sm_active_ratio", &[]).is_empty()
    });
    assert_eq!(page.values("DCGM_FI_PROF_SM_ACTIVE", &[]), [0.5; 3]);
    assert_eq!(page.values("cardhour_device_sm_active_ratio", &[]), [0.5]);
    for (container, pod, replica) in [("c", "p0", "0"), ("a", "p1", "3"), ("b", "p1", "1")] {
        let labels = [("container", container), ("namespace", "team"), ("pod", pod), ("vgpu", replica)];
        let series = page.series("DCGM_FI_PROF_SM_ACTIVE", &labels);
        let [line] = series[..] else { panic!("{series:?}") };
        let tail = labels.map(|(key, value)| format!("{key}=\"{value}\"")).join(",");
        assert!(line.contains(&format!("{tail}}} ")), "{line}");
    }
    // Whoever has it whole has one series, without a number.
    kubelet.give(&[&format!("team/p0/c nvidia.com/gpu {}", CARD[0])]);
    let page = node.page_when("one series", |page| page.values("DCGM_FI_PROF_SM_ACTIVE", &[]).len() == 1);
    let line = page.series("DCGM_FI_PROF_SM_ACTIVE", &[])[0];
    assert_eq!((label(line, "pod"), label(line, "container"), label(line, "vgpu")), (Some("p0"), Some("c"), None));
}

/// A pod that has a device in two of its containers has it once, and which of them it is nobody can say.
#[test]
fn a_device_of_two_containers_is_the_pods() {
    let (kubelet, node, _folder) = in_kubernetes("[[card]]\npreset = \"h100\"\n");
    kubelet.give(&[&format!("team/p/a nvidia.com/gpu {}", CARD[0]), &format!("team/p/b nvidia.com/gpu {}", CARD[0])]);
    let page = node.page_when("a holder", |page| works(page) == ["team/p"]);
    let series = page.series("DCGM_FI_DEV_GPU_TEMP", &[]);
    assert_eq!((series.len(), label(series[0], "pod"), label(series[0], "container")), (1, Some("p"), None));
}

/// K19: a card is 15 % busy, and the counter of its process stands at 0. The other card's process is told as busy as the card is.
#[test]
fn k19_what_processes_are_said_to_do_stands_beside_what_the_device_did() {
    let node = Node::new(
        "[[card]]\npreset = \"l40s\"\ncopies = 2\ncurve.util = 15\n[[process]]\npid = 1\ncard = 0\nsm_pct = 0\n[[process]]\npid = 2\ncard = 1\nsm_pct = 15\n",
    );
    let of = |page: &Page, name: &str, card: usize| page.values(name, &[("device_uuid", CARD[card])]);
    // Between two lists of processes, ten seconds apart.
    let page = node.page_when("two lists", |page| of(page, "cardhour_device_processes_active_ratio", 1).len() == 1);
    for card in [0, 1] {
        assert_eq!(of(&page, "cardhour_device_sm_active_ratio", card), [0.15]);
    }
    assert_eq!(of(&page, "cardhour_device_processes_active_ratio", 0), [0.0]);
    let told = of(&page, "cardhour_device_processes_active_ratio", 1)[0];
    assert!((told - 0.15).abs() < 0.01, "{told}");
}

/// K03: the series of a device go on whoever has it. K05 and K16: a holder ends with its pod. S18: two are never holders of one card in turn at once.
#[test]
fn k03_and_k05_a_device_goes_on_and_its_holder_ends_with_its_pod() {
    let (kubelet, node, _folder) = in_kubernetes("[[card]]\npreset = \"h100\"\ncurve.sm = 50\n");
    let series = |page: &Page| -> Vec<String> {
        let of_device = page.lines().filter(|line| {
            let name = name_of(line);
            name.starts_with("cardhour_card_") || name.starts_with("cardhour_device_")
        });
        of_device.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    let mut before = Vec::new();
    for work in ["team/first", "team/second"] {
        kubelet.give(&[&format!("{work}/c nvidia.com/gpu {}", CARD[0])]);
        let page = node.page_when(work, |page| {
            works(page) == [work] && !page.values("cardhour_device_sm_active_ratio", &[]).is_empty()
        });
        let now = series(&page);
        assert!(before.is_empty() || before == now, "{before:?}\n{now:?}");
        before = now;
        assert_eq!(label(page.series("DCGM_FI_DEV_GPU_TEMP", &[])[0], "pod"), work.split('/').nth(1));
        assert_eq!(label(page.series("DCGM_FI_DEV_GPU_TEMP", &[])[0], "container"), Some("c"));
    }
    kubelet.give(&[]);
    let page = node.page_when("nobody", |page| works(page).is_empty());
    assert_eq!(series(&page), before);
    assert_eq!(page.values("cardhour_device_holders", &[]), [0.0]);
    assert_eq!(label(page.series("DCGM_FI_DEV_GPU_TEMP", &[])[0], "pod"), None);
}

/// K04: the owner of an instance is found by its UUID, and stands on that instance alone.
#[test]
fn k04_an_instance_has_its_own_holder() {
    let (kubelet, node, _folder) = in_kubernetes(
        "[[card]]\npreset = \"h100\"\n[[card.layout]]\nslice = [{ profile = \"1g.10gb\", uuid = \"MIG-a\" }, { profile = \"1g.10gb\", uuid = \"MIG-b\" }]\n",
    );
    kubelet.give(&["team/p/c nvidia.com/mig-1g.10gb MIG-b"]);
    let page = node.page_when("a holder", |page| works(page) == ["team/p"]);
    assert_eq!(page.labels("cardhour_holder_info", "device_uuid"), ["MIG-b"]);
    assert_eq!(page.value("cardhour_device_holders", &[("device_uuid", "MIG-a")]), 0.0);
    let with_owner: Vec<&str> = page.series("DCGM_FI_DEV_FB_USED", &[("pod", "p"), ("namespace", "team")]);
    assert_eq!((with_owner.len(), label(with_owner[0], "GPU_I_ID")), (1, Some("8")));
}

/// S27: while the kubelet doesn't answer nobody says that a card is free.
#[test]
fn s27_a_card_is_not_free_because_the_kubelet_is_silent() {
    let (mut kubelet, node, _folder) = in_kubernetes("[[card]]\npreset = \"h100\"\n");
    node.page_when("free", |page| page.values("cardhour_device_holders", &[]) == [0.0]);
    kubelet.stop();
    let page = node.page_when("unwatched", |page| page.values("cardhour_collector_watched_cards", &[]) == [0.0]);
    assert!(page.values("cardhour_device_holders", &[]).is_empty());
    assert_eq!(page.values("cardhour_card_up", &[]), [1.0]);
}

/// R16: a holder that has not touched its card is there, and its card is idle, not missing.
#[test]
fn r16_a_card_that_is_held_and_not_used_is_told_from_one_that_is_missing() {
    let (kubelet, node, _folder) = in_kubernetes("[[card]]\npreset = \"h100\"\n");
    kubelet.give(&[&format!("team/idle/c nvidia.com/gpu {}", CARD[0])]);
    let page = node.page_when("a holder", |page| {
        works(page) == ["team/idle"] && !page.values("cardhour_device_sm_active_ratio", &[]).is_empty()
    });
    assert_eq!(page.values("cardhour_device_sm_active_ratio", &[]), [0.0]);
    assert_eq!(page.values("cardhour_device_telemetry", &[]), [1.0]);
}
