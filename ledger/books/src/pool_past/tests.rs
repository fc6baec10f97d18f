use super::*;
use crate::slots::{Slots, ViewCut};
use crate::world::{World, at};

fn pasts(world: &World) -> Vec<PoolPast> {
    let all = world.all();
    let cut = ViewCut { zone: world.zone, by_day: true, by_month: false };
    let slots = Slots::new(all, None, world.zone, Some(cut)).unwrap();
    let input = world.input(&slots);
    pool_pasts(Sources { input: &input, slots: &slots, book: None, all }, all)
}

fn site(jobs: &str, submits: &[&str]) -> World {
    let mut world = World::jobs(jobs);
    for (attempt, submit) in world.attempts.iter_mut().zip(submits) {
        attempt.submitted_at = Some(at(submit));
    }
    for node in ["n1", "n2"] {
        world.capacity.push(World::stretch(CardState::Free, &format!("c {node} T4 8 2026-05-12 2026-05-13")));
    }
    world
}

/// By hand, two nodes of eight cards. Job 3 takes eight cards of n1 from 12:00 on and was submitted at 06:00. Until 08:00 all sixteen are held: capacity, 2 h. Then four of n1 and four
/// of n2 are free: eight cards, and not on one node: 2 h to 10:00. Then n1 is free: 2 h for something else.
#[test]
fn a_wait_is_for_cards_for_their_places_or_for_neither() {
    let world = site(
        "1 lab vision ann a completed T4 n1 4 2026-05-12T00:00 2026-05-12T08:00
         2 lab vision ann a completed T4 n1 4 2026-05-12T00:00 2026-05-12T10:00
         3 lab speech bob a completed T4 n1 8 2026-05-12T12:00 2026-05-13T00:00
         4 lab vision ann a completed T4 n2 4 2026-05-12T00:00 2026-05-12T08:00
         5 lab vision ann a completed T4 n2 4 2026-05-12T00:00 2026-05-13T00:00",
        &["2026-05-12", "2026-05-12", "2026-05-12T06:00", "2026-05-12", "2026-05-12"],
    );
    let pools = pasts(&world);
    let [pool] = &pools[..] else { panic!("one pool: {pools:?}") };
    assert_eq!((&*pool.cluster, pool.model.as_deref(), pool.cards), ("c", Some("T4"), Some(16)));
    let long: Vec<[i64; 3]> = pool
        .waits
        .iter()
        .filter(|wait| wait.started_at == at("2026-05-12T12:00"))
        .map(|wait| [wait.for_capacity_ms, wait.for_placement_ms, wait.for_other_ms].map(|ms| ms / HOUR_MS))
        .collect();
    assert_eq!(long, [[2, 2, 2]]);
    assert_eq!(pool.waits.len(), 5);
}

/// By hand: speech waited for eight cards from 06:00 to 12:00 and held them to midnight; vision had 16 to 08:00, 8 to 10:00, then 4.
#[test]
fn what_a_team_wants_is_what_it_holds_and_waits_for() {
    let world = site(
        "1 lab vision ann a completed T4 n1 4 2026-05-12T00:00 2026-05-12T08:00
         2 lab vision ann a completed T4 n1 4 2026-05-12T00:00 2026-05-12T10:00
         3 lab speech bob a completed T4 n1 8 2026-05-12T12:00 2026-05-13T00:00
         4 lab vision ann a completed T4 n2 4 2026-05-12T00:00 2026-05-12T08:00
         5 lab vision ann a completed T4 n2 4 2026-05-12T00:00 2026-05-13T00:00",
        &["2026-05-12", "2026-05-12", "2026-05-12T06:00", "2026-05-12", "2026-05-12"],
    );
    let pool = pasts(&world).remove(0);
    let of = |project: &str| {
        let hours = &pool.wanted[&(Some("lab".into()), Some(project.into()))];
        hours.iter().map(|hour| hour.unwrap()).collect::<Vec<u32>>()
    };
    assert_eq!(of("speech"), [vec![0; 6], vec![8; 18]].concat());
    assert_eq!(of("vision"), [vec![16; 8], vec![8; 2], vec![4; 14]].concat());
}
