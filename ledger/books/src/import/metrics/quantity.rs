//! Numbers with units as sources write them, and the words they write where there is none.

use crate::import::mapping::read_number;
use cardhour_domain::{Gap, Milliwatts, Percent, Reading};
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// 0 to 100.
    Percent,
    /// 0 to 1.
    Ratio,
    /// Bytes.
    Bytes,
    /// 1,048,576 bytes.
    Mebibytes,
    /// Watts.
    Watts,
    /// Milliwatts.
    Milliwatts,
    /// Millijoules.
    Millijoules,
    /// Joules.
    Joules,
    /// Kilowatt-hours.
    KilowattHours,
    /// Degrees Celsius, counts.
    Whole,
}

impl Unit {
    /// What one of it is in the unit of our tables: thousandths of a percent, bytes, milliwatts, millijoules.
    fn factor(self) -> Decimal {
        Decimal::from(match self {
            Self::Percent | Self::Watts | Self::Joules => 1_000,
            Self::Ratio => 100_000,
            Self::Mebibytes => 1 << 20,
            Self::KilowattHours => 3_600_000_000_i64,
            Self::Bytes | Self::Milliwatts | Self::Millijoules | Self::Whole => 1,
        })
    }
}

/// The most that is believed. A card has less than 16 TiB of memory and draws less than 100 kW: more is a driver's garbage or a blank
/// that a mean was taken over.
const MOST_BYTES: i64 = 1 << 44;
const MOST_MILLIWATTS: i64 = 100_000_000;

/// A number, in whole ones of our unit, half to even. Errors as gaps: below zero, or beyond 64 bits.
pub fn whole(number: Reading<Decimal>, unit: Unit) -> Reading<i64> {
    let scaled = |number: Decimal| {
        let exact = number.checked_mul(unit.factor())?;
        exact.round_dp_with_strategy(0, RoundingStrategy::MidpointNearestEven).to_i64().filter(|whole| *whole >= 0)
    };
    and_then(number, scaled)
}

/// A part of a whole. Out of 0 to 100 % it is garbage.
pub fn percent(number: Reading<Decimal>, unit: Unit) -> Reading<Percent> {
    and_then(whole(number, unit), |thousandths| Percent::from_thousandths(i32::try_from(thousandths).ok()?))
}

/// Power. More than any card draws is garbage.
pub fn power(number: Reading<Decimal>, unit: Unit) -> Reading<Milliwatts> {
    and_then(whole(number, unit), |mw| (mw <= MOST_MILLIWATTS).then_some(Milliwatts(mw)))
}

/// Memory. More than any card has is garbage.
pub fn memory(number: Reading<Decimal>, unit: Unit) -> Reading<i64> {
    and_then(whole(number, unit), |bytes| (bytes <= MOST_BYTES).then_some(bytes))
}

fn and_then<T, U>(reading: Reading<T>, change: impl FnOnce(T) -> Option<U>) -> Reading<U> {
    match reading {
        Reading::Seen(value) => change(value).map_or(Reading::Missing(Gap::Implausible), Reading::Seen),
        Reading::Missing(gap) => Reading::Missing(gap),
    }
}

/// What nvidia-smi writes in a column: `631.95 W`, `45`, `[N/A]`.
///
/// None: no such column, or an empty value. Source: words of nvidia-smi 418 to 595, `[N/A]` beside `N/A` in one row.
pub fn of_smi(text: Option<&str>) -> Reading<Decimal> {
    let Some(text) = text else { return Reading::Missing(Gap::NotRecorded) };
    let bare = text.trim().trim_start_matches('[').trim_end_matches(']').trim();
    let number = bare.split_ascii_whitespace().next().unwrap_or_default();
    if let Ok(number) = read_number(number) {
        return Reading::Seen(number);
    }
    let word = bare.to_ascii_lowercase();
    Reading::Missing(match word.as_str() {
        "n/a"
        | "not supported"
        | "not available"
        | "function not found"
        | "requested functionality has been deprecated" => Gap::NotSupported,
        "insufficient permissions" | "insufficient permission" => Gap::NoPermission,
        "gpu is lost" => Gap::CardLost,
        "timeout" => Gap::TimedOut,
        "" => Gap::NotRecorded,
        "err!" => Gap::DriverError,
        // What stands in brackets is an error's text; the rest is no number at all.
        _ if word.contains("error") || text.trim().starts_with('[') => Gap::DriverError,
        _ => Gap::Implausible,
    })
}

