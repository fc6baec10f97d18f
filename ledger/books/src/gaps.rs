//! When nobody saw what a device did, or who held a card, and why: rows of the table `gaps`.
//!
//! A figure that is missing somewhere says how much is missing (`use_coverage`, `unaccounted`); this says when, where, and what to mend. A card
//! that is cut is seen by its instances, and one that isn't by itself.
//!
//! Start at [`presences`] for what there was to see, and [`unread`] and [`unwatched`] for when it wasn't.

use crate::cluster::{Cluster, Frame};
use crate::observed::{Seen, looked};
use crate::telemetry::Telemetry;
use cardhour_domain::{CardShare, CardTime, Gap, Interval, Name, Reading, Sample, SeenDevice, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What wasn't seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blind {
    /// How busy a device was.
    Use,
    /// Who held a card.
    Holders,
}

impl Blind {
    /// Its name in `gaps.what`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Holders => "holders",
        }
    }
}

/// A device was in service without a break, cut as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Its cluster.
    pub cluster: Name,
    /// Its node.
    pub node: Name,
    /// The card.
    pub card_uuid: Name,
    /// The instance, or the card.
    pub device_uuid: Name,
    /// How much of the card it is.
    pub share: CardShare,
    /// From when to when.
    pub during: Interval,
}

/// Something wasn't seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// What.
    pub what: Blind,
    /// Of which device; of a whole card for its holders.
    pub presence: Presence,
    /// When.
    pub during: Interval,
    /// Why.
    pub reason: Gap,
}

impl Unseen {
    /// How much card-time it is.
    pub fn card_time(&self) -> CardTime {
        CardTime::of(self.presence.share, self.during)
    }
}

/// Every device that nodes told of, from when it was first told to when it was cut otherwise or its node ceased to serve; by card and time.
pub fn presences(seen: &Seen, framed: &BTreeMap<Name, (Cluster, Frame)>) -> Vec<Presence> {
    let mut service: BTreeMap<(&Name, &Name), Vec<Interval>> = BTreeMap::new();
    for (cluster, frame) in framed.values() {
        for node in &cluster.nodes {
            service.entry((&node.cluster, &node.node)).or_default().extend(frame.service(node));
        }
    }
    // What was told of a card at an instant is all of it.
    let mut layouts: BTreeMap<&Name, BTreeMap<Timestamp, BTreeMap<&Name, &SeenDevice>>> = BTreeMap::new();
    for device in &seen.devices {
        let layout = layouts.entry(&device.card_uuid).or_default().entry(device.at).or_default();
        let told = layout.entry(&device.device_uuid).or_insert(device);
        let place = |device: &SeenDevice| (device.cluster.clone(), device.node.clone());
        if place(told) < place(device) {
            *told = device;
        }
    }
    let mut out: Vec<Presence> = Vec::new();
    for layouts in layouts.into_values() {
        let starts: Vec<Timestamp> = layouts.keys().copied().collect();
        for (i, layout) in layouts.into_values().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(Timestamp::from_unix_ms(i64::MAX));
            let Some(told) = Interval::new(starts[i], end) else { continue };
            let is_cut = layout.values().any(|device| device.device_uuid != device.card_uuid);
            for device in layout.into_values().filter(|device| (device.device_uuid != device.card_uuid) == is_cut) {
                let of_node = service.get(&(&device.cluster, &device.node)).cloned().unwrap_or_default();
                for during in Interval::union(of_node).into_iter().filter_map(|served| served.overlap(told)) {
                    let presence = Presence {
                        cluster: device.cluster.clone(),
                        node: device.node.clone(),
                        card_uuid: device.card_uuid.clone(),
                        device_uuid: device.device_uuid.clone(),
                        share: device.share,
                        during,
                    };
                    let goes_on = out.last_mut().filter(|last| {
                        last.during.end() == during.start()
                            && (&last.device_uuid, &last.node, last.share)
                                == (&presence.device_uuid, &presence.node, presence.share)
                    });
                    match goes_on {
                        Some(last) => last.during = Interval::new(last.during.start(), during.end()).expect("it grows"),
                        None => out.push(presence),
                    }
                }
            }
        }
    }
    out
}

