//! A timeline drawn in text: one character is one tick of an hour, one line one job on a whole card.

use super::*;
use crate::cluster::WatchedCard;
use crate::holdings::{Claim, ClaimSource, holdings};
use crate::site::{Node, Outage, Reservation};
use cardhour_domain::{AttemptKey, BUCKET_MS};
use proptest::prelude::*;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 4 * BUCKET_MS;

fn hours(from: i64, to: i64) -> Interval {
    Interval::new(Timestamp::from_unix_ms(from * HOUR_MS), Timestamp::from_unix_ms(to * HOUR_MS)).unwrap()
}

fn node(name: &str, cards: i64) -> Node {
    Node {
        cluster: "c".into(),
        node: name.into(),
        model: Some("H200".into()),
        cards: CardShare::from_cards(cards).unwrap(),
        memory_bytes: None,
        pool: None,
        in_service_at: None,
        retired_at: None,
        labels: BTreeMap::new(),
    }
}

fn claim(key: &str, node: &str, cards: i64, during: Interval) -> Claim {
    Claim {
        key: AttemptKey::new("c", key, "s0"),
        cluster: "c".into(),
        during,
        share: CardShare::from_cards(cards).unwrap(),
        declared: true,
        card_uuid: None,
        node: Some(node.into()),
        model: None,
        mig_profile: None,
        reservation: None,
        slice: None,
        source: ClaimSource::Accounting,
        is_open: false,
    }
}

fn sums(cluster: &Cluster, claims: &[Claim]) -> (BTreeMap<&'static str, String>, Vec<OverCapacity>) {
    let frame = cluster.frame(claims.iter());
    let (held, _) = holdings(claims.to_vec());
    let held: Vec<&Holding> = held.iter().collect();
    let (rows, over) = states(cluster, &frame, &held, &[hours(0, 48)]);
    let mut sums: BTreeMap<&'static str, CardTime> = BTreeMap::new();
    for row in rows {
        *sums.entry(row.state.name()).or_default() += row.card_time;
    }
    (sums.into_iter().map(|(state, time)| (state, time.card_hours().normalize().to_string())).collect(), over)
}

