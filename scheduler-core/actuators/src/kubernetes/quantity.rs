//! Amounts as Kubernetes writes them: `8`, `"8"`, `"2k"`, `"1500m"`.

use serde_json::Value;

/// A whole amount. Errors: it isn't one.
pub fn whole(value: &Value) -> Result<u64, String> {
    let not_whole = || format!("{value} is no whole amount");
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => Ok(whole),
            // KAI writes `4.0`.
            (None, Some(float)) if (0.0..=1e15).contains(&float) && float.fract() == 0.0 => Ok(float as u64),
            (None, _) => Err(not_whole()),
        },
        Value::String(text) => parse(text).ok_or_else(not_whole),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(not_whole()),
    }
}

fn parse(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    // Of the amount: times `by`, divided by `over`.
    let (by, over): (u64, u64) = match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        exponent => {
            let power = exponent.strip_prefix(['e', 'E'])?;
            (10_u64.checked_pow(power.strip_prefix('+').unwrap_or(power).parse().ok()?)?, 1)
        }
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let amount: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (amount, divisor) = (amount.checked_mul(u128::from(by))?, u128::from(over).checked_mul(scale)?);
    (amount % divisor == 0).then(|| u64::try_from(amount / divisor).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_read_in_each_way_that_they_are_written() {
        let read = |value: Value| whole(&value).ok();
        for eight in [json!(8), json!("8"), json!("8.0"), json!("8000m"), json!("0.008k"), json!("8e0"), json!(8.0)] {
            assert_eq!(read(eight.clone()), Some(8), "{eight}");
        }
        assert_eq!(read(json!("2Ki")), Some(2048));
        assert_eq!(read(json!("1.5k")), Some(1500));
        assert_eq!(read(json!("3E2")), Some(300));
        for no in
            [json!("1500m"), json!("0.5"), json!(-1), json!("-1"), json!(""), json!("."), json!("8x"), json!(null)]
        {
            assert_eq!(read(no.clone()), None, "{no}");
        }
    }
}
