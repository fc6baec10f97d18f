//! How large a team's quota should be, from what it held and waited for.
//!
//! A guarantee is for what a team nearly always needs; what it needs now and then it borrows. So the guarantee is the middle hour, borrowing reaches
//! to the hour in twenty, and what it can lend is what it doesn't need in its slack hours.

use super::quantile;
use cardhour_domain::Reading;

/// A quota for a team, with the figures that it comes from. Unit of all: cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaAdvice {
    /// Guaranteed: what half of the hours need at most.
    pub guaranteed: u32,
    /// Beyond it, borrowed: to what nineteen of twenty hours need at most.
    pub borrow_limit: u32,
    /// Of it, lent: down to what a tenth of the hours need at most.
    pub lend_limit: u32,
    /// The most an hour needed.
    pub peak: u32,
    /// Hours that were seen.
    pub hours_seen: usize,
}

/// The hours of two weeks: with fewer, one project's crunch would be taken for the team's need.
pub const LEAST_HOURS: usize = 14 * 24;

/// A team's quota from its demand by hour: cards that it held and cards that its jobs waited for, since a quota that is too small hides in what was
/// held. None with fewer than `LEAST_HOURS` seen.
pub fn size_quota(demand_by_hour: &[Reading<u32>]) -> Option<QuotaAdvice> {
    let seen: Vec<u32> = demand_by_hour.iter().filter_map(|hour| hour.seen()).collect();
    if seen.len() < LEAST_HOURS {
        return None;
    }
    let [slack, middle, busy, peak] = [10, 50, 95, 100].map(|percent| quantile(&seen, percent).unwrap_or(0));
    Some(QuotaAdvice {
        guaranteed: middle,
        borrow_limit: busy - middle,
        lend_limit: middle - slack,
        peak,
        hours_seen: seen.len(),
    })
}

/// Guarantees that a pool can keep: as they are when they fit, else in proportion, in whole cards by largest remainder, ties to the earlier team.
///
/// Shape: one a team, in the same order. They add up to the pool or less.
pub fn fit_to_pool(guaranteed: &[u32], pool_cards: u32) -> Vec<u32> {
    let wanted: u64 = guaranteed.iter().map(|cards| u64::from(*cards)).sum();
    if wanted <= u64::from(pool_cards) {
        return guaranteed.to_vec();
    }
    let part = |cards: u32| {
        (u64::from(cards) * u64::from(pool_cards) / wanted, u64::from(cards) * u64::from(pool_cards) % wanted)
    };
    let mut fitted: Vec<u32> = guaranteed.iter().map(|cards| part(*cards).0 as u32).collect();
    let left = u64::from(pool_cards) - fitted.iter().map(|cards| u64::from(*cards)).sum::<u64>();
    let mut order: Vec<usize> = (0..guaranteed.len()).collect();
    order.sort_by_key(|team| (std::cmp::Reverse(part(guaranteed[*team]).1), *team));
    for team in order.into_iter().take(usize::try_from(left).expect("fewer cards left than teams")) {
        fitted[team] += 1;
    }
    assert_eq!(fitted.iter().map(|cards| u64::from(*cards)).sum::<u64>(), u64::from(pool_cards), "all cards are given");
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Gap;
    use proptest::prelude::*;

    /// Of twenty hours two need 2 cards, nine need 6, eight need 10, one needs 40: the middle is 6 (11 of 20 need no more), a tenth 2, and nineteen
    /// of twenty 10.
    #[test]
    fn a_guarantee_is_the_middle_hour_and_borrowing_reaches_the_busy_ones() {
        let day: Vec<u32> = [vec![2; 2], vec![6; 9], vec![10; 8], vec![40]].concat();
        let hours: Vec<_> = day.iter().cycle().take(20 * 17).map(|cards| Reading::Seen(*cards)).collect();
        let quota = size_quota(&hours).unwrap();
        let expected = QuotaAdvice { guaranteed: 6, borrow_limit: 4, lend_limit: 4, peak: 40, hours_seen: 340 };
        assert_eq!(quota, expected);
    }

    #[test]
    fn two_weeks_have_to_be_seen() {
        let mut hours = vec![Reading::Seen(3); LEAST_HOURS];
        assert!(size_quota(&hours).is_some());
        hours[5] = Reading::Missing(Gap::CollectorDown);
        assert_eq!(size_quota(&hours), None);
    }

    /// 10, 20 and 30 into 40: 6⅔, 13⅓ and 20; the one card left goes to the largest remainder.
    #[test]
    fn guarantees_that_do_not_fit_are_cut_in_proportion() {
        assert_eq!(fit_to_pool(&[10, 20, 30], 40), [7, 13, 20]);
        assert_eq!(fit_to_pool(&[10, 20], 40), [10, 20]);
        assert_eq!(fit_to_pool(&[1, 1, 1], 2), [1, 1, 0]);
    }

    proptest! {
        #[test]
        fn guarantees_never_pass_the_pool_or_what_was_wanted(wanted in prop::collection::vec(0u32..10_000, 0..30), pool in 0u32..100_000) {
            let fitted = fit_to_pool(&wanted, pool);
            prop_assert!(fitted.iter().map(|c| u64::from(*c)).sum::<u64>() <= u64::from(pool));
            prop_assert!(fitted.iter().zip(&wanted).all(|(fitted, wanted)| fitted <= wanted));
        }
    }
}
