//! The names, types, units and labels of NVIDIA's dcgm-exporter, for boards and alerts that people have.
//!
//! A name is a row of a table, since DCGM renames its own. As there, whole numbers are plain and others have six decimals, and what is missing is no
//! series. A card that is cut has no series of its own but one for each GPU instance, on which what the board has once (power, energy, temperature)
//! stands again, so that a sum counts it again; [`DcgmNames::once`] leaves it on the card alone.
//!
//! The names are DCGM's, and so is what can be held against them: counters without `_total`, a `modelName`, a type in a name. The owner is a label
//! here where a device has one holder, and changes with it; with several holders there is none, and `cardhour_holder_info` has them all.

use super::snapshot::{Device, Holding, Snapshot};
use crate::holders::kubernetes::GivenAs;
use cardhour_domain::{HolderKind, Name, Percent, Reading};
use std::collections::BTreeSet;
use std::fmt::Write;

/// How DCGM's names are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DcgmNames {
    /// What a board has once stands on its card alone, not on each of its instances.
    pub once: bool,
    /// The label of the node is `hostname`, as from dcgm-exporter 4.8.3 on, not `Hostname`.
    pub small_hostname: bool,
    /// A device whose replicas pods share has a series for each of them, as with the exporter's `--kubernetes-virtual-gpus`.
    pub virtual_gpus: bool,
}

/// Whose a figure is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// A board's: its instances repeat it.
    Board,
    /// A card's that is not cut, or an instance's.
    Device,
    /// A card's that is not cut.
    WholeCard,
}

enum Value {
    Whole(i128),
    Real(f64),
}

struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: Of,
    value: fn(&Device) -> Option<Value>,
}

const fn metric(
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: Of,
    value: fn(&Device) -> Option<Value>,
) -> Metric {
    Metric { name, kind, help, of, value }
}

