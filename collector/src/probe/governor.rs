//! Keeps the probe under its budget.

use std::time::Duration;

/// Watches how much of a core the probe's own thread takes, and spares the costly calls when that is too much.
///
/// Spared are the performance monitor and the process lists, never the ring of busy time: what that loses can't be had again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Governor {
    last: Option<(i64, Duration)>,
    pace: Pace,
    calm_looks: u8,
}

/// How often costly calls are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Each tick.
    #[default]
    Full,
    /// Every second tick.
    Half,
}

/// Above this share of a core calls are spared. The budget is ten per mille; three are left for the rest of the collector. Unit: per mille.
const TOO_MUCH_PER_MILLE: u128 = 7;

/// So many looks in a row under half of that, and the full pace is tried again.
const CALM_LOOKS: u8 = 20;

/// A look at less time than this says nothing. Unit: microseconds.
const SHORTEST_LOOK_US: i64 = 10_000_000;

impl Governor {
    /// Takes in the thread's processor time, and says the pace from here on. Called once a tick.
    pub fn look(&mut self, now_us: i64, cpu: Option<Duration>) -> Pace {
        let Some(cpu) = cpu else { return self.pace };
        let Some((then_us, then)) = self.last else {
            self.last = Some((now_us, cpu));
            return self.pace;
        };
        let elapsed_us = now_us - then_us;
        if elapsed_us < SHORTEST_LOOK_US {
            return self.pace;
        }
        self.last = Some((now_us, cpu));
        let per_mille =
            |limit: u128| cpu.saturating_sub(then).as_micros() * 1000 > limit * elapsed_us.unsigned_abs() as u128;
        if per_mille(TOO_MUCH_PER_MILLE) {
            (self.pace, self.calm_looks) = (Pace::Half, 0);
        } else if per_mille(TOO_MUCH_PER_MILLE / 2) {
            self.calm_looks = 0;
        } else {
            self.calm_looks = self.calm_looks.saturating_add(1);
            if self.calm_looks >= CALM_LOOKS {
                self.pace = Pace::Full;
            }
        }
        self.pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_over_seven_per_mille_of_a_core_is_slowed_until_it_has_long_been_calm() {
        let (mut governor, mut cpu_us) = (Governor::default(), 0);
        let mut look = |tick: i64, used_us: u64| {
            cpu_us += used_us;
            governor.look(tick * 15_000_000, Some(Duration::from_micros(cpu_us)))
        };
        assert_eq!(look(0, 500_000), Pace::Full);
        // 7 ‰ of 15 s are 105 ms.
        assert_eq!(look(1, 105_000), Pace::Full);
        assert_eq!(look(2, 105_001), Pace::Half);
        for tick in 3..22 {
            assert_eq!(look(tick, 40_000), Pace::Half);
        }
        assert_eq!(look(22, 40_000), Pace::Full);
    }
}
