//! Processes of a card: which, and what each did.

use super::call::{Call, Line};
use super::card::Tools;
use super::raw::{Handle, ListedProcess, ProcessList};
use super::slices::Slice;
use crate::holders::{DeviceProcess, ProcessKind};
use crate::probe::{CardListing, DeviceId, MigPlace, Moment};
use cardhour_domain::{Gap, Name, Reading};
use std::collections::{BTreeMap, HashMap};

/// A list beside the compute list is asked for at every so many lists while it is empty: the driver walks all of its clients for each.
const OTHER_LISTS_EVERY: u32 = 4;

/// For how long a card's list stands: a probe over its budget reads one each half minute. Unit: microseconds.
pub const LIST_STANDS_US: i64 = 31_000_000;
/// Where each instance is asked by itself, lists are so far apart: seven calls of up to 5 ms each, and as many for an empty list each fourth time, leave
/// eight cards under 1 % of a core with all else that is read. Unit: microseconds.
pub const SLICE_LIST_EVERY_US: i64 = 90_000_000;
/// And stand for so long. Unit: microseconds.
const SLICE_LIST_STANDS_US: i64 = SLICE_LIST_EVERY_US + 1_000_000;

const LISTS: [(ProcessList, Call, ProcessKind); 3] = [
    (ProcessList::Compute, Call::ComputeProcesses, ProcessKind::Compute),
    (ProcessList::Graphics, Call::GraphicsProcesses, ProcessKind::Graphics),
    (ProcessList::Mps, Call::MpsProcesses, ProcessKind::Mps),
];

/// By process and device, what it is there and the memory that it has.
type Listed = BTreeMap<(u32, Name), (ProcessKind, Option<u64>)>;

/// What is known of a card's processes since the last list.
#[derive(Debug)]
pub struct Processes {
    devices: Reading<HashMap<Name, (u32, Reading<i64>)>>,
    /// Those of the last list; none where it wasn't whole.
    pids: Option<Vec<u32>>,
    work: HashMap<u32, u64>,
    works: Reading<()>,
    last_stamp_us: u64,
    weighed_us: Option<i64>,
    /// Which of [`LISTS`] had anybody when it was asked for last.
    has_any: [bool; LISTS.len()],
    /// How often instances were asked one by one.
    slice_turn: u32,
}

impl Default for Processes {
    fn default() -> Self {
        Self {
            devices: Reading::Missing(Gap::CollectorDown),
            pids: None,
            work: HashMap::new(),
            works: Reading::Missing(Gap::CollectorDown),
            last_stamp_us: 0,
            weighed_us: None,
            has_any: [true; LISTS.len()],
            slice_turn: 0,
        }
    }
}

