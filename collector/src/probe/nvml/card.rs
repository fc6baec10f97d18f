//! One physical card, while the library is loaded: what is asked of it each tick.

mod health;
mod nvlinks;
mod rings;
mod sensors;
mod sleep;
mod values;

pub use values::put_memory;

use super::call::{Call, Line};
use super::fault::{Fault, code};
use super::gpm::Monitor;
use super::processes::{Processes, SLICE_LIST_EVERY_US};
use super::raw::{Buffers, FieldValue, Handle, ListedProcess, ProcessUse, Raw, Ring};
use super::slices::{self, Mode, Slice};
use crate::holders::DeviceProcess;
use crate::probe::governor::Pace;
use crate::probe::{
    CardListing, DeviceId, DeviceReading, DeviceState, GpmState, HealthState, Heartbeat, MigPlace, Moment, Rows,
};
use cardhour_domain::{CardShare, Gap, Name, Reading};
use nvml_wrapper::Device;
use rings::RingState;
use sleep::Sleep;
use std::sync::Arc;
use values::Turn;

/// What ticks may be late by, and a list still be the one of its time. Unit: microseconds.
const LATE_US: i64 = 500_000;

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
    /// The driver's number of it: shown, never an identity.
    driver_index: Option<u32>,
    /// The N of its `/dev/nvidiaN`.
    minor: Option<u32>,
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
    /// When its instances were last asked for their processes one by one.
    slices_listed_us: Option<i64>,
    /// When they might have been.
    lists_asked_us: Option<i64>,
    health: HealthState,
    power_limit_mw: Reading<i64>,
    /// How it sleeps; none while it is awake.
    sleep: Option<Sleep>,
}

/// Whether a scan found the card cut otherwise than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As it was.
    Same,
    /// Otherwise.
    New,
}

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
        let driver_index = line.call_part(Call::Identity, || Ok(device.index()?)).seen();
        let minor = line.call_part(Call::Identity, || Ok(device.minor_number()?)).seen();
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
            driver_index,
            minor,
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
            slices_listed_us: None,
            lists_asked_us: None,
            health: HealthState::missing(Gap::CollectorDown),
            power_limit_mw: Reading::Missing(Gap::CollectorDown),
            sleep: None,
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
        self.slices_listed_us = None;
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
        if let Some(sleep) = self.sleep {
            return self.poll_asleep(at, sleep);
        }
        if self.mode != Mode::On {
            let now = self.line.call(Call::UtilizationRates, || Ok(self.device.utilization_rates()?));
            let (busy_percent, memory_percent) = (now.map_ref(|now| now.gpu), now.map_ref(|now| now.memory));
            self.busy.read(Ring::Busy, &mut self.line, self.handle, tools, at, busy_percent);
            if !self.is_monitored() {
                self.memory.read(Ring::Memory, &mut self.line, self.handle, tools, at, memory_percent);
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
        state.gpm = match &mut self.monitor {
            Reading::Seen(monitor) if is_spared => monitor.last(),
            Reading::Seen(monitor) => {
                monitor.read(&mut self.line, self.handle, None, at.monotonic_us, &mut tools.buffers)
            }
            Reading::Missing(gap) => GpmState::missing(*gap),
        };
        state.health = self.health;
        state.power_limit_mw = self.power_limit_mw;
        out.push(DeviceReading {
            id: self.id.clone(),
            driver_index: self.driver_index,
            minor: self.minor,
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
            state.gpm = if is_spared {
                slice.last_monitored()
            } else {
                slice.read_monitor(tools, self.handle, at.monotonic_us)
            };
            out.push(DeviceReading {
                id: DeviceId { device_uuid: slice.uuid.clone(), mig: Some(slice.place), ..self.id.clone() },
                driver_index: self.driver_index,
                minor: self.minor,
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

    /// Its processes, in one call a list; where the driver keeps those of a card that is cut from us, in one a list and instance, and rarer for that:
    /// none where it isn't time yet.
    pub fn list(
        &mut self,
        tools: &mut Tools<'nvml>,
        at: Moment,
        turn: u32,
        out: &mut Vec<DeviceProcess>,
    ) -> Option<CardListing> {
        if self.slices.is_empty() || self.line.off(Call::ComputeProcesses) != Some(Gap::NoPermission) {
            let places: Vec<(Name, MigPlace)> =
                self.slices.iter().map(|slice| (slice.uuid.clone(), slice.place)).collect();
            let listing = self.processes.list(&mut self.line, self.handle, tools, &self.id, &places, turn, out);
            if self.slices.is_empty() || listing.processes != Reading::Missing(Gap::NoPermission) {
                return Some(listing);
            }
            tracing::info!(device = %self.id.card_uuid, "its process list is refused, so each instance's own is read, each minute and a half");
        }
        let asked_us = self.lists_asked_us.replace(at.monotonic_us);
        if let (Some(listed_us), Some(asked_us)) = (self.slices_listed_us, asked_us)
            && at.monotonic_us - listed_us + (at.monotonic_us - asked_us) <= SLICE_LIST_EVERY_US + LATE_US
        {
            // The next time will do.
            return None;
        }
        self.slices_listed_us = Some(at.monotonic_us);
        Some(self.processes.list_by_slice(&mut self.slices, tools, &self.id, out))
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
