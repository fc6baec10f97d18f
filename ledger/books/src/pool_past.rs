//! What happened to each pool of cards over some days: how much of what was held was used, what jobs waited for, and how many cards each team wanted by hour.
//!
//! A *pool* is the cards of one model in one cluster. What advice on capacity and quotas rests on; the advice itself is the scheduler core's.
//!
//! A wait is told apart instant by instant, by the cards that were free then: fewer than the job took in the end, and it waited for capacity; as many, and not on nodes
//! where they would have lain as they did in the end, and it waited for a place; else for something that cards would not change: its quota, a dependency, a date. How many cards
//! of a node are in service, down or reserved is its day's mean. Where nodes aren't known nothing waits for a place.
//!
//! Start at [`pool_pasts`]. Does not: advise, load anything.

mod waits;

use crate::checkpoint::Sources;
use crate::checkpoint::facts::{Facts, asked};
use crate::report::ReportAttempt;
use cardhour_domain::{CardShare, CardState, CardTime, Interval, JobState, Name, Timestamp, Zone};
use chrono::NaiveDate;
use std::collections::BTreeMap;

const HOUR_MS: i64 = 3_600_000;

/// A team: an organisation and its project, as far as they are known.
pub type Team = (Option<Name>, Option<Name>);

/// One pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolPast {
    /// Cluster.
    pub cluster: Name,
    /// Model of its cards.
    pub model: Option<Name>,
    /// Cards in service, mean of the last day that tells; none where nobody told the nodes.
    pub cards: Option<u32>,
    /// Its days, oldest first, each once; also those on which nothing was held.
    pub days: Vec<DayPast>,
    /// Jobs that started in that time and whose wait is known, in the order of their keys.
    pub waits: Vec<PastWait>,
    /// Cards that each team held and waited for, by hour from the first on: the hour's mean, rounded up, and no more than there are. None: most of the hour's day is unaccounted for.
    pub wanted: BTreeMap<Team, Vec<Option<u32>>>,
}

/// A pool's day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayPast {
    /// Which.
    pub day: NaiveDate,
    /// What was in service.
    pub capacity: CardTime,
    /// Held.
    pub held: CardTime,
    /// Of it, what telemetry saw.
    pub seen: CardTime,
    /// Of that, what was busy.
    pub effective: CardTime,
    /// What nobody accounts for.
    pub unaccounted: CardTime,
}

/// How long a job waited, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PastWait {
    /// When it started.
    pub started_at: Timestamp,
    /// Cards of the pool that it took.
    pub cards: CardShare,
    /// Fewer cards were free. Unit: milliseconds.
    pub for_capacity_ms: i64,
    /// As many were free, and not on nodes that would have done. Unit: milliseconds.
    pub for_placement_ms: i64,
    /// Cards were free that would have done, or nobody knows. Unit: milliseconds.
    pub for_other_ms: i64,
}

/// A day of a node: what it has, less what is down or reserved. Unit: parts of cards.
#[derive(Clone, Debug, Default)]
struct Room {
    parts: i128,
}

/// Cards of one pool that an attempt had, by node.
#[derive(Clone, Debug, Default)]
struct Lay<'a> {
    nodes: BTreeMap<Option<&'a Name>, i128>,
}

type PoolName<'a> = (&'a Name, Option<&'a Name>);

