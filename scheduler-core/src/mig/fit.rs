//! Several instances on one card, and one instance among several cards.

use super::{Atlas, Axis, Offer, Placement, Refusal, Shape, State};
use cardhour_domain::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Where an instance goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardChoice {
    /// The card's UUID.
    pub card_uuid: Name,
    /// What goes there.
    pub placement: Placement,
    /// Whether the card had nothing on it before: it can't be given whole any more.
    pub opens_card: bool,
}

/// Places for all of these at once on one card, in the order asked; none when they don't all fit.
///
/// Every way is tried, so that none which exists is missed. What is on the card already stays where it is.
pub fn fit_together(state: State, wanted: &[Shape]) -> Option<Vec<Placement>> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    // Larger ones have fewer places: tried first, most of what can't work falls early.
    order.sort_by_key(|at| std::cmp::Reverse((state.axis().slices(wanted[*at]), wanted[*at])));
    let slices = wanted.iter().try_fold((0, 0), |(compute, memory), shape| {
        let (of_compute, of_memory) = state.axis().slices(*shape)?;
        Some((compute + usize::from(of_compute), memory + usize::from(of_memory)))
    });
    let fits =
        |(compute, memory)| compute <= usize::from(state.free_compute()) && memory <= usize::from(state.free_memory());
    slices.filter(|slices| fits(*slices))?;
    let mut places = vec![None; wanted.len()];
    place(state, wanted, &order, &mut places).then(|| places.into_iter().flatten().collect())
}

fn place(state: State, wanted: &[Shape], order: &[usize], places: &mut [Option<Placement>]) -> bool {
    let Some((first, rest)) = order.split_first() else { return true };
    let shape = wanted[*first];
    let mut candidates: Vec<_> = state.placements_of(shape).collect();
    if shape.prefers_high() {
        candidates.reverse();
    }
    // Of equal shapes each goes beyond the one before it: their order makes no other layout.
    if let Some(before) = places
        .iter()
        .flatten()
        .filter(|p| p.shape == shape)
        .map(|p| p.start)
        .reduce(|a, b| if shape.prefers_high() { a.min(b) } else { a.max(b) })
    {
        candidates.retain(|p| if shape.prefers_high() { p.start < before } else { p.start > before });
    }
    for placement in candidates {
        let next = state.with(placement).expect("a possible placement");
        places[*first] = Some(placement);
        if place(next, wanted, rest, places) {
            return true;
        }
    }
    places[*first] = None;
    false
}

/// The card for one more instance among those of one kind.
///
/// A card that is cut already before one that isn't: each card opened is one fewer to give whole. Among those the fullest, so that
/// the others stay open for larger shapes; then where least is lost for later; then by UUID. Errors: no card has room.
pub fn best_card(atlas: &Atlas, cards: &BTreeMap<Name, State>, shape: Shape) -> Result<CardChoice, Refusal> {
    let mut seen = BTreeSet::new();
    let choice = cards
        .iter()
        // Cards in the same state are equal but for their UUID, and the first of them comes first.
        .filter(|(_, state)| seen.insert(**state))
        .filter_map(|(card_uuid, state)| {
            let placement = atlas.best_start(*state, shape)?;
            let after = state.with(placement).expect("a possible placement");
            let lost = atlas.stranded(after).map_or((0, 0), |stranded| (stranded.memory, stranded.compute));
            let rank = (state.is_empty(), after.free_compute(), after.free_memory(), lost, card_uuid);
            Some((rank, placement))
        })
        .min_by(|(a, _), (b, _)| a.cmp(b));
    let ((opens_card, .., card_uuid), placement) = choice.ok_or(Refusal::NoRoom { shape, looked_at: cards.len() })?;
    Ok(CardChoice { card_uuid: card_uuid.clone(), placement, opens_card })
}

