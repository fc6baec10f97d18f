//! What another price list would come to, beside what holds today: `price try`.
//!
//! Two bills of the same usage, made by [`crate::report::report()`] with one price book each, laid side by side by the names they are grouped by. Start at
//! [`price_trial`]. Does not: price anything itself, guess what people would use at other prices.

use crate::bill::{Hole, describe_holes};
use crate::report::Report;
use crate::table::{Column, Kind, Table, Value};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// Columns of a trial after the names it is grouped by.
const COLUMNS: [(&str, Kind); 7] = [
    ("card_hours", Kind::Hours),
    ("billed_card_hours", Kind::Hours),
    ("cost_now", Kind::Money),
    ("cost_then", Kind::Money),
    ("difference", Kind::Money),
    ("change", Kind::Ratio),
    ("currency", Kind::Text),
];

/// Two bills of the same time, side by side.
///
/// `now` and `then` are bills by the same `groups` names, in one currency. Shape: a row for each value of the names that either has; then hours, what they
/// cost by the book of today, by the other, the difference, and the difference ÷ the cost of today (absent of nothing). A cost is absent where no price
/// of its book is for any of that time, and so is the difference then. Holes of either book are in the notes.
pub fn price_trial(now: &Report, then: &Report, groups: usize) -> Table {
    let mut rows: BTreeMap<Vec<Value>, [Option<&[Value]>; 2]> = BTreeMap::new();
    for (side, report) in [now, then].into_iter().enumerate() {
        for row in &report.table.rows {
            rows.entry(row[..groups].to_vec()).or_default()[side] = Some(row);
        }
    }
    let columns = now.table.columns[..groups].iter().cloned();
    let own = COLUMNS.map(|(name, kind)| Column { name: name.to_owned(), kind });
    let side_by_side = |names: Vec<Value>, [now_row, then_row]: [Option<&[Value]>; 2]| {
        let [of_now, of_then] = [Side::of(&now.table, now_row), Side::of(&then.table, then_row)];
        names.into_iter().chain(of_now.beside(of_then)).collect::<Vec<Value>>()
    };
    let total = (!rows.is_empty()).then(|| {
        let totals = [now, then].map(|report| report.table.total.as_deref());
        side_by_side(vec![Value::Absent; groups], totals)
    });
    let what = now.table.title.strip_prefix("bill").unwrap_or(&now.table.title);
    Table {
        title: format!("price try{what}"),
        columns: columns.chain(own).collect(),
        rows: rows.into_iter().map(|(names, sides)| side_by_side(names, sides)).collect(),
        total,
        notes: notes(now, then),
    }
}

/// One bill's figures of a row.
#[derive(Clone, Debug)]
struct Side {
    card_hours: Value,
    billed: Value,
    cost: Value,
    currency: Value,
}

impl Side {
    fn of(table: &Table, row: Option<&[Value]>) -> Self {
        let cell = |name: &str| {
            let column = table.columns.iter().position(|column| column.name == name);
            column.and_then(|column| Some(row?[column].clone())).unwrap_or(Value::Absent)
        };
        Self {
            card_hours: cell("card_hours"),
            billed: cell("billed_card_hours"),
            cost: cell("cost"),
            currency: cell("currency"),
        }
    }

    fn beside(self, then: Self) -> [Value; COLUMNS.len()] {
        let either = |a: Value, b: Value| if a == Value::Absent { b } else { a };
        let (difference, change) = match (&self.cost, &then.cost) {
            (Value::Decimal(now), Value::Decimal(then)) => {
                let difference = then - now;
                let change = difference.checked_div(*now).map(|change| change.round_dp(6));
                (Value::Decimal(difference), change.map_or(Value::Absent, scaled))
            }
            _ => (Value::Absent, Value::Absent),
        };
        [
            either(self.card_hours, then.card_hours),
            either(self.billed, then.billed),
            self.cost,
            then.cost,
            difference,
            change,
            either(self.currency, then.currency),
        ]
    }
}

/// A ratio with its six decimals.
fn scaled(mut ratio: Decimal) -> Value {
    ratio.rescale(6);
    Value::Decimal(ratio)
}

