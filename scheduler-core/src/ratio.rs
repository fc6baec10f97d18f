//! Fractions that are compared and never rounded.

use std::cmp::Ordering;

/// A fraction of whole numbers, neither below zero. Over zero it is without end, or zero where nothing is above the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    above: i128,
    below: i128,
}

impl Ratio {
    pub const ZERO: Self = Self { above: 0, below: 1 };

    /// `above / below`; what is under zero counts as zero.
    pub fn of(above: i128, below: i128) -> Self {
        if above <= 0 { Self::ZERO } else { Self { above, below: below.max(0) } }
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.above == 0
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.below, other.below) {
            (0, 0) => self.above.cmp(&other.above),
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            (mine, theirs) => self.above.saturating_mul(theirs).cmp(&other.above.saturating_mul(mine)),
        }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ratio {}
