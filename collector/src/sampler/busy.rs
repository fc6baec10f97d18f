//! Busy time from the driver's ring of samples.

use crate::probe::RingRead;
use cardhour_domain::{Gap, Percent, Reading};
use std::collections::VecDeque;

/// The longest period a driver averages over (a second on some products), with room. An entry speaks for no longer: what lies before it went by
/// unseen. Unit: microseconds.
const LONGEST_PERIOD_US: i64 = 2_000_000;

/// Busy time along the monotonic clock, as pieces that don't overlap.
///
/// An entry of the ring is the mean since the entry before it, so value × time between stamps loses nothing, whatever the pace of reading.
/// Stamps are on a clock of the driver's own: only differences count, and the newest one is taken for the moment of reading, which is at most a
/// period wrong.
#[derive(Clone, Debug, Default)]
pub struct BusyMeter {
    generation: u32,
    last_stamp_us: Option<u64>,
    last_read_us: Option<i64>,
    covered_until_us: Option<i64>,
    pieces: VecDeque<Piece>,
    gap: Option<Gap>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from_us: i64,
    until_us: i64,
    percent: u32,
}

impl BusyMeter {
    /// Takes in one look at the ring. Rings of two generations of the library are not compared.
    pub fn read(&mut self, generation: u32, ring: &RingRead) {
        if self.generation != generation {
            *self = Self {
                generation,
                pieces: std::mem::take(&mut self.pieces),
                covered_until_us: self.covered_until_us,
                ..Self::default()
            };
        }
        let now_us = ring.at.monotonic_us;
        let entries = match &ring.entries {
            Reading::Seen(entries) => entries,
            Reading::Missing(gap) => return self.gap = Some(*gap),
        };
        let mut is_new = false;
        let newest = entries.iter().map(|entry| entry.stamp_us).max().unwrap_or_default();
        for entry in entries {
            let Some(last) = self.last_stamp_us else {
                // Nothing says since when the first one counts.
                self.last_stamp_us = Some(entry.stamp_us);
                continue;
            };
            if entry.stamp_us <= last {
                continue;
            }
            is_new = true;
            self.last_stamp_us = Some(entry.stamp_us);
            let until_us = now_us - us(newest - entry.stamp_us);
            let length_us = us(entry.stamp_us - last).min(LONGEST_PERIOD_US);
            if entry.percent > 100 {
                self.gap = Some(Gap::Implausible);
                self.covered_until_us = Some(until_us);
            } else {
                self.cover(until_us - length_us, until_us, entry.percent);
            }
        }
        if !is_new {
            // Drivers stop filling the ring of an idle card. Only a second word for idle makes it so: else it is a ring that stands still.
            match (ring.now_percent, self.last_read_us) {
                (_, None) => {}
                (Reading::Seen(0), Some(since_us)) => self.cover(since_us, now_us, 0),
                (Reading::Seen(_), Some(_)) => self.gap = Some(Gap::Stale),
                (Reading::Missing(gap), Some(_)) => self.gap = Some(gap),
            }
        }
        self.last_read_us = Some(now_us);
    }

    /// How busy it was until `end_us`, since the last time this was asked; missing when less than half of that was seen.
    ///
    /// What was read beyond `end_us` is kept for the next time, cut exactly there.
    pub fn take(&mut self, start_us: i64, end_us: i64) -> Reading<Percent> {
        let (mut covered_us, mut busy) = (0, 0);
        while let Some(piece) = self.pieces.front_mut() {
            let until_us = piece.until_us.min(end_us);
            if piece.from_us >= until_us {
                break;
            }
            covered_us += until_us - piece.from_us;
            busy += i64::from(piece.percent) * (until_us - piece.from_us);
            piece.from_us = until_us;
            if piece.from_us < piece.until_us {
                break;
            }
            self.pieces.pop_front();
        }
        let gap = self.gap.take();
        if covered_us == 0 || covered_us * 2 < end_us - start_us {
            return Reading::Missing(gap.unwrap_or(Gap::CollectorDown));
        }
        // To the nearest thousandth of a percent.
        let thousandths = (busy * 1000 + covered_us / 2) / covered_us;
        i32::try_from(thousandths)
            .ok()
            .and_then(Percent::from_thousandths)
            .map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
    }

    fn cover(&mut self, from_us: i64, until_us: i64, percent: u32) {
        let from_us = self.covered_until_us.map_or(from_us, |covered| covered.max(from_us));
        if from_us < until_us {
            self.pieces.push_back(Piece { from_us, until_us, percent });
        }
        self.covered_until_us = Some(self.covered_until_us.map_or(until_us, |covered| covered.max(until_us)));
    }
}

