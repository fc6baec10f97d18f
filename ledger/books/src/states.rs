//! What became of the time nobody held: down, reserved, free or unaccounted, for each group of cards and bucket.
//!
//! At each instant the states fill what is left of a group's capacity, in that order (LED-1):
//! held + down + reserved + free + unaccounted = capacity + over_capacity. Held time is never cut: what passes the capacity stays held, and is
//! an [`OverCapacity`].
//!
//! Start at [`states`]. One sweep over the edges of holdings, nodes, outages and reservations; exact in milliseconds.

use crate::cluster::{Cluster, Frame, Group, Groups, Places};
use crate::holdings::Holding;
use crate::site::Reservation;
use cardhour_domain::{CardShare, CardState, CardTime, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// Time of one group in one state, over one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// The bucket.
    pub bucket_start: Timestamp,
    /// Down, reserved, free or unaccounted.
    pub state: CardState,
    /// Whose cards.
    pub group: Group,
    /// The reservation, for reserved time.
    pub reservation: Option<Name>,
    /// How much.
    pub card_time: CardTime,
}

/// More was held of a group than it has: a row of `conflicts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverCapacity {
    /// Of which group.
    pub group: Group,
    /// Over which time; cut at midnights of UTC.
    pub during: Interval,
    /// The most by which it was passed.
    pub peak: CardShare,
    /// What was held beyond the capacity.
    pub card_time: CardTime,
}

/// What changes at an edge, by parts of cards.
#[derive(Clone, Copy)]
enum Change {
    Capacity(i64),
    Held(i64),
    Out(i64),
    Reserved { reservation: usize, parts: i64 },
    HeldUnder { reservation: usize, parts: i64 },
    Watched(i64),
    HeldOfWatched(i64),
}

struct Edge {
    at: Timestamp,
    group: usize,
    change: Change,
}

#[derive(Default)]
struct Now {
    capacity: i64,
    held: i64,
    out: i64,
    /// Of cards whose holders somebody looked for.
    watched: i64,
    /// What was held of those.
    held_of_watched: i64,
    /// By reservation: how much it sets aside in this group, and how much of that is held under it.
    reserved: Vec<(usize, i64, i64)>,
}

impl Now {
    fn reservation(&mut self, reservation: usize) -> &mut (usize, i64, i64) {
        let at = match self.reserved.binary_search_by_key(&reservation, |(r, ..)| *r) {
            Ok(at) => at,
            Err(at) => {
                self.reserved.insert(at, (reservation, 0, 0));
                at
            }
        };
        &mut self.reserved[at]
    }
}

/// Sums of one group over the bucket in progress.
#[derive(Default)]
struct Sums {
    bucket: Option<Timestamp>,
    down: i128,
    free: i128,
    unaccounted: i128,
    reserved: Vec<(usize, i128)>,
    held: i128,
    capacity: i128,
    over: i128,
}

/// States of one cluster's groups over `spans` (whole UTC days, disjoint), and where more was held than there is.
///
/// `holdings`: at least those that overlap the spans. Shape: by group, then time; no rows for a cluster without nodes.
pub fn states(
    cluster: &Cluster,
    frame: &Frame,
    holdings: &[&Holding],
    spans: &[Interval],
) -> (Vec<StateRow>, Vec<OverCapacity>) {
    let groups = Groups::new(&cluster.nodes, frame.grouping);
    let mut rows = Vec::new();
    let mut over = Vec::new();
    if groups.all.is_empty() {
        return (rows, over);
    }
    for span in spans {
        Sweep::new(cluster, frame, &groups, *span).run(holdings, &mut rows, &mut over);
    }
    (rows, over)
}

struct Sweep<'a> {
    cluster: &'a Cluster,
    frame: &'a Frame,
    groups: &'a Groups<'a>,
    span: Interval,
    now: Vec<Now>,
    since: Vec<Timestamp>,
    sums: Vec<Sums>,
    over: Vec<Option<OverCapacity>>,
}

impl<'a> Sweep<'a> {
    fn new(cluster: &'a Cluster, frame: &'a Frame, groups: &'a Groups<'a>, span: Interval) -> Self {
        let n = groups.all.len();
        Self {
            cluster,
            frame,
            groups,
            span,
            now: (0..n).map(|_| Now::default()).collect(),
            since: vec![span.start(); n],
            sums: (0..n).map(|_| Sums::default()).collect(),
            over: vec![None; n],
        }
    }

    fn run(mut self, holdings: &[&Holding], rows: &mut Vec<StateRow>, over: &mut Vec<OverCapacity>) {
        let mut edges = self.edges(holdings);
        edges.sort_by_key(|edge| edge.at);
        // Coverage is of the cluster: a group's stretch between two edges is cut where coverage begins or ends.
        for edge in edges {
            self.advance(edge.group, edge.at, rows, over);
            let now = &mut self.now[edge.group];
            match edge.change {
                Change::Capacity(parts) => now.capacity += parts,
                Change::Held(parts) => now.held += parts,
                Change::Out(parts) => now.out += parts,
                Change::Reserved { reservation, parts } => now.reservation(reservation).1 += parts,
                Change::HeldUnder { reservation, parts } => now.reservation(reservation).2 += parts,
                Change::Watched(parts) => now.watched += parts,
                Change::HeldOfWatched(parts) => now.held_of_watched += parts,
            }
        }
        for group in 0..self.groups.all.len() {
            self.advance(group, self.span.end(), rows, over);
            self.flush(group, rows);
            over.extend(self.over[group].take());
        }
    }

