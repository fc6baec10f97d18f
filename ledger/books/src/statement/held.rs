//! The leaves of a month's held time, and what each comes to.

use super::draft::MonthOfBooks;
use super::fraction::Fraction;
use super::seen::by_use_reason;
use super::used_basis::Basis;
use super::{Entry, EntryKey, EntryKind};
use crate::bill::{Leaf, Leaves, NO_LEAF};
use crate::report::bundles::Bundles;
use cardhour_domain::{CardTime, Money, Name};

/// What was held in a month, sorted into leaves.
pub(super) struct Held<'a> {
    pub bundles: Bundles<'a>,
    pub leaves: Leaves<'a>,
    pub basis: Basis,
    /// For each leaf, what of it is charged.
    pub charged_time: Vec<CardTime>,
    /// For each leaf, what of its billed time isn't charged because it is by use and nobody saw it.
    unseen: Vec<CardTime>,
}

/// A charge, and its amount before it was rounded.
pub(super) struct Charged {
    pub entry: Entry,
    pub exact: Fraction,
}

impl<'a> Held<'a> {
    pub fn of(books: &MonthOfBooks<'a>) -> Self {
        let bundles = Bundles::of(books.input, &[]);
        let leaves = Leaves::of(&bundles, books.slots, Some(books.book));
        let basis = Basis::of(&bundles, books.policy);
        let mut charged_time = vec![CardTime::ZERO; leaves.all().len()];
        let mut unseen = charged_time.clone();
        for (bundle, &leaf) in bundles.all.iter().zip(&leaves.of_bundle) {
            if leaf != NO_LEAF {
                charged_time[leaf as usize] += basis.charged_time(bundle);
                unseen[leaf as usize] += basis.unseen(bundle);
            }
        }
        Self { bundles, leaves, basis, charged_time, unseen }
    }

    /// The entry of a leaf at an amount; its time billed is what is charged for.
    pub fn entry(&self, books: &MonthOfBooks<'_>, leaf: usize, amount: Money) -> Entry {
        let (charged_time, unseen) = (self.charged_time[leaf], self.unseen[leaf]);
        let leaf = &self.leaves.all()[leaf];
        Entry {
            billed_time: charged_time,
            reason: (!unseen.is_zero()).then(|| by_use_reason(unseen)),
            ..leaf_entry(books, leaf, EntryKind::Charge, amount)
        }
    }

    /// What each leaf costs by the price book; none in a hole.
    pub fn at_prices(&self, books: &MonthOfBooks<'_>) -> Vec<Option<Charged>> {
        let currency = books.book.currency();
        let charged = |(number, leaf): (usize, &Leaf<'_>)| {
            let rate = books.book.rate(leaf.price?, leaf.window);
            let (numerator, denominator) = rate.exact(self.charged_time[number]);
            let exact = Fraction { numerator, denominator };
            Some(Charged { entry: self.entry(books, number, exact.round(currency)), exact })
        };
        self.leaves.all().iter().enumerate().map(charged).collect()
    }
}

/// The entry of a leaf, held or not, at an amount.
pub(super) fn leaf_entry(books: &MonthOfBooks<'_>, leaf: &Leaf<'_>, kind: EntryKind, amount: Money) -> Entry {
    assert_eq!(leaf.month, books.month, "LED-9: a draft is given one month");
    Entry {
        price_version: Some(price_version(books)),
        card_time: leaf.card_time,
        billed_time: leaf.billed_time,
        list_amount: leaf.list_cost,
        ..Entry::of(
            EntryKey {
                model: leaf.model.cloned(),
                price_line: leaf.price_line(Some(books.book)).cloned(),
                window: leaf.window_name(Some(books.book)).cloned(),
                ..EntryKey::of(books.month, kind, leaf.owner.map(|name| name.cloned()))
            },
            amount,
        )
    }
}

/// The version of the price book that holds for the month.
pub(super) fn price_version(books: &MonthOfBooks<'_>) -> Name {
    books.book.version_at(books.month.interval(books.book.zone()).start()).clone()
}
