//! What the site has at a moment: cards by node and model, as its list of nodes says and as its collectors see them.
//!
//! Start at [`list`]; [`table`] makes the report of it.

use crate::observed::Seen;
use crate::report::Dimension;
use crate::site::Node;
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardShare, EventKind, Name, NodeEvent, SeenDevice, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// One node's cards of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// Cluster.
    pub cluster: Name,
    /// The node.
    pub node: Name,
    /// The pool that the list of nodes has it in.
    pub pool: Option<Name>,
    /// The model: the list's where it has one, else the driver's.
    pub model: Option<Name>,
    /// Labels of the list.
    pub labels: BTreeMap<Name, Name>,
    /// In service by the list; none where the node isn't in it.
    pub listed: Option<CardShare>,
    /// Cards that its collector has found; none where no collector ever told of the node.
    pub seen: Option<u64>,
    /// Of those, the ones that answer no more.
    pub lost: u64,
    /// Of those, the ones that are cut into MIG instances.
    pub mig_cards: u64,
    /// Their instances.
    pub mig_instances: u64,
    /// What is in no instance of a card that has some: free, and nobody can have it until the card is cut anew.
    pub stranded: CardShare,
    /// Memory of one card, where all have the same. Unit: bytes.
    pub memory_bytes: Option<i64>,
    /// Versions of the driver.
    pub drivers: BTreeSet<Name>,
    /// When somebody looked at one of its cards last.
    pub looked_at: Option<Timestamp>,
}

/// What there is at `at`, by cluster, node and model.
///
/// A card is where it was seen last, and stays until a list of nodes retires its node: missing is not gone. `nodes`: those of the lists.
pub fn list(nodes: &[Node], seen: &Seen, events: &[NodeEvent], at: Timestamp) -> Vec<Stock> {
    let serves =
        |node: &&Node| node.in_service_at.is_none_or(|from| from <= at) && node.retired_at.is_none_or(|to| to > at);
    let mut stocks: BTreeMap<(Name, Name, Option<Name>), Stock> = BTreeMap::new();
    let mut listed: BTreeMap<(&Name, &Name), &Node> = BTreeMap::new();
    for node in nodes.iter().filter(serves) {
        listed.insert((&node.cluster, &node.node), node);
        if !node.cards.is_zero() {
            let stock = stock(&mut stocks, (&node.cluster, &node.node), node.model.clone(), Some(node));
            stock.listed = Some(stock.listed.unwrap_or_default() + node.cards);
            stock.memory_bytes = node.memory_bytes;
        }
    }
    let retired: BTreeSet<(&Name, &Name)> = nodes.iter().map(|node| (&node.cluster, &node.node)).collect();
    let lost = lost(events, at);
    let looked = looked(seen, at);
    for (card, layout) in layouts(seen, at) {
        let Some(whole) = layout.iter().find(|device| device.device_uuid == device.card_uuid).or(layout.first()) else {
            continue;
        };
        let place = (&whole.cluster, &whole.node);
        let of_list = listed.get(&place).copied();
        if of_list.is_none() && retired.contains(&place) {
            continue;
        }
        let model = of_list.and_then(|node| node.model.clone()).or_else(|| whole.model.clone());
        let stock = stock(&mut stocks, place, model, of_list);
        let is_first = stock.seen.is_none();
        stock.seen = Some(stock.seen.unwrap_or(0) + 1);
        stock.lost += u64::from(lost.contains(card));
        let shares: Vec<CardShare> =
            layout.iter().filter(|device| device.device_uuid != device.card_uuid).map(|device| device.share).collect();
        if !shares.is_empty() {
            stock.mig_cards += 1;
            stock.mig_instances += shares.len() as u64;
            // Instances by memory may be more than their card: nothing is stranded then.
            let left = CardShare::CARD.saturating_sub(shares.into_iter().sum());
            stock.stranded = stock.stranded + left;
        }
        if of_list.is_none_or(|node| node.memory_bytes.is_none()) {
            stock.memory_bytes = whole.memory_bytes.filter(|bytes| is_first || stock.memory_bytes == Some(*bytes));
        }
        stock.drivers.extend(whole.driver.clone());
        stock.looked_at = stock.looked_at.max(looked.get(card).copied());
    }
    stocks.into_values().collect()
}

