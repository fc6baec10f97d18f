//! One physical card, while the library is loaded: what is asked of it each tick.

use super::call::{Call, Line};
use super::fault::{Fault, code};
use super::gpm::Monitor;
use super::processes::Processes;
use super::raw::{Buffers, Field, FieldValue, Handle, ListedProcess, Memory, ProcessUse, Raw, Ring};
use super::slices::{self, Mode, Slice};
use crate::holders::DeviceProcess;
use crate::probe::governor::Pace;
use crate::probe::{
    CardListing, DeviceId, DeviceReading, DeviceState, EccState, GpmState, HealthState, Heartbeat, MigPlace, Moment,
    RingEntry, RingRead, Rows, SeenVgpu,
};
use cardhour_domain::{CardShare, Gap, Name, Percent, Reading};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError};
use std::sync::Arc;

/// What reading any card needs: the library, and buffers that all of them share.
#[derive(Debug)]
pub struct Tools<'nvml> {
    /// Calls past the wrapper.
    pub raw: Raw<'nvml>,
    /// Where each call says that it began.
    pub heartbeat: Arc<Heartbeat>,
    /// Filled by calls.
    pub buffers: Buffers,
    /// Fields of one call.
    pub fields: Vec<FieldValue>,
    /// Processes of one list.
    pub listed: Vec<ListedProcess>,
    /// What processes did.
    pub uses: Vec<ProcessUse>,
}

/// A card that answers.
#[derive(Debug)]
pub struct Card<'nvml> {
    /// Who it is.
    pub id: DeviceId,
    /// Its model.
    pub model: Option<Name>,
    /// Its memory. Unit: bytes.
    pub memory_bytes: Option<i64>,
    /// Calls on it.
    pub line: Line,
    /// Whether it is cut.
    pub mode: Mode,
    /// Its instances.
    pub slices: Vec<Slice<'nvml>>,
    /// The library's name for it.
    pub handle: Handle<'nvml>,
    device: Device<'nvml>,
    most_slices: u32,
    card_slices: u32,
    has_gpm: bool,
    monitor: Reading<Monitor<'nvml>>,
    busy: RingState,
    memory: RingState,
    power_polls: Vec<(Moment, i64)>,
    processes: Processes,
    health: HealthState,
    power_limit_mw: Reading<i64>,
}

/// A ring between two ticks.
#[derive(Debug, Default)]
struct RingState {
    last_stamp_us: u64,
    reads: Vec<RingRead>,
}

/// Whether a scan found the card cut otherwise than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As it was.
    Same,
    /// Otherwise.
    New,
}

/// One call for what a tick needs of counters. Source: `NVML_FI_DEV_*`.
const TICK_FIELDS: [Field; 6] = [
    Field::of_device(super::raw::MEMORY_TEMPERATURE),
    Field::of_device(83),
    Field { id: 138, scope: Field::ALL_LINKS },
    Field { id: 139, scope: Field::ALL_LINKS },
    Field::of_device(197),
    Field::of_device(198),
];

/// One call a minute for health: replays, rows (correctable, uncorrectable, pending, failed), recovery, time throttled (power, heat by software
/// and hardware).
const HEALTH_FIELDS: [Field; 9] = [
    Field::of_device(94),
    Field::of_device(142),
    Field::of_device(143),
    Field::of_device(144),
    Field::of_device(145),
    Field::of_device(230),
    Field::of_device(74),
    Field::of_device(251),
    Field::of_device(252),
];

