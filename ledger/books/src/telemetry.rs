//! What devices and holders did, as timelines that can be summed: one reading for each instant, and holes where nobody looked.
//!
//! Nodes and imports give rows in any order, more than once, from several sources at a time. [`Readings::settle`] makes one timeline a device
//! of them: the best source counts, the rest is [`Shadowed`]; ticks that all but meet, meet; what nobody read stays a hole (LED-3).
//!
//! Start at [`Readings`]. Does not: know who held a device, or say what is idle.

mod power;
mod settle;

use cardhour_domain::{
    Activity, AttemptKey, EnergyBasis, Gap, Interval, Millijoules, Milliwatts, Name, Percent, Reading, Sample,
    SampleSource, SeenDevice, Timestamp, UseBasis,
};
use std::collections::BTreeMap;

pub use power::PowerRange;

/// What a device said over one tick: a [`Sample`] without its names.
///
/// A value that isn't there wasn't seen; why is in the table `samples`. Shape: ordered by its start first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceTick {
    /// The time it speaks for.
    pub during: Interval,
    /// Who read it.
    pub source: SampleSource,
    /// How busy the multiprocessors were.
    pub sm_active: Option<Percent>,
    /// What `sm_active` was read from.
    pub use_basis: UseBasis,
    /// How busy the memory's bandwidth was.
    pub mem_active: Option<Percent>,
    /// The busiest of the media engines.
    pub media_active: Option<Percent>,
    /// Memory in use. It is shown and never judged: frameworks that take all of it fool every rule (R02, R03). Unit: bytes.
    pub mem_used_bytes: Option<i64>,
    /// Moved over NVLink and PCIe, as far as either was read. Unit: bytes.
    pub link_bytes: Option<i64>,
    /// Mean power; only a whole card has it.
    pub power: Option<Milliwatts>,
    /// Energy; only a whole card has it.
    pub energy: Option<Millijoules>,
    /// What `energy` was read from.
    pub energy_basis: EnergyBasis,
    /// Whether its signals contradict each other, or another source's: then it is never idle (C04).
    pub suspect: bool,
}

/// What one holder did on a device over one tick: an [`Activity`] without its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderTick {
    /// The time it speaks for.
    pub during: Interval,
    /// Its part of the device's busy time.
    pub sm_active: Option<Percent>,
    /// Its processes on the device.
    pub processes: i64,
    /// Device memory of its processes. Unit: bytes.
    pub mem_used_bytes: Option<i64>,
    /// Processor time of its processes. Unit: milliseconds.
    pub cpu_ms: Option<i64>,
    /// What they read and wrote. Unit: bytes.
    pub io_bytes: Option<i64>,
    /// Whether somebody was at one of its terminals.
    pub is_attended: Option<bool>,
}

/// A stretch that a better source told of too: this one doesn't count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shadowed {
    /// The card.
    pub card_uuid: Name,
    /// The device.
    pub device_uuid: Name,
    /// Whose readings don't count.
    pub source: SampleSource,
    /// Over which stretch.
    pub during: Interval,
}

/// Readings as they come: in any order, repeated, of several sources.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    devices: BTreeMap<(Name, Name), Vec<DeviceTick>>,
    activity: BTreeMap<(Name, AttemptKey), Vec<HolderTick>>,
    /// The newest limit of each card.
    limits: BTreeMap<Name, (Timestamp, i64)>,
}

/// One timeline a device, and one a holder on a device.
///
/// Shape: the ticks of a timeline are in order and don't overlap; a hole is time that nobody read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// By card and device.
    pub devices: BTreeMap<(Name, Name), Vec<DeviceTick>>,
    /// By device and holder.
    pub activity: BTreeMap<(Name, AttemptKey), Vec<HolderTick>>,
    /// Between what and what a card's power lies, where both are known.
    pub power: BTreeMap<Name, PowerRange>,
}

impl Readings {
    /// Takes a sample in.
    pub fn add_sample(&mut self, sample: &Sample) {
        self.device(&sample.card_uuid, &sample.device_uuid).push(DeviceTick::of(sample));
    }

    /// Takes a holder's activity in.
    pub fn add_activity(&mut self, activity: &Activity) {
        self.holder(&activity.device_uuid, &activity.holder).push(HolderTick::of(activity));
    }

    /// Takes in what a card may draw; of several the newest counts.
    pub fn add_device(&mut self, device: &SeenDevice) {
        let Some(limit_mw) = device.power_limit_mw.filter(|_| device.card_uuid == device.device_uuid) else { return };
        let newest = self.limits.entry(device.card_uuid.clone()).or_insert((device.at, limit_mw));
        *newest = (*newest).max((device.at, limit_mw));
    }

