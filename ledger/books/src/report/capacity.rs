//! What there was to be held, and what was held beyond it (LED-1, counts for each capacity group).

use super::input::{CapacityCell, ReportInput};
use super::rows::Place;
use crate::cell::Cell;
use crate::slots::{Era, Slots};
use cardhour_domain::{CardState, CardTime, Name};
use rustc_hash::FxHashMap;

/// Capacity of one group over one slot.
#[derive(Clone, Copy)]
pub(crate) struct GroupCapacity<'a> {
    pub place: Place<'a>,
    pub slot: u32,
    pub capacity: CardTime,
    /// What was held beyond it.
    pub over: CardTime,
    /// What no row of the group speaks for: unaccounted, beside what says so itself.
    pub unaccounted: CardTime,
}

/// All groups' capacity, and what there is to say of those without.
pub(crate) struct Capacity<'a> {
    pub groups: Vec<GroupCapacity<'a>>,
    /// Clusters that hold cards and of which nobody says how many there are, in order.
    pub unknown: Vec<&'a Name>,
}

/// How finely all rows of a cluster tell its cards apart: the finest that every one supports (LED-1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Cluster,
    Model,
    Node,
}

impl<'a> Capacity<'a> {
    pub fn of(input: &'a ReportInput, slots: &Slots) -> Self {
        let shown = |slot: u32| slots.slot(slot).era == Era::Shown;
        let levels = levels(input);

        type Key<'k> = (&'k str, Option<&'k str>, u32);
        let key = |cluster: &'a Name, node: &'a Option<Name>, model: &'a Option<Name>, slot: u32| -> Key<'a> {
            match levels[&**cluster] {
                Level::Node => (cluster, node.as_deref(), slot),
                Level::Model => (cluster, model.as_deref(), slot),
                Level::Cluster => (cluster, None, slot),
            }
        };
        let mut numbers: FxHashMap<Key<'a>, usize> = FxHashMap::default();
        let mut groups: Vec<GroupCapacity<'a>> = Vec::new();
        for cell in input.capacity.iter().filter(|cell| shown(cell.slot)) {
            let group = *numbers.entry(key(&cell.cluster, &cell.node, &cell.model, cell.slot)).or_insert_with(|| {
                let is_node = levels[&*cell.cluster] == Level::Node;
                let place = Place {
                    cluster: Some(&cell.cluster),
                    pool: cell.pool.as_ref(),
                    node: cell.node.as_ref().filter(|_| is_node),
                    model: cell.model.as_ref(),
                };
                let zero = CardTime::ZERO;
                groups.push(GroupCapacity { place, slot: cell.slot, capacity: zero, over: zero, unaccounted: zero });
                groups.len() - 1
            });
            let group = &mut groups[group];
            group.capacity += cell.card_time;
            // What isn't the same for all of it can't be said of it.
            group.place.pool = group.place.pool.filter(|pool| cell.pool.as_ref() == Some(pool));
            group.place.model = group.place.model.filter(|model| cell.model.as_ref() == Some(model));
        }
        let mut states = vec![CardTime::ZERO; groups.len()];
        let mut unknown: Vec<&Name> = Vec::new();
        for cell in input.cells.iter().filter(|cell| shown(cell.slot)) {
            match numbers.get(&key(&cell.cluster, &cell.node, &cell.model, cell.slot)) {
                Some(group) => states[*group] += cell.card_time,
                None if cell.state == CardState::Held && unknown.last().is_none_or(|last| **last != cell.cluster) => {
                    unknown.push(&cell.cluster);
                }
                None => {}
            }
        }
        for (group, states) in groups.iter_mut().zip(states) {
            group.over = (states - group.capacity).max(CardTime::ZERO);
            group.unaccounted = (group.capacity - states).max(CardTime::ZERO);
            assert_eq!(states + group.unaccounted, group.capacity + group.over, "LED-1: states fill the capacity");
        }
        unknown.sort();
        unknown.dedup();
        Self { groups, unknown }
    }
}

fn levels(input: &ReportInput) -> FxHashMap<&str, Level> {
    let of_capacity = input.capacity.iter().map(|CapacityCell { cluster, node, model, .. }| (cluster, node, model));
    let of_usage = input.cells.iter().map(|Cell { cluster, node, model, .. }| (cluster, node, model));
    let mut levels: FxHashMap<&str, (bool, bool)> = FxHashMap::default();
    for (cluster, node, model) in of_capacity.chain(of_usage) {
        let (nodes, models) = levels.entry(&**cluster).or_insert((true, true));
        *nodes &= node.is_some();
        *models &= model.is_some();
    }
    let level = |(nodes, models)| match (nodes, models) {
        (true, _) => Level::Node,
        (false, true) => Level::Model,
        (false, false) => Level::Cluster,
    };
    levels.into_iter().map(|(cluster, supported)| (cluster, level(supported))).collect()
}
