//! `usage`: what was held, and what wasn't, by quarter hour. Derived; partitioned by UTC day.
//!
//! This is what bills and reports read. One row a bucket and holding (`state` is `held`, the attempt named), and one a bucket, group of cards
//! and state that nobody held. Card-time columns are parts × milliseconds. Records know nothing of use: held time is `unseen`, whole.

use super::Table;
use crate::columns::{CardTimes, Columns};
use arrow::array::{Int32Array, NullBufferBuilder, StringArray};
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
struct Indexed<'a> {
    keys: Vec<i32>,
    nulls: NullBufferBuilder,
    values: Vec<&'a str>,
    known: HashMap<&'a str, i32>,
    last: Option<(&'a str, i32)>,
}

impl<'a> Indexed<'a> {
    fn with_capacity(rows: usize) -> Self {
        Self {
            keys: Vec::with_capacity(rows),
            nulls: NullBufferBuilder::new(rows),
            values: Vec::new(),
            known: HashMap::new(),
            last: None,
        }
    }

    /// The same text, or none, in `rows` rows.
    fn push(&mut self, text: Option<&'a str>, rows: usize) {
        let index = text.map(|text| match self.last {
            // Names are shared, so that a repeated one is mostly the same piece of memory.
            Some((last, index)) if std::ptr::eq(last, text) => index,
            _ => {
                let index = *self.known.entry(text).or_insert_with(|| {
                    self.values.push(text);
                    i32::try_from(self.values.len() - 1).expect("fewer than 2³¹ names a day")
                });
                self.last = Some((text, index));
                index
            }
        });
        match index {
            Some(_) => self.nulls.append_n_non_nulls(rows),
            None => self.nulls.append_n_nulls(rows),
        }
        self.keys.resize(self.keys.len() + rows, index.unwrap_or(0));
    }

    fn column(mut self, columns: Columns, name: &str, nullable: bool) -> Columns {
        let keys = Int32Array::new(self.keys.into(), self.nulls.finish());
        columns.indexed_text(name, keys, StringArray::from(self.values), nullable)
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
    for run in held_rows.chunk_by(|a, b| a.holding == b.holding) {
        let index = run[0].holding as usize;
        let (holding, place, n) = (&holdings[index], &places[index], run.len());
        let claim = &holding.claim;
        keys.push(Some(claim.key.as_str()), n);
        states.push(Some(CardState::Held.name()), n);
        clusters.push(Some(&claim.cluster), n);
        pools.push(place.pool.as_deref(), n);
        nodes.push(claim.node.as_deref(), n);
        models.push(place.model.as_deref(), n);
        cards.push(claim.card_uuid.as_deref(), n);
        profiles.push(claim.mig_profile.as_deref(), n);
        reservations.push(claim.reservation.as_deref(), n);
    }
    for (cluster, row) in state_rows {
        fn text(name: &Option<Name>) -> Option<&str> {
            name.as_deref()
        }
        keys.push(None, 1);
        states.push(Some(row.state.name()), 1);
        clusters.push(Some(cluster), 1);
        pools.push(text(&row.group.pool), 1);
        nodes.push(text(&row.group.node), 1);
        models.push(text(&row.group.model), 1);
        cards.push(None, 1);
        profiles.push(None, 1);
        reservations.push(text(&row.reservation), 1);
    }
    let held = || held_rows.iter();
    let states_only = || state_rows.iter().map(|(_, row)| row);
    let buckets = held().map(|r| r.bucket_start).chain(states_only().map(|r| r.bucket_start));
    let no_share = || std::iter::repeat_n(None, state_rows.len());
    // Of records' held time nothing is known but that it was held.
    let none = || std::iter::repeat_n(None, state_rows.len());
    let nothing = CardTimes::new(held().map(|_| Some(0)).chain(none()));
    let times = || held().map(|r| Some(r.card_time.part_ms()));
    let all = CardTimes::new(times().chain(states_only().map(|r| Some(r.card_time.part_ms()))));
    let held_only = (!state_rows.is_empty()).then(|| CardTimes::new(times().chain(none())));
    let unseen = held_only.as_ref().unwrap_or(&all);
    let differs = held().any(|r| r.billed_time != r.card_time);
    let billed = differs.then(|| CardTimes::new(held().map(|r| Some(r.billed_time.part_ms())).chain(none())));
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
        .card_time("card_time", &all, false)
        .card_time("billed_time", billed.as_ref().unwrap_or(unseen), true)
        .card_time("effective", &nothing, true)
        .card_time("underused", &nothing, true)
        .card_time("idle", &nothing, true)
        .card_time("lost", &nothing, true)
        .card_time("unseen", unseen, true)
        .opt_long("energy_mj", std::iter::repeat_n(None, n))
        .opt_text("use_basis", std::iter::repeat_n(None, n))
        .finish()
}
