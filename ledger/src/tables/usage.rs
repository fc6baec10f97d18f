//! `usage`: what was held, and what wasn't, by quarter hour. Derived; partitioned by UTC day.
//!
//! This is what bills and reports read. One row a bucket and holding (`state` is `held`, the attempt named), and one a bucket, group of cards
//! and state that nobody held. Card-time columns are parts × milliseconds. Records know nothing of use: held time is `unseen`, whole.

use super::Table;
use crate::columns::Columns;
use arrow::array::StringArray;
use arrow::record_batch::RecordBatch;
use cardhour_books::cluster::Place;
use cardhour_books::holdings::Holding;
use cardhour_books::states::StateRow;
use cardhour_books::usage::HeldRow;
use cardhour_domain::{CardState, Name, Timestamp};
use std::collections::HashMap;

pub(crate) const USAGE: Table = Table {
    name: "usage",
    schema_version: 1,
    schema: || batch(&[], &[], &[], &[]).schema(),
    by_day: true,
    bounds: &["bucket_start"],
    comment: "card-time by quarter hour: held by attempts, and down, reserved, free or unaccounted by group of cards",
};

/// Text of a column that repeats: each value once, an index a row.
#[derive(Default)]
struct Indexed<'a> {
    keys: Vec<Option<i32>>,
    values: Vec<&'a str>,
    known: HashMap<&'a str, i32>,
}

impl<'a> Indexed<'a> {
    fn with_capacity(rows: usize) -> Self {
        Self { keys: Vec::with_capacity(rows), ..Self::default() }
    }

    fn index(&mut self, text: &'a str) -> i32 {
        *self.known.entry(text).or_insert_with(|| {
            self.values.push(text);
            i32::try_from(self.values.len() - 1).expect("fewer than 2³¹ names a day")
        })
    }

    fn push(&mut self, text: Option<&'a str>) {
        let index = text.map(|text| self.index(text));
        self.keys.push(index);
    }

    fn repeat(&mut self) {
        self.keys.push(*self.keys.last().expect("repeats the row before"));
    }

    fn column(self, columns: Columns, name: &str, nullable: bool) -> Columns {
        columns.indexed_text(name, self.keys, StringArray::from(self.values), nullable)
    }
}

/// Rows of one day: held ones by holding and bucket, then the others by cluster, group and bucket.
///
/// `holdings` and `places`: those that the held rows have the indexes of.
pub(crate) fn batch(
    held_rows: &[HeldRow],
    state_rows: &[(Name, StateRow)],
    holdings: &[Holding],
    places: &[Place],
) -> RecordBatch {
    let n = held_rows.len() + state_rows.len();
    let [
        mut keys,
        mut states,
        mut clusters,
        mut pools,
        mut nodes,
        mut models,
        mut cards,
        mut profiles,
        mut reservations,
    ] = std::array::from_fn(|_| Indexed::with_capacity(n));
    let mut before = None;
    for row in held_rows {
        if before == Some(row.holding) {
            for column in [
                &mut keys,
                &mut states,
                &mut clusters,
                &mut pools,
                &mut nodes,
                &mut models,
                &mut cards,
                &mut profiles,
                &mut reservations,
            ] {
                column.repeat();
            }
            continue;
        }
        before = Some(row.holding);
        let (holding, place) = (&holdings[row.holding as usize], &places[row.holding as usize]);
        let claim = &holding.claim;
        keys.push(Some(claim.key.as_str()));
        states.push(Some(CardState::Held.name()));
        clusters.push(Some(&claim.cluster));
        pools.push(place.pool.as_deref());
        nodes.push(claim.node.as_deref());
        models.push(place.model.as_deref());
        cards.push(claim.card_uuid.as_deref());
        profiles.push(claim.mig_profile.as_deref());
        reservations.push(claim.reservation.as_deref());
    }
    for (cluster, row) in state_rows {
        fn text(name: &Option<Name>) -> Option<&str> {
            name.as_deref()
        }
        keys.push(None);
        states.push(Some(row.state.name()));
        clusters.push(Some(cluster));
        pools.push(text(&row.group.pool));
        nodes.push(text(&row.group.node));
        models.push(text(&row.group.model));
        cards.push(None);
        profiles.push(None);
        reservations.push(text(&row.reservation));
    }
    let held = || held_rows.iter();
    let states_only = || state_rows.iter().map(|(_, row)| row);
    let buckets = held().map(|r| r.bucket_start).chain(states_only().map(|r| r.bucket_start));
    let none = || std::iter::repeat_n(None, state_rows.len());
    let no_share = || std::iter::repeat_n(None, state_rows.len());
    // Of records' held time nothing is known but that it was held.
    let nothing = || held().map(|_| Some(0)).chain(none());
    let columns = Columns::default().instant("bucket_start", buckets.collect::<Vec<Timestamp>>().into_iter());
    let columns = keys.column(columns, "attempt_key", true);
    let columns = states.column(columns, "state", false);
    let columns = clusters.column(columns, "cluster", false);
    let columns = pools.column(columns, "pool", true);
    let columns = nodes.column(columns, "node", true);
    let columns = models.column(columns, "model", true);
    let columns = cards.column(columns, "card_uuid", true);
    let columns = profiles.column(columns, "mig_profile", true);
    let columns = reservations.column(columns, "reservation", true);
    columns
        .opt_text("device_uuid", std::iter::repeat_n(None, n))
        .opt_long("share_parts", held().map(|r| Some(holdings[r.holding as usize].share.parts())).chain(no_share()))
        .card_time(
            "card_time",
            held().map(|r| r.card_time.part_ms()).chain(states_only().map(|r| r.card_time.part_ms())),
        )
        .opt_card_time("billed_time", held().map(|r| Some(r.billed_time.part_ms())).chain(none()))
        .opt_card_time("effective", nothing())
        .opt_card_time("underused", nothing())
        .opt_card_time("idle", nothing())
        .opt_card_time("lost", nothing())
        .opt_card_time("unseen", held().map(|r| Some(r.card_time.part_ms())).chain(none()))
        .opt_long("energy_mj", std::iter::repeat_n(None, n))
        .opt_text("use_basis", std::iter::repeat_n(None, n))
        .finish()
}
