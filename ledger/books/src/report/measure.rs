//! The columns of the reports: their names, their order, and how each value is made of a row's sums (design §8).

use super::ReportKind;
use super::sums::{Asked, Sums};
use crate::table::{Column, Kind, Value};
use cardhour_domain::{CardTime, Currency, Money};
use rust_decimal::Decimal;

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Line,
    Jobs,
    Attempts,
    CardHours,
    BilledCardHours,
    StandardCardHours,
    EffectiveCardHours,
    UnderusedCardHours,
    IdleCardHours,
    LostCardHours,
    UnseenCardHours,
    FailedCardHours,
    AskedCardHours,
    CapacityCardHours,
    OverCapacityCardHours,
    FreeCardHours,
    ReservedCardHours,
    DownCardHours,
    UnaccountedCardHours,
    Coverage,
    PoolCoverage,
    UseCoverage,
    Efficiency,
    UseBasis,
    EnergyKwh,
    ListCost,
    Cost,
    Currency,
    // Those below are the reports' own, after the design's.
    IdleCost,
    RestCost,
    UnderusedOfHeld,
    IdleOfHeld,
    LostOfHeld,
    UnseenOfHeld,
    FailedOfHeld,
}

use Measure::*;

impl ReportKind {
    /// Its columns after the `--by` names, in the order of design §8; what a report has of its own comes last.
    pub(crate) const fn measures(self) -> &'static [Measure] {
        match self {
            Self::Usage => &[
                Jobs,
                Attempts,
                CardHours,
                BilledCardHours,
                StandardCardHours,
                EffectiveCardHours,
                UnderusedCardHours,
                IdleCardHours,
                LostCardHours,
                UnseenCardHours,
                FailedCardHours,
                AskedCardHours,
                Coverage,
                UseCoverage,
                Efficiency,
                UseBasis,
                EnergyKwh,
            ],
            Self::Bill => &[
                Line,
                Jobs,
                Attempts,
                CardHours,
                BilledCardHours,
                StandardCardHours,
                Coverage,
                UseCoverage,
                ListCost,
                Cost,
                Currency,
            ],
            Self::Efficiency => &[
                Jobs,
                Attempts,
                CardHours,
                EffectiveCardHours,
                UnderusedCardHours,
                IdleCardHours,
                LostCardHours,
                UnseenCardHours,
                UseCoverage,
                Efficiency,
                UseBasis,
                EnergyKwh,
            ],
            Self::Idle => &[
                Jobs,
                Attempts,
                CardHours,
                IdleCardHours,
                UnseenCardHours,
                UseCoverage,
                Cost,
                Currency,
                IdleCost,
                RestCost,
            ],
            Self::Waste => &[
                Jobs,
                Attempts,
                CardHours,
                UnderusedCardHours,
                IdleCardHours,
                LostCardHours,
                UnseenCardHours,
                FailedCardHours,
                UseCoverage,
                UnderusedOfHeld,
                IdleOfHeld,
                LostOfHeld,
                UnseenOfHeld,
                FailedOfHeld,
            ],
            Self::Capacity => &[
                CardHours,
                CapacityCardHours,
                OverCapacityCardHours,
                FreeCardHours,
                ReservedCardHours,
                DownCardHours,
                UnaccountedCardHours,
                PoolCoverage,
            ],
            Self::Coverage => &[CardHours, UnaccountedCardHours, Coverage, UseCoverage],
            Self::Owners => &[Jobs, Attempts, CardHours],
            // Its columns are of cards, not of their time.
            Self::Inventory => &[],
        }
    }
}

impl Measure {
    pub fn column(self) -> Column {
        let (name, kind) = match self {
            Line => ("line", Kind::Text),
            Jobs => ("jobs", Kind::Count),
            Attempts => ("attempts", Kind::Count),
            CardHours => ("card_hours", Kind::Hours),
            BilledCardHours => ("billed_card_hours", Kind::Hours),
            StandardCardHours => ("standard_card_hours", Kind::Hours),
            EffectiveCardHours => ("effective_card_hours", Kind::Hours),
            UnderusedCardHours => ("underused_card_hours", Kind::Hours),
            IdleCardHours => ("idle_card_hours", Kind::Hours),
            LostCardHours => ("lost_card_hours", Kind::Hours),
            UnseenCardHours => ("unseen_card_hours", Kind::Hours),
            FailedCardHours => ("failed_card_hours", Kind::Hours),
            AskedCardHours => ("asked_card_hours", Kind::Hours),
            CapacityCardHours => ("capacity_card_hours", Kind::Hours),
            OverCapacityCardHours => ("over_capacity_card_hours", Kind::Hours),
            FreeCardHours => ("free_card_hours", Kind::Hours),
            ReservedCardHours => ("reserved_card_hours", Kind::Hours),
            DownCardHours => ("down_card_hours", Kind::Hours),
            UnaccountedCardHours => ("unaccounted_card_hours", Kind::Hours),
            Coverage | PoolCoverage => ("coverage", Kind::Ratio),
            UseCoverage => ("use_coverage", Kind::Ratio),
            Efficiency => ("efficiency", Kind::Ratio),
            UseBasis => ("use_basis", Kind::Text),
            EnergyKwh => ("energy_kwh", Kind::Hours),
            ListCost => ("list_cost", Kind::Money),
            Cost => ("cost", Kind::Money),
            Currency => ("currency", Kind::Text),
            IdleCost => ("idle_cost", Kind::Money),
            RestCost => ("rest_cost", Kind::Money),
            UnderusedOfHeld => ("underused_of_held", Kind::Ratio),
            IdleOfHeld => ("idle_of_held", Kind::Ratio),
            LostOfHeld => ("lost_of_held", Kind::Ratio),
            UnseenOfHeld => ("unseen_of_held", Kind::Ratio),
            FailedOfHeld => ("failed_of_held", Kind::Ratio),
        };
        Column { name: name.to_owned(), kind }
    }