fn stock<'a>(
    stocks: &'a mut BTreeMap<(Name, Name, Option<Name>), Stock>,
    (cluster, node): (&Name, &Name),
    model: Option<Name>,
    of_list: Option<&Node>,
) -> &'a mut Stock {
    stocks.entry((cluster.clone(), node.clone(), model.clone())).or_insert_with(|| Stock {
        cluster: cluster.clone(),
        node: node.clone(),
        pool: of_list.and_then(|node| node.pool.clone()),
        model,
        labels: of_list.map(|node| node.labels.clone()).unwrap_or_default(),
        listed: None,
        seen: None,
        lost: 0,
        mig_cards: 0,
        mig_instances: 0,
        stranded: CardShare::default(),
        memory_bytes: None,
        drivers: BTreeSet::new(),
        looked_at: None,
    })
}

/// Each card with its instances, as it was told last.
fn layouts(seen: &Seen, at: Timestamp) -> BTreeMap<&Name, Vec<&SeenDevice>> {
    let mut layouts: BTreeMap<&Name, Vec<&SeenDevice>> = BTreeMap::new();
    for device in seen.devices.iter().filter(|device| device.at <= at) {
        let layout = layouts.entry(&device.card_uuid).or_default();
        let told_at = layout.first().map(|first| first.at);
        if told_at.is_some_and(|told| told < device.at) {
            layout.clear();
        }
        // What is told of a card at an instant is all of it; the same may be told twice.
        let is_newest = told_at.is_none_or(|told| told <= device.at);
        if is_newest && !layout.iter().any(|known| known.device_uuid == device.device_uuid && known.node >= device.node)
        {
            layout.retain(|known| known.device_uuid != device.device_uuid);
            layout.push(device);
        }
    }
    layouts
}

/// Cards that answer no more.
fn lost(events: &[NodeEvent], at: Timestamp) -> BTreeSet<&Name> {
    // By card: when, and whether it was found; at one instant it is found.
    let mut last: BTreeMap<&Name, (Timestamp, bool)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.at <= at) {
        let is_found = match event.kind {
            EventKind::CardLost => false,
            EventKind::CardFound => true,
            _ => continue,
        };
        let Some(card) = &event.card_uuid else { continue };
        let known = last.entry(card).or_insert((event.at, is_found));
        *known = (*known).max((event.at, is_found));
    }
    last.into_iter().filter(|(_, (_, is_found))| !is_found).map(|(card, _)| card).collect()
}

fn looked(seen: &Seen, at: Timestamp) -> BTreeMap<&Name, Timestamp> {
    let mut looked: BTreeMap<&Name, Timestamp> = BTreeMap::new();
    for watch in seen.watches.iter().filter(|watch| watch.during.start() <= at) {
        let last = looked.entry(&watch.card_uuid).or_insert(watch.during.end());
        *last = (*last).max(watch.during.end());
    }
    looked
}

/// How many nodes whose list and collector differ are named.
const NAMED: usize = 20;

/// The first name that an inventory can't be grouped by.
pub fn refused(by: &[Dimension]) -> Option<&Dimension> {
    use Dimension::{Cluster, Label, Model, Node, Pool};
    by.iter().find(|by| !matches!(by, Cluster | Pool | Node | Model | Label(_)))
}

