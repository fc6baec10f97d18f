//! Shares held times the time they were held.

use crate::{CardShare, Interval};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// Shares held times the time they were held.
///
/// Unit: the card-hour when shown; inside, parts of a card × milliseconds, an integer of 128 bits, so that sums are
/// exact and don't depend on their order (LED-7, LED-10). Delta: `decimal(38, 0)`. Below zero only as a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardTime(i128);

impl CardTime {
    /// Parts × milliseconds to one card-hour.
    pub const PART_MS_PER_CARD_HOUR: i128 = CardShare::PARTS_PER_CARD as i128 * 3_600_000;
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// `share` over all of `stretch`.
    pub fn of(share: CardShare, stretch: Interval) -> Self {
        Self(i128::from(share.parts()) * i128::from(stretch.length_ms()))
    }

    /// From parts × milliseconds.
    pub const fn from_part_ms(part_ms: i128) -> Self {
        Self(part_ms)
    }

    /// Parts × milliseconds.
    pub const fn part_ms(self) -> i128 {
        self.0
    }

    /// Whether it is none.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// In card-hours with six decimals, half to even. For showing: nothing is computed from it again.
    pub fn card_hours(self) -> Decimal {
        let micros =
            crate::money::div_half_even(&(BigInt::from(self.0) * 1_000_000), &Self::PART_MS_PER_CARD_HOUR.into());
        Decimal::from_i128_with_scale(i128::try_from(micros).expect("smaller than the parts"), 6)
    }

    /// This part of `whole`, six decimals, half to even; none of nothing.
    pub fn ratio_of(self, whole: Self) -> Option<Decimal> {
        (whole.0 != 0).then(|| {
            let micros = crate::money::div_half_even(&(BigInt::from(self.0) * 1_000_000), &whole.0.into());
            Decimal::from_i128_with_scale(i128::try_from(micros).unwrap_or(i128::from(i64::MAX)), 6)
        })
    }
}

impl Add for CardTime {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("LED-10: card-time fits 128 bits"))
    }
}

impl AddAssign for CardTime {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for CardTime {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("LED-10: card-time fits 128 bits"))
    }
}

impl Sum for CardTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for CardTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} card-hours", self.card_hours())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use proptest::prelude::*;

    fn stretch(start: i64, end: i64) -> Interval {
        Interval::new(Timestamp::from_unix_ms(start), Timestamp::from_unix_ms(end)).unwrap()
    }

    #[test]
    fn a_seventh_of_a_card_for_seven_hours_is_one_card_hour() {
        let seventh = CardShare::from_fraction(1, 7).unwrap();
        let held = CardTime::of(seventh, stretch(0, 7 * 3_600_000));
        assert_eq!(held.card_hours().to_string(), "1.000000");
        assert_eq!(held.part_ms(), CardTime::PART_MS_PER_CARD_HOUR);
    }

    #[test]
    fn a_cluster_of_ten_million_cards_for_a_century_fits() {
        let most = CardShare::from_cards(CardShare::MOST_CARDS).unwrap();
        assert!(CardTime::of(most, stretch(0, 100 * 366 * 86_400_000)).part_ms() < 10i128.pow(38));
    }

    proptest! {
        /// LED-7 at its smallest: cutting a stretch anywhere changes no sum.
        #[test]
        fn cutting_a_stretch_changes_no_sum(parts in 0i64..400_000_000, start in 0i64..1_000_000, length in 2i64..9_000_000, cut in 1i64..9_000_000) {
            let cut = 1 + cut % (length - 1);
            let share = CardShare::from_parts(parts);
            let whole = CardTime::of(share, stretch(start, start + length));
            let parts = CardTime::of(share, stretch(start, start + cut)) + CardTime::of(share, stretch(start + cut, start + length));
            prop_assert_eq!(whole, parts);
        }
    }
}
