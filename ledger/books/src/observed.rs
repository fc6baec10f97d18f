//! What nodes saw, joined with what records say (design §4.1).
//!
//! Records decide what was held, from when to when. Nodes decide which cards those were, how long an open attempt is known to live, and
//! everything where records are silent. Both are kept: where they don't agree there is a [`Difference`].
//!
//! Start at [`join`]. Does not: share a card between its claims (that is [`crate::holdings`]), look at what cards did.

pub(crate) mod records;
pub(crate) mod stretches;

use crate::holdings::{Claim, ClaimSource, Slice};
use cardhour_domain::{
    AttemptKey, CardShare, Holder, HolderKind, Interval, Name, Observation, Owner, SeenDevice, Timestamp, Watch,
};
use records::Records;
use std::collections::{BTreeMap, BTreeSet};
use stretches::{Stretch, stretches};

/// An attempt that only nodes know of: a row of `observed_jobs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedAttempt {
    /// Its key: [`Holder::key`].
    pub key: AttemptKey,
    /// Who it is.
    pub holder: Holder,
    /// Who pays, as the last row of it says.
    pub owner: Owner,
    /// The nodes it was seen on.
    pub nodes: BTreeSet<Name>,
    /// The devices it had.
    pub devices: BTreeSet<Name>,
    /// The most it is known to have had at once, as far as shares are declared; a device without one counts whole.
    pub cards: CardShare,
    /// Model of its cards, where it is one.
    pub model: Option<Name>,
    /// From its first proof of life to its last.
    pub during: Interval,
    /// Whether a node looked after that and it was gone.
    pub is_over: bool,
}

impl ObservedAttempt {
    /// Its class: the owner's, else development for what somebody sits at.
    pub fn class(&self) -> Option<Name> {
        let of_kind = || (self.holder.kind == HolderKind::Session).then(|| "development".into());
        self.owner.class.clone().or_else(of_kind)
    }
}

/// Records and nodes don't agree: a row of `conflicts`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// About whom.
    pub key: AttemptKey,
    /// Its cluster.
    pub cluster: Name,
    /// The node that saw it.
    pub node: Name,
    /// The card it saw it on.
    pub card_uuid: Name,
    /// When.
    pub during: Interval,
    /// What it is.
    pub kind: DifferenceKind,
}

/// What records and nodes don't agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// A node saw an attempt on more cards than its record has.
    MoreCards,
    /// A node saw an attempt longer than a moment before its record begins.
    BeforeStart,
    /// A label asked for a project that the site's rules refuse.
    RefusedProject,
}

impl DifferenceKind {
    /// Its name in `conflicts.kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MoreCards => "more_cards_seen",
            Self::BeforeStart => "seen_before_start",
            Self::RefusedProject => "refused_project",
        }
    }
}

/// Everything that nodes told about who held what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Who was seen.
    pub observations: Vec<Observation>,
    /// When it was looked for.
    pub watches: Vec<Watch>,
    /// What the nodes have.
    pub devices: Vec<SeenDevice>,
}

/// Records and observations, joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// What was claimed: of records, card by card where nodes saw them, and of what only nodes know.
    pub claims: Vec<Claim>,
    /// Attempts that only nodes know of, by key.
    pub attempts: Vec<ObservedAttempt>,
    /// Where the two don't agree, in order.
    pub differences: Vec<Difference>,
    /// Under which key of a record the books have what a node saw, and when it saw it; in order.
    pub known_as: Vec<KnownAs>,
}

/// What a node calls by one key is a record's attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownAs {
    /// The node's key: [`Holder::key`].
    pub seen: AttemptKey,
    /// When it was seen.
    pub during: Interval,
    /// The record's key.
    pub record: AttemptKey,
}

impl Joined {
    /// The key that the books have for what a node saw under `seen` at some time.
    pub fn key_of(&self, seen: &AttemptKey, during: Interval) -> AttemptKey {
        let first = self.known_as.partition_point(|known| known.seen < *seen);
        let mut of_key = self.known_as[first..].iter().take_while(|known| known.seen == *seen);
        of_key.find(|known| known.during.overlap(during).is_some()).map_or_else(|| seen.clone(), |k| k.record.clone())
    }
}

/// How far the clocks of scheduler and node, and the seconds that one of them rounds to, may lie apart. Unit: milliseconds.
pub(crate) const SLACK_MS: i64 = 120_000;

