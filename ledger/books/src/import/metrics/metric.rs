//! The metrics that are read, by all the names they have had.

use super::look::{Signals, busiest};
use super::quantity::{self, Unit};
use cardhour_domain::{Reading, SampleSource};
use rust_decimal::Decimal;

/// What a metric tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// Activity of the multiprocessors.
    SmActive,
    /// Activity of the graphics and compute engine.
    EngineActive,
    /// Part of the time in which any kernel ran.
    DutyCycle,
    /// Activity of the memory by the performance monitor.
    MemActive,
    /// Part of the time in which memory was read or written.
    MemDutyCycle,
    /// Encoder, decoder.
    Media,
    /// Memory in use.
    MemUsed,
    /// Sent over PCIe.
    PcieSent,
    /// Received over PCIe.
    PcieReceived,
    /// Sent over NVLink.
    NvlinkSent,
    /// Received over NVLink.
    NvlinkReceived,
    /// Power.
    Power,
    /// The most the card may draw.
    PowerLimit,
    /// The card's counter of energy.
    Energy,
    /// Temperature.
    Temperature,
}

/// A metric by one of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// What it tells.
    pub signal: Signal,
    /// In which unit.
    pub unit: Unit,
    /// Whose it is.
    pub source: SampleSource,
}

const fn dcgm(name: &'static str, signal: Signal, unit: Unit) -> Metric {
    Metric { name, signal, unit, source: SampleSource::Dcgm }
}

const fn smi(name: &'static str, signal: Signal, unit: Unit) -> Metric {
    Metric { name, signal, unit, source: SampleSource::NvidiaSmi }
}

