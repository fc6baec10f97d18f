//! Cards that were ready and that nobody held: who pays for them.

use super::held::{Held, leaf_entry, price_version};
use super::{Entry, EntryKey, EntryKind, FreeCapacity, MonthOfBooks, ReservedCapacity, ShareBy};
use crate::bill::{Hole, Leaves, Owned};
use cardhour_domain::{CardState, CardTime, Money, Name, spread};
use num_bigint::BigInt;
use std::collections::BTreeMap;

/// What `what` says of free cards.
pub const FREE: &str = "free";
/// What `what` says of reserved cards.
pub const RESERVED: &str = "reserved";

/// Free or reserved cards that somebody pays for, sorted into leaves.
pub(super) struct Unheld<'a> {
    pub what: &'static str,
    pub leaves: Leaves<'a>,
}

/// What nobody held and the policy has a line for, free cards first. Unlike held time it is whole: nothing of it is unbilled.
///
/// A free card has the price that most closely fits it and no owner; a reserved one that its owner pays for has the owner's.
pub(super) fn unheld<'a>(books: &MonthOfBooks<'a>, held: &Held<'a>) -> Vec<Unheld<'a>> {
    let bundles = &held.bundles;
    let sorted = |what, state: CardState, by_owner: bool| {
        let leaves = Leaves::unheld(bundles, books.slots, books.book, |bundle| {
            let owner = if by_owner { bundles.set_aside_for(bundle).unwrap_or_default() } else { [None; 3] };
            (bundle.state == state).then_some(Owned { owner, ..Owned::default() })
        });
        Unheld { what, leaves }
    };
    let mut unheld = Vec::new();
    match books.policy.capacity.free {
        FreeCapacity::Unbilled => {}
        FreeCapacity::Line | FreeCapacity::Shared => unheld.push(sorted(FREE, CardState::Free, false)),
    }
    match books.policy.capacity.reserved {
        ReservedCapacity::Unbilled => {}
        ReservedCapacity::Line => unheld.push(sorted(RESERVED, CardState::Reserved, false)),
        ReservedCapacity::Owner => unheld.push(sorted(RESERVED, CardState::Reserved, true)),
    }
    unheld
}

impl Unheld<'_> {
    /// The entry of a leaf at an amount.
    pub fn entry(&self, books: &MonthOfBooks<'_>, leaf: usize, amount: Money) -> Entry {
        let mut entry = leaf_entry(books, &self.leaves.all()[leaf], EntryKind::Idle, amount);
        entry.key.what = Some(self.what.into());
        entry
    }

    /// What each leaf costs by the price book; none in a hole.
    pub fn at_prices(&self, books: &MonthOfBooks<'_>) -> Vec<Entry> {
        let leaves = self.leaves.all().iter().enumerate();
        leaves.filter_map(|(number, leaf)| Some(self.entry(books, number, leaf.cost?))).collect()
    }

    /// Its time without a price.
    pub fn holes(&self) -> &[Hole] {
        &self.leaves.holes
    }
}

/// What a project held.
#[derive(Default)]
struct Project {
    cost: i128,
    card_time: CardTime,
}

/// The lines of free cards as the policy has them paid for: as they are, or a part of their sum for each project that held something.
///
/// Amounts, at list and as billed, and time are each spread by the same weights, so that nothing of them is lost. Where nobody held anything there is
/// nobody to share with, and the lines stay the platform's.
pub(super) fn shared(books: &MonthOfBooks<'_>, idle: Vec<Entry>, charges: &[Entry]) -> Vec<Entry> {
    let mut projects: BTreeMap<[Option<Name>; 2], Project> = BTreeMap::new();
    for charge in charges {
        let project = projects.entry([charge.key.org.clone(), charge.key.project.clone()]).or_default();
        project.cost += charge.amount.micros().max(0);
        project.card_time += charge.billed_time;
    }
    let (free, mut entries): (Vec<Entry>, Vec<Entry>) =
        idle.into_iter().partition(|entry| entry.key.what.as_deref() == Some(FREE));
    if projects.is_empty() || free.is_empty() {
        entries.extend(free);
        return entries;
    }
    let weight = |project: &Project| match books.policy.capacity.share_by {
        ShareBy::Cost => project.cost,
        ShareBy::CardHours => project.card_time.part_ms(),
        ShareBy::Even => 1,
    };
    let mut weights: Vec<i128> = projects.values().map(weight).collect();
    if weights.iter().all(|weight| *weight == 0) {
        weights.fill(1);
    }
    let weights: Vec<BigInt> = weights.into_iter().map(BigInt::from).collect();
    let currency = books.book.currency();
    let per_minor = currency.micros_per_minor();
    let in_minor = |amount: fn(&Entry) -> Option<Money>| {
        let sum: i128 = free.iter().filter_map(amount).map(Money::micros).sum();
        spread(sum / per_minor, &weights).into_iter().map(|minor| Money::from_micros(minor * per_minor, currency))
    };
    let time = spread(free.iter().map(|entry| entry.card_time.part_ms()).sum(), &weights);
    let lists = in_minor(|entry| entry.list_amount);
    let amounts = in_minor(|entry| Some(entry.amount));
    for ((([org, project], list), amount), time) in projects.into_keys().zip(lists).zip(amounts).zip(time) {
        let key =
            EntryKey { what: Some(FREE.into()), ..EntryKey::of(books.month, EntryKind::Idle, [org, project, None]) };
        let time = CardTime::from_part_ms(time);
        entries.push(Entry {
            price_version: Some(price_version(books)),
            card_time: time,
            billed_time: time,
            list_amount: Some(list),
            ..Entry::of(key, amount)
        });
    }
    entries
}
