//! Price books one after the other: those that closed months were closed by, then the one of today (LED-5).
//!
//! A closed month keeps its book, whatever is written into the ledger's price book later. So that reports need not know of it, the books are put together
//! into one in which each holds over its own time.

use super::{Price, PriceBook};
use cardhour_domain::{Interval, Name, Timestamp};
use std::ops::Range;

/// A part of a price book that was put together: the book that held until an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Era {
    /// From when; none: from the beginning of time.
    pub from: Option<Timestamp>,
    /// Until when; none: for ever.
    pub until: Option<Timestamp>,
    pub prices: Range<usize>,
    pub windows: Range<usize>,
    pub version: Name,
}

impl Era {
    fn contains(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at) && self.until.is_none_or(|until| at < until)
    }
}

/// Two books that can't be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "one price book is in {first}, another in {other}: closed months keep theirs, and a currency never mixes with another"
)]
pub struct OtherCurrency {
    /// The currency of the first.
    pub first: String,
    /// That of another.
    pub other: String,
}

impl PriceBook {
    /// One book of several, in order, each of which holds until the instant beside it; the last one, where it has none, for ever.
    ///
    /// After the last instant nothing has a price. Errors: books of different currencies. Panics without any book.
    pub fn in_turn(books: &[(Option<Timestamp>, &Self)]) -> Result<Self, OtherCurrency> {
        let first = books.first().map(|(_, book)| *book).expect("a book of at least one");
        let mut whole = Self { prices: Vec::new(), windows: Vec::new(), ..first.clone() };
        let (mut eras, mut from) = (Vec::new(), None);
        let count: usize = books.iter().map(|(_, book)| book.windows.len()).sum();
        for &(until, book) in books {
            if book.currency != first.currency {
                let (first, other) = (first.currency.to_string(), book.currency.to_string());
                return Err(OtherCurrency { first, other });
            }
            let (prices, windows) = (whole.prices.len(), whole.windows.len());
            whole.windows.extend(book.windows.iter().cloned());
            whole.prices.extend(book.prices.iter().map(|price| {
                let mut factors = vec![None; count];
                factors[windows..windows + price.factors.len()].clone_from_slice(&price.factors);
                Price { factors, ..price.clone() }
            }));
            eras.push(Era {
                from,
                until,
                prices: prices..whole.prices.len(),
                windows: windows..whole.windows.len(),
                version: book.version.clone(),
            });
            from = until;
        }
        let version = eras[eras.len() - 1].version.clone();
        let edges = eras.iter().flat_map(|era| whole.edges_of(era)).collect();
        let sets = super::sets(&whole.prices);
        Ok(Self { eras, edges, version, sets, ..whole })
    }

    /// A book of this currency and zone in which nothing has a price.
    pub fn without_prices(&self) -> Self {
        let era = Era { from: None, until: None, prices: 0..0, windows: 0..0, version: self.version.clone() };
        let (prices, windows, edges) = (Vec::new(), Vec::new(), Vec::new());
        Self { sets: super::sets(&prices), prices, windows, edges, eras: vec![era], ..self.clone() }
    }

    /// When the prices of an era begin, and when it does.
    fn edges_of(&self, era: &Era) -> Vec<Timestamp> {
        let mut edges: Vec<Timestamp> = self.prices[era.prices.clone()].iter().map(|price| price.from).collect();
        edges.retain(|edge| era.contains(*edge));
        edges.extend(era.from);
        edges.sort();
        edges.dedup();
        edges
    }

    /// The prices among which one is looked for at `at`.
    pub(super) fn prices_at(&self, at: Timestamp) -> Range<usize> {
        self.eras.iter().find(|era| era.contains(at)).map_or(0..0, |era| era.prices.clone())
    }

    /// The version of the book that holds at `at`.
    pub fn version_at(&self, at: Timestamp) -> &Name {
        self.eras.iter().find(|era| era.contains(at)).map_or(&self.version, |era| &era.version)
    }

    /// What of a stretch of a window is in the time in which its book holds.
    pub(crate) fn in_force(&self, window: usize, stretch: Interval) -> Option<Interval> {
        let era = self.eras.iter().find(|era| era.windows.contains(&window)).expect("each window is of a book");
        let start = era.from.map_or(stretch.start(), |from| from.max(stretch.start()));
        let end = era.until.map_or(stretch.end(), |until| until.min(stretch.end()));
        Interval::new(start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::Priced;

    fn book(price: &str, factor: &str, window: &str) -> PriceBook {
        let text = format!(
            "currency = \"CNY\"\nzone = \"UTC\"\n[[window]]\nname = \"{window}\"\nfrom = \"22:00\"\nto = \"08:00\"\n\
             [[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"{price}\"\n{window} = \"{factor}\"\n"
        );
        PriceBook::parse(&text).unwrap().unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_closed_month_keeps_its_price_its_window_and_its_version() {
        let (old, new) = (book("10", "0.5", "night"), book("20", "0.7", "late"));
        let both = PriceBook::in_turn(&[(Some(at("2026-04-01T00:00:00Z")), &old), (None, &new)]).unwrap();
        let price = |when: &str| {
            let price = both.find(&Priced::default(), at(when)).unwrap();
            (both.prices()[price].per_card_hour.to_string(), both.version_at(at(when)).clone())
        };
        assert_eq!(price("2026-03-31T23:45:00Z"), ("10".to_owned(), old.version().clone()));
        assert_eq!(price("2026-04-01T00:00:00Z"), ("20".to_owned(), new.version().clone()));
        assert_eq!(both.find(&Priced::default(), at("2025-12-31T00:00:00Z")), None);
        // The night over the month's end is cut where the book ends, and the other book's goes on from there.
        let night = Interval::new(at("2026-03-31T22:00:00Z"), at("2026-04-01T08:00:00Z")).unwrap();
        assert_eq!(both.in_force(0, night).unwrap().end(), at("2026-04-01T00:00:00Z"));
        assert_eq!(both.in_force(1, night).unwrap().start(), at("2026-04-01T00:00:00Z"));
        assert_eq!(both.edges(), [at("2026-01-01T00:00:00Z"), at("2026-04-01T00:00:00Z")]);
        assert_eq!(both.rate(1, Some(1)).factor.to_string(), "0.7");
    }

    #[test]
    fn a_book_of_one_is_that_book() {
        let book = book("10", "0.5", "night");
        let same = PriceBook::in_turn(&[(None, &book)]).unwrap();
        assert_eq!((same.edges(), same.version(), same.prices()), (book.edges(), book.version(), book.prices()));
    }

    #[test]
    fn books_of_two_currencies_are_refused() {
        let text = "currency = \"USD\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"1\"\n";
        let other = PriceBook::parse(text).unwrap().unwrap();
        let refused = PriceBook::in_turn(&[(Some(at("2026-04-01T00:00:00Z")), &book("1", "1", "n")), (None, &other)]);
        assert_eq!(refused.unwrap_err().first, "CNY");
    }
}
