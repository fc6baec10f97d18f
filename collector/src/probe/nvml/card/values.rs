//! Answers of the driver as readings.

use crate::probe::DeviceState;
use crate::probe::nvml::raw::{FieldValue, Memory};
use cardhour_domain::{Gap, Percent, Reading};

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

/// One of the fields that were asked for, as a count.
pub fn count(got: Reading<()>, fields: &[FieldValue], i: usize) -> Reading<u64> {
    match (got, fields.get(i)) {
        (Reading::Missing(gap), _) => Reading::Missing(gap),
        (Reading::Seen(()), Some(Ok(value))) => {
            u64::try_from(*value).map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
        }
        (Reading::Seen(()), Some(Err(fault))) => Reading::Missing(fault.gap()),
        (Reading::Seen(()), None) => Reading::Missing(Gap::DriverError),
    }
}

/// A reading that is looked into and not taken.
pub trait Turn<T> {
    /// The same of what is in it.
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

/// A whole number that should be a percentage.
pub trait AsPercent {
    /// Garbage is a gap.
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
