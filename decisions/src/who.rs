//! Who holds which cards now, by the records and by what nodes saw: the jobs of a round.
//!
//! Records say which attempts run, nodes say on which cards (`cardhour_books::observed`). A card that a record has and no node saw is held unseen, so
//! that its job is never idle. What only nodes know of, a session or plain processes, is a job as well.

use crate::kept::{Kept, KeptJob};
use crate::round::RoundInput;
use cardhour_books::attempt::Attempt;
use cardhour_books::holdings::{Claim, ClaimSource};
use cardhour_books::observed::{Joined, join};
use cardhour_domain::{AttemptKey, CardShare, Holder, Interval, JobState, Name, Observation, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// How far apart the last proofs of life on two cards of one job may lie. Unit: milliseconds.
const TOGETHER_MS: i64 = 120_000;

/// The name of the cards that a record has and nobody saw.
pub(crate) const UNSEEN_CARDS: &str = "(cards that no node saw)";

/// A job that holds cards.
#[derive(Clone, Debug)]
pub(crate) struct RunningJob {
    pub key: AttemptKey,
    /// What its rows say of it.
    pub told: KeptJob,
    pub started_at: Option<Timestamp>,
    pub restart: Option<u32>,
    /// Its labels: those that nodes tell now before those of its record.
    pub labels: BTreeMap<Name, Name>,
    /// It is suspended by its scheduler: what its cards do says nothing of it.
    pub is_suspended: bool,
    /// What nodes call it, and what it is to them.
    pub holder: Option<Holder>,
    /// Where it is.
    pub nodes: BTreeSet<Name>,
    /// Its devices, by UUID.
    pub devices: BTreeMap<Name, HeldDevice>,
}

/// A device that a job holds.
#[derive(Clone, Debug)]
pub(crate) struct HeldDevice {
    pub card_uuid: Name,
    pub share: CardShare,
}

/// Who was where: what rounds ask of observations and watches.
#[derive(Debug, Default)]
pub(crate) struct Sightings<'a> {
    /// By device: who was seen on it, when, by what nodes call them.
    on_device: BTreeMap<&'a Name, Vec<(AttemptKey, Interval)>>,
    /// By card: when it was looked for holders, in order.
    looks: BTreeMap<Name, Vec<Interval>>,
}

impl<'a> Sightings<'a> {
    pub fn of(input: &RoundInput<'a>) -> Self {
        let mut on_device: BTreeMap<&Name, Vec<(AttemptKey, Interval)>> = BTreeMap::new();
        for seen in &input.seen.observations {
            on_device.entry(&seen.device_uuid).or_default().push((seen.holder.key(), seen.during));
        }
        Self { on_device, looks: cardhour_books::observed::watched(&input.seen.watches) }
    }

    /// Until when any of `keys` was last seen on a device.
    pub fn last_seen(&self, device_uuid: &Name, keys: &[AttemptKey]) -> Option<Timestamp> {
        let all = self.on_device.get(device_uuid)?;
        all.iter().filter(|(key, _)| keys.contains(key)).map(|(_, during)| during.end()).max()
    }

    /// Whether somebody else was seen on a device in some time.
    pub fn others_on(&self, device_uuid: &Name, keys: &[AttemptKey], during: Interval) -> bool {
        let all = self.on_device.get(device_uuid).map(Vec::as_slice).unwrap_or_default();
        all.iter().any(|(key, seen)| !keys.contains(key) && seen.overlap(during).is_some())
    }

    /// Until when a card was last looked at for holders.
    pub fn last_look(&self, card_uuid: &Name) -> Option<Timestamp> {
        self.looks.get(card_uuid)?.last().map(|look| look.end())
    }

    /// Whether a card was looked at for holders at an instant.
    pub fn looked_at(&self, card_uuid: &Name, at: Timestamp) -> bool {
        self.looks.get(card_uuid).is_some_and(|looks| looks.iter().any(|look| look.contains(at)))
    }
}

/// The jobs that hold cards, by key.
pub(crate) fn running(input: &RoundInput<'_>, kept: &BTreeMap<AttemptKey, Kept>) -> BTreeMap<AttemptKey, RunningJob> {
    let claims = input.running.iter().filter_map(|attempt| claim(attempt, input.at)).collect();
    let joined = join(claims, input.seen);
    let mut seen_as: BTreeMap<&AttemptKey, BTreeSet<AttemptKey>> = BTreeMap::new();
    for known in &joined.known_as {
        seen_as.entry(&known.record).or_default().insert(known.seen.clone());
    }
    let mut newest: BTreeMap<AttemptKey, &Observation> = BTreeMap::new();
    for seen in &input.seen.observations {
        let newest = newest.entry(seen.holder.key()).or_insert(seen);
        if (newest.during.end(), &newest.owner) < (seen.during.end(), &seen.owner) {
            *newest = seen;
        }
    }
    let devices = devices(&joined, input.at);
    let mut jobs = BTreeMap::new();
    for attempt in input.running {
        let names = seen_as.get(&attempt.key).cloned().unwrap_or_default();
        let seen = names.iter().filter_map(|name| newest.get(name)).max_by_key(|seen| seen.during.end());
        let mut job = of_record(attempt, seen.copied());
        job.devices = devices.get(&attempt.key).cloned().unwrap_or_default();
        job.told.seen_as = names.into_iter().chain([attempt.key.clone()]).collect();
        complete(&mut job, kept.get(&attempt.key));
        jobs.insert(job.key.clone(), job);
    }
    // What a record had, and ended by now, is being released; it is no job of its own.
    let of_records: BTreeSet<&AttemptKey> =
        kept.iter().flat_map(|(key, kept)| kept.told.seen_as.iter().filter(move |seen| *seen != key)).collect();
    let alone = joined.attempts.iter().filter(|observed| !observed.is_over && !of_records.contains(&observed.key));
    for observed in alone {
        let Some(seen) = newest.get(&observed.key) else { continue };
        let mut job = of_node(seen, observed.class());
        job.started_at = Some(observed.holder.started_at.unwrap_or_else(|| observed.during.start()));
        job.devices = devices.get(&observed.key).cloned().unwrap_or_default();
        job.nodes = observed.nodes.clone();
        complete(&mut job, kept.get(&observed.key));
        jobs.insert(job.key.clone(), job);
    }
    jobs
}

