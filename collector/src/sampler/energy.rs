//! Energy of a card over a tick, from its counter or from its power.

use cardhour_domain::{Gap, Millijoules, Reading};

/// No card draws more; the bound where a card doesn't tell its limit. Unit: milliwatts.
const MOST_POWER_MW: i64 = 2_000_000;

/// A counter is refreshed every 100 ms at worst; one that stands still for longer than this is stuck. Unit: microseconds.
const STUCK_AFTER_US: i64 = 5_000_000;

/// Two looks at the power further apart than this say nothing of what lies between them. Unit: microseconds.
const FURTHEST_POLLS_US: i64 = 30_000_000;

/// What a card's energy counter was, and what is left over from integrating its power.
#[derive(Clone, Debug, Default)]
pub struct EnergyMeter {
    last: Option<Mark>,
    before_drop: Option<Mark>,
    last_poll: Option<(i64, i64)>,
    /// Of power that isn't booked yet. Unit: milliwatts × microseconds, doubled.
    integrated: i128,
    integrated_us: i64,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at_us: i64,
    total_mj: u64,
}

/// What a counter grew by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// What was used since the counter was last believed.
    pub energy_mj: Reading<Millijoules>,
    /// Over how long that was. Unit: microseconds.
    pub elapsed_us: i64,
    /// By how much the counter moved, where that starts a new epoch of it.
    pub epoch: Option<i64>,
}

impl EnergyMeter {
    /// What the counter says was used since it was last believed.
    ///
    /// A fall starts a new epoch, in which the counter itself is what was used. A jump beyond what the card can draw is refused, except where a
    /// counter comes back to its lifetime value after a fall: then it is measured from before the fall, less what was booked since. A counter
    /// that stands still is stale, and its next step covers the time it stood: energy is delayed by all of this and never made up. So the sum
    /// over ticks is the counter's own.
    pub fn count(&mut self, at_us: i64, total_mj: Reading<u64>, limit_mw: Option<i64>) -> Growth {
        let missing = |gap| Growth { energy_mj: Reading::Missing(gap), elapsed_us: 0, epoch: None };
        let now = match total_mj {
            Reading::Seen(total_mj) => Mark { at_us, total_mj },
            Reading::Missing(gap) => return missing(gap),
        };
        let Some(last) = self.last else {
            self.last = Some(now);
            return missing(Gap::CollectorDown);
        };
        let elapsed_us = at_us - last.at_us;
        if now.total_mj == last.total_mj && elapsed_us >= STUCK_AFTER_US {
            return missing(Gap::Stale);
        }
        let moved = i64::try_from(i128::from(now.total_mj) - i128::from(last.total_mj)).unwrap_or(i64::MAX);
        let grew = |mj: u64, elapsed_us, epoch| Growth {
            energy_mj: i64::try_from(mj)
                .map_or(Reading::Missing(Gap::Implausible), |mj| Reading::Seen(Millijoules(mj))),
            elapsed_us,
            epoch,
        };
        self.last = Some(now);
        if moved < 0 {
            self.before_drop = Some(last);
            // A counter at nothing tells of the fall and not of what was used: no card runs on nothing.
            return if now.total_mj > 0 && now.total_mj <= most_mj(elapsed_us, limit_mw) {
                grew(now.total_mj, elapsed_us, Some(moved))
            } else {
                Growth { epoch: Some(moved), ..missing(Gap::Implausible) }
            };
        }
        let delta = now.total_mj - last.total_mj;
        if delta <= most_mj(elapsed_us, limit_mw) {
            return grew(delta, elapsed_us, None);
        }
        let back = self.before_drop.take().and_then(|before| {
            let since_drop_us = at_us - before.at_us;
            let really = now.total_mj.checked_sub(before.total_mj)?;
            (really <= most_mj(since_drop_us, limit_mw)).then(|| (really.saturating_sub(last.total_mj), since_drop_us))
        });
        match back {
            Some((rest, since_drop_us)) => grew(rest, since_drop_us, Some(moved)),
            None => Growth { epoch: Some(moved), ..missing(Gap::Implausible) },
        }
    }

