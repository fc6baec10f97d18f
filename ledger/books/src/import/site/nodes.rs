//! `import nodes`: the machines of a site and the cards in them.

use super::rules::{Rules, known_keys, refused};
use super::sheet::{Sheet, Written};
use super::{ListError, Listed};
use crate::import::fields::Kind;
use crate::import::map::{Fault, MapError, MapFile};
use crate::import::node_list::MOST_NODES;
use crate::import::record::Record;
use crate::import::tres::{Cards, cards_in_gres, cards_in_tres};
use crate::import::when::Refusal;
use crate::site::Node;
use cardhour_domain::{Name, Timestamp};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use std::collections::BTreeMap;

/// The fields of a node; labels come beside them, as `labels.NAME`.
pub const NODE_FIELDS: &[(&str, Kind)] = &[
    ("cluster", Kind::Text),
    ("node", Kind::Text),
    ("model", Kind::Text),
    ("cards", Kind::Number),
    ("memory", Kind::Number),
    ("pool", Kind::Text),
    ("in_service_at", Kind::Time),
    ("retired_at", Kind::Time),
];

/// scontrol's names for them.
const SCONTROL: &[(&str, &str)] = &[("node", "NodeName")];

/// Reads a list of nodes.
///
/// `map`: [`MapFile::default`] without one, then the columns have our names. `node` may be a host list such as
/// `node[01-16]`, whose hosts are all alike. With `count` in the map a row stands for as many hosts, named `host-1`, `host-2`, …
/// (or, where there is a rule for `node`, by its value instead of `host`). `memory` is that of one card, in bytes. A node that
/// stands there twice is one; with two different descriptions for one time the later row is rejected.
///
/// Errors: nothing says which nodes there are, or how many cards they have; a map that doesn't fit.
pub fn nodes(input: &[u8], map: &MapFile) -> Result<Listed<Node>, ListError> {
    let sheet = Sheet::read(input, "node", map)?;
    let rules = Rules::bind(&sheet, map, NODE_FIELDS, SCONTROL)?;
    let count = match &map.count {
        None => {
            rules.require("node", "which nodes there are")?;
            None
        }
        Some(name) => Some(rules.column(name).ok_or_else(|| {
            let missing = vec![Fault { key: "count".to_owned(), problem: format!("no column {name:?}") }];
            MapError::MissingColumns { missing, has: rules.has() }
        })?),
    };
    if sheet.written != Written::Scontrol {
        rules.require("cards", "how many cards a node has")?;
    }
    let mut list = List::default();
    let mut listed = Listed { rows: Vec::new(), rejected: Vec::new(), rows_read: 0 };
    for record in &sheet.records {
        listed.rows_read += 1;
        let outcome = match record {
            Err(rejected) => Err(rejected.clone()),
            Ok(record) => known_keys(&sheet, record, map, NODE_FIELDS, &[])
                .and_then(|()| row(record, &rules, count))
                .and_then(|nodes| list.add(nodes))
                .map_err(|refusal| refused(record, input, refusal)),
        };
        listed.rejected.extend(outcome.err());
    }
    listed.rows = list.nodes;
    Ok(listed)
}

/// The nodes of one row.
fn row(record: &Record, rules: &Rules, count: Option<usize>) -> Result<Vec<Node>, Refusal> {
    let of_slurm = slurm_cards(record, rules)?;
    let cards = rules.cards(record)?.or(of_slurm.map(|cards| cards.share));
    let cards = cards.ok_or_else(|| Refusal::new("cards", "is absent: write 0 for a node without cards"))?;
    let in_service_at = rules.time(record, "in_service_at")?;
    let retired_at = rules.time(record, "retired_at")?;
    if let (Some(from), Some(to)) = (in_service_at, retired_at)
        && to <= from
    {
        return Err(Refusal::new("retired_at", format!("{to} is not after in_service_at, {from}")));
    }
    let node = Node {
        cluster: rules.cluster(record),
        node: Name::from(""),
        model: rules.name(record, "model").or_else(|| of_slurm.and_then(|cards| cards.model).map(Name::from)),
        cards,
        memory_bytes: memory_bytes(record, rules)?,
        pool: rules.name(record, "pool"),
        in_service_at,
        retired_at,
        labels: rules.labels(record),
    };
    let names = names(record, rules, count)?;
    Ok(names.into_iter().map(|name| Node { node: name, ..node.clone() }).collect())
}

