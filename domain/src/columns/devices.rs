//! The columns of [`SeenDevice`].

use super::reader::{ColumnError, Reader, bad};
use super::writer::Writer;
use crate::{CardShare, SeenDevice};
use arrow::record_batch::RecordBatch;

pub(super) fn batch(rows: &[SeenDevice]) -> RecordBatch {
    Writer::new(rows)
        .instant("ts", |d| d.at)
        .text("node", |d| &d.node)
        .text("cluster", |d| &d.cluster)
        .text("card_uuid", |d| &d.card_uuid)
        .text("device_uuid", |d| &d.device_uuid)
        .optional_text("pci_bus_id", |d| d.pci_bus_id.as_deref())
        .optional_text("model", |d| d.model.as_deref())
        .optional_long("memory_bytes", |d| d.memory_bytes)
        .optional_text("driver", |d| d.driver.as_deref())
        .optional_text("mig_mode", |d| d.mig_mode.as_deref())
        .optional_text("mig_profile", |d| d.mig_profile.as_deref())
        .long("share_parts", |d| d.share.parts())
        .optional_long("power_limit_mw", |d| d.power_limit_mw)
        .finish()
}

pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<SeenDevice>, ColumnError> {
    let read = Reader::new(batch)?;
    let (ts, nodes, clusters) = (read.instants("ts")?, read.texts("node")?, read.texts("cluster")?);
    let (cards, devices) = (read.texts("card_uuid")?, read.texts("device_uuid")?);
    let (bus, model, driver) = (read.texts("pci_bus_id")?, read.texts("model")?, read.texts("driver")?);
    let (mode, profile) = (read.texts("mig_mode")?, read.texts("mig_profile")?);
    let (memory, parts, limit) =
        (read.longs("memory_bytes")?, read.longs("share_parts")?, read.longs("power_limit_mw")?);
    let row = |row: usize| {
        let parts = parts.must("share_parts", row)?;
        if !(0..=CardShare::PARTS_PER_CARD).contains(&parts) {
            return Err(bad(
                "share_parts",
                row,
                format!("{parts} is not from 0 to a card's {}", CardShare::PARTS_PER_CARD),
            ));
        }
        Ok(SeenDevice {
            at: ts.must("ts", row)?,
            node: read.name(nodes.must("node", row)?),
            cluster: read.name(clusters.must("cluster", row)?),
            card_uuid: read.name(cards.must("card_uuid", row)?),
            device_uuid: read.name(devices.must("device_uuid", row)?),
            pci_bus_id: bus.get(row).map(|text| read.name(text)),
            model: model.get(row).map(|text| read.name(text)),
            memory_bytes: memory.get(row),
            driver: driver.get(row).map(|text| read.name(text)),
            mig_mode: mode.get(row).map(|text| read.name(text)),
            mig_profile: profile.get(row).map(|text| read.name(text)),
            share: CardShare::from_parts(parts),
            power_limit_mw: limit.get(row),
        })
    };
    read.rows().map(row).collect()
}