/// Help as in dcgm-exporter's `default-counters.csv`.
const METRICS: [Metric; 53] = [
    metric("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", Of::Board, |d| whole(d.state.sm_clock_mhz)),
    metric("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", Of::Board, |d| {
        whole(d.state.memory_clock_mhz)
    }),
    metric("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C).", Of::Board, |d| {
        whole(d.state.memory_temperature_c)
    }),
    metric("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", Of::Board, |d| whole(d.state.temperature_c)),
    metric("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", Of::Board, |d| {
        Some(Value::Real(d.state.power_mw.seen()? as f64 / 1000.0))
    }),
    metric("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power limit in force (in W).", Of::Board, |d| {
        Some(Value::Real(d.state.power_limit_mw.seen()? as f64 / 1000.0))
    }),
    metric(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        Of::Board,
        |d| count(d.state.energy_mj_total),
    ),
    metric("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", Of::Board, |d| {
        count(d.state.health.pcie_replays_total)
    }),
    metric("DCGM_FI_DEV_PSTATE", "gauge", "Performance state, 0 the fastest.", Of::Board, |d| {
        whole(d.state.performance_state)
    }),
    metric("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "gauge", "Why clocks are held down, a bit each.", Of::Board, |d| {
        count(d.state.throttle_reasons_bits)
    }),
    metric("DCGM_FI_DEV_PCIE_LINK_GEN", "gauge", "PCIe generation of the link.", Of::Board, |d| {
        whole(d.state.health.pcie_link_generation)
    }),
    metric("DCGM_FI_DEV_PCIE_LINK_WIDTH", "gauge", "PCIe width of the link.", Of::Board, |d| {
        whole(d.state.health.pcie_link_width)
    }),
    metric("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", Of::WholeCard, |d| {
        percent(d.state.utilization_pct)
    }),
    metric("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", Of::WholeCard, |d| {
        percent(d.state.memory_utilization_pct)
    }),
    metric("DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilization (in %).", Of::WholeCard, |d| {
        percent(d.state.encoder_pct)
    }),
    metric("DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilization (in %).", Of::WholeCard, |d| {
        percent(d.state.decoder_pct)
    }),
    metric(
        "DCGM_FI_DEV_POWER_VIOLATION",
        "counter",
        "Throttling duration due to power constraints (in ns).",
        Of::Board,
        |d| count(d.state.health.power_violation_ns_total),
    ),
    metric(
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "counter",
        "Throttling duration due to thermal constraints (in ns).",
        Of::Board,
        |d| count(d.state.health.thermal_violation_ns_total),
    ),
    metric("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", Of::Device, |d| {
        mebibytes(d.state.memory_free_bytes)
    }),
    metric("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", Of::Device, |d| {
        mebibytes(d.state.memory_used_bytes)
    }),
    metric("DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB).", Of::Device, |d| {
        mebibytes(d.state.memory_reserved_bytes)
    }),
    metric("DCGM_FI_DEV_FB_TOTAL", "gauge", "Framebuffer memory (in MiB).", Of::Device, |d| {
        mebibytes(d.state.memory_total_bytes)
    }),
    metric(
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "counter",
        "Total number of single-bit volatile ECC errors.",
        Of::Board,
        |d| count(d.state.health.ecc.corrected_volatile_total),
    ),
    metric(
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "counter",
        "Total number of double-bit volatile ECC errors.",
        Of::Board,
        |d| count(d.state.health.ecc.uncorrected_volatile_total),
    ),
    metric(
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "counter",
        "Total number of single-bit persistent ECC errors.",
        Of::Board,
        |d| count(d.state.health.ecc.corrected_aggregate_total),
    ),
    metric(
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "counter",
        "Total number of double-bit persistent ECC errors.",
        Of::Board,
        |d| count(d.state.health.ecc.uncorrected_aggregate_total),
    ),
    metric(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for uncorrectable errors.",
        Of::Board,
        |d| count(d.state.health.remapped_uncorrectable_rows),
    ),
    metric(
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for correctable errors.",
        Of::Board,
        |d| count(d.state.health.remapped_correctable_rows),
    ),
    metric("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed.", Of::Board, |d| {
        mark(d.state.health.is_remap_failed)
    }),
    metric("DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "Whether remapping of rows is pending.", Of::Board, |d| {
        mark(d.state.health.is_remap_pending)
    }),
    metric(
        "DCGM_FI_DEV_RETIRED_SBE",
        "counter",
        "Total number of retired pages due to single-bit errors.",
        Of::Board,
        |d| count(d.state.health.retired_single_bit_pages),
    ),
    metric(
        "DCGM_FI_DEV_RETIRED_DBE",
        "counter",
        "Total number of retired pages due to double-bit errors.",
        Of::Board,
        |d| count(d.state.health.retired_double_bit_pages),
    ),
    metric("DCGM_FI_DEV_RETIRED_PENDING", "counter", "Total number of pages pending retirement.", Of::Board, |d| {
        mark(d.state.health.is_retire_pending)
    }),
    metric(
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "counter",
        "Total number of NVLink flow-control CRC errors.",
        Of::Board,
        |d| count(d.state.health.nvlinks.crc_flit_errors_total),
    ),
    metric(
        "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "counter",
        "Total number of NVLink data CRC errors.",
        Of::Board,
        |d| count(d.state.health.nvlinks.crc_data_errors_total),
    ),
    metric(
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        "counter",
        "Total number of NVLink retries.",
        Of::Board,
        |d| count(d.state.health.nvlinks.replays_total),
    ),
    metric(
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "counter",
        "Total number of NVLink recovery errors.",
        Of::Board,
        |d| count(d.state.health.nvlinks.recoveries_total),
    ),
    metric(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "counter",
        "Total number of NVLink bandwidth counters for all lanes.",
        Of::WholeCard,
        // DCGM's value is a rate for all that its type says: thousands of KiB a second, both ways.
        |d| {
            let sample = d.sample.as_ref()?;
            let (bytes, ms) = (i128::from(sample.nvlink_bytes.seen()?), i128::from(sample.during.length_ms()));
            (ms > 0).then(|| Value::Whole(bytes / 1024 / ms))
        },
    ),
    metric("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.", Of::Device, |d| {
        ratio(d.state.gpm.graphics_active_pct)
    }),
    metric(
        "DCGM_FI_PROF_SM_ACTIVE",
        "gauge",
        "The ratio of cycles an SM has at least 1 warp assigned.",
        Of::Device,
        |d| ratio(d.state.gpm.sm_active_pct),
    ),
    metric("DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "The ratio of number of warps resident on an SM.", Of::Device, |d| {
        ratio(d.state.gpm.sm_occupancy_pct)
    }),
    metric(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        Of::Device,
        |d| ratio(d.state.gpm.tensor_active_pct),
    ),
    metric(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        Of::Device,
        |d| ratio(d.state.gpm.dram_active_pct),
    ),
    metric("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gauge", "Ratio of cycles the fp64 pipes are active.", Of::Device, |d| {
        ratio(d.state.gpm.fp64_active_pct)
    }),
    metric("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gauge", "Ratio of cycles the fp32 pipes are active.", Of::Device, |d| {
        ratio(d.state.gpm.fp32_active_pct)
    }),
    metric("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gauge", "Ratio of cycles the fp16 pipes are active.", Of::Device, |d| {
        ratio(d.state.gpm.fp16_active_pct)
    }),
    metric(
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "gauge",
        "The rate of data transmitted over the PCIe bus - including both protocol headers and data payloads - in bytes per second.",
        Of::Device,
        |d| whole(d.state.gpm.pcie_tx_bytes_per_s),
    ),
    metric(
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        "gauge",
        "The rate of data received over the PCIe bus - including both protocol headers and data payloads - in bytes per second.",
        Of::Device,
        |d| whole(d.state.gpm.pcie_rx_bytes_per_s),
    ),
    metric(
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
        "gauge",
        "The rate of data transmitted over NVLink, not including protocol headers, in bytes per second.",
        Of::Device,
        |d| whole(d.state.gpm.nvlink_tx_bytes_per_s),
    ),
    metric(
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
        "gauge",
        "The rate of data received over NVLink, not including protocol headers, in bytes per second.",
        Of::Device,
        |d| whole(d.state.gpm.nvlink_rx_bytes_per_s),
    ),
    metric("DCGM_FI_DEV_VIDEO_CLOCK", "gauge", "Video encoder/decoder clock (in MHz).", Of::Board, |d| {
        whole(d.state.video_clock_mhz)
    }),
    metric("DCGM_FI_DEV_JPG_UTIL", "gauge", "JPEG engine utilization (in %).", Of::WholeCard, |d| {
        percent(d.state.jpeg_pct)
    }),
    metric("DCGM_FI_DEV_OFA_UTIL", "gauge", "Optical flow engine utilization (in %).", Of::WholeCard, |d| {
        percent(d.state.optical_flow_pct)
    }),
];