/// The report: a row a group, with what the list of nodes has, what collectors found, and notes where the two differ.
///
/// `when`: how an instant is shown.
pub fn table(stocks: &[Stock], by: &[Dimension], title: String, when: impl Fn(Timestamp) -> String) -> Table {
    let mut rows: BTreeMap<Vec<Value>, Vec<&Stock>> = BTreeMap::new();
    for stock in stocks {
        let name = |name: Option<&Name>| name.cloned().map_or(Value::Absent, Value::Text);
        let group = by.iter().map(|by| match by {
            Dimension::Cluster => Value::Text(stock.cluster.clone()),
            Dimension::Node => Value::Text(stock.node.clone()),
            Dimension::Pool => name(stock.pool.as_ref()),
            Dimension::Model => name(stock.model.as_ref()),
            Dimension::Label(label) => name(stock.labels.get(label)),
            // Refused before.
            _ => Value::Absent,
        });
        rows.entry(group.collect()).or_default().push(stock);
    }
    let column = |name: &str, kind| Column { name: name.to_owned(), kind };
    let mut columns: Vec<Column> = by.iter().map(|by| column(&by.to_string(), Kind::Text)).collect();
    columns.extend(
        ["nodes", "cards", "listed_cards", "seen_cards", "lost_cards", "mig_cards", "mig_instances"]
            .map(|name| column(name, Kind::Count)),
    );
    columns.push(column("stranded_cards", Kind::Hours));
    columns.push(column("memory_bytes", Kind::Count));
    columns.extend(["driver", "last_looked_at"].map(|name| column(name, Kind::Text)));
    let all: Vec<&Stock> = stocks.iter().collect();
    let total = (!rows.is_empty()).then(|| by.iter().map(|_| Value::Absent).chain(figures(&all, &when)).collect());
    let rows = rows.into_iter().map(|(mut group, stocks)| {
        group.extend(figures(&stocks, &when));
        group
    });
    Table { title, columns, rows: rows.collect(), total, notes: notes(stocks) }
}

fn whole(cards: CardShare) -> u64 {
    u64::try_from(cards.parts() / CardShare::PARTS_PER_CARD).unwrap_or(0)
}

fn figures(stocks: &[&Stock], when: &impl Fn(Timestamp) -> String) -> Vec<Value> {
    let sum = |of: fn(&Stock) -> Option<u64>| {
        let known: Vec<u64> = stocks.iter().filter_map(|stock| of(stock)).collect();
        if known.is_empty() { Value::Absent } else { Value::Count(known.iter().sum()) }
    };
    let nodes: BTreeSet<(&Name, &Name)> = stocks.iter().map(|stock| (&stock.cluster, &stock.node)).collect();
    let memories: BTreeSet<Option<i64>> = stocks.iter().map(|stock| stock.memory_bytes).collect();
    let memory =
        memories.first().copied().flatten().filter(|_| memories.len() == 1).and_then(|bytes| u64::try_from(bytes).ok());
    let drivers: BTreeSet<&str> = stocks.iter().flat_map(|stock| &stock.drivers).map(|driver| &**driver).collect();
    let drivers = drivers.into_iter().collect::<Vec<_>>().join(" ");
    let looked = stocks.iter().filter_map(|stock| stock.looked_at).max();
    vec![
        Value::Count(nodes.len() as u64),
        sum(|stock| stock.listed.map(whole).or(stock.seen)),
        sum(|stock| stock.listed.map(whole)),
        sum(|stock| stock.seen),
        // Nobody knows of a node without a collector whether a card of it is lost, or cut.
        sum(|stock| stock.seen.map(|_| stock.lost)),
        sum(|stock| stock.seen.map(|_| stock.mig_cards)),
        sum(|stock| stock.seen.map(|_| stock.mig_instances)),
        if stocks.iter().any(|stock| stock.seen.is_some()) {
            Value::Decimal(stocks.iter().map(|stock| stock.stranded).sum::<CardShare>().cards())
        } else {
            Value::Absent
        },
        memory.map_or(Value::Absent, Value::Count),
        if drivers.is_empty() { Value::Absent } else { Value::Text(drivers.into()) },
        looked.map_or(Value::Absent, |at| Value::Text(when(at).into())),
    ]
}

