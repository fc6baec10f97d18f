//! The columns of [`Watch`].

use super::reader::{ColumnError, Reader, during};
use super::writer::Writer;
use crate::Watch;
use arrow::record_batch::RecordBatch;

pub(super) fn batch(rows: &[Watch]) -> RecordBatch {
    Writer::new(rows)
        .instant("ts", |w| w.during.start())
        .text("card_uuid", |w| &w.card_uuid)
        .text("node", |w| &w.node)
        .text("cluster", |w| &w.cluster)
        .long("interval_ms", |w| w.during.length_ms())
        .finish()
}

pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<Watch>, ColumnError> {
    let read = Reader::new(batch)?;
    let (ts, interval) = (read.instants("ts")?, read.longs("interval_ms")?);
    let (cards, nodes, clusters) = (read.texts("card_uuid")?, read.texts("node")?, read.texts("cluster")?);
    let row = |row: usize| {
        Ok(Watch {
            during: during(&ts, &interval, row)?,
            node: read.name(nodes.must("node", row)?),
            cluster: read.name(clusters.must("cluster", row)?),
            card_uuid: read.name(cards.must("card_uuid", row)?),
        })
    };
    read.rows().map(row).collect()
}
