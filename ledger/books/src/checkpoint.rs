//! The checkpoint reports: what a platform's owners look at each week and each month (design §8, `report weekly`, `report monthly`).
//!
//! | report | answers |
//! |---|---|
//! | weekly | how long jobs waited, how busy their cards were, who uses little, what preemption and failures cost, which free cards nobody could take, how evenly services answered, what it all cost |
//! | monthly | whether more was wanted than there is, or only in one place: growth, or a local jam |
//!
//! A report is a few titled [`Section`]s, each a [`Table`] of its own; what a chart shows is one column of its table. Everything comes from the same cells,
//! leaves and attempts as every other report, so that hours and money are the bill's: the cost of a week is the total of `report bill` of its days.
//!
//! Start at [`weekly()`] and [`monthly()`]. Does not: load anything, draw anything, decide by quotas.

pub(crate) mod cells;
mod demand;
pub(crate) mod facts;
mod failures;
mod fragments;
pub mod jitter;
mod low_use;
mod model_fit;
mod preemption;
pub(crate) mod quota_use;
mod trend;
mod utilisation;
mod verdict;
mod wait;
mod week;

pub use verdict::{Cause, Verdict};
pub use week::{Days, Week, WeekError};

use crate::bill::{Hole, describe_holes};
use crate::prices::PriceBook;
use crate::quotas::Quotas;
use crate::report::{ReportInput, local};
use crate::slots::{Slots, SlotsError, ViewCut};
use crate::table::{Table, Value};
use cardhour_domain::{Interval, Month, Timestamp, Zone};
use facts::Facts;

/// How many weeks the cost trend has, the last one the report's own.
const WEEKS: u32 = 8;
/// How many months the monthly report sets side by side.
const MONTHS: usize = 3;

/// A checkpoint report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// What it is: `weekly checkpoint, 2026-W20, Asia/Shanghai`.
    pub title: String,
    /// What it comes to, in sentences.
    pub summary: Vec<String>,
    /// Its sections, in the order in which people read them.
    pub sections: Vec<Section>,
    /// Sentences for people: what could not be told and why, holes in the price book.
    pub notes: Vec<String>,
    /// Whether some of the held time has no price.
    pub has_holes: bool,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name for programs: `queue_wait_by_queue`. Stability: never renamed.
    pub name: &'static str,
    /// Its figures; the title is for people.
    pub table: Table,
    /// What of it is drawn; none where a drawing would say no more.
    pub chart: Option<Chart>,
}

/// What of a section's table is drawn: one value a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chart {
    /// How.
    pub shape: Shape,
    /// The column that names the rows.
    pub label: usize,
    /// The column that is drawn.
    pub value: usize,
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A bar a row: what is compared.
    Bars,
    /// Two bars a row, that of another column first: what is compared with what.
    Pairs {
        /// The other column.
        beside: usize,
    },
    /// A line through the rows: what goes on in time.
    Line,
}

/// What a checkpoint is made of, loaded.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// What the books hold, numbered by `slots`.
    pub input: &'a ReportInput,
    /// Those of [`weekly_slots`] or [`monthly_slots`].
    pub slots: &'a Slots,
    /// The price book, where there is one; of several currencies, each section tells them apart.
    pub book: Option<&'a PriceBook>,
    /// The time that the books speak of.
    pub all: Interval,
}

/// The slots that a weekly report of `week` has to be given: the days of its weeks. Errors: as [`Slots::new`].
pub fn weekly_slots(week: Week, book: Option<&PriceBook>, zone: Zone) -> Result<Slots, SlotsError> {
    let days = Days { first: week.days().first - chrono::Days::new(7 * u64::from(WEEKS - 1)), end: week.days().end };
    by_day(days, book, zone)
}

/// The slots that a monthly report of `month` has to be given: the days of its months. Errors: as [`Slots::new`].
pub fn monthly_slots(month: Month, book: Option<&PriceBook>, zone: Zone) -> Result<Slots, SlotsError> {
    let months = months(month);
    by_day(Days { first: months[0].first_date(), end: month.next().first_date() }, book, zone)
}

