//! What is taken back when a queue's cap is lowered under what it uses.

/// What may be taken back: what is used above the new cap, and never below what the queue above guarantees. Unit: that of the arguments.
pub fn reclaimable(used: i64, max: i64, guaranteed_above: Option<i64>) -> i64 {
    (used - guaranteed_above.map_or(max, |guaranteed| max.max(guaranteed))).max(0)
}

/// Which jobs go for `target`: the smallest first, and none that would pass it. Returns their places in `sizes`, by size and then place.
pub fn smallest_first(target: i64, sizes: &[i64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| (sizes[*at], *at));
    let mut left = target;
    order.retain(|at| {
        let fits = sizes[*at] <= left;
        if fits {
            left -= sizes[*at];
        }
        fits
    });
    order
}