    /// When the counter was believed last, and what it said. Unit: microseconds, millijoules.
    pub fn mark(&self) -> Option<(i64, u64)> {
        self.last.map(|last| (last.at_us, last.total_mj))
    }

    /// Takes in looks at the power, by the trapezoid between each two of them.
    ///
    /// Shape: `polls` in order, as (microseconds, milliwatts).
    pub fn look(&mut self, polls: impl Iterator<Item = (i64, i64)>) {
        for (at_us, mw) in polls {
            if let Some((before_us, before_mw)) = self.last_poll.replace((at_us, mw)) {
                let apart_us = at_us - before_us;
                if (1..=FURTHEST_POLLS_US).contains(&apart_us) {
                    self.integrated_us += apart_us;
                    self.integrated += i128::from(before_mw + mw) * i128::from(apart_us);
                }
            }
        }
    }

    /// What those looks say was used since this was last asked: an estimate, for cards without a counter.
    ///
    /// Rounding: down to the millijoule; what is left over goes to the next tick.
    pub fn integrated(&mut self) -> Growth {
        let elapsed_us = std::mem::take(&mut self.integrated_us);
        if elapsed_us == 0 {
            return Growth { energy_mj: Reading::Missing(Gap::CollectorDown), elapsed_us: 0, epoch: None };
        }
        let unit = 2_000_000;
        let energy_mj = i64::try_from(self.integrated / unit)
            .map_or(Reading::Missing(Gap::Implausible), |mj| Reading::Seen(Millijoules(mj)));
        self.integrated %= unit;
        Growth { energy_mj, elapsed_us, epoch: None }
    }
}

