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

/// A queue's weight once its past usage is looked at, in thousandths: `weight + k × (weight − used)`, never below zero.
///
/// `weight_milli`: its part of all weights. `used_milli`: its decayed card-time over what the cluster could have given in the window. It moves only what is above
/// quota; what a queue deserves isn't lost by having used it. Source: KAI's time-based fair share.
pub fn weight_after_usage(weight_milli: u64, used_milli: u64, strength_milli: u64) -> u64 {
    let (weight, used, strength) = (i128::from(weight_milli), i128::from(used_milli), i128::from(strength_milli));
    u64::try_from((weight + strength * (weight - used) / 1_000).max(0)).unwrap_or(u64::MAX)
}
