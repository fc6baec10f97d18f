//! A card that the kernel has put to sleep, as laptops and workstations do with cards that nobody uses.
//!
//! Any call would wake it, and calls that come every few seconds would keep it awake for ever. So none is made. What is known of it is what the kernel
//! says: nothing ran on it while it slept. Its counters are read when it is awake again, and tell what was used meanwhile.

use super::Card;
use crate::probe::nvml::processes::LIST_STANDS_US;
use crate::probe::pci::Asleep;
use crate::probe::{CardListing, DeviceReading, Moment, RingRead};
use cardhour_domain::{Gap, Reading};
use std::path::Path;

/// How a card sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Sleep {
    awake_ms: Option<u64>,
    /// It wasn't awake since the look before.
    is_through: bool,
    /// Nor since it was first seen asleep.
    is_unbroken: bool,
}

impl Card<'_> {
    /// Takes in what the kernel says of its sleep, before anything is asked of it.
    pub fn rest(&mut self, asleep: Option<Asleep>) {
        self.sleep = asleep.map(|Asleep { awake_ms }| match self.sleep {
            None => Sleep { awake_ms, is_through: false, is_unbroken: true },
            Some(before) => {
                let is_through = awake_ms.is_some() && before.awake_ms == awake_ms;
                Sleep { awake_ms, is_through, is_unbroken: before.is_unbroken && is_through }
            }
        });
    }

    /// Whether it can be asked: it is neither lost nor asleep.
    pub fn can_be_asked(&self) -> bool {
        self.sleep.is_none() && self.line.lost().is_none()
    }

    /// Whether it sleeps.
    pub fn is_asleep(&self) -> bool {
        self.sleep.is_some()
    }

    /// What is known of its use without a call, in place of its rings.
    pub(super) fn poll_asleep(&mut self, at: Moment, sleep: Sleep) {
        // Where it was awake in between, what it did then is in a ring that can't be read.
        let now_percent = if sleep.is_through { Reading::Seen(0) } else { Reading::Missing(Gap::Asleep) };
        let read = RingRead { at, entries: Reading::Seen(Vec::new()), now_percent };
        self.busy.reads.push(read.clone());
        self.memory.reads.push(read);
    }

    /// A tick of it: `silent` are its devices without a value, the card first.
    pub fn read_asleep(&mut self, mut silent: Vec<DeviceReading>, out: &mut Vec<DeviceReading>) {
        if let Some(card) = silent.first_mut() {
            (card.driver_index, card.minor) = (self.driver_index, self.minor);
            card.busy_ring = std::mem::take(&mut self.busy.reads);
            card.memory_ring = std::mem::take(&mut self.memory.reads);
        }
        out.extend(silent);
    }

    /// That it has no process, where that is sure: to begin to use it would wake it, and those that were on it before are no more. `processes` is `/proc`.
    pub fn list_asleep(&self, processes: &Path) -> Option<CardListing> {
        let pids = self.processes.pids().filter(|_| self.sleep.is_some_and(|sleep| sleep.is_unbroken))?;
        let are_gone = pids.iter().all(|pid| !processes.join(pid.to_string()).exists());
        are_gone.then(|| CardListing {
            card_uuid: self.id.card_uuid.clone(),
            processes: Reading::Seen(0),
            stands_us: LIST_STANDS_US,
        })
    }
}
