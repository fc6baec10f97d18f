//! Cards and instances under our own names.
//!
//! `cardhour_card_…` is what a board has once; `cardhour_device_…` what a card has that isn't cut, and each instance of one that is: so sums over
//! devices count nothing twice. Use and memory are the rows of the books, judged as they are there.

use super::About;
use super::family::{Families, Family, Label, counter, gauge};
use super::snapshot::{Device, Snapshot};
use cardhour_domain::{CardShare, Percent, Reading};
use std::fmt;

/// A figure of a card or a device.
struct Figure {
    family: Family,
    value: fn(&Device) -> Option<f64>,
}

const fn figure(family: Family, value: fn(&Device) -> Option<f64>) -> Figure {
    Figure { family, value }
}

/// What only a board has.
const CARD: [Figure; 28] = [
    figure(gauge("cardhour_card_up", "", "1 while the card answers, 0 while it is lost or the driver away"), |d| {
        Some(f64::from(u8::from(d.silence().is_none())))
    }),
    figure(gauge("cardhour_card_last_answer_timestamp", "seconds", "When the card last answered, since 1970"), |d| {
        Some(d.answered_at?.unix_ms() as f64 / 1000.0)
    }),
    figure(
        gauge("cardhour_card_mig_enabled", "", "1 where the card is cut into instances; no series where it can't be"),
        |d| {
            let told = d.told.as_ref()?;
            told.mig_mode.as_deref().map(|mode| f64::from(u8::from(mode == "enabled")))
        },
    ),
    figure(gauge("cardhour_card_power", "watts", "Power, as the driver averages it"), |d| thousandth(d.state.power_mw)),
    figure(gauge("cardhour_card_power_limit", "watts", "The most it may draw now"), |d| {
        thousandth(d.state.power_limit_mw)
    }),
    figure(counter("cardhour_card_energy", "joules", "Energy since the driver was loaded"), |d| {
        Some(d.state.energy_mj_total.seen()? as f64 / 1000.0)
    }),
    figure(gauge("cardhour_card_temperature", "celsius", "Of the chip"), |d| whole(d.state.temperature_c)),
    figure(gauge("cardhour_card_memory_temperature", "celsius", "Of the memory"), |d| {
        whole(d.state.memory_temperature_c)
    }),
    figure(gauge("cardhour_card_sm_clock", "hertz", "Clock of the multiprocessors"), |d| mega(d.state.sm_clock_mhz)),
    figure(gauge("cardhour_card_memory_clock", "hertz", "Clock of the memory"), |d| mega(d.state.memory_clock_mhz)),
    figure(gauge("cardhour_card_performance_state", "", "0 is the fastest, 15 the slowest"), |d| {
        whole(d.state.performance_state)
    }),
    figure(gauge("cardhour_card_memory_reserved", "bytes", "What the driver keeps for itself"), |d| {
        whole(d.state.memory_reserved_bytes)
    }),
    figure(gauge("cardhour_card_encoder_active", "ratio", "Video encoder, over the driver's last period"), |d| {
        ratio(d.state.encoder_pct)
    }),
    figure(gauge("cardhour_card_decoder_active", "ratio", "Video decoder, over the driver's last period"), |d| {
        ratio(d.state.decoder_pct)
    }),
    figure(counter("cardhour_card_pcie_sent", "bytes", "Sent over PCIe"), |d| count(d.state.pcie_tx_bytes_total)),
    figure(counter("cardhour_card_pcie_received", "bytes", "Received over PCIe"), |d| {
        count(d.state.pcie_rx_bytes_total)
    }),
    figure(counter("cardhour_card_nvlink_sent", "bytes", "Sent over all NVLinks"), |d| {
        count(d.state.nvlink_tx_kib_total).map(|kib| kib * 1024.0)
    }),
    figure(counter("cardhour_card_nvlink_received", "bytes", "Received over all NVLinks"), |d| {
        count(d.state.nvlink_rx_kib_total).map(|kib| kib * 1024.0)
    }),
    figure(counter("cardhour_card_pcie_replays", "", "Packets that PCIe had to send again"), |d| {
        count(d.state.health.pcie_replays_total)
    }),
    figure(gauge("cardhour_card_pcie_link_generation", "", "Generation of its PCIe link now"), |d| {
        whole(d.state.health.pcie_link_generation)
    }),
    figure(gauge("cardhour_card_pcie_link_lanes", "", "Lanes of its PCIe link now"), |d| {
        whole(d.state.health.pcie_link_width)
    }),
    figure(
        gauge("cardhour_card_row_remap_pending", "", "1 while rows of memory wait to be replaced at a reset"),
        |d| mark(d.state.health.is_remap_pending),
    ),
    figure(gauge("cardhour_card_row_remap_failed", "", "1 once a row could not be replaced: change the card"), |d| {
        mark(d.state.health.is_remap_failed)
    }),
    figure(
        gauge("cardhour_card_page_retirement_pending", "", "1 while pages of memory wait to be retired at a reset"),
        |d| mark(d.state.health.is_retire_pending),
    ),
    figure(
        gauge(
            "cardhour_card_recovery_action",
            "",
            "What the driver wants done: 0 nothing, 1 reset, 2 reboot, 3 drain peers, 4 drain and reset, 5 IMEX",
        ),
        |d| count(d.state.health.recovery_action),
    ),
    figure(
        gauge("cardhour_card_last_xid", "", "The last XID that the driver told of since the collector started"),
        |d| Some(d.state.last_xid.seen()?? as f64),
    ),
    figure(gauge("cardhour_card_active_vgpus", "", "Virtual GPUs that are active on it"), |d| {
        d.state.active_vgpus.seen().map(f64::from)
    }),
    figure(
        gauge("cardhour_card_processes", "", "Processes on the card and its instances, as they were listed last"),
        |d| d.processes.seen().map(f64::from),
    ),
];

