//! One attempt's time, cut wherever something changes: what its record has and what nodes saw, stretch by stretch.

use super::Reason;
use crate::holdings::Claim;
use crate::observed::SLACK_MS;
use crate::observed::stretches::Stretch;
use cardhour_domain::{CardShare, CardTime, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// What is known of one attempt.
pub(super) struct Side<'a> {
    /// Its record; none where only nodes know of it.
    pub record: Option<&'a Claim>,
    /// What nodes saw, and which part of it is this attempt's.
    pub seen: &'a [(&'a Stretch, Interval)],
    /// When somebody looked at its nodes.
    pub looks: Vec<Interval>,
    /// What time exports of its cluster speak for.
    pub covered: &'a [Interval],
}

/// When it was seen on one device, and on how much of a card.
struct OnDevice {
    proofs: Vec<(Interval, CardShare)>,
}

impl Side<'_> {
    /// Tells of each stretch why the two sides have what they have of it: `tell(reason, recorded, observed)`.
    pub fn sweep(&self, range: Option<Interval>, mut tell: impl FnMut(Reason, CardTime, CardTime)) {
        let devices = self.devices();
        let mut cuts: Vec<Timestamp> = Vec::new();
        let mut cut = |during: Interval| cuts.extend([during.start(), during.end()]);
        if let Some(record) = self.record {
            cut(record.during);
        }
        devices.iter().flat_map(|device| &device.proofs).for_each(|(during, _)| cut(*during));
        self.looks.iter().chain(self.covered).copied().for_each(&mut cut);
        range.into_iter().for_each(&mut cut);
        if let Some(record) = self.record {
            let (start, end) = (record.during.start().unix_ms(), record.during.end().unix_ms());
            let slack = [start - SLACK_MS, start + SLACK_MS, end - SLACK_MS, end + SLACK_MS];
            cuts.extend(slack.map(Timestamp::from_unix_ms));
        }
        cuts.sort_unstable();
        cuts.dedup();
        for piece in cuts.windows(2).filter_map(|pair| Interval::new(pair[0], pair[1])) {
            let at = piece.start();
            if range.is_some_and(|range| !range.contains(at)) {
                continue;
            }
            let recorded = self.record.filter(|r| r.during.contains(at)).map_or(CardShare::default(), |r| r.share);
            let observed: CardShare = devices.iter().map(|device| device.at(at)).sum();
            let both = CardTime::of(recorded.min(observed), piece);
            if !both.is_zero() {
                tell(Reason::Agree, both, both);
            }
            let missed = CardTime::of(recorded.saturating_sub(observed), piece);
            if !missed.is_zero() {
                tell(self.why_missed(at), missed, CardTime::ZERO);
            }
            let more = CardTime::of(observed.saturating_sub(recorded), piece);
            if !more.is_zero() {
                tell(self.why_more(at), CardTime::ZERO, more);
            }
        }
    }

    fn devices(&self) -> Vec<OnDevice> {
        let mut by_device: BTreeMap<&Name, Vec<(Interval, CardShare)>> = BTreeMap::new();
        for (stretch, part) in self.seen {
            let share = stretch.share.unwrap_or(stretch.device_share);
            let proofs = stretch.proofs.iter().filter_map(|proof| Some((proof.overlap(*part)?, share)));
            by_device.entry(&stretch.device_uuid).or_default().extend(proofs);
        }
        by_device.into_values().map(|proofs| OnDevice { proofs }).collect()
    }

    fn why_missed(&self, at: Timestamp) -> Reason {
        if !holds(&self.looks, at) {
            return Reason::NobodyLooked;
        }
        let near = |edge: Timestamp| (at.unix_ms() - edge.unix_ms()).abs() < SLACK_MS;
        let is_edge =
            self.record.is_some_and(|r| near(r.during.start()) || at.unix_ms() >= r.during.end().unix_ms() - SLACK_MS);
        if is_edge { Reason::Edge } else { Reason::NotSeen }
    }

    fn why_more(&self, at: Timestamp) -> Reason {
        match self.record {
            None if holds(self.covered, at) => Reason::NoRecord,
            None => Reason::NotExported,
            Some(record) if at >= record.during.end() && record.is_open => Reason::StillOpen,
            Some(record) if at >= record.during.end() => Reason::AfterEnd,
            Some(record) if at.unix_ms() >= record.during.start().unix_ms() => Reason::MoreCards,
            Some(record) if at.unix_ms() >= record.during.start().unix_ms() - SLACK_MS => Reason::Edge,
            Some(_) => Reason::BeforeStart,
        }
    }
}

impl OnDevice {
    /// How much of a card it was seen on: of several sources the most.
    fn at(&self, at: Timestamp) -> CardShare {
        let there = self.proofs.iter().filter(|(during, _)| during.contains(at));
        there.map(|(_, share)| *share).max().unwrap_or_default()
    }
}

/// Whether one of these stretches, which are in order and don't touch, holds an instant.
fn holds(stretches: &[Interval], at: Timestamp) -> bool {
    let i = stretches.partition_point(|stretch| stretch.end() <= at);
    stretches.get(i).is_some_and(|stretch| stretch.contains(at))
}
