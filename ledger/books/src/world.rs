//! A small pool written as text, for the tests of everything that reads cells.

use crate::cell::{Cell, SeenBy, UsageFigures};
use crate::prices::PriceBook;
use crate::report::{CapacityCell, Report, ReportAttempt, ReportInput, ReportKind, ReportQuery, report};
use crate::set_aside::SetAsides;
use crate::site::Reservation;
use crate::slots::Slots;
use crate::table::{Table, Value};
use cardhour_domain::{AttemptKey, CardShare, CardState, CardTime, Interval, JobState, Name, Timestamp, Zone};
use std::collections::BTreeMap;

/// Holdings and capacity as instants, before they are folded into cells.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub attempts: Vec<ReportAttempt>,
    pub stretches: Vec<Stretch>,
    pub capacity: Vec<Stretch>,
    pub zone: Zone,
    /// Reserved stretches are of those that are called `week`.
    pub reservations: Vec<Reservation>,
}

/// Some cards over some time.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub attempt: Option<u32>,
    pub state: CardState,
    pub cluster: Name,
    pub node: Option<Name>,
    pub model: Option<Name>,
    pub share: CardShare,
    pub during: Interval,
    pub is_billed: bool,
    /// What telemetry says of parts of it, in order of time; the rest is unseen.
    pub told: Vec<Told>,
}

/// What telemetry says of a stretch, over a part of its time.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub during: Interval,
    pub basis: Option<SeenBy>,
    /// How much of what is held was lost, idle, effective and underused; what is left is unseen. Unit: percent.
    pub percent: [i64; 4],
    /// What a whole card draws; none where nobody measures it.
    pub watts: Option<i64>,
}

pub(crate) fn at(text: &str) -> Timestamp {
    let text = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        _ => text.to_owned(),
    };
    Timestamp::parse_rfc3339(&text).unwrap()
}

pub(crate) fn range(from: &str, to: &str) -> Interval {
    Interval::new(at(from), at(to)).unwrap()
}

pub(crate) fn book(prices: &str) -> PriceBook {
    let text = format!("currency = \"USD\"\nzone = \"UTC\"\n{prices}");
    PriceBook::parse(&text).unwrap_or_else(|faults| panic!("{faults}")).unwrap()
}

impl World {
    pub fn new() -> Self {
        Self {
            attempts: Vec::new(),
            stretches: Vec::new(),
            capacity: Vec::new(),
            zone: Zone::UTC,
            reservations: Vec::new(),
        }
    }

