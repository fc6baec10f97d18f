//! Holes in the price book: held time that no price is for.

use crate::prices::{PriceBook, Priced, Selector};
use cardhour_domain::{CardTime, Interval, Name, Timestamp};
use rustc_hash::FxHashMap;
use std::fmt;

/// Held and billed time without a price, by all that the book's prices look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hole {
    /// What it is, by the selectors that some price of the book uses, the model always among them; none for an absent value.
    pub what: Vec<(Selector, Option<Name>)>,
    /// From the first such time to the last, to the width of a slot: it need not be without a price all through.
    pub during: Interval,
    /// How much of it is billed.
    pub billed_time: CardTime,
}

/// Counts holes.
pub(super) struct Holes {
    used: Vec<Selector>,
    numbers: FxHashMap<(Vec<Option<Name>>, Option<Timestamp>), u32>,
    what: Vec<Vec<(Selector, Option<Name>)>>,
    sums: Vec<Option<(Interval, CardTime)>>,
}

impl Holes {
    pub fn new(book: &PriceBook) -> Self {
        let uses =
            |selector| book.prices().iter().any(|price| price.selectors.given().any(|(given, _)| given == selector));
        let used =
            Selector::ALL.into_iter().filter(|selector| *selector == Selector::Model || uses(*selector)).collect();
        Self { used, numbers: FxHashMap::default(), what: Vec::new(), sums: Vec::new() }
    }

    /// The number of the hole that `what` falls into while the prices of `effective_at` are the latest.
    pub fn number(&mut self, what: &Priced<'_>, effective_at: Option<Timestamp>) -> u32 {
        let values: Vec<Option<Name>> = self.used.iter().map(|selector| what.get(*selector).map(Into::into)).collect();
        *self.numbers.entry((values, effective_at)).or_insert_with_key(|(values, _)| {
            self.what.push(self.used.iter().copied().zip(values.iter().cloned()).collect());
            self.sums.push(None);
            u32::try_from(self.sums.len() - 1).expect("fewer holes than cells")
        })
    }

    /// Adds billed time of some slot. What isn't billed needs no price.
    pub fn add(&mut self, hole: u32, billed_time: CardTime, span: Interval) {
        if billed_time.is_zero() {
            return;
        }
        let sum = &mut self.sums[hole as usize];
        let (during, billed) = sum.unwrap_or((span, CardTime::ZERO));
        let during = Interval::new(during.start().min(span.start()), during.end().max(span.end())).expect("spans grow");
        *sum = Some((during, billed + billed_time));
    }

    /// Those with some billed time, in order of their values.
    pub fn into_list(self) -> Vec<Hole> {
        let sums = self.what.into_iter().zip(self.sums);
        let mut holes: Vec<Hole> = sums
            .filter_map(|(what, sum)| sum.map(|(during, billed_time)| Hole { what, during, billed_time }))
            .collect();
        holes.sort();
        holes
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no price for")?;
        for (i, (selector, value)) in self.what.iter().enumerate() {
            let separator = if i > 0 { "," } else { "" };
            match value {
                Some(value) => write!(f, "{separator} {} {value}", selector.name())?,
                None => write!(f, "{separator} an absent {}", selector.name())?,
            }
        }
        let Self { during, billed_time, .. } = self;
        write!(
            f,
            " between {} and {}: {} card-hours without money",
            during.start(),
            during.end(),
            billed_time.card_hours()
        )
    }
}

/// Holes as sentences for people, the largest first, at most ten of them and a count of the rest.
pub fn describe_holes(holes: &[Hole]) -> Vec<String> {
    const MOST: usize = 10;
    let mut largest: Vec<&Hole> = holes.iter().collect();
    largest.sort_by(|a, b| b.billed_time.cmp(&a.billed_time).then(a.cmp(b)));
    let mut notes: Vec<String> =
        largest.iter().take(MOST).map(|hole| format!("hole in the price book: {hole}")).collect();
    if largest.len() > MOST {
        let rest: CardTime = largest[MOST..].iter().map(|hole| hole.billed_time).sum();
        notes.push(format!(
            "{} more holes in the price book: {} card-hours without money",
            largest.len() - MOST,
            rest.card_hours()
        ));
    }
    notes
}
