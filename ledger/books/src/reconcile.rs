//! Records beside what nodes saw: where they differ, by how much, and why.
//!
//! Records decide what is held (design §4.1), so a difference changes no bill. It says whether to trust one: each card-second that one side
//! has and the other hasn't is under exactly one [`Reason`], and with what both have they add up to each side's total.
//!
//! Start at [`reconcile`]. What other tools say of the same hours is held against the books in [`outside`]. Does not: change what is booked.

pub mod outside;
mod sweep;
mod table;
#[cfg(test)]
mod tests;

pub use table::{ReconcileQuery, table};

use crate::holdings::Claim;
use crate::observed::Seen;
use crate::observed::records::Records;
use crate::observed::stretches::{Stretch, stretches};
use crate::observed::{devices, looked, watched};
use cardhour_domain::{AttemptKey, CardTime, Interval, Name};
use std::collections::{BTreeMap, BTreeSet};
use sweep::Side;

/// Why records and nodes have the same time, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Both have it.
    Agree,
    /// Recorded, and not seen within two minutes of the record's start or end: nodes look tick by tick, and clocks differ.
    Edge,
    /// Recorded, and nobody looked: no collector there, or it was away.
    NobodyLooked,
    /// Recorded, somebody looked, and it was on fewer cards than its record has.
    NotSeen,
    /// Seen after the end that its record gives it: booked as releasing, not billed.
    AfterEnd,
    /// Seen after the last moment that an open record vouches for.
    StillOpen,
    /// Seen where no export speaks for that time.
    NotExported,
    /// Seen before its record begins.
    BeforeStart,
    /// Seen on more cards than its record has.
    MoreCards,
    /// Seen at a time that an export speaks for, without a record.
    NoRecord,
}

impl Reason {
    /// Its name in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Edge => "edge",
            Self::NobodyLooked => "nobody_looked",
            Self::NotSeen => "not_seen",
            Self::AfterEnd => "after_end",
            Self::StillOpen => "still_open",
            Self::NotExported => "not_exported",
            Self::BeforeStart => "before_start",
            Self::MoreCards => "more_cards",
            Self::NoRecord => "no_record",
        }
    }

    /// Whether one side must be wrong: somebody has to look.
    pub const fn contradicts(self) -> bool {
        matches!(self, Self::BeforeStart | Self::MoreCards | Self::NoRecord)
    }
}

/// What of one attempt is under one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whose it is: the record's key, or the node's where there is no record.
    pub key: AttemptKey,
    /// Its cluster.
    pub cluster: Name,
    /// The node, where it is one.
    pub node: Option<Name>,
    /// Why.
    pub reason: Reason,
    /// What records have of it.
    pub recorded: CardTime,
    /// What nodes have of it.
    pub observed: CardTime,
}

/// Holds records against what nodes saw, over `range` or all time.
///
/// `covered`: what time the exports of each cluster speak for. Shape: by key and reason, each once, none of them empty; over all lines
/// `recorded` is what the records hold and `observed` what was seen. Independent of the order of observations.
pub fn reconcile(
    records: &[Claim],
    seen: &Seen,
    covered: &BTreeMap<Name, Vec<Interval>>,
    range: Option<Interval>,
) -> Vec<Line> {
    let watched = watched(&seen.watches);
    let devices = devices(&seen.devices);
    let stretches = stretches(&seen.observations, &watched, &devices);
    let looks = Looks::new(seen);
    let known = Records::new(records);
    let mut of_record: BTreeMap<usize, Vec<(&Stretch, Interval)>> = BTreeMap::new();
    let mut alone: BTreeMap<AttemptKey, Vec<(&Stretch, Interval)>> = BTreeMap::new();
    for stretch in &stretches {
        let mut runs = known.runs_of(stretch, records);
        if runs.is_empty() {
            alone.entry(stretch.holder.key()).or_default().push((stretch, stretch.during));
        }
        // Runs of one job, of which a node saw no end in between: each has it from its start to the next one's.
        runs.sort_by_key(|&run| (records[run].during.start(), run));
        let starts: Vec<_> = runs.iter().map(|&run| records[run].during.start()).collect();
        for (i, run) in runs.into_iter().enumerate() {
            let from = if i == 0 { stretch.during.start() } else { starts[i].max(stretch.during.start()) };
            let to = starts.get(i + 1).map_or(stretch.during.end(), |next| stretch.during.end().min(*next));
            of_record.entry(run).or_default().extend(Interval::new(from, to).map(|part| (stretch, part)));
        }
    }
    let mut sums: BTreeMap<(AttemptKey, Reason), Line> = BTreeMap::new();
    let none = Vec::new();
    let by_record = records.iter().enumerate().map(|(i, record)| (record.key.clone(), Some(record), of_record.get(&i)));
    let by_node = alone.iter().map(|(key, seen)| (key.clone(), None, Some(seen)));
    for (key, record, seen) in by_record.chain(by_node) {
        let seen = seen.unwrap_or(&none);
        let nodes: BTreeSet<&Name> =
            record.and_then(|r| r.node.as_ref()).into_iter().chain(seen.iter().map(|(s, _)| &s.node)).collect();
        let Some(cluster) = record.map(|r| &r.cluster).or_else(|| seen.first().map(|(s, _)| &s.holder.cluster)) else {
            continue;
        };
        let side = Side {
            record,
            seen,
            looks: looks.of(cluster, &nodes),
            covered: covered.get(cluster).map(Vec::as_slice).unwrap_or_default(),
        };
        side.sweep(range, |reason, recorded, observed| {
            let line = sums.entry((key.clone(), reason)).or_insert_with(|| Line {
                key: key.clone(),
                cluster: cluster.clone(),
                node: nodes.first().filter(|_| nodes.len() == 1).map(|node| (*node).clone()),
                reason,
                recorded: CardTime::ZERO,
                observed: CardTime::ZERO,
            });
            line.recorded += recorded;
            line.observed += observed;
        });
    }
    sums.into_values().collect()
}

/// When somebody looked, by node.
struct Looks {
    by_node: BTreeMap<(Name, Name), Vec<Interval>>,
    by_cluster: BTreeMap<Name, Vec<Interval>>,
}

impl Looks {
    fn new(seen: &Seen) -> Self {
        let watched = looked(seen);
        let mut places: BTreeSet<(&Name, &Name, &Name)> =
            seen.watches.iter().map(|watch| (&watch.cluster, &watch.node, &watch.card_uuid)).collect();
        places.extend(seen.observations.iter().map(|o| (&o.holder.cluster, &o.node, &o.card_uuid)));
        let (mut by_node, mut by_cluster) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for (cluster, node, card) in places {
            let of_card = watched.get(card).map(Vec::as_slice).unwrap_or_default();
            by_node.entry((cluster.clone(), node.clone())).or_default().extend_from_slice(of_card);
            by_cluster.entry(cluster.clone()).or_default().extend_from_slice(of_card);
        }
        for all in by_node.values_mut().chain(by_cluster.values_mut()) {
            *all = Interval::union(std::mem::take(all));
        }
        Self { by_node, by_cluster }
    }

    /// When somebody looked at one of these nodes; of none, anywhere in the cluster.
    fn of(&self, cluster: &Name, nodes: &BTreeSet<&Name>) -> Vec<Interval> {
        if nodes.is_empty() {
            return self.by_cluster.get(cluster).cloned().unwrap_or_default();
        }
        let of_node = |node: &&Name| self.by_node.get(&(cluster.clone(), (*node).clone())).cloned();
        Interval::union(nodes.iter().filter_map(of_node).flatten().collect())
    }
}
