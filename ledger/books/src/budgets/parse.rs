//! From the text of `budgets.toml` to checked budgets.

use super::{Budget, Budgets, Every, Period, Scope, Unit};
use crate::document::{Faults, Place, Reader, Value, read};
use cardhour_domain::{CardTime, Currency, Month, Name};
use toml::de::DeValue;

/// The largest budget that is believed, in card-hours or units of its currency.
const LARGEST: i64 = 1_000_000_000_000;
/// Amounts of money and card-hours have at most so many decimals.
const DECIMALS: u32 = 6;
/// When nobody says: early enough to steer, late enough to be heard. Unit: percent.
const THRESHOLDS: [u32; 4] = [50, 75, 90, 100];
/// The highest threshold that is believed. Unit: percent.
const HIGHEST_THRESHOLD: u32 = 1000;

pub(super) fn parse(text: &str, usual: u32) -> Result<Budgets, Faults> {
    let read = read(text, |reader, root| budgets(reader, root, usual))?;
    Ok(read.unwrap_or_else(|| Budgets { budgets: Vec::new(), fiscal_year_starts: usual, dedicated_pool: None }))
}

fn budgets(reader: &mut Reader<'_>, root: &Place<'_, '_>, usual: u32) -> Option<Budgets> {
    reader.known_keys(root, &["currency", "fiscal_year_starts", "thresholds", "advice", "budget"]);
    let currency = root.table.get("currency").and_then(|value| currency_of(reader, value, "currency"));
    let starts = root.table.get("fiscal_year_starts").map_or(Some(usual), |value| month_number(reader, value));
    let thresholds = match root.table.get("thresholds") {
        None => Some(THRESHOLDS.to_vec()),
        Some(value) => thresholds(reader, value, "thresholds"),
    };
    let dedicated_pool = reader.table(root, "advice").and_then(|place| {
        reader.known_keys(&place, &["dedicated_pool"]);
        reader.name(&place, "dedicated_pool")
    });
    let tables = reader.tables(root, "budget");
    let mut budgets: Vec<Budget> = Vec::with_capacity(tables.len());
    let mut whole = true;
    for place in &tables {
        let budget =
            budget(reader, place, root.table.get("currency").is_some(), currency, starts, thresholds.as_deref());
        match budget {
            Some(budget) if budgets.iter().any(|other| other.name == budget.name) => {
                let at = place.table.get("name").map_or(place.at, |value| value.span().start);
                reader.fault(at, &place.key("name"), format!("another budget is called {:?} too", budget.name));
            }
            Some(budget) => budgets.push(budget),
            None => whole = false,
        }
    }
    whole.then_some(())?;
    Some(Budgets { budgets, fiscal_year_starts: starts?, dedicated_pool })
}

fn budget(
    reader: &mut Reader<'_>,
    place: &Place<'_, '_>,
    says_currency: bool,
    currency: Option<Currency>,
    starts: Option<u32>,
    common: Option<&[u32]>,
) -> Option<Budget> {
    let own = ["name", "amount", "currency", "card_hours", "period", "from", "to", "thresholds", "carry_over"];
    reader.known_keys(place, &[&Scope::NAMES[..], &own[..]].concat());
    let name = reader.required(place, "name").and_then(|(value, key)| {
        let name = reader.string(value, &key)?.trim();
        if name.is_empty() {
            reader.fault(value.span().start, &key, "has to say something: alerts know the budget by it");
            return None;
        }
        if name.contains(char::is_control) {
            reader.fault(value.span().start, &key, "has a line end or another control character in it");
            return None;
        }
        Some(Name::from(name))
    });
    let mut scope = Scope::default();
    for (number, selector) in Scope::NAMES.into_iter().enumerate() {
        let Some(value) = place.table.get(selector) else { continue };
        let key = place.key(selector);
        match reader.string(value, &key) {
            Some("") => {
                reader.fault(value.span().start, &key, "an empty text matches nothing; leave the key out for all")
            }
            Some(text) => scope.set(number, text),
            None => {}
        }
    }
    // Its own, else that of the whole file.
    let own_currency = place.table.get("currency");
    let currency = match own_currency {
        Some(value) => currency_of(reader, value, &place.key("currency")),
        None => currency,
    };
    if let (Some(value), Some(_)) = (own_currency, place.table.get("card_hours")) {
        let reason = "stands beside card_hours, which have none";
        reader.fault(value.span().start, &place.key("currency"), reason);
    }
    let limit = limit(reader, place, says_currency || own_currency.is_some(), currency);
    let every = reader.required(place, "period").and_then(|(value, key)| {
        let text = reader.string(value, &key)?;
        let every = Every::from_name(text);
        if every.is_none() {
            reader.fault(value.span().start, &key, format!("{text:?} is not month, quarter or year"));
        }
        every
    });
    // Months are the same whatever month a year begins with.
    let cut = every.zip(starts.or((every == Some(Every::Month)).then_some(1)));
    let from = edge(reader, place, "from", cut);
    let to = edge(reader, place, "to", cut);
    if let (Some(Some(from)), Some(Some(to))) = (from, to)
        && to <= from
    {
        let at = place.table.get("to").map_or(place.at, |value| value.span().start);
        reader.fault(at, &place.key("to"), format!("{to} is not after {from}: it is the first month after the last"));
    }
    let own_thresholds = place.table.get("thresholds").map(|value| thresholds(reader, value, &place.key("thresholds")));
    let carry_over = match place.table.get("carry_over") {
        None => Some(false),
        Some(value) => {
            let carry_over = value.get_ref().as_bool();
            if carry_over.is_none() {
                reader.fault(value.span().start, &place.key("carry_over"), "has to be true or false");
            }
            if carry_over == Some(true) && place.table.get("from").is_none() {
                let reason = "needs a from: what is carried over is counted from there on";
                reader.fault(value.span().start, &place.key("carry_over"), reason);
            }
            carry_over
        }
    };
    let thresholds = own_thresholds.unwrap_or_else(|| common.map(<[u32]>::to_vec));
    let (unit, amount) = limit?;
    Some(Budget {
        name: name?,
        scope,
        unit,
        amount,
        every: every?,
        from: from?,
        to: to?,
        thresholds: thresholds?,
        carry_over: carry_over?,
    })
}