    /// The ticks of a device, to push to: one look-up for a whole column of them.
    pub fn device(&mut self, card_uuid: &Name, device_uuid: &Name) -> &mut Vec<DeviceTick> {
        self.devices.entry((card_uuid.clone(), device_uuid.clone())).or_default()
    }

    /// The ticks of a holder on a device, to push to.
    pub fn holder(&mut self, device_uuid: &Name, holder: &AttemptKey) -> &mut Vec<HolderTick> {
        self.activity.entry((device_uuid.clone(), holder.clone())).or_default()
    }

    /// One timeline of each. Shape: the same for the same readings, in any order and however often one came (LED-4); what is shadowed comes by
    /// card, device and source, as stretches that don't touch.
    pub fn settle(self) -> (Telemetry, Vec<Shadowed>) {
        let mut telemetry = Telemetry::default();
        let mut shadowed = Vec::new();
        for ((card_uuid, device_uuid), ticks) in self.devices {
            let (mut ticks, hidden) = settle::settle(ticks);
            if card_uuid == device_uuid
                && let Some((_, limit_mw)) = self.limits.get(&card_uuid)
                && let Some(range) = PowerRange::of(&ticks, *limit_mw)
            {
                range.doubt(&mut ticks);
                telemetry.power.insert(card_uuid.clone(), range);
            }
            shadowed.extend(hidden.into_iter().map(|(source, during)| {
                let (card_uuid, device_uuid) = (card_uuid.clone(), device_uuid.clone());
                Shadowed { card_uuid, device_uuid, source, during }
            }));
            telemetry.devices.insert((card_uuid, device_uuid), ticks);
        }
        for (key, ticks) in self.activity {
            telemetry.activity.insert(key, settle::settle(ticks).0);
        }
        (telemetry, shadowed)
    }
}

impl Telemetry {
    /// The timeline of a device; empty where nobody read it.
    pub fn device(&self, card_uuid: &Name, device_uuid: &Name) -> &[DeviceTick] {
        self.devices.get(&(card_uuid.clone(), device_uuid.clone())).map(Vec::as_slice).unwrap_or_default()
    }

    /// The timeline of a holder on a device; empty where its processes weren't looked at.
    pub fn holder(&self, device_uuid: &Name, holder: &AttemptKey) -> &[HolderTick] {
        self.activity.get(&(device_uuid.clone(), holder.clone())).map(Vec::as_slice).unwrap_or_default()
    }
}

impl DeviceTick {
    /// A sample's.
    pub fn of(sample: &Sample) -> Self {
        let implausible = |reading: Reading<Percent>| reading == Reading::Missing(Gap::Implausible);
        let links = [sample.nvlink_bytes.seen(), sample.pcie_bytes.seen()];
        Self {
            during: sample.during,
            source: sample.source,
            sm_active: sample.sm_active_pct.seen(),
            use_basis: sample.use_basis,
            mem_active: sample.mem_active_pct.seen(),
            media_active: sample.media_active_pct.seen(),
            mem_used_bytes: sample.mem_used_bytes.seen(),
            link_bytes: links.into_iter().flatten().reduce(i64::saturating_add),
            power: sample.power_mw.seen(),
            energy: sample.energy_mj.seen(),
            energy_basis: sample.energy_basis,
            suspect: implausible(sample.sm_active_pct) || implausible(sample.mem_active_pct),
        }
    }

    /// Which of two versions of one instant of a device counts, as [`Readings::settle`] has it: the better source, then the one that tells use, then
    /// the longer, then the one that knows more, then the smaller.
    pub fn counts_before(&self, other: &Self) -> bool {
        settle::order(self) < settle::order(other)
    }

    /// Its energy before `at`, if it is drawn evenly: rounded down, so that pieces of a tick add up to it wherever it is cut.
    pub fn energy_before(&self, at: Timestamp) -> i64 {
        self.energy.map_or(0, |energy| before(energy.0, self.during, at))
    }
}

impl HolderTick {
    /// An activity's.
    pub fn of(activity: &Activity) -> Self {
        Self {
            during: activity.during,
            sm_active: activity.sm_active_pct.seen(),
            processes: activity.processes,
            mem_used_bytes: activity.mem_used_bytes.seen(),
            cpu_ms: activity.cpu_ms.seen(),
            io_bytes: activity.io_bytes.seen(),
            is_attended: activity.is_attended.seen(),
        }
    }
}

/// How much of `total`, spread evenly over `during`, falls before `at`. Rounded down; all of it at the end.
fn before(total: i64, during: Interval, at: Timestamp) -> i64 {
    let passed = at.ms_since(during.start()).clamp(0, during.length_ms());
    let share = i128::from(total) * i128::from(passed) / i128::from(during.length_ms());
    i64::try_from(share).expect("a part of a total is no larger than it")
}

#[cfg(test)]
pub(crate) mod drawn;
#[cfg(test)]
mod tests;
