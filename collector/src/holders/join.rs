//! What all sources say, made one: who holds each device, and who works on it.
//!
//! What was given is held, whether it is used or not. A process on a device that its holder wasn't given is foreign where somebody else was
//! given it; where nobody was, it holds the device, and is marked so.

use super::aliases::DeviceId;
use super::look::{Claimant, LookEvent, LookEventKind};
use super::meter::Effort;
use super::{DeviceProcess, Held, ProcessKind, Worked};
use cardhour_domain::{AttemptKey, Gap, HolderSource, Name, Reading};
use std::collections::{BTreeMap, BTreeSet};

/// The label of a holder that no scheduler gave its device.
pub const ALLOCATED_BY: &str = "allocated_by";

/// Weights of the holders of one device add up to that.
pub const WEIGHT_OF_DEVICE: u64 = 1_000_000;

/// A process on a device, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// What the driver lists.
    pub process: DeviceProcess,
    /// Whose it is.
    pub claimant: Claimant,
    /// What tells so: a control group, or the process alone.
    pub source: HolderSource,
    /// Whether it is still there; one that isn't proves its holder for one look more, and nothing of it is counted.
    pub is_alive: bool,
}

/// What a holder did apart from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doing {
    /// Processor time and bytes.
    pub effort: Effort,
    /// Whether somebody typed at one of its terminals.
    pub is_attended: Reading<bool>,
}

/// All that sources say at one look.
#[derive(Debug)]
pub struct Sources<'a> {
    /// What was given, by any source that gives devices: schedulers, prologs, the kubelet, hypervisors. The same holder and device may stand
    /// here several times.
    pub given: Vec<Held>,
    /// Processes on devices.
    pub occupants: &'a [Occupant],
    /// Holders of which it is known what they were given.
    pub given_known: &'a BTreeSet<AttemptKey>,
    /// What holders did, by key.
    pub doing: &'a BTreeMap<AttemptKey, Doing>,
    /// Whether a scheduler gives devices on this node: then what nobody gave is marked.
    pub scheduling: Scheduling,
    /// Cards whose processes couldn't be listed.
    pub unlisted: &'a BTreeSet<Name>,
}

/// Who gives devices on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// A scheduler.
    Scheduled,
    /// Nobody: who comes has them.
    Open,
}

/// Holders and their work, as rows of a look.
pub fn join(sources: Sources<'_>) -> (Vec<Held>, Vec<Worked>, Vec<LookEvent>) {
    let mut held: BTreeMap<(DeviceId, AttemptKey), Held> = BTreeMap::new();
    let mut events = Vec::new();
    for given in sources.given {
        add(&mut held, given);
    }
    let given: Vec<(DeviceId, AttemptKey)> = held.keys().cloned().collect();
    let mut on_devices: BTreeMap<(DeviceId, AttemptKey), Vec<&Occupant>> = BTreeMap::new();
    for occupant in sources.occupants {
        let device = device_of(&occupant.process);
        on_devices.entry((device, occupant.claimant.holder.key())).or_default().push(occupant);
    }
    for ((device, key), occupants) in &on_devices {
        // One process of several may be proven by its control group and another only by itself.
        let best = occupants.iter().min_by_key(|occupant| occupant.source).expect("at least one each");
        if given.iter().any(|(own, holder)| holder == key && own.covers(device)) {
            continue;
        }
        let others: Vec<&AttemptKey> =
            given.iter().filter(|(own, _)| own.covers(device)).map(|(_, holder)| holder).collect();
        let name = &best.claimant.holder.job_id;
        if let Some(other) = others.first() {
            let detail = format!("{name} uses it, and it was given to {}", other.job());
            events.push(LookEvent::of_device(LookEventKind::ForeignProcess, device, detail));
            continue;
        }
        let was_given_others = sources.given_known.contains(key);
        if was_given_others {
            let detail = format!("{name} uses it, and was not given it");
            events.push(LookEvent::of_device(LookEventKind::ForeignProcess, device, detail));
        }
        let mut claimant = best.claimant.clone();
        let is_own_way = best.source == HolderSource::Process || was_given_others;
        if is_own_way && sources.scheduling == Scheduling::Scheduled {
            claimant.owner.labels.insert(ALLOCATED_BY.into(), "nobody".into());
        }
        let source = if was_given_others { HolderSource::Process } else { best.source };
        let DeviceId { card_uuid, device_uuid } = device.clone();
        let Claimant { holder, owner } = claimant;
        add(&mut held, Held { card_uuid, device_uuid, share: None, source, holder, owner });
    }
    let worked = worked(&held, &on_devices, sources.doing, sources.unlisted);
    let mut held: Vec<Held> = held.into_values().collect();
    held.sort_by_cached_key(|h| (h.card_uuid.clone(), h.device_uuid.clone(), h.source, h.holder.key()));
    events.sort();
    events.dedup();
    (held, worked, events)
}

/// The device a process is on.
fn device_of(process: &DeviceProcess) -> DeviceId {
    DeviceId { card_uuid: process.card_uuid.clone(), device_uuid: process.device_uuid.clone() }
}

