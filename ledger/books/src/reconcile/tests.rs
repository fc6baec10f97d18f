use super::*;
use crate::observed::tests::{lines, range, record, world};
use crate::report::Dimension;
use crate::table::Value;
use cardhour_domain::CardShare;
use proptest::prelude::*;

/// Lines as `KEY REASON RECORDED OBSERVED`, card-seconds, in order.
fn told(records: &str, seen: &Seen, covered: &[(i64, i64)]) -> Vec<String> {
    let covered = BTreeMap::from([("lab".into(), covered.iter().map(|&(from, to)| range(from, to)).collect())]);
    let second = i128::from(CardShare::PARTS_PER_CARD) * 1000;
    let show = |line: &Line| {
        let key = line.key.as_str().strip_prefix("lab/").unwrap().to_owned();
        let of = |time: CardTime| time.part_ms() / second;
        format!("{key} {} {} {}", line.reason.name(), of(line.recorded), of(line.observed))
    };
    reconcile(&lines(records, record), seen, &covered, None).iter().map(show).collect()
}

/// Two cards for an hour are 7,200 card-seconds. Both were seen from 15 s on, the second until 3,000: 2 × 2,985 + 600 agree. The first 15 s are
/// 30 at the edge; of the 600 in which one card wasn't seen the last 120 are.
#[test]
fn what_was_not_seen_is_told_from_edges() {
    let seen = world("7 b0 G1 15 3600\n7 b0 G2 15 3000", &[(0, 3600)]);
    let expected = ["7/db1 agree 6570 6570", "7/db1 edge 150 0", "7/db1 not_seen 480 0"];
    assert_eq!(told("7 db1 2 0 3600", &seen, &[]), expected);
}

#[test]
fn where_nobody_looked_nothing_is_missing() {
    let seen = world("7 b0 G1 0 1000\n7 b0 G1 3000 3600", &[(0, 1000), (3000, 3600)]);
    assert_eq!(told("7 db1 1 0 3600", &seen, &[]), ["7/db1 agree 1600 1600", "7/db1 nobody_looked 2000 0"]);
}

/// No node said when it looked, as where telemetry was imported: who saw somebody on a card has looked at it.
#[test]
fn who_saw_another_holder_has_looked() {
    let seen = world("8 b0 G1 0 3000", &[]);
    let expected = ["7/db1 edge 240 0", "7/db1 not_seen 760 0", "8/b0 not_exported 0 3000"];
    assert_eq!(told("7 db1 1 1000 2000", &seen, &[]), expected);
}

#[test]
fn seen_after_the_end_is_releasing_and_long_before_the_start_a_contradiction() {
    let seen = world("7 b0 G1 100 1030", &[(0, 2000)]);
    // The record is from 400 to 1000: 120 s before it are its edge, 180 before that are not.
    let expected = ["7/db1 agree 600 600", "7/db1 edge 0 120", "7/db1 after_end 0 30", "7/db1 before_start 0 180"];
    assert_eq!(told("7 db1 1 400 1000", &seen, &[]), expected);
    let open = ["7/db1 agree 600 600", "7/db1 edge 0 120", "7/db1 still_open 0 30", "7/db1 before_start 0 180"];
    assert_eq!(told("7 db1 1 400 1000+", &seen, &[]), open);
}

#[test]
fn a_job_on_more_cards_than_its_record_has_is_told() {
    let seen = world("7 b0 G1 0 1000\n7 b0 G2 0 300", &[(0, 1000)]);
    assert_eq!(told("7 db1 1 0 1000", &seen, &[]), ["7/db1 agree 1000 1000", "7/db1 more_cards 0 300"]);
}

/// An export of 0 to 500: what nodes alone know of is past the scheduler up to there, and after it nobody could have told.
#[test]
fn without_a_record_it_matters_what_exports_speak_for() {
    let seen = world("9 b0 G1 0 800", &[(0, 1000)]);
    assert_eq!(told("", &seen, &[(0, 500)]), ["9/b0 not_exported 0 300", "9/b0 no_record 0 500"]);
}

