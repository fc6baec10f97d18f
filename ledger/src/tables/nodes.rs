//! `nodes`: what each node has, as `import nodes` said last.

use super::{Table, jobs};
use crate::columns::{Columns, Interned, Rows, opt_instant, opt_long, opt_text};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_books::site::Node;

pub(crate) const NODES: Table = Table {
    name: "nodes",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "nodes and how many cards of which model each has",
};

pub(crate) fn batch(rows: &[Node]) -> RecordBatch {
    let labels: Vec<Option<String>> = rows
        .iter()
        .map(|n| {
            let map: serde_json::Map<String, serde_json::Value> =
                n.labels.iter().map(|(name, value)| (name.to_string(), value.to_string().into())).collect();
            (!map.is_empty()).then(|| serde_json::Value::Object(map).to_string())
        })
        .collect();
    Columns::default()
        .text("cluster", rows.iter().map(|n| &*n.cluster))
        .text("node", rows.iter().map(|n| &*n.node))
        .opt_text("model", rows.iter().map(|n| n.model.as_deref()))
        .opt_micros("cards", rows.iter().map(|n| Some(n.cards.cards().mantissa())))
        .long("share_parts", rows.iter().map(|n| n.cards.parts()))
        .opt_long("memory_bytes", rows.iter().map(|n| n.memory_bytes))
        .opt_text("pool", rows.iter().map(|n| n.pool.as_deref()))
        .opt_instant("in_service_at", rows.iter().map(|n| n.in_service_at))
        .opt_instant("retired_at", rows.iter().map(|n| n.retired_at))
        .opt_text("labels", labels.iter().map(Option::as_deref))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Node>, Error> {
    let rows = Rows::new(NODES.name, batch);
    let (clusters, nodes, models, pools) =
        (rows.text("cluster")?, rows.text("node")?, rows.text("model")?, rows.text("pool")?);
    let (parts, memory, labels) = (rows.long("share_parts")?, rows.long("memory_bytes")?, rows.text("labels")?);
    let (from, until) = (rows.instants("in_service_at")?, rows.instants("retired_at")?);
    (0..batch.num_rows())
        .map(|row| {
            Ok(Node {
                cluster: names.get(clusters.value(row)),
                node: names.get(nodes.value(row)),
                model: names.opt(models, row),
                cards: jobs::share(NODES.name, parts.value(row))?,
                memory_bytes: opt_long(memory, row),
                pool: names.opt(pools, row),
                in_service_at: opt_instant(from, row),
                retired_at: opt_instant(until, row),
                labels: jobs::labels(NODES.name, opt_text(labels, row))?,
            })
        })
        .collect()
}
