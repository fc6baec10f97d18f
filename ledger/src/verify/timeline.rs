//! What each group of cards was at each instant, from facts and stored holdings alone: capacity, and the states of what nobody held.
//!
//! One walk over the instants at which anything of a group changes, coverage included. Every amount at an instant is taken afresh from what
//! is running then; LED-1's order (held, down, reserved, free, unaccounted) is applied once a stretch.

use super::attempts::named;
use super::findings::{Findings, at};
use super::load::{Held, Id, Seat, Site, Stored, span_of};
use super::place::{Atlas, Fineness, single};
use super::span::{CARD_PARTS, Span};
use crate::{Error, Reading};
use cardhour_books::cluster::Grouping;
use cardhour_domain::Name;
use std::collections::{BTreeMap, BTreeSet};

/// A group of cards that are counted together.
pub(super) struct Group {
    pub cluster: Id,
    pub node: Option<Id>,
    pub model: Option<Id>,
    pub pool: Option<Id>,
    pub stretches: Vec<Stretch>,
}

/// A stretch over which nothing of a group changed. Unit: parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub span: Span,
    pub capacity: i64,
    pub held: i64,
    pub over: i64,
    pub down: i64,
    /// By name of reservation, in the order in which they are filled.
    pub reserved: Vec<(Id, i64)>,
    pub free: i64,
    pub unaccounted: i64,
}

/// All groups of all clusters with known capacity.
pub(super) struct Timelines {
    pub groups: Vec<Group>,
    /// The group of each holding; none where its cluster's capacity isn't known.
    pub of_holding: Vec<Option<u32>>,
    /// Groups by what a row of usage says of them.
    pub by_place: BTreeMap<GroupPlace, u32>,
    pub atlases: BTreeMap<Id, Atlas>,
    pub frames: Findings,
}

/// Cluster, node, model, pool.
pub(super) type GroupPlace = (Id, Option<Id>, Option<Id>, Option<Id>);

/// From when to when a node has its cards, and how many.
struct Service {
    span: Span,
    parts: i64,
    node: Name,
    group: usize,
}

/// A change at an instant.
#[derive(Clone, Copy)]
enum Step {
    Capacity(i64),
    Held(i64),
    Covered(i64),
    /// Somebody begins or ends to look for holders of a card.
    Look(Id, i64),
    /// What is held of a card that is looked at at some time.
    OnCard(Id, i64),
    /// A node's outage begins or ends: index of the service, how many parts it takes.
    Out(usize, i64, i64),
    /// A reservation begins or ends.
    Reserved(usize, i64),
    /// What is held under a reservation.
    Under(usize, i64),
    /// What a reservation could set aside of named nodes.
    Named(usize, i64),
}

pub(super) async fn timelines(stored: &Stored, reading: &Reading) -> Result<Timelines, Error> {
    let mut out = Timelines {
        groups: Vec::new(),
        of_holding: vec![None; stored.holdings.len()],
        by_place: BTreeMap::new(),
        atlases: super::place::atlases(stored),
        frames: Findings::default(),
    };
    for (&cluster, site) in &stored.sites {
        if site.nodes.is_empty() {
            continue;
        }
        let of_cluster: Vec<&Held> = stored.holdings.iter().filter(|held| held.cluster == cluster).collect();
        let jobs = stored.jobs.iter().filter(|job| job.cluster == cluster && job.held.is_some());
        let seen: BTreeSet<&str> = of_cluster.iter().filter(|h| stored.is_seen(h)).map(|h| h.key.as_str()).collect();
        // Where nodes saw an attempt, its holdings say where it was; else its record.
        let mut seats: Vec<Seat> =
            jobs.clone().filter(|job| !seen.contains(job.key.as_str())).map(|job| job.seat()).collect();
        let of_job = |held: &&Held| held.job.map(|job| stored.seat(held, &stored.jobs[job as usize]));
        seats.extend(of_cluster.iter().filter(|held| seen.contains(held.key.as_str())).filter_map(of_job));
        let last_held = jobs.filter_map(|job| job.held).map(|held| held.to);
        let last_held = last_held.chain(of_cluster.iter().map(|held| held.span.to)).max();
        let first_look = site.looks.iter().map(|(.., span)| span.from).min();
        let last_look = site.looks.iter().map(|(.., span)| span.to).max();
        let serves_from = site.covered.first().map(|span| span.from).into_iter().chain(first_look).min();
        let last_covered = site.covered.last().map(|span| span.to);
        let horizon = last_covered.max(last_held).max(last_look).max(site.last_told);
        let fineness = out.atlases[&cluster].fineness(site, &stored.names, &seats);
        check_frame(stored.names.get(cluster), reading, (fineness, serves_from, horizon), &mut out.frames).await?;
        add_cluster(stored, cluster, site, fineness, (serves_from, horizon), &mut out);
    }
    Ok(out)
}

