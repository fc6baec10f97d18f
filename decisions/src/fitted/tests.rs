use super::*;
use cardhour_domain::{JobState, Timestamp};

const HOUR_MS: i64 = 3_600_000;
const GIB: i64 = 1 << 30;

fn during() -> Interval {
    Interval::new(Timestamp::from_unix_s(0), Timestamp::from_unix_s(7 * 24 * 3600)).unwrap()
}

/// A job of one card for ten hours.
fn attempt(job: &str, class: &str) -> ReportAttempt {
    ReportAttempt {
        key: AttemptKey::new("lab", job, "1"),
        cluster: "lab".into(),
        org: Some("acme".into()),
        project: Some("vision".into()),
        user: None,
        queue: None,
        class: Some(class.into()),
        labels: BTreeMap::new(),
        state: JobState::Completed,
        cards_requested: None,
        cards: CardShare::CARD,
        submitted_at: None,
        held: Interval::new(Timestamp::from_unix_s(3600), Timestamp::from_unix_s(11 * 3600)),
    }
}

fn used(percents: &[(i32, i64)], gib: i64, hours: [i64; 3]) -> JobUse {
    let percents: Vec<(i32, i64)> = percents.iter().map(|(percent, hours)| (*percent, hours * HOUR_MS)).collect();
    let [working_ms, rested_for_io_ms, rested_for_cpu_ms] = hours.map(|hours| hours * HOUR_MS);
    let mut used = JobUse::of_percents(&percents);
    used.memory_peak_bytes = Some(gib * GIB);
    (used.working_ms, used.rested_for_io_ms, used.rested_for_cpu_ms) =
        (working_ms, rested_for_io_ms, rested_for_cpu_ms);
    used
}

fn cells(section: &Section, columns: &str) -> Vec<String> {
    let table = &section.table;
    let place = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
    let cell = |value: &Value| match value {
        Value::Absent => "-".to_owned(),
        Value::Text(text) => text.to_string(),
        Value::Count(count) => count.to_string(),
        Value::Decimal(decimal) => decimal.to_string(),
    };
    let row = |row: &Vec<Value>| columns.split(' ').map(|name| cell(&row[place(name)])).collect::<Vec<_>>().join(" ");
    table.rows.iter().map(row).collect()
}

/// By hand, cards of 80 GiB. Job 1 is busy by 20 % all the time and has 10 GiB: five by compute, 80 ÷ 11 = seven by memory, so five to a card, and 8 of its 10 card-hours would be left. Job 2 has
/// 60 GiB: nobody fits beside it. Job 3 is a training. Job 4 was seen for half of its time.
#[test]
fn memory_and_compute_are_judged_apart_and_what_is_little_seen_is_not_judged() {
    let attempts =
        [attempt("1", "inference"), attempt("2", "inference"), attempt("3", "training"), attempt("4", "inference")];
    let small = used(&[(20, 10)], 10, [10, 0, 0]);
    let all: BTreeMap<AttemptKey, JobUse> = attempts
        .iter()
        .map(|one| one.key.clone())
        .zip([small.clone(), used(&[(20, 10)], 60, [10, 0, 0]), small, used(&[(20, 5)], 10, [5, 0, 0])])
        .collect();
    let models = all.keys().map(|key| (key.clone(), Name::from("H100"))).collect();
    let bytes = BTreeMap::from([(Name::from("H100"), 80 * GIB)]);
    let jobs = known_jobs(&attempts, &all, &models, &bytes);
    let made = sharing_mode(&jobs, during());
    assert_eq!(
        cells(&made, "job card_hours sm_mean sm_p95 memory_peak_of_card mode jobs_per_card freed_card_hours"),
        ["lab/1 10.000000 0.200000 0.200000 0.125000 mps 5 8.000000"]
    );
    assert_eq!(
        cells(&made, "what"),
        [
            "It needs little all the time: 5 such jobs of one project fit a card by mps; alone it held 10 card-hours, of which 8 would be free for others."
        ]
    );
}

/// By hand: 6 hours of work and 4 of reading while the card rests are 40 % of the active time.
#[test]
fn a_card_that_rests_while_its_processes_read_waits_for_storage() {
    let attempts = [attempt("1", "training"), attempt("2", "training")];
    let all: BTreeMap<AttemptKey, JobUse> = attempts
        .iter()
        .map(|one| one.key.clone())
        .zip([used(&[(80, 6), (0, 4)], 10, [6, 4, 0]), used(&[(80, 10)], 10, [10, 0, 0])])
        .collect();
    let jobs = known_jobs(&attempts, &all, &BTreeMap::new(), &BTreeMap::new());
    let made = input_bound(&jobs, during());
    assert_eq!(cells(&made, "job waited_card_hours waited_of_active waited_for"), ["lab/1 4.000000 0.400000 storage"]);
}
