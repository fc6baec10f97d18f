//! Times as exports write them.
//!
//! `2016-12-22T07:15:12`, `2017-10-09 07:01:55.250`, `2025-05-02T14:09:52+02:00`, a date alone, or a number counted
//! from an epoch. The digits are read by hand: a format string costs more than the rest of a row.

use cardhour_domain::{Timestamp, Zone};
use chrono::{NaiveDate, NaiveDateTime, TimeDelta};

/// A time as it was told: one instant, or two where the clock of its zone was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// This instant.
    Once(Timestamp),
    /// Either of these, the earlier first (LED-9).
    Twice(Timestamp, Timestamp),
}

impl Moment {
    /// The only instant, or the earlier of two.
    pub const fn earlier(self) -> Timestamp {
        match self {
            Self::Once(at) | Self::Twice(at, _) => at,
        }
    }

    /// The only instant, or the later of two.
    pub const fn later(self) -> Timestamp {
        match self {
            Self::Once(at) | Self::Twice(_, at) => at,
        }
    }
}

/// What a number of time counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Hours.
    Hours,
    /// Minutes.
    Minutes,
    /// Seconds.
    #[default]
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// By its name in a map file: `h`, `min`, `s`, `ms`, `us` or `ns`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "h" => Self::Hours,
            "min" => Self::Minutes,
            "s" => Self::Seconds,
            "ms" => Self::Milliseconds,
            "us" => Self::Microseconds,
            "ns" => Self::Nanoseconds,
            _ => return None,
        })
    }

    /// Unit: nanoseconds.
    const fn ns(self) -> i128 {
        match self {
            Self::Hours => 3_600_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Milliseconds => 1_000_000,
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
        }
    }
}

/// How one column writes its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeReader {
    /// Of times that carry no offset.
    pub zone: Zone,
    /// Of numbers.
    pub unit: Unit,
    /// From where numbers count.
    pub epoch: Timestamp,
    /// Whether the number 0 means that there is none, as in Slurm.
    pub zero_is_absent: bool,
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time such as 2026-03-01T00:00:00Z, 2026-03-01 00:00:00 or a count of seconds")]
pub struct TimeError(pub String);

impl TimeReader {
    /// For texts of `zone` and numbers of seconds since 1970.
    pub const fn in_zone(zone: Zone) -> Self {
        Self { zone, unit: Unit::Seconds, epoch: Timestamp::from_unix_ms(0), zero_is_absent: false }
    }

    /// Reads a time; none for the words that mean that there is none. What is below a millisecond is cut off.
    ///
    /// Errors: anything else.
    pub fn read(&self, text: &str) -> Result<Option<Moment>, TimeError> {
        let bytes = text.as_bytes();
        if bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' {
            return self.calendar(bytes).map(Some).ok_or_else(|| TimeError(text.to_owned()));
        }
        if is_absent(text) {
            return Ok(None);
        }
        let ms = scaled_ms(text, self.unit).ok_or_else(|| TimeError(text.to_owned()))?;
        if ms == 0 && self.zero_is_absent {
            return Ok(None);
        }
        let at = self.epoch.checked_add_ms(ms).filter(|at| at.to_utc().is_some());
        at.map(|at| Some(Moment::Once(at))).ok_or_else(|| TimeError(text.to_owned()))
    }

    fn calendar(&self, b: &[u8]) -> Option<Moment> {
        let date = NaiveDate::from_ymd_opt(
            i32::try_from(digits(&b[0..4])?).ok()?,
            u32::try_from(digits(&b[5..7])?).ok()?,
            u32::try_from(digits(&b[8..10])?).ok()?,
        )?;
        if b.len() == 10 {
            return self.place(date, 0, None);
        }
        if !matches!(b[10], b'T' | b't' | b' ') || b.len() < 16 || b[13] != b':' {
            return None;
        }
        let (hour, minute) = (digits(&b[11..13])?, digits(&b[14..16])?);
        let mut rest = &b[16..];
        let mut second = 0;
        let mut ms = 0;
        if let [b':', tens, units, tail @ ..] = rest {
            second = digits(&[*tens, *units])?;
            rest = tail;
            if let [b'.' | b',', tail @ ..] = rest {
                let length = tail.iter().take_while(|c| c.is_ascii_digit()).count();
                if length == 0 {
                    return None;
                }
                let (fraction, tail) = tail.split_at(length);
                ms = (0..3).fold(0, |ms, i| ms * 10 + fraction.get(i).map_or(0, |c| i64::from(c - b'0')));
                rest = tail;
            }
        }
        // A second of 60 is a leap second, which Unix time counts as the next minute's first.
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + ms;
        self.place(date, of_day, offset_minutes(rest)?)
    }

    /// The instant of a local date and time of day, in the offset that was written or else by the zone.
    fn place(&self, date: NaiveDate, of_day_ms: i64, offset_minutes: Option<i64>) -> Option<Moment> {
        let midnight = date.and_hms_opt(0, 0, 0)?;
        let utc = |minutes: i64| {
            let ms = midnight.and_utc().timestamp_millis() + of_day_ms - minutes * 60_000;
            Moment::Once(Timestamp::from_unix_ms(ms))
        };
        match offset_minutes {
            Some(minutes) => Some(utc(minutes)),
            None if self.zone == Zone::UTC => Some(utc(0)),
            None => {
                let local: NaiveDateTime = midnight.checked_add_signed(TimeDelta::milliseconds(of_day_ms))?;
                let (first, second) = self.zone.instants(local);
                Some(if first == second { Moment::Once(first) } else { Moment::Twice(first, second) })
            }
        }
    }
}

