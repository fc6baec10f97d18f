//! What the typical mix can make of what is left on a host.
//!
//! *Fragmentation* is what it can't use. F of a host = Σ over the kinds of the mix of probability × card milli that this kind could not use: all that
//! is left, where the kind doesn't fit by processors or cards, takes no card, or may not use the model; else what is left of the cards that have less
//! than it asks of each (fragmentation gradient descent, USENIX ATC 2023).
//!
//! F asks whether one more fits, and so sees neither that a host with eight free cards has processors for three, nor that 700 milli of a card hold one
//! 600 and no more. *Room* asks how many fit: Σ of probability × card milli that this kind would take if it alone came until nothing fits, where
//! processors are counted as a fluid. Room shrinks with each step towards the end, F jumps at the end.
//!
//! Memory counts in neither. Both are kept × the mix's total, whole numbers; start at [`Yardstick::unusable`] and [`Yardstick::room`].

use super::mix::TypicalMix;
use super::pool::ModelId;
use std::collections::BTreeMap;

/// Binary places of a reciprocal.
const PLACES: u32 = 32;

/// What of the mix suits one card model, ready to be held against hosts: the kinds with cards, by what they ask of them.
#[derive(Clone, Debug)]
pub struct Yardstick {
    /// The sum of the counts of the whole mix, at least 1.
    total: i64,
    /// By what is asked of each card, then by cards.
    demands: Vec<Demand>,
}

/// All kinds that ask for the same of cards.
#[derive(Clone, Debug)]
struct Demand {
    card_milli: u32,
    cards: u32,
    /// By processor time, rising.
    tiers: Vec<Tier>,
}

/// Kinds that ask for the same of cards and of processors.
#[derive(Clone, Copy, Debug)]
struct Tier {
    /// Thousandths of a core.
    cpu_milli: u64,
    /// How often they came, with those of the tiers before.
    count_so_far: i64,
    /// Σ of count / processor time over these and the tiers after, with [`PLACES`] binary places. A tier that asks for no processors has no part in it.
    count_per_cpu_milli: i64,
}

impl Demand {
    fn new((card_milli, cards): (u32, u32), counts: BTreeMap<u64, i64>) -> Self {
        let mut tiers: Vec<Tier> = Vec::with_capacity(counts.len());
        let mut count_so_far = 0;
        for (cpu_milli, count) in counts {
            count_so_far += count;
            let asked = i64::try_from(cpu_milli).expect("processor time is bounded where it is read");
            let count_per_cpu_milli = if asked == 0 { 0 } else { ((count << PLACES) + asked / 2) / asked };
            tiers.push(Tier { cpu_milli, count_so_far, count_per_cpu_milli });
        }
        for later in (1..tiers.len()).rev() {
            tiers[later - 1].count_per_cpu_milli += tiers[later].count_per_cpu_milli;
        }
        Self { card_milli, cards, tiers }
    }

    /// How many tiers ask for no more processor time than this.
    fn tiers_within(&self, cpu_milli: u64) -> usize {
        self.tiers.partition_point(|tier| tier.cpu_milli <= cpu_milli)
    }

    /// How often the first so many tiers came.
    fn count_of(&self, tiers: usize) -> i64 {
        tiers.checked_sub(1).map_or(0, |last| self.tiers[last].count_so_far)
    }

    /// How many of them the cards would hold.
    fn copies(&self, card_milli_left: &[u32]) -> u64 {
        if self.cards == 1 {
            return card_milli_left.iter().map(|&left| u64::from(left / self.card_milli)).sum();
        }
        let with_room = card_milli_left.iter().filter(|&&left| left >= self.card_milli).count();
        with_room as u64 / u64::from(self.cards)
    }
}

impl Yardstick {
    /// For hosts with cards of this model.
    pub fn new(mix: &TypicalMix, model: Option<ModelId>) -> Self {
        let mut demands: BTreeMap<(u32, u32), BTreeMap<u64, i64>> = BTreeMap::new();
        for (kind, count) in mix.kinds.iter().filter(|(kind, _)| kind.cards > 0 && kind.may_use(model)) {
            *demands.entry((kind.card_milli, kind.cards)).or_default().entry(kind.cpu_milli).or_default() += count;
        }
        let demands = demands.into_iter().map(|(of_cards, counts)| Demand::new(of_cards, counts)).collect();
        Self { total: mix.total.max(1), demands }
    }

    /// The sum of the counts of the mix, by which [`Self::unusable`] and [`Self::room`] are larger than card milli. At least 1.
    pub const fn total(&self) -> i64 {
        self.total
    }

    /// F × the mix's total, of a host with this left: processor time, thousandths of a core; each card, thousandths of it, in any order.
    pub fn unusable(&self, cpu_milli_left: u64, card_milli_left: &[u32]) -> i64 {
        let all: i64 = card_milli_left.iter().map(|&left| i64::from(left)).sum();
        let usable = self.demands.iter().map(|demand| {
            let with_room = card_milli_left.iter().filter(|&&left| left >= demand.card_milli);
            let (cards, milli) = with_room.fold((0, 0), |(cards, milli), &left| (cards + 1, milli + i64::from(left)));
            if cards < demand.cards {
                return 0;
            }
            milli * demand.count_of(demand.tiers_within(cpu_milli_left))
        });
        all * self.total - usable.sum::<i64>()
    }

