//! Absorb mode: a month's real cost, spread over those who had the cards.
//!
//! The platform's cost items with the same cards (cluster, pool, model) are one *sum*; it is spread over the leaves by charged time × coefficient, by
//! largest remainder, so that the leaves come to the cost that was put in. Its *rate* is the sum ÷ all weight, an exact fraction. [`AbsorbedRates`]
//! keeps the rates of a closed month: worked out again, a leaf that is as it was stands, one that changed is its weight × the frozen rate,
//! rounded half to even, and the difference goes against over-under-recovery.

use super::cost_item::{CardsOf, Cost};
use super::fraction::Fraction;
use super::held::{Charged, Held};
use super::idle::Unheld;
use super::{Entry, EntryKey, EntryKind, MonthOfBooks};
use crate::bill::{Leaf, Leaves, NO_LEAF};
use crate::report::bundles::{Bundle, Bundles};
use cardhour_domain::{CardTime, Currency, Money, Name, spread};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The project, of no org, against which stands what of a month's cost nobody was charged, or was charged beyond it.
pub const OVER_UNDER_RECOVERY: &str = "over-under-recovery";

/// The rates at which a month's cost was spread: what a close freezes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AbsorbedRates {
    rates: Vec<Rate>,
    /// By the id of a leaf whose largest remainder isn't its rounded weight × rate: its weights then, one a rate, and its amount.
    kept: BTreeMap<String, (Vec<BigInt>, i128)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rate {
    cards: CardsOf,
    /// Whole minor units. Unit: millionths.
    amount: i128,
    /// Unit: parts × milliseconds × millionths of the coefficient.
    weight: BigInt,
}

/// A text that is no frozen rates.
#[derive(Debug, thiserror::Error)]
#[error("frozen rates of a closed month can't be read: {0}")]
pub struct AbsorbedRatesError(String);

