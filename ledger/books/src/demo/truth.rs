//! What the simulated world really held, added up from its own schedule and sharing no code with the import.

mod deeds;
mod used;

use super::clock::Clock;
use super::people::PROJECTS;
use super::pool::{Closure, NODES, Why};
use super::schedule::Run;
use super::sessions::Session;
use super::tenants::House;
use super::work::Request;
use cardhour_domain::{CardShare, CardTime, Month};
pub use deeds::Deed;
pub(super) use deeds::rests;
use std::collections::{BTreeMap, BTreeSet};
pub use used::UsedTruth;

/// What was held, by whom, and what the pool was otherwise, by month of the demo's zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Card-time held, by project and month.
    pub held: BTreeMap<(&'static str, Month), CardTime>,
    /// The pool as a whole, by month.
    pub pool: BTreeMap<Month, PoolTruth>,
    /// Where held time went, by project and month.
    pub used: BTreeMap<(&'static str, Month), UsedTruth>,
    /// What all cards drew while they were read, held or not, by month. Unit: mJ.
    pub drawn_mj: BTreeMap<Month, i64>,
    /// Jobs, tasks of arrays and sessions that were ever asked for; the tasks of an array that still wait are one, as Slurm has them.
    pub jobs: u64,
    /// Runs of them, those that never started among them.
    pub attempts: u64,
}

/// A month of the pool: `held + down + reserved + free = capacity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolTruth {
    /// Cards in service × time.
    pub capacity: CardTime,
    /// Had a holder.
    pub held: CardTime,
    /// Out of service.
    pub down: CardTime,
    /// Set aside and not held under the reservation.
    pub reserved: CardTime,
    /// The rest.
    pub free: CardTime,
}

/// Adds it up.
pub fn truth(
    requests: &[Request],
    runs: &[Run],
    sessions: &[Session],
    closures: &[Closure],
    house: &House,
    clock: &Clock,
) -> Truth {
    let waiting: Vec<u64> =
        runs.iter().filter(|run| run.waits_in_array(&requests[run.request])).map(|run| run.array_job).collect();
    let folded = waiting.len() - waiting.iter().collect::<BTreeSet<_>>().len();
    let mut truth = Truth {
        jobs: (requests.len() - folded + sessions.len()) as u64,
        attempts: (runs.len() - folded + sessions.len()) as u64,
        ..Truth::default()
    };
    used::add_used(&mut truth, house, clock);
    for month in clock.months {
        let mut pool = PoolTruth::default();
        let within = |cards_milli: u32, start_s: i64, end_s: i64| {
            let share = CardShare::from_parts(CardShare::PARTS_PER_CARD / 1000 * i64::from(cards_milli));
            Clock::stretch(start_s, end_s)
                .and_then(|stretch| stretch.overlap(month.interval(clock.zone)))
                .map_or(CardTime::ZERO, |stretch| CardTime::of(share, stretch))
        };
        let mut hold = |project: usize, time: CardTime| {
            *truth.held.entry((PROJECTS[project].name, month)).or_default() += time;
            pool.held += time;
        };
        for run in runs {
            let Some(start_s) = run.start_s else { continue };
            let request = &requests[run.request];
            let time = within(1000 * request.cards(), start_s, run.end_s.unwrap_or(clock.end_s));
            hold(request.project, time);
            if request.reservation.is_some() {
                pool.reserved = pool.reserved - time;
            }
        }
        for session in sessions {
            let time = within(session.share_milli, session.start_s, session.end_s.unwrap_or(clock.end_s));
            hold(session.project, time);
        }
        pool.capacity = NODES.iter().map(|node| within(1000 * node.cards, clock.start_s, clock.end_s)).sum();
        for closure in closures {
            let time = within(1000 * closure.cards, closure.start_s, closure.end_s);
            match closure.why {
                Why::NotYetInService => pool.capacity = pool.capacity - time,
                Why::Maintenance | Why::NodeFailure | Why::LostCard => pool.down += time,
                Why::Reserved(_) => pool.reserved += time,
            }
        }
        pool.free = pool.capacity - pool.held - pool.down - pool.reserved;
        truth.pool.insert(month, pool);
    }
    truth
}
