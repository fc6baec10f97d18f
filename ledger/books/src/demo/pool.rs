//! What the simulated pool is made of, and when parts of it can't be used.

use super::clock::Clock;

/// A node of the pool.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub name: &'static str,
    /// Model of its cards, in the words of the site's gres types.
    pub model: &'static str,
    /// Cards in it.
    pub cards: u32,
    /// Of them, those that Slurm gives out; the rest are shared by notebooks.
    pub slurm_cards: u32,
    /// Memory of one card. Unit: GiB.
    pub card_memory_gib: u32,
}

/// The nodes: 64 cards.
pub const NODES: [Node; 8] = [
    h200("gpu-01"),
    h200("gpu-02"),
    h200("gpu-03"),
    h200("gpu-04"),
    a100("gpu-05"),
    a100("gpu-06"),
    a100("gpu-07"),
    Node { name: "gpu-08", model: "l40s", cards: 8, slurm_cards: 4, card_memory_gib: 48 },
];

/// The node whose last cards are shared by notebooks.
pub const SHARED_NODE: usize = 7;

const fn h200(name: &'static str) -> Node {
    Node { name, model: "h200", cards: 8, slurm_cards: 8, card_memory_gib: 141 }
}

const fn a100(name: &'static str) -> Node {
    Node { name, model: "a100", cards: 8, slurm_cards: 8, card_memory_gib: 80 }
}

/// Why cards of a node are not for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The node was not there yet.
    NotYetInService,
    /// Planned work: nothing is started that would run into it.
    Maintenance,
    /// The node died, and with it what ran on it.
    NodeFailure,
    /// One card fell off the bus; the rest of the node works on.
    LostCard,
    /// Set aside for a project: index into [`RESERVATIONS`].
    Reserved(usize),
}

impl Why {
    /// Whether the scheduler knows of it before it comes.
    pub const fn announced(self) -> bool {
        !matches!(self, Self::NodeFailure | Self::LostCard)
    }
}

/// A stretch in which some cards of a node are not for everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closure {
    /// Index into [`NODES`]. Where it is not announced, the schedule puts it on the busiest node of that model.
    pub node: usize,
    /// How many of its cards.
    pub cards: u32,
    /// From when. Unit: seconds since the epoch.
    pub start_s: i64,
    /// Until when. Unit: seconds since the epoch.
    pub end_s: i64,
    /// Why.
    pub why: Why,
    /// The run whose card it was, where a card is lost: index into the schedule's runs, which knows it.
    pub hit: Option<usize>,
}

/// A dated reservation. It takes whole nodes, each as a [`Closure`] with [`Why::Reserved`].
#[derive(Debug)]
pub struct Reservation {
    /// Its name.
    pub name: &'static str,
    /// Index into `people::PROJECTS`.
    pub project: usize,
    /// Indices into [`NODES`].
    pub nodes: &'static [usize],
}

/// The reservations; when they are is said by [`closures`].
pub const RESERVATIONS: [Reservation; 2] = [
    Reservation { name: "wm-deadline", project: 1, nodes: &[0, 1] },
    Reservation { name: "tutor-pilot", project: 5, nodes: &[5] },
];

/// When parts of the pool are not for everybody, in order of time.
pub fn closures(clock: &Clock) -> Vec<Closure> {
    let all = |node: usize, from: i64, to: i64, why| Closure {
        node,
        cards: NODES[node].cards,
        start_s: from,
        end_s: to,
        why,
        hit: None,
    };
    let mut closures = vec![
        all(6, clock.at(0, 0, 0, 0), clock.at(0, 7, 10, 0), Why::NotYetInService),
        all(4, clock.at(0, 18, 9, 0), clock.at(0, 18, 21, 0), Why::Maintenance),
        // A quarter past three at night, where nothing is rounded for us: 03:17:42.
        all(2, clock.at(1, 8, 3, 0) + 17 * 60 + 42, clock.at(1, 9, 11, 30), Why::NodeFailure),
        Closure {
            node: 3,
            cards: 1,
            start_s: clock.at(1, 19, 14, 5),
            end_s: clock.at(1, 21, 16, 45),
            why: Why::LostCard,
            hit: None,
        },
    ];
    for (index, (from, to)) in
        [(clock.at(0, 22, 8, 0), clock.at(0, 25, 20, 0)), (clock.at(1, 14, 9, 0), clock.at(1, 16, 18, 0))]
            .into_iter()
            .enumerate()
    {
        closures.extend(RESERVATIONS[index].nodes.iter().map(|node| all(*node, from, to, Why::Reserved(index))));
    }
    closures.sort_by_key(|closure| (closure.start_s, closure.node));
    closures
}
