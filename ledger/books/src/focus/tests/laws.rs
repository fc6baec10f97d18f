//! What holds of any month.

use super::*;

/// A job: project, model, hours after the start of March at which it begins, quarter hours, cards in twelfths, seconds off the quarter hour.
fn jobs() -> impl Strategy<Value = Vec<(u8, u8, i64, i64, i64, i64)>> {
    prop::collection::vec((0u8..3, 0u8..3, -40i64..730, 1i64..400, 1i64..30, 0i64..900), 1..25)
}

fn world(jobs: &[(u8, u8, i64, i64, i64, i64)]) -> World {
    let mut world = World::new();
    for (i, &(project, model, begin, quarters, twelfths, off)) in jobs.iter().enumerate() {
        let start = at("2026-03-01").unix_ms() + begin * 3_600_000 + off * 1000;
        let end = start + quarters * 900_000 - off * 500;
        let [start, end] = [start, end].map(|ms| cardhour_domain::Timestamp::from_unix_ms(ms).to_string());
        let model = ["T4", "V100", "-"][usize::from(model)];
        let cards = Decimal::from(twelfths) / Decimal::from(4);
        let line = format!("{i} acme p{project} ann - completed {model} n{i} {cards} {start} {end}");
        let one = World::jobs(&line);
        let index = u32::try_from(world.attempts.len()).unwrap();
        world.attempts.extend(one.attempts);
        world.stretches.extend(one.stretches.into_iter().map(|mut stretch| {
            stretch.attempt = Some(index);
            stretch
        }));
    }
    world
}

fn decimal(value: Value) -> Decimal {
    match value {
        Value::Decimal(decimal) => decimal,
        Value::Absent => Decimal::ZERO,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// LED-6: money and hours of the rows are those of the statements, entry by entry, whatever the jobs.
    #[test]
    fn rows_add_up_to_the_statements(jobs in jobs()) {
        let told = Told::march(&world(&jobs), all_kinds, None);
        let rows = told.month().cost_and_usage(Version::V1_4);
        let column = |name: &str| rows.columns.iter().find(|column| column.name == name).unwrap();
        let sum = |name: &str, of: &dyn Fn(&&Line) -> bool| -> Decimal {
            rows.rows.iter().filter(of).map(|row| decimal((column(name).value)(row))).sum()
        };
        let mut total = Decimal::ZERO;
        for statement in &told.statements {
            for entry in &statement.entries {
                let id = entry.id();
                let of_entry = |row: &&Line| row.entry.id == id;
                let amount = Decimal::from_i128_with_scale(entry.amount.micros(), 6);
                prop_assert_eq!(sum("BilledCost", &of_entry), amount);
                total += amount;
                if entry.kind() == EntryKind::Charge {
                    prop_assert_eq!(sum("x_CardHours", &of_entry), entry.card_time.card_hours());
                    prop_assert_eq!(sum("PricingQuantity", &of_entry), entry.billed_time.card_hours());
                }
            }
        }
        let statements: i128 = told.statements.iter().map(|statement| statement.total.micros()).sum();
        prop_assert_eq!(total, Decimal::from_i128_with_scale(statements, 6));
        prop_assert_eq!(sum("BilledCost", &|_| true), total);
        // FOCUS: costs are unit price times quantity, to the last digit.
        for row in rows.rows.iter().filter(|row| !row.is_correction()) {
            let of = |name: &str| (column(name).value)(row);
            if of("ListUnitPrice") != Value::Absent {
                prop_assert_eq!(decimal(of("ListCost")), decimal(of("ListUnitPrice")) * decimal(of("PricingQuantity")));
                prop_assert_eq!(decimal(of("ContractedCost")), decimal(of("ContractedUnitPrice")) * decimal(of("PricingQuantity")));
            }
        }
        let again = Told::march(&world(&jobs), all_kinds, None);
        prop_assert_eq!(rows.csv(), again.month().cost_and_usage(Version::V1_4).csv());
    }
}
