//! The laws of what telemetry tells: nothing is lost or counted twice, and missing stays missing.

use super::*;
use crate::report::Fold;

/// All that a report's fold adds up, of all rows of a grouping and in each.
fn fold<T>(world: &World, kind: ReportKind, by: &str, of: impl Fn(&Fold<'_>) -> T) -> T {
    let query = query(kind, by);
    let book = book(ODD);
    let slots = query.slots(world.all(), Some(&book), Zone::UTC).unwrap();
    let input = world.input(&slots);
    of(&Fold::of(&input, &slots, Some(&book), &query))
}

/// Column by name; absent for the total's `--by` values.
fn column(table: &Table, name: &str) -> usize {
    table.columns.iter().position(|column| column.name == name).unwrap_or_else(|| panic!("no column {name}"))
}

/// An amount or absent, of each row and of the total.
fn amounts(table: &Table, name: &str) -> (Vec<Option<Decimal>>, Option<Decimal>) {
    let amount = |row: &Vec<Value>| match &row[column(table, name)] {
        Value::Decimal(amount) => Some(*amount),
        _ => None,
    };
    (table.rows.iter().map(amount).collect(), amount(table.total.as_ref().unwrap()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// LED-10: the split and the energy of all rows are those of the cells, by any grouping, to the last part and millijoule.
    #[test]
    fn every_grouping_has_the_same_split_and_energy(world in any_world()) {
        let slots = query(ReportKind::Usage, "").slots(world.all(), None, Zone::UTC).unwrap();
        let mut expected = Used::default();
        world.input(&slots).cells.iter().filter_map(|cell| cell.used.as_deref()).for_each(|used| expected.add(used));
        for kind in [ReportKind::Usage, ReportKind::Efficiency, ReportKind::Idle, ReportKind::Waste, ReportKind::Capacity] {
            for by in GROUPINGS {
                fold(&world, kind, by, |fold| {
                    let mut of_rows = Used::default();
                    fold.sums.iter().for_each(|sums| of_rows.add(&sums.used));
                    prop_assert_eq!(of_rows, expected, "rows by {}", by);
                    prop_assert_eq!(fold.total.used, expected, "total by {}", by);
                    Ok(())
                })?;
            }
        }
    }

    /// LED-3: in each row held = unseen + lost + idle + effective + underused, and none is below zero (M11).
    #[test]
    fn each_row_says_of_all_its_time_where_it_went(world in any_world(), by in prop::sample::select(GROUPINGS.to_vec())) {
        fold(&world, ReportKind::Usage, by, |fold| {
            for sums in &fold.sums {
                let Used { lost, idle, effective, underused, billed_idle, .. } = sums.used;
                prop_assert_eq!(sums.unseen + lost + idle + effective + underused, sums.held);
                for time in [sums.unseen, lost, idle, effective, underused, billed_idle, sums.billed - billed_idle] {
                    prop_assert!(time >= CardTime::ZERO);
                }
                let seen = sums.used.seen_by_gpm + sums.used.seen_by_duty_cycle + sums.used.seen_by_both;
                prop_assert_eq!(seen, sums.seen(), "all that was seen was seen by something");
            }
            Ok(())
        })?;
    }

    /// LED-3: a row of a pool is known to be idle or busy just where something of it was seen, and has energy just where some was measured.
    #[test]
    fn what_nobody_saw_is_absent_and_what_somebody_saw_is_not(world in any_world()) {
        let by_key = [ReportKind::Efficiency, ReportKind::Waste, ReportKind::Usage];
        for kind in by_key {
            let table = world.report(None, &query(kind, "label.team,node")).table;
            let rows = fold(&world, kind, "label.team,node", |fold| fold.sums.iter().map(|sums| (sums.seen(), sums.held, sums.used)).collect::<Vec<_>>());
            prop_assert_eq!(rows.len(), table.rows.len());
            for (row, (seen, held, used)) in table.rows.iter().zip(rows) {
                let is_absent = |name: &str| row[column(&table, name)] == Value::Absent;
                prop_assert_eq!(is_absent("idle_card_hours"), seen.is_zero());
                prop_assert_eq!(is_absent("lost_card_hours"), seen.is_zero());
                if kind == ReportKind::Waste {
                    prop_assert_eq!(is_absent("idle_of_held"), seen.is_zero());
                    continue;
                }
                prop_assert_eq!(is_absent("effective_card_hours"), seen.is_zero());
                prop_assert_eq!(is_absent("use_basis"), seen.is_zero());
                prop_assert_eq!(is_absent("energy_kwh"), used.energy_mj.is_none());
                let is_enough = !seen.is_zero() && seen.part_ms() + seen.part_ms() >= held.part_ms();
                prop_assert_eq!(is_absent("efficiency"), !is_enough);
            }
        }
    }

    /// LED-6 for the part that idle time cost: one total by any grouping, of all time and of a range; with the rest it is the bill.
    #[test]
    fn idle_money_has_one_total_by_any_grouping(world in any_world(), from in 0i64..9_000, length in 1i64..3_000, ranged in any::<bool>()) {
        let book = book(ODD);
        let start = Zone::UTC.month(world.all().start()).unwrap().interval(Zone::UTC).start();
        let at = |bucket: i64| Timestamp::from_unix_ms(start.unix_ms() + bucket * cardhour_domain::BUCKET_MS);
        let range = if ranged { Interval::new(at(from), at(from + length)) } else { None };
        let report = |kind, by| world.report(Some(&book), &ReportQuery { range, ..query(kind, by) }).table;
        let whole = report(ReportKind::Idle, "");
        prop_assume!(whole.total.is_some());
        let sum = |rows: &[Option<Decimal>]| rows.iter().flatten().sum::<Decimal>();
        for by in GROUPINGS {
            let table = report(ReportKind::Idle, by);
            let (idle_rows, idle) = amounts(&table, "idle_cost");
            let (rest_rows, rest) = amounts(&table, "rest_cost");
            let (costs, cost) = amounts(&table, "cost");
            prop_assert_eq!(idle, amounts(&whole, "idle_cost").1, "by {}", by);
            prop_assert_eq!(rest, amounts(&whole, "rest_cost").1, "by {}", by);
            prop_assert_eq!(sum(&idle_rows), idle.unwrap_or_default(), "by {}", by);
            prop_assert_eq!(sum(&rest_rows), rest.unwrap_or_default(), "by {}", by);
            prop_assert_eq!(&costs, &amounts(&report(ReportKind::Bill, by), "cost").0, "by {}", by);
            if range.is_none() {
                prop_assert_eq!(idle.unwrap_or_default() + rest.unwrap_or_default(), cost.unwrap_or_default());
            }
            prop_assert!(idle_rows.iter().chain(&rest_rows).flatten().all(|amount| *amount >= Decimal::ZERO));
        }
    }
}
