//! From the text of a price book to a checked one.
//!
//! Walks the parsed TOML by hand rather than through `serde`, which stops at the first fault and forgets the lines.

use super::window::{parse_days, parse_time};
use super::{Price, PriceBook, PriceFault, PriceFaults, Selector, Selectors, Window};
use cardhour_domain::{BUCKET_MS, Currency, Name, Timestamp, Zone};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};
use rust_decimal::Decimal;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The dearest card-hour and the largest factor that are believed.
const LARGEST: i64 = 1_000_000_000_000;
/// The largest coefficient: so that standard card-hours fit 128 bits for any pool.
const LARGEST_COEFFICIENT: i64 = 100_000;
const PRICE_DECIMALS: u32 = 12;
const COEFFICIENT_DECIMALS: u32 = 6;

pub(super) fn parse(text: &str) -> Result<Option<PriceBook>, PriceFaults> {
    let (root, syntax) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, faults: Vec::new() };
    for error in syntax {
        reader.fault(error.span().map_or(0, |span| span.start), "", error.message());
    }
    let root = root.get_ref();
    if root.is_empty() && reader.faults.is_empty() {
        return Ok(None);
    }
    let book = reader.book(root);
    match (reader.faults.is_empty(), book) {
        (true, Some(book)) => Ok(Some(book)),
        _ => {
            reader.faults.sort();
            reader.faults.dedup();
            Err(PriceFaults(reader.faults))
        }
    }
}

type Value<'t> = Spanned<DeValue<'t>>;

struct Reader<'t> {
    text: &'t str,
    faults: Vec<PriceFault>,
}