fn notes(stocks: &[Stock]) -> Vec<String> {
    /// Cards by the list, and by the collector.
    type Counts = (Option<u64>, Option<u64>);
    // By node, over its models: a card of another model than the list's counts where the list puts it.
    let mut nodes: BTreeMap<(&Name, &Name), Counts> = BTreeMap::new();
    for stock in stocks {
        let (listed, seen) = nodes.entry((&stock.cluster, &stock.node)).or_default();
        *listed = stock.listed.map(whole).map(|cards| listed.unwrap_or(0) + cards).or(*listed);
        *seen = stock.seen.map(|cards| seen.unwrap_or(0) + cards).or(*seen);
    }
    let differs = |((cluster, node), counts): ((&Name, &Name), Counts)| match counts {
        (Some(listed), Some(seen)) if listed != seen => {
            Some(format!("{cluster}/{node}: {listed} cards in the list of nodes, {seen} found on it"))
        }
        (None, Some(seen)) => Some(format!("{cluster}/{node}: {seen} cards found on it, and no list of nodes has it")),
        _ => None,
    };
    let mut notes: Vec<String> = nodes.into_iter().filter_map(differs).collect();
    if notes.len() > NAMED {
        let more = notes.len() - NAMED;
        notes.truncate(NAMED);
        notes.push(format!("and {more} more nodes: --by node shows all"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardhour_domain::{Interval, Watch};

    fn s(seconds: i64) -> Timestamp {
        Timestamp::from_unix_s(seconds)
    }

    fn device(node: &str, card: &str, device: &str, at: i64) -> SeenDevice {
        SeenDevice {
            at: s(at),
            node: node.into(),
            cluster: "lab".into(),
            card_uuid: card.into(),
            device_uuid: device.into(),
            pci_bus_id: None,
            model: Some("NVIDIA H200".into()),
            memory_bytes: Some(if card == device { 150 } else { 20 }),
            driver: Some("570.1".into()),
            mig_mode: None,
            mig_profile: None,
            share: CardShare::CARD,
            power_limit_mw: None,
        }
    }

    fn node(name: &str, cards: i64, retired_at: Option<i64>) -> Node {
        Node {
            cluster: "lab".into(),
            node: name.into(),
            model: Some("H200".into()),
            cards: CardShare::from_cards(cards).unwrap(),
            memory_bytes: None,
            pool: Some("train".into()),
            in_service_at: None,
            retired_at: retired_at.map(s),
            labels: BTreeMap::new(),
        }
    }

    fn lost(card: &str, at: i64) -> NodeEvent {
        let card_uuid = Some(card.into());
        NodeEvent {
            at: s(at),
            node: "n1".into(),
            card_uuid,
            device_uuid: None,
            kind: EventKind::CardLost,
            number: None,
            detail: None,
        }
    }

    /// n1 has 3 cards by the list, 2 were found, of which G2 is cut in two and G1 lost; n2 is retired; n3 is in no list.
    fn site() -> (Vec<Node>, Seen, Vec<NodeEvent>) {
        let devices = vec![
            device("n1", "G1", "G1", 0),
            device("n1", "G2", "G2", 0),
            device("n1", "G2", "M0", 0),
            device("n1", "G2", "G2", 50),
            device("n1", "G2", "M1", 50),
            device("n1", "G2", "M2", 50),
            device("n2", "G3", "G3", 0),
            device("n3", "G4", "G4", 0),
        ];
        let watch = |card: &str, node: &str, to: i64| Watch {
            during: Interval::new(s(0), s(to)).unwrap(),
            node: node.into(),
            cluster: "lab".into(),
            card_uuid: card.into(),
        };
        let watches = vec![watch("G1", "n1", 70), watch("G2", "n1", 90), watch("G4", "n3", 100)];
        (
            vec![node("n1", 3, None), node("n2", 1, Some(60))],
            Seen { devices, watches, ..Seen::default() },
            vec![lost("G1", 70)],
        )
    }

    #[test]
    fn the_list_and_what_collectors_found_stand_beside_each_other() {
        let (nodes, seen, events) = site();
        let stocks = list(&nodes, &seen, &events, s(100));
        let shown = |s: &Stock| {
            (
                s.node.to_string(),
                s.model.as_deref().unwrap().to_owned(),
                s.listed.map(whole),
                s.seen,
                s.lost,
                s.mig_cards,
                s.mig_instances,
            )
        };
        assert_eq!(
            stocks.iter().map(shown).collect::<Vec<_>>(),
            [
                ("n1".into(), "H200".into(), Some(3), Some(2), 1, 1, 2),
                ("n3".into(), "NVIDIA H200".into(), None, Some(1), 0, 0, 0),
            ]
        );
        assert_eq!(stocks[0].looked_at, Some(s(90)));
        assert_eq!(stocks[0].memory_bytes, Some(150));
    }

    /// By hand: of G2 an instance of 3/7 and one of 2/7 leave 2/7, 0.285714 of a card; of a whole card nothing is stranded, and of a node without a
    /// collector nobody knows.
    #[test]
    fn what_is_in_no_instance_of_a_cut_card_is_stranded() {
        let (mut nodes, mut seen, events) = site();
        for device in &mut seen.devices {
            let slices = match &*device.device_uuid {
                "M1" => 3,
                "M2" => 2,
                _ => continue,
            };
            device.share = CardShare::from_fraction(slices, 7).unwrap();
        }
        nodes.push(node("n4", 8, None));
        let table =
            table(&list(&nodes, &seen, &events, s(100)), &[Dimension::Node], String::new(), |at| at.to_string());
        let stranded: Vec<Value> = table.rows.iter().map(|row| row[8].clone()).collect();
        let decimal = |text: &str| Value::Decimal(text.parse().unwrap());
        assert_eq!(stranded, [decimal("0.285714"), decimal("0.000000"), Value::Absent]);
        assert_eq!(table.total.unwrap()[8], decimal("0.285714"));
    }

    /// At 40 n2 still served, G2 was cut once, and nothing was lost.
    #[test]
    fn an_inventory_of_an_earlier_moment_is_of_that_moment() {
        let (nodes, seen, events) = site();
        let stocks = list(&nodes, &seen, &events, s(40));
        let shown = |s: &Stock| (s.node.to_string(), s.listed.map(whole), s.seen, s.lost, s.mig_instances);
        assert_eq!(
            stocks.iter().map(shown).collect::<Vec<_>>(),
            [
                ("n1".into(), Some(3), Some(2), 0, 1),
                ("n2".into(), Some(1), Some(1), 0, 0),
                ("n3".into(), None, Some(1), 0, 0),
            ]
        );
    }

    /// What nobody can know is absent, and each node that differs is named.
    #[test]
    fn the_report_names_nodes_that_differ() {
        let (mut nodes, seen, events) = site();
        nodes.push(node("n4", 8, None));
        let stocks = list(&nodes, &seen, &events, s(100));
        let table = table(&stocks, &[Dimension::Node], "inventory".to_owned(), |at| at.to_string());
        assert_eq!(table.columns[8].name, "stranded_cards");
        let count = |n| Value::Count(n);
        assert_eq!(
            table.rows[0][..8],
            [Value::Text("n1".into()), count(1), count(3), count(3), count(2), count(1), count(1), count(2)]
        );
        let absent = Value::Absent;
        assert_eq!(
            table.rows[2][..6],
            [Value::Text("n4".into()), count(1), count(8), count(8), absent.clone(), absent]
        );
        assert_eq!(table.total.unwrap()[1..5], [count(3), count(12), count(11), count(3)]);
        assert_eq!(
            table.notes,
            [
                "lab/n1: 3 cards in the list of nodes, 2 found on it",
                "lab/n3: 1 cards found on it, and no list of nodes has it",
            ]
        );
    }

    #[test]
    fn an_inventory_is_grouped_by_places_only() {
        assert_eq!(refused(&[Dimension::Pool, Dimension::User]), Some(&Dimension::User));
        assert_eq!(refused(&[Dimension::Cluster, Dimension::Label("rack".into())]), None);
    }
}