/// What a whole card and an instance have alike.
const DEVICE: [Figure; 13] = [
    figure(
        gauge(
            "cardhour_device_processes_active",
            "ratio",
            "What the driver says its processes did, all together, between the last two lists of them",
        ),
        |d| d.processes_active,
    ),
    figure(
        gauge("cardhour_device_memory_active", "ratio", "How busy the memory's bandwidth was over the last tick"),
        |d| ratio(d.sample.as_ref()?.mem_active_pct),
    ),
    figure(
        gauge(
            "cardhour_device_media_active",
            "ratio",
            "The busiest of encoder, decoder, JPEG and optical flow over the driver's last period",
        ),
        |d| ratio(d.sample.as_ref()?.media_active_pct),
    ),
    figure(gauge("cardhour_device_tensor_active", "ratio", "Any tensor pipe, over the last tick"), |d| {
        ratio(d.state.gpm.tensor_active_pct)
    }),
    figure(
        gauge("cardhour_device_sm_occupancy", "ratio", "Warps in flight of those possible, over the last tick"),
        |d| ratio(d.state.gpm.sm_occupancy_pct),
    ),
    figure(
        gauge("cardhour_device_engine_active", "ratio", "Any graphics or compute engine, over the last tick"),
        |d| ratio(d.state.gpm.graphics_active_pct),
    ),
    figure(gauge("cardhour_device_memory_used", "bytes", "Without what the driver keeps for itself"), |d| {
        whole(d.sample.as_ref()?.mem_used_bytes)
    }),
    figure(gauge("cardhour_device_memory_size", "bytes", "All of it"), |d| whole(d.state.memory_total_bytes)),
    figure(
        gauge("cardhour_device_nvlink_rate", "bytes_per_second", "Over NVLink, both ways, mean of the last tick"),
        |d| rate(d, |sample| sample.nvlink_bytes),
    ),
    figure(
        gauge("cardhour_device_pcie_rate", "bytes_per_second", "Over PCIe, both ways, mean of the last tick"),
        |d| rate(d, |sample| sample.pcie_bytes),
    ),
    figure(
        gauge(
            "cardhour_device_holders",
            "",
            "How many hold it; no series where a source of holders could not be asked",
        ),
        |d| Some(d.holders? as f64),
    ),
    figure(
        gauge("cardhour_device_share", "ratio", "Its part of the card: 1 for a card, compute slices for an instance"),
        |d| Some(share(d.told.as_ref()?.share)),
    ),
    figure(
        gauge(
            "cardhour_device_telemetry",
            "",
            "1 where the last tick said how busy it was, 0 where it didn't: its mean over time is how much was seen",
        ),
        |d| {
            let is_told = d.sample.as_ref().is_some_and(|sample| sample.sm_active_pct.seen().is_some());
            Some(f64::from(u8::from(is_told)))
        },
    ),
];

const SM_ACTIVE: Family = gauge(
    "cardhour_device_sm_active",
    "ratio",
    "How busy the multiprocessors were over the last tick. basis: gpm is their activity, duty_cycle the time in which any kernel ran; never compare the two",
);
const DEVICE_INFO: Family = gauge("cardhour_device_info", "", "What a device is");
const ECC: Family = counter("cardhour_card_ecc_errors", "", "Memory errors since the driver was loaded");
const ECC_OF_LIFE: Family = counter("cardhour_card_ecc_lifetime_errors", "", "Memory errors over the card's life");
const RETIRED: Family =
    counter("cardhour_card_retired_pages", "", "Pages of memory retired, by what made it needful: before Ampere");
