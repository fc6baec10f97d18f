//! The id of a line of a bill: readable, stable, and what `trace` takes.
//!
//! `month=2026-03,org=acme,project=vision`: the names the report was grouped by with their values, in that order. An absent
//! value is `~`; `,` `=` `%` `~` and control characters in a value are percent-encoded. `from=…,to=…` follow where the line is of a part
//! of time that its month or day doesn't say, and `zone=…` where days and months are of another zone than the ledger's. The one line
//! of a bill that isn't grouped is `all`. Stability: stands in `charges.line`; pinned by the test `lines_are_written_as_before`.

use crate::report::{Dimension, DimensionError};
use cardhour_domain::{Interval, Month, Name, Timestamp, Zone};
use chrono::NaiveDate;
use std::fmt::{self, Write as _};

const ABSENT: &str = "~";
const ALL: &str = "all";

/// A line of a bill.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// What it was grouped by, each once, and the value; none for an absent one.
    pub values: Vec<(Dimension, Option<Name>)>,
    /// The part of time it is of, where its month or day doesn't say.
    pub range: Option<Interval>,
    /// The zone of its days and months, where that isn't the ledger's.
    pub zone: Option<Zone>,
}

/// A text that is no line.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LineError {
    /// A part without `=`.
    #[error("{0:?} is not NAME=VALUE; copy the line as the bill has it, such as month=2026-03,project=vision")]
    NoValue(String),
    /// A name that bills aren't grouped by.
    #[error(transparent)]
    Dimension(#[from] DimensionError),
    /// A value that isn't encoded as lines are.
    #[error("{0:?} is not encoded as a line's value: % has to be followed by two hex digits of UTF-8")]
    Encoding(String),
    /// `from` and `to` aren't a stretch of time.
    #[error("from={from:?} and to={to:?} are not two times such as 2026-03-01T00:00:00Z, the earlier first")]
    Range {
        /// From when, as written.
        from: String,
        /// Until when, as written.
        to: String,
    },
    /// No such zone.
    #[error("{0:?} is not an IANA time zone such as Asia/Shanghai")]
    Zone(String),
}

impl Line {
    /// Reads what [`fmt::Display`] writes. Errors: anything else.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let mut line = Self::default();
        let (mut from, mut to) = (None, None);
        let parts = text.split(',').filter(|_| text != ALL);
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| LineError::NoValue(part.to_owned()))?;
            match name {
                "from" => from = Some(value),
                "to" => to = Some(value),
                "zone" => line.zone = Some(Zone::parse(value).map_err(|_| LineError::Zone(value.to_owned()))?),
                name => {
                    let dimension = Dimension::parse(&decode(name)?)?;
                    if line.values.iter().any(|(known, _)| *known == dimension) {
                        return Err(DimensionError::Twice(dimension).into());
                    }
                    let value = if value == ABSENT { None } else { Some(decode(value)?.into()) };
                    line.values.push((dimension, value));
                }
            }
        }
        if from.is_some() || to.is_some() {
            let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
            let error = || LineError::Range { from: from.to_owned(), to: to.to_owned() };
            let edge = |text| Timestamp::parse_rfc3339(text).map_err(|_| error());
            line.range = Some(Interval::new(edge(from)?, edge(to)?).ok_or_else(error)?);
        }
        Ok(line)
    }

    /// What it was grouped by.
    pub fn by(&self) -> Vec<Dimension> {
        self.values.iter().map(|(dimension, _)| dimension.clone()).collect()
    }

    /// Its value of a dimension; none where that is absent or it wasn't grouped by it.
    pub fn value(&self, dimension: &Dimension) -> Option<&Name> {
        self.values.iter().find(|(known, _)| known == dimension).and_then(|(_, value)| value.as_ref())
    }

    /// The time it is of, as far as it says: its range, its day or its month. `zone` is the ledger's.
    pub fn within(&self, zone: Zone) -> Option<Interval> {
        let zone = self.zone.unwrap_or(zone);
        let day =
            || NaiveDate::parse_from_str(self.value(&Dimension::Day)?, "%Y-%m-%d").ok().and_then(|day| zone.day(day));
        let month = || Some(Month::parse(self.value(&Dimension::Month)?).ok()?.interval(zone));
        self.range.or_else(day).or_else(month)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (dimension, value) in &self.values {
            let value = value.as_ref().map_or(ABSENT.to_owned(), |value| encode(value));
            parts.push(format!("{}={value}", encode(&dimension.to_string())));
        }
        if let Some(range) = self.range {
            parts.push(format!("from={},to={}", range.start(), range.end()));
        }
        if let Some(zone) = self.zone {
            parts.push(format!("zone={zone}"));
        }
        if parts.is_empty() { f.write_str(ALL) } else { f.write_str(&parts.join(",")) }
    }
}

