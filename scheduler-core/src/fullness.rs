//! How full a card or a host would be with a job on it: what packing takes the most of, and spreading the least.

/// One thing that is counted: what is used, what is asked, what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// In use.
    pub used: u64,
    /// Asked for.
    pub asked: u64,
    /// There in all.
    pub capacity: u64,
}

/// Ten for each dimension that would be full, less in proportion; the sum, in thousandths, rounded down. Source: HAMi's node and card policy.
pub fn score_milli(dimensions: &[Dimension]) -> u64 {
    dimensions.iter().filter(|one| one.capacity > 0).map(|one| 10_000 * (one.used + one.asked) / one.capacity).sum()
}
