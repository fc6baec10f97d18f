//! `jobs`: every attempt, in the version that stands. `jobs_history`: the versions that lost.

use super::Table;
use crate::columns::{Columns, Indexed, Interned, Rows, opt_instant, opt_long, opt_text};
use crate::error::{Error, stored_hash};
use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use cardhour_books::attempt::Attempt;
use cardhour_books::holdings::{Claim, ClaimSource};
use cardhour_books::versions::{Version, Versioned};
use cardhour_domain::{AttemptKey, CardShare, Interval, JobState, Name, Timestamp};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const JOBS: Table = Table {
    name: "jobs",
    schema_version: 1,
    schema: || batch(&[]).schema(),
    by_day: true,
    bounds: &["submitted_at", "started_at", "as_of"],
    comment: "attempts, one row each, in the version that stands; partitioned by the UTC day of the submit",
};

pub(crate) const HISTORY: Table = Table {
    name: "jobs_history",
    comment: "versions of attempts that gave way to another: the final beats the open, then the later as-of",
    ..JOBS
};

/// The partition of an attempt: the UTC day of its submit, else of its start, else of what it is vouched for.
pub(crate) fn day(attempt: &Attempt) -> i32 {
    attempt.submitted_at.or(attempt.started_at).or(attempt.as_of).map_or(0, Timestamp::utc_day)
}

pub(crate) fn batch(rows: &[Versioned]) -> RecordBatch {
    let of = || rows.iter().map(|(attempt, _)| attempt);
    let labels: Vec<Option<String>> = of().map(|a| labels_json(&a.labels)).collect();
    let nodes: Vec<Option<String>> = of().map(|a| (!a.nodes.is_empty()).then(|| a.nodes.join(","))).collect();
    let hashes: Vec<String> = rows.iter().map(|(_, version)| version.content.to_hex()).collect();
    let micros = |share: CardShare| share.cards().mantissa();
    fn name(name: &Option<Name>) -> Option<&str> {
        name.as_deref()
    }
    fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Indexed<&'a str> {
        Indexed::of(values)
    }
    Columns::default()
        .indexed_text("attempt_key", Indexed::each(of().map(|a| a.key.as_str())), false)
        .indexed_text("cluster", texts(of().map(|a| Some(&*a.cluster))), false)
        .indexed_text("job_id", Indexed::each(of().map(|a| &*a.job_id)), false)
        .indexed_long("attempt", Indexed::of(of().map(|a| a.restart.map(i64::from))), true)
        .indexed_text("org", texts(of().map(|a| name(&a.org))), true)
        .indexed_text("project", texts(of().map(|a| name(&a.project))), true)
        .indexed_text("user", texts(of().map(|a| name(&a.user))), true)
        .indexed_text("queue", texts(of().map(|a| name(&a.queue))), true)
        .indexed_text("class", texts(of().map(|a| name(&a.class))), true)
        .indexed_text("labels", texts(labels.iter().map(Option::as_deref)), true)
        .indexed_text("state", texts(of().map(|a| Some(a.state.name()))), false)
        .indexed_instant("submitted_at", Indexed::of(of().map(|a| a.submitted_at)), true)
        .indexed_instant("started_at", Indexed::of(of().map(|a| a.started_at)), true)
        .indexed_instant("ended_at", Indexed::of(of().map(|a| a.ended_at)), true)
        .indexed_instant("as_of", Indexed::of(of().map(|a| a.as_of)), true)
        .indexed_micros("cards_requested", Indexed::of(of().map(|a| a.cards_requested.map(micros))), true)
        .indexed_micros("cards", Indexed::of(of().map(|a| Some(micros(a.cards)))), true)
        .indexed_long("memory_requested_mib", Indexed::of(of().map(|a| a.memory_requested_mib)), true)
        .indexed_text("reservation", texts(of().map(|a| name(&a.reservation))), true)
        .indexed_text("image", texts(of().map(|a| name(&a.image))), true)
        .indexed_text("exit_code", texts(of().map(|a| name(&a.exit_code))), true)
        .indexed_text("failure_reason", texts(of().map(|a| name(&a.failure_reason))), true)
        .indexed_text("artifact_uri", texts(of().map(|a| name(&a.artifact_uri))), true)
        .indexed_long("priority", Indexed::of(of().map(|a| a.priority)), true)
        .indexed_boolean("restartable", Indexed::of(of().map(|a| a.restartable)), true)
        .indexed_text("model", texts(of().map(|a| name(&a.model))), true)
        .indexed_text("mig_profile", texts(of().map(|a| name(&a.mig_profile))), true)
        .indexed_text("card_uuid", texts(of().map(|a| name(&a.card_uuid))), true)
        .indexed_text("nodes", texts(nodes.iter().map(Option::as_deref)), true)
        .indexed_long("share_parts", Indexed::of(of().map(|a| Some(a.cards.parts()))), false)
        .indexed_boolean("share_declared", Indexed::of(of().map(|a| Some(a.share_declared))), false)
        .indexed_long("suspended_ms", Indexed::of(of().map(|a| Some(a.suspended_ms))), false)
        .indexed_boolean("is_final", Indexed::of(of().map(|a| Some(a.is_final))), false)
        .indexed_text("content_hash", Indexed::each(hashes.iter().map(String::as_str)), false)
        .finish()
}

