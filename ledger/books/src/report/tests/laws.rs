//! LED-6 and LED-7 as properties, on pools drawn at random.

use super::*;

mod seen;
use crate::bill::charges;
use crate::cell::{Cell, SeenBy, Used};
use crate::line::Line;
use crate::report::ReportAttempt;
use crate::trace::trace;
use crate::world::{Stretch, Told};
use cardhour_domain::{Interval, JobState, Timestamp, UseBasis};
use proptest::prelude::*;
use rust_decimal::Decimal;

/// Odd prices, so that nothing is a whole cent by luck; a hole (model `k`), a change in mid-month, a window.
const ODD: &str = r#"
[[window]]
name = "night"
days = "mon-sat"
from = "22:00"
to = "08:00"
[[price]]
from = "2026-01-01"
model = "a"
per_card_hour = "0.0137"
coefficient = "2.4"
night = "0.61"
[[price]]
from = "2026-03-15T08:15"
model = "a"
per_card_hour = "0.0211"
night = "0.61"
[[price]]
from = "2026-01-01"
model = "b*"
queue = "q1"
per_card_hour = "1.999"
[[price]]
from = "2026-01-01"
model = "b"
per_card_hour = "0.5"
"#;

const GROUPINGS: [&str; 12] = [
    "",
    "org",
    "org,project,user",
    "queue",
    "node",
    "model",
    "day",
    "month,queue",
    "label.team,day",
    "state,node",
    "price,window",
    "user,cluster,class",
];

fn any_world() -> impl Strategy<Value = World> {
    let name = |names: &'static [&'static str]| prop::sample::select(names.to_vec());
    let job = (
        (name(&["-", "acme", "globex"]), name(&["-", "p1", "p2"]), name(&["-", "ann"]), name(&["q1", "q2", "-"])),
        (name(&["a", "b", "b2", "k"]), name(&["n1", "n2", "-"]), name(&["red", "blue", "-"])),
        (0usize..JobState::ALL.len(), 0u32..3, 1i64..5_000, any::<bool>()),
        (0i64..80 * 86_400_000, 1i64..20 * 86_400_000),
    );
    // Gap before and length, per mille of the holding; basis; lost, idle, effective and underused; watts.
    let told = prop::collection::vec(
        (
            (0i64..400, 1i64..400),
            prop::sample::select(vec![SeenBy::One(UseBasis::Gpm), SeenBy::One(UseBasis::DutyCycle), SeenBy::Both]),
            prop::sample::select(vec![
                [0, 100, 0, 0],
                [0, 0, 100, 0],
                [13, 29, 31, 7],
                [100, 0, 0, 0],
                [0, 33, 33, 34],
            ]),
            prop::option::of(0i64..700),
        ),
        0..4,
    );
    prop::collection::vec((job, told), 1..6).prop_map(|jobs| {
        let mut world = World::new();
        let some = |name: &str| (name != "-").then(|| name.into());
        for (
            ((org, project, user, queue), (model, node, team), (state, job, milli, is_billed), (start, length)),
            told,
        ) in jobs
        {
            let during = Interval::new(
                Timestamp::from_unix_ms(1_770_000_000_000 + start),
                Timestamp::from_unix_ms(1_770_000_000_000 + start + length),
            )
            .unwrap();
            let share = CardShare::from_decimal(Decimal::new(milli, 3)).unwrap();
            let mut from = 0;
            let told = told.into_iter().filter_map(|((gap, long), basis, percent, watts)| {
                let begin = from + gap;
                from = begin + long;
                let at = |per_mille: i64| during.start().checked_add_ms(length * per_mille.min(1000) / 1000).unwrap();
                let during = Interval::new(at(begin), at(from))?;
                Some(Told { during, basis: Some(basis), percent, watts })
            });
            let told = told.collect();
            world.stretches.push(Stretch {
                attempt: Some(world.attempts.len() as u32),
                state: CardState::Held,
                cluster: "c".into(),
                node: some(node),
                model: some(model),
                share,
                during,
                is_billed,
                told,
            });
            world.attempts.push(ReportAttempt {
                key: cardhour_domain::AttemptKey::new("c", &job.to_string(), &world.attempts.len().to_string()),
                cluster: "c".into(),
                org: some(org),
                project: some(project),
                user: some(user),
                queue: some(queue),
                class: None,
                labels: some(team).into_iter().map(|team| ("team".into(), team)).collect(),
                state: JobState::ALL[state],
                cards_requested: Some(CardShare::CARD),
                cards: share,
                submitted_at: None,
                held: Some(during),
            });
        }
        world
    })
}

