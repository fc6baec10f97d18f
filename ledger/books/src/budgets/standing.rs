//! How budgets stand: what was spent of each, what is left, and where it will end.
//!
//! **Forecast.** What was spent, and for the rest of the period the pace of the last seven days in the books. Seven days hold each day of the week once, so that
//! nights and weekends count as they are; a job that began or ended last week shows at once; and on the first of a period the pace is that of the week
//! before, where spent ÷ elapsed would blow the first hours up to a month. What it can't know: work that hasn't begun.

use super::{Budget, Budgets, Period, Unit};
use crate::bill::Hole;
use crate::prices::PriceBook;
use crate::report::{Dimension, Fold, ReportInput, ReportKind, ReportQuery};
use crate::slots::{Era, Slots};
use crate::statement::GivenBack;
use crate::table::Value;
use cardhour_domain::{BUCKET_MS, Currency, Interval, Month, Timestamp, Zone};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// Over how much time before the end of the books a pace is taken. Unit: milliseconds, seven days.
const PACE_MS: i64 = 7 * 24 * 3_600_000;

/// The time that a question about budgets has to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// The month that is asked about, by which each budget finds its period.
    pub month: Month,
    /// Up to when the books speak of what was asked: its end, or theirs.
    pub until: Timestamp,
    /// From the start of the first period that counts: whole months, unless the books go on after what was asked.
    pub spent: Interval,
    /// The last seven days before [`Self::until`], as far as the books reach back; none where they don't.
    pub pace: Option<Interval>,
}

impl Budgets {
    /// What has to be loaded to say how the budgets stand just before `asked`, of books that hold `all`.
    ///
    /// Shape: on quarter hours. None where no budget holds then, or where nothing can be cut.
    pub fn spans(&self, asked: Timestamp, all: Interval, zone: Zone) -> Option<Spans> {
        let before = |at: Timestamp| Timestamp::from_unix_ms(at.unix_ms() - 1);
        let month = zone.month(before(asked))?;
        let books_end = before(all.end()).bucket_start().checked_add_ms(BUCKET_MS)?;
        let periods = self.budgets.iter().filter_map(|budget| Some((budget, self.period(budget, month)?)));
        let (mut first, mut end): (Option<Month>, Option<Month>) = (None, None);
        for (budget, period) in periods {
            let start = budget.from.filter(|_| budget.carry_over).unwrap_or(period.first());
            first = Some(first.map_or(start, |first| first.min(start)));
            end = Some(end.map_or(period.end(), |end| end.max(period.end())));
        }
        let start = first?.interval(zone).start();
        let until = asked.bucket_start().min(books_end);
        // Where the books go on, what comes after isn't to count; where they don't, months stay whole, and their amounts those of the bill.
        let end = if asked < books_end { until } else { end?.interval(zone).start() };
        let pace_start = Timestamp::from_unix_ms(until.unix_ms() - PACE_MS).max(all.start().bucket_start());
        Some(Spans { month, until, spent: Interval::new(start, end)?, pace: Interval::new(pace_start, until) })
    }
}

/// A stretch of the books: what a report of it reads.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Numbered by `slots`.
    pub input: &'a ReportInput,
    /// Those of [`Evidence::slots`] for the stretch.
    pub slots: &'a Slots,
}

impl Evidence<'_> {
    /// The slots of a stretch. Errors: as [`Slots::new`].
    pub fn slots(stretch: Interval, book: Option<&PriceBook>, zone: Zone) -> Result<Slots, crate::slots::SlotsError> {
        query(stretch, Vec::new()).slots(stretch, book, zone)
    }
}

/// How one budget stands in one period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The budget.
    pub budget: Budget,
    /// Its period.
    pub period: Period,
    /// What earlier periods left over, below zero where they overspent; none of a budget that carries nothing over.
    pub carried: Option<i128>,
    /// How much there is for this period, what is carried over included; below zero where more than that is owed. Unit: as [`Unit`] says.
    pub limit: i128,
    /// What was spent, refunds taken off; none for money without a price book (LED-3).
    pub spent: Option<i128>,
    /// What refunds took off `spent`: below zero, or zero where there were none.
    pub refunded: i128,
    /// What will have been spent at the period's end, at the pace of the last seven days; none where nobody can say.
    pub forecast: Option<i128>,
    /// What else was spent in its period, of which a budget of one currency knows nothing: amounts in other currencies, never summed. None of a budget of
    /// card-hours, which counts them whatever they cost in.
    pub not_counted: Vec<(Currency, i128)>,
    /// When the limit will be reached at that pace; none where it won't be in this period, or is already.
    pub runs_out_at: Option<Timestamp>,
    /// The thresholds that are reached, in order. Unit: percent.
    pub crossed: Vec<u32>,
}

impl Standing {
    /// What is left, below zero where more was spent.
    pub fn left(&self) -> Option<i128> {
        Some(self.limit - self.spent?)
    }

