//! DCGM's names against what `nvidia-smi -q` said on real cards: `smi-captures` of the shared data, in each the query under load.

use super::node::Node;
use std::path::PathBuf;

/// The leaves of a query: `Section/Subsection/Key` and what stands behind it.
struct Query(Vec<(String, String)>);

impl Query {
    /// The last query of a capture: the one under load.
    fn of(text: &str) -> Self {
        let query = text.rsplit_once("# $ nvidia-smi -q\n").unwrap().1;
        let mut path: Vec<(usize, String)> = Vec::new();
        let mut leaves = Vec::new();
        for line in query.lines().skip(1).take_while(|line| !line.starts_with("####")) {
            let depth = line.len() - line.trim_start().len();
            path.retain(|(of, _)| *of < depth);
            match line.split_once(" : ") {
                Some((key, value)) => {
                    let keys: Vec<&str> =
                        path.iter().map(|(_, key)| key.as_str()).skip(1).chain([key.trim()]).collect();
                    leaves.push((keys.join("/"), value.trim().to_owned()));
                }
                None if line.starts_with("GPU ") || depth > 0 => path.push((depth, line.trim().to_owned())),
                None => {}
            }
        }
        Self(leaves)
    }

    /// What is said there; none where that is `N/A`.
    #[track_caller]
    fn said(&self, key: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(path, _)| path == key).unwrap_or_else(|| panic!("no {key}"));
        (value != "N/A").then_some(value)
    }

    /// The same without its unit.
    #[track_caller]
    fn number(&self, key: &str) -> Option<&str> {
        self.said(key)?.split(' ').next()
    }
}

fn capture(name: &str) -> Option<String> {
    let shared = std::env::var_os("CARDHOUR_SHARED").map_or_else(|| "../../shared/data".into(), PathBuf::from);
    let shared = if shared.is_relative() { PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(shared) } else { shared };
    let path = shared.join("smi-captures").join(name);
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "no {}", path.display());
        println!("skipped: no {}", path.display());
    }
    text
}

/// Plays a card as a capture has it, and compares the page with the capture.
fn check(preset: &str, name: &str) {
    let Some(text) = capture(name) else { return };
    let query = Query::of(&text);
    let number = |key: &str| query.number(key).unwrap_or("0");
    let mib = |key: &str| number(&format!("FB Memory Usage/{key}"));
    let power = query.number("GPU Power Readings/Average Power Draw");
    let power = power.or(query.number("GPU Power Readings/Instantaneous Power Draw")).unwrap();
    let driver = query.said("Driver Version").unwrap();
    let node = Node::dcgm(&format!(
        "driver = {driver:?}\n[[card]]\npreset = {preset:?}\nuuid = {:?}\npci = {:?}\nmodel = {:?}\nmemory_mib = {}\nreserved_mib = {}\n\
         curve = {{ power_w = {power}, util = {}, mem_util = {}, enc = {}, dec = {}, jpg = {}, ofa = {}, temperature_c = {}, \
         memory_temperature_c = {}, clock_sm_mhz = {}, clock_memory_mhz = {}, memory_used_mib = {} }}\n\
         [[card.health]]\npcie_replays = {}\n",
        query.said("GPU UUID").unwrap(),
        query.said("PCI/Bus Id").unwrap(),
        query.said("Product Name").unwrap(),
        mib("Total"),
        mib("Reserved"),
        number("Utilization/GPU"),
        number("Utilization/Memory"),
        number("Utilization/Encoder"),
        number("Utilization/Decoder"),
        number("Utilization/JPEG"),
        number("Utilization/OFA"),
        number("Temperature/GPU Current Temp"),
        // A card without the sensor gives such a number.
        query.number("Temperature/Memory Current Temp").unwrap_or("255"),
        number("Clocks/SM"),
        number("Clocks/Memory"),
        mib("Used"),
        number("PCI/Replays Since Reset"),
    ));
    let page = node.read_page();
    let labels = [
        ("gpu", "0"),
        ("UUID", query.said("GPU UUID").unwrap()),
        ("pci_bus_id", query.said("PCI/Bus Id").unwrap()),
        ("device", "nvidia0"),
        ("modelName", query.said("Product Name").unwrap()),
        ("Hostname", "n1"),
        ("DCGM_FI_DRIVER_VERSION", driver),
    ];
    let told = [
        ("DCGM_FI_DEV_GPU_UTIL", "Utilization/GPU"),
        ("DCGM_FI_DEV_MEM_COPY_UTIL", "Utilization/Memory"),
        ("DCGM_FI_DEV_ENC_UTIL", "Utilization/Encoder"),
        ("DCGM_FI_DEV_DEC_UTIL", "Utilization/Decoder"),
        ("DCGM_FI_DEV_GPU_TEMP", "Temperature/GPU Current Temp"),
        ("DCGM_FI_DEV_MEMORY_TEMP", "Temperature/Memory Current Temp"),
        ("DCGM_FI_DEV_SM_CLOCK", "Clocks/SM"),
        ("DCGM_FI_DEV_MEM_CLOCK", "Clocks/Memory"),
        ("DCGM_FI_DEV_FB_USED", "FB Memory Usage/Used"),
        ("DCGM_FI_DEV_FB_RESERVED", "FB Memory Usage/Reserved"),
        ("DCGM_FI_DEV_FB_TOTAL", "FB Memory Usage/Total"),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCI/Replays Since Reset"),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "ECC Errors/Volatile/SRAM Correctable"),
        ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "ECC Errors/Aggregate/DRAM Correctable"),
    ];
    for (metric, key) in told {
        match query.number(key) {
            Some(number) => assert_eq!(page.text(metric, &labels), number, "{metric}"),
            None => assert_eq!(page.values(metric, &[]), [0.0; 0], "{metric}"),
        }
    }
    // `nvidia-smi` rounds each of four figures that are bytes inside: of the 2080 the parts make 2 MiB more than the whole.
    let free: f64 = mib("Free").parse().unwrap();
    assert!((page.value("DCGM_FI_DEV_FB_FREE", &labels) - free).abs() <= 2.0);
    // Watts with six decimals.
    assert_eq!(page.text("DCGM_FI_DEV_POWER_USAGE", &labels), format!("{power}0000"));
    assert_eq!(
        page.text("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", &labels),
        format!("{}0000", number("GPU Power Readings/Current Power Limit"))
    );
    let has_monitor = preset == "h100";
    assert_eq!(page.values("DCGM_FI_PROF_SM_ACTIVE", &labels).len(), usize::from(has_monitor));
}

