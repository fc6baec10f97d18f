//! Holdings to usage: what each held, and what nobody held, by quarter hour.
//!
//! Days are worked out whole and each on its own, from all that overlaps them, so that a day's rows depend on the facts alone and never
//! on the order in which they came (LED-4); an import works out again just the days its facts touch.
//!
//! Start at [`usage`].

use crate::cluster::{Cluster, Frame, Places};
use crate::holdings::{ClaimSource, Holding};
use crate::states::{OverCapacity, StateRow, states};
use cardhour_domain::{CardTime, Interval, Name, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// What one holding held over one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// The bucket.
    pub bucket_start: Timestamp,
    /// Index of the holding.
    pub holding: u32,
    /// How much it held.
    pub card_time: CardTime,
    /// Of it, what is billed: not what fell into an outage of its node or cluster, nor what is being released.
    pub billed_time: CardTime,
}

/// Usage of some days. What was held is by far the most of it, and is made a day at a time: [`Usage::held`].
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// By UTC day.
    pub days: BTreeMap<i32, UsageDay>,
    /// When holdings, by index, were out of service or only being released. Those that never were are not in it.
    unbilled: HashMap<u32, Vec<Interval>>,
}

/// The usage of one UTC day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageDay {
    /// Holdings that overlap it, by index.
    pub holdings: Vec<u32>,
    /// What wasn't held, with the cluster.
    pub states: Vec<(Name, StateRow)>,
    /// Where more was held than there is, with the cluster.
    pub over_capacity: Vec<(Name, OverCapacity)>,
}

/// Usage of the days in `spans` (whole UTC days, disjoint, ascending).
///
/// `holdings`: at least all that overlap the spans. A cluster that has holdings and no entry in `clusters` has no known capacity.
pub fn usage(clusters: &BTreeMap<Name, (Cluster, Frame)>, holdings: &[Holding], spans: &[Interval]) -> Usage {
    let mut days: Vec<(i32, UsageDay)> =
        spans.iter().flat_map(|span| span.utc_days()).map(|day| (day, UsageDay::default())).collect();
    // Where each span's days begin among them all.
    let mut begin = Vec::with_capacity(spans.len());
    let mut at = 0;
    for span in spans {
        begin.push(at);
        at += span.utc_days().count();
    }
    let mut unbilled = HashMap::new();
    for (index, holding) in holdings.iter().enumerate() {
        let index = u32::try_from(index).expect("fewer than 2³² holdings in one import");
        for (span, begin) in spans.iter().zip(&begin) {
            let Some(inside) = holding.during.overlap(*span) else { continue };
            let before = usize::try_from(inside.start().utc_day() - span.start().utc_day()).expect("not before it");
            for (_, day) in days.iter_mut().skip(begin + before).take(inside.utc_days().count()) {
                day.holdings.push(index);
            }
        }
        let free = if holding.claim.source == ClaimSource::Releasing {
            vec![holding.during]
        } else {
            clusters.get(&holding.claim.cluster).map(|(cluster, _)| outages_of(cluster, holding)).unwrap_or_default()
        };
        if !free.is_empty() {
            unbilled.insert(index, free);
        }
    }
    let mut days: BTreeMap<i32, UsageDay> = days.into_iter().collect();
    for (name, (cluster, frame)) in clusters {
        let of_cluster: Vec<&Holding> = holdings.iter().filter(|h| h.claim.cluster == *name).collect();
        let (rows, over) = states(cluster, frame, &of_cluster, spans);
        for row in rows {
            let day = days.get_mut(&row.bucket_start.utc_day()).expect("inside the spans");
            day.states.push((name.clone(), row));
        }
        for over in over {
            let day = days.get_mut(&over.during.start().utc_day()).expect("inside the spans");
            day.over_capacity.push((name.clone(), over));
        }
    }
    Usage { days, unbilled }
}

impl Usage {
    /// What was held on one of the days, by holding, then bucket. `holdings`: those that it was made from.
    pub fn held(&self, day: i32, holdings: &[Holding]) -> Vec<HeldRow> {
        let whole = Interval::new(Timestamp::from_utc_day(day), Timestamp::from_utc_day(day + 1)).expect("a day");
        let inside = |index: &u32| holdings[*index as usize].during.overlap(whole);
        let buckets = self.days[&day].holdings.iter().filter_map(inside).map(|inside| inside.buckets().len());
        let mut rows = Vec::with_capacity(buckets.sum());
        for &index in &self.days[&day].holdings {
            let holding = &holdings[index as usize];
            let inside = holding.during.overlap(whole).expect("the day's holdings overlap it");
            let unbilled = self.unbilled.get(&index).map(Vec::as_slice).unwrap_or_default();
            for (bucket_start, piece) in inside.buckets() {
                let card_time = CardTime::of(holding.share, piece);
                let free: CardTime =
                    unbilled.iter().filter_map(|o| o.overlap(piece)).map(|o| CardTime::of(holding.share, o)).sum();
                rows.push(HeldRow { bucket_start, holding: index, card_time, billed_time: card_time - free });
            }
        }
        rows
    }
}

/// When a holding's node, or its whole cluster, was out of service: held and not billed.
fn outages_of(cluster: &Cluster, holding: &Holding) -> Vec<Interval> {
    let hits = cluster.outages.iter().filter(|outage| {
        let node = || holding.claim.node.as_ref().is_some_and(|node| outage.nodes.contains(node));
        outage.cards.is_none() && (outage.nodes.is_empty() || node())
    });
    Interval::union(hits.filter_map(|outage| outage.during.overlap(holding.during)).collect())
}

/// Model and pool of each holding, in their order: the places usage rows stand in.
pub fn places(clusters: &BTreeMap<Name, (Cluster, Frame)>, holdings: &[Holding]) -> Vec<crate::cluster::Place> {
    let by_cluster: BTreeMap<&Name, Places<'_>> =
        clusters.iter().map(|(name, (cluster, _))| (name, Places::new(&cluster.nodes))).collect();
    let nowhere = Places::new(&[]);
    holdings.iter().map(|h| by_cluster.get(&h.claim.cluster).unwrap_or(&nowhere).of(&h.claim)).collect()
}

#[cfg(test)]
mod tests;
