//! Field reports of attribution by Slurm (`README.md` beside this file has the list), on the real binary.

use crate::site::{Answer, Rows, Site, micros};

const HEADER: &str =
    "JobID|JobIDRaw|Cluster|Partition|Account|User|Submit|Start|End|ElapsedRaw|State|NNodes|NodeList|AllocTRES\n";

/// A job on node n1. Times are UTC; `end` may be `Unknown`.
fn job(id: u32, start: &str, end: &str, state: &str, cards: u32) -> String {
    format!("{id}|{id}|c|gpu|vision|ann|{start}|{start}|{end}||{state}|1|n1|gres/gpu:h200={cards},gres/gpu={cards}\n")
}

/// A step of that job with its own part of the cards.
fn step(id: u32, start: &str, end: &str, cards: u32) -> String {
    format!("{id}.0|{id}.0|c||vision||{start}|{start}|{end}||COMPLETED|1|n1|gres/gpu:h200={cards},gres/gpu={cards}\n")
}

fn import(site: &Site, name: &str, rows: &str, speaks_for: &str) -> Answer {
    let file = site.file(name, format!("{HEADER}{rows}"));
    let answer = site.run(&format!("import jobs {file} --format sacct --output json {speaks_for}"));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer
}

fn count(answer: &Answer, what: &str) -> u64 {
    let line: serde_json::Value = serde_json::from_str(answer.out.trim()).unwrap();
    line[what].as_u64().unwrap()
}

fn hours(rows: &Rows) -> i128 {
    micros(rows.only("card_hours"))
}

/// Every job and usage row, in an order of its own.
fn books(site: &Site) -> String {
    site.sql_text("select * from jobs order by attempt_key")
        + &site.sql_text("select * from usage order by bucket_start, attempt_key, state")
}

#[test]
fn s11_a_collector_that_sends_everything_again_changes_nothing() {
    let site = Site::new();
    let rows = job(1, "2026-03-01T00:00:00", "2026-03-01T02:00:00", "COMPLETED", 4)
        + &job(2, "2026-03-01T01:00:00", "2026-03-01T04:00:00", "FAILED", 1)
        + &job(3, "2026-03-01T22:00:00", "Unknown", "RUNNING", 2);
    let speaks_for = "--as-of 2026-03-02T00:00:00Z";
    assert_eq!(count(&import(&site, "a", &rows, speaks_for), "booked"), 3);
    // 4 × 2 + 1 × 3 + 2 × 2
    assert_eq!(hours(&site.report("usage")), 15_000_000);
    let before = books(&site);
    for _ in 0..2 {
        let again = import(&site, "a", &rows, speaks_for);
        assert_eq!((count(&again, "booked"), count(&again, "unchanged"), count(&again, "superseded")), (0, 3, 0));
    }
    assert_eq!(books(&site), before);
    assert_eq!(site.sql("select count(*) as n from jobs_history").only("n"), "0");
}

/// Four cards for two hours are eight card-hours, at 10.00 eighty, whatever the step that used one of them says.
#[test]
fn s16_four_cards_are_held_and_charged_where_one_is_used() {
    let site = Site::new();
    let (start, end) = ("2026-03-01T00:00:00", "2026-03-01T02:00:00");
    import(&site, "a", &(job(1, start, end, "COMPLETED", 4) + &step(1, start, end, 1)), "--as-of 2026-03-02T00:00:00Z");
    let prices = site.file(
        "p.toml",
        "currency = \"CNY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"*\"\nper_card_hour = \"10.00\"\n",
    );
    let bill = site.report(&format!("bill --by project --prices {prices}"));
    assert_eq!((bill.only("card_hours"), bill.only("billed_card_hours")), ("8.000000", "8.000000"));
    assert_eq!(bill.only("cost"), "80.00");
    assert_eq!(bill.only("attempts"), "1", "the step is none");
}

