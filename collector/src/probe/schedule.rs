//! When to look again.

use crate::probe::Moment;
use cardhour_domain::Timestamp;
use std::time::Duration;

/// The driver's ring wraps after about ten seconds; read at this pace, one late read loses nothing. Unit: microseconds.
const RING_EVERY_US: i64 = 5_000_000;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing yet.
    Nothing,
    /// The rings alone.
    Rings,
    /// Everything: a whole multiple of the step has come.
    Tick(Timestamp),
}

/// Ticks on whole multiples of the step by the wall clock, rings by the monotonic one.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    step_ms: i64,
    last_tick: Option<Timestamp>,
    last_ring_us: Option<i64>,
}

impl Schedule {
    /// Unit: milliseconds, above zero.
    pub fn new(step_ms: i64) -> Self {
        assert!(step_ms > 0, "a tick has a length");
        Self { step_ms, last_tick: None, last_ring_us: None }
    }

    /// What is due now; it counts as done from here on. The first tick is the first whole multiple after the start.
    pub fn due(&mut self, now: Moment) -> Due {
        let tick = self.tick_of(now.wall);
        match self.last_tick {
            None => {
                self.last_tick = Some(tick);
                self.last_ring_us = Some(now.monotonic_us);
                return Due::Rings;
            }
            // A clock that was set back starts its ticks anew from where it is.
            Some(last) if tick != last => {
                self.last_tick = Some(tick);
                self.last_ring_us = Some(now.monotonic_us);
                return Due::Tick(tick);
            }
            Some(_) => {}
        }
        if self.last_ring_us.is_none_or(|last| now.monotonic_us - last >= RING_EVERY_US) {
            self.last_ring_us = Some(now.monotonic_us);
            return Due::Rings;
        }
        Due::Nothing
    }

    /// How long until something is due.
    pub fn wait(&self, now: Moment) -> Duration {
        let to_tick_us = (self.tick_of(now.wall).unix_ms() + self.step_ms - now.wall.unix_ms()) * 1000;
        let to_ring_us = self.last_ring_us.map_or(0, |last| last + RING_EVERY_US - now.monotonic_us);
        Duration::from_micros(u64::try_from(to_tick_us.min(to_ring_us).max(0)).unwrap_or(0))
    }

    fn tick_of(&self, wall: Timestamp) -> Timestamp {
        Timestamp::from_unix_ms(wall.unix_ms().div_euclid(self.step_ms) * self.step_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_whole_multiples_and_rings_never_wait_for_eight_seconds() {
        for step_ms in [5_000, 7_000, 15_000, 60_000] {
            let mut schedule = Schedule::new(step_ms);
            let (mut us, mut ticks, mut last_ring_us) = (0, Vec::new(), None);
            while us < 300_000_000 {
                let now = Moment { monotonic_us: us, wall: Timestamp::from_unix_ms(1_000_003 + us / 1000) };
                let due = schedule.due(now);
                if let Due::Tick(tick) = due {
                    ticks.push(tick.unix_ms());
                }
                if due != Due::Nothing {
                    assert!(us - last_ring_us.unwrap_or(us) <= 8_000_000);
                    last_ring_us = Some(us);
                }
                us += i64::try_from(schedule.wait(now).as_micros()).unwrap().max(1);
            }
            let first = (1_000_003 / step_ms + 1) * step_ms;
            let expected: Vec<_> = (0..).map(|i| first + i * step_ms).take_while(|tick| *tick < 1_300_003).collect();
            assert_eq!(ticks, expected);
        }
    }
}
