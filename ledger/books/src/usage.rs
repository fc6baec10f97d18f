//! Holdings to usage: what each held, and what nobody held, by quarter hour.
//!
//! Days are worked out whole and each on its own, from all that overlaps them, so that a day's rows depend on the facts alone and never
//! on the order in which they came (LED-4); an import works out again just the days its facts touch.
//!
//! Start at [`usage`].

use crate::cluster::{Cluster, Frame, Places};
use crate::holdings::Holding;
use crate::states::{OverCapacity, StateRow, states};
use cardhour_domain::{CardTime, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// What one holding held over one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRow {
    /// The bucket.
    pub bucket_start: Timestamp,
    /// Index of the holding.
    pub holding: u32,
    /// How much it held.
    pub card_time: CardTime,
    /// Of it, what is billed: not what fell into an outage of its node or cluster.
    pub billed_time: CardTime,
}

/// The usage of one UTC day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageDay {
    /// What was held, by holding, then bucket.
    pub held: Vec<HeldRow>,
    /// What wasn't, with the cluster.
    pub states: Vec<(Name, StateRow)>,
    /// Where more was held than there is, with the cluster.
    pub over_capacity: Vec<(Name, OverCapacity)>,
}

/// Usage of the days in `spans` (whole UTC days, disjoint, ascending), by day.
///
/// `holdings`: at least all that overlap the spans. A cluster that has holdings and no entry in `clusters` has no known capacity.
pub fn usage(
    clusters: &BTreeMap<Name, (Cluster, Frame)>,
    holdings: &[Holding],
    spans: &[Interval],
) -> BTreeMap<i32, UsageDay> {
    let mut days: BTreeMap<i32, UsageDay> =
        spans.iter().flat_map(|span| span.utc_days()).map(|day| (day, UsageDay::default())).collect();
    for (index, holding) in holdings.iter().enumerate() {
        let index = u32::try_from(index).expect("fewer than 2³² holdings in one import");
        let unbilled = clusters.get(&holding.claim.cluster).map(|(cluster, _)| outages_of(cluster, holding));
        for span in spans {
            let Some(inside) = holding.during.overlap(*span) else { continue };
            held_rows(index, holding, inside, unbilled.as_deref().unwrap_or_default(), &mut days);
        }
    }
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
    days
}

fn held_rows(
    index: u32,
    holding: &Holding,
    inside: Interval,
    unbilled: &[Interval],
    days: &mut BTreeMap<i32, UsageDay>,
) {
    let mut pieces = inside.buckets().peekable();
    while let Some((first, _)) = pieces.peek() {
        let day = first.utc_day();
        let held = &mut days.get_mut(&day).expect("inside the spans").held;
        while let Some((bucket_start, piece)) = pieces.next_if(|(bucket, _)| bucket.utc_day() == day) {
            let card_time = CardTime::of(holding.share, piece);
            let free: CardTime =
                unbilled.iter().filter_map(|o| o.overlap(piece)).map(|o| CardTime::of(holding.share, o)).sum();
            held.push(HeldRow { bucket_start, holding: index, card_time, billed_time: card_time - free });
        }
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
