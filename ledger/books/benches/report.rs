//! Question: how long does a report take on a trace of the size of Philly, 82,247 jobs in 150,000 cells, once they are read?
//!
//! `cargo bench -p cardhour-books`. Data from a seed; the least and the middle of 15 runs.

use cardhour_books::cell::Cell;
use cardhour_books::prices::PriceBook;
use cardhour_books::report::{Dimension, ReportAttempt, ReportInput, ReportKind, ReportQuery, report};
use cardhour_books::slots::Slots;
use cardhour_domain::{
    AttemptKey, BUCKET_MS, CardShare, CardState, CardTime, Interval, JobState, Month, Name, Timestamp,
};
use std::collections::BTreeMap;
use std::time::Instant;

const JOBS: u32 = 82_247;
const CELLS: u32 = 150_000;

fn main() {
    let book = PriceBook::parse(
        r#"
        currency = "USD"
        zone = "America/New_York"
        [[window]]
        name = "off-peak"
        days = "mon-sun"
        from = "22:00"
        to = "08:00"
        [[price]]
        from = "2017-01-01"
        per_card_hour = "1.10"
        off-peak = "0.6"
        [[price]]
        from = "2017-11-15"
        per_card_hour = "1.25"
        off-peak = "0.6"
        "#,
    )
    .expect("a book without faults")
    .expect("a book that says something");
    let zone = book.zone();
    let month = |text| Month::parse(text).expect("a month").interval(zone);
    let range = Interval::new(month("2017-08").start(), month("2017-12").end()).expect("five months");

    for (kind, by) in [
        (ReportKind::Bill, ""),
        (ReportKind::Bill, "project"),
        (ReportKind::Bill, "month,project,user"),
        (ReportKind::Bill, "day,queue"),
        (ReportKind::Usage, "project"),
        (ReportKind::Owners, "user"),
    ] {
        let by = Dimension::parse_list(by).expect("names");
        let query = ReportQuery { report: kind, by: by.clone(), range: None, zone: None };
        let slots_in = Instant::now();
        let slots = query.slots(range, Some(&book), zone).expect("a zone of whole quarter hours");
        let slots_ms = slots_in.elapsed().as_secs_f64() * 1e3;
        let input = input(&slots);
        let mut runs: Vec<f64> = (0..15)
            .map(|_| {
                let start = Instant::now();
                let report = report(&input, &slots, Some(&book), &query);
                assert!(report.holes.is_empty());
                start.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        runs.sort_by(f64::total_cmp);
        let by: Vec<String> = by.iter().map(ToString::to_string).collect();
        println!(
            "{kind:8} by {:20} {:3} slots in {slots_ms:5.2} ms; report {:6.2} ms least, {:6.2} ms middle",
            by.join(","),
            slots.all().len(),
            runs[0],
            runs[runs.len() / 2]
        );
    }
}

/// Jobs of 15 projects and 320 users; cells of attempts one after the other, as a scan by attempt gives them.
fn input(slots: &Slots) -> ReportInput {
    let mut state = 20_170_801_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let names = |prefix: &str, n: usize| (0..n).map(|i| Name::from(format!("{prefix}{i}"))).collect::<Vec<_>>();
    let (projects, users, queues) = (names("project", 15), names("user", 320), names("queue", 4));
    let attempts = (0..JOBS)
        .map(|i| {
            let user = draw(320) as usize;
            ReportAttempt {
                key: AttemptKey::new("philly", &format!("application_{i}"), "s1506816000r0"),
                cluster: projects[user % 15].clone(),
                org: None,
                project: Some(projects[user % 15].clone()),
                user: Some(users[user].clone()),
                queue: Some(queues[draw(4) as usize].clone()),
                class: None,
                labels: BTreeMap::new(),
                state: JobState::ALL[draw(9) as usize],
                cards_requested: None,
                cards: CardShare::CARD,
                submitted_at: Some(slots.covers().start()),
                held: Interval::new(slots.covers().start(), slots.covers().end()),
            }
        })
        .collect::<Vec<_>>();
    let buckets = (slots.covers().length_ms() / BUCKET_MS) as u64;
    let cells = (0..CELLS)
        .map(|i| {
            let attempt = (u64::from(i) * u64::from(JOBS) / u64::from(CELLS)) as u32;
            let bucket = slots.covers().start().unix_ms() + draw(buckets) as i64 * BUCKET_MS;
            let card_time = CardTime::from_part_ms(i128::from(draw(1 << 40)) * 18_018_000);
            Cell {
                attempt: Some(attempt),
                state: CardState::Held,
                cluster: attempts[attempt as usize].cluster.clone(),
                pool: None,
                node: None,
                model: None,
                mig_profile: None,
                share: None,
                reservation: None,
                set_aside: None,
                slot: slots.slot_of(Timestamp::from_unix_ms(bucket)).expect("inside"),
                card_time,
                billed_time: card_time,
                unseen: card_time,
                unproven: CardTime::ZERO,
                used: None,
            }
        })
        .collect();
    ReportInput { attempts, cells, ..ReportInput::default() }
}