/// The figures of the total row that no grouping may change, and the sums of the rows.
fn totals(table: &Table) -> (Vec<Decimal>, Vec<Decimal>) {
    let money = |row: &Vec<Value>| -> Vec<Decimal> {
        let cost = table.columns.iter().position(|column| column.name == "list_cost").unwrap();
        row[cost..=cost + 1]
            .iter()
            .map(|value| match value {
                Value::Decimal(amount) => *amount,
                _ => Decimal::ZERO,
            })
            .collect()
    };
    let mut rows = vec![Decimal::ZERO; 2];
    for row in &table.rows {
        rows.iter_mut().zip(money(row)).for_each(|(sum, amount)| *sum += amount);
    }
    (money(table.total.as_ref().unwrap()), rows)
}

/// The same in two parts that add up to it.
fn cut_used(whole: &Used, part: f64) -> (Used, Used) {
    let both = |time: CardTime| {
        let head = CardTime::from_part_ms((time.part_ms() as f64 * part) as i128);
        (head, time - head)
    };
    let (mut head, mut tail) = (*whole, *whole);
    (head.lost, tail.lost) = both(whole.lost);
    (head.idle, tail.idle) = both(whole.idle);
    (head.effective, tail.effective) = both(whole.effective);
    (head.underused, tail.underused) = both(whole.underused);
    (head.billed_idle, tail.billed_idle) = both(whole.billed_idle);
    (head.billed_effective, tail.billed_effective) = both(whole.billed_effective);
    (head.billed_lost, tail.billed_lost) = both(whole.billed_lost);
    (head.seen_by_gpm, tail.seen_by_gpm) = both(whole.seen_by_gpm);
    (head.seen_by_duty_cycle, tail.seen_by_duty_cycle) = both(whole.seen_by_duty_cycle);
    (head.seen_by_both, tail.seen_by_both) = both(whole.seen_by_both);
    head.energy_mj = whole.energy_mj.map(|energy| energy / 3);
    tail.energy_mj = whole.energy_mj.map(|energy| energy - energy / 3);
    (head, tail)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn led_6_every_grouping_has_the_same_total_and_its_rows_add_up_to_it(world in any_world()) {
        let book = book(ODD);
        let slots = query(ReportKind::Bill, "").slots(world.all(), Some(&book), Zone::UTC).unwrap();
        let leaves = charges(&world.input(&slots), &slots, Some(&book));
        let of_leaves: Decimal = leaves.iter().filter_map(|leaf| leaf.cost).map(|cost| Decimal::from_i128_with_scale(cost.micros(), 6)).sum();
        for by in GROUPINGS {
            let (total, rows) = totals(&world.bill(&book, by));
            prop_assert_eq!(&total, &rows, "rows by {}", by);
            prop_assert_eq!(total[1], of_leaves, "total by {}", by);
        }
    }

    /// A range that cuts months, too: what is shown of a month doesn't depend on what it is shown by.
    #[test]
    fn led_6_every_grouping_of_a_range_has_the_same_total(world in any_world(), from in 0i64..9_000, length in 1i64..3_000) {
        let book = book(ODD);
        let start = Zone::UTC.month(world.all().start()).unwrap().interval(Zone::UTC).start();
        let at = |bucket: i64| Timestamp::from_unix_ms(start.unix_ms() + bucket * cardhour_domain::BUCKET_MS);
        let range = Interval::new(at(from), at(from + length));
        let whole = world.report(Some(&book), &ReportQuery { range, ..query(ReportKind::Bill, "") }).table;
        prop_assume!(whole.total.is_some());
        for by in GROUPINGS {
            let table = world.report(Some(&book), &ReportQuery { range, ..query(ReportKind::Bill, by) }).table;
            let (total, rows) = totals(&table);
            prop_assert_eq!(&total, &rows, "rows by {}", by);
            prop_assert_eq!(total[1], totals(&whole).0[1], "total by {}", by);
        }
    }

    /// Two ranges that meet: what each shows of a month adds up to the month.
    #[test]
    fn led_6_the_parts_of_a_cut_month_add_up_to_it(world in any_world(), cut in 0i64..9_000) {
        let book = book(ODD);
        let all = world.all();
        let first = Zone::UTC.month(all.start()).unwrap().interval(Zone::UTC).start();
        let end = Zone::UTC.month(all.end()).unwrap().interval(Zone::UTC).end();
        let cut = Timestamp::from_unix_ms(first.unix_ms() + cut * cardhour_domain::BUCKET_MS);
        let shown = |from, to| {
            let query = ReportQuery { range: Interval::new(from, to), ..query(ReportKind::Bill, "") };
            query.range.map_or(Decimal::ZERO, |_| {
                let table = world.report(Some(&book), &query).table;
                table.total.as_ref().map_or(Decimal::ZERO, |_| totals(&table).0[1])
            })
        };
        prop_assert_eq!(shown(first, cut) + shown(cut, end), shown(first, end));
    }

    /// Cells cut in two anywhere, and in another order: every report is the same, to the last sign.
    #[test]
    fn led_7_cutting_and_shuffling_cells_changes_nothing(world in any_world(), cuts in prop::collection::vec(0.0f64..1.0, 1..40), turn in any::<prop::sample::Index>()) {
        let book = book(ODD);
        let kinds = [
            (ReportKind::Bill, "queue,node"),
            (ReportKind::Usage, "user,day"),
            (ReportKind::Bill, "org"),
            (ReportKind::Efficiency, "project"),
            (ReportKind::Idle, "queue,day"),
            (ReportKind::Waste, "node"),
        ];
        for (report_kind, by) in kinds {
            let query = query(report_kind, by);
            let slots = query.slots(world.all(), Some(&book), Zone::UTC).unwrap();
            let input = world.input(&slots);
            let mut cut = input.clone();
            for (i, part) in cuts.iter().enumerate() {
                let place = (i * 7919) % cut.cells.len();
                let whole = cut.cells[place].clone();
                let part_of = |time: CardTime| CardTime::from_part_ms((time.part_ms() as f64 * part) as i128);
                let used = whole.used.as_deref().map(|used| cut_used(used, *part));
                let head = Cell {
                    card_time: part_of(whole.card_time),
                    billed_time: part_of(whole.billed_time),
                    unseen: part_of(whole.unseen),
                    used: used.map(|(head, _)| Box::new(head)),
                    ..whole.clone()
                };
                let tail = Cell {
                    card_time: whole.card_time - head.card_time,
                    billed_time: whole.billed_time - head.billed_time,
                    unseen: whole.unseen - head.unseen,
                    used: used.map(|(_, tail)| Box::new(tail)),
                    ..whole.clone()
                };
                cut.cells[place] = head;
                cut.cells.push(tail);
            }
            let middle = turn.index(cut.cells.len());
            cut.cells.rotate_left(middle);
            prop_assert_eq!(report(&cut, &slots, Some(&book), &query), report(&input, &slots, Some(&book), &query), "{} by {}", report_kind, by);
        }
    }

    /// Equal texts that are not the same allocation are the same text.
    #[test]
    fn names_are_known_by_their_text(world in any_world()) {
        let book = book(ODD);
        let query = query(ReportKind::Bill, "org,queue,node");
        let slots = query.slots(world.all(), Some(&book), Zone::UTC).unwrap();
        let mut input = world.input(&slots);
        let before = report(&input, &slots, Some(&book), &query);
        for cell in &mut input.cells {
            cell.model = cell.model.as_ref().map(|name| String::from(&**name).into());
            cell.node = cell.node.as_ref().map(|name| String::from(&**name).into());
            cell.cluster = String::from(&*cell.cluster).into();
        }
        prop_assert_eq!(report(&input, &slots, Some(&book), &query), before);
    }

    /// LED-8: every line of every bill can be traced, to the same hours and the same amount.
    #[test]
    fn led_8_every_line_is_traced_to_what_it_says(world in any_world(), by in prop::sample::select(GROUPINGS.to_vec()), ranged in any::<bool>()) {
        let book = book(ODD);
        let all = world.all();
        let half = Timestamp::from_unix_ms(all.start().unix_ms() + all.length_ms() / 2).bucket_start();
        let range = if ranged { Interval::new(all.start().bucket_start(), half) } else { None };
        let query = ReportQuery { range, ..query(ReportKind::Bill, by) };
        let table = world.report(Some(&book), &query).table;
        let column = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
        let (line, hours, cost) = (column("line"), column("card_hours"), column("cost"));
        for row in &table.rows {
            let Value::Text(text) = &row[line] else { panic!("a line is a text") };
            let line = Line::parse(text).unwrap();
            prop_assert_eq!(&line.to_string(), &**text);
            let slots = line.slots(all, Some(&book), Zone::UTC).unwrap();
            let traced = trace(&line, &world.input(&slots), &slots, Some(&book)).unwrap();
            prop_assert_eq!(&row[hours], &Value::Decimal(traced.card_time.card_hours()));
            let of_trace = traced.cost.map(|cost| Decimal::from_i128_with_scale(cost.micros(), 6));
            match &row[cost] {
                Value::Decimal(of_row) => prop_assert_eq!(Some(*of_row), of_trace),
                _ => prop_assert_eq!(None, of_trace),
            }
        }
    }

    /// By another road: the hours of each value, summed from the holdings themselves.
    #[test]
    fn the_hours_of_each_row_are_those_of_its_holdings(world in any_world()) {
        for by in ["org", "user", "queue", "state", "node", "model", "label.team"] {
            let mut expected: std::collections::BTreeMap<String, CardTime> = std::collections::BTreeMap::new();
            for stretch in &world.stretches {
                let attempt = &world.attempts[stretch.attempt.unwrap() as usize];
                let value = match by {
                    "org" | "user" if attempt.is_unowned() => Some("(unowned)"),
                    "org" => attempt.org.as_deref(),
                    "user" => attempt.user.as_deref(),
                    "queue" => attempt.queue.as_deref(),
                    "state" => Some(attempt.state.name()),
                    "node" => stretch.node.as_deref(),
                    "model" => stretch.model.as_deref(),
                    _ => attempt.labels.get("team").map(|team| &**team),
                };
                *expected.entry(value.unwrap_or_default().to_owned()).or_default() += CardTime::of(stretch.share, stretch.during);
            }
            let expected: Vec<String> = expected
                .into_iter()
                .map(|(value, held)| format!("{} {}", if value.is_empty() { "-" } else { &value }, held.card_hours()))
                .collect();
            let table = world.report(None, &query(ReportKind::Usage, by)).table;
            let shown = crate::world::show(&table, &format!("{by} card_hours"));
            prop_assert_eq!(shown.lines().take(table.rows.len()).collect::<Vec<_>>(), expected, "by {}", by);
        }
    }

    /// In order of their keys or in any other: the same jobs.
    #[test]
    fn jobs_are_counted_alike_in_any_order_of_attempts(world in any_world()) {
        let turned = |world: &World, order: &[usize]| {
            let mut other = world.clone();
            other.attempts = order.iter().map(|&old| world.attempts[old].clone()).collect();
            for stretch in &mut other.stretches {
                let old = stretch.attempt.unwrap() as usize;
                stretch.attempt = Some(order.iter().position(|&place| place == old).unwrap() as u32);
            }
            other.report(None, &query(ReportKind::Owners, "queue")).table
        };
        let mut order: Vec<usize> = (0..world.attempts.len()).collect();
        order.sort_by(|&a, &b| world.attempts[a].key.cmp(&world.attempts[b].key));
        let sorted = turned(&world, &order);
        order.reverse();
        prop_assert_eq!(turned(&world, &order), sorted);
    }

    /// M07 for any job: what it costs is at most its cards × the dearest price × its hours, and half a cent a leaf.
    #[test]
    fn m07_a_job_never_costs_more_than_its_cards_at_the_dearest_price(world in any_world()) {
        let book = book(ODD);
        let slots = query(ReportKind::Bill, "").slots(world.all(), Some(&book), Zone::UTC).unwrap();
        for charge in charges(&world.input(&slots), &slots, Some(&book)) {
            let Some(cost) = charge.cost else { continue };
            let most = charge.billed_time.card_hours() * Decimal::new(1999, 3) + Decimal::new(5001, 6);
            prop_assert!(Decimal::from_i128_with_scale(cost.micros(), 6) <= most, "{charge:?}");
        }
    }
}
