//! DCGM's names against pages of others: `dcgm-text` of the shared data, which are NVIDIA's own and what netdata takes in.

use super::names::CARD;
use super::node::Node;
use super::page::{Page, name_of};
use cardhour_test_kubelet::Kubelet;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A page of the shared data; none where there are none.
fn text(name: &str) -> Option<String> {
    let shared = std::env::var_os("CARDHOUR_SHARED").map_or_else(|| "../../shared/data".into(), PathBuf::from);
    let shared = if shared.is_relative() { PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(shared) } else { shared };
    let path = shared.join("dcgm-text").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "no {}", path.display());
        println!("skipped: no {}", path.display());
    }
    text
}

/// Keys and values of a series, in the order in which they stand.
fn labels(line: &str) -> Vec<(&str, &str)> {
    let (_, rest) = line.split_once('{').unwrap();
    let (inside, _) = rest.rsplit_once('}').unwrap();
    inside.split(',').map(|pair| pair.trim().split_once('=').unwrap()).map(|(k, v)| (k, v.trim_matches('"'))).collect()
}

fn value(line: &str) -> &str {
    line.rsplit_once(' ').unwrap().1
}

/// Comments and series of a page.
fn parts(text: &str) -> (BTreeSet<&str>, Vec<&str>) {
    let lines = text.lines().filter(|line| line.contains("DCGM_"));
    let (comments, series): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with('#'));
    (comments.into_iter().filter(|line| line.starts_with("# HELP") || line.starts_with("# TYPE")).collect(), series)
}

/// The same card on our page: every comment as there, every figure that isn't blank, and its labels in the order of theirs.
fn check(theirs: &str, page: &Page) {
    let (comments, series) = parts(theirs);
    let (our_comments, _) = parts(&page.0);
    for line in series {
        let name = name_of(line);
        // What DCGM has no value for it writes as a number of this size, and dcgm-exporter leaves out by now.
        if value(line).len() == "9223372036854775794".len() {
            assert_eq!(page.values(name, &[]), [0.0; 0], "{name}");
            continue;
        }
        let of_name = comments.iter().filter(|comment| comment.split(' ').nth(2) == Some(name));
        for comment in of_name {
            assert!(our_comments.contains(comment), "{comment}");
        }
        let ours = page.series(name, &[]);
        assert_eq!((ours.len(), value(ours[0])), (1, value(line)), "{name}");
        let wanted = labels(line);
        let keys: Vec<&str> = wanted.iter().map(|(key, _)| *key).collect();
        let found: Vec<(&str, &str)> = labels(ours[0]).into_iter().filter(|(key, _)| keys.contains(key)).collect();
        assert_eq!(found.iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys, "{}", ours[0]);
        for ((key, ours), (_, theirs)) in found.iter().zip(&wanted) {
            // There nobody had the card, and was named with empty text.
            assert!(theirs.is_empty() || ours == theirs, "{key}: {ours} {theirs}");
        }
    }
}

/// The card of NVIDIA's page: without a sensor for its memory.
fn scenario(theirs: &str) -> String {
    let (_, series) = parts(theirs);
    let of = |name: &str| series.iter().find(|line| name_of(line) == name).unwrap();
    let uuid = labels(series[0]).into_iter().find(|(key, _)| *key == "UUID").unwrap().1;
    format!(
        "[[card]]\npreset = \"l40s\"\nuuid = \"{uuid}\"\ncurve = {{ clock_sm_mhz = {}, clock_memory_mhz = {}, memory_temperature_c = 255 }}\n",
        value(of("DCGM_FI_DEV_SM_CLOCK")),
        value(of("DCGM_FI_DEV_MEM_CLOCK")),
    )
}

#[test]
fn a_card_is_told_as_on_nvidias_page() {
    let Some(theirs) = text("dcgm-exporter-readme.prom") else { return };
    check(&theirs, &Node::dcgm(&scenario(&theirs)).read_page());
}

#[test]
fn a_cards_pod_is_told_as_on_nvidias_page() {
    let Some(theirs) = text("dcgm-exporter-readme-k8s.prom") else { return };
    let folder = tempfile::tempdir().unwrap();
    let kubelet = Kubelet::start(folder.path());
    let (_, series) = parts(&theirs);
    let uuid = labels(series[0]).into_iter().find(|(key, _)| *key == "UUID").unwrap().1;
    kubelet.give(&[&format!("team/p/c nvidia.com/gpu {uuid}")]);
    let sections = format!("[kubernetes]\nsocket = {:?}\n", kubelet.socket);
    let node = Node::with(&scenario(&theirs), "dcgm_names = true", &sections);
    let page = node.page_when("a pod", |page| !page.series("DCGM_FI_DEV_SM_CLOCK", &[("pod", "p")]).is_empty());
    check(&theirs, &page);
}

/// What netdata takes in, of which it reads names, types and labels: one card and an instance, each with the figure that stands there.
#[test]
fn types_and_labels_are_what_others_take_in() {
    let Some(theirs) = text("metrics_valid.prom") else { return };
    let node = Node::dcgm(
        "[[card]]\npreset = \"h100\"\ncurve = { util = 80, memory_used_mib = 1024, nvlink_tx_kib_s = 1, pcie_tx_mib_s = 1 }\n\
         [[card.health]]\nremap_failed = 1\nremapped_uncorrectable = 7\nnvlink_replay = 4\n\
         [[card]]\npreset = \"h100\"\n[[card.layout]]\nslice = [{ profile = \"1g.10gb\", gi = 2 }]\n",
    );
    let page = node.page_when("use", |page| !page.values("DCGM_FI_PROF_PCIE_TX_BYTES", &[]).is_empty());
    let (comments, series) = parts(&theirs);
    let types: BTreeMap<&str, &str> =
        comments.iter().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let (ours, _) = parts(&page.0);
    for (name, kind) in &types {
        assert!(ours.contains(format!("# TYPE {name} {kind}").as_str()), "{name} {kind}");
    }
    let whole = [("UUID", CARD[0])];
    // Counted or settled there, not drawn from the time that a test takes.
    for name in [
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    ] {
        let there = series.iter().find(|line| name_of(line) == name).unwrap();
        assert_eq!(page.text(name, &whole), value(there), "{name}");
    }
    // An instance has the labels that theirs has, with the values that theirs has. They are its GPU instance's, under the card's UUID.
    let instance = series.iter().find(|line| line.contains("GPU_I_ID")).unwrap();
    let mig: Vec<(&str, &str)> = labels(instance).into_iter().filter(|(key, _)| key.starts_with("GPU_I_")).collect();
    assert_eq!(mig.len(), 2);
    let ours = page.series("DCGM_FI_DEV_FB_USED", &[mig[0], mig[1]]);
    let [ours] = ours[..] else { panic!("{ours:?}") };
    let keys: Vec<&str> = labels(ours).iter().map(|(key, _)| *key).collect();
    for (key, _) in labels(instance) {
        assert!(keys.contains(&key), "{key}");
    }
    assert!(ours.contains(&format!("UUID=\"{}\"", CARD[1])), "{ours}");
    // Behind what names the card, before the node.
    let at = |key: &str| keys.iter().position(|k| *k == key).unwrap();
    assert!(at("modelName") < at("GPU_I_PROFILE") && at("GPU_I_ID") < at("Hostname"), "{keys:?}");
}