impl<'nvml> Card<'nvml> {
    /// Asks who it is. Errors: it doesn't answer.
    pub fn open(tools: &mut Tools<'nvml>, device: Device<'nvml>, at: Moment) -> Result<Self, (Call, Fault)> {
        let mut line = Line::new(tools.heartbeat.clone(), "");
        let (uuid, place) = {
            let mut why = Fault::Garbage;
            let identity = line.call(Call::Identity, || {
                let ask = || -> Result<_, Fault> { Ok((device.uuid()?, device.pci_info()?.bus_id)) };
                ask().inspect_err(|fault| why = *fault)
            });
            match identity {
                Reading::Seen(identity) => identity,
                Reading::Missing(_) => return Err((Call::Identity, why)),
            }
        };
        let uuid = Name::from(uuid);
        let mut line = Line::new(tools.heartbeat.clone(), &uuid);
        let handle = Handle::of(&device);
        let model = line.call_part(Call::Identity, || Ok(device.name()?)).seen().map(Name::from);
        let has_gpm = line.call(Call::GpmSupport, || Ok(device.gpm_support()?)).seen().unwrap_or(false);
        let memory_bytes = line
            .call(Call::Memory, || tools.raw.memory(handle))
            .seen()
            .and_then(|memory| i64::try_from(memory.total).ok());
        // What a card that is cut must not be asked may work when it isn't.
        line.forget();
        let mut card = Self {
            id: DeviceId {
                card_uuid: uuid.clone(),
                device_uuid: uuid,
                pci_bus_id: crate::probe::pci::as_nvml(&place).into(),
                mig: None,
            },
            model,
            memory_bytes,
            line,
            mode: Mode::Unable,
            slices: Vec::new(),
            handle,
            device,
            most_slices: 0,
            card_slices: 0,
            has_gpm,
            monitor: Reading::Missing(Gap::NotSupported),
            busy: RingState::default(),
            memory: RingState::default(),
            power_polls: Vec::new(),
            processes: Processes::default(),
            health: HealthState::missing(Gap::CollectorDown),
            power_limit_mw: Reading::Missing(Gap::CollectorDown),
        };
        // Whether its power is to be integrated has to be known before the first tick.
        card.line.call(Call::Energy, || Ok(card.device.total_energy_consumption()?));
        card.start_monitor(tools, at);
        Ok(card)
    }

    /// Looks how the card is cut; `layout` is the number that a new layout gets.
    pub fn scan(&mut self, tools: &mut Tools<'nvml>, at: Moment, layout: u32) -> Layout {
        let Reading::Seen(mode) = Mode::read(&mut self.line, &self.device) else { return Layout::Same };
        let is_turned = mode != self.mode;
        if is_turned {
            self.mode = mode;
            self.line.forget();
            self.slices.clear();
            self.start_monitor(tools, at);
        }
        if mode != Mode::On {
            return if is_turned { Layout::New } else { Layout::Same };
        }
        if is_turned {
            self.most_slices =
                self.line.call(Call::MigHandle, || Ok(self.device.mig_device_count()?)).seen().unwrap_or(0);
            self.card_slices = slices::slices_of_card(&mut self.line, &self.device, self.most_slices);
        }
        let Reading::Seen(found) = slices::scan(&mut self.line, &self.device, self.most_slices) else {
            return Layout::Same;
        };
        let is_same =
            found.len() == self.slices.len() && self.slices.iter().zip(&found).all(|(slice, found)| slice.is(found));
        if is_same {
            self.slices.iter_mut().zip(&found).for_each(|(slice, found)| slice.renew(found));
            return if is_turned { Layout::New } else { Layout::Same };
        }
        let mut before = std::mem::take(&mut self.slices);
        for found in &found {
            match before.iter().position(|slice| slice.is(found)) {
                Some(i) => {
                    let mut slice = before.swap_remove(i);
                    slice.renew(found);
                    self.slices.push(slice);
                }
                None => match Slice::open(tools, found, self.card_slices, layout) {
                    Ok(slice) => self.slices.push(slice),
                    Err(gap) => {
                        tracing::debug!(slice = %found.uuid(), gap = gap.name(), "an instance vanished while it was looked at")
                    }
                },
            }
        }
        drop(before);
        self.restart_slice_monitors(tools, at);
        Layout::New
    }

    /// What was averaged before the card was cut anew is of other instances: averages begin now.
    pub fn restart_slice_monitors(&mut self, tools: &mut Tools<'nvml>, at: Moment) {
        let instances: Vec<_> = self.slices.iter().map(|slice| slice.place.gpu_instance).collect();
        for slice in &mut self.slices {
            let is_alone = instances.iter().filter(|id| **id == slice.place.gpu_instance).count() == 1;
            slice.start_monitor(tools.raw, is_alone, self.has_gpm);
            slice.read_monitor(tools, self.handle, at.monotonic_us);
        }
    }