fn currency_of(reader: &mut Reader<'_>, value: &Value<'_>, key: &str) -> Option<Currency> {
    let code = reader.string(value, key)?;
    Currency::parse(code).map_err(|error| reader.fault(value.span().start, key, error)).ok()
}

fn limit(
    reader: &mut Reader<'_>,
    place: &Place<'_, '_>,
    says_currency: bool,
    currency: Option<Currency>,
) -> Option<(Unit, i128)> {
    match (place.table.get("amount"), place.table.get("card_hours")) {
        (None, None) => {
            reader.fault(
                place.at,
                &place.path,
                "says no limit: give amount, in the currency of the prices, or card_hours",
            );
            None
        }
        (Some(_), Some(value)) => {
            let reason = "stands beside amount: a budget counts one of them; write two budgets for both";
            reader.fault(value.span().start, &place.key("card_hours"), reason);
            None
        }
        (Some(value), None) => {
            let key = place.key("amount");
            if !says_currency {
                let reason = "is money, and the file doesn't say of which currency: currency = \"CNY\" at its top";
                reader.fault(value.span().start, &key, reason);
            }
            let millionths = millionths(reader, value, &key)?;
            Some((Unit::Money(currency?), millionths))
        }
        (None, Some(value)) => {
            let millionths = millionths(reader, value, &place.key("card_hours"))?;
            // Card-hours to six decimals are whole parts × milliseconds: a card-hour has 64,864,800,000,000 of them.
            Some((Unit::CardHours, millionths * (CardTime::PART_MS_PER_CARD_HOUR / 1_000_000)))
        }
    }
}

/// A month at which a period begins; none within where the key isn't there.
fn edge(reader: &mut Reader<'_>, place: &Place<'_, '_>, key: &str, cut: Option<(Every, u32)>) -> Option<Option<Month>> {
    let Some(value) = place.table.get(key) else { return Some(None) };
    let key = place.key(key);
    let text = reader.string(value, &key)?;
    let month = Month::parse(text).map_err(|error| reader.fault(value.span().start, &key, error)).ok()?;
    let (every, starts) = cut?;
    let period = Period::of(every, starts, month);
    if period.is_none_or(|period| period.first() != month) {
        let first =
            period.map_or_else(String::new, |period| format!("; the {} that holds it is {period}", every.name()));
        reader.fault(value.span().start, &key, format!("{month} is not the first month of a {}{first}", every.name()));
        return None;
    }
    Some(Some(month))
}

/// `"04"`, or 4.
fn month_number(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<u32> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        _ => "",
    };
    let month = text.parse().ok().filter(|month| (1..=12).contains(month));
    if month.is_none() {
        reader.fault(value.span().start, "fiscal_year_starts", "has to be a month's number, \"01\" to \"12\"");
    }
    month
}

fn thresholds(reader: &mut Reader<'_>, value: &Value<'_>, key: &str) -> Option<Vec<u32>> {
    let Some(array) = value.get_ref().as_array() else {
        reader.fault(value.span().start, key, "has to be a list of percents such as [50, 75, 90, 100]");
        return None;
    };
    let mut thresholds: Vec<u32> = Vec::with_capacity(array.len());
    for item in array {
        let number = match item.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            _ => None,
        };
        match number.filter(|percent| (1..=HIGHEST_THRESHOLD).contains(percent)) {
            Some(percent) if thresholds.last().is_some_and(|last| *last >= percent) => {
                reader.fault(item.span().start, key, format!("{percent} doesn't go up: each is above the one before"))
            }
            Some(percent) => thresholds.push(percent),
            None => {
                let reason = format!("has to hold whole percents from 1 to {HIGHEST_THRESHOLD}");
                reader.fault(item.span().start, key, reason);
                return None;
            }
        }
    }
    Some(thresholds)
}

/// A number above zero. Unit: millionths.
fn millionths(reader: &mut Reader<'_>, value: &Value<'_>, key: &str) -> Option<i128> {
    let number = reader.decimal(value, key, DECIMALS, LARGEST)?.normalize();
    if number.is_zero() {
        reader.fault_of(value, key, "is not above zero");
        return None;
    }
    Some(number.mantissa() * 10i128.pow(DECIMALS - number.scale()))
}