/// The text's shape. Stability: stands in closed months; pinned by the test `frozen_rates_are_read_back_as_they_were`. Numbers are texts, beyond 64 bits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    rates: Vec<StoredRate>,
    kept: BTreeMap<String, (Vec<String>, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRate {
    cluster: Option<String>,
    pool: Option<String>,
    model: Option<String>,
    amount_micros: String,
    weight: String,
}

impl AbsorbedRates {
    /// As text, the same for the same rates; [`Self::parse`] reads it.
    pub fn to_text(&self) -> String {
        let text = |name: &Option<Name>| name.as_ref().map(ToString::to_string);
        let rate = |rate: &Rate| StoredRate {
            cluster: text(&rate.cards.cluster),
            pool: text(&rate.cards.pool),
            model: text(&rate.cards.model),
            amount_micros: rate.amount.to_string(),
            weight: rate.weight.to_string(),
        };
        let kept = |(id, (weights, amount)): (&String, &(Vec<BigInt>, i128))| {
            (id.clone(), (weights.iter().map(ToString::to_string).collect(), amount.to_string()))
        };
        let stored =
            Stored { rates: self.rates.iter().map(rate).collect(), kept: self.kept.iter().map(kept).collect() };
        serde_json::to_string(&stored).expect("texts in order")
    }

    /// From [`Self::to_text`]. Errors: any other text.
    pub fn parse(text: &str) -> Result<Self, AbsorbedRatesError> {
        let bad = |what: &dyn std::fmt::Display| AbsorbedRatesError(what.to_string());
        let stored: Stored = serde_json::from_str(text).map_err(|error| bad(&error))?;
        let micros = |text: &str| text.parse::<i128>().map_err(|error| bad(&error));
        let weight = |text: &str| text.parse::<BigInt>().map_err(|error| bad(&error));
        let name = |text: Option<String>| text.map(Name::from);
        let rate = |rate: StoredRate| {
            let StoredRate { cluster, pool, model, amount_micros, weight: of } = rate;
            Ok(Rate {
                cards: CardsOf { cluster: name(cluster), pool: name(pool), model: name(model) },
                amount: micros(&amount_micros)?,
                weight: weight(&of)?,
            })
        };
        let kept = |(id, (weights, amount)): (String, (Vec<String>, String))| {
            let weights = weights.iter().map(|text| weight(text)).collect::<Result<Vec<_>, _>>()?;
            Ok((id, (weights, micros(&amount)?)))
        };
        Ok(Self {
            rates: stored.rates.into_iter().map(rate).collect::<Result<_, AbsorbedRatesError>>()?,
            kept: stored.kept.into_iter().map(kept).collect::<Result<_, AbsorbedRatesError>>()?,
        })
    }
}

/// What a month's cost comes to for each leaf.
pub(super) struct Absorbed {
    /// By leaf of what was held; none in a hole.
    pub charged: Vec<Option<Charged>>,
    pub idle: Vec<Entry>,
    pub rates: AbsorbedRates,
}

/// A leaf that bears a part of the cost.
struct Bearer {
    key: EntryKey,
    /// Index into the sets of leaves: 0 is what was held.
    set: usize,
    leaf: usize,
    /// For each rate.
    weights: Vec<BigInt>,
}

/// Spreads the platform's costs over what was held, and over what nobody held as far as the policy has lines for it.
pub(super) fn absorb(books: &MonthOfBooks<'_>, held: &Held<'_>, unheld: &[Unheld<'_>], costs: &[Cost<'_>]) -> Absorbed {
    let mut sums: BTreeMap<CardsOf, i128> = BTreeMap::new();
    for cost in costs {
        *sums.entry(cost.item.cards()).or_default() += cost.amount.micros();
    }
    let cards: Vec<CardsOf> = match books.rates {
        Some(frozen) => frozen.rates.iter().map(|rate| rate.cards.clone()).collect(),
        None => sums.keys().cloned().collect(),
    };
    let bearers = bearers(books, held, unheld, &cards);
    let currency = books.book.currency();
    let per_minor = currency.micros_per_minor();
    let rates: Vec<Rate> = match books.rates {
        Some(frozen) => frozen.rates.clone(),
        None => sums
            .into_iter()
            .enumerate()
            .map(|(i, (cards, amount))| {
                let weight = bearers.iter().map(|bearer| &bearer.weights[i]).sum();
                Rate { cards, amount, weight }
            })
            .collect(),
    };
    let exact: Vec<Fraction> = bearers.iter().map(|bearer| exact(&rates, &bearer.weights)).collect();
    let (amounts, kept) = match books.rates {
        Some(frozen) => {
            let amount = |(bearer, exact): (&Bearer, &Fraction)| match frozen.kept.get(&id(&bearer.key, currency)) {
                Some((weights, amount)) if *weights == bearer.weights => *amount,
                _ => exact.round(currency).micros(),
            };
            (bearers.iter().zip(&exact).map(amount).collect(), frozen.kept.clone())
        }
        None => {
            let mut amounts = vec![0; bearers.len()];
            for (i, rate) in rates.iter().enumerate().filter(|(_, rate)| rate.weight > BigInt::ZERO) {
                let weights: Vec<BigInt> = bearers.iter().map(|bearer| bearer.weights[i].clone()).collect();
                for (amount, minor) in amounts.iter_mut().zip(spread(rate.amount / per_minor, &weights)) {
                    *amount += minor * per_minor;
                }
            }
            let mut kept = BTreeMap::new();
            for ((bearer, exact), amount) in bearers.iter().zip(&exact).zip(&amounts) {
                if exact.round(currency).micros() != *amount {
                    kept.insert(id(&bearer.key, currency), (bearer.weights.clone(), *amount));
                }
            }
            (amounts, kept)
        }
    };
    let mut charged: Vec<Option<Charged>> = held.leaves.all().iter().map(|_| None).collect();
    let mut idle = Vec::new();
    for ((bearer, exact), amount) in bearers.iter().zip(exact).zip(amounts) {
        let amount = Money::from_micros(amount, currency);
        match bearer.set.checked_sub(1) {
            None => charged[bearer.leaf] = Some(Charged { entry: held.entry(books, bearer.leaf, amount), exact }),
            Some(set) => idle.push(unheld[set].entry(books, bearer.leaf, amount)),
        }
    }
    Absorbed { charged, idle, rates: AbsorbedRates { rates, kept } }
}

/// All leaves with a price, whose coefficient weighs them; in order of their keys, which breaks ties.
fn bearers(books: &MonthOfBooks<'_>, held: &Held<'_>, unheld: &[Unheld<'_>], cards: &[CardsOf]) -> Vec<Bearer> {
    let zero = || Money::zero(books.book.currency());
    let of_held = weights(books, &held.bundles, &held.leaves, cards, |bundle| held.basis.charged_time(bundle));
    let mut bearers: Vec<Bearer> = of_held
        .into_iter()
        .map(|(leaf, weights)| Bearer { key: held.entry(books, leaf, zero()).key, set: 0, leaf, weights })
        .collect();
    for (set, unheld) in (1..).zip(unheld) {
        let of_unheld = weights(books, &held.bundles, &unheld.leaves, cards, |bundle| bundle.card_time);
        bearers.extend(of_unheld.into_iter().map(|(leaf, weights)| Bearer {
            key: unheld.entry(books, leaf, zero()).key,
            set,
            leaf,
            weights,
        }));
    }
    bearers.sort_by(|a, b| a.key.cmp(&b.key));
    bearers
}

/// For each leaf with a price, its weight under each rate.
fn weights(
    books: &MonthOfBooks<'_>,
    bundles: &Bundles<'_>,
    leaves: &Leaves<'_>,
    cards: &[CardsOf],
    time: impl Fn(&Bundle) -> CardTime,
) -> Vec<(usize, Vec<BigInt>)> {
    let mut times = vec![vec![CardTime::ZERO; cards.len()]; leaves.all().len()];
    for (bundle, &leaf) in bundles.all.iter().zip(&leaves.of_bundle).filter(|(_, leaf)| **leaf != NO_LEAF) {
        for (sum, _) in times[leaf as usize].iter_mut().zip(cards).filter(|(_, cards)| cards.have(bundles, bundle)) {
            *sum += time(bundle);
        }
    }
    let coefficient = |leaf: &Leaf<'_>| {
        let mut coefficient: Decimal = books.book.prices()[leaf.price?].coefficient;
        coefficient.rescale(6);
        Some(coefficient.mantissa())
    };
    let coefficients: Vec<Option<i128>> = leaves.all().iter().map(coefficient).collect();
    let weighed = |(leaf, (coefficient, times)): (usize, (Option<i128>, Vec<CardTime>))| {
        let coefficient = coefficient?;
        Some((leaf, times.into_iter().map(|time| BigInt::from(time.part_ms()) * coefficient).collect()))
    };
    coefficients.into_iter().zip(times).enumerate().filter_map(weighed).collect()
}

/// A sum that was spread, and what of it falls to some lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadAt {
    /// The cards it is for, in words: `all cards`, `cluster a, model T4`.
    pub cards: String,
    /// What was put in.
    pub put_in: Money,
    /// All that it was spread over. Unit: card-hours × coefficient, six decimals.
    pub weight: Decimal,
    /// The one divided by the other: for a card-hour × coefficient. Unit: the currency, six decimals.
    pub rate: Money,
    /// What of `weight` is the lines'.
    pub weight_of_lines: Decimal,
    /// That × the exact rate, six decimals: amounts are rounded from it, or get a minor unit more or less as the largest remainder.
    pub comes_to: Money,
}

