//! What a device says at an instant: what the metrics page shows, and what the sampler works from.

use cardhour_domain::{Gap, Percent, Reading};

/// A device at the end of a tick.
///
/// Unit: in each name. What ends in `_total` is a counter since the driver was loaded; it can begin again. A slice has few of them: no sensor
/// of its own for power, temperature or clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceState {
    /// Energy counter.
    pub energy_mj_total: Reading<u64>,
    /// Power, as the driver averages it.
    pub power_mw: Reading<i64>,
    /// The most it may draw now.
    pub power_limit_mw: Reading<i64>,
    /// Of the chip.
    pub temperature_c: Reading<i64>,
    /// Of the memory, where it has a sensor.
    pub memory_temperature_c: Reading<i64>,
    /// Clock of the graphics engine.
    pub graphics_clock_mhz: Reading<i64>,
    /// Clock of the multiprocessors.
    pub sm_clock_mhz: Reading<i64>,
    /// Clock of the memory.
    pub memory_clock_mhz: Reading<i64>,
    /// Clock of the video engines.
    pub video_clock_mhz: Reading<i64>,
    /// 0 is the fastest, 15 the slowest.
    pub performance_state: Reading<i64>,
    /// Why clocks are held down, a bit each: `nvmlClocksEventReasons`.
    pub throttle_reasons_bits: Reading<u64>,
    /// All of its memory.
    pub memory_total_bytes: Reading<i64>,
    /// Given to processes. Where the driver is older than 510 it includes what is reserved.
    pub memory_used_bytes: Reading<i64>,
    /// Given to nobody.
    pub memory_free_bytes: Reading<i64>,
    /// What the driver keeps for itself.
    pub memory_reserved_bytes: Reading<i64>,
    /// Part of the driver's last period in which a kernel ran: a gauge to look at, not what is booked.
    pub utilization_pct: Reading<Percent>,
    /// Part of the driver's last period in which memory was read or written.
    pub memory_utilization_pct: Reading<Percent>,
    /// Video encoder.
    pub encoder_pct: Reading<Percent>,
    /// Video decoder.
    pub decoder_pct: Reading<Percent>,
    /// JPEG engine.
    pub jpeg_pct: Reading<Percent>,
    /// Optical flow engine.
    pub optical_flow_pct: Reading<Percent>,
    /// Sent over PCIe.
    pub pcie_tx_bytes_total: Reading<u64>,
    /// Received over PCIe.
    pub pcie_rx_bytes_total: Reading<u64>,
    /// Sent over all NVLinks.
    pub nvlink_tx_kib_total: Reading<u64>,
    /// Received over all NVLinks.
    pub nvlink_rx_kib_total: Reading<u64>,
    /// The performance monitor's averages over the tick.
    pub gpm: GpmState,
    /// Virtual GPUs that are active on it.
    pub active_vgpus: Reading<u32>,
    /// What is looked at once a minute.
    pub health: HealthState,
    /// The last XID since the collector started, none where there was none; missing where events can't be had.
    pub last_xid: Reading<Option<u64>>,
}

/// Averages by the GPU performance monitor between two of its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpmState {
    /// Metric 1: any graphics or compute engine was active.
    pub graphics_active_pct: Reading<Percent>,
    /// Metric 2: multiprocessors that had work.
    pub sm_active_pct: Reading<Percent>,
    /// Metric 3: warps in flight, of those possible.
    pub sm_occupancy_pct: Reading<Percent>,
    /// Metric 5: any tensor pipe.
    pub tensor_active_pct: Reading<Percent>,
    /// Metric 10: memory bandwidth in use.
    pub dram_active_pct: Reading<Percent>,
    /// Metric 11: double precision.
    pub fp64_active_pct: Reading<Percent>,
    /// Metric 12: single precision.
    pub fp32_active_pct: Reading<Percent>,
    /// Metric 13: half precision.
    pub fp16_active_pct: Reading<Percent>,
    /// Metric 20. The driver counts in MiB/s.
    pub pcie_tx_bytes_per_s: Reading<i64>,
    /// Metric 21.
    pub pcie_rx_bytes_per_s: Reading<i64>,
    /// Metric 60.
    pub nvlink_rx_bytes_per_s: Reading<i64>,
    /// Metric 61.
    pub nvlink_tx_bytes_per_s: Reading<i64>,
}

