//! All layouts of a card, worked out once.

use super::{Axis, Offer, Placement, Shape, State};
use std::collections::{BTreeMap, BTreeSet};

/// All layouts that an axis can have with the shapes offered, and from each how much is still open.
///
/// 723 layouts with double memory, some thousands with the media engines: it is built once a kind of card and asked ever after.
#[derive(Clone, Debug)]
pub struct Atlas {
    axis: Axis,
    offer: Offer,
    prospects: BTreeMap<State, Prospect>,
}

/// What may still come of a state.
#[derive(Clone, Copy, Debug)]
struct Prospect {
    /// Layouts that can be reached, itself among them.
    layouts: u32,
    /// The most slices of memory that can ever be taken, from here.
    most_memory: u8,
    /// The same of compute.
    most_compute: u8,
}

/// Slices that are free and that no instance can take any more, whatever comes. They are nobody's and can't be lent (design §4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stranded {
    /// Slices of memory.
    pub memory: u8,
    /// Slices of compute.
    pub compute: u8,
}

impl Atlas {
    /// Works all layouts out.
    pub fn new(axis: Axis, offer: Offer) -> Self {
        let mut atlas = Self { axis, offer, prospects: BTreeMap::new() };
        let mut extensions = BTreeMap::new();
        atlas.explore(State::empty(axis), &mut extensions);
        atlas
    }

    /// Its axis.
    pub const fn axis(&self) -> Axis {
        self.axis
    }

    /// The shapes it was made for.
    pub const fn offer(&self) -> Offer {
        self.offer
    }

    /// How many layouts can still be reached from here, this one among them. None when a shape that isn't offered is on the card.
    pub fn layouts_from(&self, state: State) -> Option<u32> {
        self.prospects.get(&state).map(|prospect| prospect.layouts)
    }

    /// Where an instance should go: where most layouts stay open.
    ///
    /// Counting layouts rather than shapes is what lets a 2g, a 3g and a 2g that come one after the other all fit: the 2g goes to slice 0,
    /// though at 4 a 4g would still be possible. On a tie 1g and 3g go high, 2g, 4g and 7g low. None when it doesn't fit.
    ///
    /// A card with a shape on it that the atlas wasn't made for is judged by how many placements stay possible.
    pub fn best_start(&self, state: State, shape: Shape) -> Option<Placement> {
        if !self.offer.has(shape) {
            return None;
        }
        state.placements_of(shape).max_by_key(|placement| {
            let after = state.with(*placement).expect("a possible placement");
            let open = self.layouts_from(after).unwrap_or_else(|| after.placements(self.offer).count() as u32);
            let start = i16::from(placement.start);
            (open, if shape.prefers_high() { start } else { -start })
        })
    }

    /// What is lost for good on a card as it is. None when a shape that isn't offered is on it, so that nobody knows what may still come.
    pub fn stranded(&self, state: State) -> Option<Stranded> {
        self.prospects.get(&state).map(|prospect| Stranded {
            memory: self.axis.memory_slices() - prospect.most_memory,
            compute: self.axis.compute_slices() - prospect.most_compute,
        })
    }

    /// All layouts, each as its placements, in order. The first is the empty card.
    pub fn layouts(&self) -> BTreeSet<Vec<Placement>> {
        let mut found = BTreeSet::new();
        let mut open = vec![(State::empty(self.axis), Vec::new())];
        while let Some((state, layout)) = open.pop() {
            for placement in state.placements(self.offer).filter(|p| layout.last().is_none_or(|last| last < p)) {
                let mut next = layout.clone();
                next.push(placement);
                open.push((state.with(placement).expect("a possible placement"), next));
            }
            found.insert(layout);
        }
        found
    }

