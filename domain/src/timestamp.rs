//! An instant, in UTC.

use chrono::{DateTime, SecondsFormat, Utc};
use std::fmt;

/// The length of a usage bucket, a quarter hour. Unit: milliseconds.
///
/// Every zone's offset from UTC is a multiple of it, so local midnights and price windows fall on bucket
/// borders (LED-7).
pub const BUCKET_MS: i64 = 15 * 60 * 1000;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// An instant. Unit: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no instant.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is not an RFC 3339 time such as 2026-03-01T00:00:00Z")]
pub struct TimestampError {
    /// What was read.
    pub text: String,
}

impl Timestamp {
    /// From milliseconds since the epoch.
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// From seconds since the epoch.
    pub const fn from_unix_s(s: i64) -> Self {
        Self(s * 1000)
    }

    /// Milliseconds since the epoch.
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// Microseconds since the epoch, as Delta Lake stores instants.
    pub const fn unix_us(self) -> i64 {
        self.0 * 1000
    }

    /// From microseconds since the epoch; what is below a millisecond is cut off.
    pub const fn from_unix_us(us: i64) -> Self {
        Self(us.div_euclid(1000))
    }

    /// The start of the bucket that holds this instant.
    pub const fn bucket_start(self) -> Self {
        Self(self.0.div_euclid(BUCKET_MS) * BUCKET_MS)
    }

    /// Days since the epoch, in UTC: the partition of the tables.
    pub const fn utc_day(self) -> i32 {
        self.0.div_euclid(DAY_MS) as i32
    }

    /// Midnight UTC of a day since the epoch.
    pub const fn from_utc_day(day: i32) -> Self {
        Self(day as i64 * DAY_MS)
    }

    /// This instant and `ms` milliseconds; none when it leaves the range of 64 bits.
    pub fn checked_add_ms(self, ms: i64) -> Option<Self> {
        self.0.checked_add(ms).map(Self)
    }

    /// Milliseconds from `earlier` to this instant, below zero when it is later.
    pub const fn ms_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// As `chrono` has it; none outside of chrono's range (years ±262,000).
    pub fn to_utc(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.0)
    }

    /// Reads RFC 3339 with an offset. Errors: anything else.
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimestampError> {
        DateTime::parse_from_rfc3339(text)
            .map(|t| Self(t.timestamp_millis()))
            .map_err(|_| TimestampError { text: text.to_owned() })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_utc() {
            Some(t) => f.write_str(&t.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            None => write!(f, "{} ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_before_the_epoch_starts_before_its_instants() {
        assert_eq!(Timestamp::from_unix_ms(-1).bucket_start(), Timestamp::from_unix_ms(-BUCKET_MS));
        assert_eq!(Timestamp::from_unix_ms(-1).utc_day(), -1);
    }

    #[test]
    fn an_instant_is_written_as_it_is_read() {
        for text in ["2026-03-01T00:00:00Z", "2017-10-09T07:01:55.250Z"] {
            assert_eq!(Timestamp::parse_rfc3339(text).unwrap().to_string(), text);
        }
        assert!(Timestamp::parse_rfc3339("2026-03-01 00:00").is_err());
    }
}
