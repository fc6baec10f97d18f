//! What OpenCost (or Kubecost) answers to `/allocation`: GPU-hours by namespace, pod or whatever it was aggregated by.
//!
//! `data` is a list of sets, one a step of the window; each is a map of names to allocations, whose `gpuHours` is what is compared. A set may hold
//! `__idle__`, time that nobody held, which we book as free.

use super::{Hours, OutsideError, TheirLine, Theirs, Tool, Who};
use cardhour_domain::{CardTime, Interval, Name, Timestamp};
use num_bigint::BigInt;
use rust_decimal::Decimal;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// GPU-hours are printed with five decimals or more: a step of them is a hundred thousandth of an hour.
const DECIMALS: u32 = 5;

/// Reads an answer. Errors: it isn't JSON, has no `data`, an allocation has no window or its GPU-hours are no number.
pub fn read(text: &str) -> Result<Theirs, OutsideError> {
    let json = |path: &str, reason: String| OutsideError::Json { path: path.to_owned(), reason };
    let root: Value = serde_json::from_str(text).map_err(|error| json("the file", error.to_string()))?;
    let sets = match &root {
        Value::Array(sets) => sets,
        Value::Object(root) => match root.get("data") {
            Some(Value::Array(sets)) => sets,
            _ => {
                return Err(json("data", "there is no list of allocations: save the answer of /allocation".to_owned()));
            }
        },
        _ => return Err(json("the file", "not the answer of /allocation".to_owned())),
    };
    let mut windows = Vec::new();
    let mut lines: BTreeMap<(bool, Who), TheirLine> = BTreeMap::new();
    let mut without = 0u64;
    let mut costs = Vec::new();
    for (i, set) in sets.iter().enumerate() {
        // A step of which nothing is known is null.
        let Value::Object(set) = set else { continue };
        for (name, allocation) in set {
            let path = format!("data[{i}].{name}");
            let Value::Object(allocation) = allocation else { return Err(json(&path, "is no allocation".to_owned())) };
            let window = allocation.get("window").and_then(Value::as_object);
            windows.push(span(window.unwrap_or(allocation), &path)?);
            let hours = card_time(allocation, &path)?;
            let is_idle = name.split('/').any(|part| part == "__idle__");
            if hours.is_zero() {
                let cost = allocation.get("gpuCost").filter(|cost| cost.as_f64().is_some_and(|cost| cost > 0.0));
                if let (true, Some(cost)) = (is_idle, cost) {
                    costs.push(format!(
                        "{name}: idle cards for {cost} in money and without hours, so there is no time to compare"
                    ));
                } else {
                    without += 1;
                }
                continue;
            }
            let who = who(name, allocation, is_idle);
            let line = lines
                .entry((is_idle, who.clone()))
                .or_insert_with(|| TheirLine { is_idle, ..TheirLine::new(who, CardTime::ZERO) });
            line.figures += u32::from(!line.time.is_zero());
            line.time += hours;
            if allocation.contains_key("start") {
                line.lifetime.push(span(allocation, &path)?);
            }
        }
    }
    let mut notes = costs;
    if without > 0 {
        notes.push(format!("{without} allocations without GPU-hours are passed over"));
    }
    let unit = CardTime::from_part_ms(CardTime::PART_MS_PER_CARD_HOUR / 10i128.pow(DECIMALS));
    let hours = Hours::Instants(Interval::union(windows));
    Ok(Theirs { tool: Tool::OpenCost, hours, lines: lines.into_values().collect(), unit, notes })
}

/// `start` and `end` of an object.
fn span(of: &Map<String, Value>, path: &str) -> Result<Interval, OutsideError> {
    let wrong = |reason: String| OutsideError::Json { path: path.to_owned(), reason };
    let read = |key: &str| -> Result<Timestamp, OutsideError> {
        let text = of.get(key).and_then(Value::as_str).ok_or_else(|| wrong(format!("has no {key}")))?;
        Timestamp::parse_rfc3339(text).map_err(|error| wrong(format!("{key}: {error}")))
    };
    let (start, end) = (read("start")?, read("end")?);
    Interval::new(start, end).ok_or_else(|| wrong(format!("ends at {end}, which is not after its start {start}")))
}

/// Its GPU-hours, exactly as they are written.
fn card_time(allocation: &Map<String, Value>, path: &str) -> Result<CardTime, OutsideError> {
    let wrong = |reason: String| OutsideError::Json { path: format!("{path}.gpuHours"), reason };
    let number = match allocation.get("gpuHours") {
        None | Some(Value::Null) => return Ok(CardTime::ZERO),
        Some(Value::Number(number)) => number.to_string(),
        Some(other) => return Err(wrong(format!("{other} is no number"))),
    };
    let hours = number.parse::<Decimal>().or_else(|_| Decimal::from_scientific(&number));
    let hours = hours.map_err(|error| wrong(format!("{number}: {error}")))?;
    if hours.is_sign_negative() && !hours.is_zero() {
        return Err(wrong(format!("{number} is below zero")));
    }
    let parts = BigInt::from(hours.mantissa()) * CardTime::PART_MS_PER_CARD_HOUR / BigInt::from(10).pow(hours.scale());
    i128::try_from(parts).map(CardTime::from_part_ms).map_err(|_| wrong(format!("{number} is too large")))
}

/// Whose it is: by its properties, else by its name where that can only be a namespace.
fn who(name: &str, allocation: &Map<String, Value>, is_idle: bool) -> Who {
    let properties = allocation.get("properties").and_then(Value::as_object);
    let property = |key: &str| {
        let text = properties?.get(key)?.as_str()?;
        (!text.is_empty()).then(|| Name::from(text))
    };
    if is_idle {
        return Who { cluster: property("cluster"), project: Some("__idle__".into()), user: None, job: None };
    }
    let (namespace, pod) = (property("namespace"), property("pod"));
    let job = namespace.as_ref().zip(pod).map(|(namespace, pod)| Name::from(format!("{namespace}/{pod}")));
    let project = namespace.or_else(|| Some(name.rsplit('/').next().unwrap_or(name).into()));
    Who { cluster: property("cluster"), project, user: None, job }
}