/// The sums of which some lines bear a part, at the rates of their month.
pub(super) fn spread_at(
    books: &MonthOfBooks<'_>,
    held: &Held<'_>,
    unheld: &[Unheld<'_>],
    rates: &AbsorbedRates,
    keys: &[EntryKey],
) -> Vec<SpreadAt> {
    let cards: Vec<CardsOf> = rates.rates.iter().map(|rate| rate.cards.clone()).collect();
    let bearers: Vec<Bearer> =
        bearers(books, held, unheld, &cards).into_iter().filter(|bearer| keys.contains(&bearer.key)).collect();
    let currency = books.book.currency();
    let whole = |number: BigInt| i128::try_from(number).expect("LED-10: weights and money fit 128 bits");
    let hours = |weight: &BigInt| Decimal::from_i128_with_scale(whole(weight / hour_weight()), 6);
    let of = |(i, rate): (usize, &Rate)| {
        let weight: BigInt = bearers.iter().map(|bearer| &bearer.weights[i]).sum();
        if weight == BigInt::ZERO || rate.weight == BigInt::ZERO {
            return None;
        }
        let micros = |numerator: BigInt| Money::from_micros(whole(numerator / &rate.weight), currency);
        Some(SpreadAt {
            cards: rate.cards.in_words(),
            put_in: Money::from_micros(rate.amount, currency),
            weight: hours(&rate.weight),
            rate: micros(hour_weight() * 1_000_000 * rate.amount),
            weight_of_lines: hours(&weight),
            comes_to: micros(weight * rate.amount),
        })
    };
    rates.rates.iter().enumerate().filter_map(of).collect()
}

/// A millionth of a card-hour of coefficient 1, as weights are kept.
fn hour_weight() -> BigInt {
    BigInt::from(CardTime::PART_MS_PER_CARD_HOUR)
}

impl CardsOf {
    fn in_words(&self) -> String {
        let given = [("cluster", &self.cluster), ("pool", &self.pool), ("model", &self.model)];
        let given: Vec<String> =
            given.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))).collect();
        if given.is_empty() { "all cards".to_owned() } else { given.join(", ") }
    }
}

fn exact(rates: &[Rate], weights: &[BigInt]) -> Fraction {
    let of = rates.iter().zip(weights).filter(|(rate, _)| rate.weight > BigInt::ZERO);
    of.fold(Fraction::zero(), |sum, (rate, weight)| {
        sum.plus(&Fraction { numerator: weight * rate.amount, denominator: rate.weight.clone() })
    })
}

/// A leaf's id: of what its entry is about.
fn id(key: &EntryKey, currency: Currency) -> String {
    Entry::of(key.clone(), Money::zero(currency)).id().to_string()
}

/// What of the cost put in the month's entries don't come to; none where they do.
pub(super) fn recovery(books: &MonthOfBooks<'_>, entries: &[Entry], costs: &[Cost<'_>]) -> Option<Entry> {
    let put_in: i128 = costs.iter().map(|cost| cost.amount.micros()).sum();
    let difference = put_in - entries.iter().map(|entry| entry.amount.micros()).sum::<i128>();
    let owner = [None, Some(OVER_UNDER_RECOVERY.into()), None];
    let amount = Money::from_micros(difference, books.book.currency());
    (difference != 0).then(|| Entry::of(EntryKey::of(books.month, EntryKind::Recovery, owner), amount))
}
