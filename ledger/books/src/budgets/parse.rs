//! From the text of `budgets.toml` to checked budgets.
//!
//! Walks the parsed TOML by hand rather than through `serde`, which stops at the first fault and forgets the lines.

use super::{Budget, Budgets, Every, Period, Scope, Unit};
use cardhour_domain::{CardTime, Currency, Month, Name};
use rust_decimal::Decimal;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The largest budget that is believed, in card-hours or units of its currency.
const LARGEST: i64 = 1_000_000_000_000;
/// Amounts of money and card-hours have at most so many decimals.
const DECIMALS: u32 = 6;
/// When nobody says: early enough to steer, late enough to be heard. Unit: percent.
const THRESHOLDS: [u32; 4] = [50, 75, 90, 100];
/// The highest threshold that is believed. Unit: percent.
const HIGHEST_THRESHOLD: u32 = 1000;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BudgetFault {
    /// The line it is on, counted from 1.
    pub line: usize,
    /// The key at fault, such as `budget[2].amount`, its tables counted from 1; empty for a text that is no TOML.
    pub key: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

/// All faults of `budgets.toml`, by line; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BudgetFaults(pub Vec<BudgetFault>);

impl fmt::Display for BudgetFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, BudgetFault { line, key, reason }) in self.0.iter().enumerate() {
            let (end, colon) = (if i > 0 { "\n" } else { "" }, if key.is_empty() { "" } else { ": " });
            write!(f, "{end}line {line}: {key}{colon}{reason}")?;
        }
        Ok(())
    }
}

pub(super) fn parse(text: &str) -> Result<Budgets, BudgetFaults> {
    let (root, syntax) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, faults: Vec::new() };
    for error in syntax {
        reader.fault(error.span().map_or(0, |span| span.start), "", error.message());
    }
    let budgets = reader.budgets(root.get_ref());
    match (reader.faults.is_empty(), budgets) {
        (true, Some(budgets)) => Ok(budgets),
        _ => {
            reader.faults.sort();
            reader.faults.dedup();
            Err(BudgetFaults(reader.faults))
        }
    }
}

type Value<'t> = Spanned<DeValue<'t>>;

struct Reader<'t> {
    text: &'t str,
    faults: Vec<BudgetFault>,
}

