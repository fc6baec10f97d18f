//! Money, prices, and the two ways they are rounded.
//!
//! An amount is rounded once, half to even, to the currency's minor unit ([`Rate::charge`], LED-6). A sum that has to be
//! cut into pieces is spread by largest remainder ([`spread`]), so that the pieces add up to it.

use crate::{CardTime, iso4217};
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use rust_decimal::Decimal;
use std::fmt;
use std::ops::{Add, AddAssign, Neg};

/// An ISO 4217 currency and how many decimals its minor unit has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency {
    code: [u8; 3],
    minor_digits: u8,
}

/// Why a text is no money.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MoneyError {
    /// Not a code that ISO 4217 lists.
    #[error("{0:?} is not an ISO 4217 currency code such as CNY")]
    Currency(String),
    /// Two currencies in one sum.
    #[error("{left} and {right} can't be added")]
    Mixed {
        /// The one.
        left: Currency,
        /// The other.
        right: Currency,
    },
}

impl Currency {
    /// From a code of ISO 4217, three capital letters. Errors: any other text.
    pub fn parse(code: &str) -> Result<Self, MoneyError> {
        let bytes: [u8; 3] = code.as_bytes().try_into().map_err(|_| MoneyError::Currency(code.to_owned()))?;
        let minor_digits = iso4217::minor_digits(code).ok_or_else(|| MoneyError::Currency(code.to_owned()))?;
        Ok(Self { code: bytes, minor_digits })
    }

    /// Its code.
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.code).expect("capital letters")
    }

    /// Decimals of its minor unit, at most four.
    pub const fn minor_digits(self) -> u8 {
        self.minor_digits
    }

    /// Millionths to its minor unit: 10,000 for a hundredth.
    pub fn micros_per_minor(self) -> i128 {
        10i128.pow(6 - u32::from(self.minor_digits))
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// An amount of one currency. Unit: millionths of it. Below zero for what is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money {
    micros: i128,
    currency: Currency,
}

impl Money {
    /// From millionths.
    pub const fn from_micros(micros: i128, currency: Currency) -> Self {
        Self { micros, currency }
    }

    /// `numerator` ÷ `denominator` millionths, rounded half to even to the minor unit. `denominator` is above zero.
    pub fn from_fraction(numerator: &BigInt, denominator: &BigInt, currency: Currency) -> Self {
        let minor = div_half_even(numerator, &(denominator * currency.micros_per_minor()));
        let micros = i128::try_from(minor * currency.micros_per_minor()).expect("LED-10: money fits 128 bits");
        Self { micros, currency }
    }

    /// Nothing of it.
    pub const fn zero(currency: Currency) -> Self {
        Self { micros: 0, currency }
    }

    /// Millionths.
    pub const fn micros(self) -> i128 {
        self.micros
    }

    /// Its currency.
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// The sum. Errors: two currencies.
    pub fn checked_add(self, other: Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::Mixed { left: self.currency, right: other.currency });
        }
        let micros = self.micros.checked_add(other.micros).expect("LED-10: money fits 128 bits");
        Ok(Self { micros, ..self })
    }

    /// Whether it is a whole number of minor units.
    pub fn is_minor(self) -> bool {
        self.micros % self.currency.micros_per_minor() == 0
    }

    /// With the currency's own decimals. Shape: exact for an amount of whole minor units; asserts that it is one.
    pub fn to_minor_string(self) -> String {
        assert!(self.is_minor(), "LED-6: {} µ{} is not a whole minor unit", self.micros, self.currency);
        let digits = u32::from(self.currency.minor_digits);
        Decimal::from_i128_with_scale(self.micros / self.currency.micros_per_minor(), digits).to_string()
    }

    /// With six decimals, exact.
    pub fn to_micro_string(self) -> String {
        Decimal::from_i128_with_scale(self.micros, 6).to_string()
    }
}

impl Add for Money {
    type Output = Self;
    /// The sum. Panics on two currencies, which LED-6 forbids; where that can happen, use [`Money::checked_add`].
    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("LED-6: a currency never mixes with another")
    }
}

