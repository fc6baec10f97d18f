//! The sums of one row, and how figures are made of them.

use super::bundles::{AskedOf, Bundle, Class};
use crate::cell::Used;
use cardhour_domain::{CardState, CardTime};
use num_bigint::BigInt;
use num_integer::Integer;
use rust_decimal::Decimal;

/// Of how much of its held time a row's use has to be seen before its efficiency is shown. Unit: percent.
///
/// Of what nobody saw, anything may be true: a row seen by a part c with efficiency e has one between c·e and c·e + (1 − c). Below a half,
/// more of that span is open than is known, and the figure would say more of where telemetry runs than of the work. A constant until two
/// sites want different ones.
const LEAST_USE_COVERAGE_PERCENT: i128 = 50;

/// What a row adds up. Every field is exact; two rows add up to the row of both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    pub attempts: u64,
    pub jobs: u64,
    pub held: CardTime,
    pub billed: CardTime,
    pub unseen: CardTime,
    pub unproven: CardTime,
    /// Where seen time went, and the energy of all time in the row, held or not.
    pub used: Used,
    pub failed: CardTime,
    pub asked: Asked,
    pub down: CardTime,
    pub reserved: CardTime,
    pub free: CardTime,
    pub unaccounted: CardTime,
    /// What there was to be held; none where nobody says.
    pub capacity: Option<CardTime>,
    /// Of what is unaccounted, that where capacity is known.
    pub unaccounted_of_capacity: CardTime,
    pub over_capacity: CardTime,
    pub money: Option<RowMoney>,
}

/// The money of what has a price in a row. Unit: millionths of the currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowMoney {
    pub list_cost: i128,
    pub cost: i128,
    /// Billed time × coefficient. Unit: millionths of parts × milliseconds.
    pub standard: i128,
    /// Of the cost, what falls to idle time.
    pub idle_cost: i128,
    /// What falls to all other time.
    pub rest_cost: i128,
}

/// Card-time asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Held time whose asked cards nobody says is among it, so that no sum can be given.
    Unknown,
    /// The exact sum so far.
    Known(CardTime),
}

impl Default for Asked {
    fn default() -> Self {
        Self::Known(CardTime::ZERO)
    }
}

impl Asked {
    pub fn add(&mut self, other: &Self) {
        *self = match (&*self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(*a + *b),
            _ => Self::Unknown,
        };
    }
}

impl Sums {
    /// Adds a bundle; not its attempts, its money, or what was asked for where that isn't what was held.
    pub fn add_bundle(&mut self, bundle: &Bundle, class: &Class<'_>) {
        if let Some(used) = &bundle.used {
            self.used.add(used);
        }
        match bundle.state {
            CardState::Held => {
                self.held += bundle.card_time;
                self.billed += bundle.billed_time;
                self.unseen += bundle.unseen;
                self.unproven += bundle.unproven;
                if class.is_failed {
                    self.failed += bundle.card_time;
                }
                match class.asked {
                    AskedOf::Unknown => self.asked = Asked::Unknown,
                    AskedOf::Same => self.asked.add(&Asked::Known(bundle.card_time)),
                    AskedOf::Other => {}
                }
            }
            CardState::Down => self.down += bundle.card_time,
            CardState::Reserved => self.reserved += bundle.card_time,
            CardState::Free => self.free += bundle.card_time,
            CardState::Unaccounted => self.unaccounted += bundle.card_time,
        }
    }

    /// Adds another row; not its attempts and jobs, which may be in both.
    pub fn add(&mut self, other: &Self) {
        self.held += other.held;
        self.billed += other.billed;
        self.unseen += other.unseen;
        self.unproven += other.unproven;
        self.used.add(&other.used);
        self.failed += other.failed;
        self.asked.add(&other.asked);
        self.down += other.down;
        self.reserved += other.reserved;
        self.free += other.free;
        self.unaccounted += other.unaccounted;
        self.unaccounted_of_capacity += other.unaccounted_of_capacity;
        self.over_capacity += other.over_capacity;
        if let Some(capacity) = other.capacity {
            *self.capacity.get_or_insert_default() += capacity;
        }
        if let Some(money) = other.money {
            self.money.get_or_insert_default().add(money);
        }
    }

    /// Held time proven by accounting or observation ÷ held time (LED-3).
    pub fn coverage(&self) -> Option<Decimal> {
        (self.held - self.unproven).ratio_of(self.held)
    }

    /// Held time with telemetry ÷ held time (LED-3).
    pub fn use_coverage(&self) -> Option<Decimal> {
        (self.held - self.unseen).ratio_of(self.held)
    }

    /// Held time with telemetry.
    pub fn seen(&self) -> CardTime {
        self.held - self.unseen
    }

