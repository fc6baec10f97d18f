//! What a site lists as costs, and what its energy came to.

use super::fraction::Fraction;
use super::seen::{SeenPart, measured_reason};
use super::{Entry, EntryKey, EntryKind};
use crate::cell::Used;
use crate::prices::Pattern;
use crate::report::bundles::{Bundle, Bundles};
use cardhour_domain::{CardState, CardTime, Currency, Money, Month, Name};
use num_bigint::BigInt;
use rust_decimal::Decimal;

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
    /// How much, and in which unit; of energy the books know it.
    pub quantity: Option<(Decimal, Name)>,
    /// What it comes to.
    pub amount: CostAmount,
    /// Why, in words.
    pub reason: Option<Name>,
}

/// What a cost item comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostAmount {
    /// Whole minor units; below zero for a credit.
    Fixed(Money),
    /// The measured energy of its cards in its month, times a tariff; of an owner's item, the energy of what the owner held.
    PerKwh {
        /// Price of a kilowatt-hour, at most twelve decimals.
        tariff: Decimal,
        /// Its currency.
        currency: Currency,
    },
}

/// Millijoules to a kilowatt-hour.
const MJ_PER_KWH: i64 = 3_600_000_000;

/// Which cards a cost is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CardsOf {
    pub cluster: Option<Name>,
    pub pool: Option<Name>,
    pub model: Option<Name>,
}

impl CardsOf {
    /// Whether a bundle's cards are among them. Models are compared as prices do, upper and lower case alike.
    pub fn have(&self, bundles: &Bundles<'_>, bundle: &Bundle) -> bool {
        let place = bundles.place(bundle);
        let model = || {
            let glob = self.model.as_ref().map_or(Pattern::Any, |model| Pattern::new(&model.to_lowercase()));
            glob.matches(place.model.map(|model| model.to_lowercase()).as_deref())
        };
        self.cluster.as_ref().is_none_or(|cluster| cluster == place.cluster)
            && self.pool.as_ref().is_none_or(|pool| place.pool == Some(pool))
            && model()
    }
}

/// A cost item with its amount.
#[derive(Clone, Debug)]
pub(super) struct Cost<'a> {
    pub item: &'a CostItem,
    pub quantity: Option<(Decimal, Name)>,
    pub amount: Money,
    /// Of energy, how much of the time of its cards is in it.
    pub measured: Option<Measured>,
}

/// What some cards drew, as far as that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    pub energy_mj: i128,
    /// The time whose energy that is.
    pub time: CardTime,
    /// All time in which they drew any: that in which they were down counts only where it was measured.
    pub all: CardTime,
}

impl CostItem {
    /// Whether it is the platform's own.
    pub fn is_platforms(&self) -> bool {
        self.org.is_none() && self.project.is_none() && self.user.is_none()
    }

    /// Its currency.
    pub fn currency(&self) -> Currency {
        match self.amount {
            CostAmount::Fixed(amount) => amount.currency(),
            CostAmount::PerKwh { currency, .. } => currency,
        }
    }

    pub(super) fn cards(&self) -> CardsOf {
        CardsOf { cluster: self.cluster.clone(), pool: self.pool.clone(), model: self.model.clone() }
    }

    /// What it comes to, rounded once. Errors, in words: an energy that nobody measured.
    pub(super) fn cost(&self, bundles: &Bundles<'_>) -> Result<Cost<'_>, String> {
        let (tariff, currency) = match self.amount {
            CostAmount::Fixed(amount) => {
                return Ok(Cost { item: self, quantity: self.quantity.clone(), amount, measured: None });
            }
            CostAmount::PerKwh { tariff, currency } => (tariff, currency),
        };
        let Some(measured) = self.measured(bundles) else {
            return Err(format!("cost item {:?} of {} is of energy, and none was measured", &*self.name, self.month));
        };
        let energy_mj = measured.energy_mj;
        let exact = Fraction {
            numerator: BigInt::from(tariff.mantissa()) * energy_mj * 1_000_000,
            denominator: BigInt::from(10).pow(tariff.scale()) * MJ_PER_KWH,
        };
        // A millionth of a kilowatt-hour is what the quantity shows; money is from the millijoules.
        let micro_kwh = energy_mj.saturating_mul(1_000_000) / i128::from(MJ_PER_KWH);
        let kwh = Decimal::from_i128_with_scale(micro_kwh, 6);
        let quantity = Some((kwh, "kWh".into()));
        Ok(Cost { item: self, quantity, amount: exact.round(currency), measured: Some(measured) })
    }

    /// What its cards drew, of an owner's item those that the owner held; none where nobody measured any.
    fn measured(&self, bundles: &Bundles<'_>) -> Option<Measured> {
        let cards = self.cards();
        let is_owners = |bundle: &Bundle| {
            let Some(attempt) = bundles.class(bundle).attempt else { return self.is_platforms() };
            [(&self.org, &attempt.org), (&self.project, &attempt.project), (&self.user, &attempt.user)]
                .into_iter()
                .all(|(wanted, has)| wanted.is_none() || wanted == has)
        };
        let (mut all, mut used) = (CardTime::ZERO, Used::default());
        for bundle in bundles.all.iter().filter(|bundle| is_owners(bundle) && cards.have(bundles, bundle)) {
            let of = bundle.used.as_deref().copied().unwrap_or_default();
            used.add(&of);
            all += match bundle.state {
                CardState::Down => of.measured,
                CardState::Held | CardState::Reserved | CardState::Free | CardState::Unaccounted => bundle.card_time,
            };
        }
        Some(Measured { energy_mj: used.energy_mj?, time: used.measured, all })
    }
}

impl Cost<'_> {
    /// Of energy, how much of it is known; none where all is.
    pub fn seen(&self) -> Option<SeenPart> {
        let Measured { time, all, .. } = self.measured?;
        let entry = self.clone().entry();
        let owner: Vec<&str> =
            [&entry.key.org, &entry.key.project, &entry.key.user].into_iter().flatten().map(|name| &**name).collect();
        let mut of = format!("the card-time of cost item {:?}", entry.key.what.as_deref().unwrap_or_default());
        for (word, name) in
            [("of", owner.join("/")), ("model", entry.key.model.as_deref().unwrap_or_default().to_owned())]
        {
            if !name.is_empty() {
                of += &format!(", {word} {name}");
            }
        }
        SeenPart::new(entry.key.org, of, time, all)
    }

    /// It as an entry of its owner.
    pub fn entry(self) -> Entry {
        let CostItem { month, name, org, project, user, cluster, pool, model, reason, .. } = self.item;
        // Items that differ in their cards alone are lines of their own.
        let mut what = name.to_string();
        for (selector, value) in [("cluster", cluster), ("pool", pool)] {
            if let Some(value) = value {
                what += &format!(", {selector} {value}");
            }
        }
        // What was measured in full is as if nobody had asked.
        let measured = self
            .measured
            .filter(|measured| measured.time < measured.all)
            .map(|Measured { time, all, .. }| measured_reason(time, all));
        let reason: Vec<&str> = reason.as_deref().into_iter().chain(measured.as_deref()).collect();
        Entry {
            quantity: self.quantity,
            reason: (!reason.is_empty()).then(|| reason.join("; ").into()),
            ..Entry::of(
                EntryKey {
                    model: model.clone(),
                    what: Some(what.into()),
                    ..EntryKey::of(*month, EntryKind::CostItem, [org.clone(), project.clone(), user.clone()])
                },
                self.amount,
            )
        }
    }
}
