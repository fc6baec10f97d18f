//! What some cards for some hours will cost: the bill of a job that hasn't begun.
//!
//! Time is cut by the same slots, priced by the same book and rounded on the same leaves as the bill's: a job that holds just these cards for just this time, alone
//! on its leaves, is billed what was quoted. Start at [`Quote::of`]. Does not: promise that the cards will be free, or that the prices stay.

use crate::budgets::{Owner, Standing};
use crate::prices::{PriceBook, Priced, Selector};
use crate::slots::{Slots, SlotsError};
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{BUCKET_MS, CardShare, CardTime, Interval, Money, Month, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// How far ahead a cheaper start is looked for. Unit: quarter hours, seven days: a window comes back each week.
const STARTS: i64 = 7 * 24 * 4;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// How many cards.
    pub cards: CardShare,
    /// From when to when; it begins on a quarter hour.
    pub during: Interval,
    /// What they are, as prices select: of a model, for an org and so on.
    pub what: Priced<'a>,
}

/// One leaf of what it will cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedLine {
    /// The billing month.
    pub month: Month,
    /// The price, as an index into the book's prices.
    pub price: usize,
    /// The window, as an index into the book's windows; none outside of all.
    pub window: Option<usize>,
    /// Cards × time.
    pub card_time: CardTime,
    /// What it costs, rounded as the bill rounds.
    pub cost: Money,
}

/// What it will cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// By month, price and window, in this order.
    pub lines: Vec<QuotedLine>,
    /// All of it.
    pub card_time: CardTime,
    /// When the first time without a price begins; then the answer is no, and the lines are those that have one.
    pub hole: Option<Timestamp>,
}

impl Quote {
    /// Errors: as [`Slots::new`].
    pub fn of(question: &Question<'_>, book: &PriceBook) -> Result<Self, SlotsError> {
        Ok(Prices::of(question, book, 0)?.quote(question.during))
    }

    /// The sum of its lines.
    pub fn cost(&self, book: &PriceBook) -> Money {
        let micros = self.lines.iter().map(|line| line.cost.micros()).sum();
        Money::from_micros(micros, book.currency())
    }

    /// What of it falls into some months: what it costs, and its card-time.
    pub fn part(&self, book: &PriceBook, contains: impl Fn(Month) -> bool) -> (Money, CardTime) {
        let lines = || self.lines.iter().filter(|line| contains(line.month));
        let micros = lines().map(|line| line.cost.micros()).sum();
        (Money::from_micros(micros, book.currency()), lines().map(|line| line.card_time).sum())
    }

    /// The start within the next seven days at which the same hours cost least, and what they cost then; none where that is no less than now.
    ///
    /// The earliest of several. Errors: as [`Slots::new`].
    pub fn cheaper(question: &Question<'_>, book: &PriceBook) -> Result<Option<(Timestamp, Money)>, SlotsError> {
        if book.windows().is_empty() && book.edges().iter().all(|edge| *edge <= question.during.start()) {
            return Ok(None);
        }
        let prices = Prices::of(question, book, STARTS)?;
        let now = prices.quote(question.during);
        if now.hole.is_some() {
            return Ok(None);
        }
        let mut best = (question.during.start(), now.cost(book));
        for ahead in 1..=STARTS {
            let later = moved(question.during, ahead * BUCKET_MS);
            let quote = prices.quote(later);
            if quote.hole.is_none() && quote.cost(book) < best.1 {
                best = (later.start(), quote.cost(book));
            }
        }
        Ok(Some(best).filter(|(start, _)| *start != question.during.start()))
    }
}

fn moved(stretch: Interval, ms: i64) -> Interval {
    let shift = |at: Timestamp| Timestamp::from_unix_ms(at.unix_ms() + ms);
    Interval::new(shift(stretch.start()), shift(stretch.end())).expect("as long as before")
}

/// The price of each quarter hour that a question can be about.
struct Prices<'a> {
    slots: Slots,
    /// Of each slot.
    price: Vec<Option<usize>>,
    book: &'a PriceBook,
    cards: CardShare,
}

