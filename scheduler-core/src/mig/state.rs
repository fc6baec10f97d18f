//! What is on a card now.

use super::shape::Row;
use super::{Axis, Offer, Refusal, Shape};
use std::fmt;

/// An instance at a place: slices [start, start + size) of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    /// What it is.
    pub shape: Shape,
    /// Its first slice of memory.
    pub start: u8,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.shape, self.start)
    }
}

/// What is on a card now: which slices of memory are taken, how many of compute, and how many instances of each shape.
///
/// That is all that decides what may come next, so it is the whole state. Invariant: it was built up by allowed placements only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    axis: Axis,
    memory: u8,
    compute: u8,
    counts: [u8; Shape::ALL.len()],
}

impl State {
    /// A card with nothing on it.
    pub const fn empty(axis: Axis) -> Self {
        Self { axis, memory: 0, compute: 0, counts: [0; Shape::ALL.len()] }
    }

    /// A card with these on it. Errors: the first that can't be there beside those before it.
    pub fn of(axis: Axis, placements: impl IntoIterator<Item = Placement>) -> Result<Self, Refusal> {
        placements.into_iter().try_fold(Self::empty(axis), Self::with)
    }

    /// Its axis.
    pub const fn axis(self) -> Axis {
        self.axis
    }

    /// Which slices of memory are taken: the lowest bit is slice 0.
    pub const fn memory_mask(self) -> u8 {
        self.memory
    }

    /// How many instances of a shape it has.
    pub const fn count(self, shape: Shape) -> u8 {
        self.counts[shape.index()]
    }

    /// Whether it has no instance.
    pub const fn is_empty(self) -> bool {
        self.memory == 0
    }

    /// Slices of memory that no instance has.
    pub const fn free_memory(self) -> u8 {
        self.axis.memory_slices() - self.memory.count_ones() as u8
    }

    /// Slices of compute that no instance has.
    pub const fn free_compute(self) -> u8 {
        self.axis.compute_slices() - self.compute
    }

    /// Where an instance of this shape could begin now, lowest first.
    pub fn placements_of(self, shape: Shape) -> impl Iterator<Item = Placement> {
        let row = self.axis.row(shape);
        row.into_iter()
            .flat_map(|row| row.starts)
            .map(move |start| Placement { shape, start: *start })
            .filter(move |placement| self.fault(*placement).is_none())
    }

    /// All that could come next of what is offered.
    pub fn placements(self, offer: Offer) -> impl Iterator<Item = Placement> {
        self.axis.shapes().filter(move |shape| offer.has(*shape)).flat_map(move |shape| self.placements_of(shape))
    }

    /// With one more instance. Errors: it can't be there.
    pub fn with(self, placement: Placement) -> Result<Self, Refusal> {
        if let Some(why) = self.fault(placement) {
            return Err(Refusal::Impossible { placement, why });
        }
        let row = self.axis.row(placement.shape).expect("without a fault the axis has the shape");
        let mut next = self;
        next.memory |= bits(row, placement.start);
        next.compute += row.compute;
        next.counts[placement.shape.index()] += 1;
        Ok(next)
    }

    /// With one instance gone. Errors: nothing of that shape can be there.
    pub fn without(self, placement: Placement) -> Result<Self, Refusal> {
        let gone = |why| Refusal::Impossible { placement, why };
        let row = self.axis.row(placement.shape).ok_or_else(|| gone("the axis has no such shape"))?;
        let taken = bits(row, placement.start);
        if self.count(placement.shape) == 0 || self.memory & taken != taken {
            return Err(gone("it isn't there"));
        }
        let mut next = self;
        next.memory &= !taken;
        next.compute -= row.compute;
        next.counts[placement.shape.index()] -= 1;
        Ok(next)
    }

    /// Which rule a placement would break; none when it may come.
    fn fault(self, placement: Placement) -> Option<&'static str> {
        let Some(row) = self.axis.row(placement.shape) else { return Some("the axis has no such shape") };
        if !row.starts.contains(&placement.start) {
            Some("no instance of that shape begins there")
        } else if self.memory & bits(row, placement.start) != 0 {
            Some("another instance has some of its memory")
        } else if self.compute + row.compute > self.axis.compute_slices() {
            Some("the slices of compute don't reach")
        } else if self.count(placement.shape) >= row.max {
            Some("the card has as many of that shape as it may")
        } else if placement.shape.has_media() && self.has_media() {
            Some("another instance has the media engines")
        } else {
            None
        }
    }

    fn has_media(self) -> bool {
        Shape::ALL.into_iter().any(|shape| shape.has_media() && self.count(shape) > 0)
    }
}

/// The slices of memory that a shape takes from there. A row's starts keep it on the card.
fn bits(row: &Row, start: u8) -> u8 {
    (((1u16 << row.size) - 1) << start) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(shape: Shape, start: u8) -> Placement {
        Placement { shape, start }
    }

    /// Rule 1: four and three of compute are seven, and their memory is all of it.
    #[test]
    fn both_limits_bind() {
        let state = State::of(Axis::Eight, [at(Shape::FourG, 0), at(Shape::ThreeG, 4)]).unwrap();
        assert_eq!((state.free_memory(), state.free_compute()), (0, 0));
        // Two 3g leave a slice of compute and none of memory.
        let state = State::of(Axis::Eight, [at(Shape::ThreeG, 0), at(Shape::ThreeG, 4)]).unwrap();
        assert_eq!((state.free_memory(), state.free_compute()), (0, 1));
        assert_eq!(state.placements(Offer::ALL).count(), 0);
        // 4 + 2 + 1 are seven of compute: slice 7 of memory stays, and even the double memory can't take it.
        let state = State::of(Axis::Eight, [at(Shape::FourG, 0), at(Shape::TwoG, 4), at(Shape::OneG, 6)]).unwrap();
        assert_eq!((state.free_memory(), state.free_compute()), (1, 0));
        assert_eq!(state.placements(Offer::ALL).count(), 0);
    }

    #[test]
    fn only_one_instance_of_a_card_has_the_media_engines() {
        let state = State::of(Axis::Eight, [at(Shape::OneGMedia, 6)]).unwrap();
        assert_eq!(state.placements_of(Shape::OneGMedia).count(), 0);
        let state = State::of(Axis::Four, [at(Shape::TwoGMedia, 0)]).unwrap();
        assert_eq!(state.placements_of(Shape::OneGMedia).count(), 0);
        assert_eq!(state.placements_of(Shape::OneG).count(), 2);
    }

    #[test]
    fn what_comes_and_goes_leaves_the_card_as_it_was() {
        let empty = State::empty(Axis::Eight);
        for placement in empty.placements(Offer::ALL) {
            assert_eq!(empty.with(placement).unwrap().without(placement).unwrap(), empty);
            assert!(empty.without(placement).is_err());
        }
    }

    /// Rule 6: go-nvml's mock says 3g of size 3 from slice 3 and the like.
    #[test]
    fn a_layout_that_no_card_has_is_refused_with_its_rule() {
        for placement in [at(Shape::ThreeG, 3), at(Shape::OneGDouble, 1), at(Shape::OneG, 7), at(Shape::TwoG, 6)] {
            let refusal = State::empty(Axis::Eight).with(placement).unwrap_err();
            assert_eq!(refusal.code(), "mig_impossible_layout");
        }
        let refusal = State::of(Axis::Eight, [at(Shape::ThreeG, 0), at(Shape::FourG, 0)]).unwrap_err();
        assert_eq!(refusal.to_string(), "4g at 0 can't be on this card: another instance has some of its memory");
    }
}