    fn start_monitor(&mut self, tools: &mut Tools<'nvml>, at: Moment) {
        // The whole card's averages are of no instance; while it is cut nobody needs them.
        self.monitor = if self.has_gpm && self.mode != Mode::On {
            Monitor::open(tools.raw, &mut self.line)
        } else {
            Reading::Missing(Gap::NotSupported)
        };
        if let Reading::Seen(monitor) = &mut self.monitor {
            monitor.read(&mut self.line, self.handle, None, at.monotonic_us, &mut tools.buffers);
        }
    }

    /// The rings, which wrap after some ten seconds, and power where it has to be integrated.
    pub fn poll(&mut self, tools: &mut Tools<'nvml>, at: Moment) {
        if self.mode != Mode::On {
            let now = self.line.call(Call::UtilizationRates, || Ok(self.device.utilization_rates()?));
            let (busy_percent, memory_percent) = (now.map_ref(|now| now.gpu), now.map_ref(|now| now.memory));
            read_ring(&mut self.busy, Call::BusyRing, Ring::Busy, &mut self.line, self.handle, tools, at, busy_percent);
            if !self.is_monitored() {
                read_ring(
                    &mut self.memory,
                    Call::MemoryRing,
                    Ring::Memory,
                    &mut self.line,
                    self.handle,
                    tools,
                    at,
                    memory_percent,
                );
            }
            self.processes.weigh(&mut self.line, self.handle, tools, at);
        }
        if self.line.is_off(Call::Energy)
            && let Reading::Seen(mw) = self.power_mw()
        {
            self.power_polls.push((at, mw));
        }
    }

    /// Everything a tick has of it: the card first, then its slices. `at` is when its reading began.
    pub fn read(&mut self, tools: &mut Tools<'nvml>, at: Moment, pace: Pace, turn: u32, out: &mut Vec<DeviceReading>) {
        let mut state = DeviceState::missing(Gap::NotSupported);
        self.read_counters(tools, &mut state);
        self.read_sensors(tools, &mut state);
        if self.mode != Mode::On {
            self.read_engines(tools, &mut state);
        }
        let is_spared = pace == Pace::Half && turn % 2 == 1;
        let rows = |is_monitored: bool| if is_monitored && is_spared { Rows::Deferred } else { Rows::Made };
        if let Reading::Seen(monitor) = &mut self.monitor
            && !is_spared
        {
            state.gpm = monitor.read(&mut self.line, self.handle, None, at.monotonic_us, &mut tools.buffers);
        } else if let Reading::Missing(gap) = self.monitor {
            state.gpm = GpmState::missing(gap);
        }
        state.health = self.health;
        state.power_limit_mw = self.power_limit_mw;
        out.push(DeviceReading {
            id: self.id.clone(),
            at,
            is_cut: self.mode == Mode::On,
            rows: rows(self.is_monitored()),
            mig_profile: None,
            busy_ring: std::mem::take(&mut self.busy.reads),
            memory_ring: std::mem::take(&mut self.memory.reads),
            power_polls: std::mem::take(&mut self.power_polls),
            processes: self.processes.count_on(&self.id.device_uuid),
            process_memory_bytes: self.processes.memory_on(&self.id.device_uuid),
            state,
        });
        for slice in &mut self.slices {
            let mut state = slice.state(tools.raw);
            let is_monitored = slice.is_monitored();
            if !is_spared {
                state.gpm = slice.read_monitor(tools, self.handle, at.monotonic_us);
            }
            out.push(DeviceReading {
                id: DeviceId { device_uuid: slice.uuid.clone(), mig: Some(slice.place), ..self.id.clone() },
                at,
                is_cut: false,
                rows: rows(is_monitored),
                mig_profile: slice.profile.clone(),
                busy_ring: Vec::new(),
                memory_ring: Vec::new(),
                power_polls: Vec::new(),
                processes: self.processes.count_on(&slice.uuid),
                process_memory_bytes: self.processes.memory_on(&slice.uuid),
                state,
            });
        }
        self.judge_slices();
    }

