//! An instant, in UTC.

use chrono::{DateTime, SecondsFormat, Utc};
use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroI64;

/// The length of a usage bucket, a quarter hour. Unit: milliseconds.
///
/// Every zone's offset from UTC is a multiple of it, so local midnights and price windows fall on bucket
/// borders (LED-7).
pub const BUCKET_MS: i64 = 15 * 60 * 1000;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// An instant. Unit: milliseconds since 1970-01-01T00:00:00Z.
///
/// One that may be absent takes no more room than one that is there: an attempt has four of them, and a site millions of attempts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp(NonZeroI64);

/// What is never an instant, and stands for its absence.
const ABSENT: i64 = i64::MIN;

/// A text that is no instant.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{text:?} is not an RFC 3339 time such as 2026-03-01T00:00:00Z")]
pub struct TimestampError {
    /// What was read.
    pub text: String,
}

impl Timestamp {
    /// From milliseconds since the epoch. The very first of 64 bits is taken for the one after it.
    pub const fn from_unix_ms(ms: i64) -> Self {
        match NonZeroI64::new(ms ^ ABSENT) {
            Some(ms) => Self(ms),
            None => Self::from_unix_ms(ABSENT + 1),
        }
    }

    /// From seconds since the epoch.
    pub const fn from_unix_s(s: i64) -> Self {
        Self::from_unix_ms(s * 1000)
    }

    /// Milliseconds since the epoch.
    pub const fn unix_ms(self) -> i64 {
        self.0.get() ^ ABSENT
    }

    /// Microseconds since the epoch, as Delta Lake stores instants.
    pub const fn unix_us(self) -> i64 {
        self.unix_ms() * 1000
    }

    /// From microseconds since the epoch; what is below a millisecond is cut off.
    pub const fn from_unix_us(us: i64) -> Self {
        Self::from_unix_ms(us.div_euclid(1000))
    }

    /// The start of the bucket that holds this instant.
    pub const fn bucket_start(self) -> Self {
        Self::from_unix_ms(self.unix_ms().div_euclid(BUCKET_MS) * BUCKET_MS)
    }

    /// Days since the epoch, in UTC: the partition of the tables.
    pub const fn utc_day(self) -> i32 {
        self.unix_ms().div_euclid(DAY_MS) as i32
    }

    /// Midnight UTC of a day since the epoch.
    pub const fn from_utc_day(day: i32) -> Self {
        Self::from_unix_ms(day as i64 * DAY_MS)
    }

    /// This instant and `ms` milliseconds; none when it leaves the range of 64 bits.
    pub fn checked_add_ms(self, ms: i64) -> Option<Self> {
        self.unix_ms().checked_add(ms).map(Self::from_unix_ms)
    }

    /// Milliseconds from `earlier` to this instant, below zero when it is later.
    pub const fn ms_since(self, earlier: Self) -> i64 {
        self.unix_ms() - earlier.unix_ms()
    }

    /// As `chrono` has it; none outside of chrono's range (years ±262,000).
    pub fn to_utc(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_millis(self.unix_ms())
    }

    /// Reads RFC 3339 with an offset. Errors: anything else.
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimestampError> {
        DateTime::parse_from_rfc3339(text)
            .map(|t| Self::from_unix_ms(t.timestamp_millis()))
            .map_err(|_| TimestampError { text: text.to_owned() })
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        self.unix_ms().cmp(&other.unix_ms())
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timestamp").field(&self.unix_ms()).finish()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_utc() {
            Some(t) => f.write_str(&t.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            None => write!(f, "{} ms", self.unix_ms()),
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
    fn instants_are_ordered_as_their_milliseconds_and_an_absent_one_takes_no_room() {
        let ms = [i64::MIN + 1, -1, 0, 1, i64::MAX];
        let instants = ms.map(Timestamp::from_unix_ms);
        assert!(instants.is_sorted());
        assert_eq!(instants.map(Timestamp::unix_ms), ms);
        assert_eq!(Timestamp::from_unix_ms(i64::MIN).unix_ms(), i64::MIN + 1);
        assert_eq!(format!("{:?}", Timestamp::from_unix_ms(5)), "Timestamp(5)");
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
    }

    #[test]
    fn an_instant_is_written_as_it_is_read() {
        for text in ["2026-03-01T00:00:00Z", "2017-10-09T07:01:55.250Z"] {
            assert_eq!(Timestamp::parse_rfc3339(text).unwrap().to_string(), text);
        }
        assert!(Timestamp::parse_rfc3339("2026-03-01 00:00").is_err());
    }
}
