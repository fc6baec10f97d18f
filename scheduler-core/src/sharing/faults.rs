//! What an Xid reaches.

use cardhour_domain::{AttemptKey, Name, Timestamp};

/// An Xid that the driver reported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct XidSeen {
    /// When.
    pub at: Timestamp,
    /// Its number.
    pub xid: u32,
    /// The holder whose process caused it, where the driver named one.
    pub holder: Option<AttemptKey>,
    /// The MIG instance it is of, where the driver named one.
    pub device_uuid: Option<Name>,
}

/// How a holder ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderEnd {
    /// When.
    pub at: Timestamp,
    /// Which.
    pub holder: AttemptKey,
    /// Whether it failed.
    pub has_failed: bool,
}

/// What a fault reaches by its nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultReach {
    /// The process that caused it. If others fall too, they weren't kept apart.
    Process,
    /// The whole card: it is the hardware's or the driver's, and nobody's doing.
    Card,
    /// Not known of this number.
    Unknown,
}

/// What an Xid reaches.
///
/// Source: NVIDIA, "Xid Errors", the catalogue for Ampere and newer: what asks for the application to be restarted is the process's, what asks
/// for a reset or a restart of the machine is the card's. 94 is an uncorrectable error that was contained to one application, 95 one that wasn't.
pub const fn reach_of(xid: u32) -> FaultReach {
    match xid {
        // Exception of the graphics engine, page fault, corrupt push buffer, and what is reset or cleaned up after a process; contained ECC.
        8 | 11 | 13 | 31 | 32 | 43 | 45 | 69 | 94 => FaultReach::Process,
        // Stopped processing, double-bit ECC, the card's own controller, rows that can't be remapped, NVLink, fallen off the bus, uncontained
        // ECC, GSP.
        46 | 48 | 62 | 64 | 74 | 79 | 95 | 119 | 120 => FaultReach::Card,
        _ => FaultReach::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fault_is_a_processs_and_a_card_off_the_bus_is_nobodys() {
        assert_eq!(reach_of(31), FaultReach::Process);
        assert_eq!(reach_of(94), FaultReach::Process);
        assert_eq!(reach_of(95), FaultReach::Card);
        assert_eq!(reach_of(79), FaultReach::Card);
        assert_eq!(reach_of(999), FaultReach::Unknown);
    }
}
