//! What a tick left for pages: plain data that nobody changes.

use crate::holders::LookEventKind;
use crate::holders::kubernetes::GivenAs;
use crate::probe::{DeadCard, DeviceId, DeviceReading, DeviceState};
use crate::spool::{SpoolCounters, Stock};
use cardhour_domain::{
    CardShare, EventKind, Gap, HolderKind, HolderSource, Name, Reading, Sample, SeenDevice, Timestamp,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What one tick left.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was hung up, on a clock that is never set.
    pub(super) hung_up_at: Instant,
    /// When the tick's reading began.
    pub(super) at: Timestamp,
    /// How long the tick took, from its first call to rows on disk.
    pub(super) took: Duration,
    /// How often the driver's library was loaded.
    pub(super) generation: u32,
    /// Cards before their instances.
    pub(super) devices: Vec<Device>,
    /// Cards that haven't answered once.
    pub(super) dead: Vec<DeadCard>,
    /// Who holds what.
    pub(super) holders: Vec<Holding>,
    /// Holders that are not among them, for there are too many.
    pub(super) unshown_holders: u64,
    /// Cards at which holders were looked for without a failure of any source.
    pub(super) watched_cards: u64,
    /// What was counted since the start.
    pub(super) tally: Tally,
    /// What the spool has done.
    pub(super) spool: SpoolCounters,
    /// What lies in the spool; none where it can't be read.
    pub(super) stock: Option<Stock>,
}

/// A card or an instance.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub id: DeviceId,
    pub driver_index: Option<u32>,
    pub is_cut: bool,
    pub mig_profile: Option<Name>,
    pub state: DeviceState,
    pub processes: Reading<u32>,
    /// What it is; none before it was told.
    pub told: Option<SeenDevice>,
    /// The row of the books, of this tick or, where the governor spared it, of the one before.
    pub sample: Option<Sample>,
    /// When it last answered.
    pub answered_at: Option<Timestamp>,
    /// What its processes did since they were listed before, all together, as a part of the time; none where the driver doesn't tell.
    pub processes_active: Option<f64>,
    /// How many hold it; none where nobody could look.
    pub holders: Option<u64>,
}

/// A holder has a device.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub card_uuid: Name,
    pub device_uuid: Name,
    pub key: Name,
    pub kind: HolderKind,
    pub job_id: Name,
    /// In which container it has it, and as which replica; empty where nobody says.
    pub given_as: Vec<GivenAs>,
    pub source: HolderSource,
    pub share: Option<CardShare>,
    pub org: Option<Name>,
    pub project: Option<Name>,
    pub user: Option<Name>,
    pub queue: Option<Name>,
    pub class: Option<Name>,
    /// When it started; when it was seen first where nothing tells better.
    pub started_at: Timestamp,
}

/// What is counted from the start of the collector on.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub ticks: u64,
    /// Ticks that began more than a second after their time.
    pub late_ticks: u64,
    /// Whole multiples of the step at which there was no tick.
    pub missed_ticks: u64,
    pub tick_time: Duration,
    /// Errors that the driver told of, by card.
    pub xids: BTreeMap<Name, u64>,
    pub events: [u64; EventKind::ALL.len()],
    pub oddities: [u64; LookEventKind::ALL.len()],
}

impl Device {
    /// As a reading has it, before more is known.
    pub fn of(reading: DeviceReading) -> Self {
        Self {
            id: reading.id,
            driver_index: reading.driver_index,
            is_cut: reading.is_cut,
            mig_profile: reading.mig_profile,
            state: reading.state,
            processes: reading.processes,
            told: None,
            sample: None,
            answered_at: None,
            processes_active: None,
            holders: None,
        }
    }

    /// Whether it is a card, not an instance.
    pub fn is_card(&self) -> bool {
        self.id.mig.is_none()
    }

    /// Why nothing at all was read of it, if nothing was.
    pub fn silence(&self) -> Option<Gap> {
        match self.state.energy_mj_total {
            Reading::Missing(gap @ (Gap::CardLost | Gap::DriverError | Gap::TimedOut | Gap::CollectorDown))
                if self.state == DeviceState::missing(gap) =>
            {
                Some(gap)
            }
            _ => None,
        }
    }
}
