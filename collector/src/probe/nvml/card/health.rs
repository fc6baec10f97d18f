//! What of a card changes slowly, and what virtual machines have of it.

use super::values::count;
use super::{Card, Tools};
use crate::probe::nvml::call::Call;
use crate::probe::nvml::fault::{Fault, code};
use crate::probe::nvml::raw::Field;
use crate::probe::{EccState, NvLinksState, SeenVgpu};
use cardhour_domain::{Gap, Name, Reading};
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};

/// One call a minute for health: replays, rows (correctable, uncorrectable, pending, failed), recovery, time throttled (power, heat by software
/// and hardware), pages retired before Ampere (single-bit, double-bit, pending), how many links there are.
const HEALTH_FIELDS: [Field; 13] = [
    Field::of_device(94),
    Field::of_device(142),
    Field::of_device(143),
    Field::of_device(144),
    Field::of_device(145),
    Field::of_device(230),
    Field::of_device(74),
    Field::of_device(251),
    Field::of_device(252),
    Field::of_device(29),
    Field::of_device(30),
    Field::of_device(31),
    Field::of_device(91),
];

impl<'nvml> Card<'nvml> {
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
        health.retired_single_bit_pages = field(9);
        health.retired_double_bit_pages = field(10);
        health.is_retire_pending = field(11).map(|pending| pending != 0);
        let links = field(12);
        health.pcie_link_generation =
            self.line.call_part(Call::PcieLink, || Ok(device.current_pcie_link_gen()?)).map(i64::from);
        health.pcie_link_width =
            self.line.call_part(Call::PcieLink, || Ok(device.current_pcie_link_width()?)).map(i64::from);
        let mut nvlinks = NvLinksState::missing(Gap::NotSupported);
        self.read_link_states(links, &mut nvlinks);
        self.read_link_errors(tools, &mut nvlinks);
        self.health.nvlinks = nvlinks;
    }

    /// Its virtual GPUs.
    pub fn list_vgpus(&mut self, tools: &mut Tools<'nvml>, out: &mut Vec<SeenVgpu>) -> Reading<u32> {
        let instances = match self.line.call(Call::ActiveVgpus, || tools.raw.active_vgpus(self.handle)) {
            Reading::Seen(instances) => instances,
            Reading::Missing(gap) => return Reading::Missing(gap),
        };
        for instance in &instances {
            // One that ended meanwhile is no fault of the card.
            if let Reading::Seen(vgpu) = self.line.call_part(Call::Vgpu, || as_gone(tools.raw.vgpu(*instance))) {
                out.push(SeenVgpu {
                    card_uuid: self.id.card_uuid.clone(),
                    uuid: vgpu.uuid.into(),
                    machine: vgpu.machine.into(),
                    profile: vgpu.profile.map(Name::from),
                    memory_bytes: bytes(vgpu.size_bytes),
                    used_bytes: bytes(vgpu.used_bytes),
                });
            }
        }
        Reading::Seen(u32::try_from(instances.len()).unwrap_or(u32::MAX))
    }
}

/// What is no more between two calls has not gone with its card.
pub(super) fn as_gone<T>(answer: Result<T, Fault>) -> Result<T, Fault> {
    answer.map_err(
        |fault| if fault == Fault::Code(code::INVALID_ARGUMENT) { Fault::Code(code::NOT_FOUND) } else { fault },
    )
}

fn bytes(answer: Result<u64, Fault>) -> Reading<i64> {
    match answer.map(i64::try_from) {
        Ok(Ok(bytes)) => Reading::Seen(bytes),
        Ok(Err(_)) => Reading::Missing(Gap::Implausible),
        Err(fault) => Reading::Missing(fault.gap()),
    }
}
