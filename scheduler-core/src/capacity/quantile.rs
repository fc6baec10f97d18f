//! Quantiles of whole numbers.

/// The smallest value that at least `percent` of all don't exceed (nearest rank); none of none.
///
/// Shape: values in any order. No value is made up between two: what is returned was seen.
pub fn quantile<T: Ord + Copy>(values: &[T], percent: u8) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * usize::from(percent)).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the nearest-rank method in Wikipedia's "Percentile": 15, 20, 35, 40, 50.
    #[test]
    fn a_quantile_is_a_value_that_was_seen() {
        let values = [35, 15, 50, 20, 40];
        assert_eq!([5, 30, 40, 50, 100].map(|p| quantile(&values, p)), [15, 20, 20, 35, 50].map(Some));
        assert_eq!(quantile::<i64>(&[], 50), None);
    }
}