/// Places for many at once over cards of one kind, in the order asked; it opens few cards.
///
/// Larger ones first, each to the fullest card on which it fits together with what this call has put there; places are settled at the end, so
/// that an early one doesn't stand in a later one's way. That is first-fit decreasing: good, not the very least in every case. All or nothing.
/// Errors: the first that has no room.
pub fn pack(
    axis: Axis,
    offer: Offer,
    cards: &BTreeMap<Name, State>,
    wanted: &[Shape],
) -> Result<Vec<CardChoice>, Refusal> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(axis.slices(wanted[*at])), *at));
    // By card: which of those wanted go there, and where.
    let mut given: BTreeMap<&Name, (Vec<usize>, Vec<Placement>)> = BTreeMap::new();
    for at in order {
        if !offer.has(wanted[at]) {
            return Err(Refusal::NoSuchShape(wanted[at]));
        }
        let mut seen = BTreeSet::new();
        let best = cards
            .iter()
            .filter(|(card, state)| given.contains_key(card) || seen.insert(**state))
            .filter_map(|(card, state)| {
                let mut here = given.get(card).map(|(here, _)| here.clone()).unwrap_or_default();
                let is_closed = state.is_empty() && here.is_empty();
                here.push(at);
                let shapes: Vec<Shape> = here.iter().map(|at| wanted[*at]).collect();
                let places = fit_together(*state, &shapes)?;
                let after = places.iter().try_fold(*state, |state, p| state.with(*p)).expect("they fit together");
                Some(((is_closed, after.free_compute(), after.free_memory(), card), here, places))
            })
            .min_by(|(a, ..), (b, ..)| a.cmp(b));
        let (rank, here, places) = best.ok_or(Refusal::NoRoom { shape: wanted[at], looked_at: cards.len() })?;
        given.insert(rank.3, (here, places));
    }
    let mut choices: Vec<Option<CardChoice>> = vec![None; wanted.len()];
    for (card, (here, places)) in given {
        for (at, placement) in here.into_iter().zip(places) {
            choices[at] = Some(CardChoice { card_uuid: card.clone(), placement, opens_card: cards[card].is_empty() });
        }
    }
    Ok(choices.into_iter().map(|choice| choice.expect("each was given a place")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shapes(text: &str) -> Vec<Shape> {
        text.split_whitespace().map(|name| Shape::from_name(name).unwrap()).collect()
    }

    fn state(text: &str) -> State {
        let placements = text.split_whitespace().map(|word| {
            let (shape, start) = word.split_once('@').unwrap();
            Placement { shape: Shape::from_name(shape).unwrap(), start: start.parse().unwrap() }
        });
        State::of(Axis::Eight, placements).unwrap()
    }

    /// The four questions of that case. It tells what is taken as (start, size) on the axis of memory; these are the shapes of that size.
    #[test]
    fn sc_112_mig_feasibility_on_one_a100() {
        for (taken, wanted, is_feasible) in [
            ("", "3g 2g 1g 1g", true),
            ("3g@4", "2g 1g 1g", true),
            ("3g@0 3g@4", "1g", false),
            ("2g@0 2g@2 2g@4", "2g", false),
        ] {
            let places = fit_together(state(taken), &shapes(wanted));
            assert_eq!(places.is_some(), is_feasible, "{taken} + {wanted}");
            if let Some(places) = places {
                let asked: Vec<_> = places.iter().map(|p| p.shape).collect();
                assert_eq!(asked, shapes(wanted));
                places.iter().try_fold(state(taken), |state, p| state.with(*p)).unwrap();
            }
        }
    }

    #[test]
    fn places_are_found_whatever_the_order_they_are_asked_in() {
        for wanted in ["1g 1g 2g 3g", "2g 3g 2g", "3g 4g", "4g 3g", "1g 2g 4g", "1g2m 2g 2g 2g"] {
            assert!(fit_together(State::empty(Axis::Eight), &shapes(wanted)).is_some(), "{wanted}");
        }
        for wanted in ["4g 4g", "3g 3g 1g", "2g 2g 2g 2g", "7g 1g", "1g 1g 1g 1g 1g 1g 1g 1g", "1g+me 1g+me"] {
            assert!(fit_together(State::empty(Axis::Eight), &shapes(wanted)).is_none(), "{wanted}");
        }
    }

    fn cards(list: &[(&str, &str)]) -> BTreeMap<Name, State> {
        list.iter().map(|(card, on)| ((*card).into(), state(on))).collect()
    }

    #[test]
    fn a_card_that_is_cut_already_comes_before_one_that_is_whole() {
        let atlas = Atlas::new(Axis::Eight, Offer::plain());
        let pool = cards(&[("GPU-a", ""), ("GPU-b", "1g@6"), ("GPU-c", "3g@4 2g@0")]);
        let choice = best_card(&atlas, &pool, Shape::OneG).unwrap();
        assert_eq!((choice.card_uuid.as_str(), choice.placement.start, choice.opens_card), ("GPU-c", 3, false));
        let choice = best_card(&atlas, &pool, Shape::FourG).unwrap();
        assert_eq!((choice.card_uuid.as_str(), choice.opens_card), ("GPU-b", false));
        let choice = best_card(&atlas, &pool, Shape::SevenG).unwrap();
        assert_eq!((choice.card_uuid.as_str(), choice.opens_card), ("GPU-a", true));
        let pool = cards(&[("GPU-b", "1g@6")]);
        assert_eq!(best_card(&atlas, &pool, Shape::SevenG).unwrap_err().code(), "mig_no_room");
    }

    /// k8s-device-plugin PR#1621: seven single slices spread over seven cards leave no whole card; here they go to one.
    #[test]
    fn single_slices_are_packed_on_one_card() {
        let pool = cards(&[("GPU-a", ""), ("GPU-b", ""), ("GPU-c", "")]);
        let choices = pack(Axis::Eight, Offer::plain(), &pool, &[Shape::OneG; 7]).unwrap();
        assert!(choices.iter().all(|choice| choice.card_uuid == "GPU-a" && choice.opens_card));
    }

    /// 4g + 3g fill one card, 3g + 2g + 2g another: two cards, and no fewer hold fourteen slices of compute.
    #[test]
    fn many_at_once_open_few_cards_or_none_at_all() {
        let pool = cards(&[("GPU-a", ""), ("GPU-b", ""), ("GPU-c", "")]);
        let choices = pack(Axis::Eight, Offer::plain(), &pool, &shapes("2g 3g 4g 2g 3g")).unwrap();
        let opened: BTreeSet<_> = choices.iter().map(|choice| &choice.card_uuid).collect();
        assert_eq!(opened.len(), 2);
        for card in opened {
            State::of(Axis::Eight, choices.iter().filter(|c| c.card_uuid == *card).map(|c| c.placement)).unwrap();
        }
        let refusal = pack(Axis::Eight, Offer::plain(), &pool, &shapes("7g 7g 7g 1g")).unwrap_err();
        assert_eq!(refusal, Refusal::NoRoom { shape: Shape::OneG, looked_at: 3 });
    }

    proptest! {
        /// The search, against a list of all layouts: a set of shapes fits beside what is there exactly when some layout has both.
        #[test]
        fn shapes_fit_exactly_when_some_layout_has_them(layout in 0usize..723, wanted in prop::collection::vec(0usize..6, 0..5)) {
            let offer = Offer::ALL.without(Shape::OneGMedia);
            let layouts = Atlas::new(Axis::Eight, offer).layouts();
            let there = layouts.iter().nth(layout).unwrap();
            let all: Vec<Shape> = Axis::Eight.shapes().filter(|shape| offer.has(*shape)).collect();
            let mut wanted: Vec<Shape> = wanted.into_iter().map(|n| all[n]).collect();
            wanted.sort();
            let some_layout_has_both = layouts.iter().any(|other| {
                let mut more: Vec<Shape> = other.iter().filter(|p| !there.contains(p)).map(|p| p.shape).collect();
                more.sort();
                there.iter().all(|p| other.contains(p)) && more == wanted
            });
            let state = State::of(Axis::Eight, there.iter().copied()).unwrap();
            prop_assert_eq!(fit_together(state, &wanted).is_some(), some_layout_has_both);
        }
    }
}
