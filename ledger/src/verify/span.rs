//! A stretch of time as two bare numbers.

/// [from, to) in milliseconds; empty unless `from` lies before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub from: i64,
    pub to: i64,
}

/// A quarter hour. Unit: milliseconds.
pub(super) const QUARTER_MS: i64 = 900_000;
/// A UTC day. Unit: milliseconds.
pub(super) const DAY_MS: i64 = 86_400_000;
/// Parts of a whole card (LED-10).
pub(super) const CARD_PARTS: i64 = 18_018_000;

impl Span {
    pub fn new(from: i64, to: i64) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    pub fn day(day: i32) -> Self {
        let from = i64::from(day) * DAY_MS;
        Self { from, to: from + DAY_MS }
    }

    pub fn ms(self) -> i64 {
        self.to - self.from
    }

    /// How long both last together.
    pub fn shared_ms(self, other: Self) -> i64 {
        (self.to.min(other.to) - self.from.max(other.from)).max(0)
    }

    pub fn cut(self, other: Self) -> Option<Self> {
        Self::new(self.from.max(other.from), self.to.min(other.to))
    }

    /// What of it lies outside of another: before, and after.
    pub fn without(self, other: Self) -> impl Iterator<Item = Self> {
        let before = Self::new(self.from, self.to.min(other.from));
        let after = Self::new(self.from.max(other.to), self.to);
        before.into_iter().chain(after)
    }

    /// First and last UTC day it touches.
    pub fn days(self) -> std::ops::RangeInclusive<i32> {
        let day = |ms: i64| i32::try_from(ms.div_euclid(DAY_MS)).unwrap_or(i32::MAX);
        day(self.from)..=day(self.to - 1)
    }
}

/// Every instant that some span has, as spans that don't meet, in order.
pub(super) fn joined(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut steps: Vec<(i64, i32)> = spans.flat_map(|span| [(span.from, 1), (span.to, -1)]).collect();
    // At one instant beginnings go first, so that spans that meet are one.
    steps.sort_by_key(|(at, step)| (*at, -step));
    let (mut open, mut from) = (0, 0);
    let mut out = Vec::new();
    for (at, step) in steps {
        if open == 0 {
            from = at;
        }
        open += step;
        if open == 0 {
            out.extend(Span::new(from, at));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_meet_or_overlap_are_joined_and_others_stay_apart() {
        let span = |from, to| Span { from, to };
        assert_eq!(joined([span(5, 7), span(0, 3), span(3, 4), span(1, 2)].into_iter()), [span(0, 4), span(5, 7)]);
        assert_eq!(span(0, 10).shared_ms(span(7, 20)), 3);
        assert_eq!(span(0, 10).shared_ms(span(10, 20)), 0);
        let without = |a: Span, b: Span| a.without(b).collect::<Vec<_>>();
        assert_eq!(without(span(0, 10), span(3, 5)), [span(0, 3), span(5, 10)]);
        assert_eq!(without(span(0, 10), span(-5, 20)), []);
        assert_eq!(without(span(0, 10), span(10, 20)), [span(0, 10)]);
        assert_eq!(span(-1, 1).days(), -1..=0);
        assert_eq!(span(0, DAY_MS).days(), 0..=0);
    }
}