/// What usage remembers of a cluster, from which reports take its capacity.
async fn check_frame(
    cluster: &str,
    reading: &Reading,
    expected: (Fineness, Option<i64>, Option<i64>),
    out: &mut Findings,
) -> Result<(), Error> {
    out.rows += 1;
    let found = reading.frame(cluster).await?.map(|frame| {
        let fineness = match frame.grouping {
            Grouping::Node => Fineness::Node,
            Grouping::Model => Fineness::Model,
            Grouping::Cluster => Fineness::Cluster,
        };
        (fineness, frame.serves_from.map(|at| at.unix_ms()), frame.horizon.map(|at| at.unix_ms()))
    });
    if found != Some(expected) {
        let told = |(fineness, from, to): (Fineness, Option<i64>, Option<i64>)| {
            let edge = |ms: Option<i64>| ms.map_or("no time".to_owned(), at);
            format!("by {fineness:?} from {} to {}", edge(from), edge(to)).to_lowercase()
        };
        let found = found.map_or("nothing".to_owned(), told);
        out.fault("usage", &format!("cluster {}", named(cluster)), &told(expected), &found);
    }
    Ok(())
}

fn add_cluster(
    stored: &Stored,
    cluster: Id,
    site: &Site,
    fineness: Fineness,
    (serves_from, horizon): (Option<i64>, Option<i64>),
    out: &mut Timelines,
) {
    let names = &stored.names;
    let id = |name: &Option<Name>| name.as_ref().and_then(|name| names.known(name));
    // Groups: nodes with cards, by what they are counted by.
    let first = out.groups.len();
    let mut numbers: BTreeMap<Option<Id>, usize> = BTreeMap::new();
    let key = |node: Option<Id>, model: Option<Id>| match fineness {
        Fineness::Node => node,
        Fineness::Model => model,
        Fineness::Cluster => None,
    };
    let mut members: Vec<Vec<(Option<Id>, Option<Id>)>> = Vec::new();
    let mut services: Vec<Service> = Vec::new();
    for node in site.nodes.iter().filter(|node| node.cards.parts() > 0) {
        let number = *numbers.entry(key(names.known(&node.node), id(&node.model))).or_insert_with(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        members[number].push((id(&node.model), id(&node.pool)));
        let from = node.in_service_at.map(|at| at.unix_ms()).or(serves_from);
        let retired = node.retired_at.map(|at| at.unix_ms());
        let to = [retired, horizon].into_iter().flatten().min();
        if let Some(span) = from.zip(to).and_then(|(from, to)| Span::new(from, to)) {
            services.push(Service { span, parts: node.cards.parts(), node: node.node.clone(), group: number });
        }
    }
    for (members, key) in members.iter().zip(ordered(&numbers)) {
        out.groups.push(Group {
            cluster,
            node: if fineness == Fineness::Node { key } else { None },
            model: single(members.iter().map(|(model, _)| *model)),
            pool: single(members.iter().map(|(_, pool)| *pool)),
            stretches: Vec::new(),
        });
    }
    for (group, i) in out.groups[first..].iter().zip(first..) {
        out.by_place.insert((cluster, group.node, group.model, group.pool), u32::try_from(i).expect("few groups"));
    }

    let mut steps: Vec<Vec<(i64, Step)>> = (0..members.len()).map(|_| Vec::new()).collect();
    for span in &site.covered {
        for steps in &mut steps {
            steps.extend([(span.from, Step::Covered(1)), (span.to, Step::Covered(-1))]);
        }
    }
    for (i, service) in services.iter().enumerate() {
        let steps = &mut steps[service.group];
        steps.push((service.span.from, Step::Capacity(service.parts)));
        steps.push((service.span.to, Step::Capacity(-service.parts)));
        for outage in &site.outages {
            let hits = outage.nodes.is_empty() || outage.nodes.contains(&service.node);
            let parts = outage.cards.map_or(service.parts, |cards| cards.parts().min(service.parts));
            if let Some(span) = span_of(outage.during).cut(service.span).filter(|_| hits) {
                steps.extend([(span.from, Step::Out(i, parts, 1)), (span.to, Step::Out(i, parts, -1))]);
            }
        }
    }
    for (i, reservation) in site.reservations.iter().enumerate() {
        let during = span_of(reservation.during);
        if reservation.nodes.is_empty() {
            let number = numbers.get(&key(None, id(&reservation.model)));
            if let (Some(number), Some(cards)) = (number, reservation.cards) {
                let parts = cards.parts();
                steps[*number]
                    .extend([(during.from, Step::Reserved(i, parts)), (during.to, Step::Reserved(i, -parts))]);
            }
            continue;
        }
        for service in services.iter().filter(|service| reservation.nodes.contains(&service.node)) {
            if let Some(span) = during.cut(service.span) {
                steps[service.group].push((span.from, Step::Named(i, service.parts)));
                steps[service.group].push((span.to, Step::Named(i, -service.parts)));
            }
        }
    }
    // A node's group, whatever the grouping: its own, its model's, or the one there is.
    let of_node = |node: Id| services.iter().find(|s| names.known(&s.node) == Some(node)).map(|s| s.group);
    let mut looked_at: BTreeSet<Id> = BTreeSet::new();
    for (node, card, span) in &site.looks {
        looked_at.insert(*card);
        if let Some(group) = of_node(*node) {
            steps[group].extend([(span.from, Step::Look(*card, 1)), (span.to, Step::Look(*card, -1))]);
        }
    }
    for (held, i) in stored.holdings.iter().zip(0..).filter(|(held, _)| held.cluster == cluster) {
        let Some(job) = held.job.map(|job| &stored.jobs[job as usize]) else { continue };
        let seat = stored.seat(held, job);
        let model = out.atlases[&cluster].model(seat);
        let Some(number) = numbers.get(&key(seat.node, model)).copied() else { continue };
        out.of_holding[i] = Some(u32::try_from(first + number).expect("few groups"));
        let steps = &mut steps[number];
        steps.extend([(held.span.from, Step::Held(held.parts)), (held.span.to, Step::Held(-held.parts))]);
        if let Some(card) = held.card.filter(|card| looked_at.contains(card)) {
            steps.push((held.span.from, Step::OnCard(card, held.parts)));
            steps.push((held.span.to, Step::OnCard(card, -held.parts)));
        }
        let Some(name) = job.reservation.map(|name| names.get(name)) else { continue };
        for (r, reservation) in site.reservations.iter().enumerate().filter(|(_, r)| r.name == *name) {
            if let Some(span) = span_of(reservation.during).cut(held.span) {
                steps.extend([(span.from, Step::Under(r, held.parts)), (span.to, Step::Under(r, -held.parts))]);
            }
        }
    }
    for (number, steps) in steps.into_iter().enumerate() {
        out.groups[first + number].stretches = walk(steps, stored, site);
    }
}

/// Keys of numbers, in the order of the numbers.
fn ordered(numbers: &BTreeMap<Option<Id>, usize>) -> Vec<Option<Id>> {
    let mut pairs: Vec<(usize, Option<Id>)> = numbers.iter().map(|(key, number)| (*number, *key)).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, key)| key).collect()
}