/// When nobody read how busy a device was, inside `within`. `samples`: all that were told of that time, for the reasons they give.
pub fn unread(presences: &[Presence], telemetry: &Telemetry, samples: &[&Sample], within: Interval) -> Vec<Unseen> {
    let mut reasons: BTreeMap<&Name, Vec<(Interval, Gap)>> = BTreeMap::new();
    for sample in samples {
        if let Reading::Missing(gap) = sample.sm_active_pct {
            reasons.entry(&sample.device_uuid).or_default().push((sample.during, gap));
        }
    }
    for of_device in reasons.values_mut() {
        of_device.sort_unstable();
    }
    let mut out = Vec::new();
    for presence in presences {
        let Some(expected) = presence.during.overlap(within) else { continue };
        let key = (presence.card_uuid.clone(), presence.device_uuid.clone());
        let ticks = telemetry.devices.get(&key).map(Vec::as_slice).unwrap_or_default();
        let read = ticks.iter().filter(|tick| tick.sm_active.is_some()).map(|tick| tick.during).collect();
        let told = reasons.get(&presence.device_uuid).map(Vec::as_slice).unwrap_or_default();
        for hole in without(expected, &Interval::union(read)) {
            for (during, reason) in by_reason(hole, told) {
                out.push(Unseen { what: Blind::Use, presence: presence.clone(), during, reason });
            }
        }
    }
    out
}

/// When nobody looked who held a card, inside `within`.
pub fn unwatched(presences: &[Presence], seen: &Seen, within: Interval) -> Vec<Unseen> {
    let watched = looked(seen);
    let mut cards: BTreeMap<(&Name, &Name, &Name), Vec<Interval>> = BTreeMap::new();
    for presence in presences {
        let place = (&presence.card_uuid, &presence.cluster, &presence.node);
        cards.entry(place).or_default().extend(presence.during.overlap(within));
    }
    let mut out = Vec::new();
    for ((card_uuid, cluster, node), there) in cards {
        let looked = watched.get(card_uuid).map(Vec::as_slice).unwrap_or_default();
        for during in Interval::union(there) {
            let card = || Presence {
                cluster: cluster.clone(),
                node: node.clone(),
                card_uuid: card_uuid.clone(),
                device_uuid: card_uuid.clone(),
                share: CardShare::CARD,
                during,
            };
            let hole =
                |hole| Unseen { what: Blind::Holders, presence: card(), during: hole, reason: Gap::CollectorDown };
            out.extend(without(during, looked).into_iter().map(hole));
        }
    }
    out
}

/// What of `whole` isn't in `parts`, which are in order and don't touch.
fn without(whole: Interval, parts: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    let mut from = whole.start();
    let first = parts.partition_point(|part| part.end() <= whole.start());
    for part in parts[first..].iter().take_while(|part| part.start() < whole.end()) {
        out.extend(Interval::new(from, part.start()));
        from = from.max(part.end());
    }
    out.extend(Interval::new(from, whole.end()));
    out
}

/// A hole, cut by the reasons that samples give; where none does, no collector ran.
fn by_reason(hole: Interval, told: &[(Interval, Gap)]) -> Vec<(Interval, Gap)> {
    let near = told.iter().filter_map(|(during, gap)| Some((during.overlap(hole)?, *gap)));
    let near: Vec<(Interval, Gap)> = near.collect();
    let mut cuts = BTreeSet::from([hole.start(), hole.end()]);
    cuts.extend(near.iter().flat_map(|(during, _)| [during.start(), during.end()]));
    let cuts: Vec<Timestamp> = cuts.into_iter().collect();
    let mut out: Vec<(Interval, Gap)> = Vec::new();
    let mut from = 0;
    for piece in cuts.windows(2).filter_map(|pair| Interval::new(pair[0], pair[1])) {
        while near.get(from).is_some_and(|(during, _)| during.end() <= piece.start()) {
            from += 1;
        }
        let there = near[from..].iter().take_while(|(during, _)| during.start() <= piece.start());
        let reason = there.filter(|(during, _)| during.contains(piece.start())).map(|(_, gap)| *gap).min();
        let reason = reason.unwrap_or(Gap::CollectorDown);
        match out.last_mut().filter(|(last, gap)| *gap == reason && last.end() == piece.start()) {
            Some((last, _)) => *last = Interval::new(last.start(), piece.end()).expect("it grows"),
            None => out.push((piece, reason)),
        }
    }
    out
}

#[cfg(test)]
mod tests;
