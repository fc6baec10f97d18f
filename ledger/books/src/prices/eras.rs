//! Price books one after the other: those that closed months were closed by, then the one of today (LED-5).
//!
//! A closed month keeps its book, whatever is written into the ledger's price book later. So that reports need not know of it, the books are put together
//! into one in which each holds over its own time.

use super::{Price, PriceBook};
use cardhour_domain::{Currency, Interval, Name, Timestamp};
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
    pub currency: Currency,
    /// Its prices are left out: only those of another currency were asked for. What then has no price is no hole.
    pub is_left_out: bool,
}

impl Era {
    fn contains(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at) && self.until.is_none_or(|until| at < until)
    }
}

/// The later of two beginnings; none is the beginning of time.
fn later(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.max(other)
}

/// The earlier of two ends; none is never.
fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
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
        match books.iter().find(|(_, book)| book.currency != first.currency) {
            None => Ok(Self::in_turn_each(books)),
            Some((_, other)) => {
                let (first, other) = (first.currency.to_string(), other.currency.to_string());
                Err(OtherCurrency { first, other })
            }
        }
    }

    /// The same of books of any currencies: each price is in that of its own book, and whoever adds amounts up has to tell them apart ([`Self::currency_of`]). Its
    /// own currency is that of the last one. Panics without any book.
    pub fn in_turn_each(books: &[(Option<Timestamp>, &Self)]) -> Self {
        let first = books.first().map(|(_, book)| *book).expect("a book of at least one");
        let mut whole = Self { prices: Vec::new(), windows: Vec::new(), ..first.clone() };
        let (mut eras, mut from): (Vec<Era>, Option<Timestamp>) = (Vec::new(), None);
        let count: usize = books.iter().map(|(_, book)| book.windows.len()).sum();
        for &(until, book) in books {
            let (prices, windows) = (whole.prices.len(), whole.windows.len());
            whole.windows.extend(book.windows.iter().cloned());
            whole.prices.extend(book.prices.iter().map(|price| {
                let mut factors = vec![None; count];
                factors[windows..windows + price.factors.len()].clone_from_slice(&price.factors);
                Price { factors, ..price.clone() }
            }));
            // One that was put together itself keeps what holds in its own time.
            for era in &book.eras {
                let (start, end) = (later(from, era.from), earlier(until, era.until));
                if start.zip(end).is_some_and(|(start, end)| end <= start) {
                    continue;
                }
                eras.push(Era {
                    from: start,
                    until: end,
                    prices: era.prices.start + prices..era.prices.end + prices,
                    windows: era.windows.start + windows..era.windows.end + windows,
                    ..era.clone()
                });
            }
            from = until;
        }
        let last = &eras[eras.len() - 1];
        let (version, currency) = (last.version.clone(), last.currency);
        let edges = eras.iter().flat_map(|era| whole.edges_of(era)).collect();
        let sets = super::sets(&whole.prices);
        Self { eras, edges, version, currency, sets, ..whole }
    }

    /// Every currency in which something may have a price, in the order in which they came into force, each once.
    pub fn currencies(&self) -> Vec<Currency> {
        let mut currencies = Vec::new();
        for era in self.eras.iter().filter(|era| !era.is_left_out) {
            if !currencies.contains(&era.currency) {
                currencies.push(era.currency);
            }
        }
        currencies
    }

    /// This book with the prices of one currency alone, cut by the same edges and windows. What has its price in another has none here, and is no hole.
    pub fn only(&self, currency: Currency) -> Self {
        let mut one = Self { currency, ..self.clone() };
        for era in one.eras.iter_mut().filter(|era| era.currency != currency) {
            (era.prices, era.is_left_out) = (0..0, true);
        }
        one
    }

    /// The currency of a price.
    pub fn currency_of(&self, price: usize) -> Currency {
        self.eras.iter().find(|era| era.prices.contains(&price)).map_or(self.currency, |era| era.currency)
    }

    /// The currency while the prices of `effective_at` are the latest; none: before any price begins.
    pub fn currency_at(&self, effective_at: Option<Timestamp>) -> Currency {
        self.era_at(effective_at).map_or(self.currency, |era| era.currency)
    }

    /// Whether what has no price then has one in a currency that was left out.
    pub(crate) fn is_left_out(&self, effective_at: Option<Timestamp>) -> bool {
        self.era_at(effective_at).is_some_and(|era| era.is_left_out)
    }

    fn era_at(&self, effective_at: Option<Timestamp>) -> Option<&Era> {
        match effective_at {
            Some(at) => self.eras.iter().find(|era| era.contains(at)),
            None => self.eras.first(),
        }
    }

    /// The price of that line, and the window of that name, of the book that holds at `at`: books one after the other may call different ones alike.
    pub(crate) fn named_at(&self, line: &str, window: Option<&str>, at: Timestamp) -> Option<(usize, Option<usize>)> {
        let era = self.era_at(Some(at))?;
        let price = era.prices.clone().find(|price| &*self.prices[*price].price_line == line)?;
        let window = window.and_then(|name| era.windows.clone().find(|window| &*self.windows[*window].name == name));
        Some((price, window))
    }

    /// The windows of the book that a price is of.
    pub(crate) fn windows_of(&self, price: usize) -> Range<usize> {
        self.eras.iter().find(|era| era.prices.contains(&price)).map_or(0..0, |era| era.windows.clone())
    }

    /// From the first to the last moment in a stretch at which prices in a currency are in force; none where they never are.
    pub(crate) fn reign(&self, currency: Currency, stretch: Interval) -> Option<Interval> {
        let mut during: Option<Interval> = None;
        for era in self.eras.iter().filter(|era| era.currency == currency) {
            let start = era.from.map_or(stretch.start(), |from| from.max(stretch.start()));
            let end = era.until.map_or(stretch.end(), |until| until.min(stretch.end()));
            let Some(part) = Interval::new(start, end) else { continue };
            during = Interval::new(during.map_or(part.start(), |during| during.start()), part.end());
        }
        during
    }

    /// A book of this currency and zone in which nothing has a price.
    pub fn without_prices(&self) -> Self {
        let (version, currency) = (self.version.clone(), self.currency);
        let era = Era { from: None, until: None, prices: 0..0, windows: 0..0, version, currency, is_left_out: false };
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

    /// By hand: 10 in March, 20 in April, both CNY and put together before; 7 USD from May on, as today's book. Each price is found in its own time and in its own currency.
    #[test]
    fn books_of_two_currencies_hold_one_after_the_other() {
        let (march, april) = (book("10", "0.5", "night"), book("20", "0.7", "late"));
        let (first, second) = (at("2026-04-01T00:00:00Z"), at("2026-05-01T00:00:00Z"));
        let closed = PriceBook::in_turn(&[(Some(first), &march), (Some(second), &april)]).unwrap();
        let text = "currency = \"USD\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"7\"\n";
        let today = PriceBook::parse(text).unwrap().unwrap();
        let both = PriceBook::in_turn_each(&[(Some(second), &closed), (None, &today)]);
        let codes: Vec<String> = both.currencies().iter().map(ToString::to_string).collect();
        assert_eq!((codes, both.currency().code()), (vec!["CNY".to_owned(), "USD".to_owned()], "USD"));
        let price = |book: &PriceBook, when: &str| {
            let price = book.find(&Priced::default(), at(when))?;
            Some(format!("{} {}", book.prices()[price].per_card_hour, book.currency_of(price)))
        };
        let said = |book: &PriceBook| {
            ["2026-03-10T00:00:00Z", "2026-04-10T00:00:00Z", "2026-05-10T00:00:00Z"].map(|when| price(book, when))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(said(&both), [some("10 CNY"), some("20 CNY"), some("7 USD")]);
        let (yuan, dollars) = (both.only(closed.currency()), both.only(today.currency()));
        assert_eq!(said(&yuan), [some("10 CNY"), some("20 CNY"), None]);
        assert_eq!(said(&dollars), [None, None, some("7 USD")]);
        assert!(yuan.is_left_out(Some(at("2026-05-10T00:00:00Z"))) && !yuan.is_left_out(Some(first)));
        let year = Interval::new(at("2026-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z")).unwrap();
        assert_eq!(both.reign(today.currency(), year), Interval::new(second, year.end()));
        // All cut time alike, so that slots of one are slots of each.
        assert_eq!((both.edges(), both.windows().len()), (yuan.edges(), yuan.windows().len()));
        // The window of a price is that of its own book, whatever another calls alike.
        assert_eq!(both.named_at("1", Some("late"), first), Some((1, Some(1))));
        assert_eq!(both.named_at("1", Some("late"), second), Some((2, None)));
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
