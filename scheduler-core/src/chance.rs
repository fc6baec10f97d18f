//! Random numbers from a seed, the same on any machine and with any version: PCG XSL RR 128/64.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// What the numbers of a seed are drawn for. The figures stand for themselves in every result: none is ever changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// What arrives, in which order.
    Arrivals = 1,
    /// The order of hosts.
    Hosts = 2,
    /// What a policy leaves to chance.
    Choices = 3,
}

/// A source of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    generator: Pcg64,
}

impl Chance {
    /// From a seed. Two purposes of one seed have numbers that know nothing of each other.
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        Self { generator: Pcg64::new(u128::from(seed), purpose as u128) }
    }

    /// A number below `bound`, each as likely as the others. `bound` is above zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "there is no number below zero");
        let bound = bound as u64;
        // The product's upper half is even over the numbers below the bound, once the few draws are thrown away that would favour some (Lemire, 2019).
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.generator.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// Puts a list into random order, each order as likely as the others.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_comes_about_as_often_as_the_others() {
        let mut chance = Chance::new(5, Purpose::Arrivals);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[chance.below(7)] += 1;
        }
        // 10,000 of each are expected; the standard deviation is 93.
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_seed_and_a_purpose_give_their_own_numbers() {
        let numbers = |seed, purpose| {
            let mut chance = Chance::new(seed, purpose);
            (0..8).map(|_| chance.below(1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1, Purpose::Hosts), numbers(1, Purpose::Hosts));
        assert_ne!(numbers(1, Purpose::Hosts), numbers(2, Purpose::Hosts));
        assert_ne!(numbers(1, Purpose::Hosts), numbers(1, Purpose::Arrivals));
    }
}
