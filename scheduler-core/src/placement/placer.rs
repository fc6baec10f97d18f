//! Chooses hosts, one request at a time, and remembers what it worked out.
//!
//! A host is rated once for each kind of request between two changes of that host: ratings stay until something is taken there or given back.

use super::fragmentation::Yardstick;
use super::mix::{Kind, TypicalMix};
use super::policy::Policy;
use super::pool::{Host, Request};
use super::rating::{Rating, Sort, View, rate, worth};
use crate::chance::{Chance, Purpose};
use std::collections::BTreeMap;

/// How many ratings are remembered at most, about 40 bytes each. When they are more, all are forgotten.
const MOST_RATINGS: usize = 1 << 21;

/// A pool of hosts and a policy that chooses among them.
#[derive(Clone, Debug)]
pub struct Placer {
    policy: Policy,
    slots: Vec<Slot>,
    /// One for each card model.
    yardsticks: Vec<Yardstick>,
    /// Where in `ratings` a kind of request is.
    columns: BTreeMap<Kind, usize>,
    /// By kind, then by host.
    ratings: Vec<Vec<Remembered>>,
    /// How many ratings are remembered at most.
    most_ratings: usize,
    chance: Chance,
}

/// A host, and what depends on it alone.
#[derive(Clone, Debug)]
struct Slot {
    host: Host,
    yardstick: usize,
    worth: i64,
    sorts: BTreeMap<Sort, u32>,
    /// Rises with each change; above zero.
    version: u64,
}

/// What was worked out of a host at a version of it.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    version: u64,
    /// None where the request doesn't fit, memory apart.
    rating: Option<Rating>,
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the host, in the order in which they were given.
    pub host: usize,
    /// Indexes of the cards on that host.
    pub cards: Vec<usize>,
}

impl Placer {
    /// Over hosts as they are. Among hosts that are equally good the first in this order is chosen. The mix is what `policy` asks for
    /// ([`Policy::mix`]); the seed means something to [`Policy::Random`] alone.
    pub fn new(policy: Policy, hosts: Vec<Host>, mix: &TypicalMix, seed: u64) -> Self {
        let mut models = BTreeMap::new();
        let mut yardsticks = Vec::new();
        let slots = hosts.into_iter().map(|host| {
            let yardstick = *models.entry(host.model).or_insert_with(|| {
                yardsticks.push(Yardstick::new(mix, host.model));
                yardsticks.len() - 1
            });
            let worth = worth(policy, &yardsticks[yardstick], host.cpu_milli_left, &host.card_milli_left);
            Slot { host, yardstick, worth, sorts: BTreeMap::new(), version: 1 }
        });
        let (slots, chance) = (slots.collect(), Chance::new(seed, Purpose::Choices));
        Self {
            policy,
            slots,
            yardsticks,
            columns: BTreeMap::new(),
            ratings: Vec::new(),
            most_ratings: MOST_RATINGS,
            chance,
        }
    }