    /// Jobs, a line each: `JOB ORG PROJECT USER QUEUE STATE MODEL NODE CARDS FROM TO`, `-` for what is absent, UTC; a job
    /// without FROM never started.
    pub fn jobs(text: &str) -> Self {
        let mut world = Self::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut fields = line.split_whitespace();
            let mut field = || fields.next().filter(|field| *field != "-").map(Name::from);
            let job = field().unwrap();
            let (org, project, user, queue) = (field(), field(), field(), field());
            let state = JobState::from_name(&field().unwrap()).unwrap();
            let (model, node) = (field(), field());
            let share = CardShare::from_decimal(field().unwrap().parse().unwrap()).unwrap();
            let during = field().zip(field()).map(|(from, to)| range(&from, &to));
            world.attempts.push(ReportAttempt {
                key: AttemptKey::new("c", &job, &format!("s{}", world.attempts.len())),
                cluster: "c".into(),
                org,
                project,
                user,
                queue,
                class: None,
                labels: BTreeMap::new(),
                state,
                cards_requested: Some(share),
                cards: share,
                submitted_at: Some(during.map_or(at("2026-03-01"), |during| during.start())),
                held: during,
            });
            let attempt = Some(world.attempts.len() as u32 - 1);
            if let Some(during) = during {
                let state = CardState::Held;
                world.stretches.push(Stretch {
                    attempt,
                    state,
                    cluster: "c".into(),
                    node,
                    model,
                    share,
                    during,
                    is_billed: true,
                    told: Vec::new(),
                });
            }
        }
        world
    }

    /// Time that nobody holds, or capacity: `CLUSTER NODE MODEL CARDS FROM TO`.
    pub fn stretch(state: CardState, line: &str) -> Stretch {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [cluster, node, model, cards, from, to] = fields[..] else { panic!("{line}") };
        let name = |field: &str| (field != "-").then(|| field.into());
        Stretch {
            attempt: None,
            state,
            cluster: cluster.into(),
            node: name(node),
            model: name(model),
            share: CardShare::from_decimal(cards.parse().unwrap()).unwrap(),
            during: range(from, to),
            is_billed: false,
            told: Vec::new(),
        }
    }

    /// What telemetry says of the jobs, a line each: `JOB FROM TO BASIS LOST IDLE EFFECTIVE UNDERUSED WATTS`, the four in percent of what is
    /// held in that time, watts those of a whole card; `-` for what is absent, `- -` for a job's whole time. What no line tells is unseen.
    pub fn seen(mut self, text: &str) -> Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [job, from, to, basis, lost, idle, effective, underused, watts] = fields[..] else { panic!("{line}") };
            let number = |field: &str| (field != "-").then(|| field.parse::<i64>().unwrap());
            let is_of = |stretch: &&mut Stretch| {
                let attempt = stretch.attempt.map(|attempt| &self.attempts[attempt as usize]);
                attempt.is_some_and(|attempt| attempt.key.job() == AttemptKey::new("c", job, "").job())
            };
            let stretch = self.stretches.iter_mut().find(is_of).unwrap_or_else(|| panic!("no job {job}"));
            stretch.told.push(Told {
                during: if from == "-" { stretch.during } else { range(from, to) },
                basis: (basis != "-").then(|| SeenBy::from_name(basis).unwrap_or_else(|| panic!("{line}"))),
                percent: [lost, idle, effective, underused].map(|field| number(field).unwrap_or(0)),
                watts: number(watts),
            });
        }
        self
    }

    /// From the first instant of anything to the last.
    pub fn all(&self) -> Interval {
        let spans = || self.stretches.iter().chain(&self.capacity).map(|stretch| stretch.during);
        let start = spans().map(Interval::start).min().unwrap_or(at("2026-03-01"));
        Interval::new(start, spans().map(Interval::end).max().unwrap_or(at("2026-03-02"))).unwrap()
    }

    /// One cell a bucket: what a report has to be given, cut as finely as it can be.
    pub fn input(&self, slots: &Slots) -> ReportInput {
        let mut cells = Vec::new();
        let (set_asides, week) = (SetAsides::of(&self.reservations, 0), Name::from("week"));
        for stretch in &self.stretches {
            for (bucket, piece, told) in stretch.pieces() {
                let Some(slot) = slots.slot_of(bucket) else { continue };
                let is_reserved = stretch.state == CardState::Reserved;
                let mut cell = Cell {
                    attempt: stretch.attempt,
                    state: stretch.state,
                    cluster: stretch.cluster.clone(),
                    pool: None,
                    node: stretch.node.clone(),
                    model: stretch.model.clone(),
                    mig_profile: None,
                    share: (stretch.share < CardShare::CARD).then_some(stretch.share),
                    reservation: is_reserved.then(|| week.clone()),
                    set_aside: is_reserved.then(|| set_asides.at(&stretch.cluster, &week, bucket)).flatten(),
                    slot,
                    card_time: CardTime::ZERO,
                    billed_time: CardTime::ZERO,
                    unseen: CardTime::ZERO,
                    unproven: CardTime::ZERO,
                    used: None,
                };
                cell.add(&stretch.figures(piece, told));
                cells.push(cell);
            }
        }
        let mut capacity = Vec::new();
        for stretch in &self.capacity {
            for (bucket, piece) in stretch.during.buckets() {
                let Some(slot) = slots.slot_of(bucket) else { continue };
                capacity.push(CapacityCell {
                    cluster: stretch.cluster.clone(),
                    pool: None,
                    node: stretch.node.clone(),
                    model: stretch.model.clone(),
                    slot,
                    card_time: CardTime::of(stretch.share, piece),
                });
            }
        }
        ReportInput { attempts: self.attempts.clone(), cells, capacity, reservations: self.reservations.clone() }
    }

    pub fn report(&self, book: Option<&PriceBook>, query: &ReportQuery) -> Report {
        let slots = query.slots(self.all(), book, self.zone).unwrap();
        report(&self.input(&slots), &slots, book, query)
    }

    /// The bill by some names.
    pub fn bill(&self, book: &PriceBook, by: &str) -> Table {
        self.report(Some(book), &query(ReportKind::Bill, by)).table
    }
}