    /// Spent ÷ limit, six decimals; none where there is no limit left to divide by.
    pub fn ratio(&self) -> Option<Decimal> {
        ratio(self.spent?, self.limit)
    }

    /// Forecast ÷ limit, as [`Self::ratio`].
    pub fn forecast_ratio(&self) -> Option<Decimal> {
        ratio(self.forecast?, self.limit)
    }

    /// Whether more was spent than there is.
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left < 0)
    }
}

fn ratio(part: i128, whole: i128) -> Option<Decimal> {
    if whole <= 0 {
        return None;
    }
    let millionths = i64::try_from(divided(part.checked_mul(1_000_000)?, whole)).unwrap_or(i64::MAX);
    Some(Decimal::from_i128_with_scale(millionths.into(), 6))
}

/// `numerator` ÷ `denominator` to the nearest, halves up; `denominator` is above zero.
fn divided(numerator: i128, denominator: i128) -> i128 {
    (numerator + denominator / 2).div_euclid(denominator)
}

/// How all budgets stand that hold in the month of `spans`, in the order of the file; with what could not be priced.
///
/// `spent` and `pace` are the books of [`Spans::spent`] and [`Spans::pace`]; `given_back` what refunds give back in the former, which comes off; `book` may be put together of several currencies, of which a budget of money counts
/// its own.
pub fn standings(
    budgets: &Budgets,
    spans: &Spans,
    spent: Evidence<'_>,
    pace: Option<Evidence<'_>>,
    given_back: &[GivenBack],
    book: Option<&PriceBook>,
) -> (Vec<Standing>, Vec<Hole>) {
    // Budgets that select by the same names read the same report: money is spread over its rows, so that a budget has to the last
    // millionth what that report says.
    let mut reports: BTreeMap<String, Rows> = BTreeMap::new();
    let mut holes = Vec::new();
    let mut out = Vec::new();
    for budget in &budgets.budgets {
        let Some(period) = budgets.period(budget, spans.month) else { continue };
        let by = budget.scope.dimensions();
        let name = by.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let rows = reports.entry(name).or_insert_with(|| {
            let mut rows = Rows { spent: Vec::new(), given_back: Vec::new(), pace: Vec::new() };
            let mut by_month = by.clone();
            by_month.push(Dimension::Month);
            let fold = Fold::of(spent.input, spent.slots, book, &query(spans.spent, by_month));
            rows.spent = rows_of(&fold, true, book);
            rows.given_back = given_back.iter().map(|given| given_row(given, &by)).collect();
            holes.clone_from(&fold.leaves.holes);
            if let Some((pace, stretch)) = pace.zip(spans.pace) {
                rows.pace = rows_of(&Fold::of(pace.input, pace.slots, book, &query(stretch, by)), false, book);
            }
            rows
        });
        out.push(standing(budget, period, spans, rows, book, spent.slots.billing_zone()));
    }
    (out, holes)
}

fn query(stretch: Interval, by: Vec<Dimension>) -> ReportQuery {
    ReportQuery { report: ReportKind::Bill, by, range: Some(stretch), zone: None }
}

/// The rows of the reports for one set of selectors.
struct Rows {
    spent: Vec<Row>,
    /// Below zero.
    given_back: Vec<Row>,
    pace: Vec<Row>,
}

/// What one owner spent in one month, or in the days of the pace.
struct Row {
    values: Vec<Option<cardhour_domain::Name>>,
    month: Option<Month>,
    billed: i128,
    currency: Option<Currency>,
    cost: Option<i128>,
}

fn rows_of(fold: &Fold<'_>, by_month: bool, book: Option<&PriceBook>) -> Vec<Row> {
    let shown = fold.rows.iter().zip(&fold.sums).filter(|(key, _)| key.era == Era::Shown);
    shown
        .map(|(key, sums)| {
            let mut values: Vec<_> = key
                .values
                .iter()
                .map(|value| match value {
                    Value::Text(name) => Some(name.clone()),
                    Value::Absent | Value::Count(_) | Value::Decimal(_) => None,
                })
                .collect();
            let month = if by_month { values.pop().flatten() } else { None };
            Row {
                values,
                month: month.and_then(|month| Month::parse(&month).ok()),
                billed: sums.billed.part_ms(),
                currency: key.currency.or(book.map(PriceBook::currency)),
                cost: sums.money.map(|money| money.cost),
            }
        })
        .collect()
}

/// A refund as a row of the report by `by`.
fn given_row(given: &GivenBack, by: &[Dimension]) -> Row {
    let value = |dimension: &Dimension| match dimension {
        Dimension::Org => given.org.clone(),
        Dimension::Project => given.project.clone(),
        Dimension::User => given.user.clone(),
        Dimension::Queue => given.queue.clone(),
        Dimension::Class => given.class.clone(),
        Dimension::Model => given.model.clone(),
        // No budget selects by any other.
        _ => None,
    };
    Row {
        values: by.iter().map(value).collect(),
        month: Some(given.period),
        billed: given.billed_time.part_ms(),
        currency: Some(given.amount.currency()),
        cost: Some(given.amount.micros()),
    }
}

