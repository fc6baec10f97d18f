//! The columns of [`Observation`].

use super::reader::{ColumnError, Reader, bad, during};
use super::writer::Writer;
use crate::{CardShare, Holder, HolderKind, HolderSource, Name, Observation, Owner};
use arrow::record_batch::RecordBatch;
use std::collections::BTreeMap;

pub(super) fn batch(rows: &[Observation]) -> RecordBatch {
    Writer::new(rows)
        .instant("ts", |o| o.during.start())
        .text("card_uuid", |o| &o.card_uuid)
        .text("device_uuid", |o| &o.device_uuid)
        .text("node", |o| &o.node)
        .long("interval_ms", |o| o.during.length_ms())
        .optional_text("mig_profile", |o| o.mig_profile.as_deref())
        .optional_long("share_parts", |o| o.share.map(CardShare::parts))
        .text("source", |o| o.source.name())
        .text("kind", |o| o.holder.kind.name())
        .text("cluster", |o| &o.holder.cluster)
        .text("job_id", |o| &o.holder.job_id)
        .optional_text("shown_id", |o| o.holder.shown_id.as_deref())
        .text("run", |o| &o.holder.run)
        .optional_instant("started_at", |o| o.holder.started_at)
        .optional_text("org", |o| o.owner.org.as_deref())
        .optional_text("project", |o| o.owner.project.as_deref())
        .optional_text("user", |o| o.owner.user.as_deref())
        .optional_text("queue", |o| o.owner.queue.as_deref())
        .optional_text("class", |o| o.owner.class.as_deref())
        .made_text("labels", |o| labels_text(&o.owner.labels))
        .optional_text("refused_project", |o| o.owner.refused_project.as_deref())
        .finish()
}

/// Labels as a JSON object, in the order of their names; none where there are none.
fn labels_text(labels: &BTreeMap<Name, Name>) -> Option<String> {
    if labels.is_empty() {
        return None;
    }
    let object = labels.iter().map(|(name, value)| (name.to_string(), serde_json::Value::from(value.as_str())));
    Some(serde_json::Value::Object(object.collect()).to_string())
}

pub(super) fn rows(batch: &RecordBatch) -> Result<Vec<Observation>, ColumnError> {
    let read = Reader::new(batch)?;
    let (ts, interval) = (read.instants("ts")?, read.longs("interval_ms")?);
    let (cards, devices, nodes) = (read.texts("card_uuid")?, read.texts("device_uuid")?, read.texts("node")?);
    let (profile, parts, source) = (read.texts("mig_profile")?, read.longs("share_parts")?, read.texts("source")?);
    let (kind, cluster, job_id) = (read.texts("kind")?, read.texts("cluster")?, read.texts("job_id")?);
    let (shown_id, run, started) = (read.texts("shown_id")?, read.texts("run")?, read.instants("started_at")?);
    let (org, project, user) = (read.texts("org")?, read.texts("project")?, read.texts("user")?);
    let (queue, class, labels) = (read.texts("queue")?, read.texts("class")?, read.texts("labels")?);
    let refused = read.texts("refused_project")?;
    let name = |text: Option<&str>| text.map(|text| read.name(text));
    let row = |row: usize| {
        let share = parts.get(row);
        if share.is_some_and(|parts| !(0..=CardShare::PARTS_PER_CARD).contains(&parts)) {
            return Err(bad("share_parts", row, "is not from 0 to a card's"));
        }
        let from = source.must("source", row)?;
        let what = kind.must("kind", row)?;
        let labels = match labels.get(row) {
            None => BTreeMap::new(),
            Some(text) => {
                let parsed: Result<BTreeMap<String, String>, _> = serde_json::from_str(text);
                let parsed = parsed.map_err(|error| bad("labels", row, error.to_string()))?;
                parsed.iter().map(|(label, value)| (read.name(label), read.name(value))).collect()
            }
        };
        Ok(Observation {
            during: during(&ts, &interval, row)?,
            node: read.name(nodes.must("node", row)?),
            card_uuid: read.name(cards.must("card_uuid", row)?),
            device_uuid: read.name(devices.must("device_uuid", row)?),
            mig_profile: name(profile.get(row)),
            share: share.map(CardShare::from_parts),
            source: HolderSource::from_name(from).ok_or_else(|| bad("source", row, format!("{from:?} is none")))?,
            holder: Holder {
                kind: HolderKind::from_name(what).ok_or_else(|| bad("kind", row, format!("{what:?} is none")))?,
                cluster: read.name(cluster.must("cluster", row)?),
                job_id: read.name(job_id.must("job_id", row)?),
                shown_id: name(shown_id.get(row)),
                run: read.name(run.must("run", row)?),
                started_at: started.get(row),
            },
            owner: Owner {
                org: name(org.get(row)),
                project: name(project.get(row)),
                user: name(user.get(row)),
                queue: name(queue.get(row)),
                class: name(class.get(row)),
                labels,
                refused_project: name(refused.get(row)),
            },
        })
    };
    read.rows().map(row).collect()
}
