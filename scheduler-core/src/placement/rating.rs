//! How a policy rates a host for a request that fits there: a whole number, more is better.
//!
//! Processors are held against 128 cores and cards against 8, the largest host of the clusters that the published rules were made for.

use super::fragmentation::Yardstick;
use super::policy::Policy;
use super::pool::{CARD_MILLI, Host, Request};
use super::sigmoid;
use std::collections::BTreeMap;

/// The processors that count as one, thousandths of a core.
const CPU_UNIT_MILLI: i128 = 128_000;

/// The cards that count as one, thousandths of a card.
const CARD_UNIT_MILLI: i128 = 8_000;

/// What one unit of our own score is of, in card milli: differences below are chance, and who is first in order is packed first.
const STEP_MILLI: i64 = 15;

/// How much more than lost room fragmentation weighs with us.
const FRAGMENTATION_WEIGHT: i64 = 2;

/// A sort of request, as `gpuclustering` tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    /// A part of one card.
    Share,
    /// So many whole cards.
    Whole(u32),
}

impl Sort {
    /// None for a request without cards.
    pub(super) fn of(request: &Request) -> Option<Self> {
        match request.cards {
            0 => None,
            _ if request.is_share() => Some(Self::Share),
            cards => Some(Self::Whole(cards)),
        }
    }
}

/// A host as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// What is left there.
    pub(super) host: &'a Host,
    /// How many of each sort it has.
    pub(super) sorts: &'a BTreeMap<Sort, u32>,
    /// What the mix can make of it.
    pub(super) yardstick: &'a Yardstick,
    /// Its [`worth`] as it is.
    pub(super) worth: i64,
}

/// How good a host is for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rating {
    /// More is better.
    pub(super) score: i64,
    /// The card for a share, where the policy chooses it; else the tightest that fits.
    pub(super) card: Option<usize>,
}

/// What the rest of a host is worth by a policy, which then wants to lose little of it. Zero for policies that don't ask.
pub(super) fn worth(policy: Policy, yardstick: &Yardstick, cpu_milli_left: u64, card_milli_left: &[u32]) -> i64 {
    let unusable = || yardstick.unusable(cpu_milli_left, card_milli_left);
    match policy {
        Policy::Fgd => -unusable(),
        Policy::Cardhour => yardstick.room(cpu_milli_left, card_milli_left) - FRAGMENTATION_WEIGHT * unusable(),
        Policy::Random | Policy::DotProd | Policy::GpuClustering | Policy::GpuPacking | Policy::BestFit => 0,
    }
}

/// Rates a host that the request fits on.
pub(super) fn rate(policy: Policy, view: View<'_>, request: &Request) -> Rating {
    let by_host = |score| Rating { score, card: None };
    match policy {
        Policy::Random => by_host(0),
        Policy::DotProd => by_host(dot_product(view.host, request)),
        Policy::GpuClustering => by_host(clustering(view, request)),
        Policy::GpuPacking => by_host(packing(view.host, request)),
        Policy::BestFit => by_host(best_fit(view.host, request)),
        Policy::Fgd => least_loss(policy, view, request, |gain| {
            sigmoid::score(gain, view.yardstick.total() * i64::from(CARD_MILLI))
        }),
        Policy::Cardhour => least_loss(policy, view, request, |gain| {
            gain.div_euclid(view.yardstick.total() * STEP_MILLI * (FRAGMENTATION_WEIGHT + 1))
        }),
    }
}

/// ⌊100 · (1 − ½ (C/128 · c/128 + L/8 · g/8))⌋, with C, c the cores and L, g the cards that are left and asked for.
fn dot_product(host: &Host, request: &Request) -> i64 {
    let cpu = i128::from(host.cpu_milli_left) * i128::from(request.cpu_milli);
    let cards = i128::from(host.total_card_milli_left()) * i128::from(request.total_card_milli());
    let under = CPU_UNIT_MILLI * CPU_UNIT_MILLI;
    let over = cpu + cards * (under / (CARD_UNIT_MILLI * CARD_UNIT_MILLI));
    (100 * under - 50 * over).div_euclid(under) as i64
}

/// ⌊100 · (1 − ½ ((C − c)/128 + (L − g)/8))⌋. That the published rule then stretches the scores over 0 to 100 puts none before another.
fn best_fit(host: &Host, request: &Request) -> i64 {
    let cpu = i128::from(host.cpu_milli_left) - i128::from(request.cpu_milli);
    let cards = i128::from(host.total_card_milli_left()) - i128::from(request.total_card_milli());
    let over = cpu + cards * (CPU_UNIT_MILLI / CARD_UNIT_MILLI);
    (100 * CPU_UNIT_MILLI - 50 * over).div_euclid(CPU_UNIT_MILLI) as i64
}

/// Up from 75: the host has this sort alone; 50: with others; 25: it has none; 0: others. Up to 25 more, the fuller it is.
fn clustering(view: View<'_>, request: &Request) -> i64 {
    let Some(sort) = Sort::of(request) else { return 0 };
    let base = match (view.sorts.contains_key(&sort), view.sorts.len()) {
        (true, 1) => 75,
        (true, _) => 50,
        (false, 0) => 25,
        (false, _) => 0,
    };
    let held = CARD_UNIT_MILLI - i128::from(view.host.total_card_milli_left());
    base + (25 * held / CARD_UNIT_MILLI) as i64
}

/// 50 to 100 on shared cards, the fuller the better; 33 to 50 on free cards of a used host, the fewer the better; up to 33 on a free host.
fn packing(host: &Host, request: &Request) -> i64 {
    if request.cards == 0 {
        return 0;
    }
    let is_free = |left: u32| left == CARD_MILLI;
    let free = host.card_milli_left.iter().filter(|&&left| is_free(left)).count();
    if free == host.card_milli_left.len() {
        return (33 - free as i64).max(free as i64);
    }
    let lefts = host.tightest_cards(request).into_iter().map(|card| host.card_milli_left[card]);
    let (opened, left_percent) = lefts.fold((0, 0), |(opened, percent), left| {
        (opened + i64::from(is_free(left)), percent + i64::from(left * 100 / CARD_MILLI))
    });
    if opened > 0 { (50 - opened).max(33) } else { (100 - left_percent / 10).max(50) }
}

/// The score of what is gained of the host's worth (mostly below zero), for a share on the card where it is best, lowest index among equals.
fn least_loss(policy: Policy, view: View<'_>, request: &Request, score: impl Fn(i64) -> i64) -> Rating {
    let cpu_milli_after = view.host.cpu_milli_left - request.cpu_milli;
    let gain = |after: &[u32]| worth(policy, view.yardstick, cpu_milli_after, after) - view.worth;
    let mut after = view.host.card_milli_left.clone();
    if !request.is_share() {
        for card in view.host.tightest_cards(request) {
            after[card] -= request.card_milli;
        }
        return Rating { score: score(gain(&after)), card: None };
    }
    let mut best: Option<Rating> = None;
    for card in 0..after.len() {
        // A card with as much left as an earlier one is as good.
        if after[card] < request.card_milli || after[..card].contains(&after[card]) {
            continue;
        }
        after[card] -= request.card_milli;
        let rating = Rating { score: score(gain(&after)), card: Some(card) };
        after[card] += request.card_milli;
        if best.is_none_or(|best| rating.score > best.score) {
            best = Some(rating);
        }
    }
    best.expect("only hosts that fit are rated")
}