/// All pools over the days of `known`, in the order of their names. `sources`: cut by days, of at least that time; prices don't matter.
pub fn pool_pasts(sources: Sources<'_>, known: Interval) -> Vec<PoolPast> {
    let facts = Facts::of(Sources { book: None, ..sources });
    let zone = facts.zone();
    let days = days_of(known, zone);
    let Some(first_day) = days.first().map(|(day, _)| *day) else { return Vec::new() };
    let number = |day: NaiveDate| usize::try_from((day - first_day).num_days()).ok().filter(|n| *n < days.len());

    let mut pools: BTreeMap<PoolName<'_>, Pool<'_>> = BTreeMap::new();
    let mut had: BTreeMap<u32, BTreeMap<PoolName<'_>, BTreeMap<Option<&Name>, i128>>> = BTreeMap::new();
    for cell in &facts.input().capacity {
        let Some(day) = number(facts.day(cell.slot)) else { continue };
        let pool = pools.entry((&cell.cluster, cell.model.as_ref())).or_insert_with(|| Pool::new(&days));
        pool.days[day].capacity += cell.card_time;
        pool.rooms.entry(cell.node.as_ref()).or_insert_with(|| vec![Room::default(); days.len()])[day].parts +=
            cell.card_time.part_ms();
    }
    for cell in &facts.input().cells {
        let name = (&cell.cluster, cell.model.as_ref());
        if let (Some(attempt), CardState::Held) = (cell.attempt, cell.state) {
            let of_attempt = had.entry(facts.first_of(attempt)).or_default().entry(name).or_default();
            *of_attempt.entry(cell.node.as_ref()).or_default() += cell.card_time.part_ms();
        }
        let Some(day) = number(facts.day(cell.slot)) else { continue };
        let pool = pools.entry(name).or_insert_with(|| Pool::new(&days));
        match cell.state {
            CardState::Held => {
                let of_day = &mut pool.days[day];
                of_day.held += cell.card_time;
                of_day.seen += cell.card_time - cell.unseen;
                if let Some(used) = &cell.used {
                    of_day.effective += used.effective;
                }
            }
            CardState::Down | CardState::Reserved => {
                let rooms = pool.rooms.entry(cell.node.as_ref()).or_insert_with(|| vec![Room::default(); days.len()]);
                rooms[day].parts -= cell.card_time.part_ms();
            }
            CardState::Unaccounted => pool.days[day].unaccounted += cell.card_time,
            CardState::Free => {}
        }
    }
    for pool in pools.values_mut() {
        for room in pool.rooms.values_mut() {
            // From card-time of a day to cards.
            for (room, (_, during)) in room.iter_mut().zip(&days) {
                room.parts /= i128::from(during.length_ms());
            }
        }
    }
    place_attempts(&facts, &had, &mut pools, known);
    pools.into_iter().map(|(name, pool)| pool.past(name, &days, known)).collect()
}

/// Gives each attempt to the pools whose cards it had: held by node, and waited for in the pool of which it had most.
fn place_attempts<'a>(
    facts: &Facts<'a>,
    had: &BTreeMap<u32, BTreeMap<PoolName<'a>, BTreeMap<Option<&'a Name>, i128>>>,
    pools: &mut BTreeMap<PoolName<'a>, Pool<'a>>,
    known: Interval,
) {
    for (number, attempt) in facts.attempts() {
        let Some(of_attempt) = had.get(&number) else {
            wait_of_the_unplaced(attempt, pools, known);
            continue;
        };
        let Some(held) = attempt.held else { continue };
        let sum = |nodes: &BTreeMap<Option<&Name>, i128>| nodes.values().sum::<i128>();
        let all: i128 = of_attempt.values().map(sum).sum();
        if all <= 0 {
            continue;
        }
        let most = of_attempt.iter().rev().max_by_key(|(_, nodes)| sum(nodes)).map(|(name, _)| *name);
        for (name, nodes) in of_attempt {
            let Some(pool) = pools.get_mut(name) else { continue };
            let parts = |time: &i128| i128::from(attempt.cards.parts()) * *time / all;
            let lay = Lay { nodes: nodes.iter().map(|(node, time)| (*node, parts(time))).collect() };
            let resized = facts.run_before(number).is_some_and(|run| facts.attempt(run).state == JobState::Resized);
            let waited = attempt.submitted_at.filter(|_| most == Some(*name) && !resized);
            let waited = waited.filter(|submitted| *submitted <= held.start());
            pool.attempts.push(Placed {
                team: (attempt.org.clone(), attempt.project.clone()),
                held,
                waited_from: waited,
                lay,
            });
        }
    }
}

/// One that hasn't started wants cards of its cluster's only model; of several nobody knows which.
fn wait_of_the_unplaced<'a>(attempt: &'a ReportAttempt, pools: &mut BTreeMap<PoolName<'a>, Pool<'a>>, known: Interval) {
    if attempt.state != JobState::Pending {
        return;
    }
    let Some(wait) = attempt.submitted_at.and_then(|submitted| Interval::new(submitted, known.end())) else { return };
    let mut of_cluster = pools.iter_mut().filter(|((cluster, _), _)| **cluster == attempt.cluster);
    if let (Some((_, pool)), None) = (of_cluster.next(), of_cluster.next()) {
        pool.waiting.push(((attempt.org.clone(), attempt.project.clone()), wait, i128::from(asked(attempt).parts())));
    }
}

/// The local days that a stretch touches, each with what of it is in the stretch.
fn days_of(known: Interval, zone: Zone) -> Vec<(NaiveDate, Interval)> {
    let mut days = Vec::new();
    let Some(mut day) = zone.date(known.start()) else { return days };
    while let Some(during) = zone.day(day).filter(|during| during.start() < known.end()) {
        days.extend(during.overlap(known).map(|during| (day, during)));
        day = day + chrono::Days::new(1);
    }
    days
}

