//! Numbers as if drawn: splitmix64, the same from the same seed.

use std::ops::Range;

/// A source of numbers.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One of a range, which isn't empty.
    pub fn within(&mut self, range: Range<i64>) -> i64 {
        range.start + (self.next() % range.start.abs_diff(range.end)) as i64
    }

    /// Whether this is one of so many in a hundred.
    pub fn per_cent(&mut self, of_hundred: i64) -> bool {
        self.within(0..100) < of_hundred
    }
}
