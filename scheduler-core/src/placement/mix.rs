//! The typical mix: what a pool is usually asked for.

use super::pool::{ModelId, Request};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One kind of request in the mix, memory left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Processor time, thousandths of a core.
    pub cpu_milli: u64,
    /// Of each card, thousandths of it.
    pub card_milli: u32,
    /// Cards.
    pub cards: u32,
    /// The models that will do, sorted; empty when any will.
    pub models: Vec<ModelId>,
}

impl Kind {
    /// The kind of a request.
    pub fn of(request: &Request) -> Self {
        let Request { cpu_milli, memory_mib: _, cards, card_milli, models } = request;
        Self { cpu_milli: *cpu_milli, card_milli: *card_milli, cards: *cards, models: models.clone() }
    }

    /// Whether cards of this model will do.
    pub fn may_use(&self, model: Option<ModelId>) -> bool {
        self.models.is_empty() || model.is_some_and(|model| self.models.contains(&model))
    }
}

/// The commonest kinds of request, and how often each came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypicalMix {
    /// Each kind with its count, commonest first, then by the kind itself.
    pub kinds: Vec<(Kind, i64)>,
    /// The sum of the counts: a kind's probability is its count over this.
    pub total: i64,
}

impl TypicalMix {
    /// The commonest kinds that together are at least so many of a hundred of these requests, which come in any order.
    pub fn covering(percent: u64, requests: &[Request]) -> Self {
        let mut counts: BTreeMap<Kind, i64> = BTreeMap::new();
        for request in requests {
            *counts.entry(Kind::of(request)).or_default() += 1;
        }
        let mut kinds: Vec<(Kind, i64)> = counts.into_iter().collect();
        // Stable: equally common ones stay in their own order.
        kinds.sort_by_key(|&(_, count)| Reverse(count));
        let needed = requests.len() as u64 * percent;
        let (mut kept, mut total) = (0, 0_i64);
        while kept < kinds.len() && total.unsigned_abs() * 100 < needed {
            total += kinds[kept].1;
            kept += 1;
        }
        kinds.truncate(kept);
        Self { kinds, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(of: &[(u64, usize)]) -> Vec<Request> {
        let request =
            |cpu_milli| Request { cpu_milli, memory_mib: cpu_milli, cards: 1, card_milli: 500, models: Vec::new() };
        of.iter().flat_map(|&(cpu_milli, count)| std::iter::repeat_n(request(cpu_milli), count)).collect()
    }

    fn kept(of: &[(u64, usize)]) -> (Vec<(u64, i64)>, i64) {
        let mix = TypicalMix::covering(95, &requests(of));
        (mix.kinds.iter().map(|(kind, count)| (kind.cpu_milli, *count)).collect(), mix.total)
    }

    #[test]
    fn the_commonest_are_kept_until_they_are_95_of_100() {
        // 60 + 35 are exactly 95 of 100.
        assert_eq!(kept(&[(1, 5), (2, 60), (3, 35)]), (vec![(2, 60), (3, 35)], 95));
        // 60 + 34 aren't.
        assert_eq!(kept(&[(1, 6), (2, 60), (3, 34)]), (vec![(2, 60), (3, 34), (1, 6)], 100));
        assert_eq!(kept(&[]), (Vec::new(), 0));
    }

    #[test]
    fn order_changes_nothing_and_equals_go_by_what_they_ask() {
        assert_eq!(kept(&[(7, 2), (5, 2), (9, 2)]), kept(&[(9, 2), (7, 2), (5, 2)]));
        assert_eq!(kept(&[(7, 2), (5, 2)]).0, vec![(5, 2), (7, 2)]);
    }
}
