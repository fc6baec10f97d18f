use super::*;
use cardhour_domain::Timestamp;

fn decision(id: &str, at_s: i64, action: &str, mode: Mode, job: &str, recovered_hours: Option<i64>) -> Decision {
    Decision {
        attempt_key: Some(AttemptKey::new("lab", job, "1")),
        user: Some("ann".into()),
        recovered_card_ms: recovered_hours.map(|hours| hours * 3_600_000),
        ..Decision::new(
            id.into(),
            Timestamp::from_unix_s(at_s),
            DecisionKind::Reclaim,
            action.into(),
            "words".into(),
            mode,
        )
    }
}

fn during() -> Interval {
    Interval::new(Timestamp::from_unix_s(0), Timestamp::from_unix_s(100)).unwrap()
}

/// By hand: job 1 was stopped, came free and gave 4 × 24 = 96 card-hours back, job 2 10; job 3 would have in shadow, 8. The last is after the span.
fn some() -> Vec<Decision> {
    vec![
        decision("a", 10, "stop", Mode::Act, "1", None),
        decision("b", 11, "reclaimed", Mode::Act, "1", None),
        decision("c", 20, "recovered", Mode::Act, "1", Some(96)),
        decision("d", 21, "recovered", Mode::Act, "2", Some(10)),
        decision("e", 22, "ended", Mode::Shadow, "3", Some(8)),
        decision("f", 23, "something_new", Mode::Act, "3", None),
        decision("g", 100, "recovered", Mode::Act, "4", Some(7)),
    ]
}

fn cells(section: &Section) -> Vec<String> {
    let cell = |value: &Value| match value {
        Value::Absent => "-".to_owned(),
        Value::Text(text) => text.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Decimal(decimal) => decimal.to_string(),
    };
    section.table.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn hours_count_as_recovered_in_act_alone_and_wrongful_ones_are_counted() {
    let wrong = BTreeSet::from([AttemptKey::new("lab", "1", "1")]);
    let made = by_outcome(&some(), during(), &wrong);
    assert_eq!(
        cells(&made),
        [
            "reclaim shadow ended 1 1 - 8.000000 -",
            "reclaim act other 1 1 - - -",
            "reclaim act reclaimed 1 1 - - 1",
            "reclaim act recovered 2 2 106.000000 - 1",
            "reclaim act stop 1 1 - - 1",
        ]
    );
}

#[test]
fn a_wrongful_reclaim_names_the_decision_to_stop() {
    let wrong = BTreeSet::from([AttemptKey::new("lab", "1", "1"), AttemptKey::new("lab", "9", "1")]);
    let made = wrongful(&some(), during(), &wrong).unwrap();
    assert_eq!(cells(&made), ["lab/1 - - ann act 96.000000 a"]);
    assert_eq!(wrongful(&some(), during(), &BTreeSet::new()), None);
}

#[test]
fn outcomes_are_in_order_and_each_there_once() {
    assert!(OUTCOMES.windows(2).all(|pair| pair[0] < pair[1]));
}

/// A mark names the decision to stop, once however often it is said, and the job with it.
#[test]
fn a_mark_points_at_the_decision_that_was_wrong() {
    let decisions = some();
    let at = Timestamp::from_unix_s(30);
    let mark = decisions[0].found_wrong(at, "eve".into(), Some("ticket 7"));
    assert_eq!(mark.of_decision.as_deref(), Some("a"));
    assert_eq!(&*mark.words, "eve says that decision a was wrong: ticket 7.");
    let later = decisions[0].found_wrong(Timestamp::from_unix_s(40), "bob".into(), None);
    assert_eq!(later.id, mark.id);
    let all = [decisions, vec![mark]].concat();
    assert_eq!(marked(&all), BTreeSet::from([AttemptKey::new("lab", "1", "1")]));
    assert_eq!(cells(&wrongful(&all, during(), &marked(&all)).unwrap()), ["lab/1 - - ann act 96.000000 a"]);
}
