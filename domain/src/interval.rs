//! A half-open stretch of time.

use crate::{BUCKET_MS, Timestamp};

/// A stretch [start, end), never empty: neighbours meet without sharing an instant (LED-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    start: Timestamp,
    end: Timestamp,
}

impl Interval {
    /// None unless `start` lies before `end`.
    pub fn new(start: Timestamp, end: Timestamp) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// The first instant inside.
    pub const fn start(self) -> Timestamp {
        self.start
    }

    /// The first instant after.
    pub const fn end(self) -> Timestamp {
        self.end
    }

    /// Its length. Unit: milliseconds, above zero.
    pub const fn length_ms(self) -> i64 {
        self.end.ms_since(self.start)
    }

    /// Whether `at` lies inside.
    pub fn contains(self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }

    /// What both cover; none where they only meet.
    pub fn overlap(self, other: Self) -> Option<Self> {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    /// Its pieces by bucket: each with the bucket's start, in order. Their lengths add up to its own.
    pub fn buckets(self) -> impl ExactSizeIterator<Item = (Timestamp, Self)> {
        let first = self.start.bucket_start().unix_ms();
        let last = Timestamp::from_unix_ms(self.end.unix_ms() - 1).bucket_start().unix_ms();
        let n = usize::try_from((last - first) / BUCKET_MS + 1).expect("an end after its start");
        (0..n).map(move |i| {
            let bucket = Timestamp::from_unix_ms(first + i as i64 * BUCKET_MS);
            let next = Timestamp::from_unix_ms(bucket.unix_ms() + BUCKET_MS);
            (bucket, Self { start: self.start.max(bucket), end: self.end.min(next) })
        })
    }

    /// Every UTC day it touches, in order.
    pub fn utc_days(self) -> std::ops::RangeInclusive<i32> {
        self.start.utc_day()..=Timestamp::from_unix_ms(self.end.unix_ms() - 1).utc_day()
    }

    /// The same instants as disjoint stretches that don't touch, in order.
    pub fn union(mut all: Vec<Self>) -> Vec<Self> {
        all.sort();
        let mut out: Vec<Self> = Vec::with_capacity(all.len());
        for next in all {
            match out.last_mut() {
                Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
                _ => out.push(next),
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretch(start: i64, end: i64) -> Interval {
        Interval::new(Timestamp::from_unix_ms(start), Timestamp::from_unix_ms(end)).unwrap()
    }

    proptest! {
        #[test]
        fn buckets_cover_a_stretch_exactly(start in -10_000_000_000i64..10_000_000_000, length in 1i64..40_000_000) {
            let whole = stretch(start, start + length);
            let mut at = whole.start();
            for (bucket, piece) in whole.buckets() {
                prop_assert_eq!(piece.start(), at);
                prop_assert_eq!(bucket, piece.start().bucket_start());
                prop_assert!(piece.end().unix_ms() <= bucket.unix_ms() + BUCKET_MS);
                at = piece.end();
            }
            prop_assert_eq!(at, whole.end());
        }

        #[test]
        fn a_union_keeps_every_instant_once(cuts in prop::collection::vec((0i64..200, 1i64..40), 0..12)) {
            let all: Vec<_> = cuts.iter().map(|(s, l)| stretch(*s, s + l)).collect();
            let joined = Interval::union(all.clone());
            for ms in 0..250 {
                let at = Timestamp::from_unix_ms(ms);
                let before = all.iter().any(|i| i.contains(at));
                prop_assert_eq!(joined.iter().filter(|i| i.contains(at)).count(), usize::from(before));
            }
        }
    }

    #[test]
    fn a_stretch_that_ends_at_midnight_does_not_touch_the_next_day() {
        let day = 86_400_000;
        assert_eq!(stretch(0, day).utc_days(), 0..=0);
        assert_eq!(stretch(day - 1, day + 1).utc_days(), 0..=1);
    }
}
