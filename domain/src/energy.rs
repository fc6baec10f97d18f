//! Power and energy as the driver gives them.

use std::ops::{Add, AddAssign};

/// Power. Unit: milliwatts, as NVML reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Milliwatts(pub i64);

/// Energy. Unit: millijoules, as NVML counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millijoules(pub i64);

impl Add for Millijoules {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Millijoules {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