fn labels_json(labels: &BTreeMap<Name, Name>) -> Option<String> {
    if labels.is_empty() {
        return None;
    }
    let map: serde_json::Map<String, serde_json::Value> =
        labels.iter().map(|(name, value)| (name.to_string(), value.to_string().into())).collect();
    Some(serde_json::Value::Object(map).to_string())
}

/// Reads labels as [`labels_json`] wrote them.
pub(crate) fn labels(table: &'static str, json: Option<&str>) -> Result<BTreeMap<Name, Name>, Error> {
    let Some(json) = json else { return Ok(BTreeMap::new()) };
    let map: BTreeMap<String, String> =
        serde_json::from_str(json).map_err(|error| Error::damaged(table, format!("labels {json}: {error}")))?;
    Ok(map.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
}

/// Columns that tell one version from another.
pub(crate) const VERSION_COLUMNS: &[&str] = &["attempt_key", "is_final", "as_of", "content_hash"];

/// Key and version of each row.
pub(crate) fn versions(batch: &RecordBatch) -> Result<Vec<(String, Version)>, Error> {
    let rows = Rows::new("jobs", batch);
    let (keys, finals) = (rows.text("attempt_key")?, rows.boolean("is_final")?);
    let (as_of, hashes) = (rows.instants("as_of")?, rows.text("content_hash")?);
    (0..batch.num_rows())
        .map(|row| {
            let content = stored_hash("jobs", hashes.value(row))?;
            let version = Version { is_final: finals.value(row), as_of: opt_instant(as_of, row), content };
            Ok((keys.value(row).to_owned(), version))
        })
        .collect()
}

/// Columns that claims are made from.
pub(crate) const CLAIM_COLUMNS: &[&str] = &[
    "attempt_key",
    "cluster",
    "started_at",
    "ended_at",
    "as_of",
    "is_final",
    "share_parts",
    "share_declared",
    "card_uuid",
    "nodes",
    "model",
    "mig_profile",
    "reservation",
];

/// The claims of a batch, as [`Claim::of`] makes them of attempts.
pub(crate) fn claims(batch: &RecordBatch, names: &mut Interned, out: &mut Vec<Claim>) -> Result<(), Error> {
    let rows = Rows::new("jobs", batch);
    let (keys, clusters) = (rows.text("attempt_key")?, rows.text("cluster")?);
    let (starts, ends, as_of) = (rows.instants("started_at")?, rows.instants("ended_at")?, rows.instants("as_of")?);
    let (finals, parts, declared) =
        (rows.boolean("is_final")?, rows.long("share_parts")?, rows.boolean("share_declared")?);
    let (cards, nodes) = (rows.text("card_uuid")?, rows.text("nodes")?);
    let (models, profiles, reservations) = (rows.text("model")?, rows.text("mig_profile")?, rows.text("reservation")?);
    for row in 0..batch.num_rows() {
        let end = if finals.value(row) { opt_instant(ends, row) } else { opt_instant(as_of, row) };
        let (Some(start), Some(end)) = (opt_instant(starts, row), end) else { continue };
        let Some(during) = Interval::new(start, end) else { continue };
        if parts.value(row) == 0 && declared.value(row) {
            continue;
        }
        let node = opt_text(nodes, row).filter(|nodes| !nodes.contains(','));
        out.push(Claim {
            key: AttemptKey::from_stored(keys.value(row)),
            cluster: names.get(clusters.value(row)),
            during,
            share: share("jobs", parts.value(row))?,
            declared: declared.value(row),
            card_uuid: names.opt(cards, row),
            node: node.map(|node| names.get(node)),
            model: names.opt(models, row),
            mig_profile: names.opt(profiles, row),
            reservation: names.opt(reservations, row),
            slice: None,
            source: ClaimSource::Accounting,
            is_open: !finals.value(row),
        });
    }
    Ok(())
}

/// A stored share.
pub(crate) fn share(table: &'static str, parts: i64) -> Result<CardShare, Error> {
    if parts < 0 {
        return Err(Error::damaged(table, format!("a share of {parts} parts")));
    }
    Ok(CardShare::from_parts(parts))
}

/// The attempts of a batch of all columns.
pub(crate) fn rows(batch: &RecordBatch, names: &mut Interned) -> Result<Vec<Versioned>, Error> {
    let rows = Rows::new("jobs", batch);
    let text = |name| rows.text(name);
    let at = |name| rows.instants(name);
    let versions = versions(batch)?;
    let (clusters, job_ids, states, nodes) = (text("cluster")?, text("job_id")?, text("state")?, text("nodes")?);
    let (restarts, memory, priorities) =
        (rows.long("attempt")?, rows.long("memory_requested_mib")?, rows.long("priority")?);
    let (submits, starts, ends) = (at("submitted_at")?, at("started_at")?, at("ended_at")?);
    let (parts, declared, suspended) =
        (rows.long("share_parts")?, rows.boolean("share_declared")?, rows.long("suspended_ms")?);
    let (requested, restartable, label_texts) =
        (rows.decimals("cards_requested")?, rows.boolean("restartable")?, text("labels")?);
    let optional = [
        text("org")?,
        text("project")?,
        text("user")?,
        text("queue")?,
        text("class")?,
        text("model")?,
        text("mig_profile")?,
        text("card_uuid")?,
        text("reservation")?,
        text("image")?,
        text("exit_code")?,
        text("failure_reason")?,
        text("artifact_uri")?,
    ];
    let mut out = Vec::with_capacity(batch.num_rows());
    for (row, (key, version)) in versions.into_iter().enumerate() {
        let state = JobState::from_name(states.value(row))
            .ok_or_else(|| Error::damaged("jobs", format!("state {:?}", states.value(row))))?;
        let key = AttemptKey::from_stored(&key);
        let mut a = Attempt::new(key, names.get(clusters.value(row)), names.get(job_ids.value(row)), state);
        let [
            org,
            project,
            user,
            queue,
            class,
            model,
            profile,
            card,
            reservation,
            image,
            exit_code,
            failure_reason,
            artifact_uri,
        ] = optional.map(|column| names.opt(column, row));
        (a.org, a.project, a.user, a.queue, a.class) = (org, project, user, queue, class);
        (a.model, a.mig_profile, a.card_uuid, a.reservation) = (model, profile, card, reservation);
        (a.image, a.exit_code, a.failure_reason, a.artifact_uri) = (image, exit_code, failure_reason, artifact_uri);
        a.restart = opt_long(restarts, row).and_then(|n| u32::try_from(n).ok());
        a.labels = labels("jobs", opt_text(label_texts, row))?;
        (a.is_final, a.as_of) = (version.is_final, version.as_of);
        (a.submitted_at, a.started_at, a.ended_at) =
            (opt_instant(submits, row), opt_instant(starts, row), opt_instant(ends, row));
        a.suspended_ms = suspended.value(row);
        a.cards_requested = if requested.is_valid(row) {
            let cards = Decimal::from_i128_with_scale(requested.value(row), 6);
            Some(CardShare::from_decimal(cards).map_err(|error| Error::damaged("jobs", error.to_string()))?)
        } else {
            None
        };
        a.cards = share("jobs", parts.value(row))?;
        a.share_declared = declared.value(row);
        a.nodes = opt_text(nodes, row).map_or(Vec::new(), |nodes| nodes.split(',').map(|n| names.get(n)).collect());
        (a.memory_requested_mib, a.priority) = (opt_long(memory, row), opt_long(priorities, row));
        a.restartable = restartable.is_valid(row).then(|| restartable.value(row));
        out.push((Arc::new(a), version));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Wanted, decode, encode};
    use bytes::Bytes;

    #[test]
    fn an_attempt_survives_the_trip_through_its_file() {
        let mut a = Attempt::new(AttemptKey::new("c", "7_1", "db9"), "c".into(), "7_1".into(), JobState::Completed);
        a.restart = Some(2);
        a.org = Some("acme".into());
        a.labels = [("team".into(), "a \"b\"".into())].into();
        a.is_final = true;
        a.submitted_at = Some(Timestamp::from_unix_s(100));
        a.started_at = Some(Timestamp::from_unix_s(200));
        a.ended_at = Some(Timestamp::from_unix_s(300));
        a.as_of = a.ended_at;
        a.cards = CardShare::from_fraction(1, 7).unwrap();
        a.cards_requested = Some(CardShare::CARD);
        a.nodes = vec!["n1".into(), "n2".into()];
        a.restartable = Some(true);
        let row = (Arc::new(a.clone()), Version::of(&a));
        let file = encode(&JOBS, &batch(std::slice::from_ref(&row))).unwrap().bytes;
        let batch = decode("jobs", Bytes::from(file), Wanted { columns: None, indexed: &[] }).unwrap().remove(0);
        assert_eq!(rows(&batch, &mut Interned::default()).unwrap(), [row]);
        let mut found = Vec::new();
        claims(&batch, &mut Interned::default(), &mut found).unwrap();
        assert_eq!(found, [Claim::of(&a).unwrap()]);
    }
}