/// What dcgm-exporter says to an XID; what isn't here is an unknown error there as well.
const XIDS: [(u64, &str); 16] = [
    (0, "No Error"),
    (13, "Graphics Engine Exception"),
    (31, "GPU memory page fault"),
    (32, "Invalid or corrupted push buffer stream"),
    (38, "Driver firmware error"),
    (43, "GPU stopped processing"),
    (45, "Preemptive cleanup, due to previous errors"),
    (48, "Double Bit ECC Error"),
    (61, "Internal micro-controller breakpoint/warning"),
    (62, "Internal micro-controller halt"),
    (63, "ECC page retirement or row remapping recording event"),
    (64, "ECC page retirement or row remapper recording failure"),
    (74, "NVLINK Error"),
    (79, "GPU has fallen off the bus"),
    (94, "Contained ECC error"),
    (95, "Uncontained ECC error"),
];

/// Appends DCGM's families to a page in Prometheus's own text.
pub fn write(page: &mut String, snapshot: &Snapshot, node: &Name, names: &DcgmNames) {
    let mut entities: Vec<Entity<'_>> = Vec::new();
    let mut instances: BTreeSet<(&Name, u32)> = BTreeSet::new();
    let mut card: Option<&Device> = None;
    for device in &snapshot.devices {
        match device.id.mig {
            None => {
                card = Some(device);
                if !device.is_cut || names.once {
                    entities.extend(Entity::new(device, device, snapshot, node, names));
                }
            }
            // A GPU instance is one for DCGM, however many compute instances it has.
            Some(place) if instances.insert((&device.id.card_uuid, place.gpu_instance)) => {
                let card = card.filter(|card| card.id.card_uuid == device.id.card_uuid);
                entities.extend(card.into_iter().flat_map(|card| Entity::new(device, card, snapshot, node, names)));
            }
            Some(_) => {}
        }
    }
    for metric in &METRICS {
        let rows =
            entities.iter().filter_map(|entity| Some((entity, (metric.value)(entity.told_by(metric.of, names)?)?)));
        family(page, metric.name, metric.kind, metric.help, rows.map(|(entity, value)| (entity, String::new(), value)));
    }
    let xids = entities.iter().filter_map(|entity| {
        let xid = entity.told_by(Of::Board, names)?.state.last_xid.seen()?.unwrap_or(0);
        let words = XIDS.iter().find(|(known, _)| *known == xid).map_or("Unknown Error", |(_, words)| words);
        let labels = format!(",err_code=\"{xid}\",err_msg=\"{words}\"");
        Some((entity, labels, Value::Whole(i128::from(xid))))
    });
    family(page, "DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", xids);
}

