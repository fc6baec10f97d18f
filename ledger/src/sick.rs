//! Attempts that held a card when it met a fatal fault of its own: what a policy may refund.

use crate::columns::{Rows, opt_instant, opt_text};
use crate::store::FileView;
use crate::tables::holdings::HOLDINGS;
use crate::{Error, Reading};
use arrow::record_batch::RecordBatch;
use cardhour_domain::{AttemptKey, EventKind, Interval, Name, NodeEvent, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// XIDs that are a fault of the card or its links and end what runs on it, not of the program: double-bit ECC error, halted micro-controller, failed row
/// remapping, NVLink error, fallen off the bus, contained and uncontained ECC error, timeout and error of the GSP, unrecovered ECC error. Source: NVIDIA's
/// XID catalogue.
const FATAL_XIDS: [i64; 10] = [48, 62, 64, 74, 79, 94, 95, 119, 120, 140];

/// An end that accounting writes may be this long before the node tells of the fault that brought it. Unit: milliseconds.
const TOLD_LATE_MS: i64 = 60_000;

impl Reading {
    /// Those that held such a card in some time. Records that don't say which card they had are not among them.
    pub(crate) async fn sick(&self, events: &[NodeEvent], during: Interval) -> Result<BTreeSet<AttemptKey>, Error> {
        let mut faults: BTreeMap<Name, Vec<Timestamp>> = BTreeMap::new();
        for event in events.iter().filter(|event| during.contains(event.at) && is_fatal(event)) {
            if let Some(card) = &event.card_uuid {
                faults.entry(card.clone()).or_default().push(event.at);
            }
        }
        if faults.is_empty() {
            return Ok(BTreeSet::new());
        }
        let Some(holdings) = self.store.open(&HOLDINGS).await? else { return Ok(BTreeSet::new()) };
        let may_overlap = |file: &&FileView| file.may_overlap("started_at", "ended_at", during.start(), during.end());
        let files = holdings.files.iter().filter(may_overlap).cloned().collect();
        let columns = ["attempt_key", "card_uuid", "started_at", "ended_at"];
        let read = move |batches: Vec<RecordBatch>| {
            let mut sick = BTreeSet::new();
            for batch in &batches {
                let rows = Rows::new(HOLDINGS.name, batch);
                let (keys, cards) = (rows.text("attempt_key")?, rows.text("card_uuid")?);
                let (starts, ends) = (rows.instants("started_at")?, rows.instants("ended_at")?);
                for row in 0..batch.num_rows() {
                    let met = opt_text(cards, row).and_then(|card| faults.get(card));
                    let (Some(met), Some(start)) = (met, opt_instant(starts, row)) else { continue };
                    let end = opt_instant(ends, row).and_then(|end| end.checked_add_ms(TOLD_LATE_MS));
                    if met.iter().any(|at| start <= *at && end.is_none_or(|end| *at <= end)) {
                        sick.insert(AttemptKey::from_stored(keys.value(row)));
                    }
                }
            }
            Ok(sick)
        };
        let found = holdings.read_with(files, Some(&columns), &[], read).await?;
        Ok(found.into_iter().flat_map(|(_, sick)| sick).collect())
    }
}

fn is_fatal(event: &NodeEvent) -> bool {
    match event.kind {
        EventKind::CardLost => true,
        EventKind::Xid => event.number.is_some_and(|number| FATAL_XIDS.contains(&number)),
        _ => false,
    }
}