/// What runs at an instant.
#[derive(Default)]
struct Running {
    capacity: i64,
    held: i64,
    covered: i64,
    /// For each card that is looked at at some time: how many look now, and what is held of it.
    cards: BTreeMap<Id, (i64, i64)>,
    /// For each node that is out, how many outages take how many of its parts.
    out: BTreeMap<usize, BTreeMap<i64, i64>>,
    /// For each reservation: parts of any cards, parts of nodes it names, parts held under it.
    reserved: BTreeMap<usize, [i64; 3]>,
}

fn walk(mut steps: Vec<(i64, Step)>, stored: &Stored, site: &Site) -> Vec<Stretch> {
    steps.sort_by_key(|(instant, _)| *instant);
    let mut now = Running::default();
    let mut out: Vec<Stretch> = Vec::new();
    let mut since = i64::MIN;
    for (instant, step) in steps {
        if let Some(span) = Span::new(since, instant)
            && (now.capacity > 0 || now.held > 0)
        {
            out.push(stretch(span, &now, stored, site));
        }
        since = instant;
        match step {
            Step::Capacity(parts) => now.capacity += parts,
            Step::Held(parts) => now.held += parts,
            Step::Covered(n) => now.covered += n,
            Step::Look(card, n) => now.cards.entry(card).or_default().0 += n,
            Step::OnCard(card, parts) => now.cards.entry(card).or_default().1 += parts,
            Step::Out(service, parts, n) => {
                *now.out.entry(service).or_default().entry(parts).or_default() += n;
            }
            Step::Reserved(r, parts) => now.reserved.entry(r).or_default()[0] += parts,
            Step::Named(r, parts) => now.reserved.entry(r).or_default()[1] += parts,
            Step::Under(r, parts) => now.reserved.entry(r).or_default()[2] += parts,
        }
    }
    out
}