impl<'a> Prices<'a> {
    fn of(question: &Question<'_>, book: &'a PriceBook, ahead: i64) -> Result<Self, SlotsError> {
        let start = question.during.start().bucket_start();
        let last = Timestamp::from_unix_ms(question.during.end().unix_ms() - 1 + ahead * BUCKET_MS).bucket_start();
        let end = Timestamp::from_unix_ms(last.unix_ms() + BUCKET_MS);
        let range = Interval::new(start, end).expect("a bucket at least");
        let slots = Slots::new(range, Some(book), book.zone(), None)?;
        let price_at = |at: Option<Timestamp>| at.and_then(|at| book.find(&question.what, at));
        let price = slots.all().iter().map(|slot| price_at(slot.effective_at)).collect();
        Ok(Self { slots, price, book, cards: question.cards })
    }

    fn quote(&self, during: Interval) -> Quote {
        let mut leaves: BTreeMap<(Month, usize, Option<usize>), CardTime> = BTreeMap::new();
        let (mut hole, mut all) = (None, CardTime::ZERO);
        for (bucket, piece) in during.buckets() {
            let number = self.slots.slot_of(bucket).expect("slots cover what can be asked");
            let slot = self.slots.slot(number);
            let time = CardTime::of(self.cards, piece);
            all += time;
            match self.price[number as usize] {
                Some(price) => *leaves.entry((slot.month, price, slot.window)).or_default() += time,
                None => hole = hole.or(Some(piece.start())),
            }
        }
        let line = |((month, price, window), card_time)| QuotedLine {
            month,
            price,
            window,
            card_time,
            cost: self.book.rate(price, window).charge(card_time, self.book.currency()),
        };
        Quote { lines: leaves.into_iter().map(line).collect(), card_time: all, hole }
    }
}

/// A quote as a table: a row a line, and all of it together.
///
/// Columns: `month price window card_hours standard_card_hours per_card_hour factor cost currency`.
pub fn table(quote: &Quote, book: &PriceBook, title: String) -> Table {
    let columns = [
        ("month", Kind::Text),
        ("price", Kind::Text),
        ("window", Kind::Text),
        ("card_hours", Kind::Hours),
        ("standard_card_hours", Kind::Hours),
        ("per_card_hour", Kind::Money),
        ("factor", Kind::Money),
        ("cost", Kind::Money),
        ("currency", Kind::Text),
    ];
    let digits = u32::from(book.currency().minor_digits());
    let money = |money: Money| {
        let decimal = Decimal::from_i128_with_scale(money.micros(), 6);
        Value::Decimal(decimal.trunc_with_scale(digits))
    };
    let currency = || Value::Text(book.currency().code().into());
    let standard = |line: &QuotedLine| {
        let coefficient = book.prices()[line.price].coefficient;
        crate::report::standard_card_hours(line.card_time, coefficient)
    };
    let row = |line: &QuotedLine| {
        let rate = book.rate(line.price, line.window);
        vec![
            Value::Text(line.month.to_string().into()),
            Value::Text(book.prices()[line.price].price_line.clone()),
            line.window.map_or(Value::Absent, |window| Value::Text(book.windows()[window].name.clone())),
            Value::Decimal(line.card_time.card_hours()),
            Value::Decimal(standard(line)),
            Value::Decimal(rate.per_card_hour),
            Value::Decimal(rate.factor),
            money(line.cost),
            currency(),
        ]
    };
    let rows: Vec<_> = quote.lines.iter().map(row).collect();
    let time: CardTime = quote.lines.iter().map(|line| line.card_time).sum();
    let total = (!rows.is_empty()).then(|| {
        vec![
            Value::Absent,
            Value::Absent,
            Value::Absent,
            Value::Decimal(time.card_hours()),
            Value::Decimal(quote.lines.iter().map(standard).sum()),
            Value::Absent,
            Value::Absent,
            money(quote.cost(book)),
            currency(),
        ]
    });
    let columns = columns.into_iter().map(|(name, kind)| Column { name: name.to_owned(), kind }).collect();
    Table { title, columns, rows, total, notes: Vec::new() }
}