fn standing(
    budget: &Budget,
    period: Period,
    spans: &Spans,
    rows: &Rows,
    book: Option<&PriceBook>,
    zone: Zone,
) -> Standing {
    let amount = |row: &Row| match budget.unit {
        Unit::Money(currency) if row.currency == Some(currency) => row.cost.unwrap_or(0),
        Unit::Money(_) => 0,
        Unit::CardHours => row.billed,
    };
    let sum = |rows: &[Row], counts: &dyn Fn(&Row) -> bool| -> i128 {
        rows.iter().filter(|row| budget.scope.admits_all(&row.values) && counts(row)).map(amount).sum()
    };
    let in_period = |row: &Row| row.month.is_some_and(|month| period.contains(month));
    let known = match budget.unit {
        Unit::Money(_) => book.is_some(),
        Unit::CardHours => true,
    };
    let refunded = sum(&rows.given_back, &in_period);
    let spent = known.then(|| sum(&rows.spent, &in_period) + refunded);
    let carried = budget.from.filter(|_| budget.carry_over).map(|from| {
        let earlier = |row: &Row| row.month.is_some_and(|month| from <= month && month < period.first());
        budget.amount * i128::from(period.since(from)) - (sum(&rows.spent, &earlier) + sum(&rows.given_back, &earlier))
    });
    let limit = budget.amount + carried.unwrap_or(0);
    let whole = period.interval(zone);
    // From the end of the books on, or all of a period that they haven't reached.
    let rest_ms = whole.end().ms_since(spans.until.max(whole.start())).max(0);
    // Days in a currency that is given up say nothing of what will be spent in it.
    let is_given_up = |unit: Unit, stretch: Interval| match (unit, book) {
        (Unit::Money(own), Some(book)) => book.currency_at(Some(last_of(stretch))) != own,
        (Unit::Money(_), None) | (Unit::CardHours, _) => false,
    };
    let pace = spans.pace.filter(|_| known).and_then(|stretch| match budget.unit {
        unit if is_given_up(unit, stretch) => Some((0, stretch.length_ms())),
        Unit::Money(own) => Some((sum(&rows.pace, &|_| true), book?.reign(own, stretch)?.length_ms())),
        Unit::CardHours => Some((sum(&rows.pace, &|_| true), stretch.length_ms())),
    });
    let forecast = spent.zip(pace).map(|(spent, (paced, pace_ms))| {
        let rest = paced.checked_mul(rest_ms.into()).expect("LED-10: amounts and their time fit 128 bits");
        spent + divided(rest, pace_ms.into())
    });
    let runs_out_at = spent.zip(pace).and_then(|(spent, (paced, pace_ms))| {
        let left = limit.checked_sub(spent).filter(|left| *left > 0)?;
        if paced <= 0 {
            return None;
        }
        let ms = i64::try_from(divided(left.checked_mul(pace_ms.into())?, paced)).ok()?;
        spans.until.max(whole.start()).checked_add_ms(ms).filter(|at| *at < whole.end())
    });
    let reached = |percent: &u32| {
        spent.is_some_and(|spent| spent.saturating_mul(100) >= limit.saturating_mul(i128::from(*percent)))
    };
    let not_counted = match budget.unit {
        Unit::Money(own) => {
            let all = rows.spent.iter().chain(&rows.given_back);
            in_other_currencies(budget, own, all.filter(|row| in_period(row)))
        }
        Unit::CardHours => Vec::new(),
    };
    let crossed = budget.thresholds.iter().copied().filter(reached).collect();
    let budget = budget.clone();
    Standing { budget, period, carried, limit, spent, refunded, forecast, not_counted, runs_out_at, crossed }
}

fn last_of(stretch: Interval) -> Timestamp {
    Timestamp::from_unix_ms(stretch.end().unix_ms() - 1)
}

/// What rows in scope cost in other currencies than a budget's own, each once, by its code.
fn in_other_currencies<'r>(
    budget: &Budget,
    own: Currency,
    rows: impl Iterator<Item = &'r Row>,
) -> Vec<(Currency, i128)> {
    let mut others: BTreeMap<Currency, i128> = BTreeMap::new();
    for row in rows.filter(|row| budget.scope.admits_all(&row.values)) {
        if let Some((currency, cost)) = row.currency.zip(row.cost).filter(|(currency, _)| *currency != own) {
            *others.entry(currency).or_default() += cost;
        }
    }
    others.into_iter().filter(|(_, cost)| *cost != 0).collect()
}