    /// Every edge inside the span, with what began before it at its start.
    fn edges(&self, holdings: &[&Holding]) -> Vec<Edge> {
        let mut edges = Vec::with_capacity(holdings.len() * 2 + self.cluster.nodes.len() * 2);
        let mut add = |during: Interval, group: usize, change: &dyn Fn(i64) -> Change, parts: i64| {
            if let Some(inside) = during.overlap(self.span) {
                edges.push(Edge { at: inside.start(), group, change: change(parts) });
                edges.push(Edge { at: inside.end(), group, change: change(-parts) });
            }
        };
        for node in &self.cluster.nodes {
            let (Some(group), Some(service)) = (self.groups.of_node(&node.node), self.frame.service(node)) else {
                continue;
            };
            add(service, group, &Change::Capacity, node.cards.parts());
            for (during, parts) in self.outages_of(&node.node, node.cards) {
                if let Some(during) = during.overlap(service) {
                    add(during, group, &Change::Out, parts.parts());
                }
            }
        }
        let mut looks: BTreeMap<&str, &[Interval]> = BTreeMap::new();
        for card in &self.cluster.watched {
            looks.insert(&card.card_uuid, &card.during);
            let Some(group) = self.groups.of_node(&card.node) else { continue };
            for during in &card.during {
                add(*during, group, &Change::Watched, CardShare::PARTS_PER_CARD);
            }
        }
        let places = Places::new(&self.cluster.nodes);
        for (reservation, r) in self.cluster.reservations.iter().enumerate() {
            for (group, during, parts) in self.set_aside(r) {
                add(during, group, &|parts| Change::Reserved { reservation, parts }, parts.parts());
            }
        }
        for holding in holdings {
            let claim = &holding.claim;
            let place = places.of(claim);
            // What is held outside of every group (a node the files don't list) would have coarsened the grouping.
            let Some(group) = self.groups.of_held(claim.node.as_deref(), place.model.as_deref()) else { continue };
            add(holding.during, group, &Change::Held, holding.share.parts());
            let looks = claim.card_uuid.as_deref().and_then(|card| looks.get(card)).copied().unwrap_or_default();
            let first = looks.partition_point(|look| look.end() <= holding.during.start());
            for look in looks[first..].iter().map_while(|look| look.overlap(holding.during)) {
                add(look, group, &Change::HeldOfWatched, holding.share.parts());
            }
            let Some(name) = &claim.reservation else { continue };
            // A reservation that comes back has several stretches under one name.
            for (reservation, r) in self.cluster.reservations.iter().enumerate().filter(|(_, r)| r.name == *name) {
                if let Some(under) = r.during.overlap(holding.during) {
                    add(under, group, &|parts| Change::HeldUnder { reservation, parts }, holding.share.parts());
                }
            }
        }
        edges
    }

    /// How much of a node was out, from when to when: at each instant the most that any of its outages says.
    fn outages_of(&self, node: &str, cards: CardShare) -> Vec<(Interval, CardShare)> {
        let hits: Vec<(Interval, CardShare)> = self
            .cluster
            .outages
            .iter()
            .filter(|outage| outage.nodes.is_empty() || outage.nodes.iter().any(|name| &**name == node))
            .map(|outage| (outage.during, outage.cards.unwrap_or(cards).min(cards)))
            .collect();
        let mut edges: Vec<Timestamp> = hits.iter().flat_map(|(during, _)| [during.start(), during.end()]).collect();
        edges.sort();
        edges.dedup();
        edges
            .windows(2)
            .filter_map(|pair| {
                let during = Interval::new(pair[0], pair[1])?;
                let most = hits.iter().filter(|(hit, _)| hit.contains(pair[0])).map(|(_, parts)| *parts).max()?;
                Some((during, most))
            })
            .collect()
    }

    /// How much a reservation sets aside in each group, from when to when. Of nodes it names, only what is in service.
    fn set_aside(&self, r: &Reservation) -> Vec<(usize, Interval, CardShare)> {
        if r.nodes.is_empty() {
            let group = self.groups.of_held(None, r.model.as_deref());
            return group.zip(r.cards).map(|(group, cards)| (group, r.during, cards)).into_iter().collect();
        }
        let named: Vec<(usize, Interval, CardShare)> = self
            .cluster
            .nodes
            .iter()
            .filter(|node| r.nodes.contains(&node.node))
            .filter_map(|node| {
                let during = self.frame.service(node)?.overlap(r.during)?;
                Some((self.groups.of_node(&node.node)?, during, node.cards))
            })
            .collect();
        let Some(cards) = r.cards else { return named };
        // So many cards of those nodes: at each instant no more than are there.
        let mut edges: Vec<Timestamp> =
            named.iter().flat_map(|(_, during, _)| [during.start(), during.end()]).collect();
        edges.sort();
        edges.dedup();
        let mut out = Vec::new();
        for during in edges.windows(2).filter_map(|pair| Interval::new(pair[0], pair[1])) {
            let mut sums: Vec<(usize, CardShare)> = Vec::new();
            for (group, _, parts) in named.iter().filter(|(_, there, _)| there.contains(during.start())) {
                match sums.iter_mut().find(|(known, _)| known == group) {
                    Some((_, sum)) => *sum = *sum + *parts,
                    None => sums.push((*group, *parts)),
                }
            }
            out.extend(sums.into_iter().map(|(group, sum)| (group, during, cards.min(sum))));
        }
        out
    }