/// A pool of two cards, both held from 1 March 00:00 by a job that is `RUNNING` for ever in the database. What is vouched for ends at
/// 2 March 00:00: 48 card-hours. The next that is known is the 9th, in which another job has one card: 24 card-hours held, 24 free. The seven
/// days between are nobody's: 7 × 48 = 336 card-hours unaccounted, of 9 × 48 = 432. Then the record is mended: it ended at 06:00, 12 card-hours;
/// 12 + 24 are held, 432 − 36 = 396 free.
#[test]
fn s20_a_runaway_job_is_held_up_to_its_as_of_and_corrected_by_a_later_export() {
    let site = Site::new();
    let nodes = site.file("nodes.csv", "cluster,node,model,cards,in_service_at\nc,n1,h200,2,2026-03-01T00:00:00Z\n");
    site.import(&format!("nodes {nodes}"));
    let running = job(7, "2026-03-01T00:00:00", "Unknown", "RUNNING", 2);
    for _ in 0..3 {
        import(&site, "old", &running, "--as-of 2026-03-02T00:00:00Z");
    }
    assert_eq!(hours(&site.report("usage")), 48_000_000);
    let other = job(8, "2026-03-09T00:00:00", "2026-03-10T00:00:00", "COMPLETED", 1);
    import(&site, "ninth", &other, "--as-of 2026-03-10T00:00:00Z --covers 2026-03-09..2026-03-10");
    let figures = || {
        let row = site.report("capacity --from 2026-03-01 --to 2026-03-10");
        ["card_hours", "free_card_hours", "unaccounted_card_hours", "capacity_card_hours"]
            .map(|column| micros(row.only(column)) / 1_000_000)
    };
    assert_eq!(figures(), [72, 24, 336, 432]);

    let ended = job(7, "2026-03-01T00:00:00", "2026-03-01T06:00:00", "CANCELLED", 2);
    let mended = import(&site, "mended", &ended, "--as-of 2026-03-10T00:00:00Z --covers 2026-03-01..2026-03-10");
    assert_eq!((count(&mended, "booked"), count(&mended, "superseded")), (1, 1));
    assert_eq!(figures(), [36, 396, 0, 432]);
    // The old export, sent again, brings nothing back.
    import(&site, "old", &running, "--as-of 2026-03-02T00:00:00Z");
    assert_eq!(figures(), [36, 396, 0, 432]);
}

/// Two cards for three hours, then the last event came seven seconds late: 14 card-seconds more, once.
#[test]
fn s21_an_end_that_comes_some_seconds_late_changes_the_books_once() {
    let site = Site::new();
    let end = |seconds: &str| job(5, "2026-03-01T09:00:00", &format!("2026-03-01T12:00:{seconds}"), "CANCELLED", 2);
    import(&site, "first", &end("00"), "--as-of 2026-03-01T13:00:00Z");
    assert_eq!(hours(&site.report("usage")), 6_000_000);
    assert_eq!(count(&import(&site, "late", &end("07"), "--as-of 2026-03-01T14:00:00Z"), "booked"), 1);
    let held_ms = "select sum(card_time) as t from usage where attempt_key is not null";
    let parts = 18_018_000i128 * 2 * (3 * 3600 + 7) * 1000;
    assert_eq!(site.sql(held_ms).only("t"), parts.to_string());
    let before = books(&site);
    for (name, seconds, as_of) in [("late", "07", "14"), ("first", "00", "13"), ("late", "07", "14")] {
        let again = import(&site, name, &end(seconds), &format!("--as-of 2026-03-01T{as_of}:00:00Z"));
        assert_eq!(count(&again, "booked"), 0, "{name}");
    }
    assert_eq!(books(&site), before);
    assert_eq!(site.sql("select count(*) as n from jobs_history").only("n"), "1");
}

/// Four cards from 22:00 to 04:00: 8 card-hours on the first day, 16 on the second.
#[test]
fn s22_a_job_over_midnight_in_two_daily_exports_is_one() {
    let first = job(9, "2026-03-01T22:00:00", "Unknown", "RUNNING", 4);
    let second = job(9, "2026-03-01T22:00:00", "2026-03-02T04:00:00", "COMPLETED", 4);
    let exports = [
        (first.as_str(), "--as-of 2026-03-02T00:00:00Z --covers 2026-03-01..2026-03-02"),
        (second.as_str(), "--as-of 2026-03-03T00:00:00Z --covers 2026-03-02..2026-03-03"),
    ];
    let mut seen = Vec::new();
    for order in [[0, 1], [1, 0]] {
        let site = Site::new();
        for index in order {
            import(&site, &format!("day-{index}"), exports[index].0, exports[index].1);
        }
        let days = site.report("usage --by day");
        let hours = days.by("day", "card_hours");
        assert_eq!((micros(&hours["2026-03-01"]), micros(&hours["2026-03-02"])), (8_000_000, 16_000_000));
        assert_eq!(site.report("usage").only("attempts"), "1");
        seen.push(books(&site));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn s25_an_export_that_lists_only_one_of_the_two_kinds_of_cards_is_warned_of() {
    for (tres, warned) in [
        ("gres/gpu:h200=2", Some("beside the typed")),
        ("gres/gpu=2", Some("gres/gpu:TYPE")),
        ("gres/gpu:h200=2,gres/gpu=2", None),
    ] {
        let site = Site::new();
        let row = job(1, "2026-03-01T00:00:00", "2026-03-01T01:00:00", "COMPLETED", 2)
            .replace("gres/gpu:h200=2,gres/gpu=2", tres);
        let said = import(&site, "a", &row, "").err;
        let file = site.file("a.sacct", format!("{HEADER}{row}"));
        let doctor = site.run(&format!("doctor --file {file} --file-format sacct --format csv")).out;
        for told in [said, doctor] {
            match warned {
                Some(words) => {
                    assert!(told.contains("AccountingStorageTRES") && told.contains(words), "{tres}: {told}")
                }
                None => assert!(!told.contains("AccountingStorageTRES"), "{tres}: {told}"),
            }
        }
        assert_eq!(hours(&site.report("usage")), 2_000_000, "{tres}");
    }
}
