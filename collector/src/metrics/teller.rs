//! From ticks to snapshots: what has to be remembered from one to the next.

use super::Board;
use super::capabilities::{Refused, needs};
use super::snapshot::{Device, Holding, Snapshot, Tally};
use crate::holders::kubernetes::GivenAs;
use crate::holders::{Look, LookEventKind};
use crate::probe::{DeviceState, Rows, TickReadings};
use crate::sampler::Stepped;
use crate::spool::{SpoolCounters, Stock};
use cardhour_domain::{AttemptKey, EventKind, Gap, Name, NodeEvent, Sample, SeenDevice, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Holders that are shown at most; a node has no more devices with one than that.
const HOLDERS: usize = 512;

/// How many containers and replicas of one device are shown of a holder.
const GIVEN_AS: usize = 8;

/// How many characters of a name are shown.
const NAME_CHARS: usize = 128;

/// A tick that begins more than this after its time is late. Unit: milliseconds.
const LATE_MS: i64 = 1000;

/// Tells the board of each tick. It lives on the tick's thread.
#[derive(Debug)]
pub struct Teller {
    board: Arc<Board>,
    devices: BTreeMap<Name, SeenDevice>,
    samples: BTreeMap<Name, Sample>,
    answered: BTreeMap<Name, Timestamp>,
    since: BTreeMap<(AttemptKey, Name), Timestamp>,
    last_tick: Option<Timestamp>,
    tally: Tally,
    holders: Vec<Holding>,
    unshown_holders: u64,
    watched: BTreeSet<Name>,
    refused: Refused,
    /// When each card's processes were listed last, and what they had done since the list before.
    listed: BTreeMap<Name, (i64, Option<f64>)>,
}

impl Teller {
    /// Of a board.
    pub fn new(board: Arc<Board>) -> Self {
        Self {
            board,
            devices: BTreeMap::new(),
            samples: BTreeMap::new(),
            answered: BTreeMap::new(),
            since: BTreeMap::new(),
            last_tick: None,
            tally: Tally::default(),
            holders: Vec::new(),
            unshown_holders: 0,
            watched: BTreeSet::new(),
            refused: Refused::default(),
            listed: BTreeMap::new(),
        }
    }

    /// Takes in what a tick read and found, before it is made into rows.
    pub fn see(&mut self, readings: &TickReadings, stepped: &Stepped, look: &Look) {
        self.count(readings, stepped, look);
        let told: BTreeSet<&Name> = readings.layout.iter().map(|device| &device.card_uuid).collect();
        // What is told of a card is all of it.
        self.devices.retain(|_, device| !told.contains(&device.card_uuid));
        self.devices.extend(readings.layout.iter().map(|device| (device.device_uuid.clone(), device.clone())));
        let mut before = std::mem::take(&mut self.samples);
        self.samples.extend(stepped.samples.iter().map(|sample| (sample.device_uuid.clone(), sample.clone())));
        for spared in readings.devices.iter().filter(|device| device.rows == Rows::Deferred) {
            if let Some((device, sample)) = before.remove_entry(&spared.id.device_uuid) {
                self.samples.entry(device).or_insert(sample);
            }
        }
        self.hold(readings, look);
        self.weigh(readings);
        self.watched.clone_from(&look.watched);
    }

    /// Hangs up a snapshot: the tick is done.
    pub fn publish(&mut self, readings: TickReadings, spool: SpoolCounters, stock: Option<Stock>, took: Duration) {
        self.tally.tick_time += took;
        let answered_before = std::mem::take(&mut self.answered);
        let mut devices = Vec::with_capacity(readings.devices.len());
        for reading in readings.devices {
            let mut device = Device::of(reading);
            let uuid = &device.id.device_uuid;
            let is_silent = device.silence().is_some();
            let is_asleep = device.state == DeviceState::missing(Gap::Asleep);
            device.answered_at =
                if is_silent || is_asleep { answered_before.get(uuid).copied() } else { Some(readings.at.wall) };
            if let Some(at) = device.answered_at {
                self.answered.insert(uuid.clone(), at);
            }
            let holders = self.holders.iter().filter(|holding| holding.device_uuid == *uuid).count() as u64;
            device.processes_active = self.listed.get(uuid).and_then(|(_, active)| *active).filter(|_| !is_silent);
            device.holders = (holders > 0 || self.watched.contains(&device.id.card_uuid)).then_some(holders);
            device.told = self.devices.get(uuid).cloned();
            device.sample = self.samples.get(uuid).filter(|_| !is_silent).cloned();
            devices.push(device);
        }
        for (capability, count) in self.refused.news(&devices) {
            tracing::warn!(capability, devices = count, "may not be read: {}", needs(capability));
        }
        self.board.hang(Snapshot {
            hung_up_at: Instant::now(),
            at: readings.at.wall,
            took,
            generation: readings.generation,
            devices,
            dead: readings.dead,
            holders: self.holders.clone(),
            unshown_holders: self.unshown_holders,
            watched_cards: self.watched.len() as u64,
            tally: self.tally.clone(),
            spool,
            stock,
        });
    }

    fn count(&mut self, readings: &TickReadings, stepped: &Stepped, look: &Look) {
        let tally = &mut self.tally;
        tally.ticks += 1;
        tally.late_ticks += u64::from(readings.at.wall.ms_since(readings.tick) > LATE_MS);
        let step_ms = i64::try_from(self.board.about.step.as_millis()).unwrap_or(i64::MAX).max(1);
        // A clock that was set forth misses ticks as well: nobody measured in that time.
        if let Some(last) = self.last_tick.replace(readings.tick) {
            tally.missed_ticks += u64::try_from(readings.tick.ms_since(last) / step_ms - 1).unwrap_or(0);
        }
        let odd = look.events.iter().map(|event| event.row(readings.at.wall, &self.board.about.node));
        let odd: Vec<NodeEvent> = odd.collect();
        for event in readings.events.iter().chain(&stepped.events).chain(&odd) {
            tally.events[place(&EventKind::ALL, &event.kind)] += 1;
            if let (EventKind::Xid, Some(card)) = (event.kind, &event.card_uuid) {
                *tally.xids.entry(card.clone()).or_default() += 1;
            }
        }
        for event in &look.events {
            tally.oddities[place(&LookEventKind::ALL, &event.kind)] += 1;
        }
        // From 0 on, so that the first one is a growth.
        for device in readings.devices.iter().filter(|device| device.id.mig.is_none()) {
            tally.xids.entry(device.id.card_uuid.clone()).or_default();
        }
    }

    fn hold(&mut self, readings: &TickReadings, look: &Look) {
        let before = std::mem::take(&mut self.since);
        self.holders.clear();
        let mut shown: BTreeSet<(Name, Name)> = BTreeSet::new();
        self.unshown_holders = 0;
        for held in &look.held {
            let key = held.holder.key();
            let place = (key.clone(), held.device_uuid.clone());
            let since = before.get(&place).copied().unwrap_or(readings.at.wall);
            self.since.insert(place, since);
            let key = short(&Name::from(key.as_str()));
            // A device and a key are one series, also where keys were cut.
            if self.holders.len() == HOLDERS || !shown.insert((held.device_uuid.clone(), key.clone())) {
                self.unshown_holders += 1;
                continue;
            }
            let owner = &held.owner;
            let name = |name: &Option<Name>| name.as_ref().map(short);
            let given_as = look.given_as.get(&(held.device_uuid.clone(), held.holder.job_id.clone()));
            let given_as = given_as.into_iter().flatten().take(GIVEN_AS);
            self.holders.push(Holding {
                card_uuid: held.card_uuid.clone(),
                device_uuid: held.device_uuid.clone(),
                key,
                kind: held.holder.kind,
                job_id: short(held.holder.shown_id.as_ref().unwrap_or(&held.holder.job_id)),
                given_as: given_as
                    .map(|given| GivenAs { container: short(&given.container), replica: given.replica })
                    .collect(),
                source: held.source,
                share: held.share,
                org: name(&owner.org),
                project: name(&owner.project),
                user: name(&owner.user),
                queue: name(&owner.queue),
                class: name(&owner.class),
                started_at: held.holder.started_at.unwrap_or(since),
            });
        }
    }
}

impl Teller {
    /// Adds up what processes did on each card that was listed, where the driver tells it of each of them (K19).
    fn weigh(&mut self, readings: &TickReadings) {
        let at_us = readings.at.monotonic_us;
        for listing in &readings.listings {
            let card = &listing.card_uuid;
            let of_card = readings.processes.iter().filter(|process| process.card_uuid == *card);
            let weights = of_card.map(|process| process.work_weight.seen()).sum::<Option<u64>>();
            let before = self.listed.get(card).map(|(at_us, _)| *at_us);
            let active =
                before.zip(weights.filter(|_| listing.processes.seen().is_some())).and_then(|(before, sum)| {
                    let elapsed_us = at_us - before;
                    // Percents × microseconds. Two that run in turn may each be told more than their part: together they are no more than the device (K18).
                    (elapsed_us > 0).then(|| (sum as f64 / (100.0 * elapsed_us as f64)).min(1.0))
                });
            self.listed.insert(card.clone(), (at_us, active));
        }
    }
}

fn place<T: PartialEq>(all: &[T], one: &T) -> usize {
    all.iter().position(|other| other == one).expect("one of all")
}

/// A name of bounded length: who writes it isn't us.
fn short(name: &Name) -> Name {
    match name.char_indices().nth(NAME_CHARS) {
        None => name.clone(),
        Some((end, _)) => Name::from(&name[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_between_characters() {
        let long = "卡".repeat(NAME_CHARS + 1);
        assert_eq!(short(&long.as_str().into()).chars().count(), NAME_CHARS);
        assert_eq!(short(&"gpu/1/b2".into()), "gpu/1/b2");
    }
}