/// The most a card can have used: its limit, a quarter more for what regulators let through, and a second more for the counter's own pace.
pub(super) fn most_mj(elapsed_us: i64, limit_mw: Option<i64>) -> u64 {
    let limit = i128::from(limit_mw.filter(|mw| *mw > 0).unwrap_or(MOST_POWER_MW));
    let most = limit * (i128::from(elapsed_us) * 5 / 4 + 1_000_000) / 1_000_000;
    u64::try_from(most.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000;

    fn count(meter: &mut EnergyMeter, at_s: i64, total_mj: u64) -> (Option<i64>, Option<i64>) {
        let growth = meter.count(at_s * S, Reading::Seen(total_mj), Some(400_000));
        (growth.energy_mj.seen().map(|mj| mj.0), growth.epoch)
    }

    #[test]
    fn a_counter_that_begins_again_is_counted_from_nothing() {
        let mut meter = EnergyMeter::default();
        assert_eq!(count(&mut meter, 0, 5_000_000), (None, None));
        assert_eq!(count(&mut meter, 15, 6_500_000), (Some(1_500_000), None));
        // The driver was loaded anew 2 s ago and 100 W have flowed since: 200 J.
        assert_eq!(count(&mut meter, 30, 200_000), (Some(200_000), Some(-6_300_000)));
        assert_eq!(count(&mut meter, 45, 1_700_000), (Some(1_500_000), None));
    }

    #[test]
    fn a_counter_that_comes_back_to_its_lifetime_value_books_what_was_used_and_not_its_life() {
        // The household meter of the report, in its own units: 15,508.51 booked in one step against a real 33.47.
        let mut meter = EnergyMeter::default();
        let life = 15_475_040;
        count(&mut meter, 0, life);
        assert_eq!(count(&mut meter, 10, 0), (None, Some(-15_475_040)));
        assert_eq!(count(&mut meter, 20, life + 33_470), (Some(33_470), Some(15_508_510)));
        // And once more with something counted in between: 1,000 mJ were booked, so 1,000 less are left.
        assert_eq!(count(&mut meter, 30, 1_000), (Some(1_000), Some(1_000 - life as i64 - 33_470)));
        assert_eq!(count(&mut meter, 40, life + 33_470 + 5_000).0, Some(4_000));
    }

    #[test]
    fn a_jump_beyond_what_the_card_can_draw_is_refused_and_counting_goes_on_from_there() {
        let mut meter = EnergyMeter::default();
        count(&mut meter, 0, 1_000);
        // 400 W for 10 s are 4,000 J; with a quarter and a second more 5,400 J (by hand).
        assert_eq!(count(&mut meter, 10, 1_000 + 5_400_001), (None, Some(5_400_001)));
        assert_eq!(count(&mut meter, 20, 1_000 + 5_400_001 + 5_400_000), (Some(5_400_000), None));
    }

    #[test]
    fn a_counter_that_stands_still_is_stale_and_loses_nothing() {
        let mut meter = EnergyMeter::default();
        count(&mut meter, 0, 1_000);
        let still = meter.count(15 * S, Reading::Seen(1_000), Some(400_000));
        assert_eq!(still.energy_mj, Reading::Missing(Gap::Stale));
        // 400 W for 30 s.
        assert_eq!(count(&mut meter, 30, 1_000 + 12_000_000), (Some(12_000_000), None));
    }

    #[test]
    fn power_is_integrated_between_looks_and_not_across_a_silence() {
        let mut meter = EnergyMeter::default();
        let mut integrate = |polls: &[(i64, i64)]| {
            meter.look(polls.iter().copied());
            meter.integrated()
        };
        assert_eq!(integrate(&[(0, 100_000)]).energy_mj, Reading::Missing(Gap::CollectorDown));
        // 100 W to 200 W over 10 s are 1,500 J; then 200 W for 5 s are 1,000 J (by hand).
        let growth = integrate(&[(10 * S, 200_000), (15 * S, 200_000)]);
        assert_eq!((growth.energy_mj, growth.elapsed_us), (Reading::Seen(Millijoules(2_500_000)), 15 * S));
        assert_eq!(integrate(&[(100 * S, 200_000)]).energy_mj, Reading::Missing(Gap::CollectorDown));
    }

    proptest! {
        #[test]
        fn what_is_booked_is_what_the_counter_grew_by(steps in prop::collection::vec((0u64..6_000_000, any::<bool>()), 1..40)) {
            let (mut meter, mut total, mut booked) = (EnergyMeter::default(), 1_000_000u64, 0i64);
            meter.count(0, Reading::Seen(total), Some(400_000));
            for (i, (grew, is_read)) in steps.iter().enumerate() {
                total += grew;
                let reading = if *is_read { Reading::Seen(total) } else { Reading::Missing(Gap::DriverError) };
                let growth = meter.count((i as i64 + 1) * 15 * S, reading, Some(400_000));
                booked += growth.energy_mj.seen().map_or(0, |mj| mj.0);
            }
            let last = meter.count(1_000 * 15 * S, Reading::Seen(total + 1), Some(400_000));
            prop_assert_eq!(booked + last.energy_mj.seen().unwrap().0, (total + 1 - 1_000_000) as i64);
        }

        #[test]
        fn integrating_in_any_cut_gives_the_same_energy(powers in prop::collection::vec(0i64..700_000, 2..30), cut in 0usize..30) {
            let polls: Vec<_> = powers.iter().enumerate().map(|(i, mw)| (i as i64 * 5_000_003, *mw)).collect();
            let (first, rest) = polls.split_at(cut.min(polls.len()));
            let (mut once, mut twice) = (EnergyMeter::default(), EnergyMeter::default());
            once.look(polls.iter().copied());
            let whole = once.integrated().energy_mj.seen().unwrap().0;
            let parts = [first, rest].map(|part| {
                twice.look(part.iter().copied());
                twice.integrated().energy_mj.seen().map_or(0, |mj| mj.0)
            });
            prop_assert_eq!(whole, parts[0] + parts[1]);
        }
    }
}
