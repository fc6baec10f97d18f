//! A trace as facts and tables for people and programs.

use crate::answer::{Trace, texts};
use cardhour_books::table::{Column, Kind, Table, Value};
use cardhour_books::trace::{Trace as Traced, TracedAttempt, TracedCharge};
use cardhour_domain::{CardTime, Money, Name, Timestamp, Zone};

/// A trace, its times in `zone`.
pub fn shown(traced: &Traced, zone: Zone) -> Trace {
    let mut facts: Vec<(String, String)> = traced
        .line
        .values
        .iter()
        .map(|(name, value)| (name.to_string(), value.as_ref().map_or("(none)", |value| value).to_owned()))
        .collect();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("card_hours", traced.card_time.card_hours().to_string());
    fact("billed_card_hours", traced.billed_time.card_hours().to_string());
    if let Some(cost) = traced.list_cost.filter(|cost| Some(*cost) != traced.cost) {
        fact("list_cost", money_text(cost));
    }
    match traced.cost {
        Some(cost) => fact("cost", money_text(cost)),
        None => fact("cost", "no price".to_owned()),
    }
    fact("times_in", zone.to_string());
    Trace {
        line: traced.line.to_string(),
        facts,
        parts: vec![
            ("charges".to_owned(), charges(&traced.charges)),
            ("prices".to_owned(), prices(&traced.charges)),
            ("attempts".to_owned(), attempts(&traced.attempts, zone)),
        ],
    }
}

fn columns(names: &[&str], figures: &[(&str, Kind)]) -> Vec<Column> {
    let mut columns = texts(names);
    columns.extend(figures.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }));
    columns
}

/// The leaves of the bill that are in the line: each was rounded once, and this much of it falls to the line. What the whole leaf
/// is stands beside it only where the line has less than all of one.
fn charges(charges: &[TracedCharge]) -> Table {
    let mut figures = vec![("billed_card_hours", Kind::Hours), ("cost", Kind::Money)];
    let is_cut = charges.iter().any(|c| (c.billed_time, c.cost) != (c.leaf.billed_time, c.leaf.cost));
    if is_cut {
        figures.extend([("leaf_billed_card_hours", Kind::Hours), ("leaf_cost", Kind::Money)]);
    }
    let rows = charges
        .iter()
        .map(|charge| {
            let leaf = &charge.leaf;
            let name = |name: &Option<Name>| name.clone().map_or(Value::Absent, Value::Text);
            let mut row = vec![
                Value::Text(leaf.month.to_string().into()),
                name(&leaf.project),
                name(&leaf.user),
                name(&leaf.model),
                name(&leaf.price_line),
                name(&leaf.window),
                hours(charge.billed_time),
                money(charge.cost),
            ];
            if is_cut {
                row.extend([hours(leaf.billed_time), money(leaf.cost)]);
            }
            row
        })
        .collect();
    Table {
        title: "charges: rounded once each, and added up".to_owned(),
        columns: columns(&["month", "project", "user", "model", "price", "window"], &figures),
        rows,
        ..Table::default()
    }
}

/// The prices that the charges were made with.
fn prices(charges: &[TracedCharge]) -> Table {
    let mut rows: Vec<Vec<Value>> = charges
        .iter()
        .filter_map(|charge| {
            let name = |name: &Option<Name>| name.clone().map_or(Value::Absent, Value::Text);
            let text = Value::Text(charge.price.as_ref()?.text.clone().into());
            Some(vec![name(&charge.leaf.price_line), name(&charge.leaf.price_version), text])
        })
        .collect();
    rows.sort();
    rows.dedup();
    Table {
        title: "prices: as the price book has them".to_owned(),
        columns: texts(&["price", "version", "says"]),
        rows,
        ..Table::default()
    }
}

fn attempts(attempts: &[TracedAttempt], zone: Zone) -> Table {
    let at = |at: Timestamp| {
        let text = zone.local(at).map_or_else(|| at.to_string(), |local| local.format("%F %T").to_string());
        Value::Text(text.into())
    };
    let rows = attempts
        .iter()
        .map(|attempt| {
            let list = |names: &[Name]| match names {
                [] => Value::Absent,
                names => Value::Text(names.join(",").into()),
            };
            let key = attempt.key.as_ref().map_or(Value::Absent, |key| Value::Text(key.as_str().into()));
            let (start, end) =
                attempt.held.map_or((Value::Absent, Value::Absent), |held| (at(held.start()), at(held.end())));
            let state = attempt.state.map_or(Value::Absent, |state| Value::Text(state.name().into()));
            vec![
                key,
                attempt.user.clone().map_or(Value::Absent, Value::Text),
                state,
                list(&attempt.models),
                list(&attempt.nodes),
                start,
                end,
                hours(attempt.card_time),
                hours(attempt.billed_time),
            ]
        })
        .collect();
    Table {
        title: "attempts: who held the cards, most first".to_owned(),
        columns: columns(
            &["attempt_key", "user", "state", "model", "nodes", "started_at", "ended_at"],
            &[("card_hours", Kind::Hours), ("billed_card_hours", Kind::Hours)],
        ),
        rows,
        ..Table::default()
    }
}

pub(crate) fn hours(time: CardTime) -> Value {
    Value::Decimal(time.card_hours())
}

pub(crate) fn money(amount: Option<Money>) -> Value {
    amount.map_or(Value::Absent, |amount| Value::Decimal(amount_text(amount).parse().expect("an amount is a decimal")))
}

fn money_text(amount: Money) -> String {
    format!("{} {}", amount_text(amount), amount.currency())
}

/// With the currency's own decimals, or six where a leaf was cut.
pub(crate) fn amount_text(amount: Money) -> String {
    if amount.is_minor() { amount.to_minor_string() } else { amount.to_micro_string() }
}
