//! What goes first when instances are freed, and what is left behind when that fails.

use super::{Atlas, Placement, Refusal, Shape, State};
use cardhour_domain::Name;
use std::collections::{BTreeMap, BTreeSet};

/// An instance that was seen on a card.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// Its MIG UUID; the number of the GPU instance where it has none, since one without a compute instance has no device.
    pub id: Name,
    /// What it is, and where.
    pub placement: Placement,
    /// Its compute instances, by number.
    pub compute_instances: BTreeSet<u32>,
    /// Whether anybody holds it. Not known counts as held.
    pub is_held: bool,
}

/// One call to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Destroy a compute instance.
    Compute {
        /// Of this GPU instance.
        instance: Name,
        /// Its number.
        number: u32,
    },
    /// Destroy the GPU instance.
    Gpu {
        /// Which.
        instance: Name,
    },
}

/// What has to go for a shape to fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// These, in this order. Empty when it fits as it is.
    pub freed: Vec<Instance>,
    /// Where the shape goes then.
    pub placement: Placement,
}

/// What a card has against what the books say it should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// On the card, of no use to anybody and in nobody's plan: to be freed.
    pub stale: Vec<Instance>,
    /// On the card, in nobody's plan, and held: to be told, not touched.
    pub unplanned: Vec<Instance>,
    /// In the plan and not on the card.
    pub missing: Vec<Placement>,
}

/// The calls that destroy an instance: its compute instances before itself, highest number first. One whose compute instance
/// was never made, or is gone already, still has itself to be destroyed.
pub fn teardown(instance: &Instance) -> Vec<Teardown> {
    let computes = instance
        .compute_instances
        .iter()
        .rev()
        .map(|number| Teardown::Compute { instance: instance.id.clone(), number: *number });
    computes.chain([Teardown::Gpu { instance: instance.id.clone() }]).collect()
}

/// Those that nobody holds, in the order in which they should be freed.
///
/// Freed in any other order a card ends with free slices in places where nothing larger fits (dra-driver-nvidia-gpu#933). Of all orders this is
/// the one in which the card is most open after the first is gone, then after the second, and so on; of equal ones the lowest on the card first.
pub fn freeing_order(atlas: &Atlas, instances: &[Instance]) -> Result<Vec<Instance>, Refusal> {
    let state = State::of(atlas.axis(), instances.iter().map(|instance| instance.placement))?;
    let mut idle: Vec<&Instance> = instances.iter().filter(|instance| !instance.is_held).collect();
    idle.sort_by_key(|instance| (instance.placement.start, &instance.id));
    let mut best = BTreeMap::new();
    let (_, order) = best_order(atlas, state, &idle, 0, &mut best)?;
    Ok(order.into_iter().map(|at| idle[at].clone()).collect())
}

/// How open the card is after each step, and the steps: indexes of `idle`.
type Order = (Vec<u32>, Vec<usize>);

/// The best order for those that aren't in the set `gone`. A card has at most seven instances, so there are at most 128 sets.
fn best_order(
    atlas: &Atlas,
    state: State,
    idle: &[&Instance],
    gone: u32,
    known: &mut BTreeMap<u32, Order>,
) -> Result<Order, Refusal> {
    if let Some(order) = known.get(&gone) {
        return Ok(order.clone());
    }
    let mut best = Order::default();
    for at in (0..idle.len()).filter(|at| gone & 1 << at == 0) {
        let after = state.without(idle[at].placement)?;
        let (opens, steps) = best_order(atlas, after, idle, gone | 1 << at, known)?;
        let open = atlas.layouts_from(after).unwrap_or_else(|| after.placements(atlas.offer()).count() as u32);
        let opens = [vec![open], opens].concat();
        if opens > best.0 {
            best = (opens, [vec![at], steps].concat());
        }
    }
    known.insert(gone, best.clone());
    Ok(best)
}

/// The fewest instances that nobody holds whose end makes room for a shape; none when even all of them don't.
///
/// Of equal numbers the set that leaves most layouts open afterwards, then the lowest places.
pub fn cheapest_room(atlas: &Atlas, instances: &[Instance], shape: Shape) -> Result<Option<Room>, Refusal> {
    let whole = State::of(atlas.axis(), instances.iter().map(|instance| instance.placement))?;
    let idle: Vec<&Instance> = instances.iter().filter(|instance| !instance.is_held).collect();
    // A card has at most seven instances: all sets of them are a hundred and twenty-eight.
    let mut best = None;
    for set in 0u32..1 << idle.len() {
        let chosen: Vec<&Instance> = (0..idle.len()).filter(|at| set & 1 << at != 0).map(|at| idle[at]).collect();
        let state = chosen.iter().try_fold(whole, |state, instance| state.without(instance.placement))?;
        let Some(placement) = atlas.best_start(state, shape) else { continue };
        let after = state.with(placement).expect("a possible placement");
        let open = atlas.layouts_from(after).unwrap_or(0);
        let lowest: Vec<u8> = chosen.iter().map(|instance| instance.placement.start).collect();
        let rank = (set.count_ones(), std::cmp::Reverse(open), lowest);
        if best.as_ref().is_none_or(|(least, _, _)| rank < *least) {
            best = Some((rank, chosen, placement));
        }
    }
    let Some((_, chosen, placement)) = best else { return Ok(None) };
    let chosen: BTreeSet<&Name> = chosen.iter().map(|instance| &instance.id).collect();
    let freed = freeing_order(atlas, instances)?.into_iter().filter(|instance| chosen.contains(&instance.id)).collect();
    Ok(Some(Room { freed, placement }))
}

