//! Instants and spans as the trace writes them.

use cardhour_domain::Timestamp;

/// Milliseconds of a span at most: some 30,000 years.
const MOST_MS: i64 = 1_000_000_000_000_000;

/// `2017-10-01 06:30:00` or `2017-10-01T06:30:00`, UTC; RFC 3339 with an offset is understood too. None where it is neither.
pub(super) fn instant(text: &str) -> Option<Timestamp> {
    let text = text.replacen(' ', "T", 1);
    Timestamp::parse_rfc3339(&text).or_else(|_| Timestamp::parse_rfc3339(&format!("{text}Z"))).ok()
}

/// Seconds with decimals, such as `66.0`, in milliseconds. None where it is none, or finer than milliseconds.
pub(super) fn span_ms(text: &str) -> Option<i64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let decimals = decimals.trim_end_matches('0');
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 3 || !is_number(whole) || !is_number(decimals) {
        return None;
    }
    let thousandths: i64 = format!("{decimals:0<3}").parse().ok()?;
    let span_ms = whole.parse::<i64>().ok()?.checked_mul(1000)?.checked_add(thousandths)?;
    (span_ms <= MOST_MS).then_some(span_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_at_most_three_decimals() {
        assert_eq!(span_ms("66.0"), Some(66_000));
        assert_eq!(span_ms("0.25"), Some(250));
        assert_eq!(span_ms("7"), Some(7_000));
        assert_eq!(span_ms("1.00100"), Some(1_001));
        for wrong in ["", ".5", "-1", "1.0001", "1e3", "1.x", "nan", "9999999999999999999"] {
            assert_eq!(span_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_time_without_an_offset_is_utc() {
        // 2017-10-01 00:00:00 UTC is 1,506,816,000 s after the epoch.
        let at = Timestamp::from_unix_s(1_506_816_000);
        assert_eq!(instant("2017-10-01 00:00:00"), Some(at));
        assert_eq!(instant("2017-10-01T08:00:00+08:00"), Some(at));
        assert_eq!((instant("2017-10-01"), instant("yesterday")), (None, None));
    }
}
