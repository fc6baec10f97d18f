//! What one holder did on a device over one tick, where its processes tell.

use crate::{AttemptKey, Interval, Name, Percent, Reading};

/// What one holder did on a device over one tick: a row of the table `activity`.
///
/// It tells apart the work of several holders on one device, and it carries the signals by which a holder that does nothing is known. Shape:
/// one row a holder, device and tick, only where processes could be looked at. The parts of `sm_active_pct` add up to no more than the
/// device's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The time it covers: that of the device's sample.
    pub during: Interval,
    /// The node.
    pub node: Name,
    /// The physical card's UUID.
    pub card_uuid: Name,
    /// The MIG instance's UUID; the card's own where it is not cut.
    pub device_uuid: Name,
    /// Whose processes: [`crate::Holder::key`].
    pub holder: AttemptKey,
    /// How many it had on the device at the end of the tick.
    pub processes: i64,
    /// Its part of the device's busy time.
    pub sm_active_pct: Reading<Percent>,
    /// Device memory of its processes at the end of the tick. Unit: bytes.
    pub mem_used_bytes: Reading<i64>,
    /// Processor time of its processes over the tick. Unit: milliseconds.
    pub cpu_ms: Reading<i64>,
    /// What its processes read and wrote over the tick, files and network alike where the kernel counts them. Unit: bytes.
    pub io_bytes: Reading<i64>,
    /// Whether somebody typed at one of its terminals, or a graphics process draws.
    pub is_attended: Reading<bool>,
}
