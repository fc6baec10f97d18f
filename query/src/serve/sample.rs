//! Small reports for the tests of the pages.

use super::overview::Reports;
use cardhour_books::table::{Column, Kind, Table, Value};
use rust_decimal::Decimal;

fn columns(names: &[(&str, Kind)]) -> Vec<Column> {
    names.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect()
}

fn hours(hours: i64) -> Value {
    Value::Decimal(Decimal::new(hours * 1_000_000, 6))
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// A report of capacity by `label`: held, reserved, free, down, unaccounted card-hours of each row.
pub fn capacity(label: &str, days: &[(&str, [i64; 5])]) -> Table {
    let names = [
        (label, Kind::Text),
        ("card_hours", Kind::Hours),
        ("capacity_card_hours", Kind::Hours),
        ("over_capacity_card_hours", Kind::Hours),
        ("free_card_hours", Kind::Hours),
        ("reserved_card_hours", Kind::Hours),
        ("down_card_hours", Kind::Hours),
        ("unaccounted_card_hours", Kind::Hours),
    ];
    Table {
        columns: columns(&names),
        rows: days
            .iter()
            .map(|(name, [held, reserved, free, down, unaccounted])| {
                let capacity = held + reserved + free + down + unaccounted;
                let figures = [*held, capacity, 0, *free, *reserved, *down, *unaccounted];
                std::iter::once(text(name)).chain(figures.map(hours)).collect()
            })
            .collect(),
        ..Table::default()
    }
}

/// A bill: groups, hours, cost in hundredths.
pub fn bill(by: &[&str], lines: &[(&[&str], i64, i64)]) -> Table {
    let mut names: Vec<(&str, Kind)> = by.iter().map(|name| (*name, Kind::Text)).collect();
    names.extend([
        ("line", Kind::Text),
        ("jobs", Kind::Count),
        ("card_hours", Kind::Hours),
        ("cost", Kind::Money),
        ("currency", Kind::Text),
    ]);
    Table {
        columns: columns(&names),
        rows: lines
            .iter()
            .map(|(groups, card_hours, cents)| {
                let mut row: Vec<Value> = groups.iter().map(|group| text(group)).collect();
                row.extend([
                    text(&format!("2026-03/{}", groups.join("/"))),
                    Value::Count(1204),
                    hours(*card_hours),
                    Value::Decimal(Decimal::new(*cents, 2)),
                    text("CNY"),
                ]);
                row
            })
            .collect(),
        ..Table::default()
    }
}

/// Two months of a small pool, the first of them shown.
pub fn reports() -> Reports {
    let mut bill_of_month =
        bill(&["org", "project"], &[(&["lab", "<speech>"], 40, 74_000), (&["lab", "vision"], 60, 111_000)]);
    bill_of_month.notes.push("simulated: these figures come from a generator".to_owned());
    Reports {
        months: bill(&["month"], &[(&["2026-03"], 100, 185_000), (&["2026-04"], 50, 92_500)]),
        bill: bill_of_month,
        capacity_by_month: capacity("month", &[("2026-03", [100, 10, 70, 12, 0]), ("2026-04", [50, 0, 130, 0, 12])]),
        capacity_by_day: capacity("day", &[("2026-03-01", [60, 5, 31, 0, 0]), ("2026-03-02", [40, 5, 39, 12, 0])]),
    }
}
