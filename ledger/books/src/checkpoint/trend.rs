//! Cost and card-hours, week by week.

use super::cells::{self, hours, money, ratio, short, text};
use super::facts::{Facts, Sum};
use super::week::Week;
use super::{Chart, Section, Shape};
use crate::table::{Kind, Value};
use cardhour_domain::{Interval, Money};
use rust_decimal::Decimal;

/// Columns: `week known card_hours billed_card_hours use_coverage efficiency cost currency`; `known` is `whole`, or `partial` for a week of which the books speak in part,
/// and weeks of which they don't speak at all are not in it.
pub(super) fn section(facts: &Facts<'_>, week: Week, weeks: u32, all: Interval) -> Section {
    let mut rows = Vec::new();
    for week in (0..weeks).rev().filter_map(|before| week.before(before)) {
        let during = week.days().interval(facts.zone());
        let Some(known) = during.overlap(all) else { continue };
        let sum = of_week(facts, week);
        let mut row = vec![text(week.to_string()), text(if known == during { "whole" } else { "partial" })];
        row.extend([hours(sum.held), hours(sum.billed), ratio(sum.use_coverage()), ratio(sum.efficiency())]);
        row.extend(money(sum.cost, facts.currency()));
        rows.push(row);
    }
    let columns = [
        ("week", Kind::Text),
        ("known", Kind::Text),
        ("card_hours", Kind::Hours),
        ("billed_card_hours", Kind::Hours),
        ("use_coverage", Kind::Ratio),
        ("efficiency", Kind::Ratio),
        ("cost", Kind::Money),
        ("currency", Kind::Text),
    ];
    let has_cost = rows.iter().any(|row: &Vec<Value>| row[6] != Value::Absent);
    let mut table = cells::table("Cost trend", &columns, rows);
    table.notes.push(
        "weeks from Monday in the ledger's zone; each costs what `report bill` of its days says; a partial week is one of which the books speak in part"
            .to_owned(),
    );
    let value = if has_cost { 6 } else { 2 };
    Section { name: "cost_trend", table, chart: Some(Chart { shape: Shape::Line, label: 0, value }) }
}

fn of_week(facts: &Facts<'_>, week: Week) -> Sum {
    let held = facts.held(week.days());
    Sum::of(held.iter().map(|held| &held.sum))
}

/// What the week comes to beside the one before, in a sentence.
pub(super) fn sentence(facts: &Facts<'_>, week: Week) -> String {
    let this = of_week(facts, week);
    let before = week.before(1).map(|week| of_week(facts, week)).unwrap_or_default();
    let cost = match this.cost.zip(facts.currency()) {
        Some((cost, currency)) => {
            let digits = u32::from(currency.minor_digits());
            let mut shown =
                Decimal::from_i128_with_scale(Money::from_micros(cost, currency).micros(), 6).round_dp(digits);
            shown.rescale(digits);
            format!(" for {shown} {currency}")
        }
        None => String::new(),
    };
    let before = short(before.held.card_hours());
    format!("{} card-hours were held in {week}{cost}, after {before} the week before.", short(this.held.card_hours()))
}