/// What is looked at once a minute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HealthState {
    /// Memory errors.
    pub ecc: EccState,
    /// Rows replaced for correctable errors.
    pub remapped_correctable_rows: Reading<u64>,
    /// Rows replaced for uncorrectable errors.
    pub remapped_uncorrectable_rows: Reading<u64>,
    /// Rows wait to be replaced at the next reset.
    pub is_remap_pending: Reading<bool>,
    /// A row could not be replaced: the card is to be changed.
    pub is_remap_failed: Reading<bool>,
    /// What the driver wants done: 0 nothing, 1 reset, 2 reboot, 3 drain peers, 4 drain and reset, 5 IMEX.
    pub recovery_action: Reading<u64>,
    /// Pages retired for single-bit errors: before Ampere, where no rows are replaced.
    pub retired_single_bit_pages: Reading<u64>,
    /// Pages retired for a double-bit error.
    pub retired_double_bit_pages: Reading<u64>,
    /// Pages wait to be retired at the next reset.
    pub is_retire_pending: Reading<bool>,
    /// Its links to other cards.
    pub nvlinks: NvLinksState,
    /// Packets that PCIe had to send again.
    pub pcie_replays_total: Reading<u64>,
    /// Generation of its PCIe link.
    pub pcie_link_generation: Reading<i64>,
    /// Lanes of its PCIe link.
    pub pcie_link_width: Reading<i64>,
    /// Time below the wanted clock for power.
    pub power_violation_ns_total: Reading<u64>,
    /// Time below the wanted clock for heat, software's and hardware's limits together.
    pub thermal_violation_ns_total: Reading<u64>,
}

/// Memory errors. Volatile ones begin again when the driver is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EccState {
    /// Corrected, since the driver was loaded.
    pub corrected_volatile_total: Reading<u64>,
    /// Uncorrected, since the driver was loaded.
    pub uncorrected_volatile_total: Reading<u64>,
    /// Corrected, over the card's life.
    pub corrected_aggregate_total: Reading<u64>,
    /// Uncorrected, over the card's life.
    pub uncorrected_aggregate_total: Reading<u64>,
}

/// Links of a card to other cards, all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvLinksState {
    /// Links that work.
    pub up: Reading<u32>,
    /// Links that there are and that don't work.
    pub down: Reading<u32>,
    /// Checksums of flow control that were wrong. Before Hopper.
    pub crc_flit_errors_total: Reading<u64>,
    /// Checksums of data that were wrong. Before Hopper.
    pub crc_data_errors_total: Reading<u64>,
    /// Checksums that were wrong, of which kind the driver doesn't say. From Hopper on.
    pub crc_errors_total: Reading<u64>,
    /// What had to be sent again.
    pub replays_total: Reading<u64>,
    /// How often a link had to be trained anew.
    pub recoveries_total: Reading<u64>,
    /// Data that was wrong in spite of its checksum, on chips that count it.
    pub ecc_data_errors_total: Reading<u64>,
}

impl NvLinksState {
    /// One in which everything is missing for one reason.
    pub const fn missing(gap: Gap) -> Self {
        Self {
            up: Reading::Missing(gap),
            down: Reading::Missing(gap),
            crc_flit_errors_total: Reading::Missing(gap),
            crc_data_errors_total: Reading::Missing(gap),
            crc_errors_total: Reading::Missing(gap),
            replays_total: Reading::Missing(gap),
            recoveries_total: Reading::Missing(gap),
            ecc_data_errors_total: Reading::Missing(gap),
        }
    }
}

