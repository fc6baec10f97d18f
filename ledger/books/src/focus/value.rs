//! What a cell of a FOCUS file holds.

use cardhour_domain::{Name, Timestamp};
use rust_decimal::Decimal;

/// Digits of every decimal of a file, before and after its point.
pub const DECIMAL_DIGITS: u8 = 38;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A decimal with at most so many digits after its point, at most [`DECIMAL_DIGITS`] in all.
    Decimal {
        /// Digits after the point.
        scale: u8,
    },
    /// An instant of UTC, to the second.
    Instant,
    /// A flat JSON object, as text.
    Json,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// None: empty in CSV, null in Parquet; never an empty text or a zero (LED-3).
    Absent,
    /// A word of FOCUS or of ours.
    Word(&'static str),
    /// Text, or JSON.
    Text(Name),
    /// A decimal.
    Decimal(Decimal),
    /// An instant.
    Instant(Timestamp),
}

impl Value {
    /// Text where there is some.
    pub fn text(text: Option<impl Into<Name>>) -> Self {
        text.map_or(Self::Absent, |text| Self::Text(text.into()))
    }

    /// A decimal where there is one.
    pub fn decimal(decimal: Option<Decimal>) -> Self {
        decimal.map_or(Self::Absent, Self::Decimal)
    }

    /// Millionths.
    pub fn micros(micros: i128) -> Self {
        Self::Decimal(Decimal::from_i128_with_scale(micros, 6))
    }

    /// A word where there is one.
    pub fn word(word: Option<&'static str>) -> Self {
        word.map_or(Self::Absent, Self::Word)
    }

    /// As FOCUS writes it: instants as `2026-03-01T00:00:00Z`, decimals in plain digits without needless zeros; none where it is absent.
    pub fn written(&self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::Word(word) => Some((*word).to_owned()),
            Self::Text(text) => Some(text.to_string()),
            Self::Decimal(decimal) => Some(decimal.normalize().to_string()),
            Self::Instant(at) => Some(instant(*at)),
        }
    }
}

/// `2026-03-01T00:00:00Z`.
pub(super) fn instant(at: Timestamp) -> String {
    let utc = at.to_utc().expect("a month of the calendar");
    utc.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
