//! What later facts change in a closed month (LED-5): each line worked out again, less what stands.

use super::{Entry, EntryId, EntryKey, EntryKind};
use cardhour_domain::{CardTime, Currency, Money, Month, Name};
use std::collections::BTreeMap;

/// The corrections of a closed month, as entries of the open month `period`.
///
/// `standing`: every entry of closed months that is of the closed one, originals and earlier corrections. `fresh`: its draft of today, by the price book
/// and policy that it was closed by. Shape: in the order of [`Entry::order`]; none where nothing changed. Standing and corrections together add up to
/// `fresh`, key by key.
pub fn corrections(period: Month, standing: &[Entry], fresh: &[Entry]) -> Vec<Entry> {
    let mut lines: BTreeMap<&EntryKey, Line<'_>> = BTreeMap::new();
    let mut originals: BTreeMap<&EntryKey, EntryId> = BTreeMap::new();
    for entry in standing {
        lines.entry(&entry.key).or_insert_with(|| Line::new(entry)).before.add(entry);
        if entry.period == entry.key.original_period {
            originals.insert(&entry.key, entry.id());
        }
    }
    for entry in fresh {
        lines.entry(&entry.key).or_insert_with(|| Line::new(entry)).after.add(entry);
    }
    let original = |key: &EntryKey| {
        // What is given back late points at the charge that stands, as a refund in time would.
        let refunded =
            (key.kind == EntryKind::Refund).then(|| EntryKey { kind: EntryKind::Charge, what: None, ..key.clone() });
        originals.get(key).or_else(|| originals.get(&refunded?)).cloned()
    };
    let mut corrections: Vec<Entry> =
        lines.into_iter().filter_map(|(key, line)| line.correction(key, original(key), period)).collect();
    corrections.sort_by_cached_key(Entry::order);
    let (before, after, between) = (total(standing), total(fresh), total(&corrections));
    assert_eq!(before + between, after, "LED-5: what stands and its corrections add up to the month worked out again");
    corrections
}

fn total(entries: &[Entry]) -> i128 {
    entries.iter().map(|entry| entry.amount.micros()).sum()
}

/// One line of a month, as it stands and as it is worked out again.
struct Line<'a> {
    /// One of its entries.
    one: &'a Entry,
    before: Sums,
    after: Sums,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    card_time: CardTime,
    billed_time: CardTime,
    list_amount: Option<i128>,
    amount: i128,
}

impl Sums {
    fn add(&mut self, entry: &Entry) {
        self.card_time += entry.card_time;
        self.billed_time += entry.billed_time;
        if let Some(list) = entry.list_amount {
            *self.list_amount.get_or_insert_default() += list.micros();
        }
        self.amount += entry.amount.micros();
    }
}

impl<'a> Line<'a> {
    fn new(one: &'a Entry) -> Self {
        Self { one, before: Sums::default(), after: Sums::default() }
    }

    fn correction(self, key: &EntryKey, original: Option<EntryId>, period: Month) -> Option<Entry> {
        let Self { one, before, after } = self;
        let is_same = (before.card_time, before.billed_time, before.amount)
            == (after.card_time, after.billed_time, after.amount)
            && before.list_amount.unwrap_or_default() == after.list_amount.unwrap_or_default();
        if is_same {
            return None;
        }
        let currency = one.amount.currency();
        let list_amount = (before.list_amount.is_some() || after.list_amount.is_some()).then(|| {
            let difference = after.list_amount.unwrap_or_default() - before.list_amount.unwrap_or_default();
            Money::from_micros(difference, currency)
        });
        Some(Entry {
            key: key.clone(),
            period,
            original_entry: original,
            price_version: one.price_version.clone(),
            quantity: None,
            card_time: after.card_time - before.card_time,
            billed_time: after.billed_time - before.billed_time,
            list_amount,
            amount: Money::from_micros(after.amount - before.amount, currency),
            reason: Some(reason(before, after, currency)),
        })
    }
}

/// What it was and what it is, in words.
fn reason(before: Sums, after: Sums, currency: Currency) -> Name {
    let of = |sums: Sums| {
        let amount = Money::from_micros(sums.amount, currency).to_minor_string();
        if before.card_time.is_zero() && after.card_time.is_zero() {
            return format!("{amount} {currency}");
        }
        // What is paid for is what was billed; an outage holds its cards all the same.
        let [held, billed] = [sums.card_time, sums.billed_time].map(|time| time.card_hours().normalize());
        match held == billed {
            true => format!("{amount} {currency} for {held} card-hours"),
            false => format!("{amount} {currency} for {billed} card-hours billed of {held} held"),
        }
    };
    format!("was {}, is {}", of(before), of(after)).into()
}

#[cfg(test)]
mod tests;