/// What it leaves of each budget that would pay for it, in a sentence each. `owner`: who asks, and for what.
pub fn budget_notes(quote: &Quote, book: &PriceBook, standings: &[Standing], owner: &Owner<'_>) -> Vec<String> {
    let paying = standings.iter().filter(|standing| standing.budget.scope.covers(owner));
    paying
        .filter_map(|standing| {
            let unit = &standing.budget.unit;
            let (cost, time) = quote.part(book, |month| standing.period.contains(month));
            let (left, asked) = (standing.left()?, unit.of(Some(cost), time)?);
            let shown = |amount| unit.text(amount);
            let (name, after) = (&standing.budget.name, left - asked);
            let verdict = if after < 0 { ", which is not enough" } else { "" };
            Some(format!(
                "budget {name}, {}: {} {} left; this takes {}, {} then{verdict}",
                standing.period,
                shown(left),
                unit.name(),
                shown(asked),
                shown(after)
            ))
        })
        .collect()
}

/// The models that the book has prices for at `at`, each with what a card-hour of it costs; none where no price is by model, so that none need be named.
pub fn models_with_prices(book: &PriceBook, at: Timestamp) -> Option<String> {
    let model_of = |price: usize| {
        let mut given = book.prices()[price].selectors.given();
        given.find(|(selector, _)| *selector == Selector::Model).map(|(_, pattern)| pattern)
    };
    let holds = |price: &usize| book.prices()[*price].from <= at;
    let all: Vec<usize> = (0..book.prices().len()).filter(holds).collect();
    if all.iter().all(|price| model_of(*price).is_none()) {
        return None;
    }
    let mut models: Vec<String> = Vec::new();
    for price in all {
        let others: Vec<String> = book.prices()[price]
            .selectors
            .given()
            .filter(|(selector, _)| *selector != Selector::Model)
            .map(|(selector, pattern)| format!(", {} {pattern}", selector.name()))
            .collect();
        let model = model_of(price).unwrap_or("any other");
        let text = |cost: Option<Decimal>| {
            format!("{model}{}: {}", others.concat(), cost.map_or_else(String::new, |cost| cost.to_string()))
        };
        // A later price of the same cards takes the place of an earlier one.
        models.retain(|known| !known.starts_with(&text(None)));
        models.push(text(Some(book.prices()[price].per_card_hour)));
    }
    Some(models.join("; "))
}

