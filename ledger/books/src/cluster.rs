//! One cluster as the books see it: its nodes, what its exports cover, and how finely its time can be accounted.
//!
//! Where cards aren't known one by one, LED-1 holds as counts for each *group* of cards. A cluster has one grouping, the
//! finest that all its rows support: node, else model, else the whole cluster.

use crate::holdings::Claim;
use crate::site::{Coverage, Node, Outage, Reservation};
use cardhour_domain::{Interval, Name, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of one cluster besides its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Its nodes; none: its capacity isn't known, and LED-1 not provable.
    pub nodes: Vec<Node>,
    /// Its dated reservations.
    pub reservations: Vec<Reservation>,
    /// When it, or parts of it, were out of service.
    pub outages: Vec<Outage>,
    /// What time its exports speak for, as stretches that don't touch.
    pub covered: Vec<Interval>,
    /// When its nodes looked for holders, card by card: inside it, what nobody held of that card is free.
    pub watched: Vec<WatchedCard>,
    /// When somebody last told what it has: its cards are there until then at least.
    pub told_until: Option<Timestamp>,
}

/// When somebody looked for holders of one card.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedCard {
    /// Its node.
    pub node: Name,
    /// The card.
    pub card_uuid: Name,
    /// As stretches that don't touch, in order.
    pub during: Vec<Interval>,
}

/// How finely a cluster's time is accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grouping {
    /// By node.
    Node,
    /// By model of card.
    Model,
    /// All its cards as one.
    Cluster,
}

/// What all rows of a cluster together decide about its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The finest grouping that all rows support.
    pub grouping: Grouping,
    /// Nodes without a start of their own serve from here: the start of what exports cover.
    pub serves_from: Option<Timestamp>,
    /// Nodes that weren't retired serve until here: the last moment that any row or export speaks of.
    pub horizon: Option<Timestamp>,
}

/// Model and pool of what was held, where the cluster's nodes tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The claim's own model, else its node's, else the only one of the cluster.
    pub model: Option<Name>,
    /// Its node's pool, else the only one of its model or cluster.
    pub pool: Option<Name>,
}

/// One value that all items share; none when they differ or there are none.
fn only<'a, T: PartialEq + Clone + 'a>(mut items: impl Iterator<Item = &'a Option<T>>) -> Option<T> {
    let first = items.next()?.clone()?;
    items.all(|item| item.as_ref() == Some(&first)).then_some(first)
}

/// Looks up places of one cluster; made once for many claims.
#[derive(Debug)]
pub struct Places<'a> {
    nodes: BTreeMap<&'a str, &'a Node>,
    only_model: Option<Name>,
    only_pool: Option<Name>,
    pool_of_model: BTreeMap<&'a str, Option<Name>>,
}

impl<'a> Places<'a> {
    /// For the nodes of one cluster.
    pub fn new(nodes: &'a [Node]) -> Self {
        let with_cards = || nodes.iter().filter(|node| !node.cards.is_zero());
        let models: BTreeSet<&str> = with_cards().filter_map(|node| node.model.as_deref()).collect();
        let pool_of_model = models
            .into_iter()
            .map(|model| (model, only(with_cards().filter(|n| n.model.as_deref() == Some(model)).map(|n| &n.pool))))
            .collect();
        Self {
            nodes: nodes.iter().map(|node| (&*node.node, node)).collect(),
            only_model: only(with_cards().map(|node| &node.model)),
            only_pool: only(with_cards().map(|node| &node.pool)),
            pool_of_model,
        }
    }

    /// The place of a claim.
    pub fn of(&self, claim: &Claim) -> Place {
        let node = claim.node.as_deref().and_then(|name| self.nodes.get(name));
        let model = claim
            .model
            .clone()
            .or_else(|| node.and_then(|node| node.model.clone()))
            .or_else(|| self.only_model.clone());
        let pool = node
            .and_then(|node| node.pool.clone())
            .or_else(|| self.pool_of_model.get(model.as_deref()?)?.clone())
            .or_else(|| self.only_pool.clone());
        Place { model, pool }
    }

    fn supports(&self, claim: &Claim, grouping: Grouping) -> bool {
        match grouping {
            Grouping::Node => claim.node.as_deref().is_some_and(|node| self.nodes.contains_key(node)),
            Grouping::Model => {
                self.of(claim).model.as_deref().is_some_and(|model| self.pool_of_model.contains_key(model))
            }
            Grouping::Cluster => true,
        }
    }
}

impl Cluster {
    /// Takes in what an export covers.
    pub fn cover(&mut self, coverage: &Coverage) {
        self.covered.push(coverage.covers);
        self.covered = Interval::union(std::mem::take(&mut self.covered));
    }