impl Neg for Money {
    type Output = Self;
    fn neg(self) -> Self {
        Self { micros: -self.micros, ..self }
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The price of one whole card for one hour, exact: a list price times a window's factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// List price for a card-hour.
    pub per_card_hour: Decimal,
    /// Multiplied with it: 1, or a window's factor.
    pub factor: Decimal,
}

impl Rate {
    /// Its price times `time` as a fraction (numerator, denominator) of millionths; never rounded.
    pub fn exact(self, time: CardTime) -> (BigInt, BigInt) {
        let numerator = BigInt::from(self.per_card_hour.mantissa())
            * BigInt::from(self.factor.mantissa())
            * BigInt::from(time.part_ms())
            * 1_000_000;
        let scale = self.per_card_hour.scale() + self.factor.scale();
        let denominator = BigInt::from(10).pow(scale) * CardTime::PART_MS_PER_CARD_HOUR;
        (numerator, denominator)
    }

    /// What `time` costs, rounded half to even to the currency's minor unit.
    ///
    /// Called once for a leaf, on the sum of its card-time, never on pieces (LED-6, LED-7).
    pub fn charge(self, time: CardTime, currency: Currency) -> Money {
        let (numerator, denominator) = self.exact(time);
        Money::from_fraction(&numerator, &denominator, currency)
    }