/// What Prometheus and its text format write: `12`, `1.5e+01`, `NaN`, and the blanks of DCGM.
///
/// Source: `dcgm_fields.h`: a blank is the first of four values: blank, not found, not supported, not permissioned. As a double, and so
/// in Prometheus, the four of 64-bit integers are one number.
pub fn of_series(text: &str) -> Reading<Decimal> {
    let text = text.trim();
    let number = match read_number(text) {
        Ok(number) => number,
        // Below what 28 digits hold, or no number.
        Err(_) => match text.parse::<f64>() {
            Ok(tiny) if tiny.abs() < 1e-12 => Decimal::ZERO,
            Ok(nan) if nan.is_nan() => return Reading::Missing(Gap::DriverError),
            _ => return Reading::Missing(Gap::Implausible),
        },
    };
    match blank(number) {
        Some(gap) => Reading::Missing(gap),
        None => Reading::Seen(number),
    }
}

/// The reason behind one of DCGM's blanks.
fn blank(number: Decimal) -> Option<Gap> {
    const BLANKS: [i64; 3] = [2_147_483_632, 140_737_488_355_328, 9_223_372_036_854_775_792];
    let offset =
        BLANKS.iter().map(|first| number - Decimal::from(*first)).find(|n| (0..4).any(|i| *n == Decimal::from(i)));
    match offset.and_then(|offset| offset.to_i64()) {
        Some(0) => Some(Gap::CollectorDown),
        Some(1) => Some(Gap::DriverError),
        Some(3) => Some(Gap::NoPermission),
        Some(_) => Some(Gap::NotSupported),
        // A double near 2⁶³ was one of the four; the commonest of them is taken (C01).
        None => (number >= Decimal::from(i64::MAX - 65_535) && number <= Decimal::from(u64::MAX))
            .then_some(Gap::NotSupported),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nvidia_smi_writes_is_read_exactly_or_is_a_gap() {
        assert_eq!(power(of_smi(Some("631.95 W")), Unit::Watts), Reading::Seen(Milliwatts(631_950)));
        assert_eq!(
            percent(of_smi(Some("8 %")), Unit::Percent),
            Reading::Seen(Percent::from_thousandths(8_000).unwrap())
        );
        // 19,818 MiB × 1,048,576 = 20,780,679,168 bytes, by hand.
        assert_eq!(memory(of_smi(Some("19818 MiB")), Unit::Mebibytes), Reading::Seen(20_780_679_168));
        assert_eq!(whole(of_smi(Some("45")), Unit::Whole), Reading::Seen(45));
        for (word, gap) in [
            ("[N/A]", Gap::NotSupported),
            ("N/A", Gap::NotSupported),
            ("[Not Supported]", Gap::NotSupported),
            ("[Requested functionality has been deprecated]", Gap::NotSupported),
            ("[Insufficient Permissions]", Gap::NoPermission),
            ("[Unknown Error]", Gap::DriverError),
            ("[GPU requires reset]", Gap::DriverError),
            ("[GPU is lost]", Gap::CardLost),
            ("ERR!", Gap::DriverError),
            ("banana", Gap::Implausible),
        ] {
            assert_eq!(of_smi(Some(word)), Reading::Missing(gap), "{word}");
        }
        assert_eq!(percent(of_smi(Some("101 %")), Unit::Percent), Reading::Missing(Gap::Implausible));
        assert_eq!(of_smi(None), Reading::Missing(Gap::NotRecorded));
    }

    #[test]
    fn c01_a_blank_of_dcgm_is_no_number() {
        for (blank, gap) in [
            ("9223372036854775792", Gap::CollectorDown),
            ("9223372036854775793", Gap::DriverError),
            ("9223372036854775794", Gap::NotSupported),
            ("9223372036854775795", Gap::NoPermission),
            ("9.223372036854776e+18", Gap::NotSupported),
            ("2147483632", Gap::CollectorDown),
            ("2147483634", Gap::NotSupported),
            ("140737488355330.000000", Gap::NotSupported),
            ("1.40737488355331e+14", Gap::NoPermission),
            ("NaN", Gap::DriverError),
            ("+Inf", Gap::Implausible),
        ] {
            assert_eq!(of_series(blank), Reading::Missing(gap), "{blank}");
        }
        assert_eq!(of_series("1.5e+01"), Reading::Seen(Decimal::from(15)));
        assert_eq!(percent(of_series("33.333333333333336"), Unit::Percent).seen().unwrap().thousandths(), 33_333);
        assert_eq!(percent(of_series("3.1e-40"), Unit::Ratio).seen().unwrap().thousandths(), 0);
    }
}