/// An attempt in a pool.
struct Placed<'a> {
    team: Team,
    held: Interval,
    waited_from: Option<Timestamp>,
    lay: Lay<'a>,
}

/// A pool while it is gathered.
struct Pool<'a> {
    days: Vec<DayPast>,
    /// Of each node, what can be held on each day.
    rooms: BTreeMap<Option<&'a Name>, Vec<Room>>,
    attempts: Vec<Placed<'a>>,
    /// Who waits and hasn't started: since when, and for how many parts of cards.
    waiting: Vec<(Team, Interval, i128)>,
}

impl<'a> Pool<'a> {
    fn new(days: &[(NaiveDate, Interval)]) -> Self {
        let zero = CardTime::ZERO;
        let day = |(day, _): &(NaiveDate, Interval)| DayPast {
            day: *day,
            capacity: zero,
            held: zero,
            seen: zero,
            effective: zero,
            unaccounted: zero,
        };
        Self { days: days.iter().map(day).collect(), rooms: BTreeMap::new(), attempts: Vec::new(), waiting: Vec::new() }
    }

    fn past(self, (cluster, model): PoolName<'_>, days: &[(NaiveDate, Interval)], known: Interval) -> PoolPast {
        let last = self.days.iter().zip(days).rev().find(|(day, _)| !day.capacity.is_zero());
        let cards = last.and_then(|(day, (_, during))| {
            let parts = day.capacity.part_ms() / i128::from(during.length_ms());
            u32::try_from(parts / i128::from(CardShare::PARTS_PER_CARD)).ok()
        });
        PoolPast {
            cluster: cluster.clone(),
            model: model.cloned(),
            cards,
            waits: waits::told_apart(&self, days, known),
            wanted: self.wanted(days, known, cards),
            days: self.days,
        }
    }

    fn wanted(
        &self,
        days: &[(NaiveDate, Interval)],
        known: Interval,
        cards: Option<u32>,
    ) -> BTreeMap<Team, Vec<Option<u32>>> {
        let count = usize::try_from(known.length_ms().div_euclid(HOUR_MS)).unwrap_or(0);
        let mut sums: BTreeMap<&Team, Vec<i128>> = BTreeMap::new();
        let mut add = |team, during: Interval, parts: i128| {
            let Some(during) = during.overlap(known) else { return };
            let hours = sums.entry(team).or_insert_with(|| vec![0; count]);
            let from = during.start().ms_since(known.start());
            let to = during.end().ms_since(known.start());
            let first = usize::try_from(from / HOUR_MS).unwrap_or(usize::MAX);
            for (hour, sum) in hours.iter_mut().enumerate().skip(first) {
                let start = hour as i64 * HOUR_MS;
                if start >= to {
                    break;
                }
                *sum += parts * i128::from((start + HOUR_MS).min(to) - start.max(from));
            }
        };
        for one in &self.attempts {
            let parts: i128 = one.lay.nodes.values().sum();
            add(&one.team, one.held, parts);
            if let Some(wait) = one.waited_from.and_then(|from| Interval::new(from, one.held.start())) {
                add(&one.team, wait, parts);
            }
        }
        for (team, wait, parts) in &self.waiting {
            add(team, *wait, *parts);
        }
        let dark = |day: &DayPast| {
            let all = day.capacity.part_ms().max(day.held.part_ms() + day.unaccounted.part_ms());
            day.unaccounted.part_ms() * 2 > all
        };
        let is_dark: Vec<bool> = (0..count)
            .map(|hour| {
                let at = Timestamp::from_unix_ms(known.start().unix_ms() + hour as i64 * HOUR_MS);
                let day = days.iter().position(|(_, during)| during.contains(at));
                day.is_none_or(|day| dark(&self.days[day]))
            })
            .collect();
        let whole = i128::from(CardShare::PARTS_PER_CARD) * i128::from(HOUR_MS);
        let of_team = |(team, sums): (&Team, Vec<i128>)| {
            let cards_of = |sum: i128| u32::try_from((sum + whole - 1) / whole).unwrap_or(u32::MAX);
            let hour = |(sum, dark): (i128, &bool)| (!dark).then(|| cards_of(sum).min(cards.unwrap_or(u32::MAX)));
            (team.clone(), sums.into_iter().zip(&is_dark).map(hour).collect())
        };
        sums.into_iter().map(of_team).collect()
    }
}

#[cfg(test)]
mod tests;
