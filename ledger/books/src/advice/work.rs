//! What one attempt held of what a budget paid for, and what it would have cost elsewhere.

use super::{Sources, Whom};
use crate::budgets::{Budget, Owner, Period};
use crate::cell::{Cell, Used};
use crate::prices::{PriceBook, Priced};
use crate::report::ReportAttempt;
use crate::slots::Era;
use cardhour_domain::{CardShare, CardState, CardTime, Month, Name};
use std::collections::BTreeMap;

/// How much of its time has to be seen before anything is said of an attempt: as much as an efficiency is shown for. Unit: percent.
const LEAST_SEEN_PERCENT: i128 = 50;

/// An attempt's part of what a budget paid for.
pub(super) struct Work<'a> {
    pub attempt: &'a ReportAttempt,
    pub cells: Vec<&'a Cell>,
}

/// How busy something was: `busy` of `seen`, lost time in neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    pub busy: CardTime,
    pub seen: CardTime,
}

impl Busy {
    pub const NONE: Self = Self { busy: CardTime::ZERO, seen: CardTime::ZERO };

    pub fn add(&mut self, other: Self) {
        self.busy += other.busy;
        self.seen += other.seen;
    }

    pub fn is_below(self, percent: i128) -> bool {
        self.busy.part_ms() * 100 < self.seen.part_ms() * percent
    }

    /// Its part of one card, rounded up. Unit: millionths.
    pub fn millionths(self) -> i128 {
        (self.busy.part_ms() * 1_000_000 + self.seen.part_ms() - 1) / self.seen.part_ms()
    }

    /// As people read it: `12.0 %`.
    pub fn shown(self) -> String {
        self.busy.ratio_of(self.seen).map_or_else(|| "(not seen)".to_owned(), crate::checkpoint::cells::percent)
    }
}

/// The attempts that a budget paid for in its period, in the order of their keys.
pub(super) fn works<'a>(budget: &Budget, period: Period, sources: &Sources<'a>) -> Vec<Work<'a>> {
    let input = sources.spent.input;
    let mut by_key: BTreeMap<&str, Work<'a>> = BTreeMap::new();
    for cell in input.cells.iter().filter(|cell| cell.state == CardState::Held) {
        let slot = sources.spent.slots.slot(cell.slot);
        let Some(number) = cell.attempt.filter(|_| slot.era == Era::Shown && period.contains(slot.month)) else {
            continue;
        };
        let attempt = &input.attempts[number as usize];
        let text = |name: &'a Option<Name>| name.as_deref();
        let owner = Owner {
            org: text(&attempt.org),
            project: text(&attempt.project),
            user: text(&attempt.user),
            queue: text(&attempt.queue),
            class: text(&attempt.class),
            model: text(&cell.model),
        };
        if budget.scope.covers(&owner) {
            by_key.entry(attempt.key.as_str()).or_insert_with(|| Work { attempt, cells: Vec::new() }).cells.push(cell);
        }
    }
    by_key.into_values().collect()
}

impl<'a> Work<'a> {
    /// The one model of its cards, which it had whole; none where it had parts, several models, or nobody knows.
    pub fn whole_cards_of(&self) -> Option<&'a Name> {
        let first = self.cells.first()?.model.as_ref()?;
        let is_whole =
            |cell: &&Cell| cell.model.as_ref() == Some(first) && cell.share.is_none() && cell.mig_profile.is_none();
        self.cells.iter().all(is_whole).then_some(first)
    }

    /// Whether it had one card, all of it.
    pub fn had_one_card(&self) -> bool {
        self.attempt.cards == CardShare::CARD
    }

    pub fn held(&self) -> CardTime {
        self.cells.iter().map(|cell| cell.card_time).sum()
    }

    pub fn billed(&self) -> CardTime {
        self.cells.iter().map(|cell| cell.billed_time).sum()
    }

    pub fn used(&self) -> Used {
        let mut used = Used::default();
        self.cells.iter().filter_map(|cell| cell.used.as_deref()).for_each(|more| used.add(more));
        used
    }

    /// How busy it was; none where too little of it was seen to say.
    pub fn busy(&self) -> Option<Busy> {
        let used = self.used();
        let seen = used.effective + used.idle + used.underused;
        let is_enough = (seen + used.lost).part_ms() * 100 >= self.held().part_ms() * LEAST_SEEN_PERCENT;
        (is_enough && !seen.is_zero()).then_some(Busy { busy: used.effective, seen })
    }

    /// The most memory of one card that it used; none where too little of it was seen to say. Unit: bytes.
    pub fn memory_peak_bytes(&self, sources: &Sources<'_>) -> Option<i64> {
        let used = sources.memory.used.get(&self.attempt.key)?;
        // Memory is told of all its time in the books that were loaded, of which the budget may have paid a part.
        let held = self.attempt.held?.overlap(sources.range)?;
        let all = CardTime::of(self.attempt.cards, held).part_ms();
        let seen = i128::from(used.seen_ms) * i128::from(CardShare::PARTS_PER_CARD);
        (seen * 100 >= all * LEAST_SEEN_PERCENT).then_some(used.peak_bytes)
    }

    /// Who it is for.
    pub fn whom(&self) -> Whom {
        Whom {
            project: self.attempt.project.clone(),
            user: self.attempt.user.clone(),
            model: self.whole_cards_of().cloned(),
        }
    }

    /// What its billed time costs as it was held, or on another model; none where some of it has no price.
    pub fn charges(&self, sources: &Sources<'_>, other_model: Option<&Name>) -> Option<Charges> {
        let mut charges = Charges::default();
        for cell in self.cells.iter().filter(|cell| !cell.billed_time.is_zero()) {
            let slot = sources.spent.slots.slot(cell.slot);
            let what = Priced { model: other_model.or(cell.model.as_ref()).map(|name| &**name), ..self.priced(cell) };
            let price = sources.book.find(&what, slot.effective_at?)?;
            charges.add(slot.month, price, slot.window, cell.billed_time);
        }
        Some(charges)
    }

    /// What one of its cells of whole cards is to a price.
    pub fn priced(&self, cell: &'a Cell) -> Priced<'a> {
        Priced {
            model: cell.model.as_deref(),
            mig_profile: None,
            share: Some("1"),
            pool: cell.pool.as_deref(),
            queue: self.attempt.queue.as_deref(),
            class: self.attempt.class.as_deref(),
            org: self.attempt.org.as_deref(),
            project: self.attempt.project.as_deref(),
            cluster: Some(&cell.cluster),
        }
    }
}

/// Card-time by what it costs, charged once for each month, price and window, as a bill is (LED-6).
#[derive(Clone, Debug, Default)]
pub(super) struct Charges(BTreeMap<(Month, usize, Option<usize>), CardTime>);

impl Charges {
    pub fn add(&mut self, month: Month, price: usize, window: Option<usize>, time: CardTime) {
        *self.0.entry((month, price, window)).or_default() += time;
    }

    pub fn extend(&mut self, other: &Self) {
        for ((month, price, window), time) in &other.0 {
            self.add(*month, *price, *window, *time);
        }
    }

    /// What it costs. Unit: millionths of the book's currency.
    pub fn micros(&self, book: &PriceBook) -> i128 {
        let charge = |((_, price, window), time): (&(Month, usize, Option<usize>), &CardTime)| {
            book.rate(*price, *window).charge(*time, book.currency()).micros()
        };
        self.0.iter().map(charge).sum()
    }
}
