//! What people are shown of a report: figures as they read them, columns that say something.

use super::{Cell, Grid};
use cardhour_books::table::{Kind, Table, Value};
use rust_decimal::Decimal;

/// A report for an eye: columns without any value left out and named in a note; hours with four decimals, ratios as
/// percents, thousands apart. The ids of lines, which say again what the row is
/// grouped by, become one example of a trace.
pub fn grid(table: &Table) -> Grid {
    let says_something = |i: usize| i < text_columns(table) || table.rows.iter().any(|row| row[i] != Value::Absent);
    let line_column = table.columns.iter().position(|column| column.name == "line");
    let currency = one_currency(table);
    // What a row's command is, notes say.
    let command = table.columns.iter().position(|column| column.name == "command");
    let hidden = [line_column, command, currency.map(|(column, _)| column)];
    let is_shown = |i: usize| !hidden.contains(&Some(i)) && (table.rows.is_empty() || says_something(i));
    let kept: Vec<usize> = (0..table.columns.len()).filter(|i| is_shown(*i)).collect();
    let line = |row: &Vec<Value>| kept.iter().map(|i| cell(&row[*i], table.columns[*i].kind)).collect::<Vec<_>>();
    let named = |row: &Vec<Value>| {
        let mut cells = line(row);
        if table.total.is_none() {
            return cells;
        }
        // Whoever isn't named is still somebody: an empty cell would look like a slip.
        cells.iter_mut().take(text_columns(table)).filter(|cell| **cell == Cell::Absent).for_each(|cell| {
            *cell = Cell::Text("(none)".into());
        });
        cells
    };
    let mut notes = table.notes.clone();
    let left_out: Vec<String> = (0..table.columns.len())
        .filter(|i| !kept.contains(i) && !hidden.contains(&Some(*i)))
        .map(|i| words(&table.columns[i].name))
        .collect();
    if !left_out.is_empty() {
        notes.push(format!("not known here, so not shown: {}", left_out.join(", ")));
    }
    if !notes.iter().any(|note| note.starts_with(TRACE_HINT)) {
        notes.extend(trace_hint(table, ""));
    }
    Grid {
        title: table.title.clone(),
        header: kept
            .iter()
            .map(|i| match (table.columns[*i].kind, currency) {
                (Kind::Money, Some((_, code))) => format!("{} {code}", words(&table.columns[*i].name)),
                _ => words(&table.columns[*i].name),
            })
            .collect(),
        is_number: kept.iter().map(|i| table.columns[*i].kind != Kind::Text).collect(),
        rows: table.rows.iter().map(named).collect(),
        // The sum of one row is that row.
        total: table.total.as_ref().filter(|_| table.rows.len() > 1).map(|total| {
            let mut cells = line(total);
            if let Some(first) = cells.first_mut().filter(|first| **first == Cell::Absent) {
                *first = Cell::Text("total".into());
            }
            cells
        }),
        notes,
    }
}

const TRACE_HINT: &str = "where a line comes from:";

/// How to trace the first line of a report. `options`: those that the report was asked with and the trace needs, too.
pub fn trace_hint(table: &Table, options: &str) -> Option<String> {
    let column = table.columns.iter().position(|column| column.name == "line")?;
    let line = table.rows.iter().find_map(|row| match &row[column] {
        Value::Text(line) => Some(line),
        Value::Absent | Value::Count(_) | Value::Decimal(_) => None,
    })?;
    Some(format!("{TRACE_HINT} cardhour trace{options} {}", quoted(line)))
}

/// A word as a shell takes it, in single quotes.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The column `currency` and what it says, where it says one thing: then it stands beside the amounts' names instead.
fn one_currency(table: &Table) -> Option<(usize, &str)> {
    let column = table.columns.iter().position(|column| column.name == "currency")?;
    let mut codes = table.rows.iter().filter_map(|row| match &row[column] {
        Value::Text(code) => Some(code.as_ref()),
        _ => None,
    });
    let first = codes.next()?;
    codes.all(|code| code == first).then_some((column, first))
}

/// How many columns at the left are texts: those that a report is grouped by.
fn text_columns(table: &Table) -> usize {
    table.columns.iter().take_while(|column| column.kind == Kind::Text && column.name != "line").count()
}

/// `over_capacity_card_hours` as words.
fn words(name: &str) -> String {
    if name.starts_with("label.") { name.to_owned() } else { name.replace('_', " ") }
}

fn cell(value: &Value, kind: Kind) -> Cell {
    match value {
        Value::Absent => Cell::Absent,
        Value::Text(_) => Cell::Text(shown(value, kind)),
        Value::Count(_) | Value::Decimal(_) => Cell::Exact(shown(value, kind)),
    }
}

/// One value as people read it; empty where there is none.
pub fn shown(value: &Value, kind: Kind) -> String {
    match (value, kind) {
        (Value::Absent, _) => String::new(),
        (Value::Text(text), _) => text.to_string(),
        (Value::Count(count), _) => grouped(&count.to_string()),
        (Value::Decimal(amount), Kind::Hours) => hours(*amount),
        (Value::Decimal(ratio), Kind::Ratio) => percent(*ratio),
        (Value::Decimal(amount), _) => grouped(&amount.to_string()),
    }
}

/// Card-hours with four decimals; with all of them where four would make a zero of something.
pub fn hours(hours: Decimal) -> String {
    let mut short = hours.round_dp(4);
    if short.is_zero() && !hours.is_zero() {
        return hours.to_string();
    }
    short.rescale(4);
    grouped(&short.to_string())
}

/// A ratio as a percent with one decimal. 100.0 % is said of nothing less, and 0.0 % of nothing more.
pub fn percent(ratio: Decimal) -> String {
    let tenth = Decimal::new(1, 1);
    let exact = ratio * Decimal::ONE_HUNDRED;
    let mut percent = match exact.round_dp(1) {
        whole if whole == Decimal::ONE_HUNDRED && exact < whole => whole - tenth,
        nothing if nothing.is_zero() && exact > nothing => tenth,
        near => near,
    };
    percent.rescale(1);
    format!("{percent} %")
}

/// A number with its thousands apart: `-1234567.8901` as `-1,234,567.8901`.
pub fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, rest) = number.find('.').map_or((number, ""), |dot| number.split_at(dot));
    let mut out = String::with_capacity(number.len() + whole.len() / 3 + 1);
    out.push_str(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(rest);
    out
}
