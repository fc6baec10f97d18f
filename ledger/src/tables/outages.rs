//! `outages`: when cards were out of service.

use super::reservations::stretch;
use super::{Table, jobs};
use crate::columns::{Columns, Interned, Rows, opt_long, opt_text};
use crate::error::Error;
use arrow::record_batch::RecordBatch;
use cardhour_books::site::Outage;

pub(crate) const OUTAGES: Table = Table {
    name: "outages",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: false,
    bounds: &[],
    comment: "windows in which nodes, or a whole cluster, were out of service",
};

pub(crate) fn batch(rows: &[Outage]) -> RecordBatch {
    let nodes: Vec<Option<String>> = rows.iter().map(|o| (!o.nodes.is_empty()).then(|| o.nodes.join(","))).collect();
    Columns::default()
        .text("cluster", rows.iter().map(|o| &*o.cluster))
        .instant("started_at", rows.iter().map(|o| o.during.start()))
        .instant("ended_at", rows.iter().map(|o| o.during.end()))
        .opt_text("nodes", nodes.iter().map(Option::as_deref))
        .opt_long("share_parts", rows.iter().map(|o| o.cards.map(|cards| cards.parts())))
        .opt_text("reason", rows.iter().map(|o| o.reason.as_deref()))
        .finish()
}

pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Outage>, Error> {
    let rows = Rows::new(OUTAGES.name, batch);
    let (clusters, nodes, reasons) = (rows.text("cluster")?, rows.text("nodes")?, rows.text("reason")?);
    let (starts, ends, parts) = (rows.instants("started_at")?, rows.instants("ended_at")?, rows.long("share_parts")?);
    (0..batch.num_rows())
        .map(|row| {
            Ok(Outage {
                cluster: names.get(clusters.value(row)),
                during: stretch(OUTAGES.name, starts.value(row), ends.value(row))?,
                nodes: opt_text(nodes, row).map_or(Vec::new(), |n| n.split(',').map(|n| names.get(n)).collect()),
                cards: opt_long(parts, row).map(|parts| jobs::share(OUTAGES.name, parts)).transpose()?,
                reason: names.opt(reasons, row),
            })
        })
        .collect()
}
