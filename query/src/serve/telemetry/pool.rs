//! The pool's figures, from the same reports that people read.

use crate::books::Books;
use crate::clock::now;
use crate::error::{Error, chain};
use crate::request::{Moment, ReportRequest, Span};
use crate::serve::row::{Row, rows};
use crate::serve::stack::PARTS;
use cardhour_books::budgets::Standing;
use cardhour_books::report::{Dimension, ReportKind};
use cardhour_books::table::Table;
use cardhour_decisions::decision::{Decision, DecisionKind};
use cardhour_decisions::summed::sums;
use cardhour_domain::{CardShare, CardTime, Month, Timestamp};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use tracing::warn;

/// Projects that have series of their own; what is held beyond them is under [`OTHER`], so that series stay bounded.
const MOST_PROJECTS: usize = 200;
/// Budgets that have series: those of which most was spent.
const MOST_BUDGETS: usize = 200;
/// The owner of what has no series of its own.
pub const OTHER: &str = "(other)";
/// What an absent org or project is called, as people are shown it: an empty label is none at all to Prometheus, and no filter of a board finds it.
pub const NONE: &str = "(none)";
/// Letters of a label's value.
const MOST_LETTERS: usize = 128;
/// Over how long a mean of cards is taken. Unit: milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// Where held time went, and the column that has it.
const WENT: [(&str, &str); 5] = [
    ("effective", "effective_card_hours"),
    ("underused", "underused_card_hours"),
    ("idle", "idle_card_hours"),
    ("lost", "lost_card_hours"),
    ("unseen", "unseen_card_hours"),
];

/// A project's month.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Project {
    /// Where its held card-hours went; what nobody knows is absent.
    pub went: BTreeMap<&'static str, Decimal>,
    /// What it costs, by currency.
    pub cost: BTreeMap<String, Decimal>,
}

