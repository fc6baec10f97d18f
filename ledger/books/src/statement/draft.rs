//! All entries of one month, worked out from its usage, its price book and its policy.

use super::{BillingPolicy, Entry, EntryKey, EntryKind};
use crate::bill::{Charge, charges};
use crate::prices::PriceBook;
use crate::report::ReportInput;
use crate::slots::Slots;
use cardhour_domain::{AttemptKey, Money, Month, Name};
use rust_decimal::Decimal;
use std::collections::BTreeSet;

/// One month of the books, as [`draft`] reads it.
#[derive(Clone, Copy, Debug)]
pub struct MonthOfBooks<'a> {
    /// Which.
    pub month: Month,
    /// Its attempts, usage, capacity and reservations.
    pub input: &'a ReportInput,
    /// The slots by which `input` was numbered, of this month alone: [`Slots::new`] of its interval.
    pub slots: &'a Slots,
    /// The price book that holds for it.
    pub book: &'a PriceBook,
    /// The policy that holds for it.
    pub policy: &'a BillingPolicy,
    /// What the site listed as costs of this month.
    pub costs: &'a [CostItem],
    /// Attempts that held a card when it met a fatal fault of its own (an Xid that ends the work, a card that fell off the bus).
    pub sick: &'a BTreeSet<AttemptKey>,
}

/// A cost that a site lists: a row of `import costs`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostItem {
    /// The month it is of.
    pub month: Month,
    /// What it is: `power`, `depreciation`, `storage`, `licence`, `credit note`.
    pub name: Name,
    /// Whose it is; none of all three: the platform's own, which absorb mode spreads.
    pub org: Option<Name>,
    /// Whose it is.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// The cluster whose cards it is for; none: all.
    pub cluster: Option<Name>,
    /// The pool whose cards it is for; none: all.
    pub pool: Option<Name>,
    /// The model of the cards it is for, a glob; none: all.
    pub model: Option<Name>,
    /// How much, and in which unit.
    pub quantity: Option<(Decimal, Name)>,
    /// What it comes to, whole minor units; below zero for a credit.
    pub amount: Money,
    /// Why, in words.
    pub reason: Option<Name>,
}

/// All entries of a month, in the order of [`Entry::order`].
///
/// The same month gives the same entries (LED-4). Held time without a price makes no entry: `close` refuses a book with holes. The amounts of charges
/// add up to the bill.
pub fn draft(books: &MonthOfBooks<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = charges(books.input, books.slots, Some(books.book))
        .into_iter()
        .filter_map(|charge| charge_entry(books.month, charge))
        .collect();
    entries.sort_by_cached_key(Entry::order);
    entries
}

fn charge_entry(month: Month, charge: Charge) -> Option<Entry> {
    let Charge {
        org,
        project,
        user,
        model,
        price_line,
        price_version,
        window,
        card_time,
        billed_time,
        list_cost,
        cost,
        ..
    } = charge;
    let key = EntryKey {
        original_period: month,
        kind: EntryKind::Charge,
        org,
        project,
        user,
        model,
        price_line,
        window,
        what: None,
    };
    Some(Entry {
        key,
        period: month,
        original_entry: None,
        price_version,
        quantity: None,
        card_time,
        billed_time,
        list_amount: list_cost,
        amount: cost?,
        reason: None,
    })
}
