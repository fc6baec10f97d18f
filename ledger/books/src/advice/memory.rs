//! How much of a card's memory an attempt needed, as nodes saw it.
//!
//! A sample tells how much of a device is in use, whoever uses it: for a holder among several that is more than its own, so that the most that was seen is never less than what
//! it needed. Start at [`HeldDevices::note`]. Does not: read tables, or say anything of an attempt whose cards nobody named.

use cardhour_domain::{AttemptKey, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// What is known of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardMemory {
    /// Of one card of a model, where all cards of it that are known have the same. Unit: bytes.
    pub card_bytes: BTreeMap<Name, i64>,
    /// What attempts needed in the time that was loaded, of those that anybody saw.
    pub used: BTreeMap<AttemptKey, MemoryUse>,
}

/// What one attempt needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The most that was in use on one of its cards at the end of a tick. Unit: bytes.
    pub peak_bytes: i64,
    /// How long its cards were seen, added up over them; a stretch that two sources tell counts twice. Unit: card-milliseconds.
    pub seen_ms: i64,
}

impl MemoryUse {
    /// Both of one attempt.
    pub fn add(&mut self, other: Self) {
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.seen_ms = self.seen_ms.saturating_add(other.seen_ms);
    }
}

/// Who held which device, from when to when: what samples are looked up in.
#[derive(Clone, Debug, Default)]
pub struct HeldDevices {
    /// Of each device, in order of their starts.
    by_device: BTreeMap<Name, Vec<(Interval, AttemptKey)>>,
    /// The longest holding of each device, so that a look back has an end. Unit: milliseconds.
    longest_ms: BTreeMap<Name, i64>,
}

impl HeldDevices {
    /// From holdings in any order.
    pub fn new(holdings: impl IntoIterator<Item = (Name, Interval, AttemptKey)>) -> Self {
        let mut held = Self::default();
        for (device, during, key) in holdings {
            let longest = held.longest_ms.entry(device.clone()).or_default();
            *longest = (*longest).max(during.length_ms());
            held.by_device.entry(device).or_default().push((during, key));
        }
        held.by_device.values_mut().for_each(|holdings| holdings.sort());
        held
    }

    /// Whether nobody named a device.
    pub fn is_empty(&self) -> bool {
        self.by_device.is_empty()
    }

    /// Who held a device over a whole tick, alone; none where nobody did, or several.
    pub fn only_holder(&self, device: &str, during: Interval) -> Option<&AttemptKey> {
        let holdings = self.by_device.get(device)?;
        let from = Timestamp::from_unix_ms(during.start().unix_ms().saturating_sub(self.longest_ms[device]));
        let first = holdings.partition_point(|(holding, _)| holding.start() < from);
        let mut over = holdings[first..]
            .iter()
            .take_while(|(holding, _)| holding.start() < during.end())
            .filter(|(holding, _)| holding.overlap(during).is_some());
        match (over.next(), over.next()) {
            (Some((holding, key)), None) if holding.overlap(during) == Some(during) => Some(key),
            _ => None,
        }
    }

    /// Notes that so much of a device was in use over a tick for whoever held it then.
    pub fn note(&self, device: &str, during: Interval, used_bytes: i64, into: &mut BTreeMap<AttemptKey, MemoryUse>) {
        let Some(holdings) = self.by_device.get(device) else { return };
        let from = Timestamp::from_unix_ms(during.start().unix_ms().saturating_sub(self.longest_ms[device]));
        let first = holdings.partition_point(|(holding, _)| holding.start() < from);
        for (holding, key) in holdings[first..].iter().take_while(|(holding, _)| holding.start() < during.end()) {
            let Some(seen) = holding.overlap(during) else { continue };
            // The amount is that of the tick's end: of a tick that outlives the holding, it may be the next holder's.
            let is_its_own = holding.contains(Timestamp::from_unix_ms(during.end().unix_ms() - 1));
            if is_its_own {
                into.entry(key.clone())
                    .or_default()
                    .add(MemoryUse { peak_bytes: used_bytes, seen_ms: seen.length_ms() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::range;

    /// By hand: a holds a card from noon to one, b from one to two. Ticks of a quarter hour: 10 and 40 bytes in the first hour, 30 in the one that ends in b's, 5 on a card nobody holds.
    #[test]
    fn the_most_that_was_in_use_while_it_was_held_is_whoever_held_it() {
        let key = |job: &str| AttemptKey::new("c", job, "");
        let at = |from: &str, to: &str| range(&format!("2026-03-10T{from}"), &format!("2026-03-10T{to}"));
        let held = HeldDevices::new([
            ("g0".into(), at("13:00", "14:00"), key("b")),
            ("g0".into(), at("12:00", "13:00"), key("a")),
        ]);
        let mut found = BTreeMap::new();
        held.note("g0", at("12:00", "12:15"), 10, &mut found);
        held.note("g0", at("12:15", "12:30"), 40, &mut found);
        held.note("g0", at("12:50", "13:05"), 30, &mut found);
        held.note("g1", at("12:00", "12:15"), 5, &mut found);
        let minutes = |minutes: i64| minutes * 60_000;
        assert_eq!(
            found,
            BTreeMap::from([
                (key("a"), MemoryUse { peak_bytes: 40, seen_ms: minutes(30) }),
                (key("b"), MemoryUse { peak_bytes: 30, seen_ms: minutes(5) }),
            ])
        );
    }
}