/// The pool's figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// Card-hours of each state over all the time the books cover.
    pub card_hours: Vec<(&'static str, Decimal)>,
    /// Cards in each state, over the last hour of the books.
    pub cards: Vec<(&'static str, Decimal)>,
    /// Where held card-hours went, over all the time.
    pub went: Vec<(&'static str, Decimal)>,
    /// Energy of what was held, over all the time. Unit: kWh.
    pub energy_kwh: Option<Decimal>,
    /// Of held time, what is proven, and what was seen.
    pub coverage: [Option<Decimal>; 2],
    /// Attempts that run and that wait.
    pub attempts: Vec<(&'static str, Decimal)>,
    /// The last moment that the books speak of.
    pub as_of: Option<Timestamp>,
    /// The last month in the books, when it began.
    pub month_start: Option<Timestamp>,
    /// What that month cost, by currency.
    pub month_cost: Vec<(String, Decimal)>,
    /// Of each budget that holds now, spent ÷ limit and forecast ÷ limit, where they can be said; none where budgets can't be read.
    pub budgets: Vec<(String, [Option<Decimal>; 2])>,
    /// Decisions by kind, mode and outcome.
    pub decisions: Vec<([&'static str; 3], u64)>,
    /// Card-hours that decisions recovered, by mode: in others than `act` what they would have.
    pub recovered: Vec<(&'static str, Decimal)>,
    /// That month by org and project.
    pub projects: BTreeMap<(String, String), Project>,
}

impl Pool {
    /// As the books have them. Errors: the books' own.
    pub async fn of(books: &Books) -> Result<Self, Error> {
        let report = async |request: ReportRequest| books.report(&request).await.map(|reported| reported.table);
        let one_row = |kind| ReportRequest::new(kind).grouped_by(&[]);
        let mut pool = Self::default();
        pool.decided(&books.ledger().decisions(None).await?);
        let Some(all) = books.extent().await? else { return Ok(pool) };
        pool.as_of = Some(all.end());
        pool.card_hours = parts(&report(one_row(ReportKind::Capacity)).await?, &PARTS);
        let hour = |at: i64| Some(Moment::Instant(Timestamp::from_unix_ms(at)));
        let to = all.end().bucket_start().unix_ms();
        let last_hour = Span::Between { from: hour(to - HOUR_MS), to: hour(to) };
        // Card-hours of one hour are cards.
        pool.cards = parts(&report(ReportRequest { span: last_hour, ..one_row(ReportKind::Capacity) }).await?, &PARTS);
        let usage = report(one_row(ReportKind::Usage)).await?;
        pool.went = parts(&usage, &WENT);
        let only = rows(&usage).next();
        let figure = |column| only.and_then(|row: Row<'_>| row.decimal(column));
        pool.energy_kwh = figure("energy_kwh");
        pool.coverage = [figure("coverage"), figure("use_coverage")];
        let by_state = report(one_row(ReportKind::Usage).grouped_by(&[Dimension::State])).await?;
        pool.attempts = ["running", "pending"].map(|state| (state, attempts(&by_state, state))).to_vec();
        let by_month = report(one_row(ReportKind::Bill).grouped_by(&[Dimension::Month])).await?;
        let last = rows(&by_month).filter_map(|row| row.text("month")).max();
        pool.month_cost = costs(&by_month, last);
        if let Some(month) = last.and_then(|last| Month::parse(last).ok()) {
            pool.month_start = Some(month.interval(books.zone()).start());
            let by = [Dimension::Org, Dimension::Project];
            let of_month = |kind| one_row(kind).of_month(month).grouped_by(&by);
            pool.projects =
                projects(&report(of_month(ReportKind::Usage)).await?, &report(of_month(ReportKind::Bill)).await?);
        }
        // A slip in budgets.toml is told to whoever asks for budgets; it takes no other figure along.
        match books.budgets(now()).await {
            Ok(stand) => pool.budgets = budgets(&stand.standings),
            Err(error) => warn!(error = chain(&error), "no figures of budgets"),
        }
        Ok(pool)
    }

    fn decided(&mut self, decisions: &[Decision]) {
        let mut recovered: BTreeMap<&'static str, i128> = BTreeMap::new();
        for ((kind, mode, outcome), sum) in sums(decisions) {
            self.decisions.push(([kind.name(), mode.name(), outcome], sum.decisions));
            if kind == DecisionKind::Reclaim {
                *recovered.entry(mode.name()).or_default() += sum.recovered_card_ms;
            }
        }
        let time = |card_ms: i128| CardTime::from_part_ms(card_ms * i128::from(CardShare::PARTS_PER_CARD));
        self.recovered = recovered.into_iter().map(|(mode, card_ms)| (mode, time(card_ms).card_hours())).collect();
    }
}

/// The ratios of those budgets of which most was spent, by name.
fn budgets(standings: &[Standing]) -> Vec<(String, [Option<Decimal>; 2])> {
    let mut by_ratio: Vec<&Standing> = standings.iter().collect();
    by_ratio.sort_by_key(|standing| std::cmp::Reverse(standing.ratio()));
    let label = |name: &str| name.chars().take(MOST_LETTERS).collect();
    let of = |standing: &Standing| (label(&standing.budget.name), [standing.ratio(), standing.forecast_ratio()]);
    by_ratio.into_iter().take(MOST_BUDGETS).map(of).collect()
}

/// The columns of a report of one row that it has.
fn parts(table: &Table, columns: &[(&'static str, &str)]) -> Vec<(&'static str, Decimal)> {
    let of = |(name, column): &(&'static str, &str)| {
        let hours: Vec<Decimal> = rows(table).filter_map(|row| row.decimal(column)).collect();
        (!hours.is_empty()).then(|| (*name, hours.into_iter().sum()))
    };
    columns.iter().filter_map(of).collect()
}

fn attempts(by_state: &Table, state: &str) -> Decimal {
    rows(by_state).filter(|row| row.text("state") == Some(state)).filter_map(|row| row.decimal("attempts")).sum()
}

/// Costs of a month, by currency.
fn costs(by_month: &Table, month: Option<&str>) -> Vec<(String, Decimal)> {
    let of_month = rows(by_month).filter(|row| row.text("month") == month);
    of_month.filter_map(|row| Some((row.text("currency")?.to_owned(), row.decimal("cost")?))).collect()
}

/// By org and project: those that held most have their own, the rest is together.
fn projects(usage: &Table, bill: &Table) -> BTreeMap<(String, String), Project> {
    let label = |row: &Row<'_>, column| row.text(column).unwrap_or(NONE).chars().take(MOST_LETTERS).collect::<String>();
    let owner = |row: &Row<'_>| (label(row, "org"), label(row, "project"));
    let mut by_held: Vec<Row<'_>> = rows(usage).collect();
    by_held.sort_by_key(|row| (std::cmp::Reverse(row.decimal("card_hours")), owner(row)));
    let shown: Vec<(String, String)> = by_held.iter().take(MOST_PROJECTS).map(owner).collect();
    let place = |row: &Row<'_>| {
        let owner = owner(row);
        if shown.contains(&owner) { owner } else { (OTHER.to_owned(), OTHER.to_owned()) }
    };
    let mut projects: BTreeMap<(String, String), Project> = BTreeMap::new();
    for row in by_held {
        let project = projects.entry(place(&row)).or_default();
        for (went, column) in WENT {
            if let Some(hours) = row.decimal(column) {
                *project.went.entry(went).or_default() += hours;
            }
        }
    }
    for row in rows(bill) {
        if let (Some(currency), Some(cost)) = (row.text("currency"), row.decimal("cost")) {
            let project = projects.entry(place(&row)).or_default();
            *project.cost.entry(currency.to_owned()).or_default() += cost;
        }
    }
    projects
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::sample;
    use cardhour_books::table::{Column, Kind, Value};

    /// Usage by org and project: held and idle card-hours, nothing known of the rest.
    fn usage(lines: &[(&str, &str, i64, Option<i64>)]) -> Table {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let hours = |hours: i64| Value::Decimal(Decimal::new(hours, 0));
        let columns = ["card_hours", "unseen_card_hours", "idle_card_hours"].map(|name| column(name, Kind::Hours));
        Table {
            columns: [vec![column("org", Kind::Text), column("project", Kind::Text)], columns.to_vec()].concat(),
            rows: lines
                .iter()
                .map(|(org, project, held, idle)| {
                    let unseen = held - idle.unwrap_or(0);
                    let names = [org, project].map(|name| Value::Text((**name).into()));
                    let figures = [hours(*held), hours(unseen), idle.map_or(Value::Absent, hours)];
                    names.into_iter().chain(figures).collect()
                })
                .collect(),
            ..Table::default()
        }
    }

    /// By hand: 210 projects that held 1 to 210 hours; the ten smallest, 1 + … + 10 = 55 hours, are together.
    #[test]
    fn projects_beyond_the_bound_are_together_and_nothing_is_lost() {
        let names: Vec<String> = (1..=210).map(|n| format!("p{n}")).collect();
        let lines: Vec<_> = names.iter().zip(1..).map(|(name, held)| ("lab", name.as_str(), held, None)).collect();
        let made = projects(&usage(&lines), &Table::default());
        assert_eq!(made.len(), MOST_PROJECTS + 1);
        let other = &made[&(OTHER.to_owned(), OTHER.to_owned())];
        assert_eq!(other.went["unseen"], Decimal::from(55));
        assert!(made.contains_key(&("lab".to_owned(), "p11".to_owned())));
        let sum: Decimal = made.values().map(|project| project.went["unseen"]).sum();
        assert_eq!(sum, Decimal::from(210 * 211 / 2));
    }

    #[test]
    fn what_nobody_saw_has_no_series_and_costs_stand_beside_hours() {
        let usage = usage(&[("lab", "vision", 60, Some(20)), ("lab", "speech", 40, None)]);
        let bill = sample::bill(&["org", "project"], &[(&["lab", "speech"], 40, 74_000)]);
        let made = projects(&usage, &bill);
        let of = |project: &str| &made[&("lab".to_owned(), project.to_owned())];
        assert_eq!((of("vision").went["idle"], of("vision").went["unseen"]), (Decimal::from(20), Decimal::from(40)));
        assert!(!of("speech").went.contains_key("idle"));
        assert_eq!(of("speech").cost["CNY"], Decimal::from(740));
    }
}