fn names(record: &Record, rules: &Rules, count: Option<usize>) -> Result<Vec<Name>, Refusal> {
    let Some(column) = count else {
        let names = rules.nodes(record, "node")?;
        return if names.is_empty() { Err(Refusal::new("node", "is absent: name the node")) } else { Ok(names) };
    };
    let text = record.get(column).ok_or_else(|| Refusal::new("node", "the count of nodes is absent"))?;
    match text.parse::<usize>() {
        Ok(count) if count <= MOST_NODES => {
            let base = rules.text(record, "node").unwrap_or("host");
            Ok((1..=count).map(|n| Name::from(format!("{base}-{n}"))).collect())
        }
        _ => Err(Refusal::new("node", format!("{text:?} is not a count of nodes, at most {MOST_NODES}"))),
    }
}

/// What scontrol says of the cards: `CfgTRES`, else `Gres`. None where neither is a column of the list.
fn slurm_cards<'a>(record: &'a Record, rules: &Rules) -> Result<Option<Cards<'a>>, Refusal> {
    let refuse = |error: crate::import::tres::TresError| Refusal::new("cards", error.to_string());
    let (tres, gres) = (rules.column("CfgTRES"), rules.column("Gres"));
    if rules.knows("cards") || (tres.is_none() && gres.is_none()) {
        return Ok(None);
    }
    let of_gres = match gres.and_then(|column| record.get(column)) {
        Some(text) => cards_in_gres(text, "gres/gpu").map_err(refuse)?,
        None => Cards::default(),
    };
    let of_tres = match tres.and_then(|column| record.get(column)) {
        Some(text) => cards_in_tres(text, "gres/gpu").map_err(refuse)?,
        None => Cards::default(),
    };
    // AccountingStorageTRES may name no cards, or no types of them: then Gres does.
    let share = if of_tres.share.is_zero() { of_gres.share } else { of_tres.share };
    Ok(Some(Cards { share, model: of_tres.model.or(of_gres.model), ..of_tres }))
}

fn memory_bytes(record: &Record, rules: &Rules) -> Result<Option<i64>, Refusal> {
    let whole = |bytes: Decimal| {
        let bytes = bytes.normalize();
        bytes.to_i64().filter(|whole| *whole >= 0 && bytes.scale() == 0)
    };
    match rules.number(record, "memory")? {
        None => Ok(None),
        Some(bytes) => match whole(bytes) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(Refusal::new("memory", format!("{bytes} is not a number of bytes"))),
        },
    }
}

/// The nodes so far.
#[derive(Default)]
struct List {
    nodes: Vec<Node>,
    by_name: BTreeMap<(Name, Name), Vec<usize>>,
}

impl List {
    /// Adds the nodes of a row, all or none. Errors: one of them stands there already, described otherwise for the same time.
    fn add(&mut self, nodes: Vec<Node>) -> Result<(), Refusal> {
        for node in &nodes {
            let key = (node.cluster.clone(), node.node.clone());
            for &before in self.by_name.get(&key).into_iter().flatten() {
                let before = &self.nodes[before];
                if before != node && serve_together(before, node) {
                    let reason =
                        format!("{} stands in the list twice, described differently for the same time", node.node);
                    return Err(Refusal::new("node", reason));
                }
            }
        }
        for node in nodes {
            let places = self.by_name.entry((node.cluster.clone(), node.node.clone())).or_default();
            if !places.iter().any(|&before| self.nodes[before] == node) {
                places.push(self.nodes.len());
                self.nodes.push(node);
            }
        }
        Ok(())
    }
}

/// Whether two nodes are in service at one time.
fn serve_together(a: &Node, b: &Node) -> bool {
    let before = |end: Option<Timestamp>, start: Option<Timestamp>| matches!((end, start), (Some(end), Some(start)) if end <= start);
    !before(a.retired_at, b.in_service_at) && !before(b.retired_at, a.in_service_at)
}