const NVLINKS: Family =
    gauge("cardhour_card_nvlinks", "", "Links to other cards that work, and that there are and don't");
const NVLINK_ERRORS: Family =
    counter("cardhour_card_nvlink_errors", "", "Errors of all links to other cards, since the driver was loaded");
const REMAPPED: Family =
    counter("cardhour_card_remapped_rows", "", "Rows of memory replaced over the card's life, by what made it needful");
const XIDS: Family =
    counter("cardhour_card_xid_errors", "", "Errors (XID) that the driver told of since the collector started");
const THROTTLED: Family = gauge("cardhour_card_throttled", "", "1 while the clocks are held down for this reason");
const THROTTLED_TIME: Family =
    counter("cardhour_card_throttled", "seconds", "Time below the wanted clock, since the driver was loaded");

/// Bits of `nvmlClocksEventReasons` and what they are called here.
const THROTTLE_REASONS: [(u64, &str); 9] = [
    (0x1, "gpu_idle"),
    (0x2, "clocks_setting"),
    (0x4, "power_cap"),
    (0x8, "hardware_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "software_thermal"),
    (0x40, "hardware_thermal"),
    (0x80, "power_brake"),
    (0x100, "display_clocks"),
];

/// Labels of a device's series.
struct Named<'a> {
    device: &'a Device,
    card: Vec<Label<'a>>,
    labels: Vec<Label<'a>>,
}

/// Every family of cards and devices.
pub fn write(families: &mut Families<'_>, snapshot: &Snapshot, about: &About) -> fmt::Result {
    let named: Vec<Named<'_>> = snapshot.devices.iter().map(|device| name(device, about)).collect();
    let cards: Vec<&Named<'_>> = named.iter().filter(|named| named.device.is_card()).collect();
    let devices: Vec<&Named<'_>> = named.iter().filter(|named| !named.device.is_cut).collect();
    info(families, &named)?;
    for Figure { family, value } in &CARD {
        families.write(*family, cards.iter().filter_map(|n| Some((&*n.card, None, value(n.device)?))))?;
    }
    families.write(
        XIDS,
        cards.iter().filter_map(|n| Some((&*n.card, None, *snapshot.tally.xids.get(&n.device.id.card_uuid)? as f64))),
    )?;
    for (family, [corrected, uncorrected]) in [(ECC, [0, 1]), (ECC_OF_LIFE, [2, 3])] {
        let rows = cards.iter().flat_map(|n| {
            let ecc = &n.device.state.health.ecc;
            let all = [
                ecc.corrected_volatile_total,
                ecc.uncorrected_volatile_total,
                ecc.corrected_aggregate_total,
                ecc.uncorrected_aggregate_total,
            ];
            [("corrected", all[corrected]), ("uncorrected", all[uncorrected])]
                .into_iter()
                .filter_map(|(kind, errors)| Some((&*n.card, Some(("kind", kind)), count(errors)?)))
        });
        families.write(family, rows)?;
    }
    let remapped = cards.iter().flat_map(|n| {
        let health = &n.device.state.health;
        [("correctable", health.remapped_correctable_rows), ("uncorrectable", health.remapped_uncorrectable_rows)]
            .into_iter()
            .filter_map(|(cause, rows)| Some((&*n.card, Some(("cause", cause)), count(rows)?)))
    });
    families.write(REMAPPED, remapped)?;
    let retired = cards.iter().flat_map(|n| {
        let health = &n.device.state.health;
        [("single_bit", health.retired_single_bit_pages), ("double_bit", health.retired_double_bit_pages)]
            .into_iter()
            .filter_map(|(cause, pages)| Some((&*n.card, Some(("cause", cause)), count(pages)?)))
    });
    families.write(RETIRED, retired)?;
    let links = cards.iter().flat_map(|n| {
        let links = &n.device.state.health.nvlinks;
        [("up", links.up), ("down", links.down)]
            .into_iter()
            .filter_map(|(state, links)| Some((&*n.card, Some(("state", state)), f64::from(links.seen()?))))
    });
    families.write(NVLINKS, links)?;
    let link_errors = cards.iter().flat_map(|n| {
        let links = &n.device.state.health.nvlinks;
        let all = [
            ("crc_flit", links.crc_flit_errors_total),
            ("crc_data", links.crc_data_errors_total),
            ("crc", links.crc_errors_total),
            ("replay", links.replays_total),
            ("recovery", links.recoveries_total),
            ("ecc_data", links.ecc_data_errors_total),
        ];
        all.into_iter().filter_map(|(kind, errors)| Some((&*n.card, Some(("kind", kind)), count(errors)?)))
    });
    families.write(NVLINK_ERRORS, link_errors)?;
    let throttled =
        cards.iter().filter_map(|n| Some((n, n.device.state.throttle_reasons_bits.seen()?))).flat_map(|(n, bits)| {
            let is_on = move |bit: u64| f64::from(u8::from(bits & bit != 0));
            THROTTLE_REASONS.iter().map(move |(bit, reason)| (&*n.card, Some(("reason", *reason)), is_on(*bit)))
        });
    families.write(THROTTLED, throttled)?;
    let throttled_time = cards.iter().flat_map(|n| {
        let health = &n.device.state.health;
        [("power", health.power_violation_ns_total), ("thermal", health.thermal_violation_ns_total)]
            .into_iter()
            .filter_map(|(reason, ns)| Some((&*n.card, Some(("reason", reason)), count(ns)? / 1e9)))
    });
    families.write(THROTTLED_TIME, throttled_time)?;
    let active = devices.iter().filter_map(|n| {
        let sample = n.device.sample.as_ref()?;
        Some((&*n.labels, Some(("basis", sample.use_basis.name())), ratio(sample.sm_active_pct)?))
    });
    families.write(SM_ACTIVE, active)?;
    for Figure { family, value } in &DEVICE {
        families.write(*family, devices.iter().filter_map(|n| Some((&*n.labels, None, value(n.device)?))))?;
    }
    Ok(())
}

