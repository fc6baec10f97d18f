//! How a card is cut: its MIG instances.

use super::call::{Call, Line};
use super::card::Tools;
use super::fault::{Fault, code};
use super::gpm::Monitor;
use super::raw::{Handle, ProcessList, Raw};
use crate::probe::{DeviceState, GpmState, MigPlace};
use cardhour_domain::{CardShare, Gap, Name, Reading};
use nvml_wrapper::Device;

/// Number of profiles that NVML knows. Source: `NVML_GPU_INSTANCE_PROFILE_COUNT` of CUDA 13, with room.
const PROFILES: u32 = 16;

/// One instance.
#[derive(Debug)]
pub struct Slice<'nvml> {
    /// Its UUID.
    pub uuid: Name,
    /// Where it lies.
    pub place: MigPlace,
    /// Its profile, such as `1g.10gb`.
    pub profile: Option<Name>,
    /// Its part of the card.
    pub share: CardShare,
    /// Its memory. Unit: bytes.
    pub memory_bytes: Option<i64>,
    /// Calls on it.
    pub line: Line,
    /// Valid until the card is cut anew, when another instance may get the same.
    handle: Handle<'nvml>,
    monitor: Reading<Monitor<'nvml>>,
}

/// An instance as a scan finds it, before more is asked of it.
pub struct Found<'nvml> {
    device: Device<'nvml>,
    uuid: Name,
}

/// Whether a card is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It can't be.
    Unable,
    /// It could be.
    Off,
    /// It is.
    On,
}

impl Mode {
    /// As the driver tells it.
    pub fn read(line: &mut Line, device: &Device<'_>) -> Reading<Self> {
        match line.call(Call::MigMode, || Ok(device.mig_mode()?)) {
            Reading::Seen(mode) if mode.current == 1 => Reading::Seen(Self::On),
            Reading::Seen(_) => Reading::Seen(Self::Off),
            Reading::Missing(Gap::NotSupported) => Reading::Seen(Self::Unable),
            Reading::Missing(gap) => Reading::Missing(gap),
        }
    }
}

/// The instances of a card that is cut; missing where one of them could not be asked, so that nothing follows from those that could.
pub fn scan<'nvml>(line: &mut Line, card: &Device<'nvml>, most: u32) -> Reading<Vec<Found<'nvml>>> {
    let mut found = Vec::with_capacity(most as usize);
    for slot in 0..most {
        let device = line.call_part(Call::MigHandle, || match card.mig_device_by_index(slot).map_err(Fault::from) {
            Ok(device) => Ok(Some(device)),
            // An empty slot.
            Err(Fault::Code(code::NOT_FOUND | code::INVALID_ARGUMENT)) => Ok(None),
            Err(fault) => Err(fault),
        });
        match device {
            Reading::Seen(None) => {}
            Reading::Missing(gap) => return Reading::Missing(gap),
            Reading::Seen(Some(device)) => {
                match line.call_part(Call::MigIdentity, || as_vanished(device.uuid().map_err(Fault::from))) {
                    Reading::Seen(Some(uuid)) => found.push(Found { device, uuid: uuid.into() }),
                    Reading::Seen(None) => {}
                    Reading::Missing(gap) => return Reading::Missing(gap),
                }
            }
        }
    }
    Reading::Seen(found)
}

/// What is no more between two calls has not gone with its card.
fn as_vanished<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Code(code::NOT_FOUND | code::INVALID_ARGUMENT)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// How many compute slices the whole card has: 7 on an A100 or H100, 4 on an A30.
pub fn slices_of_card(line: &mut Line, card: &Device<'_>, most: u32) -> u32 {
    let widest = (0..PROFILES).filter_map(|profile| {
        line.call_part(Call::ProfileInfo, || as_unknown(card.profile_info(profile).map_err(Fault::from)))
            .seen()
            .flatten()
    });
    widest.map(|profile| profile.slice_count).max().filter(|slices| *slices > 0).unwrap_or(most)
}

fn as_unknown<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Code(code::NOT_FOUND | code::INVALID_ARGUMENT | code::NOT_SUPPORTED)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

impl<'nvml> Slice<'nvml> {
    /// Its own list of processes, into `tools.listed`.
    pub fn processes(&mut self, tools: &mut Tools<'nvml>, list: ProcessList, call: Call) -> Reading<()> {
        self.line.call(call, || tools.raw.processes(self.handle, list, &mut tools.buffers, &mut tools.listed))
    }