    /// Room × the mix's total, of a host with this left, in the units of [`Self::unusable`]. Rounded half up, once for each demand on cards.
    pub fn room(&self, cpu_milli_left: u64, card_milli_left: &[u32]) -> i64 {
        let room = self.demands.iter().map(|demand| {
            let copies = demand.copies(card_milli_left);
            if copies == 0 {
                return 0;
            }
            let each_milli = i64::from(demand.card_milli) * i64::from(demand.cards);
            // Where the cards are the limit, all copies; where processors are, what part of a copy they are enough for.
            let by_cards = demand.tiers_within(cpu_milli_left / copies);
            let by_cpu = demand.tiers.get(by_cards).map_or(0, |tier| {
                let cpu = i128::from(cpu_milli_left) * i128::from(tier.count_per_cpu_milli);
                (i128::from(each_milli) * cpu + (1 << (PLACES - 1))) >> PLACES
            });
            each_milli * copies as i64 * demand.count_of(by_cards) + by_cpu as i64
        });
        room.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::mix::Kind;
    use crate::placement::pool::Models;

    /// Of 10 requests 5 are half a card with 4 cores, 2 are a whole one with 16, 1 is four with 32, 1 is an L4 with 1, 1 takes no card.
    fn mix(models: &mut Models) -> TypicalMix {
        let l4 = models.id("L4").unwrap();
        let kind = |cores: u64, cards, card_milli, models| Kind { cpu_milli: cores * 1000, card_milli, cards, models };
        let kinds = vec![
            (kind(4, 1, 500, Vec::new()), 5),
            (kind(16, 1, 1000, Vec::new()), 2),
            (kind(32, 4, 1000, Vec::new()), 1),
            (kind(1, 1, 1000, vec![l4]), 1),
            (kind(8, 0, 0, Vec::new()), 1),
        ];
        TypicalMix { kinds, total: 10 }
    }

    fn yardstick(model: &str) -> Yardstick {
        let mut models = Models::default();
        let mix = mix(&mut models);
        Yardstick::new(&mix, models.id(model))
    }

    #[test]
    fn what_no_kind_can_use_is_counted_by_how_common_the_kind_is() {
        let h200 = yardstick("H200");
        // Two cards with 1000 and 300 left, 16 cores. Half a card: the 300 are too few. A whole card: the same. Four cards, an L4, none: all 1,300.
        // 5 × 300 + 2 × 300 + 3 × 1,300 = 6,000, of 10.
        assert_eq!(h200.unusable(16_000, &[1000, 300]), 6_000);
        // With 15 cores whole cards don't fit: 5 × 300 + 5 × 1,300 = 8,000.
        assert_eq!(h200.unusable(15_000, &[1000, 300]), 8_000);
        // With 3 nothing does: 10 × 1,300.
        assert_eq!(h200.unusable(3_000, &[1000, 300]), 13_000);
        // Four whole cards and 32 cores: an L4 and none are left out, 2 × 4,000.
        assert_eq!(h200.unusable(32_000, &[1000; 4]), 8_000);
        // One card fewer, and four don't fit: three kinds of a count of 1 each can't use 3,000.
        assert_eq!(h200.unusable(32_000, &[1000; 3]), 9_000);
        assert_eq!(h200.unusable(32_000, &[]), 0);
    }

    #[test]
    fn a_model_that_a_kind_may_use_is_less_fragmented() {
        // As above, but the L4 fits: 5 × 300 + 2 × 300 + 1 × 300 + 2 × 1,300 = 5,000.
        assert_eq!(yardstick("L4").unusable(16_000, &[1000, 300]), 5_000);
    }

    #[test]
    fn room_is_what_one_kind_would_fill_alone() {
        let h200 = yardstick("H200");
        // Two cards with 1000 and 700 left, 32 cores. Halves: 2 + 1, 12 cores: 5 × 1,500. Whole: 1, 16 cores: 2 × 1,000. Four: none.
        assert_eq!(h200.room(32_000, &[1000, 700]), 9_500);
        // With 8 cores. Halves: 2 of the 3: 5 × 1,000. Whole: half a copy: 2 × 500.
        assert_eq!(h200.room(8_000, &[1000, 700]), 6_000);
        // Four whole cards with 32 cores. Halves: 8, exactly 32 cores: 5 × 4,000. Whole: 4 by cards, 2 by cores: 2 × 2,000. Four: 1 × 4,000.
        assert_eq!(h200.room(32_000, &[1000; 4]), 28_000);
        assert_eq!((h200.room(0, &[1000; 4]), h200.room(32_000, &[])), (0, 0));
    }

    #[test]
    fn an_empty_mix_can_use_nothing() {
        let none = Yardstick::new(&TypicalMix::default(), None);
        assert_eq!((none.total(), none.unusable(1, &[7]), none.room(1, &[7])), (1, 7, 0));
    }
}