impl Processes {
    /// Adds up what each process did since the last look, by the driver's ring, which wraps after some ten seconds.
    pub fn weigh<'nvml>(&mut self, line: &mut Line, card: Handle<'nvml>, tools: &mut Tools<'nvml>, at: Moment) {
        if matches!(&self.devices, Reading::Seen(devices) if devices.is_empty()) {
            // Nobody is there to be told apart.
            self.weighed_us = Some(at.monotonic_us);
            return;
        }
        let last = self.last_stamp_us;
        let (buffers, uses) = (&mut tools.buffers, &mut tools.uses);
        self.works = line.call(Call::ProcessRing, || tools.raw.process_use(card, last, buffers, uses));
        let since_us = self.weighed_us.replace(at.monotonic_us);
        if let (Reading::Seen(()), Some(since_us)) = (self.works, since_us) {
            let elapsed_us = u64::try_from(at.monotonic_us - since_us).unwrap_or(0);
            // What is older than the last look, or above the whole, is the driver's garbage.
            for used in tools.uses.iter().filter(|used| used.stamp_us > last && used.sm_percent <= 100) {
                *self.work.entry(used.pid).or_default() += u64::from(used.sm_percent) * elapsed_us;
            }
        }
        if let (Reading::Seen(()), Some(newest)) = (self.works, tools.uses.iter().map(|used| used.stamp_us).max()) {
            self.last_stamp_us = self.last_stamp_us.max(newest);
        }
    }

    /// Lists them. One process is one entry a device: a client of MPS as that, one that draws as that even where it computes too.
    #[allow(clippy::too_many_arguments, reason = "each is another part of one card, borrowed apart")]
    pub fn list<'nvml>(
        &mut self,
        line: &mut Line,
        card: Handle<'nvml>,
        tools: &mut Tools<'nvml>,
        id: &DeviceId,
        places: &[(Name, MigPlace)],
        turn: u32,
        out: &mut Vec<DeviceProcess>,
    ) -> CardListing {
        let (mut seen, mut complete) = (Listed::new(), Reading::Seen(()));
        for (place, (list, call, kind)) in LISTS.into_iter().enumerate() {
            if !self.asks(place, turn) {
                continue;
            }
            match line.call(call, || tools.raw.processes(card, list, &mut tools.buffers, &mut tools.listed)) {
                Reading::Seen(()) => {
                    self.has_any[place] |= !tools.listed.is_empty();
                    for process in &tools.listed {
                        seen.insert((process.pid, device_of(process, id, places)), (kind, process.memory_bytes));
                    }
                }
                // A card that is cut has no graphics, and old drivers have no list of MPS clients.
                Reading::Missing(Gap::NotSupported) if kind != ProcessKind::Compute => {}
                Reading::Missing(gap) => complete = Reading::Missing(gap),
            }
        }
        self.told(seen, complete, id, !places.is_empty(), out)
    }

    /// Lists those of each instance by the instance's own handle, which needs no privilege where the card's does.
    pub fn list_by_slice<'nvml>(
        &mut self,
        slices: &mut [Slice<'nvml>],
        tools: &mut Tools<'nvml>,
        id: &DeviceId,
        out: &mut Vec<DeviceProcess>,
    ) -> CardListing {
        let (mut seen, mut complete) = (Listed::new(), Reading::Seen(()));
        let turn = self.slice_turn;
        self.slice_turn = turn.wrapping_add(1);
        let lists = LISTS.into_iter().enumerate().filter(|(_, (_, _, kind))| *kind != ProcessKind::Graphics);
        for (place, (list, call, kind)) in lists {
            if !self.asks(place, turn) {
                continue;
            }
            for slice in &mut *slices {
                match slice.processes(tools, list, call) {
                    Reading::Seen(()) => {
                        self.has_any[place] |= !tools.listed.is_empty();
                        for process in &tools.listed {
                            seen.insert((process.pid, slice.uuid.clone()), (kind, process.memory_bytes));
                        }
                    }
                    Reading::Missing(Gap::NotSupported) if kind != ProcessKind::Compute => {}
                    Reading::Missing(gap) => complete = Reading::Missing(gap),
                }
            }
        }
        let listing = self.told(seen, complete, id, true, out);
        CardListing { stands_us: SLICE_LIST_STANDS_US, ..listing }
    }

    /// Whether a list is asked for now.
    fn asks(&mut self, place: usize, turn: u32) -> bool {
        let is_compute = LISTS[place].2 == ProcessKind::Compute;
        let asks = is_compute || self.has_any[place] || turn.is_multiple_of(OTHER_LISTS_EVERY);
        self.has_any[place] &= !asks;
        asks
    }

    /// Takes a list in, and tells of it. `is_cut`: who did what on a card that is cut, the driver's ring doesn't tell.
    fn told(
        &mut self,
        seen: Listed,
        complete: Reading<()>,
        id: &DeviceId,
        is_cut: bool,
        out: &mut Vec<DeviceProcess>,
    ) -> CardListing {
        self.count(&seen, complete);
        self.pids = complete.seen().map(|()| seen.keys().map(|(pid, _)| *pid).collect());
        let work = std::mem::take(&mut self.work);
        let count = u32::try_from(seen.len()).unwrap_or(u32::MAX);
        out.extend(seen.into_iter().map(|((pid, device_uuid), (kind, memory_bytes))| DeviceProcess {
            card_uuid: id.card_uuid.clone(),
            work_weight: if is_cut {
                Reading::Missing(Gap::NotSupported)
            } else {
                self.works.map(|()| work.get(&pid).copied().unwrap_or(0))
            },
            device_uuid,
            pid,
            memory_bytes: memory(memory_bytes),
            kind,
        }));
        CardListing { card_uuid: id.card_uuid.clone(), processes: complete.map(|()| count), stands_us: LIST_STANDS_US }
    }

    /// Those of the last list, where it was whole.
    pub fn pids(&self) -> Option<&[u32]> {
        self.pids.as_deref()
    }

    /// How many were on a device when it was last asked.
    pub fn count_on(&self, device: &Name) -> Reading<u32> {
        match &self.devices {
            Reading::Seen(devices) => Reading::Seen(devices.get(device).map_or(0, |(count, _)| *count)),
            Reading::Missing(gap) => Reading::Missing(*gap),
        }
    }

    /// Memory of those on a device; missing unless each told. Unit: bytes.
    pub fn memory_on(&self, device: &Name) -> Reading<i64> {
        match &self.devices {
            Reading::Seen(devices) => devices.get(device).map_or(Reading::Seen(0), |(_, bytes)| *bytes),
            Reading::Missing(gap) => Reading::Missing(*gap),
        }
    }

    fn count(&mut self, seen: &Listed, complete: Reading<()>) {
        self.devices = complete.map(|()| {
            let mut devices: HashMap<Name, (u32, Reading<i64>)> = HashMap::new();
            for ((_, device), (_, bytes)) in seen {
                let (count, sum) = devices.entry(device.clone()).or_insert((0, Reading::Seen(0)));
                *count += 1;
                *sum = match (*sum, memory(*bytes)) {
                    (Reading::Seen(sum), Reading::Seen(bytes)) => Reading::Seen(sum.saturating_add(bytes)),
                    (Reading::Missing(gap), _) | (_, Reading::Missing(gap)) => Reading::Missing(gap),
                };
            }
            devices
        });
    }
}

/// The instance that a process is on; the card, where it names none that is known.
fn device_of(process: &ListedProcess, id: &DeviceId, places: &[(Name, MigPlace)]) -> Name {
    let is_there = |place: &MigPlace| {
        process.gpu_instance == Some(place.gpu_instance)
            && process.compute_instance.is_none_or(|id| id == place.compute_instance)
    };
    places.iter().find(|(_, place)| is_there(place)).map_or_else(|| id.device_uuid.clone(), |(uuid, _)| uuid.clone())
}

fn memory(bytes: Option<u64>) -> Reading<i64> {
    match bytes {
        None => Reading::Missing(Gap::NotSupported),
        Some(bytes) => i64::try_from(bytes).map_or(Reading::Missing(Gap::Implausible), Reading::Seen),
    }
}