    /// Its processes, in one call a list.
    pub fn list(&mut self, tools: &mut Tools<'nvml>, turn: u32, out: &mut Vec<DeviceProcess>) -> CardListing {
        let places: Vec<(Name, MigPlace)> = self.slices.iter().map(|slice| (slice.uuid.clone(), slice.place)).collect();
        self.processes.list(&mut self.line, self.handle, tools, &self.id, &places, turn, out)
    }

    /// Its virtual GPUs.
    pub fn list_vgpus(&mut self, tools: &mut Tools<'nvml>, out: &mut Vec<SeenVgpu>) -> Reading<u32> {
        let instances = match self.line.call(Call::ActiveVgpus, || tools.raw.active_vgpus(self.handle)) {
            Reading::Seen(instances) => instances,
            Reading::Missing(gap) => return Reading::Missing(gap),
        };
        for instance in &instances {
            // One that ended meanwhile is no fault of the card.
            if let Reading::Seen((uuid, machine, bytes)) =
                self.line.call_part(Call::Vgpu, || as_gone(tools.raw.vgpu(*instance)))
            {
                out.push(SeenVgpu {
                    card_uuid: self.id.card_uuid.clone(),
                    uuid: uuid.into(),
                    machine: machine.into(),
                    memory_bytes: match bytes.map(i64::try_from) {
                        Ok(Ok(bytes)) => Reading::Seen(bytes),
                        Ok(Err(_)) => Reading::Missing(Gap::Implausible),
                        Err(fault) => Reading::Missing(fault.gap()),
                    },
                });
            }
        }
        Reading::Seen(u32::try_from(instances.len()).unwrap_or(u32::MAX))
    }

    /// What changes slowly.
    pub fn read_health(&mut self, tools: &mut Tools<'nvml>) {
        let device = &self.device;
        self.power_limit_mw = self.line.call(Call::PowerLimit, || Ok(device.enforced_power_limit()?)).map(i64::from);
        let mut ecc = |kind, counter| self.line.call_part(Call::Ecc, || Ok(device.total_ecc_errors(kind, counter)?));
        let health = &mut self.health;
        health.ecc = EccState {
            corrected_volatile_total: ecc(MemoryError::Corrected, EccCounter::Volatile),
            uncorrected_volatile_total: ecc(MemoryError::Uncorrected, EccCounter::Volatile),
            corrected_aggregate_total: ecc(MemoryError::Corrected, EccCounter::Aggregate),
            uncorrected_aggregate_total: ecc(MemoryError::Uncorrected, EccCounter::Aggregate),
        };
        let got = self
            .line
            .call(Call::FieldValues, || tools.raw.field_values(self.handle, &HEALTH_FIELDS, &mut tools.fields));
        let field = |i: usize| count(got, &tools.fields, i);
        health.remapped_correctable_rows = field(1);
        health.remapped_uncorrectable_rows = field(2);
        health.is_remap_pending = field(3).map(|pending| pending != 0);
        health.is_remap_failed = field(4).map(|failed| failed != 0);
        health.recovery_action = field(5);
        health.power_violation_ns_total = field(6);
        health.thermal_violation_ns_total = match (field(7), field(8)) {
            (Reading::Seen(software), Reading::Seen(hardware)) => Reading::Seen(software.saturating_add(hardware)),
            (Reading::Missing(gap), _) | (_, Reading::Missing(gap)) => Reading::Missing(gap),
        };
        health.pcie_replays_total = field(0);
        health.pcie_link_generation =
            self.line.call_part(Call::PcieLink, || Ok(device.current_pcie_link_gen()?)).map(i64::from);
        health.pcie_link_width =
            self.line.call_part(Call::PcieLink, || Ok(device.current_pcie_link_width()?)).map(i64::from);
    }

    /// Its health, as it was last read.
    pub fn health(&self) -> &HealthState {
        &self.health
    }