    /// An instance that is new. Errors: it was destroyed meanwhile.
    pub fn open(tools: &mut Tools<'nvml>, found: &Found<'nvml>, card_slices: u32, layout: u32) -> Result<Self, Gap> {
        let mut line = Line::new(tools.heartbeat.clone(), &found.uuid);
        let handle = Handle::of(&found.device);
        let (gpu_instance, compute_instance) = read(line.call(Call::MigIdentity, || tools.raw.instance_ids(handle)))?;
        let attributes = line.call(Call::ProfileInfo, || Ok(found.device.attributes()?)).seen();
        let name = line.call_part(Call::Identity, || Ok(found.device.name()?)).seen();
        let profile = name.as_deref().and_then(profile_of);
        let told = attributes.as_ref().map(|attributes| attributes.compute_instance_slice_count);
        let compute_slices = told.or_else(|| slices_of(profile?)).unwrap_or(0);
        let memory_mib = attributes.and_then(|attributes| i64::try_from(attributes.memory_size_mb).ok());
        Ok(Self {
            uuid: found.uuid.clone(),
            place: MigPlace { gpu_instance, compute_instance, layout },
            profile: profile.map(Name::from),
            share: CardShare::from_fraction(compute_slices, card_slices.max(1)).unwrap_or(CardShare::ZERO),
            memory_bytes: memory_mib.and_then(|mib| mib.checked_mul(1_048_576)),
            line,
            handle,
            monitor: Reading::Missing(Gap::NotSupported),
        })
    }

    /// Lays the ground for its averages, from now on. One instance of a GPU instance that is cut further has none of its own.
    pub fn start_monitor(&mut self, raw: Raw<'nvml>, is_alone: bool, has_gpm: bool) {
        self.monitor =
            if is_alone && has_gpm { Monitor::open(raw, &mut self.line) } else { Reading::Missing(Gap::NotSupported) };
    }

    /// The handle of a later scan.
    pub fn renew(&mut self, found: &Found<'nvml>) {
        self.handle = Handle::of(&found.device);
    }

    /// Averages of its performance monitor since the last time, and the ground for the next.
    pub fn read_monitor(&mut self, tools: &mut Tools<'nvml>, card: Handle<'nvml>, now_us: i64) -> GpmState {
        match &mut self.monitor {
            Reading::Seen(monitor) => {
                monitor.read(&mut self.line, card, Some(self.place.gpu_instance), now_us, &mut tools.buffers)
            }
            Reading::Missing(gap) => GpmState::missing(*gap),
        }
    }

    /// What its performance monitor said last.
    pub fn last_monitored(&self) -> GpmState {
        match &self.monitor {
            Reading::Seen(monitor) => monitor.last(),
            Reading::Missing(gap) => GpmState::missing(*gap),
        }
    }

    /// Whether its performance monitor is read.
    pub fn is_monitored(&self) -> bool {
        matches!(self.monitor, Reading::Seen(_)) && !self.line.is_off(Call::GpmSample)
    }

    /// Its state but for the monitor: it has no sensors of its own.
    pub fn state(&mut self, raw: Raw<'nvml>) -> DeviceState {
        let mut state = DeviceState::missing(Gap::NotSupported);
        let handle = self.handle;
        super::card::put_memory(&mut state, self.line.call(Call::Memory, || raw.memory(handle)));
        state
    }

    /// Whether it is the same instance as one that was just found, for all that a scan can tell.
    pub fn is(&self, found: &Found<'nvml>) -> bool {
        self.uuid == found.uuid
    }
}

impl Found<'_> {
    /// Its UUID.
    pub fn uuid(&self) -> &Name {
        &self.uuid
    }
}

fn read<T>(reading: Reading<T>) -> Result<T, Gap> {
    match reading {
        Reading::Seen(value) => Ok(value),
        Reading::Missing(gap) => Err(gap),
    }
}

/// `NVIDIA H100 80GB HBM3 MIG 1g.10gb` names a profile after its card.
fn profile_of(name: &str) -> Option<&str> {
    name.rsplit_once(" MIG ").map(|(_, profile)| profile.trim())
}

/// Compute slices by a profile's name: those of its compute instance where it names one, `1c.3g.20gb`, else all, `3g.20gb`.
fn slices_of(profile: &str) -> Option<u32> {
    let first = profile.split('.').next()?;
    first.strip_suffix('c').or_else(|| first.strip_suffix('g'))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_what_stands_behind_the_model() {
        assert_eq!(profile_of("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb"), Some("1c.3g.20gb"));
        assert_eq!(profile_of("NVIDIA A100-SXM4-40GB"), None);
    }

    #[test]
    fn a_profile_says_how_many_compute_slices_it_has() {
        let slices = ["1g.10gb", "7g.80gb", "1c.3g.20gb", "1g.10gb+me", "strange"].map(slices_of);
        assert_eq!(slices, [Some(1), Some(7), Some(1), Some(1), None]);
    }
}
