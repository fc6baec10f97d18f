//! Real captures. What is right was read off the files by eye: the row of `query-gpu`, the elements of the XML.

use super::super::scrape::Scrape;
use super::super::{Telemetry, scrape, smi_log, smi_xml};
use super::*;
use crate::import::readers::shared_data::shared_data;
use cardhour_domain::{Milliwatts, SampleSource};

/// The log of one capture: its header, and the rows of the idle and the loaded machine.
fn log_of(capture: &[u8]) -> String {
    let text = std::str::from_utf8(capture).unwrap();
    let is_row = |line: &&str| {
        line.starts_with("timestamp, driver_version") || line.starts_with("2026/") && line.split(", ").count() > 100
    };
    text.lines().filter(is_row).map(|line| format!("{line}\n")).collect()
}

#[track_caller]
fn of_capture(name: &str) -> Option<Telemetry> {
    let capture = shared_data(&format!("smi-captures/{name}"))?;
    let log = log_of(&capture);
    assert_eq!(log.lines().count(), 4, "{name}: a header and a row, twice");
    let told = of(smi_log::read(log.as_bytes(), None, &setting()).unwrap());
    assert_eq!(told.rejected, [], "{name}");
    Some(told)
}

#[test]
fn an_idle_l40s_that_says_busy_without_memory_or_process_is_implausible() {
    let Some(told) = of_capture("linux-x86_64__nvidia-l40s__595.80.txt") else { return };
    let [idle, load] = &told.samples[..] else { panic!("{:?}", told.samples) };
    // Idle: 100 %, 9 %, 0 MiB, 144.97 W, 63 °C. Load, two encoders: 9 %, encoder 60 %, 1,235 MiB, 110.23 W.
    assert_eq!(idle.sm_active_pct, missing(Gap::Implausible));
    assert_eq!(
        (idle.power_mw, idle.mem_used_bytes, idle.temperature_c),
        (Reading::Seen(Milliwatts(144_970)), Reading::Seen(0), Reading::Seen(63))
    );
    assert_eq!((load.sm_active_pct, load.media_active_pct), (pct(9), pct(60)));
    assert_eq!(load.mem_used_bytes, Reading::Seen(1_235 * 1_048_576));
    // 08:33:53.415 − 08:33:38.737 = 14.678 s, and the first as long: the median of one distance.
    assert_eq!((load.during.length_ms(), idle.during.length_ms()), (14_678, 14_678));
    assert_eq!(idle.source, SampleSource::NvidiaSmi);
    let [device] = &told.devices[..] else { panic!("{:?}", told.devices) };
    assert_eq!((device.model.as_deref(), device.driver.as_deref()), (Some("NVIDIA L40S"), Some("595.80")));
    assert_eq!((device.memory_bytes, device.power_limit_mw), (Some(46_068 * 1_048_576), Some(350_000)));
    assert_eq!((device.pci_bus_id.as_deref(), device.mig_mode.as_deref()), (Some("00000000:01:00.0"), None));
}

#[test]
fn an_h100_under_load_is_busy_and_idle_is_idle() {
    let Some(told) = of_capture("linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01.txt") else { return };
    let [idle, load] = &told.samples[..] else { panic!("{:?}", told.samples) };
    assert_eq!((idle.sm_active_pct, idle.power_mw), (pct(0), Reading::Seen(Milliwatts(69_850))));
    assert_eq!(
        (load.sm_active_pct, load.mem_active_pct, load.power_mw),
        (pct(100), pct(11), Reading::Seen(Milliwatts(631_950)))
    );
    // 631.95 W × 14.657 s = 9,262.49115 J.
    assert_eq!(load.energy_mj.seen().map(|energy| energy.0), Some(9_262_491));
    assert_eq!(told.devices[0].mig_mode.as_deref(), Some("disabled"));
}

#[test]
fn a_card_whose_average_power_is_not_supported_has_its_power_draw() {
    let Some(told) = of_capture("linux-x86_64__nvidia-geforce-rtx-2080-super__595.71.05.txt") else { return };
    let [idle, load] = &told.samples[..] else { panic!("{:?}", told.samples) };
    assert_eq!((idle.sm_active_pct, idle.power_mw), (pct(0), Reading::Seen(Milliwatts(39_320))));
    assert_eq!(
        (load.sm_active_pct, load.media_active_pct, load.power_mw),
        (pct(8), pct(100), Reading::Seen(Milliwatts(111_500)))
    );
}

#[test]
fn documents_of_three_drivers_are_read() {
    let (Some(a10g), Some(t4), Some(rtx)) =
        (shared_data("smi-xml/a10g.xml"), shared_data("smi-xml/tesla-t4.xml"), shared_data("smi-xml/rtx-3090-v12.xml"))
    else {
        return;
    };
    let all = [a10g, t4, rtx].concat();
    let told = of(smi_xml::read(&all, &setting()).unwrap());
    assert_eq!(told.rejected, []);
    let row = |sample: &Sample| {
        let mib = sample.mem_used_bytes.seen().unwrap() / 1_048_576;
        let (power, at) = (sample.power_mw.seen().unwrap().0, sample.during.end().to_string());
        (sample.card_uuid.to_string(), at, sample.sm_active_pct, mib, power, sample.temperature_c.seen().unwrap())
    };
    let expected = [
        ("GPU-12345678-aaaa-bbbb-cccc-0123456789ab", "2024-05-03T11:54:37Z", 1, 27_230, 37),
        ("GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94", "2023-04-24T16:11:51Z", 22, 25_580, 17),
        ("GPU-d37e67a5-91dd-3774-a5cb-99096249601a", "2023-04-24T16:22:39Z", 1_032, 26_780, 40),
    ];
    let expected = expected.map(|(card, at, mib, mw, c)| (card.to_owned(), at.to_owned(), pct(0), mib, mw, c));
    assert_eq!(told.samples.iter().map(row).collect::<Vec<_>>(), expected);
}

#[test]
fn texts_of_dcgm_exporter_are_read_and_their_blanks_are_not() {
    let (Some(valid), Some(readme)) =
        (shared_data("dcgm-text/metrics_valid.prom"), shared_data("dcgm-text/dcgm-exporter-readme-k8s.prom"))
    else {
        return;
    };
    let scrape = |text| Scrape { text, at: Some(Timestamp::from_unix_s(1_000)) };
    let known = Setting { node: Some("host1".into()), ..setting() };
    let told = Telemetry::of([scrape::read(&[scrape(&valid)], &known).unwrap()], &known);
    assert_eq!(told.rejected, []);
    let [card, slice] = &told.samples[..] else { panic!("{:?}", told.samples) };
    // The card is cut, so that its 80 % and the instance's 60 % are of no device; 1,024 MiB are the card's.
    assert_eq!((&*card.device_uuid, card.sm_active_pct), ("GPU-aaa", missing(Gap::NotSupported)));
    assert_eq!(card.mem_used_bytes, Reading::Seen(1_073_741_824));
    assert_eq!(card.pcie_bytes, missing(Gap::NotRecorded), "one direction alone is no sum");
    assert_eq!((&*slice.device_uuid, slice.sm_active_pct), ("MIG-GPU-aaa/2/0", missing(Gap::NotSupported)));
    // Only clocks and a blank memory temperature.
    let told = of(scrape::read(&[scrape(&readme)], &setting()).unwrap());
    assert_eq!((told.samples.len(), told.notes), (0, vec!["no metric of a card that is read here".to_owned()]));
}
