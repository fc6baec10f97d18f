//! What an instance has beside its slices: processors and copy engines, as measured on real cards.
//!
//! Slices are not processors: a 3g of an H100 is three sevenths by name, 45.5 % of the card's multiprocessors, and half of its memory.

use super::{Model, Shape};

/// Multiprocessors of an instance. None where nobody has seen them.
///
/// Source: device queries on A100 (1g, 7g), H100 (all), B200 (1g, 1g2m, 2g); an H200 has as many as an H100.
pub const fn processors(model: Model, shape: Shape) -> Option<u16> {
    match (model, shape) {
        (Model::H100Of80 | Model::H200Of141, shape) => match shape {
            Shape::OneG | Shape::OneGMedia => Some(16),
            Shape::OneGDouble => Some(26),
            Shape::TwoG => Some(32),
            Shape::ThreeG => Some(60),
            Shape::FourG => Some(64),
            Shape::SevenG => Some(132),
            Shape::TwoGMedia => None,
        },
        (Model::A100Of40 | Model::A100Of80, Shape::OneG | Shape::OneGMedia) => Some(14),
        (Model::A100Of40 | Model::A100Of80, Shape::SevenG) => Some(98),
        (Model::B200Of180, Shape::OneG | Shape::OneGMedia) => Some(18),
        (Model::B200Of180, Shape::OneGDouble) => Some(30),
        (Model::B200Of180, Shape::TwoG) => Some(36),
        (Model::A30 | Model::A100Of40 | Model::A100Of80 | Model::B200Of180, _) => None,
    }
}

/// Copy engines of an instance. None where nobody has seen them.
pub const fn copy_engines(model: Model, shape: Shape) -> Option<u8> {
    let (singles, doubles) = match model {
        Model::A30 => return None,
        Model::A100Of40 | Model::A100Of80 => ([1, 2, 3, 4, 7], 1),
        Model::H100Of80 | Model::H200Of141 => ([1, 2, 3, 4, 8], 1),
        Model::B200Of180 => ([2, 3, 6, 8, 16], 2),
    };
    match shape {
        Shape::OneG | Shape::OneGMedia => Some(singles[0]),
        Shape::OneGDouble => Some(doubles),
        Shape::TwoG => Some(singles[1]),
        Shape::ThreeG => Some(singles[2]),
        Shape::FourG => Some(singles[3]),
        Shape::SevenG => Some(singles[4]),
        Shape::TwoGMedia => None,
    }
}

/// The greater of an instance's part of compute and its part of memory, as (numerator, denominator): what a fair price goes by.
///
/// A price only: as shares of a card these could add up to more than one (design §4.2). None where the card hasn't the shape.
pub fn greater_share(model: Model, shape: Shape) -> Option<(u8, u8)> {
    let axis = model.axis();
    let (compute, memory) = axis.slices(shape)?;
    let (of_compute, of_memory) = (axis.compute_slices(), axis.memory_slices());
    let by_compute = u16::from(compute) * u16::from(of_memory) >= u16::from(memory) * u16::from(of_compute);
    Some(if by_compute { (compute, of_compute) } else { (memory, of_memory) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule 3: 60 of 132 are 45.5 %; 26 of 132 are 19.7 % against 12.1 % of 16; MIG mode leaves 98 of an A100's 108.
    #[test]
    fn slices_are_not_processors() {
        let per_mille = |shape| processors(Model::H100Of80, shape).map(|n| (u32::from(n) * 1000 + 66) / 132);
        assert_eq!(per_mille(Shape::ThreeG), Some(455));
        assert_eq!(per_mille(Shape::OneGDouble), Some(197));
        assert_eq!(per_mille(Shape::OneG), Some(121));
        assert_eq!(processors(Model::A100Of80, Shape::SevenG), Some(98));
        assert_eq!(processors(Model::B200Of180, Shape::ThreeG), None);
    }

    /// Rule 4, in the order 1g, 1g+me, 1g2m, 2g, 3g, 4g, 7g.
    #[test]
    fn copy_engines_are_as_listed() {
        let all =
            |model: Model| model.axis().shapes().filter_map(|shape| copy_engines(model, shape)).collect::<Vec<_>>();
        assert_eq!(all(Model::A100Of40), [1, 1, 1, 2, 3, 4, 7]);
        assert_eq!(all(Model::H200Of141), [1, 1, 1, 2, 3, 4, 8]);
        assert_eq!(all(Model::B200Of180), [2, 2, 2, 3, 6, 8, 16]);
        assert!(all(Model::A30).is_empty());
    }

    #[test]
    fn a_price_goes_by_the_greater_of_compute_and_memory() {
        assert_eq!(greater_share(Model::A100Of80, Shape::OneG), Some((1, 7)));
        assert_eq!(greater_share(Model::A100Of80, Shape::OneGDouble), Some((2, 8)));
        assert_eq!(greater_share(Model::A100Of80, Shape::ThreeG), Some((4, 8)));
        assert_eq!(greater_share(Model::A100Of80, Shape::FourG), Some((4, 7)));
        assert_eq!(greater_share(Model::A30, Shape::TwoG), Some((2, 4)));
    }
}
