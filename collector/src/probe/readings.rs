//! What the probe hands out each tick: plain data, as the driver gave it.

use crate::holders::DeviceProcess;
use crate::probe::{DeviceState, Moment};
use cardhour_domain::{Gap, Name, NodeEvent, Reading, SeenDevice, Timestamp};

/// Everything the cards of a node said over one tick.
#[derive(Clone, Debug, PartialEq)]
pub struct TickReadings {
    /// When its reading began.
    pub at: Moment,
    /// The whole multiple of the step on which it fell.
    pub tick: Timestamp,
    /// How often the driver's library was loaded before: rings and baselines of one generation are not compared with another's.
    pub generation: u32,
    /// Each device, cards before their slices; a card that answers no more is among them, with its values missing.
    pub devices: Vec<DeviceReading>,
    /// Processes of the cards in `listings`.
    pub processes: Vec<DeviceProcess>,
    /// Cards whose processes were asked for in this tick, and whether all of them are known.
    pub listings: Vec<CardListing>,
    /// Virtual GPUs on cards of a hypervisor: who holds those is the hypervisor's to say.
    pub vgpus: Vec<SeenVgpu>,
    /// What happened since the last tick.
    pub events: Vec<NodeEvent>,
    /// The devices of each card that is new or was cut anew; empty where nothing changed.
    pub layout: Vec<SeenDevice>,
    /// Cards that haven't answered once since the collector started.
    pub dead: Vec<DeadCard>,
}

/// A card that is there and hasn't answered once since the collector started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadCard {
    /// Its place on the bus; none where only the driver's count tells of it.
    pub place: Option<Name>,
    /// As what its values are missing.
    pub gap: Gap,
}

/// A virtual GPU that is active on a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenVgpu {
    /// The card.
    pub card_uuid: Name,
    /// Its own UUID.
    pub uuid: Name,
    /// The virtual machine that has it, as the hypervisor names it.
    pub machine: Name,
    /// Its type, such as `NVIDIA L40S-24Q`.
    pub profile: Option<Name>,
    /// Device memory it was given. Unit: bytes.
    pub memory_bytes: Reading<i64>,
    /// Device memory it uses. Unit: bytes.
    pub used_bytes: Reading<i64>,
}

/// Whether the processes of a card were listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardListing {
    /// The card.
    pub card_uuid: Name,
    /// How many processes it has; missing when a list could not be read, so that nothing follows from what isn't in it.
    pub processes: Reading<u32>,
    /// For how long it stands for what is on the card: until the next one of a probe that isn't held up, and a second. Unit: microseconds.
    pub stands_us: i64,
}

/// Which device a reading is of. Never an index: those move when a card is lost or the node starts anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeviceId {
    /// The physical card.
    pub card_uuid: Name,
    /// The MIG instance; the card's own for the card.
    pub device_uuid: Name,
    /// Its place on the bus, domain of eight digits.
    pub pci_bus_id: Name,
    /// Where an instance lies on its card; none for a card.
    pub mig: Option<MigPlace>,
}

/// Where a MIG instance lies on its card. Ids of instances are used again at once, so the layout they belong to is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MigPlace {
    /// Its GPU instance.
    pub gpu_instance: u32,
    /// Its compute instance.
    pub compute_instance: u32,
    /// How often the card was cut since the collector started.
    pub layout: u32,
}

/// One device over one tick.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReading {
    /// Which.
    pub id: DeviceId,
    /// The driver's number of the card in this loading: for people who look for it in other tools, never an identity. None while it doesn't answer.
    pub driver_index: Option<u32>,
    /// The N of the card's `/dev/nvidiaN`, by which Slurm and cgroups name it. None while it doesn't answer.
    pub minor: Option<u32>,
    /// When its counters were read.
    pub at: Moment,
    /// Whether the card is cut; false for an instance.
    pub is_cut: bool,
    /// Whether this tick makes a row of it.
    pub rows: Rows,
    /// Its profile, such as `1g.10gb`; none for a card.
    pub mig_profile: Option<Name>,
    /// The driver's ring of busy time, as it was read since the last tick.
    pub busy_ring: Vec<RingRead>,
    /// The driver's ring of memory traffic.
    pub memory_ring: Vec<RingRead>,
    /// Power between ticks, where there is no energy counter and it has to be integrated. Unit: milliwatts.
    pub power_polls: Vec<(Moment, i64)>,
    /// How many processes were listed on it last; missing when nobody could look.
    pub processes: Reading<u32>,
    /// Device memory of those processes; missing unless each told. Unit: bytes.
    pub process_memory_bytes: Reading<i64>,
    /// Everything else, as the metrics page shows it.
    pub state: DeviceState,
}

impl DeviceReading {
    /// The same device without a value: nothing was read of it, for one reason.
    pub fn silent(&self, at: Moment, gap: Gap) -> Self {
        Self::nothing_of(&self.id, self.is_cut, self.mig_profile.as_ref(), at, gap)
    }

    /// Of a device of which nothing was read, for one reason.
    pub fn nothing_of(id: &DeviceId, is_cut: bool, mig_profile: Option<&Name>, at: Moment, gap: Gap) -> Self {
        Self {
            id: id.clone(),
            driver_index: None,
            minor: None,
            at,
            is_cut,
            rows: Rows::Made,
            mig_profile: mig_profile.cloned(),
            busy_ring: Vec::new(),
            memory_ring: Vec::new(),
            power_polls: Vec::new(),
            processes: Reading::Missing(gap),
            process_memory_bytes: Reading::Missing(gap),
            state: DeviceState::missing(gap),
        }
    }
}

/// Whether a tick makes rows of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// It does.
    Made,
    /// The governor spared the device's performance monitor: the next row covers this tick too.
    Deferred,
}

/// One look at a ring of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingRead {
    /// When.
    pub at: Moment,
    /// What was new in it, oldest first; empty where nothing was.
    pub entries: Reading<Vec<RingEntry>>,
    /// What the driver gave as the value of its last period: an idle card's ring stands still, and only this tells it from a stuck one.
    pub now_percent: Reading<u32>,
}

/// One entry of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingEntry {
    /// The driver's own stamp, on a clock of its own: only compared with others of the same ring. Unit: microseconds.
    pub stamp_us: u64,
    /// Unit: percent; garbage above 100 has been seen.
    pub percent: u32,
}
