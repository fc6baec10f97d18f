//! Which stretch of time a row covers.

use super::{CLOCK_STEP_MS, WAIT_FOR_CLOCK_MS};
use crate::probe::Moment;
use cardhour_domain::{Interval, Timestamp};

/// A reading that is no later than this after its tick counts as made on it. Unit: milliseconds.
const ON_TIME_MS: i64 = 500;

/// The end of what was told of a device, on both clocks.
#[derive(Clone, Debug, Default)]
pub struct SpanMeter {
    told: Option<End>,
    is_first: bool,
}

#[derive(Clone, Copy, Debug)]
struct End {
    wall: Timestamp,
    us: i64,
    offset_ms: i64,
}

/// What a row covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// On the wall clock.
    pub during: Interval,
    /// Since when its values were gathered, on the monotonic clock. Unit: microseconds.
    pub start_us: i64,
    /// Until when. Unit: microseconds.
    pub end_us: i64,
    /// Between the two: what really went by, whatever the wall clock says.
    pub elapsed_us: i64,
}

impl SpanMeter {
    /// The stretch that ends with this reading; none for the first, and none while a clock that was set back shows a time that is told already. One
    /// that was set back by more than a day was wrong before: its first reading is a first again.
    ///
    /// Neighbours meet. A clock that was set forward leaves a gap before the row, and the row is as long as what went by; one that was set
    /// back lets the row start where the last one ended.
    pub fn next(&mut self, at: Moment, tick: Timestamp) -> Option<Span> {
        let late_ms = at.wall.ms_since(tick);
        let end = if (0..=ON_TIME_MS).contains(&late_ms) {
            End { wall: tick, us: at.monotonic_us - late_ms * 1000, offset_ms: at.offset_ms() }
        } else {
            End { wall: at.wall, us: at.monotonic_us, offset_ms: at.offset_ms() }
        };
        let told = self.told.filter(|told| told.wall.ms_since(end.wall) <= WAIT_FOR_CLOCK_MS);
        self.is_first = told.is_none();
        let Some(told) = told else {
            self.told = Some(end);
            return None;
        };
        let elapsed_us = end.us - told.us;
        let is_set = (end.offset_ms - told.offset_ms).abs() >= CLOCK_STEP_MS;
        let went_by = end.wall.checked_add_ms(-(elapsed_us / 1000)).unwrap_or(told.wall);
        let start = if is_set { told.wall.max(went_by) } else { told.wall };
        let during = Interval::new(start, end.wall).filter(|_| elapsed_us > 0)?;
        self.told = Some(end);
        Some(Span { during, start_us: told.us, end_us: end.us, elapsed_us })
    }

    /// The end of what was told, on the wall clock.
    pub fn until(&self) -> Option<Timestamp> {
        self.told.map(|told| told.wall)
    }

    /// Whether the last reading was the first.
    pub fn has_started_now(&self) -> bool {
        self.is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: i64, wall_ms: i64) -> Moment {
        Moment { monotonic_us: us, wall: Timestamp::from_unix_ms(wall_ms) }
    }

    fn next(meter: &mut SpanMeter, mono_ms: i64, wall_ms: i64, tick_ms: i64) -> Option<(i64, i64, i64)> {
        meter
            .next(at(mono_ms * 1000, wall_ms), Timestamp::from_unix_ms(tick_ms))
            .map(|span| (span.during.start().unix_ms(), span.during.end().unix_ms(), span.elapsed_us / 1000))
    }

    #[test]
    fn rows_meet_at_ticks_and_a_late_one_says_how_late() {
        let mut meter = SpanMeter::default();
        assert_eq!(next(&mut meter, 10_004, 15_004, 15_000), None);
        assert_eq!(next(&mut meter, 25_009, 30_009, 30_000), Some((15_000, 30_000, 15_000)));
        assert_eq!(next(&mut meter, 45_000, 50_000, 45_000), Some((30_000, 50_000, 20_000)));
        assert_eq!(next(&mut meter, 55_000, 60_000, 60_000), Some((50_000, 60_000, 10_000)));
    }

    #[test]
    fn a_clock_set_forward_leaves_a_gap_and_one_set_back_waits() {
        let mut meter = SpanMeter::default();
        next(&mut meter, 0, 15_000, 15_000);
        // An hour forward.
        assert_eq!(next(&mut meter, 15_000, 3_630_000, 3_630_000), Some((3_615_000, 3_630_000, 15_000)));
        // Ten seconds back: the tick at 3,635 s would begin before what is told; only 5 s are new, of 15 s that went by.
        assert_eq!(next(&mut meter, 30_000, 3_635_000, 3_630_000), Some((3_630_000, 3_635_000, 15_000)));
        // An hour back: nothing until the clock is past what is told; then one row carries all that went by.
        assert_eq!(next(&mut meter, 45_000, 50_000, 45_000), None);
        assert_eq!(next(&mut meter, 60_000, 65_000, 60_000), None);
        assert_eq!(
            next(&mut meter, 3_645_000, 3_650_000, 3_645_000).map(|(start, end, _)| (start, end)),
            Some((3_635_000, 3_650_000))
        );
    }

    #[test]
    fn a_clock_that_was_wrong_by_years_silences_no_card() {
        let mut meter = SpanMeter::default();
        let wrong = 3 * 365 * 86_400_000;
        assert_eq!(next(&mut meter, 0, wrong, wrong), None);
        assert_eq!(next(&mut meter, 15_000, wrong + 15_000, wrong + 15_000), Some((wrong, wrong + 15_000, 15_000)));
        assert_eq!(next(&mut meter, 30_000, 900_000, 900_000), None);
        assert!(meter.has_started_now());
        assert_eq!(next(&mut meter, 45_000, 915_000, 915_000), Some((900_000, 915_000, 15_000)));
    }
}
