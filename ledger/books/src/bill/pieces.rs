//! The leaves of a bill cut by attempt: who held what of each.
//!
//! The same cells, bundles and leaves as the bill's, so that the pieces of a leaf hold its time to the millisecond. Money isn't cut here: whoever
//! shows a piece's part of an amount spreads it by billed time ([`cardhour_domain::spread_by`]).

use super::{Charge, Leaves, NO_LEAF, charge_of};
use crate::prices::PriceBook;
use crate::report::ReportInput;
use crate::report::bundles::Bundles;
use crate::slots::Slots;
use cardhour_domain::{CardTime, Interval, Name};
use rustc_hash::FxHashMap;

/// What one attempt held of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptPiece {
    /// Index into the input's attempts; none for held time that a source gave without a job.
    pub attempt: Option<u32>,
    /// Time held.
    pub card_time: CardTime,
    /// Of it, what is billed.
    pub billed_time: CardTime,
    /// Of the held time, what telemetry didn't see.
    pub unseen: CardTime,
    /// Of the held time, what neither a record nor an observation proves.
    pub unproven: CardTime,
    /// The nodes on which it was held, in order; empty where no record names one.
    pub nodes: Vec<Name>,
    /// From the first quarter hour to the last in which it can have been, as the month, the prices and the windows cut time.
    pub during: Interval,
}

/// The leaves of the months that `slots` covers with their pieces: leaves in the order of [`super::charges`], pieces in that of their attempts'
/// keys, those without a job first. The pieces of a leaf add up to its time.
pub fn charges_by_attempt(
    input: &ReportInput,
    slots: &Slots,
    book: Option<&PriceBook>,
) -> Vec<(Charge, Vec<AttemptPiece>)> {
    let bundles = Bundles::of(input, &[]);
    let leaves = Leaves::of(&bundles, slots, book);
    let mut of_leaf: Vec<FxHashMap<Option<u32>, AttemptPiece>> = vec![FxHashMap::default(); leaves.all().len()];
    for (cell, &bundle) in input.cells.iter().zip(&bundles.of_cell) {
        let leaf = leaves.of_bundle[bundle as usize];
        if leaf == NO_LEAF {
            continue;
        }
        let span = slots.slot(cell.slot).span;
        let piece = of_leaf[leaf as usize].entry(cell.attempt).or_insert_with(|| AttemptPiece {
            attempt: cell.attempt,
            card_time: CardTime::ZERO,
            billed_time: CardTime::ZERO,
            unseen: CardTime::ZERO,
            unproven: CardTime::ZERO,
            nodes: Vec::new(),
            during: span,
        });
        piece.card_time += cell.card_time;
        piece.billed_time += cell.billed_time;
        piece.unseen += cell.unseen;
        piece.unproven += cell.unproven;
        piece.during = hull(piece.during, span);
        if let Some(node) = &cell.node
            && let Err(place) = piece.nodes.binary_search(node)
        {
            piece.nodes.insert(place, node.clone());
        }
    }
    let key = |piece: &AttemptPiece| piece.attempt.map(|attempt| input.attempts[attempt as usize].key.clone());
    let mut cut: Vec<(Charge, Vec<AttemptPiece>)> = leaves
        .all()
        .iter()
        .zip(of_leaf)
        .map(|(leaf, pieces)| {
            let mut pieces: Vec<AttemptPiece> = pieces.into_values().collect();
            pieces.sort_by_cached_key(key);
            let held: CardTime = pieces.iter().map(|piece| piece.card_time).sum();
            let billed: CardTime = pieces.iter().map(|piece| piece.billed_time).sum();
            assert_eq!(
                (held, billed),
                (leaf.card_time, leaf.billed_time),
                "LED-8: the attempts of a leaf hold its time"
            );
            (charge_of(leaf, book), pieces)
        })
        .collect();
    cut.sort_by(|(a, _), (b, _)| a.order().cmp(&b.order()));
    cut
}

/// From the start of the earlier to the end of the later.
fn hull(a: Interval, b: Interval) -> Interval {
    Interval::new(a.start().min(b.start()), a.end().max(b.end())).expect("no shorter than either")
}
