//! What each holder of the simulated world really did, over the time that nodes tell of: when it worked, and when it did nothing.

use super::super::clock::Clock;
use super::super::habit::TICK_S;
use super::super::tenants::House;
use cardhour_domain::{AttemptKey, CardShare, HolderKind, Interval};

/// A holder, what it had and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Its key as its node names it.
    pub seen_as: AttemptKey,
    /// What it is.
    pub kind: HolderKind,
    /// Its class: training, inference, development or batch.
    pub class: &'static str,
    /// From when to when it had its cards.
    pub during: Interval,
    /// The cards.
    pub card_uuids: Vec<String>,
    /// How much of each it had.
    pub share: CardShare,
    /// When it did nothing at all, of the second month: in order, and none touches the next.
    pub rests: Vec<Interval>,
    /// When its scheduler had it suspended.
    pub suspended: Option<Interval>,
}

/// When a tenant did nothing.
pub(in super::super) fn rests(house: &House, tenant: usize, clock: &Clock) -> Vec<Interval> {
    let of = &house.tenants[tenant];
    let first_s = of.start_s.max(clock.at(1, 0, 0, 0)).div_euclid(TICK_S) * TICK_S;
    let ticks = (first_s..of.end_s).step_by(TICK_S as usize);
    let at_rest = ticks.filter(|tick_s| house.doing(tenant, *tick_s, clock).is_rest());
    let inside = |tick_s: i64| Clock::stretch(of.start_s.max(tick_s), of.end_s.min(tick_s + TICK_S));
    Interval::union(at_rest.filter_map(inside).collect())
}
