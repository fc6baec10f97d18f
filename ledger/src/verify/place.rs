//! Model and pool of what was held, and the group of cards it is counted with, from nodes and records alone.

use super::load::{Id, Names, Seat, Site, Stored};
use cardhour_books::site::{Node, Reservation};
use cardhour_domain::Name;
use std::collections::{BTreeMap, BTreeSet};

/// How finely a cluster is counted, as usage remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fineness {
    Node = 1,
    Model = 2,
    Cluster = 3,
}

/// What a node's name, or a model's, or nothing says about a cluster's cards.
pub(super) struct Atlas {
    /// For each node: its model and pool, of its latest service.
    nodes: BTreeMap<Id, (Option<Id>, Option<Id>)>,
    /// For each model that nodes have: its pool, where it is in one only.
    models: BTreeMap<Id, Option<Id>>,
    only_model: Option<Id>,
    only_pool: Option<Id>,
}

/// The one value of a set; none where it has more, or absent ones.
pub(super) fn single<T: Ord + Copy>(values: impl Iterator<Item = Option<T>>) -> Option<T> {
    let all: BTreeSet<Option<T>> = values.collect();
    if all.len() == 1 { all.into_iter().next().flatten() } else { None }
}

impl Atlas {
    pub fn of(site: &Site, names: &Names) -> Self {
        let id = |name: &Option<Name>| name.as_ref().and_then(|name| names.known(name));
        let carded: Vec<&Node> = site.nodes.iter().filter(|node| node.cards.parts() > 0).collect();
        let mut pools: BTreeMap<Id, BTreeSet<Option<Id>>> = BTreeMap::new();
        for node in &carded {
            if let Some(model) = id(&node.model) {
                pools.entry(model).or_default().insert(id(&node.pool));
            }
        }
        Self {
            nodes: site
                .nodes
                .iter()
                .filter_map(|node| Some((names.known(&node.node)?, (id(&node.model), id(&node.pool)))))
                .collect(),
            models: pools.into_iter().map(|(model, pools)| (model, single(pools.into_iter()))).collect(),
            only_model: single(carded.iter().map(|node| id(&node.model))),
            only_pool: single(carded.iter().map(|node| id(&node.pool))),
        }
    }

    /// The model: the record's own, else its node's, else the only one of the cluster.
    pub fn model(&self, seat: Seat) -> Option<Id> {
        let of_node = || self.nodes.get(&seat.node?)?.0;
        seat.model.or_else(of_node).or(self.only_model)
    }

    /// The pool: its node's, else the only one of its model, else of the cluster.
    pub fn pool(&self, seat: Seat) -> Option<Id> {
        let of_node = || self.nodes.get(&seat.node?)?.1;
        let of_model = || *self.models.get(&self.model(seat)?)?;
        of_node().or_else(of_model).or(self.only_pool)
    }

    fn knows_node(&self, node: Option<Id>) -> bool {
        node.is_some_and(|node| self.nodes.contains_key(&node))
    }

    fn knows_model(&self, model: Option<Id>) -> bool {
        model.is_some_and(|model| self.models.contains_key(&model))
    }

    /// The finest grouping that every record and reservation of the cluster supports.
    pub fn fineness(&self, site: &Site, names: &Names, seats: &[Seat]) -> Fineness {
        let supports = |fineness: Fineness| {
            let jobs_do = seats.iter().all(|seat| match fineness {
                Fineness::Node => self.knows_node(seat.node),
                Fineness::Model => self.knows_model(self.model(*seat)),
                Fineness::Cluster => true,
            });
            jobs_do && site.reservations.iter().all(|r| self.reservation_supports(r, fineness, names))
        };
        let models_known = site.nodes.iter().all(|node| node.model.is_some() || node.cards.parts() == 0);
        if supports(Fineness::Node) {
            Fineness::Node
        } else if supports(Fineness::Model) && models_known {
            Fineness::Model
        } else {
            Fineness::Cluster
        }
    }

    fn reservation_supports(&self, r: &Reservation, fineness: Fineness, names: &Names) -> bool {
        let nodes: Vec<Option<Id>> = r.nodes.iter().map(|node| names.known(node)).collect();
        let all_known = !nodes.is_empty() && nodes.iter().all(|node| self.knows_node(*node));
        // Some cards of several nodes could be on any of them.
        let on_nodes = all_known && (nodes.len() == 1 || r.cards.is_none());
        let one_model = || single(nodes.iter().map(|node| self.nodes.get(&(*node)?)?.0)).is_some();
        let of_model = r.nodes.is_empty() && self.knows_model(r.model.as_ref().and_then(|model| names.known(model)));
        match fineness {
            Fineness::Node => on_nodes,
            Fineness::Model => on_nodes || all_known && one_model() || of_model,
            Fineness::Cluster => true,
        }
    }
}

/// Atlases of all clusters.
pub(super) fn atlases(stored: &Stored) -> BTreeMap<Id, Atlas> {
    stored.sites.iter().map(|(cluster, site)| (*cluster, Atlas::of(site, &stored.names))).collect()
}