/// Adds what one source says to what others said of the same holder and device: the best source counts, and a share that it doesn't declare
/// comes from the next that does. The same device in several containers of a pod is one device.
fn add(held: &mut BTreeMap<(DeviceId, AttemptKey), Held>, more: Held) {
    let device = DeviceId { card_uuid: more.card_uuid.clone(), device_uuid: more.device_uuid.clone() };
    let key = (device, more.holder.key());
    let Some(known) = held.get_mut(&key) else {
        held.insert(key, more);
        return;
    };
    let (better, other) = if more.source < known.source { (more, known.clone()) } else { (known.clone(), more) };
    let share = match (better.share, other.share) {
        (Some(a), Some(b)) if better.source == other.source => Some(a.max(b)),
        (a, b) => a.or(b),
    };
    *known = Held { share, ..better };
}

/// Rows of work: of every holder with a process on a device, and of every holder whose processes are known for the devices that it was given.
fn worked(
    held: &BTreeMap<(DeviceId, AttemptKey), Held>,
    on_devices: &BTreeMap<(DeviceId, AttemptKey), Vec<&Occupant>>,
    doing: &BTreeMap<AttemptKey, Doing>,
    unlisted: &BTreeSet<Name>,
) -> Vec<Worked> {
    let mut pairs: BTreeSet<&(DeviceId, AttemptKey)> = on_devices.keys().collect();
    for pair in held.keys().filter(|(_, key)| doing.contains_key(key)) {
        // Who has a whole card and works on its instances has a row for each of those.
        let is_on_part =
            on_devices.keys().any(|(device, key)| *key == pair.1 && *device != pair.0 && pair.0.covers(device));
        if !is_on_part {
            pairs.insert(pair);
        }
    }
    let none = Vec::new();
    let mut rows: Vec<Worked> = Vec::new();
    for pair in pairs.into_iter().filter(|(device, _)| !unlisted.contains(&device.card_uuid)) {
        let all = on_devices.get(pair).unwrap_or(&none);
        let alive: Vec<&DeviceProcess> = all.iter().filter(|occupant| occupant.is_alive).map(|o| &o.process).collect();
        let missing =
            Effort { cpu_ms: Reading::Missing(Gap::NotRecorded), io_bytes: Reading::Missing(Gap::NotRecorded) };
        let of_holder = doing.get(&pair.1);
        let effort = of_holder.map_or(missing, |doing| doing.effort);
        let draws = alive.iter().any(|process| process.kind == ProcessKind::Graphics);
        let typed = of_holder.map_or(Reading::Missing(Gap::NotRecorded), |doing| doing.is_attended);
        rows.push(Worked {
            card_uuid: pair.0.card_uuid.clone(),
            device_uuid: pair.0.device_uuid.clone(),
            holder: pair.1.clone(),
            processes: alive.len() as i64,
            work_weight: total(alive.iter().map(|process| process.work_weight)),
            mem_used_bytes: total(alive.iter().map(|process| process.memory_bytes.map(|bytes| bytes.max(0) as u64)))
                .map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            cpu_ms: effort.cpu_ms,
            io_bytes: effort.io_bytes,
            is_attended: if draws { Reading::Seen(true) } else { typed },
        });
    }
    bound_weights(&mut rows);
    rows
}

/// The sum, or the first gap: a part of a sum is no sum.
fn total(readings: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    let mut total = 0u64;
    for reading in readings {
        match reading {
            Reading::Seen(value) => total = total.saturating_add(value),
            Reading::Missing(gap) => return Reading::Missing(gap),
        }
    }
    Reading::Seen(total)
}

/// Makes the weights of each device's holders parts of [`WEIGHT_OF_DEVICE`], largest remainder first, ties by key: whatever processes add up to,
/// their holders did no more than the device. Where the weight of one is missing, nothing tells the others' apart from it.
fn bound_weights(rows: &mut [Worked]) {
    let is_same = |a: &Worked, b: &Worked| a.device_uuid == b.device_uuid;
    for group in rows.chunk_by_mut(is_same) {
        if let Reading::Missing(gap) = total(group.iter().map(|row| row.work_weight)) {
            group.iter_mut().for_each(|row| row.work_weight = Reading::Missing(gap));
            continue;
        }
        let sum: u128 = group.iter().filter_map(|row| row.work_weight.seen()).map(u128::from).sum();
        if sum == 0 {
            continue;
        }
        let mut left = WEIGHT_OF_DEVICE;
        let mut remainders: Vec<(u128, usize)> = Vec::new();
        for (i, row) in group.iter_mut().enumerate() {
            let scaled = u128::from(row.work_weight.seen().unwrap_or(0)) * u128::from(WEIGHT_OF_DEVICE);
            let part = (scaled / sum) as u64;
            left = left.saturating_sub(part);
            remainders.push((scaled % sum, i));
            row.work_weight = Reading::Seen(part);
        }
        remainders.sort_by_key(|(remainder, i)| (std::cmp::Reverse(*remainder), *i));
        for (_, i) in remainders.into_iter().take(left as usize) {
            group[i].work_weight = group[i].work_weight.map(|weight| weight + 1);
        }
    }
}

#[cfg(test)]
mod tests;
