//! `usage`: what was held, and what wasn't, by quarter hour. Derived; partitioned by UTC day.
//!
//! This is what bills and reports read. One row a bucket and holding (`state` is `held`, the attempt named), and one a bucket, group of cards
//! and state that nobody held. Card-time columns are parts × milliseconds. Records know nothing of use: held time is `unseen`, whole.

use super::Table;
use crate::columns::{CardTimes, Columns, Indexed};
use arrow::record_batch::RecordBatch;
use cardhour_books::cluster::Place;
use cardhour_books::holdings::Holding;
use cardhour_books::states::StateRow;
use cardhour_books::usage::HeldRow;
use cardhour_domain::{CardState, Name};

pub(crate) const USAGE: Table = Table {
    name: "usage",
    schema_version: 1,
    schema: || batch(&[], &[], &[], &[]).schema(),
    by_day: true,
    bounds: &["bucket_start"],
    comment: "card-time by quarter hour: held by attempts, and down, reserved, free or unaccounted by group of cards",
};

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
        mut devices,
    ] = std::array::from_fn(|_| Indexed::default());
    let (mut buckets, mut shares) = (Indexed::with_capacity(n), Indexed::default());
    // Of records' held time nothing is known but that it was held.
    let (mut times, mut nothing) = (Indexed::with_capacity(n), Indexed::default());
    // Most days have neither an outage nor known capacity: then these say the same, and are made once.
    let mut billed = held_rows.iter().any(|row| row.billed_time != row.card_time).then(|| Indexed::with_capacity(n));
    let mut unseen = (!state_rows.is_empty()).then(|| Indexed::with_capacity(n));
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
        devices.push(claim.device_uuid().map(|device| &**device), n);
        reservations.push(claim.reservation.as_deref(), n);
        shares.push(Some(holding.share.parts()), n);
        nothing.push(Some(0), n);
        for row in run {
            buckets.push(Some(row.bucket_start), 1);
            times.push(Some(row.card_time.part_ms()), 1);
            if let Some(billed) = &mut billed {
                billed.push(Some(row.billed_time.part_ms()), 1);
            }
            if let Some(unseen) = &mut unseen {
                unseen.push(Some(row.card_time.part_ms()), 1);
            }
        }
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
        devices.push(None, 1);
        reservations.push(text(&row.reservation), 1);
        shares.push(None, 1);
        buckets.push(Some(row.bucket_start), 1);
        times.push(Some(row.card_time.part_ms()), 1);
        for unknown in [unseen.as_mut(), billed.as_mut(), Some(&mut nothing)].into_iter().flatten() {
            unknown.push(None, 1);
        }
    }
    let (times, nothing) = (CardTimes::new(times), CardTimes::new(nothing));
    let (unseen, billed) = (unseen.map(CardTimes::new), billed.map(CardTimes::new));
    let unseen = unseen.as_ref().unwrap_or(&times);
    Columns::default()
        .indexed_instant("bucket_start", buckets, false)
        .indexed_text("attempt_key", keys, true)
        .indexed_text("state", states, false)
        .indexed_text("cluster", clusters, false)
        .indexed_text("pool", pools, true)
        .indexed_text("node", nodes, true)
        .indexed_text("model", models, true)
        .indexed_text("card_uuid", cards, true)
        .indexed_text("mig_profile", profiles, true)
        .indexed_text("reservation", reservations, true)
        .indexed_text("device_uuid", devices, true)
        .indexed_long("share_parts", shares, true)
        .card_time("card_time", &times, false)
        .card_time("billed_time", billed.as_ref().unwrap_or(unseen), true)
        .card_time("effective", &nothing, true)
        .card_time("underused", &nothing, true)
        .card_time("idle", &nothing, true)
        .card_time("lost", &nothing, true)
        .card_time("unseen", unseen, true)
        .no_long("energy_mj", n)
        .no_text("use_basis", n)
        .finish()
}
