//! What was wanted in a month, what was held of it, what was free, and how long it waited: the figures under [`super::Verdict`].

use super::cells::{self, count, hours, money, name, ratio, text, wait};
use super::facts::{Facts, Room, Sum, asked};
use super::wait::Spread;
use super::week::Days;
use super::{Chart, Section, Shape};
use crate::report::ReportAttempt;
use crate::table::{Kind, Value};
use cardhour_domain::{CardTime, Currency, Interval, Month, Name, Zone};
use std::collections::{BTreeMap, BTreeSet};

/// One month.
#[derive(Clone, Debug)]
pub(super) struct Demand<'a> {
    pub month: Month,
    /// Attempts submitted in it.
    pub submitted: usize,
    /// Cards that these asked for, over the time that they ran, in the month and after it. What never started ran for no time.
    pub asked: CardTime,
    pub sum: Sum,
    /// Of what it cost; none without prices.
    pub currency: Option<Currency>,
    pub room: Room,
    pub waits: Spread,
    /// Not started by its end.
    pub waiting: usize,
    pub models: BTreeMap<Option<&'a Name>, OfModel>,
    pub queues: BTreeMap<Option<&'a Name>, OfQueue>,
}

/// One model in one month.
#[derive(Clone, Debug, Default)]
pub(super) struct OfModel {
    pub held: CardTime,
    pub room: Room,
    pub waits: Spread,
}

/// One queue in one month.
#[derive(Clone, Debug, Default)]
pub(super) struct OfQueue {
    pub submitted: usize,
    pub asked: CardTime,
    pub waits: Spread,
    pub waiting: usize,
}

impl<'a> Demand<'a> {
    pub fn of(facts: &Facts<'a>, month: Month) -> Self {
        let days = Days::of_month(month);
        let during = days.interval(facts.zone());
        let held = facts.held(days);
        let waits = facts.waits(days);
        let mut models: BTreeMap<Option<&'a Name>, OfModel> = BTreeMap::new();
        let mut of_attempt: BTreeMap<u32, BTreeSet<Option<&'a Name>>> = BTreeMap::new();
        for held in &held {
            models.entry(held.model).or_default().held += held.sum.held;
            if let Some(attempt) = held.attempt {
                of_attempt.entry(attempt).or_default().insert(held.model);
            }
        }
        for (model, room) in facts.free(days) {
            models.entry(model).or_default().room = room;
        }
        let mut by_model: BTreeMap<Option<&'a Name>, Vec<i64>> = BTreeMap::new();
        let mut by_queue: BTreeMap<Option<&'a Name>, Vec<i64>> = BTreeMap::new();
        for wait in &waits.started {
            // Where an attempt has cards of several models, each of them let it wait.
            for model in of_attempt.get(&wait.number).into_iter().flatten() {
                by_model.entry(*model).or_default().push(wait.wait_ms);
            }
            by_queue.entry(wait.attempt.queue.as_ref()).or_default().push(wait.wait_ms);
        }
        for (model, waits) in by_model {
            models.entry(model).or_default().waits = Spread::of(waits);
        }
        let mut queues: BTreeMap<Option<&'a Name>, OfQueue> = BTreeMap::new();
        for (queue, waits) in by_queue {
            queues.entry(queue).or_default().waits = Spread::of(waits);
        }
        for attempt in &waits.waiting {
            queues.entry(attempt.queue.as_ref()).or_default().waiting += 1;
        }
        let (mut submitted, mut all_asked) = (0, CardTime::ZERO);
        for (_, attempt) in facts.attempts().filter(|(_, a)| a.submitted_at.is_some_and(|at| during.contains(at))) {
            let asked = asked_time(attempt);
            let queue = queues.entry(attempt.queue.as_ref()).or_default();
            (queue.submitted, submitted) = (queue.submitted + 1, submitted + 1);
            (queue.asked, all_asked) = (queue.asked + asked, all_asked + asked);
        }
        let room = models.values().fold(Room::default(), |sum, model| Room {
            free: sum.free + model.room.free,
            capacity: sum.capacity + model.room.capacity,
        });
        Self {
            month,
            submitted,
            asked: all_asked,
            sum: Sum::of(held.iter().map(|held| &held.sum)),
            currency: facts.currency(),
            room,
            waits: Spread::of(waits.started.iter().map(|wait| wait.wait_ms)),
            waiting: waits.waiting.len(),
            models,
            queues,
        }
    }
}

/// The cards that an attempt asked for, over the time that it ran.
fn asked_time(attempt: &ReportAttempt) -> CardTime {
    attempt.held.map_or(CardTime::ZERO, |held| CardTime::of(asked(attempt), held))
}