#[test]
fn dcgms_names_say_of_an_h100_what_nvidia_smi_says() {
    check("h100", "linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt");
}

#[test]
fn dcgms_names_say_of_an_l40s_what_nvidia_smi_says() {
    check("l40s", "linux-x86_64__nvidia-l40s__595.80.txt");
}

#[test]
fn dcgms_names_say_of_a_card_without_ecc_what_nvidia_smi_says() {
    check("rtx2080", "linux-x86_64__nvidia-geforce-rtx-2080-super__595.71.05.txt");
}

/// A card that is cut has no series of its own; what the board has once stands on each instance, or with `dcgm_once` on the card alone.
#[test]
fn a_card_that_is_cut_has_a_series_for_each_gpu_instance() {
    let scenario = r#"
[[card]]
preset = "h100"
curve.power_w = 400
[[card.layout]]
slice = [{ profile = "3g.40gb", gi = 1, curve.tensor = 50 }, { profile = "1g.10gb", gi = 9 }]
"#;
    let page = Node::dcgm(scenario).read_page();
    let of = |gi: &'static str| [("GPU_I_ID", gi)];
    assert_eq!(
        page.text("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", &[("GPU_I_PROFILE", "3g.40gb"), ("GPU_I_ID", "1")]),
        "0.500000"
    );
    assert_eq!(page.text("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", &of("9")), "0.000000");
    assert_eq!(page.values("DCGM_FI_DEV_POWER_USAGE", &[]), [400.0, 400.0]);
    assert_eq!(page.values("DCGM_FI_DEV_GPU_UTIL", &[]), [0.0; 0]);
    let page = Node::with(scenario, "dcgm_names = true\ndcgm_once = true\ndcgm_small_hostname = true", "").read_page();
    assert_eq!(page.values("DCGM_FI_DEV_POWER_USAGE", &[("hostname", "n1")]), [400.0]);
    assert_eq!(page.values("DCGM_FI_DEV_FB_USED", &[("hostname", "n1")]).len(), 2);
}

#[test]
fn an_error_of_the_driver_is_dcgms_last_xid_with_its_words() {
    let node = Node::dcgm("[[card]]\npreset = \"h100\"\n[[event]]\nat_s = 2\ncard = 0\nkind = 0x8\ndata = 31\n");
    let none = [("err_code", "0"), ("err_msg", "No Error")];
    assert_eq!(
        node.page_when("read", |page| !page.series("DCGM_FI_DEV_XID_ERRORS", &[]).is_empty())
            .text("DCGM_FI_DEV_XID_ERRORS", &none),
        "0"
    );
    let page = node.page_when("an error", |page| page.values("DCGM_FI_DEV_XID_ERRORS", &[]) == [31.0]);
    assert_eq!(page.text("DCGM_FI_DEV_XID_ERRORS", &[("err_code", "31"), ("err_msg", "GPU memory page fault")]), "31");
}
