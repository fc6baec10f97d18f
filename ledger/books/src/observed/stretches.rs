//! Observations, row by row, to the stretches over which a holder had a device.

use crate::import::metrics::look::RUN_BY_LABEL;
use cardhour_domain::{CardShare, Holder, HolderSource, Interval, Name, Observation, Owner, SeenDevice, Timestamp};
use std::collections::BTreeMap;

/// A holder had a device without a break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub holder: Holder,
    pub owner: Owner,
    pub node: Name,
    pub card_uuid: Name,
    pub device_uuid: Name,
    pub model: Option<Name>,
    pub mig_profile: Option<Name>,
    /// Of the card, where it is declared.
    pub share: Option<CardShare>,
    /// How much of its card the device is.
    pub device_share: CardShare,
    /// The best that told of it.
    pub source: HolderSource,
    pub during: Interval,
    /// When it was seen: `during` without the time in which nobody looked. Stretches that don't touch, in order.
    pub proofs: Vec<Interval>,
}

/// Joins rows of one holder, device and share that touch, and those between which nobody looked: what was there before and after was there. Not so
/// where a holder is known by its name alone: after a hole another may have it.
///
/// Shape: by holder, device, share and time; independent of the order of the rows, and of how often one comes.
pub(crate) fn stretches(
    observations: &[Observation],
    watched: &BTreeMap<Name, Vec<Interval>>,
    devices: &BTreeMap<&Name, &SeenDevice>,
) -> Vec<Stretch> {
    // The holder's start and shown id may come to be known later: they don't tell one holder from another.
    type Who<'a> = (&'a Name, &'a Name, &'a Name, &'a Name, Option<CardShare>);
    let mut groups: BTreeMap<Who<'_>, Vec<&Observation>> = BTreeMap::new();
    for seen in observations {
        let h = &seen.holder;
        groups.entry((&h.cluster, &h.job_id, &h.run, &seen.device_uuid, seen.share)).or_default().push(seen);
    }
    let mut out = Vec::new();
    for ((.., share), mut rows) in groups {
        rows.sort_by_key(|row| (row.during, row.source));
        let device = devices.get(&rows[0].device_uuid);
        let device_share = device.map_or_else(|| share.unwrap_or(CardShare::CARD), |device| device.share);
        let looks = watched.get(&rows[0].card_uuid).map(Vec::as_slice).unwrap_or_default();
        let mut open: Option<Stretch> = None;
        for row in rows {
            if let Some(stretch) = &mut open
                && goes_on(&row.holder, stretch.during.end(), row.during.start(), looks)
            {
                let end = stretch.during.end().max(row.during.end());
                stretch.during = Interval::new(stretch.during.start(), end).expect("it grows");
                prove(&mut stretch.proofs, row.during);
                stretch.source = stretch.source.min(row.source);
                // What is known of it last counts; what was known once isn't forgotten.
                stretch.owner = row.owner.clone();
                stretch.holder.shown_id = row.holder.shown_id.clone().or(stretch.holder.shown_id.take());
                stretch.holder.started_at = row.holder.started_at.or(stretch.holder.started_at);
                continue;
            }
            out.extend(open.take());
            open = Some(Stretch {
                holder: row.holder.clone(),
                owner: row.owner.clone(),
                node: row.node.clone(),
                card_uuid: row.card_uuid.clone(),
                device_uuid: row.device_uuid.clone(),
                model: device.and_then(|device| device.model.clone()),
                // A node tells of a slice once what it is, not with each look at who holds it.
                mig_profile: row.mig_profile.clone().or_else(|| device.and_then(|device| device.mig_profile.clone())),
                share,
                device_share,
                source: row.source,
                during: row.during,
                proofs: vec![row.during],
            });
        }
        out.extend(open);
    }
    out
}

/// Adds a proof of life that begins no earlier than the last.
fn prove(proofs: &mut Vec<Interval>, during: Interval) {
    match proofs.last_mut().filter(|last| during.start() <= last.end()) {
        Some(last) => *last = Interval::new(last.start(), last.end().max(during.end())).expect("it grows"),
        None => proofs.push(during),
    }
}

/// Whether a holder was there between two proofs of life: nobody looked, and it is the same run.
fn goes_on(holder: &Holder, seen_until: Timestamp, seen_again: Timestamp, looks: &[Interval]) -> bool {
    let Some(hole) = Interval::new(seen_until, seen_again) else { return true };
    if holder.run == RUN_BY_LABEL {
        return false;
    }
    let first = looks.partition_point(|look| look.end() <= hole.start());
    looks.get(first).is_none_or(|look| look.start() >= hole.end())
}