    /// Effective ÷ seen (design §4.3); none where too little of the held time was seen to say.
    pub fn efficiency(&self) -> Option<Decimal> {
        self.is_seen_enough().then(|| self.used.effective.ratio_of(self.seen())).flatten()
    }

    /// Whether so much of the held time was seen that what was seen may speak for the row.
    pub fn is_seen_enough(&self) -> bool {
        self.seen().part_ms() * 100 >= self.held.part_ms() * LEAST_USE_COVERAGE_PERCENT
    }

    /// Measured energy in kWh, six decimals, half to even; none where nobody measured any.
    pub fn energy_kwh(&self) -> Option<Decimal> {
        const MJ_PER_MICRO_KWH: i128 = 3_600_000_000 / 1_000_000;
        self.used.energy_mj.map(|energy| Decimal::from_i128_with_scale(half_even(energy, MJ_PER_MICRO_KWH), 6))
    }

    /// Of a pool: 1 − unaccounted ÷ capacity (LED-3).
    pub fn pool_coverage(&self) -> Option<Decimal> {
        let capacity = self.capacity?;
        (capacity - self.unaccounted_of_capacity).ratio_of(capacity)
    }
}

impl RowMoney {
    pub fn add(&mut self, other: Self) {
        let sum = |a: i128, b: i128| a.checked_add(b).expect("LED-10: money fits 128 bits");
        self.list_cost = sum(self.list_cost, other.list_cost);
        self.cost = sum(self.cost, other.cost);
        self.standard = sum(self.standard, other.standard);
        self.idle_cost = sum(self.idle_cost, other.idle_cost);
        self.rest_cost = sum(self.rest_cost, other.rest_cost);
    }

    /// Standard card-hours, six decimals, half to even.
    pub fn standard_card_hours(&self) -> Decimal {
        Decimal::from_i128_with_scale(half_even(self.standard, CardTime::PART_MS_PER_CARD_HOUR), 6)
    }
}

/// Billed time times a coefficient of at most six decimals, exact. Unit: millionths of parts × milliseconds.
pub(crate) fn standard(billed: CardTime, coefficient: Decimal) -> i128 {
    let coefficient = coefficient.normalize();
    let millionths = coefficient.mantissa() * 10i128.pow(6 - coefficient.scale());
    billed.part_ms().checked_mul(millionths).expect("LED-10: standard card-time fits 128 bits")
}

/// `time` × `asked` ÷ `had`, to the nearest part × millisecond.
pub(crate) fn in_proportion(time: CardTime, asked: i64, had: i64) -> CardTime {
    let (quotient, remainder) = (BigInt::from(time.part_ms()) * asked).div_mod_floor(&had.into());
    let rounded = if remainder * 2 >= BigInt::from(had) { quotient + 1 } else { quotient };
    CardTime::from_part_ms(i128::try_from(rounded).expect("LED-10: card-time fits 128 bits"))
}

/// `numerator` ÷ `denominator`, half to even; both above or at zero.
fn half_even(numerator: i128, denominator: i128) -> i128 {
    let (quotient, remainder) = numerator.div_mod_floor(&denominator);
    match (remainder * 2).cmp(&denominator) {
        std::cmp::Ordering::Less => quotient,
        std::cmp::Ordering::Greater => quotient + 1,
        std::cmp::Ordering::Equal => quotient + quotient % 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 2.4 and 2.400000 are both 2,400,000 millionths.
    #[test]
    fn a_coefficient_counts_the_same_however_many_zeros_it_is_written_with() {
        let one = CardTime::from_part_ms(1);
        assert_eq!(standard(one, "2.4".parse().unwrap()), 2_400_000);
        assert_eq!(standard(one, "2.4000000000".parse().unwrap()), 2_400_000);
        assert_eq!(standard(one, "300".parse().unwrap()), 300_000_000);
        assert_eq!(standard(one, "0".parse().unwrap()), 0);
    }

    /// A millionth of a kWh is 3.6 J: 1,800 mJ and 9,000 mJ are halves, to the even 0 and 2; nothing measured is not a zero that was.
    #[test]
    fn energy_is_shown_in_kwh_to_the_nearest_millionth() {
        let kwh = |energy_mj| {
            let used = Used { energy_mj, ..Used::default() };
            Sums { used, ..Sums::default() }.energy_kwh().map(|kwh| kwh.to_string())
        };
        assert_eq!(kwh(None), None);
        assert_eq!(kwh(Some(0)).unwrap(), "0.000000");
        assert_eq!(kwh(Some(1_800)).unwrap(), "0.000000");
        assert_eq!(kwh(Some(9_000)).unwrap(), "0.000002");
        assert_eq!(kwh(Some(3_600_000_000)).unwrap(), "1.000000");
    }

    #[test]
    fn halves_round_to_even() {
        assert_eq!([1, 3, 5, 4].map(|n| half_even(n, 2)), [0, 2, 2, 2]);
    }
}
