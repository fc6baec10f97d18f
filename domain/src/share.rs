//! A part of a card, or of several.

use num_integer::Integer;
use rust_decimal::Decimal;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

/// Parts of cards. Unit: the part, 18,018,000 to the card.
///
/// That number makes 1/1 … 1/16 and every per mille exact (LED-10); it is 2⁴·3²·5³·7·11·13. Other fractions
/// are rounded half to even, by at most half a part. A share may be more than one card: a record that holds eight cards
/// without naming them is one share of 8 × 18,018,000 parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CardShare(i64);

/// A share that can't be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ShareError {
    /// Below zero.
    #[error("{0} cards is below zero")]
    Negative(String),
    /// More than a pool can have.
    #[error("{0} cards is more than {max} in one holding", max = CardShare::MOST_CARDS)]
    TooMany(String),
    /// Not a number.
    #[error("{0:?} is not a number of cards")]
    NotANumber(String),
}

impl CardShare {
    /// Parts to a whole card.
    pub const PARTS_PER_CARD: i64 = 18_018_000;
    /// The most cards one holding may name: above any pool there is, and below every overflow.
    pub const MOST_CARDS: i64 = 10_000_000;
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One whole card.
    pub const CARD: Self = Self(Self::PARTS_PER_CARD);

    /// From parts, which are never below zero.
    pub const fn from_parts(parts: i64) -> Self {
        assert!(parts >= 0, "LED-2: a share is never below zero");
        Self(parts)
    }

    /// Whole cards. Errors: below zero, or more than [`Self::MOST_CARDS`].
    pub fn from_cards(cards: i64) -> Result<Self, ShareError> {
        Self::from_decimal(Decimal::from(cards))
    }

    /// A count of cards with a fraction, such as 0.46. Errors: below zero, or more than [`Self::MOST_CARDS`].
    pub fn from_decimal(cards: Decimal) -> Result<Self, ShareError> {
        if cards.is_sign_negative() && !cards.is_zero() {
            return Err(ShareError::Negative(cards.to_string()));
        }
        if cards > Decimal::from(Self::MOST_CARDS) {
            return Err(ShareError::TooMany(cards.to_string()));
        }
        let denominator = 10i128.pow(cards.scale());
        let numerator = num_bigint::BigInt::from(cards.mantissa()) * Self::PARTS_PER_CARD;
        let parts = crate::money::div_half_even(&numerator, &denominator.into());
        Ok(Self(i64::try_from(parts).expect("at most MOST_CARDS × PARTS_PER_CARD, which 64 bits hold")))
    }

    /// `numerator`/`denominator` of a card, such as 3/7 for a slice.
    pub fn from_fraction(numerator: u32, denominator: u32) -> Result<Self, ShareError> {
        if denominator == 0 {
            return Err(ShareError::NotANumber(format!("{numerator}/{denominator}")));
        }
        let numerator = num_bigint::BigInt::from(numerator) * Self::PARTS_PER_CARD;
        let parts = crate::money::div_half_even(&numerator, &denominator.into());
        Ok(Self(i64::try_from(parts).expect("a 32-bit numerator times PARTS_PER_CARD fits 64 bits")))
    }

    /// Parts.
    pub const fn parts(self) -> i64 {
        self.0
    }

    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// As a count of cards, six decimals, half to even.
    pub fn cards(self) -> Decimal {
        let micros =
            crate::money::div_half_even(&(num_bigint::BigInt::from(self.0) * 1_000_000), &Self::PARTS_PER_CARD.into());
        Decimal::from_i128_with_scale(i128::try_from(micros).expect("smaller than the parts"), 6)
    }

    /// Less `other`, but not below nothing.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self((self.0 - other.0).max(0))
    }

    /// Cut into `n` shares as even as parts allow, the larger ones first; they add up to this one.
    pub fn split_evenly(self, n: usize) -> Vec<Self> {
        let (each, left) = self.0.div_rem(&(n as i64));
        (0..n as i64).map(|i| Self(each + i64::from(i < left))).collect()
    }
}

impl Add for CardShare {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for CardShare {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::from_parts(self.0 - other.0)
    }
}

impl Sum for CardShare {
    fn sum<I: Iterator<Item = Self>>(shares: I) -> Self {
        shares.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for CardShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cards", self.cards().normalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sixteenth_and_every_per_mille_are_exact() {
        for n in 1..=16u32 {
            let part = CardShare::from_fraction(1, n).unwrap();
            assert_eq!(part.parts() * i64::from(n), CardShare::PARTS_PER_CARD, "1/{n}");
        }
        for milli in 0..=1000i64 {
            let part = CardShare::from_decimal(Decimal::new(milli, 3)).unwrap();
            assert_eq!(part.parts() * 1000, milli * CardShare::PARTS_PER_CARD, "{milli} per mille");
        }
    }

    #[test]
    fn a_billion_cards_and_minus_one_are_refused() {
        assert!(matches!(CardShare::from_cards(1_000_000_000), Err(ShareError::TooMany(_))));
        assert!(matches!(CardShare::from_cards(-1), Err(ShareError::Negative(_))));
        assert_eq!(CardShare::from_cards(10_000_000).unwrap().cards(), Decimal::from(10_000_000));
    }

    proptest! {
        #[test]
        fn an_even_split_adds_up(parts in 0i64..1_000_000_000, n in 1usize..40) {
            let pieces = CardShare::from_parts(parts).split_evenly(n);
            prop_assert_eq!(pieces.iter().copied().sum::<CardShare>().parts(), parts);
            prop_assert!(pieces[0].parts() - pieces[n - 1].parts() <= 1);
        }
    }
}
