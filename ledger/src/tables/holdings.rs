//! `holdings`: who held what, from when to when. Derived from `jobs`; partitioned by the UTC day of the start.

use super::Table;
use crate::columns::Columns;
use arrow::record_batch::RecordBatch;
use cardhour_books::cluster::Place;
use cardhour_books::holdings::Holding;

pub(crate) const HOLDINGS: Table = Table {
    name: "holdings",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: true,
    bounds: &["started_at", "ended_at"],
    comment: "who held what: one row a card, or for records one an attempt with the share of all its cards",
};

/// Rows of one day.
pub(crate) fn batch(rows: &[(&Holding, &Place)]) -> RecordBatch {
    let claims = || rows.iter().map(|(holding, _)| &holding.claim);
    let ids: Vec<String> = rows.iter().map(|(holding, _)| holding.id.to_hex()).collect();
    Columns::default()
        .text("holding_id", ids.iter().map(String::as_str))
        .text("attempt_key", claims().map(|c| c.key.as_str()))
        .text("cluster", claims().map(|c| &*c.cluster))
        .opt_text("card_uuid", claims().map(|c| c.card_uuid.as_deref()))
        .opt_text("node", claims().map(|c| c.node.as_deref()))
        .opt_text("model", rows.iter().map(|(_, place)| place.model.as_deref()))
        .opt_text("mig_profile", claims().map(|c| c.mig_profile.as_deref()))
        .long("share_parts", rows.iter().map(|(h, _)| h.share.parts()))
        .instant("started_at", rows.iter().map(|(h, _)| h.during.start()))
        .instant("ended_at", rows.iter().map(|(h, _)| h.during.end()))
        .text("source", rows.iter().map(|_| "accounting"))
        .boolean("estimated", rows.iter().map(|_| false))
        .finish()
}