/// Holds what is on a card against what was planned for it: a call that failed half way leaves an instance that no plan knows.
pub fn reconcile(seen: &[Instance], planned: &BTreeSet<Placement>) -> Reconciled {
    let there: BTreeMap<Placement, &Instance> = seen.iter().map(|instance| (instance.placement, instance)).collect();
    let mut reconciled = Reconciled {
        missing: planned.iter().filter(|placement| !there.contains_key(placement)).copied().collect(),
        ..Reconciled::default()
    };
    for instance in there.into_values().filter(|instance| !planned.contains(&instance.placement)) {
        let list = if instance.is_held { &mut reconciled.unplanned } else { &mut reconciled.stale };
        list.push(instance.clone());
    }
    reconciled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mig::{Axis, Offer};

    fn instance(text: &str) -> Instance {
        let is_held = text.ends_with('!');
        let text = text.trim_end_matches('!');
        let (shape, start) = text.split_once('@').unwrap();
        let placement = Placement { shape: Shape::from_name(shape).unwrap(), start: start.parse().unwrap() };
        Instance { id: text.into(), placement, compute_instances: BTreeSet::from([0]), is_held }
    }

    /// `!` marks one that is held.
    fn instances(text: &str) -> Vec<Instance> {
        text.split_whitespace().map(instance).collect()
    }

    fn ids(instances: &[Instance]) -> String {
        instances.iter().map(|instance| instance.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// dra-driver-nvidia-gpu#933: 1g at 0, 1 and 5 stayed, and a 3g had no place though four slices of compute and five of memory were free.
    /// Freed in this order a 3g has one as soon as three are gone, and with four gone still.
    #[test]
    fn single_slices_are_freed_so_that_the_next_larger_shape_fits() {
        let atlas = Atlas::new(Axis::Eight, Offer::plain());
        let all = instances("1g@0 1g@1 1g@2 1g@3 1g@4 1g@5 1g@6");
        let order = freeing_order(&atlas, &all).unwrap();
        for gone in [3, 4] {
            let left = State::of(Axis::Eight, order[gone..].iter().map(|instance| instance.placement)).unwrap();
            assert!(left.placements_of(Shape::ThreeG).next().is_some(), "{}", ids(&order));
        }
        let stuck = State::of(Axis::Eight, instances("1g@0 1g@1 1g@5").iter().map(|i| i.placement)).unwrap();
        assert_eq!(stuck.placements_of(Shape::ThreeG).count(), 0);
    }

    #[test]
    fn what_is_held_stays() {
        let atlas = Atlas::new(Axis::Eight, Offer::plain());
        assert_eq!(ids(&freeing_order(&atlas, &instances("3g@0! 2g@4 1g@6!")).unwrap()), "2g@4");
        assert_eq!(cheapest_room(&atlas, &instances("3g@0! 2g@4 1g@6!"), Shape::ThreeG).unwrap(), None);
    }

    /// For a 4g slices 0 to 3 must be free: the 2g at 0 alone stands there. For a 3g beside it, the two at the other end.
    #[test]
    fn room_is_made_by_as_few_as_will_do() {
        let atlas = Atlas::new(Axis::Eight, Offer::plain());
        let room = cheapest_room(&atlas, &instances("2g@0 2g@4 1g@6"), Shape::FourG).unwrap().unwrap();
        assert_eq!((ids(&room.freed).as_str(), room.placement.start), ("2g@0", 0));
        let room = cheapest_room(&atlas, &instances("2g@0! 2g@4 1g@6"), Shape::ThreeG).unwrap().unwrap();
        assert_eq!((room.freed.len(), room.placement.start), (2, 4));
        let room = cheapest_room(&atlas, &instances("2g@0!"), Shape::ThreeG).unwrap().unwrap();
        assert_eq!((room.freed.len(), room.placement.start), (0, 4));
    }

    #[test]
    fn compute_instances_go_before_their_gpu_instance_and_one_without_any_goes_too() {
        let mut one = instance("3g@4");
        one.compute_instances = BTreeSet::from([0, 1]);
        let gpu = Teardown::Gpu { instance: one.id.clone() };
        let compute = |number| Teardown::Compute { instance: "3g@4".into(), number };
        assert_eq!(teardown(&one), [compute(1), compute(0), gpu.clone()]);
        one.compute_instances.clear();
        assert_eq!(teardown(&one), [gpu]);
    }

    #[test]
    fn an_instance_in_nobodys_plan_is_stale_only_when_nobody_holds_it() {
        let planned = instances("2g@0 3g@4").iter().map(|i| i.placement).collect();
        let found = reconcile(&instances("2g@0! 1g@2 1g@3!"), &planned);
        assert_eq!((ids(&found.stale).as_str(), ids(&found.unplanned).as_str()), ("1g@2", "1g@3"));
        assert_eq!(found.missing, [Placement { shape: Shape::ThreeG, start: 4 }]);
    }
}
