//! The price book: what a card-hour costs, from when, for whom, and in which window of the day (design §4.5).
//!
//! A price holds from its date until a later one with the same selectors replaces it. Of several that match, the one
//! that says it most closely wins ([`PriceBook::find`]). Where none does there is a hole: such time has no price, which is
//! not the same as costing nothing.
//!
//! Start at [`PriceBook::parse`]. Does not: convert currencies, round money (that is `bill`), read files.

mod eras;
mod parse;
mod pattern;
mod selectors;
mod window;

pub use crate::document::{Fault as PriceFault, Faults as PriceFaults};
pub use eras::OtherCurrency;
pub use pattern::Pattern;
pub use selectors::{Priced, Selector, Selectors, Specificity};
pub use window::Window;

use cardhour_domain::{Currency, Name, Rate, Timestamp, Zone};
use rust_decimal::Decimal;
use std::fmt::Write as _;

/// A checked price book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceBook {
    currency: Currency,
    zone: Zone,
    windows: Vec<Window>,
    prices: Vec<Price>,
    /// For each price, the number of its set of selectors: equal sets have equal numbers.
    sets: Vec<usize>,
    edges: Vec<Timestamp>,
    version: Name,
    /// Over what time which of them holds: one for a book that was read, more for one that was put together.
    eras: Vec<eras::Era>,
}

/// One `[[price]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// What `charges.price_line` says: its place in the book, counted from 1, and its name if it has one: `3`, `3 night`.
    pub price_line: Name,
    /// From when it holds.
    pub from: Timestamp,
    /// Which card-time it is for.
    pub selectors: Selectors,
    /// Price of one card for one hour, at most twelve decimals.
    pub per_card_hour: Decimal,
    /// Standard card-hours to a card-hour, at most six decimals; 1 where the book doesn't say.
    pub coefficient: Decimal,
    /// What the price is multiplied with in each window; none where the book gives no factor, which is 1.
    pub factors: Vec<Option<Decimal>>,
}

impl PriceBook {
    /// Reads a price book. None for one that says nothing at all, such as the commented one that `init` writes: then
    /// there are hours and no money. Errors: every fault at once, each with its line and key path.
    pub fn parse(text: &str) -> Result<Option<Self>, PriceFaults> {
        parse::parse(text)
    }

    fn new(currency: Currency, zone: Zone, windows: Vec<Window>, prices: Vec<Price>) -> Self {
        let sets = sets(&prices);
        let mut edges: Vec<Timestamp> = prices.iter().map(|price| price.from).collect();
        edges.sort();
        edges.dedup();
        let mut book = Self { currency, zone, windows, prices, sets, edges, version: "".into(), eras: Vec::new() };
        book.version = blake3::hash(book.canonical().as_bytes()).to_hex()[..12].into();
        let (prices, windows) = (0..book.prices.len(), 0..book.windows.len());
        let version = book.version.clone();
        let of_all_time = eras::Era { from: None, until: None, prices, windows, version, currency, is_left_out: false };
        book.eras = vec![of_all_time];
        book
    }

    /// The currency of every price in it; of one that was put together of several currencies, the last one's.
    pub fn currency(&self) -> Currency {
        self.currency
    }

    /// The billing zone: its dates and windows are local times of it.
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Its windows, no two of which overlap in the time in which their book holds.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Its prices, in the order of the book.
    pub fn prices(&self) -> &[Price] {
        &self.prices
    }

    /// The instants at which some price begins, in order, each once. Between two of them [`Self::find`] never changes.
    pub fn edges(&self) -> &[Timestamp] {
        &self.edges
    }

    /// What `charges.price_version` says: twelve hex digits of the hash of what the book says, whatever its comments, spacing and
    /// order of keys.
    pub fn version(&self) -> &Name {
        &self.version
    }

    /// The price that holds for `what` at `at`, as an index into [`Self::prices`]; none is a hole.
    ///
    /// Of those that have begun and match: among equal selectors the latest `from`; then the most specific; then the later line.
    pub fn find(&self, what: &Priced<'_>, at: Timestamp) -> Option<usize> {
        let mut latest: Vec<Option<usize>> = vec![None; self.prices.len()];
        for i in self.prices_at(at) {
            let price = &self.prices[i];
            if price.from <= at && price.selectors.match_all(what) {
                let latest = &mut latest[self.sets[i]];
                if latest.is_none_or(|earlier| self.prices[earlier].from <= price.from) {
                    *latest = Some(i);
                }
            }
        }
        latest.into_iter().flatten().max_by_key(|&i| (self.prices[i].selectors.specificity(), i))
    }

    /// What a card-hour costs at `price` in `window`: the list price and the window's factor.
    pub fn rate(&self, price: usize, window: Option<usize>) -> Rate {
        let price = &self.prices[price];
        let factor = window.and_then(|window| price.factors[window]).unwrap_or(Decimal::ONE);
        Rate { per_card_hour: price.per_card_hour, factor }
    }

    /// What a card-hour costs at `price` outside of every window.
    pub fn list_rate(&self, price: usize) -> Rate {
        self.rate(price, None)
    }

    /// One price in a line, for people: what it is for, from when, and what it costs.
    pub fn price_text(&self, price: usize) -> String {
        let currency = self.currency_of(price);
        let price = &self.prices[price];
        let mut text = format!("price {}: {} {} per card-hour", price.price_line, price.per_card_hour, currency);
        let from =
            self.zone.local(price.from).map_or_else(|| price.from.to_string(), |at| at.format("%F %R").to_string());
        _ = write!(text, " from {from} {}", self.zone);
        for (selector, pattern) in price.selectors.given() {
            _ = write!(text, ", {} {pattern}", selector.name());
        }
        _ = write!(text, ", coefficient {}", price.coefficient.normalize());
        for (window, factor) in self.windows.iter().zip(&price.factors) {
            if let Some(factor) = factor {
                _ = write!(text, ", {} × {}", window.name, factor.normalize());
            }
        }
        text
    }

    /// What the book says, in one way of writing it. Stability: [`Self::version`] is its hash and stands in closed months; pinned by the
    /// test `a_book_has_the_version_it_had_before`.
    fn canonical(&self) -> String {
        let mut text = format!("currency {}\nzone {}\n", self.currency, self.zone);
        for window in &self.windows {
            let Window { name, from, to, .. } = window;
            _ = writeln!(text, "window {name:?} {} {from} {to}", window.days_text());
        }
        for price in &self.prices {
            let Price { price_line, from, per_card_hour, coefficient, .. } = price;
            _ = write!(text, "price {price_line:?} {} {}", from.unix_ms(), per_card_hour.normalize());
            _ = write!(text, " {}", coefficient.normalize());
            for (selector, pattern) in price.selectors.given() {
                _ = write!(text, " {}={pattern:?}", selector.name());
            }
            for (i, factor) in price.factors.iter().enumerate() {
                if let Some(factor) = factor {
                    _ = write!(text, " {i}*{}", factor.normalize());
                }
            }
            text.push('\n');
        }
        text
    }
}

/// For each price, the number of its set of selectors: equal sets have equal numbers.
fn sets(prices: &[Price]) -> Vec<usize> {
    let mut distinct: Vec<&Selectors> = Vec::new();
    let mut sets = Vec::with_capacity(prices.len());
    for price in prices {
        sets.push(distinct.iter().position(|set| **set == price.selectors).unwrap_or_else(|| {
            distinct.push(&price.selectors);
            distinct.len() - 1
        }));
    }
    sets
}

#[cfg(test)]
mod tests;
