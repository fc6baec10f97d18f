//! Who has each card, from when to when, and when its node looks: what rows and truth are both made from.

use super::cards::Allotment;
use super::clock::Clock;
use super::habit::{Doer, Doing, Habit, TICK_S};
use super::people::PROJECTS;
use super::pool::{Closure, NODES, SHARED_NODE, Why};
use super::rng::Rng;
use super::schedule::Run;
use super::sessions::{SHARED_CARDS, Session, uuid};
use super::tale::TaleKind;
use super::work::{Queue, Request};
use cardhour_domain::JobState;

/// The node whose collector was away for an hour, and when: day and hour of the second month.
const AWAY: (usize, i64, i64) = (4, 12, 14);

/// A run or a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Which.
    pub whose: Whose,
    /// Index into `people::PROJECTS`.
    pub project: usize,
    /// Its part of each of its cards. Unit: thousandths.
    pub share_milli: i64,
    /// From when. Unit: seconds since the epoch.
    pub start_s: i64,
    /// Until when, or where the simulation ends. Unit: seconds since the epoch.
    pub end_s: i64,
    /// Its work is gone: how it ended says so.
    pub is_lost: bool,
    /// How long nobody calls it idle; none where nobody ever does. Unit: seconds.
    pub grace_s: Option<i64>,
    /// What it does.
    pub doer: Doer,
}

/// What a tenant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Index into the runs.
    Run(usize),
    /// Index into the sessions.
    Session(usize),
}

/// A card, who had it, and when its node could read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Index into `pool::NODES`.
    pub node: usize,
    /// Its place in the node.
    pub place: usize,
    /// Its UUID.
    pub uuid: String,
    /// Its tenants in order of their start.
    pub tenants: Vec<usize>,
    /// When it was read, in whole ticks, in order. Unit: seconds since the epoch.
    pub read: Vec<(i64, i64)>,
}

/// A part of a tick over which the tenants of a card stay the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// From when. Unit: seconds since the epoch.
    pub start_s: i64,
    /// Until when. Unit: seconds since the epoch.
    pub end_s: i64,
    /// Who has the card.
    pub tenants: Vec<usize>,
}

/// All tenants and cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct House {
    /// Runs that had cards, then sessions.
    pub tenants: Vec<Tenant>,
    /// By node and place.
    pub cards: Vec<Card>,
    /// By node, when its collector ran, in whole ticks. Unit: seconds since the epoch.
    pub watched: Vec<Vec<(i64, i64)>>,
}

/// Who had what. `uuids`: those of the shared cards.
pub fn house(
    rng: &mut Rng,
    requests: &[Request],
    runs: &[Run],
    sessions: &[Session],
    (closures, allotment): (&[Closure], &Allotment),
    uuids: &[String; SHARED_CARDS],
    clock: &Clock,
) -> House {
    let watched: Vec<Vec<(i64, i64)>> = (0..NODES.len()).map(|node| watched(node, closures, clock)).collect();
    let mut house = House { tenants: Vec::new(), cards: Vec::new(), watched };
    for (node, of) in NODES.iter().enumerate() {
        for place in 0..of.cards as usize {
            let drawn = uuid(rng);
            let uuid = place.checked_sub(of.slurm_cards as usize).map_or(drawn, |shared| uuids[shared].clone());
            let out = closures.iter().zip(&allotment.lost).filter(|(c, lost)| c.node == node && **lost == Some(place));
            let out: Vec<(i64, i64)> = out.map(|(closure, _)| (closure.start_s, closure.end_s)).collect();
            let read = without(&house.watched[node], &out);
            house.cards.push(Card { node, place, uuid, tenants: Vec::new(), read });
        }
    }
    for (i, run) in runs.iter().enumerate() {
        let salt = rng.next();
        let (Some(start_s), cards) = (run.start_s, &allotment.of_run[i]) else { continue };
        if cards.is_empty() {
            continue;
        }
        let request = &requests[run.request];
        let end_s = run.end_s.unwrap_or(clock.end_s);
        house.tenants.push(Tenant {
            whose: Whose::Run(i),
            project: request.project,
            share_milli: 1000,
            start_s,
            end_s,
            is_lost: loses_work(run.state),
            grace_s: grace_s(request.queue),
            doer: doer_of_run(request, run, salt, (start_s, end_s)),
        });
        let last = house.tenants.len() - 1;
        for (node, place) in cards {
            house.card(*node, *place).tenants.push(last);
        }
    }
    for (i, session) in sessions.iter().enumerate() {
        let mut chance = Rng::new(rng.next());
        let share_milli = i64::from(session.share_milli);
        let busy_milli = share_milli * chance.between(450, 950) / 1000;
        let start_s = session.start_s;
        house.tenants.push(Tenant {
            whose: Whose::Session(i),
            project: session.project,
            share_milli,
            start_s,
            end_s: session.end_s.unwrap_or(clock.end_s),
            is_lost: session.phase == "failed",
            grace_s: grace_s(Queue::Dev),
            doer: Doer { habit: Habit::Desk, busy_milli, salt: chance.next(), start_s, suspended: None },
        });
        let last = house.tenants.len() - 1;
        let place = NODES[SHARED_NODE].slurm_cards as usize + session.card;
        house.card(SHARED_NODE, place).tenants.push(last);
    }
    let House { tenants, cards, .. } = &mut house;
    for card in cards {
        card.tenants.sort_by_key(|tenant| (tenants[*tenant].start_s, *tenant));
    }
    house
}

