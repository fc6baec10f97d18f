//! From card-time to money: the leaves of the bill, each rounded once.
//!
//! A *leaf* is org × project × user × model × line of the price book × window × billing month (LED-6). Its card-time is summed
//! exactly over the whole month, whatever part of it is shown, and its price is taken once, from that sum. Everything else that
//! is said of money is a sum of leaves, or a leaf spread over pieces ([`crate::report`]).
//!
//! Start at [`charges`]. Does not: group, cut, or show anything; know of closed months.

mod holes;
mod leaves;
mod pieces;

pub use holes::{Hole, describe_holes};
pub(crate) use leaves::{Leaf, Leaves, NO_LEAF, Owned};
pub use pieces::{AttemptPiece, charges_by_attempt};

use crate::line::Line;
use crate::prices::PriceBook;
use crate::report::bundles::Bundles;
use crate::report::{Dimension, ReportInput, UNOWNED};
use crate::slots::Slots;
use cardhour_domain::{CardTime, Money, Month, Name};

/// One leaf of the bill: a row of the table `charges`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Its id, which `trace` takes.
    pub line: Line,
    /// Billing month.
    pub month: Month,
    /// Who pays, at the top.
    pub org: Option<Name>,
    /// Who pays.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
    /// Model of the cards.
    pub model: Option<Name>,
    /// The line of the price book; none without a book, or in a hole of it.
    pub price_line: Option<Name>,
    /// Version of the price book; none without one.
    pub price_version: Option<Name>,
    /// The price window; none outside of all.
    pub window: Option<Name>,
    /// Time held.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// What the billed time costs without the window's factor, rounded; none where nothing has a price.
    pub list_cost: Option<Money>,
    /// What it costs, rounded; none where nothing has a price. Its currency is the book's.
    pub cost: Option<Money>,
}

/// The leaves of the months that `slots` covers, in order of their values.
///
/// Held time without a price is a charge too, without money: so the hours of all charges are the hours held, and what
/// `close` has to refuse can be seen. Without a price book every charge is such.
pub fn charges(input: &ReportInput, slots: &Slots, book: Option<&PriceBook>) -> Vec<Charge> {
    let leaves = Leaves::of(&Bundles::of(input, &[]), slots, book);
    let mut charges: Vec<Charge> = leaves.all().iter().map(|leaf| charge_of(leaf, book)).collect();
    charges.sort_by(|a, b| a.order().cmp(&b.order()));
    charges
}

impl Charge {
    /// What charges are sorted by: month, then owner, model, price and window.
    pub(crate) fn order(&self) -> (Month, [&Option<Name>; 6]) {
        let Self { org, project, user, model, price_line, window, .. } = self;
        (self.month, [org, project, user, model, price_line, window])
    }
}

/// A leaf with its names.
pub(crate) fn charge_of(leaf: &Leaf<'_>, book: Option<&PriceBook>) -> Charge {
    let [org, project, user] = leaf.owner.map(|name| name.cloned());
    let model = leaf.model.cloned();
    let price_line = leaf.price_line(book).cloned();
    let window = leaf.window_name(book).cloned();
    let line = leaf_line(leaf.month, [&org, &project, &user], [&model, &price_line, &window]);
    Charge {
        line,
        month: leaf.month,
        org,
        project,
        user,
        model,
        price_line,
        price_version: book.map(|book| book.version_at(leaf.month.interval(book.zone()).start()).clone()),
        window,
        card_time: leaf.card_time,
        billed_time: leaf.billed_time,
        list_cost: leaf.list_cost,
        cost: leaf.cost,
    }
}

/// The line that is one leaf: of a month, an owner, and of a model at a price in a window.
pub(crate) fn leaf_line(
    month: Month,
    [org, project, user]: [&Option<Name>; 3],
    [model, price_line, window]: [&Option<Name>; 3],
) -> Line {
    let unowned = org.is_none() && project.is_none() && user.is_none();
    let values = Dimension::LEAF
        .into_iter()
        .map(|dimension| {
            let value = match &dimension {
                Dimension::Month => Some(month.to_string().into()),
                Dimension::Org | Dimension::Project | Dimension::User if unowned => Some(UNOWNED.into()),
                Dimension::Org => org.clone(),
                Dimension::Project => project.clone(),
                Dimension::User => user.clone(),
                Dimension::Model => model.clone(),
                Dimension::Price => price_line.clone(),
                Dimension::Window => window.clone(),
                other => unreachable!("{other} is no part of a leaf"),
            };
            (dimension, value)
        })
        .collect();
    Line { values, ..Line::default() }
}

#[cfg(test)]
mod tests;
