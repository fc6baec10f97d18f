//! An amount before it is rounded.

use cardhour_domain::{Currency, Money};
use num_bigint::BigInt;

/// Exact millionths of a currency: numerator ÷ denominator, the latter above zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    pub numerator: BigInt,
    pub denominator: BigInt,
}

impl Fraction {
    pub fn zero() -> Self {
        Self { numerator: 0.into(), denominator: 1.into() }
    }

    /// The same times `numerator` ÷ `denominator`.
    pub fn times(&self, numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> Self {
        Self { numerator: &self.numerator * numerator.into(), denominator: &self.denominator * denominator.into() }
    }

    pub fn plus(&self, other: &Self) -> Self {
        Self {
            numerator: &self.numerator * &other.denominator + &other.numerator * &self.denominator,
            denominator: &self.denominator * &other.denominator,
        }
    }

    /// Rounded half to even to the minor unit.
    pub fn round(&self, currency: Currency) -> Money {
        Money::from_fraction(&self.numerator, &self.denominator, currency)
    }
}