    /// Unrounded cost of `time` on a common scale, to weigh pieces of one leaf against each other.
    pub fn weight(self, time: CardTime) -> BigInt {
        // Pieces of one leaf have one rate, so that the numerators alone compare.
        self.exact(time).0
    }
}

/// Cuts `total` into pieces in proportion to `weights` (not below zero), by largest remainder; the pieces add up to it.
///
/// Equal remainders go to the earlier piece, so that the caller's order breaks ties. With no weight at all, everything
/// falls to the first piece. Shape: one piece a weight; empty only for no weights.
pub fn spread(total: i128, weights: &[BigInt]) -> Vec<i128> {
    let sum: BigInt = weights.iter().sum();
    if weights.is_empty() {
        assert_eq!(total, 0, "nothing to spread {total} over");
        return Vec::new();
    }
    if sum.sign() != Sign::Plus {
        let mut pieces = vec![0; weights.len()];
        pieces[0] = total;
        return pieces;
    }
    let mut pieces = Vec::with_capacity(weights.len());
    let mut remainders = Vec::with_capacity(weights.len());
    for (i, weight) in weights.iter().enumerate() {
        let (whole, remainder) = (BigInt::from(total) * weight).div_mod_floor(&sum);
        pieces.push(i128::try_from(whole).expect("a piece is no larger than the total"));
        remainders.push((remainder, i));
    }
    let left = total - pieces.iter().sum::<i128>();
    remainders.sort_by(|(a, i), (b, j)| b.cmp(a).then(i.cmp(j)));
    for (_, i) in remainders.iter().take(usize::try_from(left).expect("at most one a piece")) {
        pieces[*i] += 1;
    }
    debug_assert_eq!(pieces.iter().sum::<i128>(), total);
    pieces
}

/// [`spread`] by weights of 128 bits: the same pieces, without large numbers where total × weights fits 128 bits too.
pub fn spread_by(total: i128, weights: &[i128]) -> Vec<i128> {
    let sum = weights.iter().try_fold(0i128, |sum, weight| sum.checked_add(*weight)).filter(|sum| *sum > 0);
    let Some(sum) = sum.filter(|sum| total.checked_mul(*sum).is_some()) else {
        return spread(total, &weights.iter().copied().map(BigInt::from).collect::<Vec<_>>());
    };
    let mut remainders = Vec::with_capacity(weights.len());
    let mut pieces = Vec::with_capacity(weights.len());
    for (i, weight) in weights.iter().enumerate() {
        let (piece, remainder) = (total * weight).div_mod_floor(&sum);
        pieces.push(piece);
        remainders.push((remainder, i));
    }
    let left = total - pieces.iter().sum::<i128>();
    if left > 0 {
        remainders.sort_unstable_by(|(a, i), (b, j)| b.cmp(a).then(i.cmp(j)));
    }
    for (_, i) in remainders.iter().take(usize::try_from(left).expect("at most one a piece")) {
        pieces[*i] += 1;
    }
    debug_assert_eq!(pieces.iter().sum::<i128>(), total);
    pieces
}

/// `numerator` ÷ `denominator`, half to even. `denominator` is above zero.
pub(crate) fn div_half_even(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let (quotient, remainder) = numerator.div_mod_floor(denominator);
    match (&remainder * 2u8).cmp(denominator) {
        std::cmp::Ordering::Less => quotient,
        std::cmp::Ordering::Greater => quotient + 1u8,
        std::cmp::Ordering::Equal if quotient.is_even() => quotient,
        std::cmp::Ordering::Equal => quotient + 1u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CardShare, Interval, Timestamp};
    use proptest::prelude::*;

    fn hours(ms: i64) -> CardTime {
        CardTime::of(CardShare::CARD, Interval::new(Timestamp::from_unix_ms(0), Timestamp::from_unix_ms(ms)).unwrap())
    }

    #[track_caller]
    fn check_charge(price: &str, ms: i64, currency: &str, expected: &str) {
        let rate = Rate { per_card_hour: price.parse().unwrap(), factor: Decimal::ONE };
        let charged = rate.charge(hours(ms), Currency::parse(currency).unwrap());
        assert_eq!(charged.to_minor_string(), expected, "{price} for {ms} ms");
    }

    /// By hand: 0.01 × ½ h = 0.005, half of a cent, to the even 0.00; 0.03 × ½ h = 0.015 to the even 0.02.
    #[test]
    fn half_a_cent_rounds_to_even() {
        check_charge("0.01", 1_800_000, "CNY", "0.00");
        check_charge("0.03", 1_800_000, "CNY", "0.02");
        check_charge("0.05", 1_800_000, "CNY", "0.02");
    }

    /// By hand: 18.50 × 1.5 h = 27.75 in hundredths; 28 whole yen (27.75 up); 27.750 in thousandths of a dinar.
    #[test]
    fn a_currency_has_its_own_decimals() {
        check_charge("18.50", 5_400_000, "CNY", "27.75");
        check_charge("18.50", 5_400_000, "JPY", "28");
        check_charge("18.50", 5_400_000, "KWD", "27.750");
    }

    #[test]
    fn currencies_do_not_mix() {
        let cny = Money::zero(Currency::parse("CNY").unwrap());
        let usd = Money::zero(Currency::parse("USD").unwrap());
        assert!(matches!(cny.checked_add(usd), Err(MoneyError::Mixed { .. })));
        assert!(Currency::parse("yuan").is_err());
        assert!(Currency::parse("cny").is_err());
    }

    /// By hand: 100 over 1:1:1 is 34, 33, 33: one left over, equal remainders, the first takes it.
    #[test]
    fn the_first_of_equal_remainders_takes_what_is_left() {
        assert_eq!(spread(100, &[1.into(), 1.into(), 1.into()]), [34, 33, 33]);
        assert_eq!(spread(-100, &[1.into(), 1.into(), 1.into()]), [-33, -33, -34]);
        assert_eq!(spread(5, &[0.into(), 0.into()]), [5, 0]);
    }

    proptest! {
        #[test]
        fn weights_of_any_size_give_the_same_pieces(total in -10i128.pow(20)..10i128.pow(20), size in 0u32..100, weights in prop::collection::vec(0u64.., 0..20)) {
            let weights: Vec<i128> = weights.into_iter().map(|weight| (i128::from(weight) << 40) >> size.min(90)).collect();
            let total = if weights.is_empty() { 0 } else { total };
            let large: Vec<BigInt> = weights.iter().copied().map(BigInt::from).collect();
            prop_assert_eq!(spread_by(total, &weights), spread(total, &large));
        }

        #[test]
        fn pieces_add_up_to_the_whole(total in -10i128.pow(20)..10i128.pow(20), weights in prop::collection::vec(0u64.., 1..20)) {
            let weights: Vec<BigInt> = weights.into_iter().map(BigInt::from).collect();
            let pieces = spread(total, &weights);
            prop_assert_eq!(pieces.iter().sum::<i128>(), total);
        }
    }
}
