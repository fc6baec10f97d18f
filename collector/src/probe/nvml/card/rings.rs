//! The driver's rings of a card, as they are read between ticks.

use super::Tools;
use crate::probe::nvml::call::{Call, Line};
use crate::probe::nvml::raw::{Handle, Ring};
use crate::probe::{Moment, RingEntry, RingRead};
use cardhour_domain::Reading;

/// A ring between two ticks.
#[derive(Debug, Default)]
pub struct RingState {
    /// The newest entry's, of those that were read.
    last_stamp_us: u64,
    /// Looks since the last tick.
    pub reads: Vec<RingRead>,
}

impl RingState {
    /// Looks at it; `now_percent` is the driver's own value of its last period.
    pub fn read<'nvml>(
        &mut self,
        kind: Ring,
        line: &mut Line,
        card: Handle<'nvml>,
        tools: &mut Tools<'nvml>,
        at: Moment,
        now_percent: Reading<u32>,
    ) {
        let call = match kind {
            Ring::Busy => Call::BusyRing,
            Ring::Memory => Call::MemoryRing,
        };
        let last = self.last_stamp_us;
        let entries = line.call(call, || {
            let entries = tools.raw.ring(card, kind, last, &mut tools.buffers)?;
            let newer = entries
                .filter(|(stamp_us, _)| *stamp_us > last)
                .map(|(stamp_us, percent)| RingEntry { stamp_us, percent });
            let mut entries: Vec<_> = newer.collect();
            entries.sort_by_key(|entry| entry.stamp_us);
            Ok(entries)
        });
        if let Reading::Seen(entries) = &entries
            && let Some(newest) = entries.last()
        {
            self.last_stamp_us = newest.stamp_us;
        }
        self.reads.push(RingRead { at, entries, now_percent });
    }
}
