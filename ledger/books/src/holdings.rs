//! Who held what, from when to when: attempts to holdings.
//!
//! Records that name no card make one holding for all their cards. Where cards are named, the holders' shares of one card
//! never add up to more than the card (LED-2): who claims more than is left gets the rest, and the cut is a [`ShareCut`].
//!
//! Start at [`holdings`]. Does not: know buckets, prices, or cards that nobody held.

use crate::attempt::Attempt;
use crate::versions::ContentHash;
use cardhour_domain::{AttemptKey, CardShare, Interval, Name, Timestamp};
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
        })
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
    // Who takes first, when several claim at once. All claims of records have one rank, the scheduler's accounting.
    claims.sort_by(|a, b| {
        (!a.declared, std::cmp::Reverse(a.during.start()), &a.key).cmp(&(
            !b.declared,
            std::cmp::Reverse(b.during.start()),
            &b.key,
        ))
    });
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
        let mut left = CardShare::CARD;
        let active: Vec<bool> = claims.iter().map(|c| c.during.contains(edge)).collect();
        let mut given = vec![CardShare::ZERO; claims.len()];
        for (i, claim) in claims.iter().enumerate().filter(|(i, c)| active[*i] && c.declared) {
            given[i] = claim.share.min(left);
            left = left - given[i];
        }
        let undeclared: Vec<usize> = (0..claims.len()).filter(|i| active[*i] && !claims[*i].declared).collect();
        if !undeclared.is_empty() {
            for (i, share) in undeclared.iter().zip(left.split_evenly(undeclared.len())) {
                given[*i] = share;
            }
        }
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

#[cfg(test)]
mod tests;
