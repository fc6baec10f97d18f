//! `gaps`: when nobody saw what a device did, or who held a card, and why. Derived; partitioned by UTC day. Only ledgers with collectors have it.

use super::Table;
use crate::columns::{CardTimes, Columns, Indexed};
use arrow::record_batch::RecordBatch;
use cardhour_books::gaps::Unseen;

pub(crate) const GAPS: Table = Table {
    name: "gaps",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: true,
    bounds: &["started_at", "ended_at"],
    comment: "when nobody saw what a device did (use), or who held a card (holders), while it was in service, and why",
};

/// Rows of one day.
pub(crate) fn batch(rows: &[Unseen]) -> RecordBatch {
    let times = CardTimes::new(Indexed::of(rows.iter().map(|gap| Some(gap.card_time().part_ms()))));
    Columns::default()
        .text("what", rows.iter().map(|gap| gap.what.name()))
        .text("cluster", rows.iter().map(|gap| &*gap.presence.cluster))
        .text("node", rows.iter().map(|gap| &*gap.presence.node))
        .text("card_uuid", rows.iter().map(|gap| &*gap.presence.card_uuid))
        .text("device_uuid", rows.iter().map(|gap| &*gap.presence.device_uuid))
        .instant("started_at", rows.iter().map(|gap| gap.during.start()))
        .instant("ended_at", rows.iter().map(|gap| gap.during.end()))
        .text("reason", rows.iter().map(|gap| gap.reason.name()))
        .card_time("card_time", &times, false)
        .finish()
}