impl House {
    /// Calls `each` with every tick of the second month, its start, and the moments of a card that it is made of.
    pub fn ticks(&self, card: &Card, clock: &Clock, mut each: impl FnMut(i64, &[Moment])) {
        let mut next = 0;
        let mut here: Vec<usize> = Vec::new();
        let mut tick_s = clock.at(1, 0, 0, 0);
        let mut moments = Vec::new();
        while tick_s < clock.end_s {
            let end_s = tick_s + TICK_S;
            here.retain(|tenant| self.tenants[*tenant].end_s > tick_s);
            while let Some(&tenant) = card.tenants.get(next).filter(|tenant| self.tenants[**tenant].start_s < end_s) {
                if self.tenants[tenant].end_s > tick_s {
                    here.push(tenant);
                }
                next += 1;
            }
            self.moments(&here, tick_s, &mut moments);
            each(tick_s, &moments);
            tick_s = end_s;
        }
    }

    fn moments(&self, here: &[usize], tick_s: i64, moments: &mut Vec<Moment>) {
        let end_s = tick_s + TICK_S;
        let span = |tenant: &usize| (self.tenants[*tenant].start_s.max(tick_s), self.tenants[*tenant].end_s.min(end_s));
        moments.clear();
        if here.iter().all(|tenant| span(tenant) == (tick_s, end_s)) {
            moments.push(Moment { start_s: tick_s, end_s, tenants: here.to_vec() });
            return;
        }
        let mut cuts = vec![tick_s, end_s];
        cuts.extend(here.iter().map(span).flat_map(|(from_s, to_s)| [from_s, to_s]));
        cuts.sort_unstable();
        cuts.dedup();
        moments.extend(cuts.windows(2).map(|pair| {
            let is_here = |tenant: &&usize| span(tenant).0 <= pair[0] && pair[1] <= span(tenant).1;
            Moment { start_s: pair[0], end_s: pair[1], tenants: here.iter().filter(is_here).copied().collect() }
        }));
    }

    /// What a tenant does on one of its cards in a tick.
    pub fn doing(&self, tenant: usize, tick_s: i64, clock: &Clock) -> Doing {
        self.tenants[tenant].doer.doing(tick_s, (tick_s - clock.start_s) / 3600 % 24)
    }

    fn card(&mut self, node: usize, place: usize) -> &mut Card {
        let found = self.cards.iter_mut().find(|card| card.node == node && card.place == place);
        found.expect("every place of a node has its card")
    }
}

