//! The columns of [`Activity`].

use super::reader::{ColumnError, Reader, during};
use super::writer::Writer;
use crate::{Activity, AttemptKey};
use arrow::record_batch::RecordBatch;

pub(super) fn batch(rows: &[Activity]) -> RecordBatch {
    Writer::new(rows)
        .instant("ts", |a| a.during.start())
        .text("card_uuid", |a| &a.card_uuid)
        .text("device_uuid", |a| &a.device_uuid)
        .text("node", |a| &a.node)
        .text("attempt_key", |a| a.holder.as_str())
        .long("interval_ms", |a| a.during.length_ms())
        .long("processes", |a| a.processes)
        .percent_reading("sm_active_pct", |a| a.sm_active_pct)
        .long_reading("mem_used_bytes", |a| a.mem_used_bytes)
        .long_reading("cpu_ms", |a| a.cpu_ms)
        .long_reading("io_bytes", |a| a.io_bytes)
        .truth_reading("is_attended", |a| a.is_attended)
        .gaps()
        .finish()
}

pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<Activity>, ColumnError> {
    let read = Reader::new(batch)?;
    let (ts, interval) = (read.instants("ts")?, read.longs("interval_ms")?);
    let (cards, devices, nodes) = (read.texts("card_uuid")?, read.texts("device_uuid")?, read.texts("node")?);
    let (keys, processes) = (read.texts("attempt_key")?, read.longs("processes")?);
    let (sm, used) = (read.percents("sm_active_pct")?, read.longs("mem_used_bytes")?);
    let (cpu, io, attended) = (read.longs("cpu_ms")?, read.longs("io_bytes")?, read.truths("is_attended")?);
    let row = |row: usize| {
        Ok(Activity {
            during: during(&ts, &interval, row)?,
            node: read.name(nodes.must("node", row)?),
            card_uuid: read.name(cards.must("card_uuid", row)?),
            device_uuid: read.name(devices.must("device_uuid", row)?),
            holder: AttemptKey::from_stored(keys.must("attempt_key", row)?),
            processes: processes.must("processes", row)?,
            sm_active_pct: read.reading("sm_active_pct", row, sm.get(row)?)?,
            mem_used_bytes: read.reading("mem_used_bytes", row, used.get(row))?,
            cpu_ms: read.reading("cpu_ms", row, cpu.get(row))?,
            io_bytes: read.reading("io_bytes", row, io.get(row))?,
            is_attended: read.reading("is_attended", row, attended.get(row))?,
        })
    };
    read.rows().map(row).collect()
}
