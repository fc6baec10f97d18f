//! How busy each holder of a device was over a tick.

use super::part_of;
use crate::holdings::Holding;
use crate::telemetry::{DeviceTick, HolderTick, Telemetry};
use cardhour_domain::{CardShare, Name};
use std::ops::Range;

/// The holders of one device, tick by tick in order of time.
pub(super) struct BusyParts<'a> {
    /// In the order of the device's holdings.
    holders: Vec<OnDevice<'a>>,
    /// How much of its card the device is.
    device: CardShare,
    /// Places of those that hold now, one attempt's beside each other.
    active: Vec<usize>,
    /// Of `active`, those of one attempt.
    attempts: Vec<Range<usize>>,
    /// For each of the attempts, its part of the device's busy time as its processes tell. Unit: thousandths of a percent.
    told: Vec<Option<i64>>,
    /// What the last tick gave.
    parts: Vec<(usize, CardShare)>,
}

struct OnDevice<'a> {
    holding: &'a Holding,
    /// Its timeline, less what is over.
    ticks: &'a [HolderTick],
}

impl<'a> BusyParts<'a> {
    pub(super) fn new(holdings: &'a [Holding], on: &[u32], telemetry: &'a Telemetry, device: &Name) -> Self {
        let holder = |index: &u32| {
            let holding = &holdings[*index as usize];
            OnDevice { holding, ticks: telemetry.holder(device, &holding.claim.key) }
        };
        let holders: Vec<OnDevice<'a>> = on.iter().map(holder).collect();
        let slice = holders.iter().find_map(|holder| holder.holding.claim.slice.as_ref());
        let device = slice.map_or(CardShare::CARD, |slice| slice.share);
        Self { holders, device, active: Vec::new(), attempts: Vec::new(), told: Vec::new(), parts: Vec::new() }
    }

    /// These hold from now on: places among the device's holdings.
    pub(super) fn choose(&mut self, active: &[usize]) {
        let key = |place: &usize| &self.holders[*place].holding.claim.key;
        self.active.clear();
        self.active.extend(active);
        self.active.sort_by(|a, b| (key(a), a).cmp(&(key(b), b)));
        self.attempts.clear();
        let mut start = 0;
        for of_one in self.active.chunk_by(|a, b| key(a) == key(b)) {
            self.attempts.push(start..start + of_one.len());
            start += of_one.len();
        }
    }

    /// How busy each that holds now was: its place, and the part of the card. One of which nothing tells is not in it.
    pub(super) fn of(&mut self, tick: &DeviceTick) -> &[(usize, CardShare)] {
        self.parts.clear();
        let Some(busy) = tick.sm_active.map(|busy| i64::from(busy.thousandths())) else { return &self.parts };
        if self.attempts.len() == 1 || busy == 0 {
            // Alone, all of it is the holder's; and where nothing was done, there is nothing to tell apart.
            for attempt in 0..self.attempts.len() {
                self.give(attempt, part_of(self.device, busy, 100_000));
            }
            return &self.parts;
        }
        self.told.clear();
        for attempt in &self.attempts {
            let told = told(&mut self.holders[self.active[attempt.start]].ticks, tick);
            self.told.push(told);
        }
        // K18: what processes say is a weight; it adds up to no more than the device was busy.
        let sum = self.told.iter().flatten().sum::<i64>().max(busy);
        for attempt in 0..self.attempts.len() {
            if let Some(own) = self.told[attempt] {
                self.give(attempt, part_of(self.device, own * busy, sum * 100_000));
            }
        }
        &self.parts
    }

    /// Gives an attempt its part: by share, where it holds the device twice over.
    fn give(&mut self, attempt: usize, part: CardShare) {
        let places = &self.active[self.attempts[attempt].clone()];
        let shares = || places.iter().map(|place| self.holders[*place].holding.share);
        let all = shares().sum::<CardShare>().parts();
        if let [place] = places {
            self.parts.push((*place, part));
        } else {
            let cut = shares().map(|share| part_of(part, share.parts(), all));
            self.parts.extend(places.iter().copied().zip(cut));
        }
    }
}

/// What a holder's timeline says of the time of a tick: the first that speaks for at least half of it. Takes what is over off the timeline.
fn told(ticks: &mut &[HolderTick], tick: &DeviceTick) -> Option<i64> {
    while ticks.first().is_some_and(|own| own.during.end() <= tick.during.start()) {
        *ticks = &ticks[1..];
    }
    let half = |own: &&HolderTick| {
        own.during.overlap(tick.during).is_some_and(|both| both.length_ms() * 2 >= tick.during.length_ms())
    };
    let beside = ticks.iter().take_while(|own| own.during.start() < tick.during.end()).find(half)?;
    beside.sm_active.map(|own| i64::from(own.thousandths()))
}
