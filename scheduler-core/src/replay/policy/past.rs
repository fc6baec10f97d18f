//! What queues used lately, as shares above quota look at it: of the four weeks before an instant, each week counting half of the one after it.

use crate::names::QueueName;
use crate::snapshot::Queue;
use cardhour_domain::{CardShare, CardTime, Interval, Timestamp};
use std::collections::BTreeMap;

/// How many weeks back.
pub(super) const WEEKS: u32 = 4;
const WEEK_MS: i64 = 7 * 24 * 3_600_000;

/// What some cards that were held for some time count at `at`.
pub(super) fn decayed(cards: CardShare, during: Interval, at: Timestamp) -> CardTime {
    (0..WEEKS)
        .filter_map(|week| {
            let end = at.checked_add_ms(-i64::from(week) * WEEK_MS)?;
            let held = during.overlap(Interval::new(end.checked_add_ms(-WEEK_MS)?, end)?)?;
            Some(CardTime::from_part_ms(CardTime::of(cards, held).part_ms() >> week))
        })
        .sum()
}

/// Queues with what they and all below them used, of those whose figure has changed.
pub(super) fn refreshed(queues: &[Queue], used: &BTreeMap<&QueueName, CardTime>) -> Vec<Queue> {
    let parent: BTreeMap<&QueueName, Option<&QueueName>> =
        queues.iter().map(|queue| (&queue.name, queue.parent.as_ref())).collect();
    let mut sums: BTreeMap<&QueueName, CardTime> = BTreeMap::new();
    for (queue, time) in used {
        // No deeper than there are queues, should they name one another in a ring.
        let path = std::iter::successors(Some(*queue), |name| parent.get(*name).copied().flatten());
        for node in path.take(queues.len()) {
            *sums.entry(node).or_default() += *time;
        }
    }
    let now = |queue: &Queue| sums.get(&queue.name).copied().unwrap_or_default();
    let changed = queues.iter().filter(|queue| now(queue) != queue.past_usage);
    changed.map(|queue| Queue { past_usage: now(queue), ..queue.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: two cards for 10 hours of this week are 20 card-hours, of last week 10, of the week before 5; of five weeks ago nothing. A stretch over the edge is cut there.
    #[test]
    fn each_week_counts_half_of_the_one_after_it() {
        let at = Timestamp::from_unix_ms(10 * WEEK_MS);
        let two = CardShare::from_cards(2).unwrap();
        let hours = |weeks_ago: i64| {
            let start = Timestamp::from_unix_ms((10 - weeks_ago) * WEEK_MS - 20 * 3_600_000);
            let during = Interval::new(start, start.checked_add_ms(10 * 3_600_000).unwrap()).unwrap();
            decayed(two, during, at).card_hours().to_string()
        };
        assert_eq!([0, 1, 2, 3, 4].map(hours), ["20.000000", "10.000000", "5.000000", "2.500000", "0.000000"]);
        let edge = Timestamp::from_unix_ms(9 * WEEK_MS - 3_600_000);
        let over = Interval::new(edge, edge.checked_add_ms(3 * 3_600_000).unwrap()).unwrap();
        // An hour before it, halved, and two after: 2 × (0.5 + 2).
        assert_eq!(decayed(two, over, at).card_hours().to_string(), "5.000000");
    }
}