impl DeviceState {
    /// One in which everything is missing for one reason.
    pub const fn missing(gap: Gap) -> Self {
        Self {
            energy_mj_total: Reading::Missing(gap),
            power_mw: Reading::Missing(gap),
            power_limit_mw: Reading::Missing(gap),
            temperature_c: Reading::Missing(gap),
            memory_temperature_c: Reading::Missing(gap),
            graphics_clock_mhz: Reading::Missing(gap),
            sm_clock_mhz: Reading::Missing(gap),
            memory_clock_mhz: Reading::Missing(gap),
            video_clock_mhz: Reading::Missing(gap),
            performance_state: Reading::Missing(gap),
            throttle_reasons_bits: Reading::Missing(gap),
            memory_total_bytes: Reading::Missing(gap),
            memory_used_bytes: Reading::Missing(gap),
            memory_free_bytes: Reading::Missing(gap),
            memory_reserved_bytes: Reading::Missing(gap),
            utilization_pct: Reading::Missing(gap),
            memory_utilization_pct: Reading::Missing(gap),
            encoder_pct: Reading::Missing(gap),
            decoder_pct: Reading::Missing(gap),
            jpeg_pct: Reading::Missing(gap),
            optical_flow_pct: Reading::Missing(gap),
            pcie_tx_bytes_total: Reading::Missing(gap),
            pcie_rx_bytes_total: Reading::Missing(gap),
            nvlink_tx_kib_total: Reading::Missing(gap),
            nvlink_rx_kib_total: Reading::Missing(gap),
            gpm: GpmState::missing(gap),
            active_vgpus: Reading::Missing(gap),
            health: HealthState::missing(gap),
            last_xid: Reading::Missing(gap),
        }
    }
}

impl GpmState {
    /// One in which everything is missing for one reason.
    pub const fn missing(gap: Gap) -> Self {
        Self {
            graphics_active_pct: Reading::Missing(gap),
            sm_active_pct: Reading::Missing(gap),
            sm_occupancy_pct: Reading::Missing(gap),
            tensor_active_pct: Reading::Missing(gap),
            dram_active_pct: Reading::Missing(gap),
            fp64_active_pct: Reading::Missing(gap),
            fp32_active_pct: Reading::Missing(gap),
            fp16_active_pct: Reading::Missing(gap),
            pcie_tx_bytes_per_s: Reading::Missing(gap),
            pcie_rx_bytes_per_s: Reading::Missing(gap),
            nvlink_rx_bytes_per_s: Reading::Missing(gap),
            nvlink_tx_bytes_per_s: Reading::Missing(gap),
        }
    }
}

impl HealthState {
    /// One in which everything is missing for one reason.
    pub const fn missing(gap: Gap) -> Self {
        Self {
            ecc: EccState {
                corrected_volatile_total: Reading::Missing(gap),
                uncorrected_volatile_total: Reading::Missing(gap),
                corrected_aggregate_total: Reading::Missing(gap),
                uncorrected_aggregate_total: Reading::Missing(gap),
            },
            remapped_correctable_rows: Reading::Missing(gap),
            remapped_uncorrectable_rows: Reading::Missing(gap),
            is_remap_pending: Reading::Missing(gap),
            is_remap_failed: Reading::Missing(gap),
            retired_single_bit_pages: Reading::Missing(gap),
            retired_double_bit_pages: Reading::Missing(gap),
            is_retire_pending: Reading::Missing(gap),
            nvlinks: NvLinksState::missing(gap),
            recovery_action: Reading::Missing(gap),
            pcie_replays_total: Reading::Missing(gap),
            pcie_link_generation: Reading::Missing(gap),
            pcie_link_width: Reading::Missing(gap),
            power_violation_ns_total: Reading::Missing(gap),
            thermal_violation_ns_total: Reading::Missing(gap),
        }
    }
}
