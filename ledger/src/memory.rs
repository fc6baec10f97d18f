//! How much memory of cards attempts used: what advice on models and batches rests on.
//!
//! Start at [`Reading::card_memory`]. Does not: judge what is much.

use crate::columns::{Rows, opt_instant, opt_long, opt_text};
use crate::store::FileView;
use crate::tables::holdings::HOLDINGS;
use crate::tables::telemetry;
use crate::{Error, Reading};
use arrow::record_batch::RecordBatch;
use cardhour_books::advice::{CardMemory, HeldDevices, MemoryUse};
use cardhour_domain::{AttemptKey, Interval, Name, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl Reading {
    /// What attempts used in some time of the memory of devices that are named, and how much a card of each model has. Samples are read file by file, and no more of them
    /// is kept than one figure an attempt.
    pub async fn card_memory(&self, during: Interval) -> Result<CardMemory, Error> {
        let mut memory = CardMemory { card_bytes: self.bytes_of_models(during).await?, used: BTreeMap::new() };
        let Some(samples) = self.facts.told(Stream::Samples) else { return Ok(memory) };
        let held = self.held_devices(during).await?;
        if held.is_empty() {
            return Ok(memory);
        }
        let held = Arc::new(held);
        // A tick may reach over midnight.
        let days = during.utc_days();
        let (first, last) = (*days.start(), *days.end());
        let in_time = |file: &&FileView| file.day.is_none_or(|day| (first - 1..=last + 1).contains(&day));
        let files = samples.files.iter().filter(in_time).cloned().collect();
        let name = telemetry::of(Stream::Samples).name;
        let columns = ["ts", "interval_ms", "device_uuid", "mem_used_bytes"];
        let read = move |batches: Vec<RecordBatch>| {
            let mut used: BTreeMap<AttemptKey, MemoryUse> = BTreeMap::new();
            for batch in &batches {
                let rows = Rows::new(name, batch);
                let (starts, lengths) = (rows.instants("ts")?, rows.long("interval_ms")?);
                let (devices, amounts) = (rows.text("device_uuid")?, rows.long("mem_used_bytes")?);
                for row in 0..batch.num_rows() {
                    let (Some(bytes), Some(start)) = (opt_long(amounts, row), opt_instant(starts, row)) else {
                        continue;
                    };
                    let end = opt_long(lengths, row).and_then(|ms| start.checked_add_ms(ms));
                    let tick = end.and_then(|end| Interval::new(start, end)).and_then(|tick| tick.overlap(during));
                    if let Some((device, tick)) = opt_text(devices, row).zip(tick) {
                        held.note(device, tick, bytes, &mut used);
                    }
                }
            }
            Ok(used)
        };
        for (_, used) in samples.read_with(files, Some(&columns), &[], read).await? {
            for (key, more) in used {
                memory.used.entry(key).or_default().add(more);
            }
        }
        Ok(memory)
    }

    /// Memory of one card of each model, where all that are known have the same. Unit: bytes.
    pub async fn card_bytes(&self, during: Interval) -> Result<BTreeMap<Name, i64>, Error> {
        self.bytes_of_models(during).await
    }

    async fn bytes_of_models(&self, during: Interval) -> Result<BTreeMap<Name, i64>, Error> {
        let mut by_model: BTreeMap<Name, BTreeSet<i64>> = BTreeMap::new();
        for stock in self.inventory(during.end()).await? {
            if let Some((model, bytes)) = stock.model.zip(stock.memory_bytes) {
                by_model.entry(model).or_default().insert(bytes);
            }
        }
        let only = |(model, bytes): (Name, BTreeSet<i64>)| match bytes.len() {
            1 => Some((model, *bytes.first()?)),
            _ => None,
        };
        Ok(by_model.into_iter().filter_map(only).collect())
    }

    pub(crate) async fn held_devices(&self, during: Interval) -> Result<HeldDevices, Error> {
        let Some(holdings) = self.store.open(&HOLDINGS).await? else { return Ok(HeldDevices::default()) };
        let may_overlap = |file: &&FileView| file.may_overlap("started_at", "ended_at", during.start(), during.end());
        let files = holdings.files.iter().filter(may_overlap).cloned().collect();
        let columns = ["attempt_key", "device_uuid", "started_at", "ended_at"];
        let read = move |batches: Vec<RecordBatch>| {
            let mut held = Vec::new();
            for batch in &batches {
                let rows = Rows::new(HOLDINGS.name, batch);
                let (keys, devices) = (rows.text("attempt_key")?, rows.text("device_uuid")?);
                let (starts, ends) = (rows.instants("started_at")?, rows.instants("ended_at")?);
                for row in 0..batch.num_rows() {
                    let time = opt_instant(starts, row).zip(opt_instant(ends, row));
                    let time = time.and_then(|(start, end)| Interval::new(start, end));
                    let time = time.filter(|time| time.overlap(during).is_some());
                    if let Some((device, time)) = opt_text(devices, row).zip(time) {
                        held.push((Name::from(device), time, AttemptKey::from_stored(keys.value(row))));
                    }
                }
            }
            Ok(held)
        };
        let parts = holdings.read_with(files, Some(&columns), &[], read).await?;
        Ok(HeldDevices::new(parts.into_iter().flat_map(|(_, held)| held)))
    }
}