fn stretch(span: Span, now: &Running, stored: &Stored, site: &Site) -> Stretch {
    let idle = (now.capacity - now.held).max(0);
    let most = |outages: &BTreeMap<i64, i64>| outages.iter().filter(|(_, n)| **n > 0).map(|(parts, _)| *parts).max();
    let out: i64 = now.out.values().filter_map(most).sum();
    let down = out.min(idle);
    let mut left = idle - down;
    let mut reserved: Vec<(Id, i64)> = Vec::new();
    for (r, [any, of_nodes, under]) in &now.reserved {
        let reservation = &site.reservations[*r];
        let aside = match reservation.cards {
            Some(cards) if !reservation.nodes.is_empty() => cards.parts().min(*of_nodes),
            _ => any + of_nodes,
        };
        let parts = (aside - under).clamp(0, left);
        left -= parts;
        if parts > 0 {
            let name = stored.names.known(&reservation.name).expect("names of reservations are known");
            match reserved.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += parts,
                None => reserved.push((name, parts)),
            }
        }
    }
    // Card by card: what somebody looks at and nobody holds.
    let seen_free: i64 =
        now.cards.values().filter(|(looks, _)| *looks > 0).map(|(_, held)| (CARD_PARTS - held).max(0)).sum();
    let free = if now.covered > 0 { left } else { left.min(seen_free) };
    let unaccounted = left - free;
    let over = (now.held - now.capacity).max(0);
    Stretch { span, capacity: now.capacity, held: now.held, over, down, reserved, free, unaccounted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_fill_what_is_left_in_the_order_of_the_law() {
        let stored = Stored {
            names: Default::default(),
            jobs: Vec::new(),
            by_key: Default::default(),
            holdings: Vec::new(),
            conflicts: Vec::new(),
            sites: BTreeMap::new(),
            proofs: BTreeMap::new(),
        };
        // Eight parts of capacity from 0 to 10; six held from 2 to 6, ten from 4 to 6; three out from 1 to 3; covered from 0 to 5.
        let steps = vec![
            (0, Step::Capacity(8)),
            (10, Step::Capacity(-8)),
            (2, Step::Held(6)),
            (6, Step::Held(-6)),
            (4, Step::Held(4)),
            (6, Step::Held(-4)),
            (1, Step::Out(0, 3, 1)),
            (3, Step::Out(0, 3, -1)),
            (0, Step::Covered(1)),
            (5, Step::Covered(-1)),
        ];
        let told: Vec<_> = walk(steps, &stored, &Site::default())
            .into_iter()
            .map(|s| (s.span.from, s.held, s.over, s.down, s.free, s.unaccounted))
            .collect();
        assert_eq!(
            told,
            [
                (0, 0, 0, 0, 8, 0),
                (1, 0, 0, 3, 5, 0),
                (2, 6, 0, 2, 0, 0),
                (3, 6, 0, 0, 2, 0),
                (4, 10, 2, 0, 0, 0),
                (5, 10, 2, 0, 0, 0),
                (6, 0, 0, 0, 0, 8),
            ]
        );
    }
}
