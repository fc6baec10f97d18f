//! Who held what, from when to when: attempts to holdings.
//!
//! Records that name no card make one holding for all their cards. Where cards are named, the holders' shares of one card
//! never add up to more than the card (LED-2): who claims more than is left gets the rest, and the cut is a [`ShareCut`].
//!
//! Start at [`holdings`]. Does not: know buckets, prices, or cards that nobody held.

use crate::attempt::Attempt;
use crate::versions::ContentHash;
use cardhour_domain::{AttemptKey, CardShare, HolderSource, Interval, Name, Timestamp};
use std::collections::BTreeMap;

/// What an attempt says it held: the part of an [`Attempt`] that holdings are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whose it is.
    pub key: AttemptKey,
    /// Cluster.
    pub cluster: Name,
    /// From when to when. An open attempt holds up to its as-of.
    pub during: Interval,
    /// How much: of the named card, or of all its cards.
    pub share: CardShare,
    /// Whether the share was declared.
    pub declared: bool,
    /// The card, where it is named.
    pub card_uuid: Option<Name>,
    /// The node, where it is exactly one.
    pub node: Option<Name>,
    /// Model.
    pub model: Option<Name>,
    /// MIG profile.
    pub mig_profile: Option<Name>,
    /// The dated reservation it ran under.
    pub reservation: Option<Name>,
    /// The MIG instance it is of, where it isn't the whole card.
    pub slice: Option<Slice>,
    /// What says so: who is asked first, when several claim one card.
    pub source: ClaimSource,
    /// Whether its end is only the last moment its source vouches for.
    pub is_open: bool,
}

/// A MIG instance, and its part of its card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The instance's UUID.
    pub device_uuid: Name,
    /// Its part of the card.
    pub share: CardShare,
}

/// What a claim rests on, the most trusted first: the ranks of LED-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimSource {
    /// Records of a scheduler.
    Accounting,
    /// What a node saw.
    Observation(HolderSource),
    /// What a node saw of an attempt after the end that its records give it: held, not billed.
    Releasing,
}

impl ClaimSource {
    /// Its name in `holdings.source`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accounting => "accounting",
            Self::Observation(source) => source.name(),
            Self::Releasing => "releasing",
        }
    }

    /// The source of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "accounting" => Some(Self::Accounting),
            "releasing" => Some(Self::Releasing),
            other => HolderSource::from_name(other).map(Self::Observation),
        }
    }
}

/// An attempt had a share of a card, or of cards it didn't name, over a stretch of time: a row of `holdings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Made from what it records: attempt, card and start. Stable over imports.
    pub id: ContentHash,
    /// What it is the holding of.
    pub claim: Claim,
    /// From when to when: the claim's, or the part of it over which the share is this one.
    pub during: Interval,
    /// How much it got.
    pub share: CardShare,
}

/// A claim on a card got less than it claimed: a row of `conflicts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareCut {
    /// Whose claim was cut.
    pub key: AttemptKey,
    /// Cluster.
    pub cluster: Name,
    /// The card.
    pub card_uuid: Name,
    /// Over which time.
    pub during: Interval,
    /// What it claimed.
    pub claimed: CardShare,
    /// What it got.
    pub given: CardShare,
}

impl Claim {
    /// What `attempt` held; none for one that never started, took no time or has no cards.
    pub fn of(attempt: &Attempt) -> Option<Self> {
        Some(Self {
            key: attempt.key.clone(),
            cluster: attempt.cluster.clone(),
            during: held_during(attempt)?,
            share: attempt.cards,
            declared: attempt.share_declared,
            card_uuid: attempt.card_uuid.clone(),
            node: if let [node] = attempt.nodes.as_slice() { Some(node.clone()) } else { None },
            model: attempt.model.clone(),
            mig_profile: attempt.mig_profile.clone(),
            reservation: attempt.reservation.clone(),
            slice: None,
            source: ClaimSource::Accounting,
            is_open: !attempt.is_final,
        })
    }

    /// The device it is on, where that is named: the slice, else the card.
    pub fn device_uuid(&self) -> Option<&Name> {
        self.slice.as_ref().map(|slice| &slice.device_uuid).or(self.card_uuid.as_ref())
    }

    /// How much of its card its device is.
    fn device_share(&self) -> CardShare {
        self.slice.as_ref().map_or(CardShare::CARD, |slice| slice.share)
    }

    /// The one holding of a claim that names no card.
    pub fn whole(self) -> Holding {
        let (during, share) = (self.during, self.share);
        self.holding(during, share)
    }

    fn holding(self, during: Interval, share: CardShare) -> Holding {
        let mut text = String::with_capacity(self.key.as_str().len() + 64);
        text.push_str(self.key.as_str());
        text.push('\n');
        if let Some(card) = &self.card_uuid {
            text.push_str(card);
            text.push('\n');
            if let Some(slice) = &self.slice {
                text.push_str(&slice.device_uuid);
                text.push('\n');
            }
            // One claim on a card may have several holdings, whole cards without a name have one, whenever it starts.
            text.push_str(&during.start().unix_ms().to_string());
        }
        Holding { id: ContentHash::of(text.as_bytes()), claim: self, during, share }
    }
}