fn by_day(days: Days, book: Option<&PriceBook>, zone: Zone) -> Result<Slots, SlotsError> {
    Slots::new(days.interval(zone), book, zone, Some(ViewCut { zone, by_day: true, by_month: false }))
}

/// The months that a monthly report sets side by side, the report's own last.
fn months(month: Month) -> Vec<Month> {
    let mut months = vec![month];
    while months.len() < MONTHS {
        let before = months[0].first_date() - chrono::Days::new(1);
        months.insert(0, Month::parse(&before.format("%Y-%m").to_string()).expect("the month of a date"));
    }
    months
}

/// The checkpoint of a week; how `quotas` of cards were used is in it where there are some.
pub fn weekly(sources: Sources<'_>, quotas: &Quotas, week: Week) -> Checkpoint {
    let books = by_currency(sources.book);
    let all = facts_of_each(sources, &books);
    // Prices of the week's own sections are those in force at its end.
    let last = Timestamp::from_unix_ms(week.days().interval(sources.slots.view_zone()).end().unix_ms() - 1);
    let facts = of_currency(&all, sources.book, last);
    let zone = facts.zone();
    let days = week.days();
    let mut notes = partly_known(sources.all, days, zone, "week");
    let waits = facts.waits(days);
    let mut sections = vec![wait::by_queue(facts, &waits, days), wait::by_cards(facts, &waits, days)];
    let held = facts.held(days);
    sections.push(utilisation::section(&held));
    sections.push(low_use::section(facts, &held));
    sections.push(preemption::section(facts, &held, days));
    sections.push(failures::section(facts, &held, days));
    match fragments::section(facts, days) {
        Ok(section) => sections.push(section),
        Err(reason) => notes.push(format!("idle fragments are left out: {reason}")),
    }
    sections.push(model_fit::section(facts, &held));
    if let Some(known) = days.interval(zone).overlap(sources.all) {
        sections.extend(quota_use::section(facts, quotas, known));
    }
    sections.push(trend::section(&all, week, WEEKS, sources.all));
    if sources.book.is_none() {
        notes.push("no price book: hours without money".to_owned());
    }
    let holes: Vec<Hole> = all.iter().flat_map(|facts| facts.holes()).cloned().collect();
    notes.extend(describe_holes(&holes));
    let summary = vec![trend::sentence(&all, week), wait::sentence(&waits), utilisation::sentence(&held)];
    Checkpoint {
        title: format!("weekly checkpoint, {week}, {zone}"),
        summary,
        sections,
        notes,
        has_holes: !holes.is_empty(),
    }
}

/// The checkpoint of a month: what was wanted, what was held, what was free, and [`Verdict`] on it.
pub fn monthly(sources: Sources<'_>, month: Month) -> Checkpoint {
    let books = by_currency(sources.book);
    let all = facts_of_each(sources, &books);
    let zone = sources.slots.view_zone();
    let months = months(month);
    let in_its_own =
        |month: &Month| demand::Demand::of(of_currency(&all, sources.book, month.interval(zone).start()), *month);
    let demands: Vec<demand::Demand<'_>> = months.iter().map(in_its_own).collect();
    let verdict = Verdict::of(&demands);
    let mut notes = partly_known(sources.all, Days::of_month(month), zone, "month");
    if sources.book.is_none() {
        notes.push("no price book: hours without money".to_owned());
    }
    let holes: Vec<Hole> = all.iter().flat_map(|facts| facts.holes()).cloned().collect();
    notes.extend(describe_holes(&holes));
    Checkpoint {
        title: format!("monthly checkpoint, {month}, {zone}"),
        summary: vec![verdict.to_string()],
        sections: vec![
            demand::months(zone, &demands, sources.all),
            demand::by_model(&demands),
            demand::by_queue(&demands),
        ],
        notes,
        has_holes: !holes.is_empty(),
    }
}

/// How quotas of cards were used in `known`, as the weekly report has it; none without such quotas.
pub fn quota_use(sources: Sources<'_>, quotas: &Quotas, known: Interval) -> Option<Section> {
    quota_use::section(&Facts::of(Sources { book: None, ..sources }), quotas, known)
}