    /// What all claims of the cluster and its other rows decide. Shape: independent of their order.
    pub fn frame<'c>(&self, claims: impl Iterator<Item = &'c Claim>) -> Frame {
        let places = Places::new(&self.nodes);
        let mut grouping = Grouping::Node;
        let coarsest = |a: Grouping, b: Grouping| a.max(b);
        let every_model_known = self.nodes.iter().all(|node| node.model.is_some() || node.cards.is_zero());
        for reservation in &self.reservations {
            grouping = coarsest(grouping, self.grouping_of(reservation, &places));
        }
        let watches = || self.watched.iter().flat_map(|card| &card.during);
        let mut horizon = self.covered.last().map(|covered| covered.end());
        horizon = horizon.max(watches().map(|during| during.end()).max()).max(self.told_until);
        for claim in claims {
            horizon = horizon.max(Some(claim.during.end()));
            if grouping == Grouping::Node && !places.supports(claim, Grouping::Node) {
                grouping = Grouping::Model;
            }
            if grouping == Grouping::Model && !places.supports(claim, Grouping::Model) {
                grouping = Grouping::Cluster;
            }
        }
        if grouping == Grouping::Model && !every_model_known {
            grouping = Grouping::Cluster;
        }
        let first_watch = watches().map(|during| during.start()).min();
        let first_covered = self.covered.first().map(|covered| covered.start());
        let serves_from = first_covered.into_iter().chain(first_watch).min();
        Frame { grouping, serves_from, horizon }
    }

    fn grouping_of(&self, reservation: &Reservation, places: &Places<'_>) -> Grouping {
        let known = reservation.nodes.iter().map(|node| places.nodes.get(&**node)).collect::<Option<Vec<_>>>();
        match (known.as_deref(), &reservation.cards) {
            (Some([_]), _) => Grouping::Node,
            (Some([_, ..]), None) => Grouping::Node,
            (Some(nodes @ [_, ..]), Some(_)) if only(nodes.iter().map(|node| &node.model)).is_some() => Grouping::Model,
            (Some([]), _) if reservation.model.as_deref().is_some_and(|m| places.pool_of_model.contains_key(m)) => {
                Grouping::Model
            }
            _ => Grouping::Cluster,
        }
    }
}

impl Frame {
    /// From when to when a node serves; none when nothing says from when, or it never did.
    pub fn service(&self, node: &Node) -> Option<Interval> {
        let from = node.in_service_at.or(self.serves_from)?;
        let until = match (node.retired_at, self.horizon) {
            (Some(retired), Some(horizon)) => retired.min(horizon),
            (Some(retired), None) => retired,
            (None, horizon) => horizon?,
        };
        Interval::new(from, until)
    }
}

/// A group of cards whose states are counted together, and what can be said of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Its node, when grouped by node.
    pub node: Option<Name>,
    /// Its model, where it has but one.
    pub model: Option<Name>,
    /// Its pool, where it has but one.
    pub pool: Option<Name>,
}

/// The groups of a cluster, and which of them each node belongs to.
#[derive(Debug)]
pub struct Groups<'a> {
    /// The groups, in the order of their names.
    pub all: Vec<Group>,
    of_node: BTreeMap<&'a str, usize>,
    of_model: BTreeMap<&'a str, usize>,
    grouping: Grouping,
}

impl<'a> Groups<'a> {
    /// The groups of nodes under a grouping. Nodes without cards belong to none.
    pub fn new(nodes: &'a [Node], grouping: Grouping) -> Self {
        let mut members: BTreeMap<Option<&str>, Vec<&Node>> = BTreeMap::new();
        for node in nodes.iter().filter(|node| !node.cards.is_zero()) {
            let key = match grouping {
                Grouping::Node => Some(&*node.node),
                Grouping::Model => node.model.as_deref(),
                Grouping::Cluster => None,
            };
            members.entry(key).or_default().push(node);
        }
        let mut groups = Self { all: Vec::new(), of_node: BTreeMap::new(), of_model: BTreeMap::new(), grouping };
        for (key, nodes) in members {
            for node in &nodes {
                groups.of_node.insert(&node.node, groups.all.len());
                if let Some(model) = &node.model {
                    groups.of_model.insert(model, groups.all.len());
                }
            }
            groups.all.push(Group {
                node: (grouping == Grouping::Node).then(|| key.expect("a node has a name").into()),
                model: only(nodes.iter().map(|node| &node.model)),
                pool: only(nodes.iter().map(|node| &node.pool)),
            });
        }
        groups
    }

    /// The group of a node.
    pub fn of_node(&self, node: &str) -> Option<usize> {
        self.of_node.get(node).copied()
    }

    /// The group of what was held on `node` (where it is known) with cards of `model`.
    pub fn of_held(&self, node: Option<&str>, model: Option<&str>) -> Option<usize> {
        match self.grouping {
            Grouping::Node => self.of_node(node?),
            Grouping::Model => self.of_model.get(model?).copied(),
            Grouping::Cluster => (!self.all.is_empty()).then_some(0),
        }
    }
}
