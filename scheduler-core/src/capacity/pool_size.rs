//! What a pool of some size needs: rules that a small one does without, and a large one doesn't.

/// How large a pool is, by what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolSize {
    /// Under 8 cards.
    Bench,
    /// 8 to 50.
    Lab,
    /// 51 to 500.
    Department,
    /// Over 500.
    Centre,
}

/// Something a pool needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    /// One queue, first come first served.
    Queue,
    /// Idle cards given back.
    IdleReclaim,
    /// A quota for each team, with borrowing.
    TeamQuota,
    /// A bill for each team.
    Statements,
    /// Fair shares over a tree of teams, with past usage.
    FairShare,
    /// Preemption with checkpoints and a budget of disruption.
    Preemption,
    /// Whole jobs at once, with a reservation for the one at the head.
    Gangs,
    /// Hosts, islands and racks in placing and in quota.
    Topology,
    /// A trial of each policy on past months before it goes live.
    Replay,
    /// Somebody whose work the pool is.
    Operators,
}

impl PoolSize {
    /// The size of a pool.
    pub const fn of(cards: u64) -> Self {
        match cards {
            0..8 => Self::Bench,
            8..=50 => Self::Lab,
            51..=500 => Self::Department,
            501.. => Self::Centre,
        }
    }

    /// What it needs, what smaller ones need first.
    pub const fn needs(self) -> &'static [Need] {
        const ALL: [Need; 10] = [
            Need::Queue,
            Need::IdleReclaim,
            Need::TeamQuota,
            Need::Statements,
            Need::FairShare,
            Need::Preemption,
            Need::Gangs,
            Need::Topology,
            Need::Replay,
            Need::Operators,
        ];
        let (bench, _) = ALL.split_at(1);
        let (lab, _) = ALL.split_at(4);
        let (department, _) = ALL.split_at(7);
        match self {
            Self::Bench => bench,
            Self::Lab => lab,
            Self::Department => department,
            Self::Centre => &ALL,
        }
    }

    /// It in a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Bench => "under 8 cards a queue will do: more rules cost more than they bring",
            Self::Lab => {
                "to 50 cards: a quota for each team with borrowing, idle cards given back, a statement for each"
            }
            Self::Department => {
                "to 500 cards: fair shares by past usage, preemption with checkpoints, whole gangs at once"
            }
            Self::Centre => {
                "over 500 cards: topology in placing and in quota, each policy tried on past months first, people whose work it is"
            }
        }
    }
}

/// What a pool of so many cards needs.
pub const fn needs_of_size(cards: u64) -> (PoolSize, &'static [Need]) {
    let size = PoolSize::of(cards);
    (size, size.needs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_change_at_eight_fifty_and_five_hundred() {
        let sizes = [0, 7, 8, 50, 51, 500, 501, 10_000].map(PoolSize::of);
        use PoolSize::{Bench, Centre, Department, Lab};
        assert_eq!(sizes, [Bench, Bench, Lab, Lab, Department, Department, Centre, Centre]);
    }

    #[test]
    fn a_larger_pool_needs_all_that_a_smaller_one_does() {
        assert_eq!(needs_of_size(4).1, [Need::Queue]);
        for pair in [7, 50, 500, 501].windows(2) {
            assert!(needs_of_size(pair[1]).1.starts_with(needs_of_size(pair[0]).1));
        }
        assert!(!needs_of_size(50).1.contains(&Need::Preemption));
    }
}