fn encode(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, ',' | '=' | '%' | '~') || c.is_control() {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                _ = write!(text, "%{byte:02X}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

fn decode(text: &str) -> Result<String, LineError> {
    let error = || LineError::Encoding(text.to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (hex, after) = rest.split_at_checked(2).ok_or_else(error)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(hex[0]), digit(hex[1])) else { return Err(error()) };
        bytes.push(u8::try_from(high * 16 + low).expect("two hex digits are a byte"));
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_written_as_before() {
        for text in [
            "month=2026-03,org=acme,project=vision",
            "org=~,user=(unowned),label.a%3Db=50%25%2C more",
            "day=2026-03-01,zone=Asia/Shanghai",
            "project=卡时,from=2026-03-01T00:00:00Z,to=2026-03-15T12:15:00Z",
            "all",
        ] {
            assert_eq!(Line::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Line::default().to_string(), "all");
    }

    #[test]
    fn what_is_no_line_is_refused_with_the_part_at_fault() {
        for (text, message) in [
            ("month", "\"month\" is not NAME=VALUE"),
            ("", "\"\" is not NAME=VALUE"),
            ("team=a", "\"team\" is nothing to group by"),
            ("org=a,org=b", "org is named twice"),
            ("org=%4", "\"%4\" is not encoded"),
            ("org=%FF", "\"%FF\" is not encoded"),
            ("org=a,from=2026-03-01T00:00:00Z", "from=\"2026-03-01T00:00:00Z\" and to=\"\" are not"),
            ("zone=Mars", "\"Mars\" is not an IANA"),
        ] {
            let error = Line::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn a_line_says_what_time_it_is_of() {
        let shanghai = Zone::parse("Asia/Shanghai").unwrap();
        let within =
            |text| Line::parse(text).unwrap().within(shanghai).map(|at| (at.start().to_string(), at.end().to_string()));
        let span = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        assert_eq!(within("month=2026-03,org=a"), span("2026-02-28T16:00:00Z", "2026-03-31T16:00:00Z"));
        assert_eq!(within("day=2026-03-01,zone=UTC"), span("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"));
        assert_eq!(within("org=a"), None);
        assert_eq!(within("month=~"), None);
    }

    proptest! {
        #[test]
        fn every_line_is_read_as_it_is_written(
            org in prop::option::of(".{0,8}"), label in "[^\u{0}]{1,6}", value in prop::option::of("\\PC*"),
            range in prop::option::of((0i64..4_000_000_000_000, 1i64..4_000_000_000)), zone in any::<bool>(),
        ) {
            let line = Line {
                values: vec![(Dimension::Org, org.map(Into::into)), (Dimension::Label(label.into()), value.map(Into::into))],
                range: range.and_then(|(start, length)| Interval::new(Timestamp::from_unix_ms(start), Timestamp::from_unix_ms(start + length))),
                zone: zone.then(|| Zone::parse("Asia/Kathmandu").unwrap()),
            };
            prop_assert_eq!(Line::parse(&line.to_string()), Ok(line));
        }
    }
}
