//! `conflicts`: where sources claim more than there is. Derived; partitioned by UTC day. For operators only.

use super::Table;
use crate::columns::{CardTimes, Columns, Indexed};
use arrow::record_batch::RecordBatch;
use cardhour_books::holdings::ShareCut;
use cardhour_books::observed::Difference;
use cardhour_books::states::OverCapacity;
use cardhour_domain::{CardTime, Interval, Name, Timestamp};

pub(crate) const CONFLICTS: Table = Table {
    name: "conflicts",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: true,
    bounds: &["started_at", "ended_at"],
    comment: "where more was held than there is (over_capacity), claims on a card that were cut (share_cut), and where records and nodes \
              don't agree (more_cards_seen, seen_before_start, refused_project)",
};

/// One conflict.
pub(crate) struct Conflict {
    kind: &'static str,
    cluster: Name,
    node: Option<Name>,
    model: Option<Name>,
    card_uuid: Option<Name>,
    attempt_key: Option<String>,
    during: Interval,
    parts: i64,
    card_time: CardTime,
}

impl Conflict {
    pub(crate) fn over_capacity(cluster: Name, over: OverCapacity) -> Self {
        Self {
            kind: "over_capacity",
            cluster,
            node: over.group.node,
            model: over.group.model,
            card_uuid: None,
            attempt_key: None,
            during: over.during,
            parts: over.peak.parts(),
            card_time: over.card_time,
        }
    }

    /// A cut claim, one conflict a UTC day.
    pub(crate) fn share_cut(cut: &ShareCut) -> impl Iterator<Item = Self> + '_ {
        let short = cut.claimed - cut.given;
        cut.during.utc_days().filter_map(move |day| {
            let day = Interval::new(Timestamp::from_utc_day(day), Timestamp::from_utc_day(day + 1))?;
            let during = cut.during.overlap(day)?;
            Some(Self {
                kind: "share_cut",
                cluster: cut.cluster.clone(),
                node: None,
                model: None,
                card_uuid: Some(cut.card_uuid.clone()),
                attempt_key: Some(cut.key.as_str().to_owned()),
                during,
                parts: short.parts(),
                card_time: CardTime::of(short, during),
            })
        })
    }

    /// Records and nodes that don't agree, one conflict a UTC day.
    pub(crate) fn difference(difference: &Difference) -> impl Iterator<Item = Self> + '_ {
        difference.during.utc_days().filter_map(move |day| {
            let day = Interval::new(Timestamp::from_utc_day(day), Timestamp::from_utc_day(day + 1))?;
            Some(Self {
                kind: difference.kind.name(),
                cluster: difference.cluster.clone(),
                node: Some(difference.node.clone()),
                model: None,
                card_uuid: Some(difference.card_uuid.clone()),
                attempt_key: Some(difference.key.as_str().to_owned()),
                during: difference.during.overlap(day)?,
                parts: 0,
                card_time: CardTime::ZERO,
            })
        })
    }

    pub(crate) fn day(&self) -> i32 {
        self.during.start().utc_day()
    }
}

/// Rows of one day.
pub(crate) fn batch(rows: &[&Conflict]) -> RecordBatch {
    Columns::default()
        .text("kind", rows.iter().map(|c| c.kind))
        .text("cluster", rows.iter().map(|c| &*c.cluster))
        .opt_text("node", rows.iter().map(|c| c.node.as_deref()))
        .opt_text("model", rows.iter().map(|c| c.model.as_deref()))
        .opt_text("card_uuid", rows.iter().map(|c| c.card_uuid.as_deref()))
        .opt_text("attempt_key", rows.iter().map(|c| c.attempt_key.as_deref()))
        .instant("started_at", rows.iter().map(|c| c.during.start()))
        .instant("ended_at", rows.iter().map(|c| c.during.end()))
        .long("share_parts", rows.iter().map(|c| c.parts))
        .card_time("card_time", &CardTimes::new(Indexed::of(rows.iter().map(|c| Some(c.card_time.part_ms())))), false)
        .finish()
}