/// How well jobs' cards fitted them in some days, as the weekly report has it, without prices.
pub fn model_fit(sources: Sources<'_>, days: Days) -> Section {
    let facts = Facts::of(Sources { book: None, ..sources });
    model_fit::section(&facts, &facts.held(days))
}

/// How long jobs waited in some days, and what it cost that some had to give way, as the weekly report has it.
pub fn queues(sources: Sources<'_>, days: Days) -> Checkpoint {
    let facts = Facts::of(Sources { book: None, ..sources });
    let (waits, held) = (facts.waits(days), facts.held(days));
    let mut sections = vec![wait::by_queue(&facts, &waits, days), wait::by_cards(&facts, &waits, days)];
    sections.push(preemption::section(&facts, &held, days));
    let mut notes = Vec::new();
    match fragments::section(&facts, days) {
        Ok(section) => sections.push(section),
        Err(reason) => notes.push(format!("idle fragments are left out: {reason}")),
    }
    Checkpoint { title: String::new(), summary: vec![wait::sentence(&waits)], sections, notes, has_holes: false }
}

/// A price book for each currency in which something has a price, in the order in which they came into force; none without a book.
fn by_currency(book: Option<&PriceBook>) -> Vec<PriceBook> {
    let Some(book) = book else { return Vec::new() };
    book.currencies().into_iter().map(|currency| book.only(currency)).collect()
}

/// The facts with the prices of each of some books; without any, the facts without prices.
fn facts_of_each<'a>(sources: Sources<'a>, books: &'a [PriceBook]) -> Vec<Facts<'a>> {
    match books {
        [] => vec![Facts::of(sources)],
        books => books.iter().map(|book| Facts::of(Sources { book: Some(book), ..sources })).collect(),
    }
}

/// Of the facts in each currency those in the one that is in force at `at`.
fn of_currency<'f, 'a>(all: &'f [Facts<'a>], book: Option<&PriceBook>, at: Timestamp) -> &'f Facts<'a> {
    let currency = book.map(|book| book.currency_at(Some(at)));
    all.iter().find(|facts| facts.currency() == currency).unwrap_or(&all[all.len() - 1])
}

/// What has to be said where the books speak of a part of the time only.
fn partly_known(all: Interval, days: Days, zone: Zone, what: &str) -> Vec<String> {
    let during = days.interval(zone);
    match during.overlap(all) {
        Some(known) if known == during => Vec::new(),
        Some(known) => vec![format!(
            "partial: of this {what} the books speak from {} to {} only",
            local(zone, known.start()),
            local(zone, known.end())
        )],
        None => vec![format!("the books do not speak of this {what}")],
    }
}

impl Checkpoint {
    /// All figures as one table, for programs that take one: a row for each value there is.
    ///
    /// Columns: `section row column value`; rows are counted from 1 inside a section, a total isn't among them; values are texts with all their digits.
    pub fn flat(&self) -> Table {
        let mut rows = Vec::new();
        for section in &self.sections {
            for (number, row) in (1u64..).zip(&section.table.rows) {
                for (column, value) in section.table.columns.iter().zip(row) {
                    let text = match value {
                        Value::Absent => continue,
                        Value::Text(text) => text.clone(),
                        Value::Count(count) => count.to_string().into(),
                        Value::Decimal(decimal) => decimal.to_string().into(),
                    };
                    rows.push(vec![
                        Value::Text(section.name.into()),
                        Value::Count(number),
                        Value::Text(column.name.as_str().into()),
                        Value::Text(text),
                    ]);
                }
            }
        }
        let kinds = [
            ("section", crate::table::Kind::Text),
            ("row", crate::table::Kind::Count),
            ("column", crate::table::Kind::Text),
            ("value", crate::table::Kind::Text),
        ];
        let notes = self.summary.iter().chain(&self.notes).cloned().collect();
        Table { notes, ..cells::table(&self.title, &kinds, rows) }
    }
}

#[cfg(test)]
mod tests;
