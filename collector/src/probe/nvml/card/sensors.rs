//! What a card's counters, sensors and engines say at a tick.

use super::values::{AsPercent, Turn, count, put_memory};
use super::{Card, Tools};
use crate::probe::DeviceState;
use crate::probe::nvml::call::Call;
use crate::probe::nvml::raw::{Field, MEMORY_TEMPERATURE};
use cardhour_domain::{Gap, Reading};
use nvml_wrapper::enum_wrappers::device::Clock;

/// One call for what a tick needs of counters. Source: `NVML_FI_DEV_*`.
const TICK_FIELDS: [Field; 6] = [
    Field::of_device(MEMORY_TEMPERATURE),
    Field::of_device(83),
    Field { id: 138, scope: Field::ALL_LINKS },
    Field { id: 139, scope: Field::ALL_LINKS },
    Field::of_device(197),
    Field::of_device(198),
];

impl<'nvml> Card<'nvml> {
    pub(super) fn read_counters(&mut self, tools: &mut Tools<'nvml>, state: &mut DeviceState) {
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

    pub(super) fn read_sensors(&mut self, tools: &mut Tools<'nvml>, state: &mut DeviceState) {
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

    pub(super) fn read_engines(&mut self, tools: &mut Tools<'nvml>, state: &mut DeviceState) {
        let (device, line, handle) = (&self.device, &mut self.line, self.handle);
        let rates = line.call(Call::UtilizationRates, || Ok(device.utilization_rates()?));
        state.utilization_pct = rates.map_ref(|rates| rates.gpu).and_percent();
        state.memory_utilization_pct = rates.map_ref(|rates| rates.memory).and_percent();
        state.encoder_pct = line.call(Call::Encoder, || Ok(device.encoder_utilization()?.utilization)).and_percent();
        state.decoder_pct = line.call(Call::Decoder, || Ok(device.decoder_utilization()?.utilization)).and_percent();
        state.jpeg_pct = line.call(Call::Jpeg, || tools.raw.jpeg_percent(handle)).and_percent();
        state.optical_flow_pct = line.call(Call::OpticalFlow, || tools.raw.optical_flow_percent(handle)).and_percent();
    }
}
