//! A real trace, as far as the arithmetic of reports goes: card-hours by month, and what they cost at 1 an hour.

use super::*;
use crate::cell::Cell;
use crate::import::readers::shared_data::shared_data;
use crate::world::at;
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// Right answers of the data's README, computed independently. At 1 an hour every tenant's month is rounded to the cent by
/// itself, so that the bill is within half a cent of the hours for each of them.
#[test]
fn philly_has_the_card_hours_of_its_readme_and_costs_them_at_1_an_hour() {
    let Some(input) = shared_data("philly/philly.csv") else { return };
    let text = String::from_utf8(input).unwrap();
    let book = book(FLAT);
    let query = query(ReportKind::Bill, "month");
    let slots = query.slots(range("2017-08-01", "2018-02-01"), Some(&book), Zone::UTC).unwrap();
    let mut input = ReportInput::default();
    for (i, line) in text.lines().skip(1).filter(|line| !line.is_empty()).enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let [submitted, seconds, cards, _, tenant] = fields[..] else { panic!("{line}") };
        let start = at(&format!("{}Z", submitted.replace(' ', "T")));
        let seconds: i64 = seconds.strip_suffix(".0").unwrap().parse().unwrap();
        let end = start.checked_add_ms(seconds * 1000).unwrap();
        let span = if seconds > 0 { format!("{start} {end}") } else { String::new() };
        let job = World::jobs(&format!("{i} - {tenant} - - completed - - {cards} {span}"));
        let mut by_slot: BTreeMap<u32, Cell> = BTreeMap::new();
        for cell in job.input(&slots).cells {
            let index = Some(input.attempts.len() as u32);
            let sum = by_slot.entry(cell.slot).or_insert_with(|| Cell {
                attempt: index,
                card_time: CardTime::ZERO,
                billed_time: CardTime::ZERO,
                unseen: CardTime::ZERO,
                ..cell.clone()
            });
            sum.card_time += cell.card_time;
            sum.billed_time += cell.billed_time;
            sum.unseen += cell.unseen;
        }
        input.cells.extend(by_slot.into_values());
        input.attempts.extend(job.attempts);
    }
    let table = report(&input, &slots, Some(&book), &query).table;
    let month = |name: &str| table.rows.iter().find(|row| row[0] == Value::Text(name.into())).unwrap();
    let column = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
    let (jobs, hours, cost) = (column("jobs"), column("card_hours"), column("cost"));
    let number = |value: &Value| if let Value::Decimal(number) = value { *number } else { panic!("{value:?}") };
    let total = table.total.as_ref().unwrap();
    for (row, expected) in [
        (month("2017-09"), "135584.8014"),
        (month("2017-10"), "442067.6128"),
        (month("2017-11"), "295879.6731"),
        (month("2017-12"), "104546.3856"),
        (total, "978078.4728"),
    ] {
        assert_eq!(number(&row[hours]).round_dp(4).to_string(), expected);
        let tenants_and_months = Decimal::from(15 * 5);
        assert!((number(&row[cost]) - number(&row[hours])).abs() <= tenants_and_months * Decimal::new(5001, 6));
    }
    assert_eq!(total[jobs], Value::Count(82_247));
}