impl<'t> Reader<'t> {
    fn fault(&mut self, at: usize, key: &str, reason: impl ToString) {
        let line = 1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|&&b| b == b'\n').count();
        self.faults.push(BudgetFault { line, key: key.to_owned(), reason: reason.to_string() });
    }

    fn budgets(&mut self, root: &DeTable<'t>) -> Option<Budgets> {
        self.known_keys(root, "", &["currency", "fiscal_year_starts", "thresholds", "budget"]);
        let currency = root.get("currency").and_then(|value| {
            let code = self.string(value, "currency")?;
            Currency::parse(code).map_err(|error| self.fault(value.span().start, "currency", error)).ok()
        });
        let starts = root.get("fiscal_year_starts").map_or(Some(1), |value| self.month_number(value));
        let thresholds = match root.get("thresholds") {
            None => Some(THRESHOLDS.to_vec()),
            Some(value) => self.thresholds(value, "thresholds"),
        };
        let tables = self.tables(root, "budget");
        let mut budgets: Vec<Budget> = Vec::with_capacity(tables.len());
        let mut whole = true;
        for (table, at, path) in tables {
            let budget =
                self.budget(table, at, &path, root.get("currency").is_some(), currency, starts, thresholds.as_deref());
            match budget {
                Some(budget) if budgets.iter().any(|other| other.name == budget.name) => {
                    let at = table.get("name").map_or(at, |value| value.span().start);
                    self.fault(at, &join(&path, "name"), format!("another budget is called {:?} too", budget.name));
                }
                Some(budget) => budgets.push(budget),
                None => whole = false,
            }
        }
        whole.then_some(())?;
        Some(Budgets { budgets, fiscal_year_starts: starts? })
    }

    #[allow(clippy::too_many_arguments)] // What the file says above all budgets, each for itself.
    fn budget(
        &mut self,
        table: &DeTable<'t>,
        at: usize,
        path: &str,
        says_currency: bool,
        currency: Option<Currency>,
        starts: Option<u32>,
        thresholds: Option<&[u32]>,
    ) -> Option<Budget> {
        let own = ["name", "amount", "card_hours", "period", "from", "to", "thresholds", "carry_over"];
        self.known_keys(table, path, &[&Scope::NAMES[..], &own[..]].concat());
        let name = self.required(table, at, path, "name").and_then(|(value, key)| {
            let name = self.string(value, &key)?.trim();
            if name.is_empty() {
                self.fault(value.span().start, &key, "has to say something: alerts know the budget by it");
                return None;
            }
            Some(Name::from(name))
        });
        let mut scope = Scope::default();
        for (place, selector) in Scope::NAMES.into_iter().enumerate() {
            let Some(value) = table.get(selector) else { continue };
            let key = join(path, selector);
            match self.string(value, &key) {
                Some("") => {
                    self.fault(value.span().start, &key, "an empty text matches nothing; leave the key out for all")
                }
                Some(text) => scope.set(place, text),
                None => {}
            }
        }
        let limit = self.limit(table, at, path, says_currency, currency);
        let every = self.required(table, at, path, "period").and_then(|(value, key)| {
            let text = self.string(value, &key)?;
            let every = Every::from_name(text);
            if every.is_none() {
                self.fault(value.span().start, &key, format!("{text:?} is not month, quarter or year"));
            }
            every
        });
        // Months are the same whatever month a year begins with.
        let cut = every.zip(starts.or((every == Some(Every::Month)).then_some(1)));
        let from = self.edge(table, path, "from", cut);
        let to = self.edge(table, path, "to", cut);
        if let (Some(Some(from)), Some(Some(to))) = (from, to)
            && to <= from
        {
            let at = table.get("to").map_or(at, |value| value.span().start);
            self.fault(
                at,
                &join(path, "to"),
                format!("{to} is not after {from}: it is the first month after the last"),
            );
        }
        let own_thresholds = table.get("thresholds").map(|value| self.thresholds(value, &join(path, "thresholds")));
        let carry_over = match table.get("carry_over") {
            None => Some(false),
            Some(value) => {
                let carry_over = value.get_ref().as_bool();
                if carry_over.is_none() {
                    self.fault(value.span().start, &join(path, "carry_over"), "has to be true or false");
                }
                if carry_over == Some(true) && table.get("from").is_none() {
                    let reason = "needs a from: what is carried over is counted from there on";
                    self.fault(value.span().start, &join(path, "carry_over"), reason);
                }
                carry_over
            }
        };
        let thresholds = own_thresholds.unwrap_or_else(|| thresholds.map(<[u32]>::to_vec));
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

    fn limit(
        &mut self,
        table: &DeTable<'t>,
        at: usize,
        path: &str,
        says_currency: bool,
        currency: Option<Currency>,
    ) -> Option<(Unit, i128)> {
        match (table.get("amount"), table.get("card_hours")) {
            (None, None) => {
                self.fault(at, path, "says no limit: give amount, in the currency of the prices, or card_hours");
                None
            }
            (Some(_), Some(value)) => {
                let reason = "stands beside amount: a budget counts one of them; write two budgets for both";
                self.fault(value.span().start, &join(path, "card_hours"), reason);
                None
            }
            (Some(value), None) => {
                let key = join(path, "amount");
                if !says_currency {
                    let reason = "is money, and the file doesn't say of which currency: currency = \"CNY\" at its top";
                    self.fault(value.span().start, &key, reason);
                }
                let millionths = self.millionths(value, &key)?;
                Some((Unit::Money(currency?), millionths))
            }
            (None, Some(value)) => {
                let millionths = self.millionths(value, &join(path, "card_hours"))?;
                // Card-hours to six decimals are whole parts × milliseconds: a card-hour has 64,864,800,000,000 of them.
                Some((Unit::CardHours, millionths * (CardTime::PART_MS_PER_CARD_HOUR / 1_000_000)))
            }
        }
    }

    /// A month at which a period begins; none within where the key isn't there.
    fn edge(&mut self, table: &DeTable<'t>, path: &str, key: &str, cut: Option<(Every, u32)>) -> Option<Option<Month>> {
        let Some(value) = table.get(key) else { return Some(None) };
        let key = join(path, key);
        let text = self.string(value, &key)?;
        let month = Month::parse(text).map_err(|error| self.fault(value.span().start, &key, error)).ok()?;
        let (every, starts) = cut?;
        let period = Period::of(every, starts, month);
        if period.is_none_or(|period| period.first() != month) {
            let first =
                period.map_or_else(String::new, |period| format!("; the {} that holds it is {period}", every.name()));
            self.fault(
                value.span().start,
                &key,
                format!("{month} is not the first month of a {}{first}", every.name()),
            );
            return None;
        }
        Some(Some(month))
    }

    /// `"04"`, or 4.
    fn month_number(&mut self, value: &Value<'t>) -> Option<u32> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => "",
        };
        let month = text.parse().ok().filter(|month| (1..=12).contains(month));
        if month.is_none() {
            self.fault(value.span().start, "fiscal_year_starts", "has to be a month's number, \"01\" to \"12\"");
        }
        month
    }

    fn thresholds(&mut self, value: &Value<'t>, key: &str) -> Option<Vec<u32>> {
        let Some(array) = value.get_ref().as_array() else {
            self.fault(value.span().start, key, "has to be a list of percents such as [50, 75, 90, 100]");
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
                    self.fault(item.span().start, key, format!("{percent} doesn't go up: each is above the one before"))
                }
                Some(percent) => thresholds.push(percent),
                None => {
                    let reason = format!("has to hold whole percents from 1 to {HIGHEST_THRESHOLD}");
                    self.fault(item.span().start, key, reason);
                    return None;
                }
            }
        }
        Some(thresholds)
    }

    /// The tables of an array of tables, each with where it begins and its path, counted from 1.
    fn tables<'r>(&mut self, root: &'r DeTable<'t>, key: &str) -> Vec<(&'r DeTable<'t>, usize, String)> {
        let Some(value) = root.get(key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.fault(value.span().start, key, format!("has to be written as [[{key}]]"));
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (i, item) in (1..).zip(array) {
            let path = format!("{key}[{i}]");
            match item.get_ref().as_table() {
                Some(table) => tables.push((table, item.span().start, path)),
                None => self.fault(item.span().start, &path, format!("has to be a table: [[{key}]]")),
            }
        }
        tables
    }

    fn known_keys(&mut self, table: &DeTable<'t>, path: &str, known: &[&str]) {
        for key in table.keys() {
            if !known.contains(&&**key.get_ref()) {
                let reason = format!("unknown key; known here are {}", known.join(", "));
                self.fault(key.span().start, &join(path, key.get_ref()), reason);
            }
        }
    }

    fn required<'r>(
        &mut self,
        table: &'r DeTable<'t>,
        at: usize,
        path: &str,
        key: &str,
    ) -> Option<(&'r Value<'t>, String)> {
        let path = join(path, key);
        match table.get(key) {
            Some(value) => Some((value, path)),
            None => {
                self.fault(at, &path, "is missing");
                None
            }
        }
    }

    fn string<'r>(&mut self, value: &'r Value<'t>, key: &str) -> Option<&'r str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            let reason = format!("has to be a text in quotes, not {}", value.get_ref().type_str());
            self.fault(value.span().start, key, reason);
        }
        text
    }

    /// A number above zero, from a text or as TOML writes it; never through a float. Unit: millionths.
    fn millionths(&mut self, value: &Value<'t>, key: &str) -> Option<i128> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => {
                let reason = format!("has to be a number such as \"50000.00\", not {}", other.type_str());
                self.fault(value.span().start, key, reason);
                return None;
            }
        };
        let reason = match text.trim().parse::<Decimal>() {
            Err(_) => format!("{text:?} is not a number such as \"50000.00\""),
            Ok(number) if number <= Decimal::ZERO => format!("{text} is not above zero"),
            Ok(number) if number > Decimal::from(LARGEST) => format!("{text} is more than {LARGEST}"),
            Ok(number) if number.normalize().scale() > DECIMALS => format!("{text} has more than {DECIMALS} decimals"),
            Ok(number) => {
                let number = number.normalize();
                return Some(number.mantissa() * 10i128.pow(DECIMALS - number.scale()));
            }
        };
        self.fault(value.span().start, key, reason);
        None
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
