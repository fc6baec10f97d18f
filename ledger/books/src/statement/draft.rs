//! All entries of one month, worked out from its usage, its price book and its policy.

use super::absorb::{self, AbsorbedRates};
use super::cost_item::{Cost, CostItem};
use super::held::Held;
use super::seen::{self, SeenPart};
use super::{BillingMode, BillingPolicy, Entry, FreeCapacity, efficiency, idle, refunds};
use crate::bill::Hole;
use crate::prices::PriceBook;
use crate::report::ReportInput;
use crate::slots::Slots;
use cardhour_domain::{AttemptKey, Month, Name};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Attempts whose cards were wrongly taken, as somebody marked, and the decision that took them.
    pub wrongful: &'a BTreeMap<AttemptKey, Name>,
    /// In absorb mode, the rates that its close froze; none for a month that is open.
    pub rates: Option<&'a AbsorbedRates>,
}

/// A month, worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// All its entries, in the order of [`Entry::order`]; no two have the same key.
    pub entries: Vec<Entry>,
    /// In absorb mode, the rates at which its cost was spread: for a close to freeze.
    pub rates: Option<AbsorbedRates>,
    /// Time that should be paid for and has no price: held, or nobody's where the policy has a line for it.
    pub holes: Vec<Hole>,
    /// Costs that could not be booked, each in words.
    pub unbooked: Vec<String>,
    /// Where lines were worked out from a part of some time because no more of it was seen.
    pub seen: Vec<SeenPart>,
}

/// Works a month out.
///
/// The same month gives the same entries (LED-4). Held time without a price makes no entry: `close` refuses a month with `holes` or `unbooked` costs.
/// In rate mode the amounts of charges add up to the bill, unless the policy charges some by use; in absorb mode all entries but those of owners' own
/// cost items add up to the platform's costs.
pub fn draft(books: &MonthOfBooks<'_>) -> Draft {
    let held = Held::of(books);
    let unheld = idle::unheld(books, &held);
    let mut unbooked = Vec::new();
    let mut costs = Vec::new();
    for item in books.costs {
        match cost(books, item, &held) {
            Ok(cost) => costs.push(cost),
            Err(why) => unbooked.push(why),
        }
    }
    let mut seen: Vec<SeenPart> = costs.iter().filter_map(Cost::seen).collect();
    seen.extend(seen::by_use(&held));
    let absorbs = match books.policy.mode {
        BillingMode::Rate => false,
        BillingMode::Absorb => true,
    };
    let (spread, own): (Vec<Cost<'_>>, Vec<Cost<'_>>) =
        costs.into_iter().partition(|cost| absorbs && cost.item.is_platforms());
    let (charged, idle, rates) = if absorbs {
        let absorbed = absorb::absorb(books, &held, &unheld, &spread);
        (absorbed.charged, absorbed.idle, Some(absorbed.rates))
    } else {
        let idle = unheld.iter().flat_map(|unheld| unheld.at_prices(books)).collect();
        (held.at_prices(books), idle, None)
    };
    let refunds = refunds::refunds(books, &held, &charged);
    let mut entries: Vec<Entry> = charged.into_iter().flatten().map(|charged| charged.entry).collect();
    let idle = match books.policy.capacity.free {
        FreeCapacity::Shared => idle::shared(books, idle, &entries),
        FreeCapacity::Unbilled | FreeCapacity::Line => idle,
    };
    entries.extend(refunds);
    entries.extend(efficiency::efficiency(books, &held, &entries));
    entries.extend(idle);
    if absorbs {
        entries.extend(absorb::recovery(books, &entries, &spread));
    }
    entries.extend(own.into_iter().map(Cost::entry));
    entries.sort_by_cached_key(Entry::order);
    let mut holes = held.leaves.holes;
    holes.extend(unheld.iter().flat_map(|unheld| unheld.holes().iter().cloned()));
    Draft { entries, rates, holes, unbooked, seen }
}

/// What an item of this month comes to. Errors, in words: its energy was not measured, or it has another currency (LED-6).
fn cost<'i>(books: &MonthOfBooks<'_>, item: &'i CostItem, held: &Held<'_>) -> Result<Cost<'i>, String> {
    assert_eq!(item.month, books.month, "LED-9: a draft is given one month");
    let (has, wanted) = (item.currency(), books.book.currency());
    if has != wanted {
        return Err(format!("cost item {:?} of {} is in {has}, the price book in {wanted}", &*item.name, item.month));
    }
    item.cost(&held.bundles)
}