/// What both say of the time, once; then the holes of each.
fn notes(now: &Report, then: &Report) -> Vec<String> {
    let is_hole = |note: &String| [now, then].iter().any(|report| describe_holes(&report.holes).contains(note));
    let mut notes: Vec<String> = now.table.notes.iter().filter(|note| !is_hole(note)).cloned().collect();
    for note in then.table.notes.iter().filter(|note| !is_hole(note)) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let holes = |book: &str, holes: &[Hole]| {
        describe_holes(holes).into_iter().map(|hole| format!("{book}: {hole}")).collect::<Vec<_>>()
    };
    notes.extend(holes("now", &now.holes));
    notes.extend(holes("then", &then.holes));
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::PriceBook;
    use crate::report::{ReportKind, report};
    use crate::world::{World, book, check, query};

    fn try_on(world: &World, now: &PriceBook, then: &PriceBook, by: &str) -> Table {
        let query = query(ReportKind::Bill, by);
        let bill = |book: &PriceBook| {
            let slots = query.slots(world.all(), Some(book), world.zone).unwrap();
            report(&world.input(&slots), &slots, Some(book), &query)
        };
        price_trial(&bill(now), &bill(then), query.by.len())
    }

    const TODAY: &str = r#"
        [[window]]
        name = "off-peak"
        days = "mon-sun"
        from = "22:00"
        to = "08:00"
        [[price]]
        from = "2026-01-01"
        model = "H200"
        per_card_hour = "18.50"
        off-peak = "0.6"
        [[price]]
        from = "2026-01-01"
        model = "L40S"
        per_card_hour = "6.00"
    "#;

    /// By hand. vision: 4 H200 from 09:00 to 19:00, 40 hours of the day: 740.00 now, at 20.00 then 800.00, 60.00 or 8.1081 % more. speech: 2 H200 from
    /// 21:00 to 24:00, 2 hours of the day and 4 of the night: 37.00 + 4 × 11.10 = 81.40 now; then the night is half price and from 20:00 on:
    /// 6 × 10.00 = 60.00, 21.40 or 26.2899 % less.
    #[test]
    fn the_same_usage_is_priced_by_both_books_side_by_side() {
        let world = World::jobs(
            "1 lab vision ann - completed H200 n1 4 2026-03-02T09:00 2026-03-02T19:00
             2 lab speech bob - completed H200 n1 2 2026-03-02T21:00 2026-03-03T00:00",
        );
        let then = TODAY.replace("18.50", "20.00").replace("0.6", "0.5").replace("22:00", "20:00");
        let table = try_on(&world, &book(TODAY), &book(&then), "project");
        check(
            &table,
            "project card_hours billed_card_hours cost_now cost_then difference change currency",
            "speech 6.000000 6.000000 81.40 60.00 -21.40 -0.262899 USD
             vision 40.000000 40.000000 740.00 800.00 60.00 0.081081 USD
             --
             - 46.000000 46.000000 821.40 860.00 38.60 0.046993 USD",
        );
        assert_eq!(table.title, "price try, 2026-03, UTC");
        assert!(table.notes.is_empty(), "{:?}", table.notes);
    }

    /// A model that only one of the two books has a price for: its cost by the other isn't zero, it is not known.
    #[test]
    fn a_hole_in_either_book_is_named_with_the_book_it_is_in() {
        let world = World::jobs("1 lab vision ann - completed L40S n1 1 2026-03-02T09:00 2026-03-02T19:00");
        let table = try_on(&world, &book(TODAY), &book(&TODAY.replace("\"L40S\"", "\"L40\"")), "project");
        check(&table, "project cost_now cost_then difference change", "vision 60.00 - - -\n--\n- 60.00 - - -");
        let [note] = &table.notes[..] else { panic!("{:?}", table.notes) };
        assert!(note.starts_with("then: hole in the price book: no price for model L40S between"), "{note}");
    }

    /// Windows of one name in both books are one row, of other names a row each.
    #[test]
    fn rows_that_only_one_book_knows_stand_alone() {
        let world = World::jobs("1 lab vision ann - completed H200 n1 1 2026-03-02T22:00 2026-03-03T00:00");
        let then = TODAY.replace("off-peak", "night");
        let table = try_on(&world, &book(TODAY), &book(&then), "window");
        check(
            &table,
            "window cost_now cost_then difference",
            "night - 22.20 -\noff-peak 22.20 - -\n--\n- 22.20 22.20 0.00",
        );
    }
}
