//! Counters of bytes.

use cardhour_domain::{Gap, Reading};

/// A counter that only grows, and that may begin again.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrafficMeter {
    last: Option<u64>,
}

impl TrafficMeter {
    /// What it grew by since it was last read; missing at the first read, and where it fell: how often it went round nobody knows.
    pub fn grow(&mut self, total: Reading<u64>) -> Reading<u64> {
        let now = match total {
            Reading::Seen(now) => now,
            Reading::Missing(gap) => return Reading::Missing(gap),
        };
        match self.last.replace(now) {
            None => Reading::Missing(Gap::CollectorDown),
            Some(last) => now.checked_sub(last).map_or(Reading::Missing(Gap::Implausible), Reading::Seen),
        }
    }
}

/// Both ways together, as bytes; the gap of the first that has one.
pub fn both(sent: Reading<u64>, received: Reading<u64>, unit_bytes: u64) -> Reading<i64> {
    match (sent, received) {
        (Reading::Seen(sent), Reading::Seen(received)) => sent
            .checked_add(received)
            .and_then(|both| both.checked_mul(unit_bytes))
            .and_then(|bytes| i64::try_from(bytes).ok())
            .map_or(Reading::Missing(Gap::Implausible), Reading::Seen),
        (Reading::Missing(gap), _) | (_, Reading::Missing(gap)) => Reading::Missing(gap),
    }
}

/// Two rates over a stretch, as bytes moved.
pub fn moved(sent_per_s: Reading<i64>, received_per_s: Reading<i64>, elapsed_us: i64) -> Reading<i64> {
    match (sent_per_s, received_per_s) {
        (Reading::Seen(sent), Reading::Seen(received)) => {
            let bytes = (i128::from(sent) + i128::from(received)) * i128::from(elapsed_us) / 1_000_000;
            i64::try_from(bytes).map_or(Reading::Missing(Gap::Implausible), Reading::Seen)
        }
        (Reading::Missing(gap), _) | (_, Reading::Missing(gap)) => Reading::Missing(gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_fell_tells_nothing_of_that_tick_and_all_of_the_next() {
        let mut meter = TrafficMeter::default();
        assert_eq!(meter.grow(Reading::Seen(10)), Reading::Missing(Gap::CollectorDown));
        assert_eq!(meter.grow(Reading::Missing(Gap::DriverError)), Reading::Missing(Gap::DriverError));
        assert_eq!(meter.grow(Reading::Seen(25)), Reading::Seen(15));
        assert_eq!(meter.grow(Reading::Seen(5)), Reading::Missing(Gap::Implausible));
        assert_eq!(meter.grow(Reading::Seen(8)), Reading::Seen(3));
    }

    #[test]
    fn both_ways_are_added_and_one_that_is_missing_is_not_nothing() {
        assert_eq!(both(Reading::Seen(2), Reading::Seen(3), 1024), Reading::Seen(5120));
        assert_eq!(both(Reading::Seen(2), Reading::Missing(Gap::Stale), 1024), Reading::Missing(Gap::Stale));
        // 1 MiB/s and 3 MiB/s over 2.5 s: 10 MiB.
        assert_eq!(moved(Reading::Seen(1 << 20), Reading::Seen(3 << 20), 2_500_000), Reading::Seen(10 << 20));
    }
}
