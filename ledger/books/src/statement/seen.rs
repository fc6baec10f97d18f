//! How much is known of what a line was worked out from, where that is not all of it (LED-3).

use super::held::Held;
use super::{Entry, EntryKind};
use cardhour_domain::{CardTime, Name};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// Time from which lines were worked out as if there was no more of it, though only a part of it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPart {
    /// The organisation whose it is; none where it is the site's own.
    pub org: Option<Name>,
    /// What it is the time of, in words.
    pub of: String,
    /// What was seen.
    pub seen: CardTime,
    /// Seen or not.
    pub all: CardTime,
}

impl SeenPart {
    /// None where all was seen.
    pub fn new(org: Option<Name>, of: String, seen: CardTime, all: CardTime) -> Option<Self> {
        (seen < all).then_some(Self { org, of, seen, all })
    }

    /// Seen ÷ all, six decimals, rounded down.
    pub fn part(&self) -> Decimal {
        part(self.seen, self.all)
    }

    /// In words, for whoever reads the statement.
    pub fn said(&self) -> String {
        let missing = (self.all - self.seen).card_hours().normalize();
        format!("{} % of {} was seen; {missing} card-hours of it cost nothing", percent(self.seen, self.all), self.of)
    }
}

/// Six decimals, rounded down: less than all is never shown as all.
fn part(seen: CardTime, all: CardTime) -> Decimal {
    let millionths = BigInt::from(seen.part_ms()) * 1_000_000 / all.part_ms().max(1);
    Decimal::from_i128_with_scale(i128::try_from(millionths).expect("LED-3: a part is at most the whole"), 6)
}

/// In percent, two decimals, rounded down.
fn percent(seen: CardTime, all: CardTime) -> Decimal {
    (part(seen, all) * Decimal::ONE_HUNDRED).trunc_with_scale(2).normalize()
}

/// How the reason ends of a line that is worked out from energy of which only a part was measured.
const MEASURED: &str = " % of card-time measured";
/// How the reason begins of a line of what is charged by use, some of whose time nobody saw.
const BY_USE: &str = "by use; ";

/// What such a line says of `all`, of which the energy of `time` was measured.
pub(super) fn measured_reason(time: CardTime, all: CardTime) -> String {
    format!("of {}{MEASURED}", percent(time, all))
}

/// What such a line says of what nobody saw.
pub(super) fn by_use_reason(unseen: CardTime) -> Name {
    format!("{BY_USE}{} card-hours that nobody saw are not charged", unseen.card_hours().normalize()).into()
}

/// The entry as it was when reasons told nothing of what wasn't seen, for months that were closed then: they come to what was signed (LED-5).
///
/// None where its reason tells of nothing.
pub fn untold(entry: &Entry) -> Option<Entry> {
    let reason = entry.reason.as_deref()?;
    let before = match entry.key.kind {
        EntryKind::CostItem if reason.ends_with(MEASURED) => reason.rsplit_once("; ").map(|(before, _)| before.into()),
        EntryKind::Charge if reason.starts_with(BY_USE) => None,
        _ => return None,
    };
    Some(Entry { reason: before, ..entry.clone() })
}

/// Of what is charged by use, what was seen: an organisation each, where that isn't all.
pub(super) fn by_use(held: &Held<'_>) -> Vec<SeenPart> {
    let mut by_org: BTreeMap<Option<&Name>, (CardTime, CardTime)> = BTreeMap::new();
    for bundle in held.bundles.all.iter().filter(|bundle| held.basis.is_by_use(bundle)) {
        let org = held.bundles.class(bundle).attempt.and_then(|attempt| attempt.org.as_ref());
        let (unseen, all) = by_org.entry(org).or_default();
        *unseen += held.basis.unseen(bundle);
        *all += bundle.billed_time;
    }
    let part = |(org, (unseen, all)): (Option<&Name>, (CardTime, CardTime))| {
        let of = org.map_or_else(|| "no organisation".to_owned(), |org| format!("org {org}"));
        SeenPart::new(org.cloned(), format!("the card-time of {of} that is charged by use"), all - unseen, all)
    };
    by_org.into_iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::EntryKey;
    use cardhour_domain::{Currency, Money, Month};

    /// By hand: what a build said that didn't know of parts.
    #[test]
    fn an_entry_as_it_was_before_has_the_reason_without_the_part() {
        let hours = |hours: i128| CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR * hours);
        let with = |kind, reason: Option<Name>| Entry {
            reason,
            ..Entry::of(
                EntryKey::of(Month::new(2026, 3).unwrap(), kind, [None, None, None]),
                Money::zero(Currency::parse("USD").unwrap()),
            )
        };
        let before = |kind, reason: &str| untold(&with(kind, Some(reason.into()))).map(|entry| entry.reason);
        let measured = measured_reason(hours(5), hours(10));
        assert_eq!(measured, "of 50 % of card-time measured");
        assert_eq!(before(EntryKind::CostItem, &measured), Some(None));
        assert_eq!(
            before(EntryKind::CostItem, &format!("meter 7; night; {measured}")),
            Some(Some("meter 7; night".into()))
        );
        assert_eq!(before(EntryKind::CostItem, "meter 7"), None);
        let by_use = by_use_reason(hours(6));
        assert_eq!(by_use, "by use; 6 card-hours that nobody saw are not charged");
        assert_eq!(before(EntryKind::Charge, &by_use), Some(None));
        assert_eq!(before(EntryKind::Refund, &by_use), None);
        assert_eq!(untold(&with(EntryKind::Charge, None)), None);
    }
}
