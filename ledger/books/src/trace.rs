//! Where a line of a bill comes from: its charges, the price of each, and the attempts that held the cards (LED-8).
//!
//! The same fold that made the bill says which cells are under the line, so that a trace can't tell another story than the
//! report. Start at [`trace()`].

use crate::bill::{Charge, charge_of};
use crate::line::Line;
use crate::prices::PriceBook;
use crate::report::{Fold, Piece, ReportInput, ReportKind, ReportQuery};
use crate::slots::{Era, Slots, SlotsError};
use crate::table::Value;
use cardhour_domain::{AttemptKey, CardTime, Interval, JobState, Money, Name, Rate, Zone};
use rustc_hash::FxHashMap;

/// What a line is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The line.
    pub line: Line,
    /// The leaves of the bill that are in it, in the order of [`crate::bill::charges`], each with the part that falls to the line.
    pub charges: Vec<TracedCharge>,
    /// The attempts that held its time, most first; their times add up to the line's.
    pub attempts: Vec<TracedAttempt>,
    /// Time held.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// What that costs without windows' factors: the sum of the charges' parts. None where nothing has a price.
    pub list_cost: Option<Money>,
    /// What it costs: the sum of the charges' parts. None where nothing has a price.
    pub cost: Option<Money>,
}

/// A leaf of the bill, and how much of it is in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCharge {
    /// The whole leaf: the time its price was taken on, and its rounded cost.
    pub leaf: Charge,
    /// What the price book says of it; none in a hole or without a book.
    pub price: Option<TracedPrice>,
    /// Time of it that is in the line.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// The part of its list cost that falls to the line.
    pub list_cost: Option<Money>,
    /// The part of its cost that falls to the line.
    pub cost: Option<Money>,
}

/// The price of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedPrice {
    /// Its line of the price book, in words.
    pub text: String,
    /// What the leaf's billed time was multiplied with.
    pub rate: Rate,
}

/// An attempt under a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedAttempt {
    /// Who it is; none for held time that a source gave without a job.
    pub key: Option<AttemptKey>,
    /// Whose it is.
    pub user: Option<Name>,
    /// How it stands.
    pub state: Option<JobState>,
    /// The nodes on which it held that time, in order; empty where no record names one.
    pub nodes: Vec<Name>,
    /// The models of the cards, in order; empty where no record names one.
    pub models: Vec<Name>,
    /// When it held its cards, all of it: the line may be of a part.
    pub held: Option<Interval>,
    /// Its time in the line.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
}

/// Why there is nothing to trace.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TraceError {
    /// No attempt is under the line.
    #[error("nothing is under line {0}: copy the line as the bill has it, and give the same price book")]
    Nothing(Line),
}

impl Line {
    /// The report that has this line.
    pub fn query(&self) -> ReportQuery {
        ReportQuery { report: ReportKind::Bill, by: self.by(), range: self.range, zone: self.zone }
    }

    /// The slots to trace it by, and so the months to load: those of its range, month or day, else of `all` there is.
    ///
    /// Errors: as [`Slots::new`].
    pub fn slots(&self, all: Interval, book: Option<&PriceBook>, billing_zone: Zone) -> Result<Slots, SlotsError> {
        self.query().slots(self.within(billing_zone).unwrap_or(all), book, billing_zone)
    }
}