/// What an attempt holds. One that is open is held now: that is why it is among those that run, and its record may be of an hour ago.
fn claim(attempt: &Attempt, at: Timestamp) -> Option<Claim> {
    let mut claim = Claim::of(attempt)?;
    if claim.is_open {
        claim.during = Interval::new(claim.during.start(), claim.during.end().max(at))?;
    }
    Some(claim)
}

/// The devices of each attempt at its last proof of life.
fn devices(joined: &Joined, at: Timestamp) -> BTreeMap<AttemptKey, BTreeMap<Name, HeldDevice>> {
    let held = |claim: &&Claim| claim.source != ClaimSource::Releasing && !claim.share.is_zero();
    let mut ends: BTreeMap<&AttemptKey, Timestamp> = BTreeMap::new();
    let mut undeclared: BTreeMap<&Name, BTreeSet<&AttemptKey>> = BTreeMap::new();
    for claim in joined.claims.iter().filter(held) {
        let end = ends.entry(&claim.key).or_insert(claim.during.end());
        *end = claim.during.end().max(*end);
        if let (Some(device), false) = (claim.device_uuid(), claim.declared) {
            undeclared.entry(device).or_default().insert(&claim.key);
        }
    }
    let mut devices: BTreeMap<AttemptKey, BTreeMap<Name, HeldDevice>> = BTreeMap::new();
    for claim in joined.claims.iter().filter(held) {
        // Of several cards, one that it was long not seen on is given back.
        if ends[&claim.key].min(at).ms_since(claim.during.end()) > TOGETHER_MS {
            continue;
        }
        let (device, card_uuid) = match (claim.device_uuid(), &claim.card_uuid) {
            (Some(device), Some(card)) => (device.clone(), card.clone()),
            _ => (UNSEEN_CARDS.into(), UNSEEN_CARDS.into()),
        };
        let sharers = undeclared.get(&device).map_or(1, BTreeSet::len);
        let share = if claim.declared { claim.share } else { claim.share.split_evenly(sharers)[0] };
        let held = devices.entry(claim.key.clone()).or_default();
        // Of the same device told twice, as by a hole in the looking, the later counts.
        held.insert(device, HeldDevice { card_uuid, share });
    }
    devices
}

fn of_record(attempt: &Attempt, seen: Option<&Observation>) -> RunningJob {
    let mut labels = attempt.labels.clone();
    labels.extend(seen.into_iter().flat_map(|seen| seen.owner.labels.clone()));
    RunningJob {
        key: attempt.key.clone(),
        told: KeptJob {
            cluster: attempt.cluster.clone(),
            job_id: attempt.job_id.clone(),
            org: attempt.org.clone(),
            project: attempt.project.clone(),
            user: attempt.user.clone(),
            queue: attempt.queue.clone(),
            class: attempt.class.clone().or_else(|| seen.and_then(|seen| seen.owner.class.clone())),
            devices: Vec::new(),
            seen_as: Vec::new(),
        },
        started_at: attempt.started_at,
        restart: attempt.restart,
        labels,
        is_suspended: attempt.state == JobState::Suspended,
        holder: seen.map(|seen| seen.holder.clone()),
        nodes: attempt.nodes.iter().cloned().collect(),
        devices: BTreeMap::new(),
    }
}

fn of_node(seen: &Observation, class: Option<Name>) -> RunningJob {
    let Observation { holder, owner, .. } = seen;
    RunningJob {
        key: holder.key(),
        told: KeptJob {
            cluster: holder.cluster.clone(),
            job_id: holder.shown_id.clone().unwrap_or_else(|| holder.job_id.clone()),
            org: owner.org.clone(),
            project: owner.project.clone(),
            user: owner.user.clone(),
            queue: owner.queue.clone(),
            class,
            devices: Vec::new(),
            seen_as: vec![holder.key()],
        },
        started_at: holder.started_at,
        restart: None,
        labels: owner.labels.clone(),
        is_suspended: false,
        holder: Some(holder.clone()),
        nodes: BTreeSet::new(),
        devices: BTreeMap::new(),
    }
}

/// While nobody sees on which cards it is, it is on those that it was on.
fn complete(job: &mut RunningJob, kept: Option<&Kept>) {
    if let Some(kept) = kept
        && job.devices.keys().all(|device| device == UNSEEN_CARDS)
        && !kept.told.devices.is_empty()
    {
        let shares: BTreeMap<&Name, CardShare> =
            kept.lease.cards().map(|(device, card)| (device, card.share)).collect();
        for (card_uuid, device_uuid) in &kept.told.devices {
            let share = shares.get(device_uuid).copied().unwrap_or(CardShare::CARD);
            job.devices.insert(device_uuid.clone(), HeldDevice { card_uuid: card_uuid.clone(), share });
        }
        job.devices.remove(UNSEEN_CARDS);
        job.told.seen_as.extend(kept.told.seen_as.iter().cloned());
    }
    job.told.seen_as.sort();
    job.told.seen_as.dedup();
    let named = job.devices.iter().filter(|(device, _)| *device != UNSEEN_CARDS);
    job.told.devices = named.map(|(device, held)| (held.card_uuid.clone(), device.clone())).collect();
}
