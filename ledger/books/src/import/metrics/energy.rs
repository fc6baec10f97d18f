//! What a counter of energy grew by.

use cardhour_domain::{EnergyBasis, Gap, Milliwatts, Reading, Timestamp};

/// Follows the energy counter of one card through its instants, in their order.
///
/// A counter that falls begins again. What it grew by is believed only where the card could have drawn it: a counter that falls to nothing
/// and comes back at its lifetime's value has grown by little, not by a lifetime (C17).
#[derive(Default)]
pub struct Meter {
    last: Option<(Timestamp, i64)>,
    /// The value before the counter fell, and what was booked since.
    before_fall: Option<(Timestamp, i64, i64)>,
}

/// What no card draws, where its limit isn't known. Unit: milliwatts.
const MOST_MW: i64 = 3_000_000;
/// A counter is refreshed up to this much late, so a step may hold energy of the one before. Unit: milliseconds.
const LATE_MS: i64 = 1_000;

impl Meter {
    /// What the counter grew by since the instant before; none where that can't be told.
    ///
    /// `limit`: what the card may draw. Unit: millijoules.
    pub fn grown(&mut self, at: Timestamp, counter: i64, limit: Reading<Milliwatts>) -> Option<i64> {
        let believed =
            |grown: i64, since: Timestamp| (i128::from(grown) <= most_mj(limit, at.ms_since(since))).then_some(grown);
        let last = self.last.replace((at, counter));
        let (since, value) = last?;
        if counter < value {
            let grown = believed(counter, since);
            self.before_fall = Some((since, value, grown.unwrap_or(0)));
            return grown.filter(|grown| *grown > 0);
        }
        if let Some(grown) = believed(counter - value, since) {
            if let Some((_, _, booked)) = &mut self.before_fall {
                *booked += grown;
            }
            return Some(grown);
        }
        let (since, value, booked) = self.before_fall.take()?;
        let grown = counter.checked_sub(value).filter(|grown| *grown >= 0)?;
        believed(grown, since).map(|grown| (grown - booked).max(0))
    }

    /// The instant from which the next growth counts.
    pub fn since(&self) -> Option<Timestamp> {
        self.last.map(|(at, _)| at)
    }

    /// Energy that was estimated where the counter couldn't tell: what a counter that comes back tells of that time is less by it.
    pub fn estimated(&mut self, mj: i64) {
        if let Some((_, _, booked)) = &mut self.before_fall {
            *booked += mj;
        }
    }
}

/// The most that a card can have drawn over a time. Unit: millijoules.
pub fn most_mj(limit: Reading<Milliwatts>, length_ms: i64) -> i128 {
    // A board may pass its limit for moments: twice is beyond any.
    let most_mw = limit.seen().map_or(MOST_MW, |limit| limit.0.saturating_mul(2));
    i128::from(most_mw) * i128::from(length_ms + LATE_MS) / 1000
}

/// Power over a time. Unit: millijoules, half to even.
pub fn of_power(power: Milliwatts, length_ms: i64) -> i64 {
    let product = i128::from(power.0) * i128::from(length_ms);
    let (whole, rest) = (product.div_euclid(1000), product.rem_euclid(1000));
    let up = rest > 500 || (rest == 500 && whole % 2 != 0);
    i64::try_from(whole + i128::from(up)).expect("100 kW over less than 90 million years")
}

/// The energy of a stretch: by the counter where it can be told, else by power, else the reason why not.
pub fn of_stretch(grown: Reading<i64>, power: Reading<Milliwatts>, length_ms: i64) -> (Reading<i64>, EnergyBasis) {
    match (grown, power) {
        (Reading::Seen(grown), _) => (Reading::Seen(grown), EnergyBasis::Counter),
        (_, Reading::Seen(power)) => (Reading::Seen(of_power(power, length_ms)), EnergyBasis::Power),
        (Reading::Missing(Gap::NotRecorded), Reading::Missing(gap)) => (Reading::Missing(gap), EnergyBasis::Power),
        (Reading::Missing(gap), _) => (Reading::Missing(gap), EnergyBasis::Counter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: i64) -> Timestamp {
        Timestamp::from_unix_s(s)
    }

    const LIMIT: Reading<Milliwatts> = Reading::Seen(Milliwatts(700_000));

    #[test]
    fn a_counter_that_falls_begins_again() {
        let mut meter = Meter::default();
        assert_eq!(meter.grown(at(0), 1_000_000, LIMIT), None);
        assert_eq!(meter.grown(at(10), 1_500_000, LIMIT), Some(500_000));
        assert_eq!(meter.grown(at(20), 40_000, LIMIT), Some(40_000));
        assert_eq!(meter.grown(at(30), 90_000, LIMIT), Some(50_000));
    }

    /// The report's numbers: a lifetime of 15,508.51 and a real total of 33.47, here in joules, over steps of 10 s.
    #[test]
    fn c17_a_counter_that_comes_back_at_its_lifetime_has_grown_by_little() {
        let mut meter = Meter::default();
        let readings = [(0, 15_475_040), (10, 0), (20, 15_508_510)];
        let limit = Reading::Seen(Milliwatts(10_000));
        let grown: Vec<_> = readings.iter().map(|(s, mj)| meter.grown(at(*s), *mj, limit)).collect();
        // 15,508.51 − 15,475.04 = 33.47.
        assert_eq!(grown, [None, None, Some(33_470)]);
    }

    #[test]
    fn what_no_card_can_draw_is_not_booked() {
        let mut meter = Meter::default();
        meter.grown(at(0), 0, LIMIT);
        // 700 W for 10 s are 7,000 J; 100,000 J are not.
        assert_eq!(meter.grown(at(10), 100_000_000, LIMIT), None);
        assert_eq!(meter.grown(at(20), 107_000_000, LIMIT), Some(7_000_000));
    }

    #[test]
    fn power_over_time_is_rounded_half_to_even() {
        // 0.5 mJ → 0, 1.5 mJ → 2, 631.95 W × 1,003 ms = 633,845.85 mJ → 633,846.
        assert_eq!(of_power(Milliwatts(1), 500), 0);
        assert_eq!(of_power(Milliwatts(3), 500), 2);
        assert_eq!(of_power(Milliwatts(631_950), 1_003), 633_846);
    }
}
