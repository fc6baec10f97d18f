//! From the text of a price book to a checked one.
//!
//! What any settings file has, keys, texts and numbers, is [`crate::document`]; here is what they mean in a price book.

use super::window::{parse_days, parse_time};
use super::{Price, PriceBook, PriceFaults, Selector, Selectors, Window};
use crate::document::{self, Place, Reader, Value};
use cardhour_domain::{BUCKET_MS, Currency, Name, Timestamp, Zone};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};
use rust_decimal::Decimal;
use toml::de::DeValue;

/// The dearest card-hour and the largest factor that are believed.
const LARGEST: i64 = 1_000_000_000_000;
/// The largest coefficient: so that standard card-hours fit 128 bits for any pool.
const LARGEST_COEFFICIENT: i64 = 100_000;
const PRICE_DECIMALS: u32 = 12;
const COEFFICIENT_DECIMALS: u32 = 6;

pub(super) fn parse(text: &str) -> Result<Option<PriceBook>, PriceFaults> {
    document::read(text, |reader, root| reader.book(root))
}

impl Reader<'_> {
    fn book(&mut self, root: &Place<'_, '_>) -> Option<PriceBook> {
        self.known_keys(root, &["currency", "zone", "window", "price"]);
        let currency = self.required(root, "currency").and_then(|(value, key)| {
            let code = self.string(value, &key)?;
            Currency::parse(code).map_err(|error| self.fault(value.span().start, &key, error)).ok()
        });
        let zone = self.required(root, "zone").and_then(|(value, key)| {
            let name = self.string(value, &key)?;
            Zone::parse(name).map_err(|error| self.fault(value.span().start, &key, error)).ok()
        });
        let windows: Vec<_> = self.tables(root, "window");
        let windows: Vec<_> = windows.into_iter().map(|place| (self.window(&place), place)).collect();
        let names: Vec<Name> =
            windows.iter().flat_map(|(window, ..)| window.as_ref().map(|w| w.name.clone())).collect();
        let prices: Vec<_> = self.tables(root, "price");
        let prices: Vec<Option<Price>> =
            (1..).zip(prices).map(|(number, place)| self.price(&place, number, zone, &names)).collect();
        self.window_faults(&windows, zone, &prices);
        let windows: Option<Vec<Window>> = windows.into_iter().map(|(window, ..)| window).collect();
        let prices: Option<Vec<Price>> = prices.into_iter().collect();
        Some(PriceBook::new(currency?, zone?, windows?, prices?))
    }

    fn window(&mut self, place: &Place<'_, '_>) -> Option<Window> {
        self.known_keys(place, &["name", "days", "from", "to"]);
        let name = self.required(place, "name").and_then(|(value, key)| {
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
        let days = match place.table.get("days") {
            None => Some([true; 7]),
            Some(value) => {
                let key = place.key("days");
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
        let from = self.time(place, "from");
        let to = self.time(place, "to");
        Some(Window { name: name?, days: days?, from: from?, to: to? })
    }

    fn price(&mut self, place: &Place<'_, '_>, number: usize, zone: Option<Zone>, windows: &[Name]) -> Option<Price> {
        let mut selectors = Selectors::default();
        let mut factors = vec![None; windows.len()];
        for (name, value) in place.table {
            let key = place.key(name.get_ref());
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
        let from = self.required(place, "from").and_then(|(value, key)| self.instant(value, &key, zone));
        let per_card_hour = self
            .required(place, "per_card_hour")
            .and_then(|(value, key)| self.decimal(value, &key, PRICE_DECIMALS, LARGEST));
        let coefficient = match place.table.get("coefficient") {
            None => Some(Decimal::ONE),
            Some(value) => self.decimal(value, &place.key("coefficient"), COEFFICIENT_DECIMALS, LARGEST_COEFFICIENT),
        };
        let price_line = match place.table.get("name") {
            None => number.to_string(),
            Some(value) => format!("{number} {}", self.string(value, &place.key("name"))?),
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
        windows: &[(Option<Window>, Place<'_, '_>)],
        zone: Option<Zone>,
        prices: &[Option<Price>],
    ) {
        let at = |place: &Place<'_, '_>, key: &str| place.table.get(key).map_or(0, |value| value.span().start);
        for (i, (window, place)) in windows.iter().enumerate() {
            let Some(window) = window else { continue };
            for (other, other_place) in &windows[..i] {
                let Some(other) = other else { continue };
                if other.name == window.name {
                    self.fault(
                        at(place, "name"),
                        &place.key("name"),
                        format!("{} has this name too", other_place.path),
                    );
                } else if other.overlaps(window) {
                    let reason =
                        format!("{} overlaps {}: an instant can be in one window only", window.name, other.name);
                    self.fault(at(place, "from"), &place.key("from"), reason);
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
                    self.fault(at(place, key), &place.key(key), error);
                }
            }
        }
    }

    fn time(&mut self, place: &Place<'_, '_>, key: &str) -> Option<NaiveTime> {
        let (value, key) = self.required(place, key)?;
        let text = self.string(value, &key)?;
        let time = parse_time(text);
        if time.is_none() {
            self.fault(value.span().start, &key, format!("{text:?} is not a time such as 22:00"));
        }
        time
    }

    /// A date or a local date and time of `zone`, or one with an offset of its own; on a quarter hour of UTC (LED-7).
    fn instant(&mut self, value: &Value<'_>, key: &str, zone: Option<Zone>) -> Option<Timestamp> {
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
