//! Numbers drawn from a seed, the same on every machine.

/// A splitmix64 generator. Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// From a seed; any will do.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for one part of the world, so that a change in one part leaves the others as they are.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Any 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number of `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high, "{low}..={high} holds no number");
        let span = u128::from(low.abs_diff(high)) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as i64
    }

    /// True `per_mille` times out of a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.between(0, 999) < i64::from(per_mille)
    }

    /// One of `all`, each as likely.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.between(0, all.len() as i64 - 1) as usize]
    }

    /// One of `all`, as likely as its weight.
    pub fn weighted<'a, T>(&mut self, all: &'a [(u32, T)]) -> &'a T {
        let mut at = self.between(0, all.iter().map(|(weight, _)| i64::from(*weight)).sum::<i64>() - 1);
        for (weight, value) in all {
            at -= i64::from(*weight);
            if at < 0 {
                return value;
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}
