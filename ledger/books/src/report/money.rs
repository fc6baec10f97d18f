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
    /// Of the billed time, what was idle.
    pub billed_idle: CardTime,
    /// Its part of the leaf's rounded amounts. Unit: millionths of the currency; none where the leaf has no price.
    pub list_cost: Option<i128>,
    pub cost: Option<i128>,
    /// What of the leaf's idle cost falls to its billed idle time; zero where the leaf has none, or no price.
    pub idle_cost: i128,
    /// What of the rest of the leaf's cost falls to the rest of its billed time.
    pub rest_cost: i128,
}

impl Piece {
    fn billed(&self) -> i128 {
        self.billed_time.part_ms()
    }

    fn idle(&self) -> i128 {
        self.billed_idle.part_ms()
    }

    fn rest(&self) -> i128 {
        self.billed() - self.idle()
    }
}

/// The places of a leaf's pieces that lie before the range, in it and after it; those that there are, in this order.
fn eras(pieces: &[Piece], rows: &[RowKey]) -> Vec<Vec<usize>> {
    let mut eras = [const { Vec::new() }; 3];
    for (place, piece) in pieces.iter().enumerate() {
        let era = match rows[piece.row as usize].era {
            Era::Before => 0,
            Era::Shown => 1,
            Era::After => 2,
        };
        eras[era].push(place);
    }
    eras.into_iter().filter(|places: &Vec<usize>| !places.is_empty()).collect()
}

/// Spreads an amount of a leaf over the eras, and each era's part over its pieces.
fn spread_over(pieces: &[Piece], eras: &[Vec<usize>], amount: i128, weight: fn(&Piece) -> i128) -> Vec<i128> {
    let weights: Vec<Vec<i128>> =
        eras.iter().map(|places| places.iter().map(|&place| weight(&pieces[place])).collect()).collect();
    let of_eras: Vec<i128> = weights.iter().map(|weights| weights.iter().sum()).collect();
    let mut parts = vec![0; pieces.len()];
    for ((places, weights), amount) in eras.iter().zip(&weights).zip(spread_by(amount, &of_eras)) {
        for (&place, part) in places.iter().zip(spread_by(amount, weights)) {
            parts[place] = part;
        }
    }
    parts
}

/// Cuts a leaf's rounded cost into what its idle time cost and the rest, and spreads both over its pieces.
///
/// The leaf is cut first, by its billed time of all rows, so that the idle cost of a report is the same by any grouping. Each of the two is spread by
/// itself, so in a row that holds a part of the leaf they add up to its cost but for a millionth; all rows' add up exactly (LED-6).
fn cut_idle(pieces: &mut [Piece], eras: &[Vec<usize>], cost: i128) {
    let (idle, rest) = pieces.iter().fold((0, 0), |(idle, rest), piece| (idle + piece.idle(), rest + piece.rest()));
    if idle == 0 {
        pieces.iter_mut().for_each(|piece| piece.rest_cost = piece.cost.expect("it was spread before"));
        return;
    }
    let [of_idle, of_rest] = spread_by(cost, &[idle, rest])[..] else { unreachable!("a piece for each weight") };
    let of_idle = spread_over(pieces, eras, of_idle, Piece::idle);
    let of_rest = spread_over(pieces, eras, of_rest, Piece::rest);
    for ((piece, idle), rest) in pieces.iter_mut().zip(of_idle).zip(of_rest) {
        (piece.idle_cost, piece.rest_cost) = (idle, rest);
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
        let mut sums: FxHashMap<(u32, u32), [CardTime; 3]> = FxHashMap::default();
        for ((bundle, &leaf), &row) in bundles.iter().zip(&leaves.of_bundle).zip(row_of) {
            if leaf != NO_LEAF {
                let [card_time, billed_time, billed_idle] = sums.entry((leaf, row)).or_default();
                *card_time += bundle.card_time;
                *billed_time += bundle.billed_time;
                if let Some(used) = &bundle.used {
                    *billed_idle += used.billed_idle;
                }
            }
        }
        let mut all: Vec<Piece> = sums
            .into_iter()
            .map(|((leaf, row), [card_time, billed_time, billed_idle])| Piece {
                leaf,
                row,
                card_time,
                billed_time,
                billed_idle,
                list_cost: None,
                cost: None,
                idle_cost: 0,
                rest_cost: 0,
            })
            .collect();
        all.sort_unstable_by_key(|piece| (piece.leaf, piece.row));
        let mut cut = false;
        for pieces in all.chunk_by_mut(|a, b| a.leaf == b.leaf) {
            let leaf = &leaves.all()[pieces[0].leaf as usize];
            let (Some(list_cost), Some(cost)) = (leaf.list_cost, leaf.cost) else { continue };
            let eras = eras(pieces, rows);
            if let [whole] = pieces {
                (whole.list_cost, whole.cost) = (Some(list_cost.micros()), Some(cost.micros()));
            } else {
                cut = true;
                let list_costs = spread_over(pieces, &eras, list_cost.micros(), Piece::billed);
                let costs = spread_over(pieces, &eras, cost.micros(), Piece::billed);
                for ((piece, list_cost), cost) in pieces.iter_mut().zip(list_costs).zip(costs) {
                    (piece.list_cost, piece.cost) = (Some(list_cost), Some(cost));
                }
            }
            cut_idle(pieces, &eras, cost.micros());
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
                let Piece { idle_cost, rest_cost, .. } = *piece;
                row.get_or_insert_default().add(RowMoney { list_cost, cost, standard, idle_cost, rest_cost });
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
        let of_parts: i128 = self.all.iter().map(|piece| piece.idle_cost + piece.rest_cost).sum();
        assert_eq!(of_parts, cost, "LED-6: idle and rest add up to the rounded leaves");
        let time: CardTime = leaves.all().iter().map(|leaf| leaf.card_time).sum();
        assert_eq!(
            self.all.iter().map(|piece| piece.card_time).sum::<CardTime>(),
            time,
            "LED-7: pieces hold what the leaves hold"
        );
    }
}