/// From when to when `attempt` held something: the stretch of its [`Claim`], if it has one.
pub fn held_during(attempt: &Attempt) -> Option<Interval> {
    if attempt.cards.is_zero() && attempt.share_declared {
        return None;
    }
    let end = if attempt.is_final { attempt.ended_at } else { attempt.as_of };
    Interval::new(attempt.started_at?, end?)
}

/// Works out the holdings of all claims. Shape: by the order of the claims, named cards last, by card and time.
pub fn holdings(claims: Vec<Claim>) -> (Vec<Holding>, Vec<ShareCut>) {
    let mut out = Vec::with_capacity(claims.len());
    let mut cuts = Vec::new();
    let mut by_card: BTreeMap<(Name, Name), Vec<Claim>> = BTreeMap::new();
    for claim in claims {
        match &claim.card_uuid {
            None => out.push(claim.whole()),
            Some(card) => by_card.entry((claim.cluster.clone(), card.clone())).or_default().push(claim),
        }
    }
    for claims in by_card.values() {
        share_card(claims.iter().collect(), &mut out, &mut cuts);
    }
    (out, cuts)
}

/// Shares one card between all who claim it, instant by instant.
fn share_card(mut claims: Vec<&Claim>, out: &mut Vec<Holding>, cuts: &mut Vec<ShareCut>) {
    // Who takes first, when several claim at once.
    let order = |claim: &&Claim| (claim.source, !claim.declared, std::cmp::Reverse(claim.during.start()));
    claims.sort_by(|a, b| (order(a), &a.key, a.device_uuid()).cmp(&(order(b), &b.key, b.device_uuid())));
    let mut edges: Vec<Timestamp> = claims.iter().flat_map(|c| [c.during.start(), c.during.end()]).collect();
    edges.sort();
    edges.dedup();
    let mut open: Vec<Option<(Timestamp, CardShare)>> = vec![None; claims.len()];
    let mut close = |claim: &Claim, since: Timestamp, share: CardShare, until: Timestamp| {
        let during = Interval::new(since, until).expect("edges ascend");
        out.push(claim.clone().holding(during, share));
        if claim.declared && share < claim.share {
            cuts.push(ShareCut {
                key: claim.key.clone(),
                cluster: claim.cluster.clone(),
                card_uuid: claim.card_uuid.clone().expect("only named cards are shared here"),
                during,
                claimed: claim.share,
                given: share,
            });
        }
    };
    for edge in edges {
        let active: Vec<bool> = claims.iter().map(|c| c.during.contains(edge)).collect();
        let given = share_out(&claims, &active);
        assert!(given.iter().copied().sum::<CardShare>() <= CardShare::CARD, "LED-2: shares pass one card");
        for (i, claim) in claims.iter().enumerate() {
            let now = active[i].then_some(given[i]);
            if let Some((since, share)) = open[i]
                && Some(share) != now
            {
                close(claim, since, share, edge);
                open[i] = None;
            }
            if open[i].is_none() {
                open[i] = now.map(|share| (edge, share));
            }
        }
    }
    debug_assert!(open.iter().all(Option::is_none), "every claim ends at an edge");
}

/// What each of the active claims gets of their card: rank by rank, declared shares in order, then what is left split evenly.
fn share_out(claims: &[&Claim], active: &[bool]) -> Vec<CardShare> {
    let mut left = CardShare::CARD;
    let mut given = vec![CardShare::ZERO; claims.len()];
    let active: Vec<usize> = (0..claims.len()).filter(|i| active[*i]).collect();
    for rank in active.chunk_by(|a, b| claims[*a].source == claims[*b].source) {
        for &i in rank.iter().filter(|i| claims[**i].declared) {
            given[i] = claims[i].share.min(left);
            left = left - given[i];
        }
        let mut undeclared: Vec<usize> = rank.iter().copied().filter(|i| !claims[*i].declared).collect();
        while let Some(&first) = undeclared.first() {
            // A slice is split between those on it, whatever else the card has.
            let device = claims[first].device_uuid();
            let (together, others) = undeclared.into_iter().partition(|i| claims[*i].device_uuid() == device);
            let of_device = active.iter().filter(|i| claims[**i].device_uuid() == device);
            let taken: CardShare = of_device.map(|i| given[*i]).sum();
            let part = claims[first].device_share().saturating_sub(taken).min(left);
            let together: Vec<usize> = together;
            for (i, share) in together.iter().zip(part.split_evenly(together.len())) {
                given[*i] = share;
            }
            left = left - part;
            undeclared = others;
        }
    }
    given
}

#[cfg(test)]
mod tests;