/// What has series of its own.
#[derive(Clone)]
struct Entity<'a> {
    device: &'a Device,
    /// The board it is on.
    card: &'a Device,
    labels: Labels,
    /// Labels of whose it is, which stand behind those of a figure.
    owner: Labels,
}

impl<'a> Entity<'a> {
    /// None while the card doesn't answer: nobody knows its index then, and nothing has a value. Several where those that share a device are apart.
    fn new(device: &'a Device, card: &'a Device, snapshot: &Snapshot, node: &Name, names: &DcgmNames) -> Vec<Self> {
        let Some(index) = device.driver_index else { return Vec::new() };
        let mut labels = Labels::default();
        let mut put = |key: &str, value: &str| labels.put(key, value);
        put("gpu", &index.to_string());
        put("UUID", &device.id.card_uuid);
        put("pci_bus_id", &device.id.pci_bus_id.to_ascii_uppercase());
        put("device", &format!("nvidia{index}"));
        put("modelName", device.told.as_ref().and_then(|told| told.model.as_deref()).unwrap_or_default());
        if let Some(place) = device.id.mig {
            put("GPU_I_PROFILE", device.mig_profile.as_deref().unwrap_or_default());
            put("GPU_I_ID", &place.gpu_instance.to_string());
        }
        put(if names.small_hostname { "hostname" } else { "Hostname" }, node);
        if let Some(driver) = device.told.as_ref().and_then(|told| told.driver.as_deref()) {
            put("DCGM_FI_DRIVER_VERSION", driver);
        }
        let entity = Self { device, card, labels, owner: Labels::default() };
        owners(device, snapshot, names).into_iter().map(|owner| Self { owner, ..entity.clone() }).collect()
    }

    /// The device whose figure stands here; none where this has none of that kind.
    fn told_by(&self, of: Of, names: &DcgmNames) -> Option<&'a Device> {
        let is_instance = self.device.id.mig.is_some();
        match of {
            Of::Board => (!(is_instance && names.once)).then_some(self.card),
            Of::Device => (!self.device.is_cut).then_some(self.device),
            Of::WholeCard => (!is_instance && !self.device.is_cut).then_some(self.device),
        }
    }
}