    /// The most it may draw, as it was last read. Unit: milliwatts.
    pub fn power_limit_mw(&self) -> Option<i64> {
        self.power_limit_mw.seen()
    }

    /// Its own share and those of its slices add up to no more than the card.
    pub fn stranded(&self) -> CardShare {
        CardShare::CARD.saturating_sub(self.slices.iter().map(|slice| slice.share).sum())
    }

    fn read_counters(&mut self, tools: &mut Tools<'nvml>, state: &mut DeviceState) {
        let got =
            self.line.call(Call::FieldValues, || tools.raw.field_values(self.handle, &TICK_FIELDS, &mut tools.fields));
        let field = |i: usize| count(got, &tools.fields, i);
        state.energy_mj_total = field(1);
        (state.nvlink_tx_kib_total, state.nvlink_rx_kib_total) = (field(2), field(3));
        (state.pcie_tx_bytes_total, state.pcie_rx_bytes_total) = (field(4), field(5));
        state.memory_temperature_c = match field(0) {
            // Cards without the sensor give a number that no card survives.
            Reading::Seen(celsius) if celsius > 200 => Reading::Missing(Gap::NotSupported),
            told => told.map(|celsius| celsius as i64),
        };
        if state.energy_mj_total.seen().is_none() {
            state.energy_mj_total = self.line.call(Call::Energy, || Ok(self.device.total_energy_consumption()?));
        }
    }

    fn read_sensors(&mut self, tools: &mut Tools<'nvml>, state: &mut DeviceState) {
        state.power_mw = self.power_mw();
        let (device, line, handle) = (&self.device, &mut self.line, self.handle);
        state.temperature_c = line.call(Call::Temperature, || tools.raw.temperature_c(handle));
        let mut clock = |which| line.call_part(Call::Clocks, || Ok(device.clock_info(which)?)).map(i64::from);
        (state.sm_clock_mhz, state.memory_clock_mhz) = (clock(Clock::SM), clock(Clock::Memory));
        (state.graphics_clock_mhz, state.video_clock_mhz) = (clock(Clock::Graphics), clock(Clock::Video));
        state.performance_state =
            line.call(Call::PerformanceState, || Ok(device.performance_state()?)).map(|state| i64::from(state.as_c()));
        state.throttle_reasons_bits = line.call(Call::ThrottleReasons, || tools.raw.throttle_reasons(handle));
        put_memory(state, line.call(Call::Memory, || tools.raw.memory(handle)));
    }

    fn read_engines(&mut self, tools: &mut Tools<'nvml>, state: &mut DeviceState) {
        let (device, line, handle) = (&self.device, &mut self.line, self.handle);
        let rates = line.call(Call::UtilizationRates, || Ok(device.utilization_rates()?));
        state.utilization_pct = rates.map_ref(|rates| rates.gpu).and_percent();
        state.memory_utilization_pct = rates.map_ref(|rates| rates.memory).and_percent();
        state.encoder_pct = line.call(Call::Encoder, || Ok(device.encoder_utilization()?.utilization)).and_percent();
        state.decoder_pct = line.call(Call::Decoder, || Ok(device.decoder_utilization()?.utilization)).and_percent();
        state.jpeg_pct = line.call(Call::Jpeg, || tools.raw.jpeg_percent(handle)).and_percent();
        state.optical_flow_pct = line.call(Call::OpticalFlow, || tools.raw.optical_flow_percent(handle)).and_percent();
    }

    /// Whether its performance monitor can be read, as far as is known.
    fn is_monitored(&self) -> bool {
        matches!(self.monitor, Reading::Seen(_)) && !self.line.is_off(Call::GpmSample)
    }

    fn power_mw(&mut self) -> Reading<i64> {
        self.line.call(Call::Power, || Ok(self.device.power_usage()?)).map(i64::from)
    }

    /// A slice whose handle is no longer good was destroyed, which the next scan sees; one that tells of a lost card tells of its card.
    fn judge_slices(&mut self) {
        let faults: Vec<_> = self.slices.iter().filter_map(|slice| slice.line.lost()).collect();
        for (call, fault) in faults {
            match fault {
                Fault::Code(code::INVALID_ARGUMENT | code::GPU_NOT_FOUND) => {
                    self.slices.retain(|slice| slice.line.lost().is_none());
                }
                fault => self.line.lose(call, fault),
            }
        }
    }
}