/// Columns: `month known submitted asked_card_hours card_hours capacity_card_hours free_card_hours free_of_capacity started median_wait_hours p90_wait_hours waiting cost currency`.
pub(super) fn months(zone: Zone, demands: &[Demand<'_>], all: Interval) -> Section {
    let rows = demands.iter().filter_map(|demand| {
        let during = demand.month.interval(zone);
        let known = during.overlap(all)?;
        let mut row = vec![text(demand.month.to_string()), text(if known == during { "whole" } else { "partial" })];
        row.extend([count(demand.submitted), hours(demand.asked), hours(demand.sum.held)]);
        row.extend(room(demand.room));
        row.push(count(demand.waits.len()));
        row.extend([50, 90].map(|percent| wait(demand.waits.percentile(percent))));
        row.push(count(demand.waiting));
        row.extend(money(demand.sum.cost, demand.currency));
        Some(row)
    });
    let columns = [
        ("month", Kind::Text),
        ("known", Kind::Text),
        ("submitted", Kind::Count),
        ("asked_card_hours", Kind::Hours),
        ("card_hours", Kind::Hours),
        ("capacity_card_hours", Kind::Hours),
        ("free_card_hours", Kind::Hours),
        ("free_of_capacity", Kind::Ratio),
        ("started", Kind::Count),
        ("median_wait_hours", Kind::Hours),
        ("p90_wait_hours", Kind::Hours),
        ("waiting", Kind::Count),
        ("cost", Kind::Money),
        ("currency", Kind::Text),
    ];
    let mut table = cells::table("Demand by month", &columns, rows.collect());
    table.notes.push(
        "asked: cards that what was submitted in the month asked for, over the time that it ran; what never started is in submitted and waiting only"
            .to_owned(),
    );
    Section { name: "demand", table, chart: Some(Chart { shape: Shape::Line, label: 0, value: 3 }) }
}

/// Capacity, free, and their ratio; absent where nobody says how much there was.
fn room(room: Room) -> [Value; 3] {
    if room.capacity.is_zero() {
        return [Value::Absent, Value::Absent, Value::Absent];
    }
    [hours(room.capacity), hours(room.free), ratio(room.free.ratio_of(room.capacity))]
}

/// Columns: `model month card_hours capacity_card_hours free_card_hours free_of_capacity started median_wait_hours p90_wait_hours`.
pub(super) fn by_model(demands: &[Demand<'_>]) -> Section {
    let mut rows: Vec<(Option<&Name>, Vec<Value>)> = Vec::new();
    for demand in demands {
        for (model, of) in &demand.models {
            let mut row = vec![name(*model), text(demand.month.to_string()), hours(of.held)];
            row.extend(room(of.room));
            row.push(count(of.waits.len()));
            row.extend([50, 90].map(|percent| wait(of.waits.percentile(percent))));
            rows.push((*model, row));
        }
    }
    rows.sort_by_key(|(model, _)| *model);
    let columns = [
        ("model", Kind::Text),
        ("month", Kind::Text),
        ("card_hours", Kind::Hours),
        ("capacity_card_hours", Kind::Hours),
        ("free_card_hours", Kind::Hours),
        ("free_of_capacity", Kind::Ratio),
        ("started", Kind::Count),
        ("median_wait_hours", Kind::Hours),
        ("p90_wait_hours", Kind::Hours),
    ];
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Section { name: "demand_by_model", table: cells::table("By model", &columns, rows), chart: None }
}

/// Columns: `queue month submitted asked_card_hours started median_wait_hours p90_wait_hours waiting`.
pub(super) fn by_queue(demands: &[Demand<'_>]) -> Section {
    let mut rows: Vec<(Option<&Name>, Vec<Value>)> = Vec::new();
    for demand in demands {
        for (queue, of) in &demand.queues {
            let mut row = vec![name(*queue), text(demand.month.to_string()), count(of.submitted), hours(of.asked)];
            row.push(count(of.waits.len()));
            row.extend([50, 90].map(|percent| wait(of.waits.percentile(percent))));
            row.push(count(of.waiting));
            rows.push((*queue, row));
        }
    }
    rows.sort_by_key(|(queue, _)| *queue);
    let columns = [
        ("queue", Kind::Text),
        ("month", Kind::Text),
        ("submitted", Kind::Count),
        ("asked_card_hours", Kind::Hours),
        ("started", Kind::Count),
        ("median_wait_hours", Kind::Hours),
        ("p90_wait_hours", Kind::Hours),
        ("waiting", Kind::Count),
    ];
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Section { name: "demand_by_queue", table: cells::table("By queue", &columns, rows), chart: None }
}