    /// Fills in what may come of a state, and of all that follow. Returns the layouts that can be reached, each as its set of further placements.
    fn explore(&mut self, state: State, reached: &mut BTreeMap<State, Vec<u64>>) {
        if reached.contains_key(&state) {
            return;
        }
        let mut layouts = BTreeSet::from([0u64]);
        let mut most_memory = state.axis().memory_slices() - state.free_memory();
        let mut most_compute = state.axis().compute_slices() - state.free_compute();
        for placement in state.placements(self.offer) {
            let next = state.with(placement).expect("a possible placement");
            self.explore(next, reached);
            let bit = 1u64 << (placement.shape.index() * 8 + usize::from(placement.start));
            layouts.extend(reached[&next].iter().map(|layout| layout | bit));
            let prospect = self.prospects[&next];
            most_memory = most_memory.max(prospect.most_memory);
            most_compute = most_compute.max(prospect.most_compute);
        }
        let layouts: Vec<u64> = layouts.into_iter().collect();
        let prospect = Prospect { layouts: layouts.len() as u32, most_memory, most_compute };
        self.prospects.insert(state, prospect);
        reached.insert(state, layouts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(layout: &[Placement]) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = layout.iter().map(|p| p.shape).collect();
        shapes.sort();
        shapes
    }

    /// Layouts, those nothing more fits on, and the different mixes among these.
    fn counts(axis: Axis, offer: Offer) -> (usize, usize, usize) {
        let layouts = Atlas::new(axis, offer).layouts();
        let full: Vec<_> = layouts
            .iter()
            .filter(|layout| State::of(axis, layout.iter().copied()).unwrap().placements(offer).next().is_none())
            .collect();
        let mixes: BTreeSet<_> = full.iter().map(|layout| mix(layout)).collect();
        (layouts.len(), full.len(), mixes.len())
    }

    /// Rule 7, found there by enumeration with another program.
    #[test]
    fn there_are_as_many_layouts_as_were_counted_elsewhere() {
        assert_eq!(counts(Axis::Eight, Offer::plain()), (298, 19, 14));
        assert_eq!(counts(Axis::Eight, Offer::ALL.without(Shape::OneGMedia)), (723, 78, 38));
        assert_eq!(counts(Axis::Four, Offer::plain()), (26, 5, 4));
    }

    #[test]
    fn the_prospects_count_the_same_layouts() {
        for (axis, offer) in [(Axis::Eight, Offer::plain()), (Axis::Four, Offer::ALL), (Axis::Eight, Offer::ALL)] {
            let atlas = Atlas::new(axis, offer);
            let layouts = atlas.layouts();
            assert_eq!(atlas.layouts_from(State::empty(axis)), Some(layouts.len() as u32));
            for layout in layouts.iter().step_by(37) {
                let beyond = layouts.iter().filter(|other| layout.iter().all(|p| other.contains(p))).count();
                let state = State::of(axis, layout.iter().copied()).unwrap();
                assert_eq!(atlas.layouts_from(state), Some(beyond as u32), "{layout:?}");
            }
        }
    }

    fn all_taken(offer: Offer) -> BTreeSet<String> {
        let layouts = Atlas::new(Axis::Eight, offer).layouts();
        let taken = layouts.iter().filter(|layout| {
            let state = State::of(Axis::Eight, layout.iter().copied()).unwrap();
            (state.free_memory(), state.free_compute()) == (0, 0)
        });
        taken
            .map(|layout| {
                let mut shapes = mix(layout);
                shapes.reverse();
                shapes.iter().map(|shape| shape.name()).collect::<Vec<_>>().join("+")
            })
            .collect()
    }

    /// Rule 8.
    #[test]
    fn these_layouts_and_no_others_leave_nothing_over() {
        let plain = ["7g", "4g+3g", "3g+2g+2g", "3g+2g+1g+1g", "3g+1g+1g+1g+1g"];
        let double = [
            "4g+2g+1g2m",
            "4g+1g2m+1g+1g",
            "2g+2g+2g+1g2m",
            "2g+2g+1g2m+1g+1g",
            "2g+1g2m+1g+1g+1g+1g",
            "1g2m+1g+1g+1g+1g+1g+1g",
        ];
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(all_taken(Offer::plain()), names(&plain));
        assert_eq!(all_taken(Offer::ALL.without(Shape::OneGMedia)), names(&[&plain[..], &double[..]].concat()));
    }

    fn state(text: &str) -> State {
        let placements = text.split_whitespace().map(|word| {
            let (shape, start) = word.split_once('@').unwrap();
            Placement { shape: Shape::from_name(shape).unwrap(), start: start.parse().unwrap() }
        });
        State::of(Axis::Eight, placements).unwrap()
    }

    /// Rule 8: what these lose, in slices of memory and of compute.
    #[test]
    fn what_a_layout_leaves_over_is_as_published() {
        for (layout, memory, compute) in [
            ("1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6", 1, 0),
            ("2g@0 2g@2 2g@4", 2, 1),
            ("1g2m@0 1g2m@2 1g2m@4 1g2m@6", 0, 3),
            ("4g@0 2g@4 1g@6", 1, 0),
        ] {
            let state = state(layout);
            assert_eq!((state.free_memory(), state.free_compute()), (memory, compute), "{layout}");
        }
    }

    /// Three 2g leave slices 6 and 7 and one of compute. With double memory one instance takes them all, so nothing is lost yet; without, a
    /// 1g takes slice 6 and the last of compute, and slice 7 is lost. Four 1g2m leave compute and no memory: that is lost.
    #[test]
    fn only_what_nothing_can_take_any_more_is_stranded() {
        let double = Atlas::new(Axis::Eight, Offer::ALL.without(Shape::OneGMedia));
        let plain = Atlas::new(Axis::Eight, Offer::plain());
        let three = state("2g@0 2g@2 2g@4");
        assert_eq!(double.stranded(three).unwrap(), Stranded { memory: 0, compute: 0 });
        assert_eq!(plain.stranded(three).unwrap(), Stranded { memory: 1, compute: 0 });
        let four = state("1g2m@0 1g2m@2 1g2m@4 1g2m@6");
        assert_eq!(double.stranded(four).unwrap(), Stranded { memory: 0, compute: 3 });
        assert_eq!(plain.stranded(four), None);
        assert_eq!(plain.stranded(State::empty(Axis::Eight)).unwrap(), Stranded::default());
    }

    fn starts(offer: Offer, shapes: &str) -> Vec<u8> {
        let atlas = Atlas::new(Axis::Eight, offer);
        let mut state = State::empty(Axis::Eight);
        let each = shapes.split_whitespace().map(|name| {
            let placement = atlas.best_start(state, Shape::from_name(name).unwrap()).unwrap();
            state = state.with(placement).unwrap();
            placement.start
        });
        each.collect()
    }

    /// Rule 9: 1g high, 3g at 4, 2g and 4g low; and whatever of 3g, 2g and 2g comes first, all three fit.
    #[test]
    fn a_start_leaves_most_layouts_open() {
        for offer in [Offer::plain(), Offer::ALL.without(Shape::OneGMedia)] {
            assert_eq!(starts(offer, "1g 1g 1g 1g 1g 1g 1g"), [6, 5, 4, 3, 2, 1, 0]);
            assert_eq!(starts(offer, "3g 4g"), [4, 0]);
            assert_eq!(starts(offer, "4g 3g"), [0, 4]);
            assert_eq!(starts(offer, "2g 2g 2g"), [0, 2, 4]);
            assert_eq!(starts(offer, "2g 3g 2g"), [0, 4, 2]);
            assert_eq!(starts(offer, "3g 2g 1g 1g"), [4, 0, 3, 2]);
            assert_eq!(starts(offer, "1g 4g"), [6, 0]);
            // Where the low end alone would be wrong: a 2g at 0 and a 1g at 6 leave a 3g no place.
            assert_eq!(starts(offer, "1g 2g 3g"), [6, 4, 0]);
        }
        assert_eq!(starts(Offer::ALL, "1g2m 4g 2g"), [6, 0, 4]);
    }

    #[test]
    fn an_a30_keeps_its_halves_together() {
        let atlas = Atlas::new(Axis::Four, Offer::plain());
        let first = atlas.best_start(State::empty(Axis::Four), Shape::OneG).unwrap();
        let state = State::empty(Axis::Four).with(first).unwrap();
        let second = atlas.best_start(state, Shape::OneG).unwrap();
        assert_eq!((first.start, second.start), (3, 2));
        assert!(state.with(second).unwrap().placements_of(Shape::TwoG).any(|p| p.start == 0));
        assert_eq!(atlas.best_start(State::empty(Axis::Four), Shape::ThreeG), None);
    }
}
