//! Statements and their entries as tables.

use super::{Entry, Statement};
use crate::table::{Column, Kind, Table, Value};
use cardhour_domain::{CardTime, Money, Name};
use rust_decimal::Decimal;

/// One row a statement, and what they come to together.
pub fn statements_table(statements: &[Statement], title: String) -> Table {
    let columns = [
        ("statement", Kind::Text),
        ("org", Kind::Text),
        ("account", Kind::Text),
        ("entries", Kind::Count),
        ("card_hours", Kind::Hours),
        ("billed_card_hours", Kind::Hours),
        ("coverage", Kind::Ratio),
        ("use_coverage", Kind::Ratio),
        ("amount", Kind::Money),
        ("currency", Kind::Text),
    ];
    let rows: Vec<Vec<Value>> = statements
        .iter()
        .map(|statement| {
            let Statement {
                number, org, account, entries, card_time, billed_time, total, coverage, use_coverage, ..
            } = statement;
            vec![
                Value::Text(number.clone()),
                name(org),
                Value::Text(account.clone()),
                Value::Count(entries.len() as u64),
                hours(*card_time),
                hours(*billed_time),
                ratio(*coverage),
                ratio(*use_coverage),
                money(*total),
                Value::Text(total.currency().to_string().into()),
            ]
        })
        .collect();
    let total = statements.first().map(|first| {
        let zero = Money::zero(first.total.currency());
        let sum = |time: fn(&Statement) -> CardTime| hours(statements.iter().map(time).sum());
        vec![
            Value::Absent,
            Value::Absent,
            Value::Absent,
            Value::Count(statements.iter().map(|statement| statement.entries.len() as u64).sum()),
            sum(|statement| statement.card_time),
            sum(|statement| statement.billed_time),
            Value::Absent,
            Value::Absent,
            money(statements.iter().fold(zero, |total, statement| total + statement.total)),
            Value::Text(first.total.currency().to_string().into()),
        ]
    });
    Table { title, columns: named(&columns), rows, total, notes: Vec::new() }
}

/// One row an entry, in the order of the statements, and what they come to together.
pub fn entries_table(statements: &[Statement], title: String) -> Table {
    let columns = [
        ("statement", Kind::Text),
        ("kind", Kind::Text),
        ("corrects", Kind::Text),
        ("original_period", Kind::Text),
        ("project", Kind::Text),
        ("user", Kind::Text),
        ("model", Kind::Text),
        ("price_line", Kind::Text),
        ("window", Kind::Text),
        ("what", Kind::Text),
        ("card_hours", Kind::Hours),
        ("billed_card_hours", Kind::Hours),
        ("list_amount", Kind::Money),
        ("amount", Kind::Money),
        ("currency", Kind::Text),
        ("reason", Kind::Text),
        ("entry_id", Kind::Text),
        ("original_entry", Kind::Text),
    ];
    let mut rows = Vec::new();
    for statement in statements {
        rows.extend(statement.entries.iter().map(|entry| row(statement, entry)));
    }
    let total = statements.first().map(|first| {
        let zero = Money::zero(first.total.currency());
        let mut total = vec![Value::Absent; columns.len()];
        total[13] = money(statements.iter().fold(zero, |total, statement| total + statement.total));
        total[14] = Value::Text(first.total.currency().to_string().into());
        total
    });
    Table { title, columns: named(&columns), rows, total, notes: Vec::new() }
}

fn row(statement: &Statement, entry: &Entry) -> Vec<Value> {
    let key = &entry.key;
    let corrects = entry.kind() != key.kind;
    vec![
        Value::Text(statement.number.clone()),
        Value::Text(entry.kind().name().into()),
        if corrects { Value::Text(key.kind.name().into()) } else { Value::Absent },
        Value::Text(key.original_period.to_string().into()),
        name(&key.project),
        name(&key.user),
        name(&key.model),
        name(&key.price_line),
        name(&key.window),
        name(&key.what),
        hours(entry.card_time),
        hours(entry.billed_time),
        entry.list_amount.map_or(Value::Absent, money),
        money(entry.amount),
        Value::Text(entry.amount.currency().to_string().into()),
        name(&entry.reason),
        Value::Text(entry.id().to_string().into()),
        entry.original_entry.as_ref().map_or(Value::Absent, |id| Value::Text(id.to_string().into())),
    ]
}

fn named(columns: &[(&str, Kind)]) -> Vec<Column> {
    columns.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect()
}

fn name(name: &Option<Name>) -> Value {
    name.clone().map_or(Value::Absent, Value::Text)
}

fn hours(time: CardTime) -> Value {
    Value::Decimal(time.card_hours())
}

fn ratio(ratio: Option<Decimal>) -> Value {
    ratio.map_or(Value::Absent, Value::Decimal)
}

fn money(amount: Money) -> Value {
    Value::Decimal(amount.to_minor_string().parse().expect("digits, a point and a sign"))
}
