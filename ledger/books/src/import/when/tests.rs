use super::*;
use crate::import::time::TimeReader;
use cardhour_domain::Zone;

const NOW: &str = "2026-11-29T00:00:00Z";

/// `submit start end length`, `-` for none, in Berlin; gives `final|open submit start end vouched`.
#[track_caller]
fn check(told: &str, length_s: Option<i64>, state: JobState, over_by: OverBy, expected: &str) {
    let reader = TimeReader::in_zone(Zone::parse("Europe/Berlin").unwrap());
    let times: Vec<_> = told.split_whitespace().map(|text| reader.read(text).unwrap()).collect();
    let told = Told { submitted: times[0], started: times[1], ended: times[2], length_ms: length_s.map(|s| s * 1000) };
    let now = Timestamp::parse_rfc3339(NOW).unwrap();
    let shown = match When::of(told, state, over_by, now) {
        Ok(when) => {
            let kind = if when.is_final { "final" } else { "open" };
            let show = |at: Option<Timestamp>| at.map_or("-".to_owned(), |at| at.to_string());
            let (submit, start) = (show(when.submitted_at), show(when.started_at));
            format!("{kind} {submit} {start} {} {}", show(when.ended_at), show(when.vouched_until))
        }
        Err(refusal) => format!("{}: {}", refusal.field, refusal.reason),
    };
    assert_eq!(shown, expected);
}

#[test]
fn in_sacct_the_state_decides_and_an_open_rows_end_is_an_estimate() {
    let told = "2020-06-24T15:06:34Z 2020-06-30T19:24:08Z 2020-06-30T19:24:08Z";
    check(
        told,
        Some(81_142),
        JobState::Running,
        OverBy::State,
        "open 2020-06-24T15:06:34Z 2020-06-30T19:24:08Z - 2020-07-01T17:56:30Z",
    );
    check(
        told,
        Some(81_142),
        JobState::Unknown,
        OverBy::State,
        "final 2020-06-24T15:06:34Z 2020-06-30T19:24:08Z 2020-06-30T19:24:08Z -",
    );
    check(
        "2020-07-01T15:28:17Z 2020-07-02T00:00:00Z 2020-07-01T15:28:17Z",
        Some(0),
        JobState::Pending,
        OverBy::State,
        "open 2020-07-01T15:28:17Z - - -",
    );
    check("- 2020-07-01T00:00:00Z -", None, JobState::Unknown, OverBy::State, "open - 2020-07-01T00:00:00Z - -");
}

#[test]
fn in_csv_an_end_decides() {
    check(
        "- 2020-07-01T00:00:00Z 2020-07-01T01:00:00Z",
        None,
        JobState::Running,
        OverBy::End,
        "final - 2020-07-01T00:00:00Z 2020-07-01T01:00:00Z -",
    );
    check(
        "- 2020-07-01T00:00:00Z -",
        Some(60),
        JobState::Completed,
        OverBy::End,
        "open - 2020-07-01T00:00:00Z - 2020-07-01T00:01:00Z",
    );
    check(
        "- 2020-07-01T00:00:00Z -",
        Some(60),
        JobState::Unknown,
        OverBy::Length,
        "final - 2020-07-01T00:00:00Z 2020-07-01T00:01:00Z -",
    );
}

/// Berlin's clocks showed 02:00 to 03:00 twice on 2025-10-26: 00:00Z to 01:00Z and 01:00Z to 02:00Z.
#[test]
fn of_a_time_that_occurs_twice_the_length_decides() {
    let check = |times: &str, length_s, start: &str, end: &str| {
        let expected = format!("final - 2025-10-26T{start}Z 2025-10-26T{end}Z -");
        check(times, length_s, JobState::Completed, OverBy::State, &expected);
    };
    check("- 2025-10-26T02:30:00 2025-10-26T02:45:00", Some(900), "00:30:00", "00:45:00");
    check("- 2025-10-26T02:30:00 2025-10-26T02:45:00", Some(4_500), "00:30:00", "01:45:00");
    check("- 2025-10-26T02:30:00 2025-10-26T03:30:00", Some(3_600), "01:30:00", "02:30:00");
    check("- 2025-10-26T02:30:00 2025-10-26T03:30:00", Some(7_200), "00:30:00", "02:30:00");
    check("- 2025-10-26T02:45:00 2025-10-26T02:15:00", None, "00:45:00", "01:15:00");
    check("- 2025-10-26T02:30:00 2025-10-26T02:45:00", None, "00:30:00", "00:45:00");
}

#[test]
fn k15_a_row_whose_times_cannot_be_is_refused_with_the_reason() {
    let end = |told: &str, expected: &str| check(told, None, JobState::Completed, OverBy::End, expected);
    end("- 2027-01-01T00:00:00Z 2018-01-01T00:00:00Z", "started_at: 2027-01-01T00:00:00Z is in the future");
    end(
        "- 2020-01-01T00:00:00Z 2018-01-01T00:00:00Z",
        "ended_at: 2018-01-01T00:00:00Z is before the start, 2020-01-01T00:00:00Z",
    );
    end("- 2020-01-01T00:00:00Z 2106-02-07T06:28:14Z", "ended_at: 2106-02-07T06:28:14Z is in the future");
    end("- 1969-12-31T00:00:00Z 1970-01-01T00:00:01Z", "started_at: 1969-12-31T00:00:00Z is before 1970");
    end(
        "- 2000-01-01T00:00:00Z 2020-01-01T00:00:00Z",
        "ended_at: 2020-01-01T00:00:00Z is more than ten years after the start, 2000-01-01T00:00:00Z",
    );
    check(
        "- 2020-01-01T00:00:00Z -",
        None,
        JobState::Failed,
        OverBy::State,
        "ended_at: is absent, yet the job is over (failed)",
    );
}

/// By hand: an hour before 02:00 is 01:00. A run that took no time may have waited until it was cancelled.
#[test]
fn a_run_that_took_time_has_a_start_also_where_the_row_leaves_it_out() {
    let told = "2026-03-01T00:00:00Z - 2026-03-02T02:00:00Z";
    let expected = "final 2026-03-01T00:00:00Z 2026-03-02T01:00:00Z 2026-03-02T02:00:00Z -";
    check(told, Some(3_600), JobState::Completed, OverBy::State, expected);
    let never = "final 2026-03-01T00:00:00Z - 2026-03-02T02:00:00Z -";
    check(told, Some(0), JobState::Cancelled, OverBy::State, never);
    check(told, None, JobState::Cancelled, OverBy::State, never);
}
