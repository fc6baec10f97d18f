//! A small pool written as text, for the tests of everything that reads cells.

use crate::cell::Cell;
use crate::prices::PriceBook;
use crate::report::{CapacityCell, Report, ReportAttempt, ReportInput, ReportKind, ReportQuery, report};
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
        Self { attempts: Vec::new(), stretches: Vec::new(), capacity: Vec::new(), zone: Zone::UTC }
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
        }
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
        for stretch in &self.stretches {
            for (bucket, piece) in stretch.during.buckets() {
                let Some(slot) = slots.slot_of(bucket) else { continue };
                let card_time = CardTime::of(stretch.share, piece);
                let held = if stretch.state == CardState::Held { card_time } else { CardTime::ZERO };
                cells.push(Cell {
                    attempt: stretch.attempt,
                    state: stretch.state,
                    cluster: stretch.cluster.clone(),
                    pool: None,
                    node: stretch.node.clone(),
                    model: stretch.model.clone(),
                    mig_profile: None,
                    share: (stretch.share < CardShare::CARD).then_some(stretch.share),
                    reservation: None,
                    slot,
                    card_time,
                    billed_time: if stretch.is_billed { held } else { CardTime::ZERO },
                    unseen: held,
                    unproven: CardTime::ZERO,
                });
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
        ReportInput { attempts: self.attempts.clone(), cells, capacity, reservations: Vec::new() }
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
