//! The site as its nodes tell it: what they have, when they looked, and which cards they lost.
//!
//! What a file of nodes says of a node comes before what the node says of itself. A card that was seen once stays in service, and is
//! unaccounted where nobody sees it, until a file of nodes says that it was retired: missing is not gone (LED-1, LED-3).
//!
//! Start at [`add_seen`].

pub mod list;

use crate::cluster::{Cluster, WatchedCard};
use crate::observed::{Seen, watched};
use crate::site::{Node, Outage};
use cardhour_domain::{CardShare, EventKind, Interval, Name, NodeEvent, SeenDevice, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Adds to clusters what their nodes told. Shape: independent of the order of rows.
pub fn add_seen(clusters: &mut BTreeMap<Name, Cluster>, seen: &Seen, events: &[NodeEvent]) {
    let from_files: BTreeSet<(Name, Name)> =
        clusters.values().flat_map(|c| &c.nodes).map(|node| (node.cluster.clone(), node.node.clone())).collect();
    for node in nodes(&seen.devices) {
        if !from_files.contains(&(node.cluster.clone(), node.node.clone())) {
            clusters.entry(node.cluster.clone()).or_default().nodes.push(node);
        }
    }
    for device in &seen.devices {
        let cluster = clusters.entry(device.cluster.clone()).or_default();
        cluster.told_until = cluster.told_until.max(Some(device.at));
    }
    let mut places: BTreeMap<&Name, (&Name, &Name)> = BTreeMap::new();
    for watch in &seen.watches {
        // A card that was in two nodes is looked up under one of them, always the same.
        let place = places.entry(&watch.card_uuid).or_insert((&watch.cluster, &watch.node));
        *place = (*place).max((&watch.cluster, &watch.node));
    }
    for (card_uuid, during) in watched(&seen.watches) {
        let (cluster, node) = places[&card_uuid];
        let card = WatchedCard { node: node.clone(), card_uuid: card_uuid.clone(), during };
        clusters.entry(cluster.clone()).or_default().watched.push(card);
    }
    for outage in lost_cards(&seen.devices, events) {
        clusters.entry(outage.cluster.clone()).or_default().outages.push(outage);
    }
    for cluster in clusters.values_mut() {
        cluster.watched.sort();
        cluster.nodes.sort_by(|a, b| (&a.node, a.in_service_at).cmp(&(&b.node, b.in_service_at)));
        cluster.outages.sort_by(|a, b| (a.during, &a.nodes).cmp(&(b.during, &b.nodes)));
    }
}

/// One row a node and number of cards it had: a new one from each moment on at which a card was first seen.
fn nodes(devices: &[SeenDevice]) -> Vec<Node> {
    // Each card, when it was first seen, and as it was seen last.
    type Cards<'a> = BTreeMap<&'a Name, (Timestamp, &'a SeenDevice)>;
    let mut cards: BTreeMap<(&Name, &Name), Cards<'_>> = BTreeMap::new();
    for device in devices.iter().filter(|device| device.device_uuid == device.card_uuid) {
        let of_node = cards.entry((&device.cluster, &device.node)).or_default();
        let (first, last) = of_node.entry(&device.card_uuid).or_insert((device.at, device));
        *first = (*first).min(device.at);
        if (last.at, &last.model, last.memory_bytes) < (device.at, &device.model, device.memory_bytes) {
            *last = device;
        }
    }
    let mut out = Vec::new();
    for ((cluster, node), cards) in cards {
        let mut starts: Vec<Timestamp> = cards.values().map(|(first, _)| *first).collect();
        starts.sort();
        starts.dedup();
        for (i, start) in starts.iter().enumerate() {
            let there: Vec<&SeenDevice> =
                cards.values().filter(|(first, _)| first <= start).map(|(_, card)| *card).collect();
            let only = |of: fn(&SeenDevice) -> Option<String>| {
                let values: BTreeSet<Option<String>> = there.iter().map(|card| of(card)).collect();
                values.iter().next().cloned().flatten().filter(|_| values.len() == 1)
            };
            out.push(Node {
                cluster: cluster.clone(),
                node: node.clone(),
                model: only(|card| card.model.as_ref().map(ToString::to_string)).map(Name::from),
                cards: CardShare::from_parts(CardShare::PARTS_PER_CARD * there.len() as i64),
                memory_bytes: only(|card| card.memory_bytes.map(|bytes| bytes.to_string()))
                    .and_then(|b| b.parse().ok()),
                pool: None,
                in_service_at: Some(*start),
                retired_at: starts.get(i + 1).copied(),
                labels: BTreeMap::new(),
            });
        }
    }
    out
}

/// When cards were lost, by node: an outage for each stretch with one number of lost cards.
fn lost_cards(devices: &[SeenDevice], events: &[NodeEvent]) -> Vec<Outage> {
    let clusters: BTreeMap<&Name, &Name> = devices.iter().map(|d| (&d.node, &d.cluster)).collect();
    let last = events.iter().map(|event| event.at).chain(devices.iter().map(|d| d.at)).max();
    // By node and card: lost (true) or found, in order of time; at one instant it is found.
    let mut edges: BTreeMap<(&Name, &Name), BTreeSet<(Timestamp, bool)>> = BTreeMap::new();
    for event in events {
        let lost = match event.kind {
            EventKind::CardLost => true,
            EventKind::CardFound => false,
            _ => continue,
        };
        let Some(card) = &event.card_uuid else { continue };
        edges.entry((&event.node, card)).or_default().insert((event.at, !lost));
    }
    let mut lost: BTreeMap<&Name, Vec<Interval>> = BTreeMap::new();
    for ((node, _), edges) in edges {
        let mut since: Option<Timestamp> = None;
        for (at, is_found) in edges {
            match (since, is_found) {
                (None, false) => since = Some(at),
                (Some(from), true) => {
                    lost.entry(node).or_default().extend(Interval::new(from, at));
                    since = None;
                }
                _ => {}
            }
        }
        // Lost and not found: until the last that anybody told.
        lost.entry(node).or_default().extend(since.zip(last).and_then(|(from, last)| Interval::new(from, last)));
    }
    let mut out = Vec::new();
    for (node, lost) in lost {
        let Some(cluster) = clusters.get(node) else { continue };
        let mut cuts: Vec<Timestamp> = lost.iter().flat_map(|during| [during.start(), during.end()]).collect();
        cuts.sort();
        cuts.dedup();
        for during in cuts.windows(2).filter_map(|pair| Interval::new(pair[0], pair[1])) {
            let count = lost.iter().filter(|lost| lost.contains(during.start())).count() as i64;
            if count > 0 {
                out.push(Outage {
                    cluster: (*cluster).clone(),
                    during,
                    nodes: vec![node.clone()],
                    cards: Some(CardShare::from_parts(CardShare::PARTS_PER_CARD * count)),
                    reason: Some("card lost".into()),
                });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::Watch;

    fn s(seconds: i64) -> Timestamp {
        Timestamp::from_unix_s(seconds)
    }

    fn card(uuid: &str, at: i64) -> SeenDevice {
        SeenDevice {
            at: s(at),
            node: "n1".into(),
            cluster: "lab".into(),
            card_uuid: uuid.into(),
            device_uuid: uuid.into(),
            pci_bus_id: None,
            model: Some("H200".into()),
            memory_bytes: Some(141),
            driver: None,
            mig_mode: None,
            mig_profile: None,
            share: CardShare::CARD,
            power_limit_mw: None,
        }
    }

    fn event(kind: EventKind, card: &str, at: i64) -> NodeEvent {
        let card_uuid = Some(card.into());
        NodeEvent { at: s(at), node: "n1".into(), card_uuid, device_uuid: None, kind, number: None, detail: None }
    }

    fn told(devices: Vec<SeenDevice>, events: &[NodeEvent]) -> Cluster {
        let mut clusters = BTreeMap::new();
        add_seen(&mut clusters, &Seen { devices, ..Seen::default() }, events);
        clusters.remove("lab").unwrap()
    }

    #[test]
    fn a_card_that_is_seen_no_more_stays_in_service() {
        let cluster = told(vec![card("G1", 0), card("G2", 0), card("G1", 100), card("G3", 100)], &[]);
        let nodes: Vec<_> = cluster.nodes.iter().map(|n| (n.cards.cards(), n.in_service_at, n.retired_at)).collect();
        assert_eq!(nodes, [(2.into(), Some(s(0)), Some(s(100))), (3.into(), Some(s(100)), None)]);
    }

    #[test]
    fn what_a_file_says_of_a_node_comes_first() {
        let mut file = told(vec![card("G1", 0)], &[]);
        file.nodes[0].cards = CardShare::from_parts(8 * CardShare::PARTS_PER_CARD);
        let mut clusters = BTreeMap::from([("lab".into(), file.clone())]);
        add_seen(&mut clusters, &Seen { devices: vec![card("G1", 50), card("G2", 60)], ..Seen::default() }, &[]);
        assert_eq!(clusters["lab"].nodes, file.nodes);
        assert_eq!(clusters["lab"].told_until, Some(s(60)), "and that it was there when its cards were told of");
    }

    #[test]
    fn cards_that_are_lost_together_are_counted_together() {
        use EventKind::{CardFound, CardLost};
        let events = [
            event(CardLost, "G1", 10),
            event(CardLost, "G2", 20),
            event(CardLost, "G2", 25),
            event(CardFound, "G1", 30),
            event(CardFound, "G2", 50),
        ];
        let cluster = told(vec![card("G1", 0), card("G2", 0)], &events);
        let out = |o: &Outage| (o.during.start(), o.during.end(), o.cards.unwrap().cards());
        let outages: Vec<_> = cluster.outages.iter().map(out).collect();
        assert_eq!(outages, [(s(10), s(20), 1.into()), (s(20), s(30), 2.into()), (s(30), s(50), 1.into())]);
    }

    #[test]
    fn looks_at_a_card_are_those_of_its_node() {
        let watch = |from, to| Watch {
            during: Interval::new(s(from), s(to)).unwrap(),
            node: "n1".into(),
            cluster: "lab".into(),
            card_uuid: "G1".into(),
        };
        let mut clusters = BTreeMap::new();
        let seen = Seen { watches: vec![watch(15, 30), watch(0, 15), watch(60, 75)], ..Seen::default() };
        add_seen(&mut clusters, &seen, &[]);
        let [watched] = &clusters["lab"].watched[..] else { panic!("{clusters:?}") };
        let during = |from, to| Interval::new(s(from), s(to)).unwrap();
        assert_eq!((&*watched.node, &watched.during[..]), ("n1", &[during(0, 30), during(60, 75)][..]));
    }
}
