//! The columns of [`NodeEvent`].

use super::reader::{ColumnError, Reader, bad};
use super::writer::Writer;
use crate::{EventKind, NodeEvent};
use arrow::record_batch::RecordBatch;

pub(super) fn batch(rows: &[NodeEvent]) -> RecordBatch {
    Writer::new(rows)
        .instant("ts", |e| e.at)
        .text("node", |e| &e.node)
        .optional_text("card_uuid", |e| e.card_uuid.as_deref())
        .optional_text("device_uuid", |e| e.device_uuid.as_deref())
        .text("kind", |e| e.kind.name())
        .optional_long("number", |e| e.number)
        .optional_text("detail", |e| e.detail.as_deref())
        .finish()
}

pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<NodeEvent>, ColumnError> {
    let read = Reader::new(batch)?;
    let (ts, nodes) = (read.instants("ts")?, read.texts("node")?);
    let (cards, devices) = (read.texts("card_uuid")?, read.texts("device_uuid")?);
    let (kinds, numbers, details) = (read.texts("kind")?, read.longs("number")?, read.texts("detail")?);
    let row = |row: usize| {
        let kind = kinds.must("kind", row)?;
        Ok(NodeEvent {
            at: ts.must("ts", row)?,
            node: read.name(nodes.must("node", row)?),
            card_uuid: cards.get(row).map(|text| read.name(text)),
            device_uuid: devices.get(row).map(|text| read.name(text)),
            kind: EventKind::from_name(kind)
                .ok_or_else(|| bad("kind", row, format!("{kind:?} is no event we know")))?,
            number: numbers.get(row),
            detail: details.get(row).map(|text| read.name(text)),
        })
    };
    read.rows().map(row).collect()
}