impl Moment {
    /// How much of it lies in a stretch. Unit: seconds.
    pub fn within_s(&self, from_s: i64, to_s: i64) -> i64 {
        (self.end_s.min(to_s) - self.start_s.max(from_s)).max(0)
    }

    /// How long it is. Unit: seconds.
    pub const fn length_s(&self) -> i64 {
        self.end_s - self.start_s
    }
}

impl Card {
    /// Whether its node read it over the tick.
    pub fn is_read(&self, tick_s: i64) -> bool {
        self.read.iter().any(|(from_s, to_s)| *from_s <= tick_s && tick_s < *to_s)
    }
}

/// When a node's collector ran, in whole ticks: collectors came with the second month. A node that is off has none running, and the tick
/// in which it went off is lost with it.
fn watched(node: usize, closures: &[Closure], clock: &Clock) -> Vec<(i64, i64)> {
    let off = |closure: &&Closure| {
        closure.node == node && matches!(closure.why, Why::NotYetInService | Why::Maintenance | Why::NodeFailure)
    };
    let mut out: Vec<(i64, i64)> = closures.iter().filter(off).map(|c| (c.start_s, c.end_s)).collect();
    if AWAY.0 == node {
        let from_s = clock.at(1, AWAY.1, AWAY.2, 0);
        out.push((from_s, from_s + 3600));
    }
    without(&[(clock.at(1, 0, 0, 0), clock.end_s)], &out)
}

/// The whole ticks of `stretches` in which nothing of `out` lies.
fn without(stretches: &[(i64, i64)], out: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut out: Vec<(i64, i64)> = out
        .iter()
        .map(|(from_s, to_s)| (from_s.div_euclid(TICK_S) * TICK_S, (to_s + TICK_S - 1).div_euclid(TICK_S) * TICK_S))
        .collect();
    out.sort_unstable();
    let mut left = Vec::new();
    for (from_s, to_s) in stretches {
        let mut at_s = *from_s;
        for (out_s, back_s) in &out {
            if at_s < *out_s && at_s < *to_s {
                left.push((at_s, (*out_s).min(*to_s)));
            }
            at_s = at_s.max(*back_s);
        }
        if at_s < *to_s {
            left.push((at_s, *to_s));
        }
    }
    left
}

/// What ended so has nothing to show: it failed, or gave way without choosing to.
const fn loses_work(state: JobState) -> bool {
    matches!(
        state,
        JobState::Failed
            | JobState::NodeFail
            | JobState::OutOfMemory
            | JobState::Timeout
            | JobState::Preempted
            | JobState::Requeued
    )
}

/// How long a queue's work isn't called idle after its start (design §4.4); services wait for requests and never are.
const fn grace_s(queue: Queue) -> Option<i64> {
    match queue {
        Queue::Infer => None,
        Queue::Dev => Some(15 * 60),
        Queue::Train | Queue::Batch => Some(60 * 60),
    }
}

fn doer_of_run(request: &Request, run: &Run, salt: u64, (start_s, end_s): (i64, i64)) -> Doer {
    let mut chance = Rng::new(salt);
    let of_project = PROJECTS[request.project].busy_milli;
    let (habit, busy_milli) = match (request.tale, request.queue) {
        (Some(TaleKind::IdleNotebook), _) => (Habit::Left, 480),
        (Some(TaleKind::InputBound), _) => (Habit::Starved, 310),
        (None | Some(TaleKind::FatalXid), Queue::Train) => (Habit::Steady, of_project + chance.between(-80, 80)),
        (None | Some(TaleKind::FatalXid), Queue::Batch) => (Habit::Steady, of_project + chance.between(-180, 0)),
        (None | Some(TaleKind::FatalXid), Queue::Infer) => (Habit::Served, chance.between(280, 680)),
        (None | Some(TaleKind::FatalXid), Queue::Dev) => (Habit::Desk, chance.between(150, 550)),
    };
    let suspended = (run.suspended_s > 0).then(|| {
        let from_s = start_s + (end_s - start_s - run.suspended_s) / 2;
        (from_s, from_s + run.suspended_s)
    });
    Doer { habit, busy_milli, salt, start_s, suspended }
}
