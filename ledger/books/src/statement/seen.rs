//! How much is known of what a line was worked out from, where that is not all of it (LED-3).

use super::held::Held;
use cardhour_domain::{CardTime, Name};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// Time from which lines were worked out as if there was no more of it, though only a part of it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPart {
    /// What it is the time of, in words.
    pub of: String,
    /// What was seen.
    pub seen: CardTime,
    /// Seen or not.
    pub all: CardTime,
}

impl SeenPart {
    /// None where all was seen.
    pub fn new(of: String, seen: CardTime, all: CardTime) -> Option<Self> {
        (seen < all).then_some(Self { of, seen, all })
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
pub(super) fn percent(seen: CardTime, all: CardTime) -> Decimal {
    (part(seen, all) * Decimal::ONE_HUNDRED).trunc_with_scale(2).normalize()
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
        SeenPart::new(format!("the card-time of {of} that is charged by use"), all - unseen, all)
    };
    by_org.into_iter().filter_map(part).collect()
}