/// The node saw no end between two runs of a requeued job: each has its own part, and nothing is counted twice.
#[test]
fn runs_that_a_node_saw_as_one_have_a_part_each() {
    let seen = world("7 x G1 0 1000", &[(0, 1000)]);
    let expected = ["7/db1 agree 400 400", "7/db1 after_end 0 5", "7/db2 agree 595 595"];
    assert_eq!(told("7 db1 1 0 400\n7 db2 1 405 1000", &seen, &[]), expected);
}

#[test]
fn the_table_has_contradictions_first_and_each_sides_total() {
    let seen = world("7 b0 G1 0 3600\n7 b0 G2 0 1800", &[(0, 3600)]);
    let lines = reconcile(&lines("7 db1 1 0 3600", record), &seen, &BTreeMap::new(), None);
    let query = ReconcileQuery { by: vec![Dimension::Node], by_attempt: true };
    let table = table(&lines, &BTreeMap::new(), &query, "reconcile".to_owned());
    let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
    let hours = ["recorded_card_hours", "observed_card_hours", "difference_card_hours"];
    assert_eq!(names, [&["node", "attempt_key", "reason", "attempts"][..], &hours].concat());
    let hours = |value: &Value| if let Value::Decimal(hours) = value { hours.to_string() } else { panic!("{value:?}") };
    let row = |row: &Vec<Value>| format!("{:?} {} {} {}", row[2], hours(&row[4]), hours(&row[5]), hours(&row[6]));
    assert_eq!(
        table.rows.iter().map(row).collect::<Vec<_>>(),
        ["Text(\"more_cards\") 0.000000 0.500000 -0.500000", "Text(\"agree\") 1.000000 1.000000 0.000000",]
    );
    assert_eq!(row(table.total.as_ref().unwrap()), "Absent 1.000000 1.500000 -0.500000");
}

proptest! {
    /// Nothing is left unexplained: what the lines have is what each side has, whatever the two say.
    #[test]
    fn lines_add_up_to_both_sides(
        held in prop::collection::vec((0i64..4, 1i64..4, 0i64..2000, 1i64..1500), 0..5),
        sights in prop::collection::vec((0i64..5, 1i64..4, 0i64..2500, 1i64..1500), 0..6),
        looks in prop::collection::vec((0i64..2500, 1i64..800), 0..4),
    ) {
        // One row a job and run: runs of one job don't overlap in a scheduler's records.
        let mut jobs = std::collections::BTreeSet::new();
        let mut records = Vec::new();
        for (job, cards, from, length) in held.into_iter().filter(|held| jobs.insert(held.0)) {
            records.push(record(&format!("{job} db{job} {cards} {from} {}", from + length)));
        }
        let text: Vec<String> = sights.iter().map(|(job, card, from, length)| format!("{job} x G{card} {from} {}", from + length)).collect();
        let looks: Vec<(i64, i64)> = looks.iter().map(|(from, length)| (*from, from + length)).collect();
        let seen = world(&text.join("\n"), &looks);
        let lines = reconcile(&records, &seen, &BTreeMap::new(), None);
        let recorded: CardTime = records.iter().map(|record| CardTime::of(record.share, record.during)).sum();
        prop_assert_eq!(lines.iter().map(|line| line.recorded).sum::<CardTime>(), recorded);
        // By hand: seconds in which a job was seen on a card, each once.
        let mut seconds = std::collections::BTreeSet::new();
        for (job, card, from, length) in &sights {
            seconds.extend((*from..from + length).map(|at| (*job, *card, at)));
        }
        let observed = CardTime::from_part_ms(seconds.len() as i128 * 1000 * i128::from(CardShare::PARTS_PER_CARD));
        prop_assert_eq!(lines.iter().map(|line| line.observed).sum::<CardTime>(), observed);
    }
}