    /// Accounts a group's time up to `to`, in which nothing of the group changed.
    fn advance(&mut self, group: usize, to: Timestamp, rows: &mut Vec<StateRow>, over: &mut Vec<OverCapacity>) {
        let Some(stretch) = Interval::new(self.since[group], to) else { return };
        self.since[group] = to;
        let now = &self.now[group];
        if now.capacity == 0 && now.held == 0 {
            self.end_over(group, over);
            return;
        }
        for (bucket, piece) in stretch.buckets() {
            if self.sums[group].bucket != Some(bucket) {
                self.flush(group, rows);
                self.sums[group].bucket = Some(bucket);
            }
            self.account(group, piece, over);
        }
    }

    fn account(&mut self, group: usize, piece: Interval, over: &mut Vec<OverCapacity>) {
        let now = &self.now[group];
        let ms = i128::from(piece.length_ms());
        let covered: i64 =
            self.cluster.covered.iter().filter_map(|covered| covered.overlap(piece)).map(Interval::length_ms).sum();
        let beyond = (now.held - now.capacity).max(0);
        let mut left = (now.capacity - now.held).max(0);
        let sums = &mut self.sums[group];
        let down = left.min(now.out);
        left -= down;
        for (reservation, aside, held_under) in &now.reserved {
            let reserved = left.min((aside - held_under).max(0));
            left -= reserved;
            if reserved > 0 {
                match sums.reserved.iter_mut().find(|(r, _)| r == reservation) {
                    Some((_, sum)) => *sum += i128::from(reserved) * ms,
                    None => sums.reserved.push((*reservation, i128::from(reserved) * ms)),
                }
            }
        }
        sums.down += i128::from(down) * ms;
        // Where no export speaks, what was looked at and not held is free; the rest nobody saw.
        let seen_free = left.min((now.watched - now.held_of_watched).max(0));
        let uncovered = ms - i128::from(covered);
        sums.free += i128::from(left) * i128::from(covered) + i128::from(seen_free) * uncovered;
        sums.unaccounted += i128::from(left - seen_free) * uncovered;
        sums.held += i128::from(now.held) * ms;
        sums.capacity += i128::from(now.capacity) * ms;
        sums.over += i128::from(beyond) * ms;
        if beyond == 0 {
            self.end_over(group, over);
            return;
        }
        let time = CardTime::of(CardShare::from_parts(beyond), piece);
        let peak = CardShare::from_parts(beyond);
        let same_day =
            |o: &OverCapacity| o.during.end() == piece.start() && o.during.start().utc_day() == piece.start().utc_day();
        match &mut self.over[group] {
            Some(o) if same_day(o) => {
                o.during = Interval::new(o.during.start(), piece.end()).expect("it grows");
                o.peak = o.peak.max(peak);
                o.card_time += time;
            }
            _ => {
                self.end_over(group, over);
                let of = self.groups.all[group].clone();
                self.over[group] = Some(OverCapacity { group: of, during: piece, peak, card_time: time });
            }
        }
    }

    fn end_over(&mut self, group: usize, over: &mut Vec<OverCapacity>) {
        over.extend(self.over[group].take());
    }

    /// Writes the rows of a group's bucket in progress.
    fn flush(&mut self, group: usize, rows: &mut Vec<StateRow>) {
        let sums = std::mem::take(&mut self.sums[group]);
        let Some(bucket_start) = sums.bucket else { return };
        let reserved: i128 = sums.reserved.iter().map(|(_, part_ms)| part_ms).sum();
        assert_eq!(
            sums.held + sums.down + reserved + sums.free + sums.unaccounted,
            sums.capacity + sums.over,
            "LED-1: the states of a group add up to its capacity and what passes it"
        );
        let group = &self.groups.all[group];
        let mut row = |state, reservation, part_ms: i128| {
            if part_ms > 0 {
                let card_time = CardTime::from_part_ms(part_ms);
                rows.push(StateRow { bucket_start, state, group: group.clone(), reservation, card_time });
            }
        };
        row(CardState::Down, None, sums.down);
        for (reservation, part_ms) in sums.reserved {
            row(CardState::Reserved, Some(self.cluster.reservations[reservation].name.clone()), part_ms);
        }
        row(CardState::Free, None, sums.free);
        row(CardState::Unaccounted, None, sums.unaccounted);
    }
}

#[cfg(test)]
mod tests;
