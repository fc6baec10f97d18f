//! `holdings`: who held what, from when to when. Derived from `jobs`; partitioned by the UTC day of the start.

use super::Table;
use crate::columns::{Columns, Indexed};
use arrow::record_batch::RecordBatch;
use cardhour_books::cluster::Place;
use cardhour_books::holdings::Holding;

pub(crate) const HOLDINGS: Table = Table {
    name: "holdings",
    schema_version: 2,
    schema: || batch(&[]).schema(),
    by_day: true,
    bounds: &["started_at", "ended_at"],
    comment: "who held what: one row a card, or for records one an attempt with the share of all its cards",
};

/// Rows of one day.
pub(crate) fn batch(rows: &[(&Holding, &Place)]) -> RecordBatch {
    let claims = || rows.iter().map(|(holding, _)| &holding.claim);
    let ids: Vec<String> = rows.iter().map(|(holding, _)| holding.id.to_hex()).collect();
    let n = rows.len();
    Columns::default()
        .indexed_text("holding_id", Indexed::each(ids.iter().map(String::as_str)), false)
        .indexed_text("attempt_key", Indexed::each(claims().map(|c| c.key.as_str())), false)
        .indexed_text("cluster", Indexed::of(claims().map(|c| Some(&*c.cluster))), false)
        .indexed_text("card_uuid", Indexed::of(claims().map(|c| c.card_uuid.as_deref())), true)
        .indexed_text("node", Indexed::of(claims().map(|c| c.node.as_deref())), true)
        .indexed_text("model", Indexed::of(rows.iter().map(|(_, place)| place.model.as_deref())), true)
        .indexed_text("mig_profile", Indexed::of(claims().map(|c| c.mig_profile.as_deref())), true)
        .indexed_long("share_parts", Indexed::of(rows.iter().map(|(h, _)| Some(h.share.parts()))), false)
        .indexed_instant("started_at", Indexed::of(rows.iter().map(|(h, _)| Some(h.during.start()))), false)
        .indexed_instant("ended_at", Indexed::of(rows.iter().map(|(h, _)| Some(h.during.end()))), false)
        .indexed_text("source", Indexed::of(claims().map(|c| Some(c.source.name()))), false)
        .indexed_boolean("estimated", Indexed::the_same(Some(false), n), false)
        .indexed_text("device_uuid", Indexed::of(claims().map(|c| c.device_uuid().map(|device| &**device))), true)
        .finish()
}
