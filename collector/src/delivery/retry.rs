//! When to try again.

use super::Trouble;
use cardhour_domain::Timestamp;

/// The first wait, doubled with each failure up to the longest. Unit: milliseconds.
const FIRST_MS: i64 = 1_000;
const LONGEST_MS: i64 = 300_000;

/// Waits for what somebody has to mend. Unit: milliseconds.
const SLOW_MS: i64 = 300_000;

/// What a service may ask for at most: it could be wrong. Unit: milliseconds.
const LONGEST_ASKED_MS: i64 = 3_600_000;

/// Whether and how long to wait.
#[derive(Debug, Default)]
pub(super) struct Retry {
    failures: u32,
    /// Since when, and how long.
    waiting: Option<(Timestamp, i64)>,
}

impl Retry {
    /// Whether it is time. A clock that was set back makes it time: how long it has been isn't known.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.waiting.is_none_or(|(since, wait_ms)| now < since || now.ms_since(since) >= wait_ms)
    }

    pub(super) fn next_at(&self) -> Option<Timestamp> {
        self.waiting.and_then(|(since, wait_ms)| since.checked_add_ms(wait_ms))
    }

    pub(super) fn well(&mut self) {
        *self = Self::default();
    }

    /// Counts a failure; [`Self::wait`] says what it was.
    pub(super) fn failed(&mut self, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        self.waiting = Some((now, 0));
    }

    /// Waits for as long as `trouble` asks for, but not shorter than before. `random`: from all numbers alike.
    pub(super) fn wait(&mut self, trouble: &Trouble, random: u32) {
        let wait_ms = wait_ms(trouble, self.failures, random);
        if let Some((_, waiting_ms)) = &mut self.waiting {
            *waiting_ms = wait_ms.max(*waiting_ms);
        }
    }
}

/// How long to wait after so many failures in a row. Unit: milliseconds.
fn wait_ms(trouble: &Trouble, failures: u32, random: u32) -> i64 {
    let part = |of_ms: i64| of_ms * i64::from(random) / i64::from(u32::MAX);
    match trouble {
        // Never before the time that was asked for: a fleet that all came back at once is why it was asked.
        Trouble::Busy { retry_after: Some(after), .. } => {
            let asked_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX).min(LONGEST_ASKED_MS);
            asked_ms + part(asked_ms / 4)
        }
        Trouble::Unauthorized { .. }
        | Trouble::NotTheService { .. }
        | Trouble::Token { .. }
        | Trouble::Bucket { .. }
        | Trouble::Credentials(_) => SLOW_MS + part(SLOW_MS / 4),
        Trouble::Busy { .. } | Trouble::Unreachable { .. } | Trouble::Folder { .. } | Trouble::Spool(_) => {
            let doubled_ms = FIRST_MS << failures.saturating_sub(1).min(20);
            let longest_ms = doubled_ms.min(LONGEST_MS);
            longest_ms / 2 + part(longest_ms / 2)
        }
    }
}

/// Whether no other segment would fare better.
pub(super) const fn is_of_all(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Unauthorized { .. }
        | Trouble::NotTheService { .. }
        | Trouble::Token { .. }
        | Trouble::Bucket { .. }
        | Trouble::Credentials(_)
        | Trouble::Unreachable { .. }
        | Trouble::Folder { .. } => true,
        Trouble::Busy { retry_after, .. } => retry_after.is_some(),
        Trouble::Spool(_) => false,
    }
}

/// Any number; always the same where the system has no randomness: then nodes come back together.
pub(super) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn busy(retry_after_s: Option<u64>) -> Trouble {
        Trouble::Busy {
            who: "service",
            status: 503,
            reason: String::new(),
            retry_after: retry_after_s.map(Duration::from_secs),
        }
    }

    #[test]
    fn waits_double_from_half_a_second_to_five_minutes() {
        let waits = |random| [1, 2, 3, 9, 10, 40, u32::MAX].map(|failures| wait_ms(&busy(None), failures, random));
        // 2⁰, 2¹, 2², 2⁸ = 256 seconds, then 300; half of that is the least.
        assert_eq!(waits(u32::MAX), [1_000, 2_000, 4_000, 256_000, 300_000, 300_000, 300_000]);
        assert_eq!(waits(0), [500, 1_000, 2_000, 128_000, 150_000, 150_000, 150_000]);
    }

    #[test]
    fn a_service_is_not_asked_before_it_wants_to_be_and_not_later_than_an_hour_and_a_quarter() {
        assert_eq!(wait_ms(&busy(Some(7)), 9, 0), 7_000);
        assert_eq!(wait_ms(&busy(Some(7)), 9, u32::MAX), 8_750);
        assert_eq!(wait_ms(&busy(Some(u64::MAX)), 1, u32::MAX), 4_500_000);
    }

    #[test]
    fn a_clock_that_steps_back_makes_it_time() {
        let mut retry = Retry::default();
        let at = Timestamp::from_unix_s;
        assert!(retry.is_due(at(1000)));
        retry.failed(at(1000));
        retry.wait(&busy(Some(60)), 0);
        assert!(!retry.is_due(at(1059)));
        assert!(retry.is_due(at(1060)));
        assert!(retry.is_due(at(900)));
        retry.well();
        assert_eq!(retry.next_at(), None);
    }
}