/// Joins claims of records with what nodes saw. Shape: claims in the order of the records, then of what only nodes know; independent of the
/// order of observations.
pub fn join(records: Vec<Claim>, seen: &Seen) -> Joined {
    let watched = watched(&seen.watches);
    let devices = devices(&seen.devices);
    let stretches = stretches(&seen.observations, &watched, &devices);
    let known = Records::new(&records);
    // For each record, the stretches that are of it; what is left is known to nodes alone.
    let mut of_record: BTreeMap<usize, Vec<&Stretch>> = BTreeMap::new();
    let mut alone: Vec<&Stretch> = Vec::new();
    let mut joined = Joined::default();
    for stretch in &stretches {
        joined.differences.extend(refused(stretch));
        let runs = known.runs_of(stretch, &records);
        if runs.is_empty() {
            alone.push(stretch);
        }
        for run in runs {
            let (seen, record) = (stretch.holder.key(), records[run].key.clone());
            joined.known_as.push(KnownAs { seen, during: stretch.during, record });
            of_record.entry(run).or_default().push(stretch);
        }
    }
    for (i, record) in records.into_iter().enumerate() {
        match of_record.get(&i) {
            Some(stretches) => card_by_card(record, stretches, known.next_start(i), &mut joined),
            None => joined.claims.push(record),
        }
    }
    joined.claims.extend(alone.iter().map(|stretch| stretch.claim()));
    joined.attempts = attempts(&alone, &watched);
    joined.known_as.sort();
    joined.differences.sort();
    joined.differences.dedup();
    joined
}

/// When somebody looked for holders of each card, as stretches that don't touch.
pub fn watched(watches: &[Watch]) -> BTreeMap<Name, Vec<Interval>> {
    let mut by_card: BTreeMap<Name, Vec<Interval>> = BTreeMap::new();
    for watch in watches {
        by_card.entry(watch.card_uuid.clone()).or_default().push(watch.during);
    }
    by_card.into_iter().map(|(card, all)| (card, Interval::union(all))).collect()
}

/// When somebody looked for holders of each card, or saw one: who saw a holder has looked.
pub fn looked(seen: &Seen) -> BTreeMap<Name, Vec<Interval>> {
    let mut by_card = watched(&seen.watches);
    for observation in &seen.observations {
        by_card.entry(observation.card_uuid.clone()).or_default().push(observation.during);
    }
    for all in by_card.values_mut() {
        *all = Interval::union(std::mem::take(all));
    }
    by_card
}

/// Each device as it was seen last.
pub(crate) fn devices(seen: &[SeenDevice]) -> BTreeMap<&Name, &SeenDevice> {
    let mut devices: BTreeMap<&Name, &SeenDevice> = BTreeMap::new();
    for device in seen {
        let newest = devices.entry(&device.device_uuid).or_insert(device);
        let order = |d: &SeenDevice| (d.at, d.share, d.model.clone(), d.mig_profile.clone());
        if order(newest) < order(device) {
            *newest = device;
        }
    }
    devices
}

fn refused(stretch: &Stretch) -> Option<Difference> {
    stretch.owner.refused_project.as_ref()?;
    Some(stretch.difference(stretch.holder.key(), stretch.during, DifferenceKind::RefusedProject))
}

/// Cuts a record's claim into one a card that was seen, and one of the cards that weren't.
fn card_by_card(record: Claim, stretches: &[&Stretch], next_start: Option<Timestamp>, joined: &mut Joined) {
    let last_seen = |stretch: &Stretch| next_start.map_or(stretch.during.end(), |next| stretch.during.end().min(next));
    let mut during = record.during;
    if record.is_open {
        // A live attempt is held up to its last proof of life, on all its cards.
        let last = stretches.iter().map(|stretch| last_seen(stretch)).max().unwrap_or(during.end());
        during = Interval::new(during.start(), last.max(during.end())).expect("no shorter than it was");
    }
    let record = Claim { during, ..record };
    if let Some(card_uuid) = &record.card_uuid {
        // Its card is known; what is seen of it there after its end is being released, as on a card that the node names.
        let on_it = stretches.iter().filter(|stretch| stretch.card_uuid == *card_uuid);
        let seen_after = on_it.filter_map(|s| Interval::new(s.during.start().max(during.end()), last_seen(s)));
        for after in Interval::union(seen_after.collect()) {
            let source = ClaimSource::Releasing;
            joined.claims.push(Claim { during: after, source, is_open: false, ..record.clone() });
        }
        joined.claims.push(record);
        return;
    }
    // One device may have been seen several times over; the best source first, then the longest seen.
    let mut by_device: BTreeMap<&Name, Vec<&Stretch>> = BTreeMap::new();
    for stretch in stretches {
        by_device.entry(&stretch.device_uuid).or_default().push(stretch);
    }
    let mut order: Vec<(&Name, Vec<&Stretch>)> = by_device.into_iter().collect();
    let seen_ms = |all: &[&Stretch]| -> i64 {
        all.iter().filter_map(|s| s.during.overlap(during)).map(Interval::length_ms).sum()
    };
    order.sort_by_key(|(device, all)| {
        (all.iter().map(|s| s.source).min(), std::cmp::Reverse(seen_ms(all)), (*device).clone())
    });
    let mut left = record.share;
    for (_, all) in order {
        let first = all[0];
        for stretch in &all {
            let early = Timestamp::from_unix_ms(during.start().unix_ms() - SLACK_MS);
            if let Some(before) = Interval::new(stretch.during.start(), during.start())
                && stretch.during.start() < early
            {
                let kind = DifferenceKind::BeforeStart;
                joined.differences.push(stretch.difference(record.key.clone(), before, kind));
            }
        }
        let share = first.share.unwrap_or(first.device_share);
        if share > left {
            let (key, kind) = (record.key.clone(), DifferenceKind::MoreCards);
            joined.differences.extend(all.iter().map(|stretch| stretch.difference(key.clone(), stretch.during, kind)));
        }
        let share = share.min(left);
        if share.is_zero() {
            continue;
        }
        left = left - share;
        let on_card = Claim {
            share,
            declared: true,
            card_uuid: Some(first.card_uuid.clone()),
            node: Some(first.node.clone()),
            model: record.model.clone().or_else(|| first.model.clone()),
            mig_profile: record.mig_profile.clone().or_else(|| first.mig_profile.clone()),
            slice: first.slice(),
            ..record.clone()
        };
        // After the end that its record gives it, it is held as long as it is seen, and not billed.
        let seen_after = all.iter().filter_map(|s| Interval::new(s.during.start().max(during.end()), last_seen(s)));
        for after in Interval::union(seen_after.collect()) {
            let source = ClaimSource::Releasing;
            joined.claims.push(Claim { during: after, source, is_open: false, ..on_card.clone() });
        }
        joined.claims.push(on_card);
    }
    if !left.is_zero() || !record.declared {
        joined.claims.push(Claim { share: left, ..record });
    }
}