impl<'t> Reader<'t> {
    fn fault(&mut self, at: usize, key: &str, reason: impl ToString) {
        let line = 1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|&&b| b == b'\n').count();
        self.faults.push(PriceFault { line, key: key.to_owned(), reason: reason.to_string() });
    }

    fn book(&mut self, root: &DeTable<'t>) -> Option<PriceBook> {
        self.known_keys(root, "", &["currency", "zone", "window", "price"]);
        let currency = self.required(root, 0, "", "currency").and_then(|(value, key)| {
            let code = self.string(value, &key)?;
            Currency::parse(code).map_err(|error| self.fault(value.span().start, &key, error)).ok()
        });
        let zone = self.required(root, 0, "", "zone").and_then(|(value, key)| {
            let name = self.string(value, &key)?;
            Zone::parse(name).map_err(|error| self.fault(value.span().start, &key, error)).ok()
        });
        let windows: Vec<_> = self.tables(root, "window");
        let windows: Vec<_> =
            windows.into_iter().map(|(table, at, path)| (self.window(table, at, &path), table, path)).collect();
        let names: Vec<Name> =
            windows.iter().flat_map(|(window, ..)| window.as_ref().map(|w| w.name.clone())).collect();
        let prices: Vec<_> = self.tables(root, "price");
        let prices: Vec<Option<Price>> = (1..)
            .zip(prices)
            .map(|(place, (table, at, path))| self.price(table, at, &path, place, zone, &names))
            .collect();
        self.window_faults(&windows, zone, &prices);
        let windows: Option<Vec<Window>> = windows.into_iter().map(|(window, ..)| window).collect();
        let prices: Option<Vec<Price>> = prices.into_iter().collect();
        Some(PriceBook::new(currency?, zone?, windows?, prices?))
    }

    fn window(&mut self, table: &DeTable<'t>, at: usize, path: &str) -> Option<Window> {
        self.known_keys(table, path, &["name", "days", "from", "to"]);
        let name = self.required(table, at, path, "name").and_then(|(value, key)| {
            let name = self.string(value, &key)?;
            if taken_by_a_price(name) || name.is_empty() {
                self.fault(
                    value.span().start,
                    &key,
                    format!("{name:?} can't be a window's name: prices have a key of that name"),
                );
                return None;
            }
            Some(Name::from(name))
        });
        let days = match table.get("days") {
            None => Some([true; 7]),
            Some(value) => {
                let key = format!("{path}.days");
                self.string(value, &key).and_then(|text| {
                    let days = parse_days(text);
                    if days.is_none() {
                        self.fault(
                            value.span().start,
                            &key,
                            format!("{text:?} is not days such as mon-sun or sat,sun"),
                        );
                    }
                    days
                })
            }
        };
        let from = self.time(table, at, path, "from");
        let to = self.time(table, at, path, "to");
        Some(Window { name: name?, days: days?, from: from?, to: to? })
    }

    fn price(
        &mut self,
        table: &DeTable<'t>,
        at: usize,
        path: &str,
        place: usize,
        zone: Option<Zone>,
        windows: &[Name],
    ) -> Option<Price> {
        let mut selectors = Selectors::default();
        let mut factors = vec![None; windows.len()];
        for (name, value) in table {
            let key = format!("{path}.{}", name.get_ref());
            if let Some(selector) = Selector::ALL.into_iter().find(|selector| selector.name() == name.get_ref()) {
                match self.string(value, &key) {
                    Some("") => {
                        self.fault(value.span().start, &key, "an empty text matches nothing; leave the key out for all")
                    }
                    Some(text) => selectors.set(selector, text),
                    None => {}
                }
            } else if let Some(window) = windows.iter().position(|window| **window == **name.get_ref()) {
                factors[window] = self.decimal(value, &key, PRICE_DECIMALS, LARGEST);
            } else if !taken_by_a_price(name.get_ref()) {
                let known: Vec<&str> = Selector::ALL.iter().map(|selector| selector.name()).collect();
                let reason = format!(
                    "no [[window]] has this name, and a price has no such key; it has from, name, per_card_hour, coefficient, {}",
                    known.join(", ")
                );
                self.fault(name.span().start, &key, reason);
            }
        }
        let from = self.required(table, at, path, "from").and_then(|(value, key)| self.instant(value, &key, zone));
        let per_card_hour = self
            .required(table, at, path, "per_card_hour")
            .and_then(|(value, key)| self.decimal(value, &key, PRICE_DECIMALS, LARGEST));
        let coefficient = match table.get("coefficient") {
            None => Some(Decimal::ONE),
            Some(value) => {
                self.decimal(value, &format!("{path}.coefficient"), COEFFICIENT_DECIMALS, LARGEST_COEFFICIENT)
            }
        };
        let price_line = match table.get("name") {
            None => place.to_string(),
            Some(value) => format!("{place} {}", self.string(value, &format!("{path}.name"))?),
        };
        Some(Price {
            price_line: price_line.into(),
            from: from?,
            selectors,
            per_card_hour: per_card_hour?,
            coefficient: coefficient?,
            factors,
        })
    }

    /// Faults that one window alone doesn't have: a name twice, two that overlap, an edge off the quarter hour.
    fn window_faults(
        &mut self,
        windows: &[(Option<Window>, &DeTable<'t>, String)],
        zone: Option<Zone>,
        prices: &[Option<Price>],
    ) {
        let at = |table: &DeTable<'t>, key: &str| table.get(key).map_or(0, |value| value.span().start);
        for (i, (window, table, path)) in windows.iter().enumerate() {
            let Some(window) = window else { continue };
            for (other, _, other_path) in &windows[..i] {
                let Some(other) = other else { continue };
                if other.name == window.name {
                    self.fault(at(table, "name"), &format!("{path}.name"), format!("{other_path} has this name too"));
                } else if other.overlaps(window) {
                    let reason =
                        format!("{} overlaps {}: an instant can be in one window only", window.name, other.name);
                    self.fault(at(table, "from"), &format!("{path}.from"), reason);
                }
            }
            let Some(zone) = zone else { continue };
            // Offsets of a zone change over the years: tried on the dates the book itself names, in summer and in winter.
            let dates = prices.iter().flatten().filter_map(|price| zone.date(price.from));
            let dates: Vec<_> =
                dates.flat_map(|date| [Some(date), date.checked_add_days(Days::new(182))]).flatten().collect();
            for (key, time) in [("from", window.from), ("to", window.to)] {
                let faults = dates.iter().filter_map(|date| zone.quarter_hour(date.and_time(time)).err());
                if let Some(error) = faults.into_iter().next() {
                    self.fault(at(table, key), &format!("{path}.{key}"), error);
                }
            }
        }
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
            self.fault(
                value.span().start,
                key,
                format!("has to be a text in quotes, not {}", value.get_ref().type_str()),
            );
        }
        text
    }

    fn time(&mut self, table: &DeTable<'t>, at: usize, path: &str, key: &str) -> Option<NaiveTime> {
        let (value, key) = self.required(table, at, path, key)?;
        let text = self.string(value, &key)?;
        let time = parse_time(text);
        if time.is_none() {
            self.fault(value.span().start, &key, format!("{text:?} is not a time such as 22:00"));
        }
        time
    }

    /// A number that isn't below zero, from a text or as TOML writes it; never through a float.
    fn decimal(&mut self, value: &Value<'t>, key: &str, decimals: u32, largest: i64) -> Option<Decimal> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            other => {
                self.fault(
                    value.span().start,
                    key,
                    format!("has to be a number such as \"18.50\", not {}", other.type_str()),
                );
                return None;
            }
        };
        let reason = match text.trim().parse::<Decimal>() {
            Err(_) => format!("{text:?} is not a number such as \"18.50\""),
            Ok(number) if number.is_sign_negative() && !number.is_zero() => format!("{text} is below zero"),
            Ok(number) if number > Decimal::from(largest) => format!("{text} is more than {largest}"),
            Ok(number) if number.normalize().scale() > decimals => format!("{text} has more than {decimals} decimals"),
            Ok(number) => return Some(number),
        };
        self.fault(value.span().start, key, reason);
        None
    }

    /// A date or a local date and time of `zone`, or one with an offset of its own; on a quarter hour of UTC (LED-7).
    fn instant(&mut self, value: &Value<'t>, key: &str, zone: Option<Zone>) -> Option<Timestamp> {
        let text = match value.get_ref() {
            DeValue::Datetime(at) => at.to_string(),
            _ => self.string(value, key)?.trim().to_owned(),
        };
        let start = value.span().start;
        if let Ok(at) = Timestamp::parse_rfc3339(&text) {
            if at.bucket_start() != at {
                self.fault(
                    start,
                    key,
                    format!("{text} is not on a quarter hour of UTC ({} minutes)", BUCKET_MS / 60_000),
                );
                return None;
            }
            return Some(at);
        }
        let Some(local) = local_time(&text) else {
            self.fault(
                start,
                key,
                format!("{text:?} is not a date such as 2026-01-01, or one with a time: 2026-01-01T08:00"),
            );
            return None;
        };
        zone?.quarter_hour(local).map_err(|error| self.fault(start, key, error)).ok()
    }
}

/// Reads `2026-01-01`, `2026-01-01T08:00` or `2026-01-01 08:00:00`.
fn local_time(text: &str) -> Option<NaiveDateTime> {
    let date = |text: &str| (text.len() == 10).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())?;
    let Some((day, time)) = text.split_once(['T', ' ']) else {
        return Some(date(text)?.and_time(NaiveTime::MIN));
    };
    let time = time.strip_suffix(":00").filter(|rest| rest.contains(':')).unwrap_or(time);
    Some(date(day)?.and_time(NaiveTime::parse_from_str(time, "%H:%M").ok()?))
}

/// Whether a key means something in `[[price]]` other than a window's factor.
fn taken_by_a_price(key: &str) -> bool {
    matches!(key, "from" | "name" | "per_card_hour" | "coefficient")
        || Selector::ALL.iter().any(|known| known.name() == key)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
