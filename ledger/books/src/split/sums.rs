//! The rows of one holding while they are summed.

use super::{OverShare, RowBasis, Split, SplitRow};
use crate::holdings::Holding;
use cardhour_domain::{BUCKET_MS, CardShare, CardTime, Interval, Timestamp, UseBasis};

/// The rows of one holding. It begins with all of it unseen; what was seen moves from there to where it belongs.
pub(super) struct Sums<'a> {
    pub holding: u32,
    share: CardShare,
    rows: Vec<(SplitRow, CardTime)>,
    /// The row of the last piece: time only ascends.
    row: usize,
    /// Idle stretches, less what is over.
    idle: &'a [Interval],
    /// From when on its work is gone.
    lost_from: Option<Timestamp>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(
        index: u32,
        holding: &Holding,
        spans: &[Interval],
        idle: &'a [Interval],
        lost_from: Option<Timestamp>,
    ) -> Self {
        let inside = spans.iter().filter_map(|span| span.overlap(holding.during));
        let row =
            |(bucket, piece)| (SplitRow::unseen(bucket, index, CardTime::of(holding.share, piece)), CardTime::ZERO);
        let rows = inside.flat_map(|inside| inside.buckets().map(row).collect::<Vec<_>>()).collect();
        Self { holding: index, share: holding.share, rows, row: 0, idle, lost_from }
    }

    /// Over `piece`, later than all before it, so much of the card was busy for this holding.
    pub(super) fn add(&mut self, piece: Interval, busy: CardShare, basis: UseBasis) {
        let mut at = piece.start();
        while at < piece.end() {
            // Outside of the spans there are no rows.
            while self.rows.get(self.row).is_some_and(|(row, _)| bucket_end(row) <= at) {
                self.row += 1;
            }
            while self.idle.first().is_some_and(|idle| idle.end() <= at) {
                self.idle = &self.idle[1..];
            }
            let Some((row, over)) = self.rows.get_mut(self.row) else { return };
            if at < row.bucket_start {
                at = row.bucket_start;
                continue;
            }
            // Up to where something changes.
            let mut end = piece.end().min(bucket_end(row));
            let is_lost = self.lost_from.is_some_and(|from| from <= at);
            if !is_lost {
                end = self.lost_from.map_or(end, |from| end.min(from));
            }
            let idle = self.idle.first();
            let is_idle = idle.is_some_and(|idle| idle.start() <= at);
            end = idle.map_or(end, |idle| end.min(if is_idle { idle.end() } else { idle.start() }));
            let during = Interval::new(at, end).expect("the next change lies ahead");
            let held = CardTime::of(self.share, during);
            row.unseen = row.unseen - held;
            row.basis = row.basis.and(basis);
            *over += CardTime::of(busy.saturating_sub(self.share), during);
            if is_lost {
                row.lost += held;
            } else if is_idle {
                row.idle += held;
            } else {
                let effective = CardTime::of(busy.min(self.share), during);
                row.effective += effective;
                row.underused += held - effective;
            }
            at = end;
        }
    }

    /// Its rows in which something was seen.
    pub(super) fn finish(self, split: &mut Split) {
        for (row, over) in self.rows {
            let parts = [row.effective, row.underused, row.idle, row.lost, row.unseen];
            assert!(
                parts.iter().all(|part| part.part_ms() >= 0),
                "held time went below zero, holding {}",
                self.holding
            );
            if row.basis != RowBasis::Unseen {
                split.rows.push(row);
            }
            if !over.is_zero() {
                split.over_share.push(OverShare { holding: self.holding, bucket_start: row.bucket_start, over });
            }
        }
    }
}

fn bucket_end(row: &SplitRow) -> Timestamp {
    Timestamp::from_unix_ms(row.bucket_start.unix_ms() + BUCKET_MS)
}