/// What each device is, cards that are cut among them: an instance's parent is its `card_uuid`.
fn info(families: &mut Families<'_>, named: &[Named<'_>]) -> fmt::Result {
    let numbers: Vec<[String; 2]> = named
        .iter()
        .map(|n| {
            n.device
                .id
                .mig
                .map_or_else(Default::default, |m| [m.gpu_instance.to_string(), m.compute_instance.to_string()])
        })
        .collect();
    let rows: Vec<Vec<Label<'_>>> = named
        .iter()
        .zip(&numbers)
        .map(|(n, [gpu_instance, compute_instance])| {
            let told = n.device.told.as_ref();
            let mut labels = n.labels.clone();
            labels.push(("pci_bus_id", &n.device.id.pci_bus_id));
            let more = [
                (
                    "kind",
                    Some(if n.device.is_card() {
                        if n.device.is_cut { "cut_card" } else { "card" }
                    } else {
                        "instance"
                    }),
                ),
                ("driver", told.and_then(|told| told.driver.as_deref())),
                ("gpu_instance", Some(gpu_instance.as_str())),
                ("compute_instance", Some(compute_instance.as_str())),
            ];
            labels.extend(more.into_iter().filter_map(|(key, value)| Some((key, value.filter(|v| !v.is_empty())?))));
            labels
        })
        .collect();
    families.write(DEVICE_INFO, rows.iter().map(|labels| (&**labels, None, 1.0)))
}

fn name<'a>(device: &'a Device, about: &'a About) -> Named<'a> {
    let mut card: Vec<Label<'a>> =
        vec![("cluster", &about.cluster), ("node", &about.node), ("card_uuid", &device.id.card_uuid)];
    if let Some(model) = device.told.as_ref().and_then(|told| told.model.as_deref()) {
        card.push(("model", model));
    }
    let mut labels = card.clone();
    labels.push(("device_uuid", &device.id.device_uuid));
    if let Some(profile) = device.mig_profile.as_deref() {
        labels.push(("mig_profile", profile));
    }
    Named { device, card, labels }
}

fn whole(reading: Reading<i64>) -> Option<f64> {
    Some(reading.seen()? as f64)
}

fn thousandth(reading: Reading<i64>) -> Option<f64> {
    Some(reading.seen()? as f64 / 1000.0)
}

fn mega(reading: Reading<i64>) -> Option<f64> {
    Some(reading.seen()? as f64 * 1e6)
}

fn count(reading: Reading<u64>) -> Option<f64> {
    Some(reading.seen()? as f64)
}

fn mark(reading: Reading<bool>) -> Option<f64> {
    Some(f64::from(u8::from(reading.seen()?)))
}

fn ratio(reading: Reading<Percent>) -> Option<f64> {
    Some(f64::from(reading.seen()?.thousandths()) / 100_000.0)
}

fn rate(device: &Device, bytes: fn(&cardhour_domain::Sample) -> Reading<i64>) -> Option<f64> {
    let sample = device.sample.as_ref()?;
    let ms = sample.during.length_ms();
    (ms > 0).then_some(())?;
    Some(bytes(sample).seen()? as f64 * 1000.0 / ms as f64)
}

/// A share as a part of its card.
pub fn share(share: CardShare) -> f64 {
    share.parts() as f64 / CardShare::CARD.parts() as f64
}