/// What is no more between two calls has not gone with its card.
fn as_gone<T>(answer: Result<T, Fault>) -> Result<T, Fault> {
    answer.map_err(
        |fault| if fault == Fault::Code(code::INVALID_ARGUMENT) { Fault::Code(code::NOT_FOUND) } else { fault },
    )
}

/// Memory's four figures; the gap in all four where there is one.
pub fn put_memory(state: &mut DeviceState, memory: Reading<Memory>) {
    let bytes = |pick: fn(&Memory) -> u64| match memory {
        Reading::Seen(memory) => i64::try_from(pick(&memory)).map_or(Reading::Missing(Gap::Implausible), Reading::Seen),
        Reading::Missing(gap) => Reading::Missing(gap),
    };
    state.memory_total_bytes = bytes(|memory| memory.total);
    state.memory_used_bytes = bytes(|memory| memory.used);
    state.memory_free_bytes = bytes(|memory| memory.free);
    state.memory_reserved_bytes = match memory {
        Reading::Seen(Memory { reserved: None, .. }) => Reading::Missing(Gap::NotSupported),
        _ => bytes(|memory| memory.reserved.unwrap_or_default()),
    };
}

#[allow(clippy::too_many_arguments, reason = "each is another part of one card, borrowed apart")]
fn read_ring<'nvml>(
    ring: &mut RingState,
    call: Call,
    kind: Ring,
    line: &mut Line,
    card: Handle<'nvml>,
    tools: &mut Tools<'nvml>,
    at: Moment,
    now_percent: Reading<u32>,
) {
    let last = ring.last_stamp_us;
    let entries = line.call(call, || {
        let entries = tools.raw.ring(card, kind, last, &mut tools.buffers)?;
        let newer =
            entries.filter(|(stamp_us, _)| *stamp_us > last).map(|(stamp_us, percent)| RingEntry { stamp_us, percent });
        let mut entries: Vec<_> = newer.collect();
        entries.sort_by_key(|entry| entry.stamp_us);
        Ok(entries)
    });
    if let Reading::Seen(entries) = &entries
        && let Some(newest) = entries.last()
    {
        ring.last_stamp_us = newest.stamp_us;
    }
    ring.reads.push(RingRead { at, entries, now_percent });
}

/// One of the fields that were asked for, as a count.
fn count(got: Reading<()>, fields: &[FieldValue], i: usize) -> Reading<u64> {
    match (got, fields.get(i)) {
        (Reading::Missing(gap), _) => Reading::Missing(gap),
        (Reading::Seen(()), Some(Ok(value))) => {
            u64::try_from(*value).map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
        }
        (Reading::Seen(()), Some(Err(fault))) => Reading::Missing(fault.gap()),
        (Reading::Seen(()), None) => Reading::Missing(Gap::DriverError),
    }
}

/// Small turns of readings that are borrowed, or percentages still to be checked.
trait Turn<T> {
    fn map_ref<U>(&self, pick: impl FnOnce(&T) -> U) -> Reading<U>;
}

impl<T> Turn<T> for Reading<T> {
    fn map_ref<U>(&self, pick: impl FnOnce(&T) -> U) -> Reading<U> {
        match self {
            Self::Seen(value) => Reading::Seen(pick(value)),
            Self::Missing(gap) => Reading::Missing(*gap),
        }
    }
}

trait AsPercent {
    fn and_percent(self) -> Reading<Percent>;
}

impl AsPercent for Reading<u32> {
    fn and_percent(self) -> Reading<Percent> {
        match self {
            Self::Seen(percent) => {
                let thousandths = percent.checked_mul(1000).and_then(|t| i32::try_from(t).ok());
                thousandths
                    .and_then(Percent::from_thousandths)
                    .map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
            }
            Self::Missing(gap) => Reading::Missing(gap),
        }
    }
}
