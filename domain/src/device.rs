//! What a node has: cards and their slices as the collector finds them, and what happens to them.

use crate::{CardShare, Name, Timestamp};

/// A card, or one MIG instance of it, as it was found at a moment: a row of the table `devices`.
///
/// Shape: written at start and at each change. A card that is cut has a row of its own and one for each instance; what their shares leave
/// of the card is stranded by the layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeenDevice {
    /// When it was first seen so.
    pub at: Timestamp,
    /// The node.
    pub node: Name,
    /// The node's cluster, as the collector's config names it.
    pub cluster: Name,
    /// The physical card's UUID.
    pub card_uuid: Name,
    /// The instance's UUID; the card's own for the card itself.
    pub device_uuid: Name,
    /// The card's place on the bus, domain of eight digits: `00000000:3b:00.0`.
    pub pci_bus_id: Option<Name>,
    /// The card's model, as the driver names it.
    pub model: Option<Name>,
    /// Memory of this device. Unit: bytes.
    pub memory_bytes: Option<i64>,
    /// Version of the driver.
    pub driver: Option<Name>,
    /// Whether the card is cut: `enabled`, `disabled`; none where it can't be.
    pub mig_mode: Option<Name>,
    /// The instance's profile; none for a card.
    pub mig_profile: Option<Name>,
    /// Its part of the card: whole for a card, compute slices for an instance.
    pub share: CardShare,
    /// The most the card may draw. Unit: milliwatts.
    pub power_limit_mw: Option<i64>,
}

/// Something that happened to a card or to the collector: a row of the table `node_events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// When.
    pub at: Timestamp,
    /// The node.
    pub node: Name,
    /// The card, where it is of one.
    pub card_uuid: Option<Name>,
    /// The device, where it is known better than by its card.
    pub device_uuid: Option<Name>,
    /// What.
    pub kind: EventKind,
    /// XID, code of an error, count: what the kind counts in.
    pub number: Option<i64>,
    /// In words, for people.
    pub detail: Option<Name>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The collector started.
    Started,
    /// The driver told of an error of the card; `number` is the XID.
    Xid,
    /// The card answers no more; `number` is NVML's code.
    CardLost,
    /// A card answers again, or for the first time.
    CardFound,
    /// The card was cut anew.
    Layout,
    /// The driver was loaded anew, or went away; counters begin again.
    DriverReload,
    /// A counter fell, or jumped beyond what the time allows: a new epoch.
    CounterEpoch,
    /// The card's health got worse: uncorrectable errors, row remap failure, recovery action. `detail` says which.
    Health,
    /// The node's clock was set; `number` is by how many milliseconds.
    ClockStep,
    /// A call into the driver hung; `number` is for how many milliseconds.
    Hung,
    /// Telemetry was dropped, because the spool was full; `number` is how many rows.
    Dropped,
    /// An operator took the cards back for a while.
    Released,
    /// Two sources disagree about who holds a device.
    Disagreement,
    /// A process uses a device that something else was given.
    ForeignProcess,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Started,
        Self::Xid,
        Self::CardLost,
        Self::CardFound,
        Self::Layout,
        Self::DriverReload,
        Self::CounterEpoch,
        Self::Health,
        Self::ClockStep,
        Self::Hung,
        Self::Dropped,
        Self::Released,
        Self::Disagreement,
        Self::ForeignProcess,
    ];

    /// Its name in tables and labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Xid => "xid",
            Self::CardLost => "card_lost",
            Self::CardFound => "card_found",
            Self::Layout => "layout",
            Self::DriverReload => "driver_reload",
            Self::CounterEpoch => "counter_epoch",
            Self::Health => "health",
            Self::ClockStep => "clock_step",
            Self::Hung => "hung",
            Self::Dropped => "dropped",
            Self::Released => "released",
            Self::Disagreement => "disagreement",
            Self::ForeignProcess => "foreign_process",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
