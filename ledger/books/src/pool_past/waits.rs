//! What jobs waited for: one sweep over a pool's time, from one start, end or submit to the next.
//!
//! Waits are counted by how cards lay in the end, not job by job: of all that wait for eight cards on one node the same is true at an instant.

use super::{PastWait, Pool};
use cardhour_domain::{CardShare, Interval, Name, Timestamp};
use chrono::NaiveDate;
use std::collections::BTreeMap;

/// How a job's cards lay: parts of cards on each of its nodes, most first.
type Layout = Vec<i128>;

/// How long jobs of a layout would have waited for each since the sweep began. Unit: milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    capacity_ms: i64,
    placement_ms: i64,
    other_ms: i64,
}

/// What changes at an instant.
#[derive(Default)]
struct Change<'a> {
    /// Parts of cards that are held more, or less, by node.
    held: Vec<(Option<&'a Name>, i128)>,
    /// The day that begins.
    day: Option<usize>,
    /// Jobs that begin to wait, by their numbers.
    submitted: Vec<usize>,
    /// Jobs that start.
    started: Vec<usize>,
}

/// The waits of what started in `known`, in the order of the pool's attempts. What was submitted before `known` waited from its begin on for reasons that are
/// told, and before that for other ones.
pub(super) fn told_apart(pool: &Pool<'_>, days: &[(NaiveDate, Interval)], known: Interval) -> Vec<PastWait> {
    let mut changes: BTreeMap<Timestamp, Change<'_>> = BTreeMap::new();
    for (number, (_, during)) in days.iter().enumerate() {
        changes.entry(during.start()).or_default().day = Some(number);
    }
    let mut layouts: BTreeMap<Layout, usize> = BTreeMap::new();
    let mut layout_of: Vec<usize> = Vec::with_capacity(pool.attempts.len());
    for (number, one) in pool.attempts.iter().enumerate() {
        let mut layout: Layout = one.lay.nodes.values().copied().filter(|parts| *parts > 0).collect();
        layout.sort_unstable_by(|a, b| b.cmp(a));
        let next = layouts.len();
        layout_of.push(*layouts.entry(layout).or_insert(next));
        if let Some(held) = one.held.overlap(known) {
            for (at, sign) in [(held.start(), 1), (held.end(), -1)] {
                let change = changes.entry(at).or_default();
                change.held.extend(one.lay.nodes.iter().map(|(node, parts)| (*node, parts * sign)));
            }
        }
        if let Some(from) = one.waited_from.filter(|_| known.contains(one.held.start())) {
            changes.entry(from.max(known.start())).or_default().submitted.push(number);
            changes.entry(one.held.start()).or_default().started.push(number);
        }
    }
    let mut by_number: Vec<&Layout> = vec![&EMPTY; layouts.len()];
    for (layout, number) in &layouts {
        by_number[*number] = layout;
    }
    let mut free = Free { rooms: BTreeMap::new(), held: BTreeMap::new(), counts: BTreeMap::new(), sum: 0 };
    let mut counted = vec![Counted::default(); layouts.len()];
    let mut waiting: BTreeMap<usize, usize> = BTreeMap::new();
    let mut begun: BTreeMap<usize, Counted> = BTreeMap::new();
    let mut waits: BTreeMap<usize, PastWait> = BTreeMap::new();
    let mut last = known.start();
    for (at, change) in changes {
        let passed_ms = at.ms_since(last);
        if passed_ms > 0 {
            for number in waiting.keys() {
                let (counted, layout) = (&mut counted[*number], by_number[*number]);
                if free.sum < layout.iter().sum() {
                    counted.capacity_ms += passed_ms;
                } else if free.fits(layout) {
                    counted.other_ms += passed_ms;
                } else {
                    counted.placement_ms += passed_ms;
                }
            }
            last = at;
        }
        if let Some(day) = change.day {
            for (node, rooms) in &pool.rooms {
                free.set_room(*node, rooms[day].parts);
            }
        }
        for (node, parts) in change.held {
            free.hold(node, parts);
        }
        for number in change.submitted {
            begun.insert(number, counted[layout_of[number]]);
            *waiting.entry(layout_of[number]).or_default() += 1;
        }
        for number in change.started {
            let layout = layout_of[number];
            let one = &pool.attempts[number];
            let (now, then) = (counted[layout], begun[&number]);
            let before_ms = one.waited_from.map_or(0, |from| known.start().ms_since(from).max(0));
            let parts: i128 = one.lay.nodes.values().sum();
            let wait = PastWait {
                started_at: one.held.start(),
                cards: CardShare::from_parts(i64::try_from(parts).unwrap_or(i64::MAX)),
                for_capacity_ms: now.capacity_ms - then.capacity_ms,
                for_placement_ms: now.placement_ms - then.placement_ms,
                for_other_ms: now.other_ms - then.other_ms + before_ms,
            };
            waits.insert(number, wait);
            if let Some(count) = waiting.get_mut(&layout) {
                *count -= 1;
                if *count == 0 {
                    waiting.remove(&layout);
                }
            }
        }
    }
    waits.into_values().collect()
}

static EMPTY: Layout = Vec::new();

/// What is free, by node. Unit of all: parts of cards.
struct Free<'a> {
    rooms: BTreeMap<Option<&'a Name>, i128>,
    held: BTreeMap<Option<&'a Name>, i128>,
    /// How many nodes have how much free; none of them nothing.
    counts: BTreeMap<i128, usize>,
    sum: i128,
}

impl<'a> Free<'a> {
    fn of(&self, node: Option<&'a Name>) -> i128 {
        let of = |map: &BTreeMap<Option<&'a Name>, i128>| map.get(&node).copied().unwrap_or(0);
        (of(&self.rooms) - of(&self.held)).max(0)
    }

    fn change(&mut self, node: Option<&'a Name>, change: impl FnOnce(&mut Self)) {
        let before = self.of(node);
        change(self);
        let after = self.of(node);
        self.sum += after - before;
        if let Some(count) = self.counts.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&before);
            }
        }
        if after > 0 {
            *self.counts.entry(after).or_default() += 1;
        }
    }

    fn set_room(&mut self, node: Option<&'a Name>, parts: i128) {
        self.change(node, |free| {
            free.rooms.insert(node, parts);
        });
    }

    fn hold(&mut self, node: Option<&'a Name>, parts: i128) {
        self.change(node, |free| *free.held.entry(node).or_default() += parts);
    }

    /// Whether each part of a layout finds a node of its own: for the largest first, the one with the least that is enough.
    fn fits(&self, layout: &Layout) -> bool {
        if let [one] = layout[..] {
            return self.counts.last_key_value().is_some_and(|(most, _)| *most >= one);
        }
        let mut left = self.counts.clone();
        layout.iter().all(|parts| {
            let Some(node) = left.range(parts..).next().map(|(free, _)| *free) else { return false };
            if let Some(count) = left.get_mut(&node) {
                *count -= 1;
                if *count == 0 {
                    left.remove(&node);
                }
            }
            true
        })
    }
}
