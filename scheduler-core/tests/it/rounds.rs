//! A pool that is kept between rounds gives the plans that its snapshots give.

use cardhour_domain::Timestamp;
use cardhour_scheduler_core::rounds::{Change, Rounds};
use cardhour_scheduler_core::snapshot::{HostState, Reservation};
use cardhour_scheduler_core::{Policy, Snapshot, audit, decide};

use crate::draw::{Chance, pool};
use crate::table::{bare, noon, read};
use crate::told::pool_in_words;

/// A change, and the same made by hand on a snapshot whose lists are in any order.
fn change(chance: &mut Chance, now: &mut Snapshot, other: &Snapshot) -> Option<Change> {
    fn any<T: Clone>(chance: &mut Chance, list: &[T]) -> Option<T> {
        (!list.is_empty()).then(|| list[chance.below(list.len() as u64) as usize].clone())
    }
    Some(match chance.below(12) {
        0 => {
            let mut job = any(chance, &other.pending)?;
            job.queue = any(chance, &now.queues)?.name;
            now.pending.retain(|one| one.name != job.name);
            now.running.retain(|one| one.name != job.name);
            now.pending.push(job.clone());
            Change::Waits(job)
        }
        1 => {
            let job = any(chance, &now.pending)?.name;
            now.pending.retain(|one| one.name != job);
            Change::Gone(job)
        }
        2 => {
            let job = any(chance, &now.running)?.name;
            now.running.retain(|one| one.name != job);
            Change::Gone(job)
        }
        3..=5 => {
            let mut run = any(chance, &now.running)?;
            match chance.below(4) {
                0 => run.leaving = true,
                1 => run.preempted_today += 1,
                _ => run.checkpoint = Some(now.at),
            }
            now.running.retain(|one| one.name != run.name);
            now.running.push(run.clone());
            Change::Runs(run)
        }
        6 => {
            let mut host = any(chance, &now.hosts)?;
            host.state = [HostState::Healthy, HostState::Draining, HostState::Failed][chance.below(3) as usize];
            now.hosts.retain(|one| one.name != host.name);
            now.hosts.push(host.clone());
            Change::Host(host)
        }
        7 => {
            let mut queue = any(chance, &now.queues)?;
            queue.weight_milli = 500 * chance.below(5);
            for quota in queue.quota.values_mut() {
                quota.nominal /= 2;
            }
            now.queues.retain(|one| one.name != queue.name);
            now.queues.push(queue.clone());
            Change::Queue(queue)
        }
        8 => {
            now.off_peak = !now.off_peak;
            if now.off_peak { Change::OffPeakBegins } else { Change::OffPeakEnds }
        }
        9 => {
            let job = any(chance, &now.pending)?;
            let host = any(chance, &now.hosts)?;
            let kept = Reservation {
                job: job.name,
                pieces: Vec::new(),
                workers: job.workers,
                model: host.model,
                until: now.at.checked_add_ms(60_000 * chance.below(40) as i64).expect("a time"),
            };
            now.reservations.retain(|one| one.job != kept.job);
            now.reservations.push(kept.clone());
            Change::Kept(kept)
        }
        10 => {
            let kept = any(chance, &now.reservations)?.job;
            now.reservations.retain(|one| one.job != kept);
            Change::KeptNoMore(kept)
        }
        _ => {
            let host = any(chance, &now.hosts)?.name;
            // One on which somebody runs fails before it goes: a job on a host that the pool doesn't have is no whole snapshot.
            let is_held =
                now.running.iter().flat_map(|run| &run.pieces).any(|piece| piece.host.as_ref() == Some(&host));
            if now.hosts.len() < 3 || is_held {
                return None;
            }
            now.hosts.retain(|one| one.name != host);
            Change::HostGone(host)
        }
    })
}

#[test]
fn a_kept_pool_gives_the_plan_that_its_snapshot_gives() {
    let (mut rounds_in_all, mut decided, mut recalled) = (0, 0, 0);
    for seed in 0..3_000 {
        let (mut now, policy) = pool(seed);
        let (other, _) = pool(seed + 1_000_000);
        let mut chance = Chance(seed ^ 0x5eed);
        // Full pools in which nobody may be ended are those in which rounds come again.
        let policy = match seed % 3 {
            0 => policy,
            _ => Policy { disruption_per_mille: Some(0), ..policy },
        };
        let mut kept = Rounds::new(now.clone(), policy.clone());
        for round in 0..12 {
            if round > 0 {
                for _ in 0..chance.below(3) {
                    if let Some(change) = change(&mut chance, &mut now, &other) {
                        kept.apply(change);
                    }
                }
                // Seconds, to come again within what a plan holds for; now and then back, as a clock may be set.
                let seconds = [0, 1, 30, 300, -10][chance.below(5) as usize];
                now.at = now.at.checked_add_ms(seconds * 1_000).expect("a time");
            }
            let plan = decide(&now, &policy);
            assert_eq!(*kept.round(now.at), plan, "seed {seed} round {round}\n{}", pool_in_words(&now, &policy));
            if round == 11 {
                assert_eq!(audit(&now, &policy, &plan), [], "seed {seed}\n{}", pool_in_words(&now, &policy));
            }
            rounds_in_all += 1;
        }
        decided += kept.decided();
        recalled += kept.recalled();
    }
    // The draw must reach what it is there to try.
    let again = rounds_in_all - decided;
    assert!(again > rounds_in_all / 20, "only {again} of {rounds_in_all} rounds came again");
    assert!(recalled > rounds_in_all / 20, "only {recalled} refusals were given again in {rounds_in_all} rounds");
}

fn later(seconds: i64) -> Timestamp {
    noon().checked_add_ms(seconds * 1_000).expect("a time")
}

#[test]
fn s18_a_round_in_which_nothing_changed_is_not_gone_through_again() {
    let pool = read(
        "queue a: 2
         host n1: 2
         runs r1 in a: 2 on n1
         waits x in a: 1",
    );
    let mut kept = Rounds::new(pool.clone(), bare());
    let first = kept.round(noon()).clone();
    for second in 1..100 {
        assert_eq!(*kept.round(later(second)), first);
    }
    assert_eq!(kept.decided(), 1);
    // The same told again is no change.
    kept.apply(Change::Runs(pool.running[0].clone()));
    kept.round(later(100));
    assert_eq!(kept.decided(), 1);
    kept.apply(Change::Gone("r1".into()));
    assert_eq!(kept.round(later(101)).steps[0].words(), "x starts with 1 card on n1: it is within its queue's quota");
    assert_eq!(kept.decided(), 2);
}

/// A job may be ended once it has run 1,800 s: nothing changes but the time.
#[test]
fn a_round_is_gone_through_again_when_time_alone_changes_it() {
    let pool = read(
        "queue a: 0
         queue b: 2
         host n1: 2
         runs r1 in a: 2 on n1, for 1000 s
         waits x in b: 2",
    );
    let mut policy = bare();
    policy.min_run.default.reclaim_ms = Some(1_800_000);
    let mut kept = Rounds::new(pool, policy);
    assert_eq!(kept.round(later(0)).steps.len(), 1);
    assert_eq!(kept.round(later(799)).steps.len(), 1);
    assert_eq!(kept.decided(), 1);
    assert_eq!(kept.round(later(800)).steps.len(), 2, "r1 goes, and x is promised its room");
    assert_eq!(kept.decided(), 2);
}