    /// The hosts as they are, in the order in which they were given.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = &Host> {
        self.slots.iter().map(|slot| &slot.host)
    }

    /// Where a request should go; none where it fits nowhere. Takes nothing yet.
    pub fn choose(&mut self, request: &Request) -> Option<Place> {
        if self.policy == Policy::Random {
            return self.choose_any(request);
        }
        let column = self.column(request);
        let mut best: Option<(usize, Rating)> = None;
        for (host, (slot, remembered)) in self.slots.iter().zip(&mut self.ratings[column]).enumerate() {
            if remembered.version != slot.version {
                let view = View {
                    host: &slot.host,
                    sorts: &slot.sorts,
                    yardstick: &self.yardsticks[slot.yardstick],
                    worth: slot.worth,
                };
                let rating = slot.host.has_cards_for(request).then(|| rate(self.policy, view, request));
                *remembered = Remembered { version: slot.version, rating };
            }
            if let Some(rating) = remembered.rating
                && slot.host.has_memory_for(request)
                && best.is_none_or(|(_, best)| rating.score > best.score)
            {
                best = Some((host, rating));
            }
        }
        best.map(|(host, rating)| {
            let tightest = || self.slots[host].host.tightest_cards(request);
            Place { host, cards: rating.card.map_or_else(tightest, |card| vec![card]) }
        })
    }

    /// Any host, and for a share any of its cards: the published figures come of both being drawn.
    fn choose_any(&mut self, request: &Request) -> Option<Place> {
        let fits: Vec<usize> = (0..self.slots.len()).filter(|&host| self.slots[host].host.fits(request)).collect();
        if fits.is_empty() {
            return None;
        }
        let host = fits[self.chance.below(fits.len())];
        let mut cards = self.slots[host].host.tightest_cards(request);
        if request.is_share() {
            let lefts = self.slots[host].host.card_milli_left.iter().enumerate();
            let with_room: Vec<usize> =
                lefts.filter(|&(_, &left)| left >= request.card_milli).map(|(card, _)| card).collect();
            cards = vec![with_room[self.chance.below(with_room.len())]];
        }
        Some(Place { host, cards })
    }

    /// Where ratings for such requests are, made room for where there was none.
    fn column(&mut self, request: &Request) -> usize {
        let kind = Kind::of(request);
        if let Some(&column) = self.columns.get(&kind) {
            return column;
        }
        if (self.ratings.len() + 1).saturating_mul(self.slots.len()) > self.most_ratings {
            self.columns.clear();
            self.ratings.clear();
        }
        let column = self.ratings.len();
        self.ratings.push(vec![Remembered { version: 0, rating: None }; self.slots.len()]);
        self.columns.insert(kind, column);
        column
    }

    /// Takes what is asked for at a place that [`Self::choose`] gave.
    pub fn take(&mut self, request: &Request, place: &Place) {
        let slot = &mut self.slots[place.host];
        slot.host.take(request, &place.cards);
        if let Some(sort) = Sort::of(request) {
            *slot.sorts.entry(sort).or_default() += 1;
        }
        self.changed(place.host);
    }

    /// Gives back what was taken there.
    pub fn give_back(&mut self, request: &Request, place: &Place) {
        let slot = &mut self.slots[place.host];
        slot.host.give_back(request, &place.cards);
        if let Some(sort) = Sort::of(request) {
            let count = slot.sorts.get_mut(&sort).expect("what is given back was taken");
            *count -= 1;
            if *count == 0 {
                slot.sorts.remove(&sort);
            }
        }
        self.changed(place.host);
    }

    fn changed(&mut self, host: usize) {
        let slot = &mut self.slots[host];
        slot.version += 1;
        let yardstick = &self.yardsticks[slot.yardstick];
        slot.worth = worth(self.policy, yardstick, slot.host.cpu_milli_left, &slot.host.card_milli_left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_worked_out_anew() {
        let host = |cores: u64| Host {
            model: None,
            cpu_milli_left: cores * 1000,
            memory_mib_left: 64,
            card_milli_left: vec![1000; 2],
        };
        let hosts: Vec<Host> = (1..=8).map(host).collect();
        let usual: Vec<Request> = (1..=6)
            .map(|n| Request {
                cpu_milli: n * 700,
                memory_mib: 1,
                cards: 1,
                card_milli: 150 * n as u32,
                models: Vec::new(),
            })
            .collect();
        let places = |most_ratings| {
            let mut placer = Placer::new(Policy::Cardhour, hosts.clone(), &Policy::Cardhour.mix(&usual), 1);
            placer.most_ratings = most_ratings;
            let place = |step: usize| {
                let request = &usual[step * 5 % 6];
                let place = placer.choose(request);
                place.iter().for_each(|place| placer.take(request, place));
                assert!(placer.ratings.len() * hosts.len() <= most_ratings.max(hosts.len()));
                place
            };
            (0..40).map(place).collect::<Vec<_>>()
        };
        // Room for all six kinds on eight hosts, for two, and for none but the one in hand.
        let all = places(MOST_RATINGS);
        assert!(all.iter().any(Option::is_some) && all.iter().any(Option::is_none));
        assert_eq!((places(16), places(0)), (all.clone(), all));
    }
}