/// Labels as they are written, `key="value"` after `key="value"`.
#[derive(Clone, Default)]
struct Labels(String);

impl Labels {
    fn put(&mut self, key: &str, value: &str) {
        let text = &mut self.0;
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(key);
        text.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
}

/// Whose a device is, once for each series that it has: its one holder; where pods share its replicas and that is wanted, each of them; else nobody.
fn owners(device: &Device, snapshot: &Snapshot, names: &DcgmNames) -> Vec<Labels> {
    let holders: Vec<&Holding> =
        snapshot.holders.iter().filter(|holding| holding.device_uuid == device.id.device_uuid).collect();
    let replicas = holders.iter().flat_map(|holding| {
        let given = holding.given_as.iter().filter(|given| given.replica.is_some());
        given.map(|given| owner(holding, Some(given)))
    });
    let replicas: Vec<Labels> = replicas.filter(|_| names.virtual_gpus).collect();
    match holders[..] {
        _ if !replicas.is_empty() => replicas,
        [only] => {
            // In several containers it is the pod's.
            let mut containers =
                only.given_as.iter().map(|given| &given.container).collect::<BTreeSet<_>>().into_iter();
            let container = containers.next().filter(|_| containers.next().is_none());
            let given = container.map(|container| GivenAs { container: container.clone(), replica: None });
            vec![owner(only, given.as_ref())]
        }
        _ => vec![Labels::default()],
    }
}

/// A holder as DCGM's exporter labels it, in its order, which is that of the alphabet.
fn owner(holding: &Holding, given: Option<&GivenAs>) -> Labels {
    let mut labels = Labels::default();
    match (holding.kind, holding.job_id.split_once('/')) {
        (HolderKind::Pod, Some((namespace, pod))) => {
            if let Some(given) = given {
                labels.put("container", &given.container);
            }
            labels.put("namespace", namespace);
            labels.put("pod", pod);
            if let Some(replica) = given.and_then(|given| given.replica) {
                labels.put("vgpu", &replica.to_string());
            }
        }
        (HolderKind::SlurmJob, _) => labels.put("hpc_job", &holding.job_id),
        _ => {}
    }
    labels
}

fn family<'a>(
    page: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    rows: impl Iterator<Item = (&'a Entity<'a>, String, Value)>,
) {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return;
    }
    // A String takes whatever it is given.
    let mut line = |text: std::fmt::Arguments<'_>| _ = page.write_fmt(text);
    line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    for (entity, labels, value) in rows {
        let (Labels(device), Labels(owner)) = (&entity.labels, &entity.owner);
        let comma = if owner.is_empty() { "" } else { "," };
        match value {
            Value::Whole(value) => line(format_args!("{name}{{{device}{labels}{comma}{owner}}} {value}\n")),
            Value::Real(value) => line(format_args!("{name}{{{device}{labels}{comma}{owner}}} {value:.6}\n")),
        }
    }
}

fn whole(reading: Reading<i64>) -> Option<Value> {
    Some(Value::Whole(i128::from(reading.seen()?)))
}

fn count(reading: Reading<u64>) -> Option<Value> {
    Some(Value::Whole(i128::from(reading.seen()?)))
}

fn mark(reading: Reading<bool>) -> Option<Value> {
    Some(Value::Whole(i128::from(reading.seen()?)))
}

fn mebibytes(reading: Reading<i64>) -> Option<Value> {
    Some(Value::Whole(i128::from(reading.seen()?) / 1_048_576))
}

fn percent(reading: Reading<Percent>) -> Option<Value> {
    Some(Value::Whole(i128::from(reading.seen()?.thousandths()) / 1000))
}

fn ratio(reading: Reading<Percent>) -> Option<Value> {
    Some(Value::Real(f64::from(reading.seen()?.thousandths()) / 100_000.0))
}