/// Whether a text is one of the words by which Slurm and data frames say that there is no value.
pub fn is_absent(text: &str) -> bool {
    const WORDS: [&str; 9] = ["unknown", "none", "n/a", "none assigned", "null", "(null)", "nan", "nat", "-"];
    text.is_empty() || WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// A decimal number of `unit`. Unit of the result: milliseconds, cut off downwards. None: no number, or beyond 64 bits.
pub(crate) fn scaled_ms(text: &str, unit: Unit) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let whole_length = unsigned.iter().take_while(|c| c.is_ascii_digit()).count();
    let (whole, rest) = unsigned.split_at(whole_length);
    let fraction = match rest {
        [] => &[][..],
        [b'.', fraction @ ..] if fraction.iter().all(u8::is_ascii_digit) => fraction,
        // 1.7e+09, as data frames write large numbers.
        [b'.', ..] | [b'e' | b'E', ..] if whole_length > 0 => {
            let exact = rust_decimal::Decimal::from_scientific(text).ok()?.normalize();
            return scaled_ms_of(exact.mantissa(), exact.scale(), unit);
        }
        _ => return None,
    };
    if whole_length == 0 || whole_length > 24 {
        return None;
    }
    let mut value = whole.iter().fold(0i128, |n, c| n * 10 + i128::from(c - b'0'));
    let kept = &fraction[..fraction.len().min(9)];
    value = kept.iter().fold(value, |n, c| n * 10 + i128::from(c - b'0'));
    scaled_ms_of(if negative { -value } else { value }, kept.len() as u32, unit)
}

fn scaled_ms_of(mantissa: i128, scale: u32, unit: Unit) -> Option<i64> {
    let ns = mantissa.checked_mul(unit.ns())?.div_euclid(10i128.checked_pow(scale)?);
    i64::try_from(ns.div_euclid(1_000_000)).ok()
}

/// The number that ASCII digits write; none where one isn't a digit. For a few digits only.
fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0i64, |n, c| c.is_ascii_digit().then(|| n * 10 + i64::from(c - b'0')))
}

