//! Lengths of time as exports write them: `10-13:27:06`, `22:53.824`, `66.0`, `UNLIMITED`.

use crate::import::time::{Unit, is_absent, scaled_ms};

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Unit: milliseconds, zero or more.
    Ms(i64),
    /// No limit: Slurm's `UNLIMITED` and `Partition_Limit`.
    Unlimited,
}

impl Length {
    /// Milliseconds; none where there is no limit.
    pub const fn ms(self) -> Option<i64> {
        match self {
            Self::Ms(ms) => Some(ms),
            Self::Unlimited => None,
        }
    }
}

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthError {
    /// Not a length at all.
    #[error("{0:?} is not a length of time such as 3600, 66.0, 01:00:00 or 2-00:00:00")]
    Unreadable(String),
    /// Below zero.
    #[error("{0:?} is a length of time below zero")]
    Negative(String),
}

/// Reads a length: a number counts `unit`; with colons or a day it is Slurm's `[D-]HH:MM:SS`, `MM:SS.mmm`, `D-HH`.
///
/// None for the words that mean that there is none. Errors: anything else.
pub fn read_length(text: &str, unit: Unit) -> Result<Option<Length>, LengthError> {
    let unreadable = || LengthError::Unreadable(text.to_owned());
    if text.starts_with('-') && text.len() > 1 {
        return Err(LengthError::Negative(text.to_owned()));
    }
    if text.contains(':') || text.contains('-') && text.len() > 1 && text.as_bytes()[0].is_ascii_digit() {
        return clock_ms(text).map(|ms| Some(Length::Ms(ms))).ok_or_else(unreadable);
    }
    if let Some(ms) = scaled_ms(text, unit) {
        return Ok(Some(Length::Ms(ms)));
    }
    if text.eq_ignore_ascii_case("UNLIMITED") || text.eq_ignore_ascii_case("Partition_Limit") {
        return Ok(Some(Length::Unlimited));
    }
    if is_absent(text) || text.eq_ignore_ascii_case("INVALID") { Ok(None) } else { Err(unreadable()) }
}

/// `[D-]HH:MM:SS[.mmm]`, `MM:SS[.mmm]`, `D-HH`, `D-HH:MM`. Unit of the result: milliseconds.
fn clock_ms(text: &str) -> Option<i64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(whole(days)?), clock),
        None => (None, text),
    };
    let mut parts = clock.split(':');
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    if parts.next().is_some() {
        return None;
    }
    let (hours, minutes, seconds) = match (days.is_some(), second, third) {
        (_, Some(minutes), Some(seconds)) => (whole(first)?, whole(minutes)?, scaled_ms(seconds, Unit::Seconds)?),
        (true, Some(minutes), None) => (whole(first)?, whole(minutes)?, 0),
        (true, None, None) => (whole(first)?, 0, 0),
        (false, Some(seconds), None) => (0, whole(first)?, scaled_ms(seconds, Unit::Seconds)?),
        (_, None, _) => return None,
    };
    let hours = days.unwrap_or(0).checked_mul(24)?.checked_add(hours)?;
    hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60_000)?.checked_add(seconds).filter(|_| seconds >= 0)
}

fn whole(text: &str) -> Option<i64> {
    text.bytes().all(|c| c.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, ms: i64) {
        assert_eq!(read_length(text, Unit::Seconds), Ok(Some(Length::Ms(ms))), "{text}");
    }

    #[test]
    fn a_length_is_read_in_every_layout_that_slurm_prints() {
        check("10-13:27:06", (10 * 86_400 + 13 * 3_600 + 27 * 60 + 6) * 1000);
        check("00:00:24", 24_000);
        check("706-08:54:56", (706 * 86_400 + 8 * 3_600 + 54 * 60 + 56) * 1000);
        check("22:53.824", 22 * 60_000 + 53_824);
        check("1-06", 30 * 3_600_000);
        check("1-06:30", (30 * 60 + 30) * 60_000);
        check("66.0", 66_000);
        check("113062", 113_062_000);
        assert_eq!(read_length("1.5", Unit::Hours), Ok(Some(Length::Ms(5_400_000))));
    }

    #[test]
    fn s12_an_unlimited_length_is_a_value_and_no_error() {
        assert_eq!(read_length("UNLIMITED", Unit::Minutes), Ok(Some(Length::Unlimited)));
        assert_eq!(read_length("Partition_Limit", Unit::Minutes), Ok(Some(Length::Unlimited)));
        assert_eq!(read_length("Unknown", Unit::Seconds), Ok(None));
    }

    #[test]
    fn a_length_below_zero_or_of_no_number_is_an_error() {
        assert!(matches!(read_length("-5", Unit::Seconds), Err(LengthError::Negative(_))));
        for text in ["1:2:3:4", "1-", "a-00:00:01", "00:-1:00", ":", "99999999999999999-00:00:00", "12 s", "1--2"] {
            assert!(read_length(text, Unit::Seconds).is_err(), "{text}");
        }
    }
}
