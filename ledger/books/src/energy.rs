//! Whose energy it was.
//!
//! Energy belongs to the card and is split by share: over its holders, by share × time × what the card drew then, and what nobody held is
//! the free time's. Inside it is parts × millijoules; it is split once a card and bucket, by largest remainder, and the parts add up to
//! what the card drew (LED-10).
//!
//! Start at [`energy`]. Does not: estimate what nobody read, or know slices (they have no sensor; their holders share the card's).

use crate::holdings::Holding;
use crate::split::{by_card, segments};
use crate::telemetry::{DeviceTick, Telemetry};
use cardhour_domain::{AttemptKey, CardShare, EnergyBasis, Interval, Millijoules, Name, Timestamp, spread_by};

/// The energy of one holding in one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldEnergy {
    /// The bucket.
    pub bucket_start: Timestamp,
    /// Index of the holding.
    pub holding: u32,
    /// Its part.
    pub energy: Millijoules,
    /// What the card's energy in the bucket was read from: `Power`, an estimate, if any of it was.
    pub basis: EnergyBasis,
}

/// The energy that a card drew while nobody held it, or not all of it, in one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeEnergy {
    /// The bucket.
    pub bucket_start: Timestamp,
    /// The card.
    pub card_uuid: Name,
    /// What is left to it.
    pub energy: Millijoules,
    /// As in [`HeldEnergy`].
    pub basis: EnergyBasis,
}

/// Whose energy it was. Only where some was read: a missing row is not known, not nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Energy {
    /// By holding, then bucket.
    pub held: Vec<HeldEnergy>,
    /// By card, then bucket; also where nothing is left to it.
    pub free: Vec<FreeEnergy>,
}

/// Splits the energy of all cards over `spans` (on quarter hours, disjoint, ascending) between `holdings` and nobody.
///
/// A tick that crosses an edge is cut as if drawn evenly, each piece in whole millijoules so that the pieces add up to it. What rounding leaves
/// over goes to the largest remainder, ties by the attempt's key, free time last. It is split between attempts first and then between the
/// holdings of each, so that cutting a holding changes nothing for its attempt.
pub fn energy(holdings: &[Holding], telemetry: &Telemetry, spans: &[Interval]) -> Energy {
    let by_card = by_card(holdings);
    let mut energy = Energy::default();
    for ((card, device), ticks) in &telemetry.devices {
        if card != device || ticks.iter().all(|tick| tick.energy.is_none()) {
            continue;
        }
        let on = by_card.get(card).map(Vec::as_slice).unwrap_or_default();
        // Who held from when to when: holdings share a bucket in turn or side by side.
        let mut stretches: Vec<(Interval, Vec<u32>)> = Vec::new();
        segments(holdings, on, |during, active| {
            stretches.push((during, active.iter().map(|place| on[*place]).collect()));
        });
        let mut meter = Meter { holdings, card, bucket: None };
        let mut at = 0;
        for tick in ticks.iter().filter(|tick| tick.energy.is_some()) {
            for inside in spans.iter().filter_map(|span| span.overlap(tick.during)) {
                for (bucket_start, piece) in inside.buckets() {
                    meter.turn_to(bucket_start, tick.energy_basis, &mut energy);
                    while stretches.get(at).is_some_and(|(during, _)| during.end() <= piece.start()) {
                        at += 1;
                    }
                    meter.add(tick, piece, &stretches[at..]);
                }
            }
        }
        meter.flush(&mut energy);
    }
    energy.held.sort_by_key(|row| (row.holding, row.bucket_start));
    energy
}

/// Sums the energy of one card, bucket by bucket.
struct Meter<'a> {
    holdings: &'a [Holding],
    card: &'a Name,
    bucket: Option<Bucket>,
}

struct Bucket {
    start: Timestamp,
    basis: EnergyBasis,
    total: i64,
    /// Parts × millijoules of each holding that had a share.
    held: Vec<(u32, i128)>,
}

impl Meter<'_> {
    fn turn_to(&mut self, start: Timestamp, basis: EnergyBasis, energy: &mut Energy) {
        match &mut self.bucket {
            Some(bucket) if bucket.start == start => bucket.basis = bucket.basis.max(basis),
            _ => {
                self.flush(energy);
                self.bucket = Some(Bucket { start, basis, total: 0, held: Vec::new() });
            }
        }
    }

    /// Adds the part of a tick in `piece`, which lies in the bucket.
    fn add(&mut self, tick: &DeviceTick, piece: Interval, stretches: &[(Interval, Vec<u32>)]) {
        let Some(bucket) = &mut self.bucket else { return };
        let drawn = |during: Interval| tick.energy_before(during.end()) - tick.energy_before(during.start());
        bucket.total += drawn(piece);
        for (during, holders) in stretches.iter().take_while(|(during, _)| during.start() < piece.end()) {
            let Some(both) = during.overlap(piece) else { continue };
            let drawn = i128::from(drawn(both));
            for &holder in holders {
                let weight = i128::from(self.holdings[holder as usize].share.parts()) * drawn;
                match bucket.held.iter_mut().find(|(known, _)| *known == holder) {
                    Some((_, sum)) => *sum += weight,
                    None => bucket.held.push((holder, weight)),
                }
            }
        }
    }

    /// Writes the bucket in progress.
    fn flush(&mut self, energy: &mut Energy) {
        let Some(Bucket { start: bucket_start, basis, total, mut held }) = self.bucket.take() else { return };
        let key = |index: u32| -> &AttemptKey { &self.holdings[index as usize].claim.key };
        held.sort_by(|(a, _), (b, _)| (key(*a), a).cmp(&(key(*b), b)));
        let attempts: Vec<&[(u32, i128)]> = held.chunk_by(|(a, _), (b, _)| key(*a) == key(*b)).collect();
        let mut weights: Vec<i128> =
            attempts.iter().map(|of_one| of_one.iter().map(|(_, weight)| weight).sum()).collect();
        let whole = i128::from(total) * i128::from(CardShare::PARTS_PER_CARD);
        // Two clusters that claim one card may hold more than there is of it.
        weights.push((whole - weights.iter().sum::<i128>()).max(0));
        let free = weights.len() - 1;
        let parts = if total == 0 { vec![0; weights.len()] } else { spread_by(i128::from(total), &weights) };
        let small = |part: i128| Millijoules(i64::try_from(part).expect("a part is no larger than the total"));
        for (of_one, part) in attempts.iter().zip(&parts) {
            let weights: Vec<i128> = of_one.iter().map(|(_, weight)| *weight).collect();
            for ((holding, _), part) in of_one.iter().zip(spread_by(*part, &weights)) {
                energy.held.push(HeldEnergy { bucket_start, holding: *holding, energy: small(part), basis });
            }
        }
        let card_uuid = self.card.clone();
        energy.free.push(FreeEnergy { bucket_start, card_uuid, energy: small(parts[free]), basis });
    }
}

#[cfg(test)]
mod tests;