/// Every metric that is read.
///
/// Source: dcgm-exporter's default-counters.csv; the names of DCGM's field naming standard of 4.x, whose old names stay as aliases and
/// whose `GPU_UTIL_RATIO` still is in percent; gpu-monitoring-tools of 2019 for `dcgm_…`; nvidia_gpu_exporter for `nvidia_smi_…`.
pub const METRICS: &[Metric] = &[
    dcgm("DCGM_FI_PROF_SM_ACTIVE", Signal::SmActive, Unit::Ratio),
    dcgm("DCGM_FI_PROF_SM_UTIL_RATIO", Signal::SmActive, Unit::Ratio),
    dcgm("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Signal::EngineActive, Unit::Ratio),
    dcgm("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", Signal::EngineActive, Unit::Ratio),
    dcgm("DCGM_FI_DEV_GPU_UTIL", Signal::DutyCycle, Unit::Percent),
    dcgm("DCGM_FI_DEV_GPU_UTIL_RATIO", Signal::DutyCycle, Unit::Percent),
    dcgm("dcgm_gpu_utilization", Signal::DutyCycle, Unit::Percent),
    dcgm("DCGM_FI_PROF_DRAM_ACTIVE", Signal::MemActive, Unit::Ratio),
    dcgm("DCGM_FI_PROF_DRAM_UTIL_RATIO", Signal::MemActive, Unit::Ratio),
    dcgm("DCGM_FI_DEV_MEM_COPY_UTIL", Signal::MemDutyCycle, Unit::Percent),
    dcgm("dcgm_mem_copy_utilization", Signal::MemDutyCycle, Unit::Percent),
    dcgm("DCGM_FI_DEV_ENC_UTIL", Signal::Media, Unit::Percent),
    dcgm("DCGM_FI_DEV_DEC_UTIL", Signal::Media, Unit::Percent),
    dcgm("dcgm_enc_utilization", Signal::Media, Unit::Percent),
    dcgm("dcgm_dec_utilization", Signal::Media, Unit::Percent),
    dcgm("DCGM_FI_DEV_FB_USED", Signal::MemUsed, Unit::Mebibytes),
    dcgm("dcgm_fb_used", Signal::MemUsed, Unit::Mebibytes),
    dcgm("DCGM_FI_PROF_PCIE_TX_BYTES", Signal::PcieSent, Unit::Bytes),
    dcgm("DCGM_FI_PROF_PCIE_RX_BYTES", Signal::PcieReceived, Unit::Bytes),
    dcgm("DCGM_FI_PROF_NVLINK_TX_BYTES", Signal::NvlinkSent, Unit::Bytes),
    dcgm("DCGM_FI_PROF_NVLINK_RX_BYTES", Signal::NvlinkReceived, Unit::Bytes),
    dcgm("DCGM_FI_DEV_POWER_USAGE", Signal::Power, Unit::Watts),
    dcgm("DCGM_FI_DEV_BOARD_POWER_WATTS", Signal::Power, Unit::Watts),
    dcgm("dcgm_power_usage", Signal::Power, Unit::Watts),
    dcgm("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", Signal::PowerLimit, Unit::Watts),
    dcgm("DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", Signal::PowerLimit, Unit::Watts),
    dcgm("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Signal::Energy, Unit::Millijoules),
    dcgm("dcgm_total_energy_consumption", Signal::Energy, Unit::Millijoules),
    dcgm("DCGM_FI_DEV_GPU_TEMP", Signal::Temperature, Unit::Whole),
    dcgm("DCGM_FI_DEV_GPU_TEMP_CELSIUS", Signal::Temperature, Unit::Whole),
    dcgm("dcgm_gpu_temp", Signal::Temperature, Unit::Whole),
    smi("nvidia_smi_utilization_gpu_ratio", Signal::DutyCycle, Unit::Ratio),
    smi("nvidia_smi_utilization_memory_ratio", Signal::MemDutyCycle, Unit::Ratio),
    smi("nvidia_smi_utilization_encoder_ratio", Signal::Media, Unit::Ratio),
    smi("nvidia_smi_utilization_decoder_ratio", Signal::Media, Unit::Ratio),
    smi("nvidia_smi_memory_used_bytes", Signal::MemUsed, Unit::Bytes),
    smi("nvidia_smi_power_draw_watts", Signal::Power, Unit::Watts),
    smi("nvidia_smi_enforced_power_limit_watts", Signal::PowerLimit, Unit::Watts),
    smi("nvidia_smi_temperature_gpu", Signal::Temperature, Unit::Whole),
];

/// The metric of that name.
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl Signal {
    /// Whether a mean over a step tells more than its last value: of rates and of power, not of levels and counters.
    pub const fn is_rate(self) -> bool {
        !matches!(self, Self::MemUsed | Self::PowerLimit | Self::Energy | Self::Temperature)
    }

    /// Whether an instance of a card has it of its own. The others are the board's, and repeat for each instance.
    pub const fn is_of_instance(self) -> bool {
        matches!(self, Self::SmActive | Self::EngineActive | Self::MemActive | Self::MemUsed)
    }

    /// Whether the driver has none of it for a card or instance under MIG.
    pub const fn is_lost_under_mig(self) -> bool {
        matches!(self, Self::DutyCycle | Self::MemDutyCycle | Self::Media)
    }
}

impl Metric {
    /// These signals with one value, or the reason why there is none.
    pub fn signals(&self, value: Reading<Decimal>) -> Signals {
        let percent = || quantity::percent(value, self.unit);
        let whole = || quantity::whole(value, self.unit);
        let mut signals = Signals::default();
        match self.signal {
            Signal::SmActive => signals.sm_active_pct = percent(),
            Signal::EngineActive => signals.engine_active_pct = percent(),
            Signal::DutyCycle => signals.duty_cycle_pct = percent(),
            Signal::MemActive => signals.mem_active_pct = percent(),
            Signal::MemDutyCycle => signals.mem_duty_pct = percent(),
            Signal::Media => signals.media_active_pct = busiest(&[percent()]),
            Signal::MemUsed => signals.mem_used_bytes = quantity::memory(value, self.unit),
            Signal::PcieSent => signals.pcie_sent = whole(),
            Signal::PcieReceived => signals.pcie_received = whole(),
            Signal::NvlinkSent => signals.nvlink_sent = whole(),
            Signal::NvlinkReceived => signals.nvlink_received = whole(),
            Signal::Power => signals.power_mw = quantity::power(value, self.unit),
            Signal::PowerLimit => signals.power_limit_mw = quantity::power(value, self.unit),
            Signal::Energy => signals.energy_counter_mj = whole(),
            Signal::Temperature => signals.temperature_c = whole(),
        }
        signals
    }
}
