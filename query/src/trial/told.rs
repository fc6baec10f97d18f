//! What a command of a trial tells: a line a thing, its name and a number, with a blank or `=` between.
//!
//! | line | what it tells |
//! |---|---|
//! | `latency_ms 12.5`, or a number alone | a request of the victim took so long |
//! | `asked_mib 60000` | the aggressor asks for so much memory in all |
//! | `got_mib 20000` | it has so much |
//! | `refused` | it was refused more |
//!
//! Anything else is the command's own business.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

/// A line that says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Unit: microseconds.
    Latency(u64),
    /// Unit: MiB.
    Asked(u64),
    /// Unit: MiB.
    Got(u64),
    /// More was asked for and not given.
    Refused,
}

/// What an aggressor told of memory: the most of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Unit: MiB.
    pub asked_mib: Option<u64>,
    /// Unit: MiB.
    pub got_mib: Option<u64>,
    /// Whether it said that it was refused.
    pub is_refused: bool,
}

impl Told {
    /// With one more line.
    pub fn hear(&mut self, line: Line) {
        match line {
            Line::Latency(_) => {}
            Line::Asked(mib) => self.asked_mib = self.asked_mib.max(Some(mib)),
            Line::Got(mib) => self.got_mib = self.got_mib.max(Some(mib)),
            Line::Refused => self.is_refused = true,
        }
    }
}

/// What a line says; none where it says nothing to us.
pub fn parse(line: &str) -> Option<Line> {
    let line = line.trim();
    let (name, value) = line.split_once(['=', ' ', '\t']).unwrap_or(("", line));
    let value = value.trim_start_matches(['=', ' ', '\t']).trim();
    match name.trim() {
        "" if value == "refused" => Some(Line::Refused),
        "" | "latency_ms" => Some(Line::Latency(number(value, 1000)?)),
        "asked_mib" => Some(Line::Asked(number(value, 1)?)),
        "got_mib" => Some(Line::Got(number(value, 1)?)),
        _ => None,
    }
}

/// Times a factor, rounded down; none where it is no number, or below nothing.
fn number(text: &str, times: u32) -> Option<u64> {
    let value: Decimal = text.parse().ok()?;
    value.checked_mul(times.into())?.trunc().to_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_number() {
        for (line, expected) in [
            ("latency_ms 12.5", Some(Line::Latency(12_500))),
            ("latency_ms=0.0129\r", Some(Line::Latency(12))),
            ("7", Some(Line::Latency(7_000))),
            ("asked_mib 60000", Some(Line::Asked(60_000))),
            ("got_mib = 20000", Some(Line::Got(20_000))),
            ("refused", Some(Line::Refused)),
            ("latency_ms -3", None),
            ("latency_ms fast", None),
            ("loading model 3", None),
            ("", None),
        ] {
            assert_eq!(parse(line), expected, "{line:?}");
        }
    }
}