impl Stretch {
    /// Its buckets, cut where telemetry begins or ends, each with what that says.
    fn pieces(&self) -> Vec<(Timestamp, Interval, Option<&Told>)> {
        let mut spans: Vec<(Interval, Option<&Told>)> = Vec::new();
        let mut from = self.during.start();
        for told in &self.told {
            let during = told.during.overlap(self.during).expect("telemetry of the time it is held");
            spans.extend(Interval::new(from, during.start()).map(|gap| (gap, None)));
            spans.push((during, Some(told)));
            from = during.end();
        }
        spans.extend(Interval::new(from, self.during.end()).map(|gap| (gap, None)));
        let buckets = |(span, told): (Interval, _)| span.buckets().map(move |(bucket, piece)| (bucket, piece, told));
        spans.into_iter().flat_map(buckets).collect()
    }

    /// The row of usage for a piece of it.
    fn figures(&self, piece: Interval, told: Option<&Told>) -> UsageFigures {
        let card_time = CardTime::of(self.share, piece);
        let held = if self.state == CardState::Held { card_time } else { CardTime::ZERO };
        let percent = told.map_or([0; 4], |told| told.percent);
        let [lost, idle, effective, underused] =
            percent.map(|percent| CardTime::from_part_ms(held.part_ms() * i128::from(percent) / 100));
        // Watts × milliseconds are millijoules.
        let energy = |watts: i64| {
            let whole_card = i128::from(CardShare::PARTS_PER_CARD);
            i64::try_from(i128::from(watts) * card_time.part_ms() / whole_card).unwrap()
        };
        UsageFigures {
            card_time,
            billed_time: if self.is_billed { held } else { CardTime::ZERO },
            unseen: held - (lost + idle + effective + underused),
            lost,
            idle,
            effective,
            underused,
            use_basis: told.and_then(|told| told.basis),
            energy_mj: told.and_then(|told| told.watts).map(energy),
        }
    }
}

pub(crate) fn query(report: ReportKind, by: &str) -> ReportQuery {
    let by = crate::report::Dimension::parse_list(by).unwrap();
    ReportQuery { report, by, range: None, zone: None }
}

/// Some columns of a table as text: a line a row, then the total after a line of dashes.
pub(crate) fn show(table: &Table, columns: &str) -> String {
    let wanted: Vec<usize> = columns
        .split_whitespace()
        .map(|name| {
            table.columns.iter().position(|column| column.name == name).unwrap_or_else(|| panic!("no column {name}"))
        })
        .collect();
    let line = |row: &Vec<Value>| wanted.iter().map(|&i| value(&row[i])).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = table.rows.iter().map(line).collect();
    if let Some(total) = &table.total {
        lines.push("--".to_owned());
        lines.push(line(total));
    }
    lines.join("\n")
}

fn value(value: &Value) -> String {
    match value {
        Value::Absent => "-".to_owned(),
        Value::Text(text) => text.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Decimal(number) => number.to_string(),
    }
}

/// Compares with lines that may be indented.
#[track_caller]
pub(crate) fn check(table: &Table, columns: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(show(table, columns), expected.join("\n"), "{columns}");
}