    /// Its value in a row. `line` is the row's id.
    pub fn value(self, sums: &Sums, coin: Option<Coin>, line: impl FnOnce() -> Value) -> Value {
        let hours = |time: CardTime| Value::Decimal(time.card_hours());
        // Where capacity isn't known, how much of it was free isn't known either: absent, not zero (LED-3).
        let of_pool = |time: CardTime| match sums.capacity {
            None if time.is_zero() => Value::Absent,
            _ => hours(time),
        };
        // Where nobody saw anything, nobody knows what of it was idle: absent, not zero. Where a part was seen, it is what was seen (LED-3).
        let of_seen = |value: Value| if sums.seen().is_zero() { Value::Absent } else { value };
        let decimal = |value: Option<Decimal>| value.map_or(Value::Absent, Value::Decimal);
        let amount = |micros: Option<i128>| micros.zip(coin).map_or(Value::Absent, |(micros, coin)| coin.value(micros));
        let of_held = |time: CardTime| decimal(time.ratio_of(sums.held));
        // A part of a rounded leaf, so never in whole minor units but by luck: six decimals in every row.
        let part = |micros: Option<i128>| {
            decimal(micros.filter(|_| coin.is_some()).map(|micros| Decimal::from_i128_with_scale(micros, 6)))
        };
        match self {
            Line => line(),
            Jobs => Value::Count(sums.jobs),
            Attempts => Value::Count(sums.attempts),
            CardHours => hours(sums.held),
            BilledCardHours => hours(sums.billed),
            StandardCardHours => decimal(sums.money.map(|money| money.standard_card_hours())),
            EffectiveCardHours => of_seen(hours(sums.used.effective)),
            UnderusedCardHours => of_seen(hours(sums.used.underused)),
            IdleCardHours => of_seen(hours(sums.used.idle)),
            LostCardHours => of_seen(hours(sums.used.lost)),
            UnseenCardHours => hours(sums.unseen),
            FailedCardHours => hours(sums.failed),
            AskedCardHours => match sums.asked {
                Asked::Known(asked) => hours(asked),
                Asked::Unknown => Value::Absent,
            },
            CapacityCardHours => sums.capacity.map_or(Value::Absent, hours),
            OverCapacityCardHours => sums.capacity.map_or(Value::Absent, |_| hours(sums.over_capacity)),
            FreeCardHours => of_pool(sums.free),
            ReservedCardHours => of_pool(sums.reserved),
            DownCardHours => of_pool(sums.down),
            UnaccountedCardHours => of_pool(sums.unaccounted),
            Coverage => decimal(sums.coverage()),
            PoolCoverage => decimal(sums.pool_coverage()),
            UseCoverage => decimal(sums.use_coverage()),
            Efficiency => decimal(sums.efficiency()),
            UseBasis => sums.used.basis().map_or(Value::Absent, |basis| Value::Text(basis.name().into())),
            EnergyKwh => decimal(sums.energy_kwh()),
            ListCost => amount(sums.money.map(|money| money.list_cost)),
            Cost => amount(sums.money.map(|money| money.cost)),
            Currency => match (sums.money, coin) {
                (Some(_), Some(coin)) => Value::Text(coin.currency.code().into()),
                _ => Value::Absent,
            },
            IdleCost => of_seen(part(sums.money.map(|money| money.idle_cost))),
            RestCost => part(sums.money.map(|money| money.rest_cost)),
            UnderusedOfHeld => of_seen(of_held(sums.used.underused)),
            IdleOfHeld => of_seen(of_held(sums.used.idle)),
            LostOfHeld => of_seen(of_held(sums.used.lost)),
            UnseenOfHeld => of_held(sums.unseen),
            FailedOfHeld => of_held(sums.failed),
        }
    }
}

/// How amounts of a report are shown: all of its rows alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coin {
    pub currency: Currency,
    /// Whether some leaf is cut, so that amounts are no whole minor units: six decimals.
    pub cut: bool,
}

impl Coin {
    /// An amount. Unit: millionths of the currency.
    pub fn value(self, micros: i128) -> Value {
        let digits = u32::from(self.currency.minor_digits());
        if self.cut {
            return Value::Decimal(Decimal::from_i128_with_scale(micros, 6));
        }
        assert!(
            Money::from_micros(micros, self.currency).is_minor(),
            "LED-6: a sum of whole leaves is whole minor units"
        );
        Value::Decimal(Decimal::from_i128_with_scale(micros / 10i128.pow(6 - digits), digits))
    }
}
