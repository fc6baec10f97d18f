//! Between what and what a card's power lies.

use super::DeviceTick;
use cardhour_domain::{Milliwatts, Percent};

/// A card's power when nothing runs, and the most it may draw. Power is judged by where it lies between the two, since cards differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerRange {
    /// The least it was seen to draw, but no more than half its limit. Unit: milliwatts.
    pub idle_mw: i64,
    /// The most it may draw. Unit: milliwatts, above `idle_mw`.
    pub limit_mw: i64,
}

/// Counters that say less than this say that nothing runs.
const NOTHING: i32 = 2_000;

impl PowerRange {
    /// From a card's timeline; none where its power was never seen or its limit is nothing.
    ///
    /// The least seen stands for the idle level, not what is usual while counters say that nothing runs: on cards whose counters always say so
    /// (Thor) that would be the power of work. And a card at more than half its limit is not at rest, even when it was never seen lower.
    pub fn of(ticks: &[DeviceTick], limit_mw: i64) -> Option<Self> {
        let least = ticks.iter().filter_map(|tick| tick.power).min()?;
        let idle_mw = least.0.max(0).min(limit_mw / 2);
        (limit_mw > 0).then_some(Self { idle_mw, limit_mw })
    }

    /// How far up in the range `power` lies, in thousandths of a percent of the range: not bounded above.
    pub fn height(self, power: Milliwatts) -> i64 {
        let above = i128::from((power.0 - self.idle_mw).max(0));
        let height = above * i128::from(Percent::WHOLE.thousandths()) / i128::from(self.limit_mw - self.idle_mw);
        i64::try_from(height).unwrap_or(i64::MAX)
    }

    /// Takes the use out of ticks whose counters say that nothing runs while the card draws more than half its range: what it did isn't known.
    ///
    /// Source: rezolus#1105, a card whose driver answers 0 % for ever.
    pub(super) fn doubt(self, ticks: &mut [DeviceTick]) {
        let nothing = |percent: Option<Percent>| percent.is_none_or(|percent| percent.thousandths() < NOTHING);
        for tick in ticks {
            let high = tick.power.is_some_and(|power| self.height(power) > 50_000);
            if high && tick.sm_active.is_some() && nothing(tick.sm_active) && nothing(tick.mem_active) {
                tick.sm_active = None;
                tick.suspect = true;
            }
        }
    }
}