fn us(length: u64) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Moment, RingEntry};
    use cardhour_domain::Timestamp;
    use proptest::prelude::*;

    const S: i64 = 1_000_000;

    /// Reads a ring at `at_us`: stamps are the monotonic clock and an origin of the driver's own.
    fn ring(at_us: i64, entries: &[(i64, u32)], now_percent: u32) -> RingRead {
        RingRead {
            at: Moment { monotonic_us: at_us, wall: Timestamp::from_unix_ms(at_us / 1000) },
            entries: Reading::Seen(
                entries
                    .iter()
                    .map(|(at, percent)| RingEntry { stamp_us: (at + 77 * S) as u64, percent: *percent })
                    .collect(),
            ),
            now_percent: Reading::Seen(now_percent),
        }
    }

    #[test]
    fn a_burst_between_two_ticks_is_cut_exactly_at_the_tick() {
        let mut meter = BusyMeter::default();
        meter.read(1, &ring(0, &[(0, 0)], 0));
        let steps: Vec<_> = (1..=20).map(|i| (i * S, if (15..=16).contains(&i) { 80 } else { 0 })).collect();
        meter.read(1, &ring(20 * S, &steps, 0));
        // 80 % from 14 s to 16 s: one second of it lies before the tick at 15 s, so 80/15 % and then 80/5 % (by hand).
        assert_eq!(meter.take(0, 15 * S), Reading::Seen(Percent::from_thousandths(5_333).unwrap()));
        assert_eq!(meter.take(15 * S, 20 * S), Reading::Seen(Percent::from_thousandths(16_000).unwrap()));
    }

    #[test]
    fn an_empty_ring_is_idle_only_where_something_else_says_so() {
        let mut meter = BusyMeter::default();
        meter.read(1, &ring(0, &[], 0));
        meter.read(1, &ring(5 * S, &[], 0));
        assert_eq!(meter.take(0, 5 * S), Reading::Seen(Percent::from_thousandths(0).unwrap()));
        meter.read(1, &ring(10 * S, &[], 60));
        assert_eq!(meter.take(5 * S, 10 * S), Reading::Missing(Gap::Stale));
    }

    #[test]
    fn an_entry_after_a_silence_speaks_for_its_own_period_alone() {
        let mut meter = BusyMeter::default();
        meter.read(1, &ring(0, &[(0, 0)], 0));
        meter.read(1, &ring(60 * S, &[(60 * S, 100)], 100));
        assert_eq!(meter.take(0, 60 * S), Reading::Missing(Gap::CollectorDown));
    }

    #[test]
    fn garbage_above_a_hundred_is_no_reading() {
        let mut meter = BusyMeter::default();
        meter.read(1, &ring(0, &[(0, 0)], 0));
        meter.read(1, &ring(S, &[(S, 4_000_000)], 0));
        assert_eq!(meter.take(0, S), Reading::Missing(Gap::Implausible));
    }

    #[test]
    fn stamps_of_two_generations_are_never_compared() {
        let mut meter = BusyMeter::default();
        meter.read(1, &ring(0, &[(0, 0)], 0));
        // A clock that jumped by 1.5 s with the driver: the first stamp of the new ring is a start, not a length.
        meter.read(2, &ring(5 * S, &[(6_500_000, 100)], 100));
        assert_eq!(meter.take(0, 5 * S), Reading::Missing(Gap::CollectorDown));
    }

    proptest! {
        #[test]
        fn cutting_a_ring_anywhere_keeps_its_busy_time(values in prop::collection::vec(0u32..=100, 8..120), reads in 1usize..8, tick in 3usize..20) {
            let period = 139_000;
            let mut meter = BusyMeter::default();
            meter.read(1, &ring(0, &[(0, 0)], 0));
            let entries: Vec<_> = values.iter().enumerate().map(|(i, v)| ((i as i64 + 1) * period, *v)).collect();
            for chunk in entries.chunks(entries.len().div_ceil(reads)) {
                meter.read(1, &ring(chunk.last().unwrap().0, chunk, 0));
            }
            let (end, step) = (values.len() as i64 * period, tick as i64 * 50_001);
            let (mut at, mut busy) = (0, 0.0);
            while at < end {
                let next = (at + step).min(end);
                busy += f64::from(meter.take(at, next).seen().unwrap().thousandths()) * (next - at) as f64;
                at = next;
            }
            let truth: f64 = values.iter().map(|v| f64::from(*v) * 1000.0 * period as f64).sum();
            // Each tick rounds to a thousandth of a percent.
            prop_assert!((busy - truth).abs() <= 0.5 * end as f64 + 1.0, "{busy} {truth}");
        }
    }
}
