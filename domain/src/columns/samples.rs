//! The columns of [`Sample`].

use super::reader::{ColumnError, Reader, bad, during};
use super::writer::Writer;
use crate::{AttemptKey, EnergyBasis, Millijoules, Milliwatts, Sample, SampleSource, UseBasis};
use arrow::record_batch::RecordBatch;

pub(super) fn batch(rows: &[Sample]) -> RecordBatch {
    Writer::new(rows)
        .instant("ts", |s| s.during.start())
        .text("card_uuid", |s| &s.card_uuid)
        .text("device_uuid", |s| &s.device_uuid)
        .text("node", |s| &s.node)
        .optional_text("attempt_key", |s| s.attempt_key.as_ref().map(AttemptKey::as_str))
        .long("interval_ms", |s| s.during.length_ms())
        .percent_reading("sm_active_pct", |s| s.sm_active_pct)
        .text("use_basis", |s| s.use_basis.name())
        .percent_reading("mem_active_pct", |s| s.mem_active_pct)
        .percent_reading("media_active_pct", |s| s.media_active_pct)
        .long_reading("mem_used_bytes", |s| s.mem_used_bytes)
        .long_reading("nvlink_bytes", |s| s.nvlink_bytes)
        .long_reading("pcie_bytes", |s| s.pcie_bytes)
        .long_reading("power_mw", |s| s.power_mw.map(|power| power.0))
        .long_reading("energy_mj", |s| s.energy_mj.map(|energy| energy.0))
        .text("energy_basis", |s| s.energy_basis.name())
        .long_reading("temperature_c", |s| s.temperature_c)
        .text("source", |s| s.source.name())
        .gaps()
        .finish()
}

pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<Sample>, ColumnError> {
    let read = Reader::new(batch)?;
    let (ts, interval) = (read.instants("ts")?, read.longs("interval_ms")?);
    let (cards, devices, nodes) = (read.texts("card_uuid")?, read.texts("device_uuid")?, read.texts("node")?);
    let keys = read.texts("attempt_key")?;
    let [sm, mem, media] = ["sm_active_pct", "mem_active_pct", "media_active_pct"].map(|name| read.percents(name));
    let (sm, mem, media) = (sm?, mem?, media?);
    let (use_basis, energy_basis, source) =
        (read.texts("use_basis")?, read.texts("energy_basis")?, read.texts("source")?);
    let (used, nvlink, pcie) = (read.longs("mem_used_bytes")?, read.longs("nvlink_bytes")?, read.longs("pcie_bytes")?);
    let (power, energy, temperature) =
        (read.longs("power_mw")?, read.longs("energy_mj")?, read.longs("temperature_c")?);
    let row = |row: usize| {
        let basis = use_basis.must("use_basis", row)?;
        let use_basis =
            UseBasis::from_name(basis).ok_or_else(|| bad("use_basis", row, format!("{basis:?} is none")))?;
        let basis = energy_basis.must("energy_basis", row)?;
        let energy_basis =
            EnergyBasis::from_name(basis).ok_or_else(|| bad("energy_basis", row, format!("{basis:?} is none")))?;
        let from = source.must("source", row)?;
        let source = SampleSource::from_name(from).ok_or_else(|| bad("source", row, format!("{from:?} is none")))?;
        Ok(Sample {
            during: during(&ts, &interval, row)?,
            card_uuid: read.name(cards.must("card_uuid", row)?),
            device_uuid: read.name(devices.must("device_uuid", row)?),
            node: read.name(nodes.must("node", row)?),
            attempt_key: keys.get(row).map(AttemptKey::from_stored),
            sm_active_pct: read.reading("sm_active_pct", row, sm.get(row)?)?,
            use_basis,
            mem_active_pct: read.reading("mem_active_pct", row, mem.get(row)?)?,
            media_active_pct: read.reading("media_active_pct", row, media.get(row)?)?,
            mem_used_bytes: read.reading("mem_used_bytes", row, used.get(row))?,
            nvlink_bytes: read.reading("nvlink_bytes", row, nvlink.get(row))?,
            pcie_bytes: read.reading("pcie_bytes", row, pcie.get(row))?,
            power_mw: read.reading("power_mw", row, power.get(row))?.map(Milliwatts),
            energy_mj: read.reading("energy_mj", row, energy.get(row))?.map(Millijoules),
            energy_basis,
            temperature_c: read.reading("temperature_c", row, temperature.get(row))?,
            source,
        })
    };
    read.rows().map(row).collect()
}
