//! What a site has and when it was out of service: nodes, reservations, outages.

use cardhour_domain::{CardShare, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// A node and the cards in it: a row of `import nodes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Cluster, empty where the file names none.
    pub cluster: Name,
    /// Its name, unique in the cluster.
    pub node: Name,
    /// Model of its cards; none where the file doesn't say.
    pub model: Option<Name>,
    /// How many cards; none for a node without.
    pub cards: CardShare,
    /// Memory of one card. Unit: bytes.
    pub memory_bytes: Option<i64>,
    /// The pool it belongs to.
    pub pool: Option<Name>,
    /// From when it serves; none: from the start of what the cluster's exports cover.
    pub in_service_at: Option<Timestamp>,
    /// Until when; none: still.
    pub retired_at: Option<Timestamp>,
    /// Free labels.
    pub labels: BTreeMap<Name, Name>,
}

/// A dated reservation: cards set aside for an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Cluster.
    pub cluster: Name,
    /// Its name; jobs say it in `reservation`.
    pub name: Name,
    /// From when to when.
    pub during: Interval,
    /// The nodes it takes; empty: any of the cluster, then `cards` says how many.
    pub nodes: Vec<Name>,
    /// How many cards; none: all of `nodes`.
    pub cards: Option<CardShare>,
    /// The model it is of, where it names no nodes.
    pub model: Option<Name>,
    /// Whose it is.
    pub org: Option<Name>,
    /// Whose it is.
    pub project: Option<Name>,
    /// Whose it is.
    pub user: Option<Name>,
}

/// A window in which cards were out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Cluster.
    pub cluster: Name,
    /// From when to when.
    pub during: Interval,
    /// The nodes it hit; empty: the whole cluster.
    pub nodes: Vec<Name>,
    /// How many cards of each node; none: all.
    pub cards: Option<CardShare>,
    /// Why.
    pub reason: Option<Name>,
}

/// What time an export speaks for, of one cluster: inside it, what nobody held is free.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coverage {
    /// Cluster.
    pub cluster: Name,
    /// The time.
    pub covers: Interval,
}
