//! Spreads the rounded leaves of the bill over the rows of a report (LED-6).

use super::bundles::Bundle;
use super::rows::RowKey;
use super::sums::{RowMoney, standard};
use crate::bill::{Leaves, NO_LEAF};
use crate::prices::PriceBook;
use crate::slots::Era;
use cardhour_domain::{CardTime, spread_by};
use rustc_hash::FxHashMap;

/// What of one leaf falls into one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub leaf: u32,
    /// Place of the row in the order of values.
    pub row: u32,
    pub card_time: CardTime,
    pub billed_time: CardTime,
    /// Its part of the leaf's rounded amounts. Unit: millionths of the currency; none where the leaf has no price.
    pub list_cost: Option<i128>,
    pub cost: Option<i128>,
}

/// Spreads the amounts of a leaf over what lies before the range, in it and after it, and each of those over its pieces.
fn spread_over(pieces: &mut [Piece], rows: &[RowKey], list_cost: i128, cost: i128) {
    let weight = |piece: &Piece| piece.billed_time.part_ms();
    let mut eras: Vec<(Era, Vec<&mut Piece>)> = Vec::new();
    for era in [Era::Before, Era::Shown, Era::After] {
        eras.push((era, Vec::new()));
    }
    for piece in pieces {
        let era = rows[piece.row as usize].era;
        eras.iter_mut().find(|(of, _)| *of == era).expect("all three are there").1.push(piece);
    }
    eras.retain(|(_, pieces)| !pieces.is_empty());
    let weights: Vec<i128> = eras.iter().map(|(_, pieces)| pieces.iter().map(|piece| weight(piece)).sum()).collect();
    let parts = spread_by(list_cost, &weights).into_iter().zip(spread_by(cost, &weights));
    for ((_, pieces), (list_cost, cost)) in eras.into_iter().zip(parts) {
        let weights: Vec<i128> = pieces.iter().map(|piece| weight(piece)).collect();
        let amounts = spread_by(list_cost, &weights).into_iter().zip(spread_by(cost, &weights));
        for (piece, (list_cost, cost)) in pieces.into_iter().zip(amounts) {
            (piece.list_cost, piece.cost) = (Some(list_cost), Some(cost));
        }
    }
}

/// All pieces of all leaves.
pub(crate) struct Pieces {
    /// By leaf, then by row.
    pub all: Vec<Piece>,
    /// Whether some leaf with a price is in more than one row, so that amounts have six decimals.
    pub cut: bool,
}

impl Pieces {
    /// `row_of`: the row's place of each bundle.
    ///
    /// A leaf in one row is there whole. One in several is spread by its unrounded cost, which inside of one leaf is its
    /// billed time, by largest remainder; of equal remainders the one whose row comes first takes it, and rows are in the order of their
    /// values. A range that cuts the leaf's month cuts the amount first, and what is shown of it is spread then: so that every grouping
    /// of a range has one total, too.
    pub fn of(leaves: &Leaves<'_>, bundles: &[Bundle], row_of: &[u32], rows: &[RowKey]) -> Self {
        let mut sums: FxHashMap<(u32, u32), (CardTime, CardTime)> = FxHashMap::default();
        for ((bundle, &leaf), &row) in bundles.iter().zip(&leaves.of_bundle).zip(row_of) {
            if leaf != NO_LEAF {
                let (card_time, billed_time) = sums.entry((leaf, row)).or_default();
                *card_time += bundle.card_time;
                *billed_time += bundle.billed_time;
            }
        }
        let mut all: Vec<Piece> = sums
            .into_iter()
            .map(|((leaf, row), (card_time, billed_time))| Piece {
                leaf,
                row,
                card_time,
                billed_time,
                list_cost: None,
                cost: None,
            })
            .collect();
        all.sort_unstable_by_key(|piece| (piece.leaf, piece.row));
        let mut cut = false;
        for pieces in all.chunk_by_mut(|a, b| a.leaf == b.leaf) {
            let leaf = &leaves.all()[pieces[0].leaf as usize];
            let (Some(list_cost), Some(cost)) = (leaf.list_cost, leaf.cost) else { continue };
            if let [whole] = pieces {
                (whole.list_cost, whole.cost) = (Some(list_cost.micros()), Some(cost.micros()));
                continue;
            }
            cut = true;
            spread_over(pieces, rows, list_cost.micros(), cost.micros());
        }
        let pieces = Self { all, cut };
        pieces.assert_entries_add_up(leaves);
        pieces
    }

    /// The money of each row, by place; none where nothing in it has a price.
    pub fn by_row(&self, leaves: &Leaves<'_>, book: &PriceBook, rows: usize) -> Vec<Option<RowMoney>> {
        let mut money = vec![None; rows];
        for piece in &self.all {
            let price = leaves.all()[piece.leaf as usize].price;
            if let (Some(price), Some(list_cost), Some(cost)) = (price, piece.list_cost, piece.cost) {
                let standard = standard(piece.billed_time, book.prices()[price].coefficient);
                let row: &mut Option<RowMoney> = &mut money[piece.row as usize];
                row.get_or_insert_default().add(RowMoney { list_cost, cost, standard });
            }
        }
        money
    }

    fn assert_entries_add_up(&self, leaves: &Leaves<'_>) {
        let of_pieces = |amount: fn(&Piece) -> Option<i128>| self.all.iter().filter_map(amount).sum::<i128>();
        let cost: i128 = leaves.all().iter().filter_map(|leaf| leaf.cost).map(|cost| cost.micros()).sum();
        let list_cost: i128 = leaves.all().iter().filter_map(|leaf| leaf.list_cost).map(|cost| cost.micros()).sum();
        assert_eq!(of_pieces(|piece| piece.cost), cost, "LED-6: pieces add up to the rounded leaves");
        assert_eq!(of_pieces(|piece| piece.list_cost), list_cost, "LED-6: pieces add up to the rounded leaves");
        let time: CardTime = leaves.all().iter().map(|leaf| leaf.card_time).sum();
        assert_eq!(
            self.all.iter().map(|piece| piece.card_time).sum::<CardTime>(),
            time,
            "LED-7: pieces hold what the leaves hold"
        );
    }
}