/// What `line` is made of. `slots` are those of [`Line::slots`]; `input` was numbered by them.
///
/// Errors: nothing is under the line.
pub fn trace(line: &Line, input: &ReportInput, slots: &Slots, book: Option<&PriceBook>) -> Result<Trace, TraceError> {
    let nothing = || TraceError::Nothing(line.clone());
    let query = line.query();
    let fold = Fold::of(input, slots, book, &query);
    let wanted: Vec<Value> =
        line.values.iter().map(|(_, value)| value.clone().map_or(Value::Absent, Value::Text)).collect();
    let place = fold.rows.iter().position(|key| key.era == Era::Shown && key.values == wanted).ok_or_else(nothing)?;
    let sums = &fold.sums[place];
    let row = u32::try_from(place).expect("rows are numbered by 32 bits");
    let attempts = attempts(input, &fold, row);
    if attempts.is_empty() {
        return Err(nothing());
    }
    let pieces = fold.pieces.all.iter().filter(|piece| piece.row == row);
    let mut charges: Vec<TracedCharge> = pieces.map(|piece| charge(&fold, piece, book)).collect();
    charges.sort_by(|a, b| a.leaf.order().cmp(&b.leaf.order()));

    let held: CardTime = charges.iter().map(|charge| charge.card_time).sum();
    assert_eq!(held, sums.held, "LED-8: the charges of a line hold its time");
    let held: CardTime = attempts.iter().map(|attempt| attempt.card_time).sum();
    assert_eq!(held, sums.held, "LED-8: the attempts of a line hold its time");
    let cost: i128 = charges.iter().filter_map(|charge| charge.cost).map(Money::micros).sum();
    assert_eq!(cost, sums.money.map_or(0, |money| money.cost), "LED-6: the charges of a line add up to it");
    Ok(Trace {
        line: line.clone(),
        charges,
        attempts,
        card_time: sums.held,
        billed_time: sums.billed,
        list_cost: amount(sums.money.map(|money| money.list_cost), book),
        cost: amount(sums.money.map(|money| money.cost), book),
    })
}

fn charge(fold: &Fold<'_>, piece: &Piece, book: Option<&PriceBook>) -> TracedCharge {
    let leaf = &fold.leaves.all()[piece.leaf as usize];
    let price = leaf
        .price
        .zip(book)
        .map(|(price, book)| TracedPrice { text: book.price_text(price), rate: book.rate(price, leaf.window) });
    TracedCharge {
        leaf: charge_of(leaf, book),
        price,
        card_time: piece.card_time,
        billed_time: piece.billed_time,
        list_cost: amount(piece.list_cost, book),
        cost: amount(piece.cost, book),
    }
}

/// The attempts of a row's held cells, and those in it that never held anything.
fn attempts(input: &ReportInput, fold: &Fold<'_>, row: u32) -> Vec<TracedAttempt> {
    let mut traced: FxHashMap<Option<u32>, TracedAttempt> = FxHashMap::default();
    let cells = (0..).zip(&input.cells);
    for (_, cell) in cells.filter(|(i, _)| fold.row_of_cell(*i) == Some(row)) {
        let of = traced.entry(cell.attempt).or_insert_with(|| {
            let attempt = cell.attempt.map(|index| &input.attempts[index as usize]);
            TracedAttempt {
                key: attempt.map(|attempt| attempt.key.clone()),
                user: attempt.and_then(|attempt| attempt.user.clone()),
                state: attempt.map(|attempt| attempt.state),
                nodes: Vec::new(),
                models: Vec::new(),
                held: attempt.and_then(|attempt| attempt.held),
                card_time: CardTime::ZERO,
                billed_time: CardTime::ZERO,
            }
        });
        of.card_time += cell.card_time;
        of.billed_time += cell.billed_time;
        for (names, name) in [(&mut of.nodes, &cell.node), (&mut of.models, &cell.model)] {
            if let Some(name) = name
                && let Err(place) = names.binary_search(name)
            {
                names.insert(place, name.clone());
            }
        }
    }
    for &(_, index) in fold.never_held.iter().filter(|(of, _)| *of == row) {
        let attempt = &input.attempts[index as usize];
        traced.insert(
            Some(index),
            TracedAttempt {
                key: Some(attempt.key.clone()),
                user: attempt.user.clone(),
                state: Some(attempt.state),
                nodes: Vec::new(),
                models: Vec::new(),
                held: attempt.held,
                card_time: CardTime::ZERO,
                billed_time: CardTime::ZERO,
            },
        );
    }
    let mut attempts: Vec<TracedAttempt> = traced.into_values().collect();
    attempts.sort_by(|a, b| b.card_time.cmp(&a.card_time).then_with(|| a.key.cmp(&b.key)));
    attempts
}

fn amount(micros: Option<i128>, book: Option<&PriceBook>) -> Option<Money> {
    micros.zip(book).map(|(micros, book)| Money::from_micros(micros, book.currency()))
}

#[cfg(test)]
mod tests;
