//! The cards of some attempts side by side, from one start or end to the next.

use super::Sources;
use super::work::Work;
use crate::prices::Priced;
use crate::slots::Slot;
use cardhour_domain::{CardShare, Interval, Name, Rate, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Some time over which the same attempts held cards.
pub(super) struct Piece {
    pub during: Interval,
    /// Indexes into the attempts, in their order.
    pub active: Vec<usize>,
}

/// Cuts `within` wherever one of the attempts begins or ends. Shape: in order of time; also what nobody held.
pub(super) fn pieces(works: &[&Work<'_>], within: Interval) -> Vec<Piece> {
    let held: Vec<Option<Interval>> =
        works.iter().map(|work| work.attempt.held.and_then(|held| held.overlap(within))).collect();
    let mut edges: BTreeSet<Timestamp> = [within.start(), within.end()].into();
    let mut starts: BTreeMap<Timestamp, Vec<usize>> = BTreeMap::new();
    for (i, held) in held.iter().enumerate().filter_map(|(i, held)| Some((i, (*held)?))) {
        edges.extend([held.start(), held.end()]);
        starts.entry(held.start()).or_default().push(i);
    }
    let edges: Vec<Timestamp> = edges.into_iter().collect();
    let mut active: BTreeSet<usize> = BTreeSet::new();
    let mut out = Vec::with_capacity(edges.len());
    for pair in edges.windows(2) {
        active.retain(|i| held[*i].is_some_and(|held| held.end() > pair[0]));
        active.extend(starts.get(&pair[0]).into_iter().flatten());
        let during = Interval::new(pair[0], pair[1]).expect("edges are in order, each once");
        out.push(Piece { during, active: active.iter().copied().collect() });
    }
    out
}

/// The price that each attempt's card-hour has in each slot of time.
pub(super) struct PricesOfWork<'a> {
    sources: &'a Sources<'a>,
    known: BTreeMap<(usize, u32), Option<usize>>,
}

impl<'a> PricesOfWork<'a> {
    pub fn new(sources: &'a Sources<'a>) -> Self {
        Self { sources, known: BTreeMap::new() }
    }

    /// The slot of a bucket, by its number; none of one that isn't in the period's books.
    pub fn slot(&self, bucket: Timestamp) -> Option<(u32, &'a Slot)> {
        let number = self.sources.spent.slots.slot_of(bucket)?;
        Some((number, self.sources.spent.slots.slot(number)))
    }

    /// Price of the attempt of that index in a slot; none where the book has none for it.
    pub fn of(&mut self, index: usize, work: &Work<'_>, number: u32) -> Option<usize> {
        let sources = self.sources;
        *self.known.entry((index, number)).or_insert_with(|| {
            let cell = work.cells.first()?;
            sources.book.find(&work.priced(cell), sources.spent.slots.slot(number).effective_at?)
        })
    }

    /// Price in a slot of a whole card of a pool, where one of the book selects by that pool.
    pub fn of_pool(&mut self, work: &Work<'_>, pool: &Name, number: u32) -> Option<usize> {
        let sources = self.sources;
        *self.known.entry((usize::MAX, number)).or_insert_with(|| {
            let what = Priced { pool: Some(pool), queue: None, class: None, ..work.priced(work.cells.first()?) };
            let price = sources.book.find(&what, sources.spent.slots.slot(number).effective_at?)?;
            let mut given = sources.book.prices()[price].selectors.given();
            given.any(|(selector, _)| selector == crate::prices::Selector::Pool).then_some(price)
        })
    }

    /// What a card-hour costs at a price in a slot, to put prices in order.
    pub fn rate(&self, price: usize, slot: &Slot) -> Rate {
        self.sources.book.rate(price, slot.window)
    }
}

/// Parts of cards that one takes of what is left.
pub(super) fn take(left: &mut CardShare, wanted: CardShare) -> CardShare {
    let taken = wanted.min(*left);
    *left = left.saturating_sub(taken);
    taken
}
