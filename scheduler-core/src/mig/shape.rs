//! The shapes an instance can have, and how many slices each takes.

use std::fmt;

/// What an instance can be. The names are the same on all cards; what NVIDIA calls it there is at [`super::Model::profile_name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// One slice of compute, one of memory.
    OneG,
    /// The same with the card's media engines; only one instance of a card has them.
    OneGMedia,
    /// One slice of compute, two of memory.
    OneGDouble,
    /// Two and two.
    TwoG,
    /// The same with the media engines: an A30's.
    TwoGMedia,
    /// Three of compute, half of the memory.
    ThreeG,
    /// Four of compute, half of the memory; on an A30 all of it.
    FourG,
    /// All there is.
    SevenG,
}

/// Into how much a card is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// Eight slices of memory, seven of compute: A100, H100, H200, B200.
    Eight,
    /// Four and four: A30.
    Four,
}

/// What one shape takes of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub shape: Shape,
    pub profile_id: u8,
    pub compute: u8,
    pub size: u8,
    pub starts: &'static [u8],
    pub max: u8,
}

const fn row(shape: Shape, profile_id: u8, compute: u8, size: u8, starts: &'static [u8], max: u8) -> Row {
    Row { shape, profile_id, compute, size, starts, max }
}

const EIGHT: [Row; 7] = [
    row(Shape::OneG, 19, 1, 1, &[0, 1, 2, 3, 4, 5, 6], 7),
    row(Shape::OneGMedia, 20, 1, 1, &[0, 1, 2, 3, 4, 5, 6], 1),
    row(Shape::OneGDouble, 15, 1, 2, &[0, 2, 4, 6], 4),
    row(Shape::TwoG, 14, 2, 2, &[0, 2, 4], 3),
    row(Shape::ThreeG, 9, 3, 4, &[0, 4], 2),
    row(Shape::FourG, 5, 4, 4, &[0], 1),
    row(Shape::SevenG, 0, 7, 8, &[0], 1),
];

const FOUR: [Row; 5] = [
    row(Shape::OneG, 14, 1, 1, &[0, 1, 2, 3], 4),
    row(Shape::OneGMedia, 21, 1, 1, &[0, 1, 2, 3], 1),
    row(Shape::TwoG, 5, 2, 2, &[0, 2], 2),
    row(Shape::TwoGMedia, 6, 2, 2, &[0, 2], 1),
    row(Shape::FourG, 0, 4, 4, &[0], 1),
];

impl Shape {
    /// All of them, smallest first.
    pub const ALL: [Self; 8] = [
        Self::OneG,
        Self::OneGMedia,
        Self::OneGDouble,
        Self::TwoG,
        Self::TwoGMedia,
        Self::ThreeG,
        Self::FourG,
        Self::SevenG,
    ];

    /// Its name, the same on all cards.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneG => "1g",
            Self::OneGMedia => "1g+me",
            Self::OneGDouble => "1g2m",
            Self::TwoG => "2g",
            Self::TwoGMedia => "2g+me",
            Self::ThreeG => "3g",
            Self::FourG => "4g",
            Self::SevenG => "7g",
        }
    }

    /// The shape of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }

    /// Whether it takes the card's media engines.
    pub const fn has_media(self) -> bool {
        match self {
            Self::OneGMedia | Self::TwoGMedia => true,
            Self::OneG | Self::OneGDouble | Self::TwoG | Self::ThreeG | Self::FourG | Self::SevenG => false,
        }
    }

    /// Where it goes when all starts are equally good: a 3g at 0 would forbid 4g and 7g for good, and single slices stay out of the way at the
    /// high end; 2g, 4g and 7g go low.
    pub(super) const fn prefers_high(self) -> bool {
        match self {
            Self::OneG | Self::OneGMedia | Self::OneGDouble | Self::ThreeG => true,
            Self::TwoG | Self::TwoGMedia | Self::FourG | Self::SevenG => false,
        }
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Axis {
    /// Slices of memory.
    pub const fn memory_slices(self) -> u8 {
        match self {
            Self::Eight => 8,
            Self::Four => 4,
        }
    }

    /// Slices of compute.
    pub const fn compute_slices(self) -> u8 {
        match self {
            Self::Eight => 7,
            Self::Four => 4,
        }
    }

    /// The shapes it knows, smallest first.
    pub fn shapes(self) -> impl Iterator<Item = Shape> {
        self.rows().iter().map(|row| row.shape)
    }

    /// How much of compute and of memory an instance takes; none where this axis has no such shape. Unit: slices.
    pub fn slices(self, shape: Shape) -> Option<(u8, u8)> {
        self.row(shape).map(|row| (row.compute, row.size))
    }

    /// NVIDIA's number of the profile, as `nvidia-smi mig -cgi` takes it.
    pub fn profile_id(self, shape: Shape) -> Option<u8> {
        self.row(shape).map(|row| row.profile_id)
    }

    pub(super) const fn rows(self) -> &'static [Row] {
        match self {
            Self::Eight => &EIGHT,
            Self::Four => &FOUR,
        }
    }

    pub(super) fn row(self, shape: Shape) -> Option<&'static Row> {
        self.rows().iter().find(|row| row.shape == shape)
    }
}

/// The shapes that a card's driver offers: the axis has more than an old driver or a site's choice may allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offer(u8);

impl Offer {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// All shapes there are; an axis leaves out what it doesn't know.
    pub const ALL: Self = Self(u8::MAX);

    /// These and no others.
    pub fn of(shapes: impl IntoIterator<Item = Shape>) -> Self {
        Self(shapes.into_iter().fold(0, |bits, shape| bits | 1 << shape.index()))
    }

    /// The shapes that every driver with MIG has: neither double memory nor media engines.
    pub fn plain() -> Self {
        Self::ALL.without(Shape::OneGDouble).without(Shape::OneGMedia).without(Shape::TwoGMedia)
    }

    /// Less one.
    pub const fn without(self, shape: Shape) -> Self {
        Self(self.0 & !(1 << shape.index()))
    }

    /// Whether it has the shape.
    pub const fn has(self, shape: Shape) -> bool {
        self.0 & 1 << shape.index() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_start_of_every_shape_lies_on_the_card() {
        for axis in [Axis::Eight, Axis::Four] {
            for row in axis.rows() {
                assert!(row.starts.iter().all(|start| start + row.size <= axis.memory_slices()), "{}", row.shape);
                assert!(row.compute <= axis.compute_slices(), "{}", row.shape);
            }
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for shape in Shape::ALL {
            assert_eq!(Shape::from_name(shape.name()), Some(shape));
        }
        assert_eq!(Shape::from_name("5g"), None);
    }
}
