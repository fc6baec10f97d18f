//! Dividing what there is among those who have a claim: quota first, the rest by priority, then by weight, in whole units.
//!
//! Start at [`divide`]. Everything is an integer; what rounding leaves over goes to the largest remainder, then to the older claim. So the parts are what can be
//! printed beside a bill, and the same on any machine.

use std::cmp::Reverse;

/// One who has a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its own quota.
    pub deserved: i64,
    /// Its part of what is above all quota, in any unit that is the same for all. Zero: none.
    pub weight: u64,
    /// What it could use.
    pub demand: i64,
    /// A cap. `None`: none.
    pub max: Option<i64>,
    /// Who is served before whom above quota; higher first.
    pub priority: i32,
}

/// What each gets, and what nobody could use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// By claim, in the order of the claims.
    pub shares: Vec<i64>,
    /// What is left.
    pub left: i64,
}

/// Divides `total` among `claims`, which come oldest first, in steps of `unit`.
///
/// Each gets its quota as far as it can use it, even where all quota together is more than there is: quota is a promise, not a wish. What is left
/// goes to the highest priority as far as it can use it, inside a priority by weight: whoever needs less than its part gets what it needs and the rest is divided
/// anew (weighted max-min). A part below `unit` is given only to one whose need ends there.
pub fn divide(total: i64, unit: i64, claims: &[Claim]) -> Division {
    let most: Vec<i64> =
        claims.iter().map(|claim| claim.max.map_or(claim.demand, |max| claim.demand.min(max)).max(0)).collect();
    let mut shares: Vec<i64> = claims.iter().zip(&most).map(|(claim, most)| claim.deserved.clamp(0, *most)).collect();
    let mut left = (total - shares.iter().sum::<i64>()).max(0);
    let mut priorities: Vec<i32> = claims.iter().map(|claim| claim.priority).collect();
    priorities.sort_unstable_by_key(|priority| Reverse(*priority));
    priorities.dedup();
    for priority in priorities {
        let group: Vec<usize> =
            (0..claims.len()).filter(|at| claims[*at].priority == priority && claims[*at].weight > 0).collect();
        left = pour(left, unit, &group, claims, &most, &mut shares);
    }
    Division { shares, left }
}

/// Gives `left` to a group by weight; returns what nobody of it could use.
fn pour(mut left: i64, unit: i64, group: &[usize], claims: &[Claim], most: &[i64], shares: &mut [i64]) -> i64 {
    let mut thirsty: Vec<usize> = group.iter().copied().filter(|at| shares[*at] < most[*at]).collect();
    while left > 0 && !thirsty.is_empty() {
        let weights: i128 = thirsty.iter().map(|at| i128::from(claims[*at].weight)).sum();
        let pot = left;
        let part = |at: usize| i128::from(pot) * i128::from(claims[at].weight);
        let sated: Vec<usize> =
            thirsty.iter().copied().filter(|at| i128::from(most[*at] - shares[*at]) * weights <= part(*at)).collect();
        if !sated.is_empty() {
            for at in &sated {
                left -= most[*at] - shares[*at];
                shares[*at] = most[*at];
            }
            thirsty.retain(|at| !sated.contains(at));
            continue;
        }
        let step = i128::from(unit) * weights;
        for at in &thirsty {
            let units = part(*at) / step;
            let given = i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(unit);
            shares[*at] += given;
            left -= given;
        }
        // What is left over, a unit at a time: to the largest remainder, then to the older claim.
        thirsty.sort_by_key(|at| (Reverse(part(*at) % step), *at));
        for at in &thirsty {
            let given = unit.min(most[*at] - shares[*at]).min(left);
            if given < unit && given < most[*at] - shares[*at] {
                continue;
            }
            shares[*at] += given;
            left -= given;
        }
        break;
    }
    left
}

/// A queue's weight once its past usage is looked at: `weight + strength × (weight − used)`, never below zero.
///
/// `weight`: its part of all weights, and `used`: its decayed card-time over what the cluster could have given in the window, both in the same fraction of one; the
/// strength is in thousandths. It moves only what is above
/// quota; what a queue deserves isn't lost by having used it. Source: KAI's time-based fair share.
pub fn weight_after_usage(weight: u64, used: u64, strength_milli: u64) -> u64 {
    let (weight, used, strength) = (i128::from(weight), i128::from(used), i128::from(strength_milli));
    u64::try_from((weight + strength * (weight - used) / 1_000).max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(deserved: i64, weight: u64, demand: i64) -> Claim {
        Claim { deserved, weight, demand, max: None, priority: 0 }
    }

    /// 10 cards, nothing deserved, three of weight 1, 1 and 2: 2.5, 2.5 and 5; the card left over goes to the older of the two.
    #[test]
    fn what_cannot_be_divided_goes_to_the_largest_remainder_and_then_to_the_older() {
        let division = divide(10, 1, &[claim(0, 1, 10), claim(0, 1, 10), claim(0, 2, 10)]);
        assert_eq!(division, Division { shares: vec![3, 2, 5], left: 0 });
    }

    /// 12 cards; the second needs 1 of its 4, and the 3 it leaves are shared by the others: 4 + 1.5 each.
    #[test]
    fn what_one_cannot_use_is_shared_by_the_others() {
        let division = divide(12, 1, &[claim(0, 1, 12), claim(0, 1, 1), claim(0, 1, 12)]);
        assert_eq!(division, Division { shares: vec![6, 1, 5], left: 0 });
    }

    /// Source: KAI, docs/time-based-fairshare: 10 cards for 10 hours, 24 card-hours used, so 0.24; half of the weights, strength 1: 0.5 + (0.5 − 0.24).
    #[test]
    fn past_usage_takes_from_a_weight_what_was_used_of_the_pool() {
        assert_eq!(weight_after_usage(500, 240, 1_000), 760);
        assert_eq!(weight_after_usage(500, 0, 1_000), 1_000);
        assert_eq!(weight_after_usage(100, 900, 1_000), 0);
    }

    prop_compose! {
        fn any_claim()(deserved in 0..20i64, weight in 0..5u64, demand in 0..40i64, max in proptest::option::of(0..40i64), priority in 0..3i32) -> Claim {
            Claim { deserved, weight, demand, max, priority }
        }
    }

    proptest! {
        #[test]
        fn shares_and_what_is_left_add_up_and_nobody_gets_more_than_he_can_use(
            claims in proptest::collection::vec(any_claim(), 0..8),
            total in 0..200i64,
        ) {
            let division = divide(total, 1, &claims);
            let promised: i64 = claims.iter().map(|claim| claim.deserved.min(claim.demand).min(claim.max.unwrap_or(i64::MAX)).max(0)).sum();
            prop_assert_eq!(division.shares.iter().sum::<i64>() + division.left, total.max(promised));
            for (claim, share) in claims.iter().zip(&division.shares) {
                let most = claim.demand.min(claim.max.unwrap_or(i64::MAX));
                prop_assert!(*share <= most.max(0) && *share >= claim.deserved.min(most).max(0));
            }
            // Nothing is left that somebody with a weight could use.
            let thirsty = claims.iter().zip(&division.shares).any(|(claim, share)| {
                claim.weight > 0 && *share < claim.demand.min(claim.max.unwrap_or(i64::MAX))
            });
            prop_assert!(division.left == 0 || !thirsty);
        }
    }
}