#[track_caller]
fn check(cluster: &Cluster, claims: &[Claim], expected: &[(&'static str, &str)]) {
    let expected: BTreeMap<_, _> = expected.iter().map(|(state, hours)| (*state, (*hours).to_owned())).collect();
    assert_eq!(sums(cluster, claims).0, expected);
}

/// By hand: a node of 4 cards, exports speak for hours 0…10; 2 cards held for hours 2…6 = 8 card-hours of 40, 32 free.
#[test]
fn what_nobody_held_is_free_where_an_export_speaks() {
    let cluster = Cluster { nodes: vec![node("n1", 4)], covered: vec![hours(0, 10)], ..Cluster::default() };
    check(&cluster, &[claim("a", "n1", 2, hours(2, 6))], &[("free", "32")]);
}

/// By hand: serves from hour 0 until the job's end at 12; two hours of 4 cards less the one held are unaccounted.
#[test]
fn what_nobody_speaks_for_is_unaccounted_and_never_free() {
    let cluster = Cluster { nodes: vec![node("n1", 4)], covered: vec![hours(0, 10)], ..Cluster::default() };
    check(&cluster, &[claim("a", "n1", 1, hours(8, 12))], &[("free", "38"), ("unaccounted", "6")]);
}

/// By hand: two cards, nothing exported. G1 is watched in hours 0…10 and held in 2…6, G2 is watched in 5…8 and held by a record that names
/// no card in 7…9, which may be either. The node serves from the first look to the last, 20 card-hours: held 4 + 2 = 6; free are G1's other six
/// hours and G2's 5…8, unaccounted G2's 0…5 and 8…10; where the unnamed one is held, 7…9, it takes what is left of the capacity: at 7…8 both cards
/// are watched and one of two is free, at 8…9 only G1 is and it is free. So free = 2 (0…2) + 1 (5…6: G2) + 1 (6…7: G1) + 1 (6…7: G2) + 1 + 1 + 1
/// (9…10) = 8, and unaccounted = 20 − 6 − 8 = 6.
#[test]
fn what_a_node_looked_at_and_nobody_held_is_free() {
    let watched =
        |card: &str, from, to| WatchedCard { node: "n1".into(), card_uuid: card.into(), during: vec![hours(from, to)] };
    let cluster = Cluster {
        nodes: vec![node("n1", 2)],
        watched: vec![watched("G1", 0, 10), watched("G2", 5, 8)],
        ..Cluster::default()
    };
    let named = Claim { card_uuid: Some("G1".into()), ..claim("a", "n1", 1, hours(2, 6)) };
    check(&cluster, &[named, claim("b", "n1", 1, hours(7, 9))], &[("free", "8"), ("unaccounted", "6")]);
}

/// By hand: 8 × 10 = 80; out for hours 4…6: 16, of which 2 × 2 are held all the same; free the rest, 80 − 12 − 6 × 2 = 56.
#[test]
fn an_outage_takes_what_is_not_held() {
    let outage =
        Outage { cluster: "c".into(), during: hours(4, 6), nodes: vec!["n1".into()], cards: None, reason: None };
    let again = Outage { during: hours(5, 6), ..outage.clone() };
    let cluster = Cluster {
        nodes: vec![node("n1", 8)],
        outages: vec![outage, again],
        covered: vec![hours(0, 10)],
        ..Cluster::default()
    };
    check(&cluster, &[claim("a", "n1", 2, hours(0, 6))], &[("down", "12"), ("free", "56")]);
}

/// By hand: 4 of 8 cards set aside for hours 2…8 (24), 3 held under it for hours 4…6: 24 − 6 = 18 reserved;
/// 1 held outside of it for 2 hours; free 80 − 18 − 6 − 2 = 54. M08: the reserved hours carry the reservation's name.
#[test]
fn m08_what_a_reservation_leaves_idle_is_its_own() {
    let reservation = Reservation {
        cluster: "c".into(),
        name: "paper".into(),
        during: hours(2, 8),
        nodes: vec!["n1".into()],
        cards: Some(CardShare::from_cards(4).unwrap()),
        model: None,
        org: Some("acme".into()),
        project: None,
        user: None,
    };
    let cluster = Cluster {
        nodes: vec![node("n1", 8)],
        reservations: vec![reservation],
        covered: vec![hours(0, 10)],
        ..Cluster::default()
    };
    let mut under = claim("a", "n1", 3, hours(4, 6));
    under.reservation = Some("paper".into());
    check(&cluster, &[under, claim("b", "n1", 1, hours(4, 6))], &[("free", "54"), ("reserved", "18")]);
}

/// By hand: set aside for hours 0…2 and 4…6, 4 cards each time; one job holds 2 of them from 0 to 6, so that 2 × 2 + 2 × 2 stay reserved;
/// free 40 − 12 − 8 = 20.
#[test]
fn what_is_held_under_a_reservation_that_comes_back_is_held_under_it_each_time() {
    let reservation = |from, to| Reservation {
        cluster: "c".into(),
        name: "course".into(),
        during: hours(from, to),
        nodes: vec!["n1".into()],
        cards: None,
        model: None,
        org: None,
        project: None,
        user: None,
    };
    let cluster = Cluster {
        nodes: vec![node("n1", 4)],
        reservations: vec![reservation(0, 2), reservation(4, 6)],
        covered: vec![hours(0, 10)],
        ..Cluster::default()
    };
    let mut under = claim("a", "n1", 2, hours(0, 6));
    under.reservation = Some("course".into());
    check(&cluster, &[under], &[("free", "20"), ("reserved", "8")]);
}

/// By hand: n1 serves 10 hours, n2 the last 5, 4 cards each: 60. n2 is set aside for all 10, 20 of which there are; a job that names
/// no node, so that both count as one group, holds 1: free 60 − 20 − 1 = 39. The same for 3 cards of n2: 15 reserved, 44 free.
#[test]
fn a_reservation_takes_nothing_of_other_nodes_before_its_own_serves() {
    let mut late = node("n2", 4);
    late.in_service_at = Some(hours(5, 6).start());
    let reservation = |cards| Reservation {
        cluster: "c".into(),
        name: "paper".into(),
        during: hours(0, 10),
        nodes: vec!["n2".into()],
        cards,
        model: None,
        org: None,
        project: None,
        user: None,
    };
    let mut anywhere = claim("a", "n1", 1, hours(0, 1));
    anywhere.node = None;
    for (cards, free, reserved) in [(None, "39", "20"), (Some(CardShare::from_cards(3).unwrap()), "44", "15")] {
        let cluster = Cluster {
            nodes: vec![node("n1", 4), late.clone()],
            reservations: vec![reservation(cards)],
            covered: vec![hours(0, 10)],
            ..Cluster::default()
        };
        check(&cluster, &[anywhere.clone()], &[("free", free), ("reserved", reserved)]);
    }
}

/// By hand: 3 cards held of a node of 2 for hours 1…4: 3 card-hours over; free 2 × 10 − 2 × 3 = 14. M11: never below zero.
#[test]
fn m11_what_is_held_beyond_capacity_stays_held_and_free_is_never_negative() {
    let cluster = Cluster { nodes: vec![node("n1", 2)], covered: vec![hours(0, 10)], ..Cluster::default() };
    let claims = [claim("a", "n1", 3, hours(1, 4))];
    check(&cluster, &claims, &[("free", "14")]);
    let (_, over) = sums(&cluster, &claims);
    assert_eq!(over.len(), 1);
    assert_eq!(over[0].during, hours(1, 4));
    assert_eq!((over[0].peak, over[0].card_time.card_hours().to_string()), (CardShare::CARD, "3.000000".to_owned()));
}

/// M06: a cluster without cards has no free cards.
#[test]
fn m06_a_node_without_cards_has_no_rows() {
    let cluster = Cluster { nodes: vec![node("cpu", 0)], covered: vec![hours(0, 10)], ..Cluster::default() };
    check(&cluster, &[], &[]);
}

#[test]
fn one_row_without_its_node_makes_the_grouping_coarser() {
    let cluster =
        Cluster { nodes: vec![node("n1", 2), node("n2", 2)], covered: vec![hours(0, 10)], ..Cluster::default() };
    let known = claim("a", "n1", 2, hours(0, 1));
    let mut spread = claim("b", "n1", 4, hours(2, 3));
    spread.node = None;
    assert_eq!(cluster.frame([known.clone()].iter()).grouping, crate::cluster::Grouping::Node);
    assert_eq!(cluster.frame([known, spread].iter()).grouping, crate::cluster::Grouping::Model);
}

fn any_claims() -> impl Strategy<Value = Vec<Claim>> {
    prop::collection::vec((0..2u8, 0..5i64, 0..200i64, 1..60i64), 0..12).prop_map(|jobs| {
        jobs.into_iter()
            .enumerate()
            .map(|(i, (n, cards, start, length))| {
                let quarter = |q: i64| Timestamp::from_unix_ms(q * BUCKET_MS / 3);
                let during = Interval::new(quarter(start), quarter(start + length)).unwrap();
                claim(&i.to_string(), &format!("n{n}"), cards, during)
            })
            .collect()
    })
}

proptest! {
    /// LED-1 by another road: at every third of a quarter hour, counted instant by instant.
    #[test]
    fn states_fill_what_is_left_at_every_instant(claims in any_claims(), out in (0..100i64, 1..50i64), from in 0..30i64, to in 31..80i64) {
        let tick = |q: i64| Timestamp::from_unix_ms(q * BUCKET_MS / 3);
        let outage = Outage { cluster: "c".into(), during: Interval::new(tick(out.0), tick(out.0 + out.1)).unwrap(), nodes: vec!["n0".into()], cards: None, reason: None };
        let cluster = Cluster { nodes: vec![node("n0", 3), node("n1", 2)], outages: vec![outage], covered: vec![Interval::new(tick(from), tick(to)).unwrap()], ..Cluster::default() };
        let frame = cluster.frame(claims.iter());
        let (held, _) = holdings(claims.clone());
        let refs: Vec<&Holding> = held.iter().collect();
        let (rows, over) = states(&cluster, &frame, &refs, &[hours(0, 48)]);
        let of = |state| rows.iter().filter(|r| r.state == state).map(|r| r.card_time.part_ms()).sum::<i128>();
        let (mut down, mut free, mut unaccounted, mut beyond) = (0i128, 0i128, 0i128, 0i128);
        for q in 0..(48 * 12) {
            let at = tick(q);
            for (name, cards) in [("n0", 3i64), ("n1", 2)] {
                let serves = frame.serves_from.unwrap() <= at && at < frame.horizon.unwrap();
                let capacity = if serves { cards } else { 0 };
                let used: i64 = claims.iter().filter(|c| c.node.as_deref() == Some(name) && c.during.contains(at)).map(|c| c.share.parts() / CardShare::PARTS_PER_CARD).sum();
                let mut left = (capacity - used).max(0);
                beyond += i128::from((used - capacity).max(0));
                let is_out = name == "n0" && cluster.outages[0].during.contains(at);
                if is_out { down += i128::from(left); left = 0; }
                if cluster.covered[0].contains(at) { free += i128::from(left) } else { unaccounted += i128::from(left) }
            }
        }
        let scale = i128::from(CardShare::PARTS_PER_CARD) * i128::from(BUCKET_MS / 3);
        prop_assert_eq!(of(CardState::Down), down * scale);
        prop_assert_eq!(of(CardState::Free), free * scale);
        prop_assert_eq!(of(CardState::Unaccounted), unaccounted * scale);
        prop_assert_eq!(over.iter().map(|o| o.card_time.part_ms()).sum::<i128>(), beyond * scale);
    }
}