/// Attempts that nodes alone know of, by key.
fn attempts(alone: &[&Stretch], watched: &BTreeMap<Name, Vec<Interval>>) -> Vec<ObservedAttempt> {
    let mut by_key: BTreeMap<AttemptKey, Vec<&Stretch>> = BTreeMap::new();
    for stretch in alone {
        by_key.entry(stretch.holder.key()).or_default().push(stretch);
    }
    let attempt = |(key, all): (AttemptKey, Vec<&Stretch>)| {
        let start = all.iter().map(|s| s.during.start()).min().expect("an attempt was seen");
        let end = all.iter().map(|s| s.during.end()).max().expect("an attempt was seen");
        let last =
            all.iter().max_by(|a, b| (a.during.end(), &a.owner, &a.holder).cmp(&(b.during.end(), &b.owner, &b.holder)));
        let last = last.expect("an attempt was seen");
        let looked_after = |card: &Name| watched.get(card).is_some_and(|w| w.iter().any(|w| w.end() > end));
        let mut models: BTreeSet<Option<&Name>> = all.iter().map(|s| s.model.as_ref()).collect();
        let mut device_shares: BTreeMap<&Name, CardShare> = BTreeMap::new();
        for stretch in &all {
            let share = stretch.share.unwrap_or(stretch.device_share);
            let most = device_shares.entry(&stretch.device_uuid).or_default();
            *most = (*most).max(share);
        }
        ObservedAttempt {
            key,
            holder: last.holder.clone(),
            owner: last.owner.clone(),
            nodes: all.iter().map(|s| s.node.clone()).collect(),
            devices: all.iter().map(|s| s.device_uuid.clone()).collect(),
            cards: device_shares.into_values().sum(),
            model: models.pop_first().flatten().filter(|_| models.is_empty()).cloned(),
            during: Interval::new(start, end).expect("a stretch isn't empty"),
            is_over: all.iter().all(|s| looked_after(&s.card_uuid)),
        }
    };
    by_key.into_iter().map(attempt).collect()
}

impl Stretch {
    fn slice(&self) -> Option<Slice> {
        let slice = || Slice { device_uuid: self.device_uuid.clone(), share: self.device_share };
        (self.device_uuid != self.card_uuid).then(slice)
    }

    /// Its claim, where no record speaks.
    fn claim(&self) -> Claim {
        Claim {
            key: self.holder.key(),
            cluster: self.holder.cluster.clone(),
            during: self.during,
            share: self.share.unwrap_or(self.device_share),
            declared: self.share.is_some(),
            card_uuid: Some(self.card_uuid.clone()),
            node: Some(self.node.clone()),
            model: self.model.clone(),
            mig_profile: self.mig_profile.clone(),
            reservation: None,
            slice: self.slice(),
            source: ClaimSource::Observation(self.source),
            is_open: true,
        }
    }

    fn difference(&self, key: AttemptKey, during: Interval, kind: DifferenceKind) -> Difference {
        let (cluster, node) = (self.holder.cluster.clone(), self.node.clone());
        Difference { key, cluster, node, card_uuid: self.card_uuid.clone(), during, kind }
    }
}

#[cfg(test)]
pub(crate) mod tests;
