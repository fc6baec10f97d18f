//! The best of a few, found again by a handful of comparisons once one of them has changed: a knock-out among siblings, kept with all its results.

/// A knock-out among numbered siblings. Its results stand until one of them is told to have changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cup {
    /// Node `n` has the winner of nodes `2n` and `2n + 1`; the siblings stand in the second half.
    winners: Vec<Option<usize>>,
}

impl Cup {
    /// Among so many, none of whom takes part yet.
    pub fn of(siblings: usize) -> Self {
        Self { winners: vec![None; 2 * siblings.next_power_of_two()] }
    }

    /// Who has won.
    pub fn winner(&self) -> Option<usize> {
        self.winners.get(1).copied().flatten()
    }

    /// The sibling at a place is another, or takes part no more. `beats`: whether the first is better than the second; of two of whom neither is, the one at the
    /// lower place wins.
    pub fn play(&mut self, place: usize, sibling: Option<usize>, beats: impl Fn(usize, usize) -> bool) {
        let mut here = self.winners.len() / 2 + place;
        self.winners[here] = sibling;
        while here > 1 {
            here /= 2;
            self.winners[here] = match (self.winners[2 * here], self.winners[2 * here + 1]) {
                (Some(left), Some(right)) if beats(right, left) => Some(right),
                (left, right) => left.or(right),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_wins_after_each_change() {
        let mut values = [5, 3, 3, 9, 4];
        let mut cup = Cup::of(values.len());
        assert_eq!(cup.winner(), None);
        for place in 0..values.len() {
            cup.play(place, Some(place), |a, b| values[a] < values[b]);
        }
        assert_eq!(cup.winner(), Some(1), "of two threes the first");
        values[3] = 1;
        cup.play(3, Some(3), |a, b| values[a] < values[b]);
        assert_eq!(cup.winner(), Some(3));
        cup.play(3, None, |a, b| values[a] < values[b]);
        assert_eq!(cup.winner(), Some(1));
    }

    #[test]
    fn one_alone_wins_and_of_none_nobody() {
        let mut cup = Cup::of(1);
        cup.play(0, Some(7), |_, _| false);
        assert_eq!(cup.winner(), Some(7));
        assert_eq!(Cup::of(0).winner(), None);
    }
}