/// `Some(None)`: no offset is written; `None`: what is written is none. Unit: minutes east of UTC.
fn offset_minutes(text: &[u8]) -> Option<Option<i64>> {
    let text = if let [b' ', rest @ ..] = text { rest } else { text };
    let (sign, rest) = match text {
        [] => return Some(None),
        [b'Z' | b'z'] | [b'U', b'T', b'C'] => return Some(Some(0)),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest {
        [a, b] => (digits(&[*a, *b])?, 0),
        [a, b, c, d] | [a, b, b':', c, d] => (digits(&[*a, *b])?, digits(&[*c, *d])?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(Some(sign * (hours * 60 + minutes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(zone: &str) -> TimeReader {
        TimeReader::in_zone(Zone::parse(zone).unwrap())
    }

    #[track_caller]
    fn check(reader: TimeReader, text: &str, expected: &str) {
        match reader.read(text).unwrap() {
            None => assert_eq!("none", expected, "{text}"),
            Some(Moment::Once(at)) => assert_eq!(at.to_string(), expected, "{text}"),
            Some(Moment::Twice(a, b)) => assert_eq!(format!("{a} or {b}"), expected, "{text}"),
        }
    }

    #[test]
    fn a_time_is_read_in_every_layout_that_exports_use() {
        let utc = reader("UTC");
        check(utc, "2016-12-22T07:15:12", "2016-12-22T07:15:12Z");
        check(utc, "2017-10-09 07:01:55", "2017-10-09T07:01:55Z");
        check(utc, "2017-10-09 07:01:55.2504", "2017-10-09T07:01:55.250Z");
        check(utc, "2017-10-09 07:01", "2017-10-09T07:01:00Z");
        check(utc, "2017-10-09", "2017-10-09T00:00:00Z");
        check(utc, "2025-05-02T14:09:52+02:00", "2025-05-02T12:09:52Z");
        check(utc, "2025-05-02T14:09:52.5-0530", "2025-05-02T19:39:52.500Z");
        check(utc, "2025-05-02 14:09:52 UTC", "2025-05-02T14:09:52Z");
        check(utc, "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z");
        check(utc, "1706227200", "2024-01-26T00:00:00Z");
        check(utc, "1706227200.25", "2024-01-26T00:00:00.250Z");
        check(utc, "1.7062272e+09", "2024-01-26T00:00:00Z");
    }

    #[test]
    fn a_number_counts_its_unit_from_its_epoch() {
        let epoch = Timestamp::parse_rfc3339("2023-01-01T00:00:00Z").unwrap();
        let trace = TimeReader { epoch, ..reader("UTC") };
        check(trace, "0", "2023-01-01T00:00:00Z");
        check(trace, "86400", "2023-01-02T00:00:00Z");
        check(TimeReader { unit: Unit::Milliseconds, ..trace }, "1500", "2023-01-01T00:00:01.500Z");
        check(TimeReader { unit: Unit::Microseconds, ..trace }, "-1500", "2022-12-31T23:59:59.998Z");
        check(TimeReader { zero_is_absent: true, ..reader("UTC") }, "0", "none");
    }

    #[test]
    fn words_for_no_time_are_none_and_other_words_an_error() {
        for word in ["Unknown", "None", "N/A", "None assigned", "", "NaT", "(null)"] {
            check(reader("UTC"), word, "none");
        }
        for word in
            ["soon", "2017-13-01T00:00:00", "2017-02-30", "2017-01-01T25:00:00", "2017-01-01T00:00:00+99:00", "--5"]
        {
            assert!(reader("UTC").read(word).is_err(), "{word}");
        }
        for word in [
            "99999999999999999999999999",
            "9223372036854775807",
            "1e400",
            "2017-01-01T00:00:00.",
            "１７０６２２７２００",
        ] {
            assert!(reader("UTC").read(word).is_err(), "{word}");
        }
    }

    /// Source: IANA tz: Berlin's clocks went from 03:00 back to 02:00 on 2025-10-26 and from 02:00 to 03:00 on 2025-03-30.
    #[test]
    fn a_local_time_may_occur_twice_or_never() {
        let berlin = reader("Europe/Berlin");
        check(berlin, "2025-10-26 02:30:00", "2025-10-26T00:30:00Z or 2025-10-26T01:30:00Z");
        check(berlin, "2025-03-30 02:30:00", "2025-03-30T01:00:00Z");
        check(berlin, "2025-07-01 12:00:00", "2025-07-01T10:00:00Z");
        check(reader("Asia/Kathmandu"), "2025-07-01 05:45:00", "2025-07-01T00:00:00Z");
    }
}