/// Why there is no price, in a sentence.
pub fn hole_text(question: &Question<'_>, at: Timestamp, zone: Zone) -> String {
    let what = &question.what;
    let known: Vec<String> = crate::prices::Selector::ALL
        .into_iter()
        .filter_map(|selector| Some(format!("{} {}", selector.name(), what.get(selector)?)))
        .collect();
    format!("no price of the book is for {} at {}", known.join(", "), crate::report::local(zone, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportKind;
    use crate::world::{World, at, check, query, range};

    const BOOK: &str = r#"
        [[window]]
        name = "night"
        from = "22:00"
        to = "06:00"
        [[price]]
        from = "2026-01-01"
        model = "h200*"
        per_card_hour = "10"
        coefficient = "2.4"
        night = "0.5"
    "#;

    fn question<'a>(from: &str, to: &str, model: &'a str) -> Question<'a> {
        let what = Priced { model: Some(model), share: Some("1"), ..Priced::default() };
        Question { cards: CardShare::from_cards(8).unwrap(), during: range(from, to), what }
    }

    /// By hand, 8 cards from 31 March 20:00 for 12 hours: 2 h day = 16 × 10 = 160 and 2 h night = 16 × 5 = 80 in March, 6 h night = 48 × 5 = 240 and 2 h day = 160 in April; in all
    /// 96 card-hours, 640, standard 230.4. A job of just that is billed the same.
    #[test]
    fn a_quote_is_what_the_bill_will_say() {
        let book = crate::world::book(BOOK);
        let question = question("2026-03-31T20:00", "2026-04-01T08:00", "H200");
        let quote = Quote::of(&question, &book).unwrap();
        let table = table(&quote, &book, String::new());
        check(
            &table,
            "month price window card_hours standard_card_hours cost currency",
            "2026-03 1 - 16.000000 38.400000 160.00 USD
             2026-03 1 night 16.000000 38.400000 80.00 USD
             2026-04 1 - 16.000000 38.400000 160.00 USD
             2026-04 1 night 48.000000 115.200000 240.00 USD
             --
             - - - 96.000000 230.400000 640.00 USD",
        );
        let world = World::jobs("1 lab vision ann q completed H200 n1 8 2026-03-31T20:00 2026-04-01T08:00");
        let bill = world.report(Some(&book), &query(ReportKind::Bill, "")).table;
        check(
            &bill,
            "card_hours standard_card_hours cost",
            "96.000000 230.400000 640.00\n--\n96.000000 230.400000 640.00",
        );
    }

    /// By hand, 12 hours hold 8 of the night at most: from 22:00 on they cost 8 × (8 × 5 + 4 × 10) = 640 as well; from noon (10 h day, 2 h night) 880. Of 12 hours
    /// from 18:00 on all 8 night hours are in, too: the earliest start that has them, and so costs 640, is the 18:00 of the same day.
    #[test]
    fn the_earliest_of_the_cheapest_starts_is_named() {
        let book = crate::world::book(BOOK);
        let noon = question("2026-03-10T12:00", "2026-03-11T00:00", "h200");
        assert_eq!(Quote::of(&noon, &book).unwrap().cost(&book).to_minor_string(), "880.00");
        let (start, cost) = Quote::cheaper(&noon, &book).unwrap().unwrap();
        assert_eq!((start, &*cost.to_minor_string()), (at("2026-03-10T18:00"), "640.00"));
        let night = question("2026-03-10T22:00", "2026-03-11T06:00", "h200");
        assert_eq!(Quote::cheaper(&night, &book).unwrap(), None, "nothing is cheaper than the night");
    }

    /// The book has models in lower case, since they are alike.
    #[test]
    fn where_prices_go_by_model_the_models_are_named_with_what_they_cost() {
        let text = "[[price]]\nfrom = \"2026-01-01\"\nmodel = \"H200*\"\nper_card_hour = \"18.50\"\n\
                    [[price]]\nfrom = \"2026-03-01\"\nmodel = \"H200*\"\nper_card_hour = \"17\"\n\
                    [[price]]\nfrom = \"2026-01-01\"\nmodel = \"H200*\"\nqueue = \"spot\"\nper_card_hour = \"9\"\n\
                    [[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"6.00\"\n";
        let book = crate::world::book(text);
        let models = |when: &str| models_with_prices(&book, at(when)).unwrap();
        assert_eq!(models("2026-02-01"), "h200*: 18.50; h200*, queue spot: 9; any other: 6.00");
        assert_eq!(models("2026-03-01"), "h200*: 17; h200*, queue spot: 9; any other: 6.00");
        let one = crate::world::book("[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"6\"\n");
        assert_eq!(models_with_prices(&one, at("2026-03-01")), None);
    }

    #[test]
    fn what_has_no_price_is_said_with_its_first_moment() {
        let book = crate::world::book(BOOK);
        let question = question("2025-12-31T23:00", "2026-01-01T01:00", "h200");
        let quote = Quote::of(&question, &book).unwrap();
        assert_eq!(quote.hole, Some(at("2025-12-31T23:00")));
        assert_eq!(quote.lines.len(), 1, "the hour of 2026 has one");
        let other = super::tests::question("2026-03-10T12:00", "2026-03-10T13:00", "T4");
        let hole = Quote::of(&other, &book).unwrap().hole.unwrap();
        assert_eq!(
            hole_text(&other, hole, book.zone()),
            "no price of the book is for model T4, share 1 at 2026-03-10 12:00"
        );
    }
}
