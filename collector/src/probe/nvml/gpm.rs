//! The GPU performance monitor of one card or GPU instance: averages between two of its samples.

use super::call::{Call, Line};
use super::fault::{Fault, code};
use super::raw::{Buffers, GpmSample, Handle, Raw};
use crate::probe::GpmState;
use cardhour_domain::{Gap, Percent, Reading};

/// What is asked for, in the order of [`GpmState`]. Source: `nvmlGpmMetricId_t`.
const METRICS: [u32; 12] = [1, 2, 3, 5, 10, 11, 12, 13, 20, 21, 60, 61];

/// The monitor's own refresh: two samples closer together tell nothing. Unit: microseconds.
const SHORTEST_US: i64 = 100_000;

/// Two samples that are filled in turn.
#[derive(Debug)]
pub struct Monitor<'nvml> {
    earlier: GpmSample<'nvml>,
    later: GpmSample<'nvml>,
    filled_us: Option<i64>,
    last: GpmState,
}

impl<'nvml> Monitor<'nvml> {
    /// Of a device that has one, by `line`'s word.
    pub fn open(raw: Raw<'nvml>, line: &mut Line) -> Reading<Self> {
        line.call(Call::GpmAlloc, || {
            Ok(Self {
                earlier: GpmSample::new(raw)?,
                later: GpmSample::new(raw)?,
                filled_us: None,
                last: GpmState::missing(Gap::CollectorDown),
            })
        })
    }

    /// What it said last, for ticks in which it is spared.
    pub fn last(&self) -> GpmState {
        self.last
    }

    /// Averages since the last read; missing at the first, which only lays the ground for the next.
    pub fn read(
        &mut self,
        line: &mut Line,
        card: Handle<'nvml>,
        gpu_instance: Option<u32>,
        now_us: i64,
        buffers: &mut Buffers,
    ) -> GpmState {
        self.last = self.average(line, card, gpu_instance, now_us, buffers);
        self.last
    }

    fn average(
        &mut self,
        line: &mut Line,
        card: Handle<'nvml>,
        gpu_instance: Option<u32>,
        now_us: i64,
        buffers: &mut Buffers,
    ) -> GpmState {
        let mut is_taken = false;
        let filled = line.call(Call::GpmSample, || {
            self.later.fill(card, gpu_instance).inspect_err(|fault| is_taken = *fault == Fault::Code(code::IN_USE))
        });
        if let Reading::Missing(gap) = filled {
            return GpmState::missing(if is_taken { Gap::CountersTaken } else { gap });
        }
        let since = self.filled_us;
        if since.is_some_and(|since_us| now_us - since_us < SHORTEST_US) {
            return GpmState::missing(Gap::CollectorDown);
        }
        let state = match since {
            None => GpmState::missing(Gap::CollectorDown),
            Some(_) => {
                let mut averages = Vec::with_capacity(METRICS.len());
                match line.call(Call::GpmMetrics, || {
                    self.later.averages_since(&self.earlier, &METRICS, buffers, &mut averages)
                }) {
                    Reading::Missing(gap) => GpmState::missing(gap),
                    Reading::Seen(()) => state(&averages),
                }
            }
        };
        self.filled_us = Some(now_us);
        std::mem::swap(&mut self.earlier, &mut self.later);
        state
    }
}

fn state(averages: &[Result<f64, Fault>]) -> GpmState {
    let value = |i: usize| match averages[i] {
        Ok(value) => Reading::Seen(value),
        Err(Fault::Code(code::IN_USE)) => Reading::Missing(Gap::CountersTaken),
        Err(fault) => Reading::Missing(fault.gap()),
    };
    let percent = |i| match value(i) {
        // The driver's way to say that it has no value.
        Reading::Seen(value) if value.is_nan() => Reading::Missing(Gap::DriverError),
        Reading::Seen(value) => Percent::from_f64(value).map_or(Reading::Missing(Gap::Implausible), Reading::Seen),
        Reading::Missing(gap) => Reading::Missing(gap),
    };
    let mib = 1_048_576.0;
    let bytes_per_s = |i| match value(i) {
        Reading::Seen(value) if value.is_nan() => Reading::Missing(Gap::DriverError),
        // No link moves a petabyte a second.
        Reading::Seen(value) if (0.0..1e9).contains(&value) => Reading::Seen((value * mib).round() as i64),
        Reading::Seen(_) => Reading::Missing(Gap::Implausible),
        Reading::Missing(gap) => Reading::Missing(gap),
    };
    GpmState {
        graphics_active_pct: percent(0),
        sm_active_pct: percent(1),
        sm_occupancy_pct: percent(2),
        tensor_active_pct: percent(3),
        dram_active_pct: percent(4),
        fp64_active_pct: percent(5),
        fp32_active_pct: percent(6),
        fp16_active_pct: percent(7),
        pcie_tx_bytes_per_s: bytes_per_s(8),
        pcie_rx_bytes_per_s: bytes_per_s(9),
        nvlink_rx_bytes_per_s: bytes_per_s(10),
        nvlink_tx_bytes_per_s: bytes_per_s(11),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_or_above_the_whole_is_a_gap_and_rates_are_bytes() {
        let mut averages = [Ok(50.0); 12];
        averages[1] = Ok(f64::NAN);
        averages[2] = Ok(100.5);
        averages[3] = Err(Fault::Code(code::IN_USE));
        averages[8] = Ok(1.5);
        let state = state(&averages);
        assert_eq!(state.graphics_active_pct, Reading::Seen(Percent::from_thousandths(50_000).unwrap()));
        assert_eq!(state.sm_active_pct, Reading::Missing(Gap::DriverError));
        assert_eq!(state.sm_occupancy_pct, Reading::Missing(Gap::Implausible));
        assert_eq!(state.tensor_active_pct, Reading::Missing(Gap::CountersTaken));
        // 1.5 MiB/s.
        assert_eq!(state.pcie_tx_bytes_per_s, Reading::Seen(1_572_864));
    }
}
