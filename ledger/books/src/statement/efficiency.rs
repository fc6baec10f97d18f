//! What the policy makes of efficiency: told of each owner, and for some sites a discount or a surcharge.

use super::held::Held;
use super::{EfficiencyEffect, Entry, EntryKey, EntryKind, MonthOfBooks};
use crate::bill::NO_LEAF;
use crate::cell::Used;
use cardhour_domain::{CardTime, Money, Name};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use std::collections::BTreeMap;

#[derive(Default)]
struct Seen {
    card_time: CardTime,
    unseen: CardTime,
    used: Used,
}

/// An entry for each owner whose month was seen well enough; without money where the policy only explains (design §4.3).
///
/// Its card-time is what was seen of the owner's time, its billed time the effective part of that, `quantity` the one ÷ the other: so that a split that
/// changes later is a change of the entry, also where no money follows. `reason` says how much was seen and by what. `entries`: the month's charges and refunds, of which a part is taken.
pub(super) fn efficiency(books: &MonthOfBooks<'_>, held: &Held<'_>, entries: &[Entry]) -> Vec<Entry> {
    let policy = &books.policy.efficiency;
    let mut owners: BTreeMap<[Option<&Name>; 3], Seen> = BTreeMap::new();
    for (bundle, &leaf) in held.bundles.all.iter().zip(&held.leaves.of_bundle) {
        if leaf == NO_LEAF {
            continue;
        }
        let seen = owners.entry(held.leaves.all()[leaf as usize].owner).or_default();
        seen.card_time += bundle.card_time;
        seen.unseen += bundle.unseen;
        if let Some(used) = &bundle.used {
            seen.used.add(used);
        }
    }
    let mut due: BTreeMap<[Option<&Name>; 3], i128> = BTreeMap::new();
    for Entry { key, amount, .. } in entries {
        *due.entry([key.org.as_ref(), key.project.as_ref(), key.user.as_ref()]).or_default() += amount.micros();
    }
    let currency = books.book.currency();
    let entry = |(owner, seen): ([Option<&Name>; 3], Seen)| {
        let seen_time = seen.card_time - seen.unseen;
        let efficiency = seen.used.effective.ratio_of(seen_time)?;
        let use_coverage = seen_time.ratio_of(seen.card_time)?;
        if use_coverage < policy.minimum_use_coverage {
            return None;
        }
        let due = due.get(&owner).copied().unwrap_or(0).max(0);
        let tiers = policy.tiers.iter().filter(|tier| tier.is_for(efficiency));
        let part = tiers.map(|tier| tier.part).max().unwrap_or(Decimal::ZERO);
        let (what, sign) = match policy.effect {
            EfficiencyEffect::Explain => (None, 0),
            EfficiencyEffect::Discount => (Some(policy.effect.name()), -1),
            EfficiencyEffect::Surcharge => (Some(policy.effect.name()), 1),
        };
        let numerator = BigInt::from(part.mantissa()) * due * sign;
        let amount = Money::from_fraction(&numerator, &BigInt::from(10).pow(part.scale()), currency);
        let basis = seen.used.basis().map_or("unknown means", |basis| basis.name());
        Some(Entry {
            quantity: Some((efficiency, "efficiency".into())),
            card_time: seen_time,
            billed_time: seen.used.effective,
            reason: Some(format!("{use_coverage} of held time seen, by {basis}").into()),
            ..Entry::of(
                EntryKey {
                    what: what.map(Name::from),
                    ..EntryKey::of(books.month, EntryKind::Efficiency, owner.map(|name| name.cloned()))
                },
                amount,
            )
        })
    };
    owners.into_iter().filter_map(entry).collect()
}
