//! Which days' holdings are others than those that are stored.

use crate::Error;
use crate::columns::{Rows, opt_text};
use crate::store::Snapshot;
use crate::tables::holdings::HOLDINGS;
use arrow::record_batch::RecordBatch;
use cardhour_books::holdings::Holding;
use cardhour_domain::{Interval, Timestamp};
use std::collections::{BTreeSet, HashMap};

const COLUMNS: &[&str] = &["holding_id", "share_parts", "started_at", "ended_at", "source"];

/// What of a holding its usage depends on, beside its id.
type Shape = (Interval, i64, String);

/// Days over which some holding came, went or changed.
pub(super) async fn days(stored: &Snapshot, now: &[Holding]) -> Result<BTreeSet<i32>, Error> {
    let read = |batches: Vec<RecordBatch>| {
        let mut out = Vec::new();
        for batch in &batches {
            let rows = Rows::new(HOLDINGS.name, batch);
            let (ids, sources, parts) = (rows.text("holding_id")?, rows.text("source")?, rows.long("share_parts")?);
            let (starts, ends) = (rows.instants("started_at")?, rows.instants("ended_at")?);
            for row in 0..batch.num_rows() {
                let [from, to] = [starts, ends].map(|column| Timestamp::from_unix_us(column.value(row)));
                let damaged = || Error::damaged(HOLDINGS.name, format!("a holding from {from} to {to}"));
                let during = Interval::new(from, to).ok_or_else(damaged)?;
                let source = opt_text(sources, row).unwrap_or_default().to_owned();
                out.push((ids.value(row).to_owned(), (during, parts.value(row), source)));
            }
        }
        Ok(out)
    };
    let parts = stored.read_with(stored.files.clone(), Some(COLUMNS), &[], read).await?;
    let mut before: HashMap<String, Shape> = parts.into_iter().flat_map(|(_, rows)| rows).collect();
    let mut days = BTreeSet::new();
    for holding in now {
        let shape = (holding.during, holding.share.parts(), holding.claim.source.name().to_owned());
        match before.remove(&holding.id.to_hex()) {
            Some(then) if then == shape => {}
            // One that only goes on longer changes where it goes on.
            Some(then) if (then.0.start(), then.1, &then.2) == (shape.0.start(), shape.1, &shape.2) => {
                let ends = [then.0.end(), shape.0.end()];
                days.extend(
                    Interval::new(ends[0].min(ends[1]), ends[0].max(ends[1])).into_iter().flat_map(Interval::utc_days),
                );
            }
            then => {
                days.extend(holding.during.utc_days());
                days.extend(then.into_iter().flat_map(|then| then.0.utc_days()));
            }
        }
    }
    days.extend(before.into_values().flat_map(|then| then.0.utc_days()));
    Ok(days)
}
