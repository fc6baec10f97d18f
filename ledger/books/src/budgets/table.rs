//! Budgets as a table: what `cardhour budgets` prints.

use super::{Standing, Unit};
use crate::bill::{Hole, describe_holes};
use crate::report::local;
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{Currency, Timestamp, Zone};
use rust_decimal::Decimal;

/// A row a budget, in their order, and for people what has to be known to read it.
///
/// Columns: `budget scope period unit limit carried spent left ratio crossed forecast forecast_ratio runs_out_at`; of these `carried` only where some budget
/// carries over. Amounts are of the row's unit.
pub fn table(standings: &[Standing], holes: &[Hole], until: Timestamp, zone: Zone) -> Table {
    let carries = standings.iter().any(|standing| standing.carried.is_some());
    let mut columns = vec![
        ("budget", Kind::Text),
        ("scope", Kind::Text),
        ("period", Kind::Text),
        ("unit", Kind::Text),
        ("limit", Kind::Money),
    ];
    columns.extend(carries.then_some(("carried", Kind::Money)));
    columns.extend([
        ("spent", Kind::Money),
        ("left", Kind::Money),
        ("ratio", Kind::Ratio),
        ("crossed", Kind::Text),
        ("forecast", Kind::Money),
        ("forecast_ratio", Kind::Ratio),
        ("runs_out_at", Kind::Text),
    ]);
    let columns = columns.into_iter().map(|(name, kind)| Column { name: name.to_owned(), kind }).collect();
    let rows = standings.iter().map(|standing| row(standing, carries, zone)).collect();
    let mut notes = Vec::new();
    if standings.is_empty() {
        notes.push("no budget holds at that time: budgets.toml in the ledger's folder says which there are".to_owned());
    } else {
        notes.push(format!(
            "spent up to {}; forecast: for the rest of the period, the pace of the seven days before that",
            local(zone, until)
        ));
    }
    if standings.iter().any(|standing| standing.spent.is_none()) {
        notes.push("no price book: of budgets in money nobody can say what was spent".to_owned());
    }
    for Standing { budget, period, refunded, .. } in standings.iter().filter(|one| one.refunded != 0) {
        let (back, unit) = (budget.unit.text(-refunded), budget.unit.name());
        notes.push(format!("budget {}, {period}: refunds of {back} {unit} are taken off what was spent", budget.name));
    }
    for Standing { budget, period, not_counted, .. } in standings.iter().filter(|one| !one.not_counted.is_empty()) {
        let shown =
            |(currency, amount): &(Currency, i128)| format!("{} {currency}", Unit::Money(*currency).text(*amount));
        let others = not_counted.iter().map(shown).collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "budget {}, {period}: not counted: {others}; a budget in {} counts that currency alone",
            budget.name,
            budget.unit.name()
        ));
    }
    notes.extend(describe_holes(holes));
    Table { title: format!("budgets, {zone}"), columns, rows, total: None, notes }
}

fn row(standing: &Standing, carries: bool, zone: Zone) -> Vec<Value> {
    let Standing { budget, period, carried, limit, spent, forecast, runs_out_at, crossed, .. } = standing;
    let text = |text: String| Value::Text(text.into());
    let shown = |amount: Option<i128>| decimal(amount.map(|amount| budget.unit.shown(amount)));
    let percents: Vec<String> = crossed.iter().map(|percent| format!("{percent}%")).collect();
    let mut row = vec![
        Value::Text(budget.name.clone()),
        text(budget.scope.to_string()),
        text(period.to_string()),
        text(budget.unit.name().to_owned()),
        shown(Some(*limit)),
    ];
    row.extend(carries.then(|| shown(*carried)));
    row.extend([
        shown(*spent),
        shown(standing.left()),
        decimal(standing.ratio()),
        if percents.is_empty() { Value::Absent } else { text(percents.join(" ")) },
        decimal(forecast.map(|amount| budget.unit.estimated(amount))),
        decimal(standing.forecast_ratio()),
        runs_out_at.map_or(Value::Absent, |at| text(local(zone, at))),
    ]);
    row
}

fn decimal(number: Option<Decimal>) -> Value {
    number.map_or(Value::Absent, Value::Decimal)
}
