//! Stretches over which the holders of a device or card stay the same.

use crate::holdings::Holding;
use cardhour_domain::{Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// Holdings of something, by device: those that name a card and have a share of it. By index, in the order of the holdings.
pub(crate) fn by_device(holdings: &[Holding]) -> BTreeMap<(&Name, &Name), Vec<u32>> {
    let mut devices: BTreeMap<(&Name, &Name), Vec<u32>> = BTreeMap::new();
    for (index, holding) in holdings.iter().enumerate() {
        if let (Some(card), Some(device)) = (&holding.claim.card_uuid, holding.claim.device_uuid())
            && !holding.share.is_zero()
        {
            let index = u32::try_from(index).expect("fewer than 2³² holdings in one derivation");
            devices.entry((card, device)).or_default().push(index);
        }
    }
    devices
}

/// The same by card, whatever the device.
pub(crate) fn by_card(holdings: &[Holding]) -> BTreeMap<&Name, Vec<u32>> {
    let mut cards: BTreeMap<&Name, Vec<u32>> = BTreeMap::new();
    for ((card, _), on) in by_device(holdings) {
        cards.entry(card).or_default().extend(on);
    }
    cards
}

/// Calls `each` with every stretch in which at least one of the holdings `on` goes on, in order, and with the places in `on` of those that do,
/// ascending.
pub(crate) fn segments(holdings: &[Holding], on: &[u32], mut each: impl FnMut(Interval, &[usize])) {
    let mut edges: Vec<(Timestamp, bool, usize)> = Vec::with_capacity(on.len() * 2);
    for (place, &index) in on.iter().enumerate() {
        let during = holdings[index as usize].during;
        edges.push((during.start(), true, place));
        edges.push((during.end(), false, place));
    }
    edges.sort_unstable();
    let mut active: Vec<usize> = Vec::new();
    let mut since: Option<Timestamp> = None;
    for (at, begins, place) in edges {
        if let Some(during) = since.and_then(|since| Interval::new(since, at))
            && !active.is_empty()
        {
            each(during, &active);
        }
        since = Some(at);
        if begins {
            active.push(place);
            active.sort_unstable();
        } else {
            active.retain(|other| *other != place);
        }
    }
}
