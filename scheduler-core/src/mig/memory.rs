//! Which shape has enough memory, by what the driver says of it.
//!
//! The figure in a profile's name is a name: a `1g.5gb` has 4,864 MiB, and on one card and another driver it differs again. So a job that asks for
//! memory is matched against what was read on the node, and a job that asks for a profile by name gets that profile whatever it has.

use super::{Axis, Offer, Refusal, Shape};
use std::collections::BTreeMap;

/// What a job needs of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Memory. Unit: MiB.
    pub memory_mib: u64,
    /// Slices of compute; none needed is 1, since no instance has fewer.
    pub compute: u8,
}

/// The shape for a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFit {
    /// The smallest that has enough.
    pub shape: Shape,
    /// What it has. Unit: MiB.
    pub usable_mib: u64,
    /// The largest of the smaller ones that had enough compute, and what it has: how near the job was to fitting it.
    pub just_missed: Option<(Shape, u64)>,
}

/// The smallest shape with enough of both: fewest slices of memory, then of compute.
///
/// `usable_mib`: memory by shape, read from the node's driver. A shape without a reading is never chosen: missing is not enough, and not
/// its name either. Shapes with the media engines aren't chosen for memory. Errors: nothing was read, or nothing is large enough.
pub fn smallest_for(
    axis: Axis,
    offer: Offer,
    usable_mib: &BTreeMap<Shape, u64>,
    need: Need,
) -> Result<MemoryFit, Refusal> {
    let mut shapes: Vec<_> = axis
        .rows()
        .iter()
        .filter(|row| offer.has(row.shape) && !row.shape.has_media())
        .filter_map(|row| usable_mib.get(&row.shape).map(|mib| (row.size, row.compute, row.shape, *mib)))
        .collect();
    shapes.sort_unstable();
    let largest_mib = shapes.iter().map(|(.., mib)| *mib).max().ok_or(Refusal::MemoryUnread)?;
    let able: Vec<_> = shapes.iter().filter(|(_, compute, ..)| *compute >= need.compute).collect();
    let at = able.iter().position(|(.., mib)| *mib >= need.memory_mib).ok_or(Refusal::TooLarge {
        needed_mib: need.memory_mib,
        compute: need.compute,
        largest_mib,
    })?;
    let (.., shape, usable_mib) = *able[at];
    let just_missed = able[..at].iter().map(|(.., shape, mib)| (*shape, *mib)).max_by_key(|(_, mib)| *mib);
    Ok(MemoryFit { shape, usable_mib, just_missed })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read on an A100 of 40 GB.
    fn a100() -> BTreeMap<Shape, u64> {
        BTreeMap::from([
            (Shape::OneG, 4_864),
            (Shape::OneGMedia, 4_864),
            (Shape::OneGDouble, 9_856),
            (Shape::TwoG, 9_856),
            (Shape::ThreeG, 19_968),
            (Shape::FourG, 19_968),
            (Shape::SevenG, 40_192),
        ])
    }

    fn fit(memory_mib: u64, compute: u8) -> Result<MemoryFit, Refusal> {
        smallest_for(Axis::Eight, Offer::ALL, &a100(), Need { memory_mib, compute })
    }

    /// Rule 2 and HAMi#1074: 5,120 MiB asked of a `1g.5gb`, which has 4,864.
    #[test]
    fn a_need_is_met_by_what_is_there_and_not_by_a_name() {
        let found = fit(5_120, 1).unwrap();
        assert_eq!((found.shape, found.usable_mib), (Shape::OneGDouble, 9_856));
        assert_eq!(found.just_missed, Some((Shape::OneG, 4_864)));
        assert_eq!(fit(4_864, 1).unwrap().shape, Shape::OneG);
        assert_eq!(fit(4_864, 1).unwrap().just_missed, None);
    }

    #[test]
    fn compute_and_memory_are_needed_apart() {
        assert_eq!(fit(5_120, 2).unwrap().shape, Shape::TwoG);
        assert_eq!(fit(1_000, 3).unwrap().shape, Shape::ThreeG);
        assert_eq!(fit(1_000, 4).unwrap().shape, Shape::FourG);
        assert_eq!(fit(20_000, 1).unwrap().shape, Shape::SevenG);
    }

    #[test]
    fn what_was_not_read_is_not_chosen() {
        let some = BTreeMap::from([(Shape::ThreeG, 19_968)]);
        let need = Need { memory_mib: 4_000, compute: 1 };
        assert_eq!(smallest_for(Axis::Eight, Offer::ALL, &some, need).unwrap().shape, Shape::ThreeG);
        let refusal = smallest_for(Axis::Eight, Offer::ALL, &BTreeMap::new(), need).unwrap_err();
        assert_eq!(refusal.code(), "mig_memory_unread");
        assert_eq!(fit(50_000, 1).unwrap_err().code(), "mig_too_large");
    }
}
