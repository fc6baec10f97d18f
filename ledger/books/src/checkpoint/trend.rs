//! Cost and card-hours, week by week.

use super::cells::{self, hours, money, ratio, short, text};
use super::facts::{Facts, Sum};
use super::week::Week;
use super::{Chart, Section, Shape};
use crate::table::{Kind, Value};
use cardhour_domain::{Currency, Interval};
use rust_decimal::Decimal;

/// Columns: `week known card_hours billed_card_hours use_coverage efficiency cost currency`; `known` is `whole`, or `partial` for a week of which the books speak in part,
/// and weeks of which they don't speak at all are not in it. `each`: the facts in each currency; a week with costs in several has a row for each.
pub(super) fn section(each: &[Facts<'_>], week: Week, weeks: u32, all: Interval) -> Section {
    let mut rows = Vec::new();
    let zone = each[0].zone();
    for week in (0..weeks).rev().filter_map(|before| week.before(before)) {
        let during = week.days().interval(zone);
        let Some(known) = during.overlap(all) else { continue };
        let sum = of_week(&each[0], week);
        let mut row = vec![text(week.to_string()), text(if known == during { "whole" } else { "partial" })];
        row.extend([hours(sum.held), hours(sum.billed), ratio(sum.use_coverage()), ratio(sum.efficiency())]);
        let costs = costs(each, week);
        row.extend(money(costs.first().map(|(micros, _)| *micros), costs.first().map(|(_, currency)| *currency)));
        rows.push(row);
        for (micros, currency) in costs.into_iter().skip(1) {
            // Its hours are in the row above.
            let mut row = vec![text(week.to_string()), text(if known == during { "whole" } else { "partial" })];
            row.extend([const { Value::Absent }; 4]);
            row.extend(money(Some(micros), Some(currency)));
            rows.push(row);
        }
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
    if each.len() > 1 {
        table.notes.push(
            "the prices were in more than one currency in that time, and amounts of two are not compared: the chart is of card-hours; a week with \
             costs in two has a row for each, its hours in the first"
                .to_owned(),
        );
    }
    let value = if has_cost && each.len() == 1 { 6 } else { 2 };
    Section { name: "cost_trend", table, chart: Some(Chart { shape: Shape::Line, label: 0, value }) }
}

fn of_week(facts: &Facts<'_>, week: Week) -> Sum {
    let held = facts.held(week.days());
    Sum::of(held.iter().map(|held| &held.sum))
}

/// What a week cost in each currency in which it cost something. Unit: millionths of it.
fn costs(each: &[Facts<'_>], week: Week) -> Vec<(i128, Currency)> {
    each.iter().filter_map(|facts| of_week(facts, week).cost.zip(facts.currency())).collect()
}

/// What the week comes to beside the one before, in a sentence.
pub(super) fn sentence(each: &[Facts<'_>], week: Week) -> String {
    let this = of_week(&each[0], week);
    let before = week.before(1).map(|week| of_week(&each[0], week)).unwrap_or_default();
    let shown = |(cost, currency): (i128, Currency)| {
        let digits = u32::from(currency.minor_digits());
        let mut shown = Decimal::from_i128_with_scale(cost, 6).round_dp(digits);
        shown.rescale(digits);
        format!("{shown} {currency}")
    };
    let costs: Vec<String> = costs(each, week).into_iter().map(shown).collect();
    let cost = if costs.is_empty() { String::new() } else { format!(" for {}", costs.join(" and ")) };
    let before = short(before.held.card_hours());
    format!("{} card-hours were held in {week}{cost}, after {before} the week before.", short(this.held.card_hours()))
}
