use super::*;

fn time(text: &str) -> NaiveTime {
    NaiveTime::parse_from_str(text, "%H:%M").unwrap()
}

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).unwrap()
}

fn term(text: &str) -> Term {
    text.parse().unwrap()
}

fn monthly(day: u32, at: &str) -> Schedule {
    Schedule::Monthly { day, time: time(at) }
}

fn weekly(weekday: Weekday, at: &str) -> Schedule {
    Schedule::Weekly { weekday, time: time(at) }
}

#[track_caller]
fn check_due(schedule: Schedule, zone: &str, of: &str, expected: &str) {
    let zone = Zone::parse(zone).unwrap();
    let due = schedule.due_at(term(of), zone).unwrap();
    assert_eq!(due, at(expected), "{of} in {zone} is due at {due}");
    // It is the latest from that instant on, and not a millisecond before.
    assert_eq!(schedule.latest(due, zone), Some(term(of)));
    let before = Timestamp::from_unix_ms(due.unix_ms() - 1);
    assert_eq!(schedule.latest(before, zone), term(of).before(), "{of} in {zone}");
    assert_eq!(schedule.next(before, zone), Some((term(of), due)), "{of} in {zone}");
}

/// From a calendar. Shanghai is UTC+8 all year; New York UTC−5, from 8 March to 1 November 2026 UTC−4.
#[test]
fn a_term_is_due_at_its_local_day_and_time_in_two_zones() {
    check_due(monthly(3, "06:00"), "Asia/Shanghai", "2026-03", "2026-04-02T22:00:00Z");
    check_due(monthly(3, "06:00"), "America/New_York", "2026-03", "2026-04-03T10:00:00Z");
    check_due(monthly(3, "06:00"), "America/New_York", "2026-10", "2026-11-03T11:00:00Z");
    check_due(monthly(1, "00:00"), "America/New_York", "2026-12", "2027-01-01T05:00:00Z");
    // Monday 11 May 2026 begins week 20; week 19 is due on that Monday, and on the Sunday that ends week 20.
    check_due(weekly(Weekday::Mon, "08:00"), "Asia/Shanghai", "2026-W19", "2026-05-11T00:00:00Z");
    check_due(weekly(Weekday::Sun, "23:30"), "America/New_York", "2026-W19", "2026-05-18T03:30:00Z");
}

/// From a calendar: February has 28 days in 2026 and 29 in 2028, April 30.
#[test]
fn a_day_that_a_month_does_not_have_is_its_last() {
    check_due(monthly(31, "12:00"), "UTC", "2026-01", "2026-02-28T12:00:00Z");
    check_due(monthly(30, "12:00"), "UTC", "2028-01", "2028-02-29T12:00:00Z");
    check_due(monthly(31, "12:00"), "UTC", "2026-03", "2026-04-30T12:00:00Z");
    check_due(monthly(31, "12:00"), "UTC", "2025-12", "2026-01-31T12:00:00Z");
}

/// New York, 2026: on Sunday 8 March, of 23 hours, there is no 02:30, and clocks stand at 03:00 at 07:00 UTC; on Sunday 1 November, of 25 hours,
/// 01:30 is at 05:30 and at 06:30 UTC.
#[test]
fn a_time_that_does_not_exist_or_occurs_twice_is_one_instant() {
    let sunday = |at| weekly(Weekday::Sun, at);
    check_due(sunday("02:30"), "America/New_York", "2026-W09", "2026-03-08T07:00:00Z");
    check_due(sunday("01:30"), "America/New_York", "2026-W43", "2026-11-01T05:30:00Z");
    check_due(monthly(1, "01:30"), "America/New_York", "2026-10", "2026-11-01T05:30:00Z");
}

/// `due / waiting / given up`, each `TERM` or `TERM:draft`, `TERM:books`.
#[track_caller]
fn check_owed(schedule: Schedule, closing: Closing, now: &str, since: &str, done: &str, closed: &str, expected: &str) {
    let done = done.split_whitespace().map(|text| match text.split_once(':') {
        Some((of, edition)) => (term(of), Edition::from_name(edition).unwrap()),
        None => (term(text), Edition::Final),
    });
    let closed = closed.split_whitespace().map(|text| Month::parse(text).unwrap()).collect();
    let look = Look {
        now: at(now),
        zone: Zone::parse("Europe/Berlin").unwrap(),
        since: (!since.is_empty()).then(|| term(since)),
        done: &done.collect(),
        closed: &closed,
        books: Interval::new(at("2024-01-01T00:00:00Z"), at("2026-12-20T00:00:00Z")),
    };
    let owed = Owed::of(schedule, closing, &look);
    let due = owed.due.iter().map(|(term, edition)| match edition {
        Edition::Draft => format!("{term}:draft"),
        Edition::Final => term.to_string(),
    });
    let waiting = owed.waiting.iter().map(|(term, waits)| match waits {
        Waits::ForClosing => term.to_string(),
        Waits::ForBooks => format!("{term}:books"),
    });
    let given_up = owed.given_up.iter().map(ToString::to_string);
    let all = [due.collect::<Vec<_>>(), waiting.collect(), given_up.collect()].map(|part| part.join(" "));
    assert_eq!(all.join(" / ").trim_end(), expected);
}

#[test]
fn the_first_look_owes_the_latest_term_and_no_history() {
    check_owed(monthly(3, "06:00"), Closing::Any, "2026-04-10T00:00:00Z", "", "", "", "2026-03 /  /");
    check_owed(monthly(3, "06:00"), Closing::Any, "2026-04-02T00:00:00Z", "", "", "", "2026-02 /  /");
}

/// By hand: on 10 April the months from October on are due to March; two were delivered.
#[test]
fn what_was_missed_while_nobody_looked_is_made_up_oldest_first_and_nothing_twice() {
    let of = |done: &str, expected: &str| {
        check_owed(monthly(3, "06:00"), Closing::Any, "2026-04-10T00:00:00Z", "2025-10", done, "", expected);
    };
    of("2025-10 2025-12", "2025-11 2026-01 2026-02 2026-03 /  /");
    of("2025-10 2025-11 2025-12 2026-01 2026-02 2026-03", " /  /");
    // Weeks, from Monday 6 April: weeks 13 and 14 of that year are over.
    let monday = weekly(Weekday::Mon, "06:00");
    check_owed(monday, Closing::Any, "2026-04-10T00:00:00Z", "2026-W12", "2026-W12", "", "2026-W13 2026-W14 /  /");
}

/// By hand: from January 2025 to March 2026 are 15 months, the latest 12 from April 2025 on.
#[test]
fn what_was_missed_too_long_ago_is_given_up_and_told() {
    let now = "2026-04-10T00:00:00Z";
    let done = "2025-04 2025-05 2025-06 2025-07 2025-08 2025-09 2025-10 2025-11 2025-12 2026-01 2026-02";
    check_owed(monthly(3, "06:00"), Closing::Any, now, "2025-01", done, "", "2026-03 /  / 2025-01 2025-02 2025-03");
}

#[test]
fn a_statement_waits_for_the_closing_unless_drafts_are_asked_for_and_is_then_delivered_again() {
    let of = |closing, done: &str, closed: &str, expected: &str| {
        check_owed(monthly(3, "06:00"), closing, "2026-04-10T00:00:00Z", "2026-01", done, closed, expected);
    };
    of(Closing::Closed, "2026-01", "2026-01 2026-02", "2026-02 / 2026-03 /");
    of(Closing::Closed, "2026-01 2026-02", "2026-01 2026-02 2026-03", "2026-03 /  /");
    of(Closing::DraftsToo, "2026-01", "2026-01 2026-02", "2026-02 2026-03:draft /  /");
    of(Closing::DraftsToo, "2026-01 2026-02 2026-03:draft", "2026-01 2026-02", " / 2026-03 /");
    of(Closing::DraftsToo, "2026-01 2026-02 2026-03:draft", "2026-01 2026-02 2026-03", "2026-03 /  /");
    // A closed month's draft isn't made up.
    of(Closing::DraftsToo, "2026-01 2026-02", "2026-01 2026-02 2026-03", "2026-03 /  /");
}

/// The books of the tests end on 20 December 2026.
#[test]
fn a_term_that_the_books_do_not_reach_waits_for_them() {
    let of = |now: &str, expected: &str| {
        check_owed(monthly(1, "00:00"), Closing::Any, now, "2026-12", "", "", expected);
    };
    of("2027-02-01T00:00:00Z", "2026-12 / 2027-01:books /");
    let empty = Look {
        now: at("2026-04-10T00:00:00Z"),
        zone: Zone::UTC,
        since: None,
        done: &BTreeSet::new(),
        closed: &BTreeSet::new(),
        books: None,
    };
    let owed = Owed::of(monthly(1, "00:00"), Closing::Any, &empty);
    assert_eq!((owed.due, owed.waiting), (Vec::new(), vec![(term("2026-03"), Waits::ForBooks)]));
}

#[test]
fn a_term_is_read_back_as_it_is_written() {
    for text in ["2026-W20", "2026-03"] {
        assert_eq!(term(text).to_string(), text);
    }
    for text in ["2026-W60", "2026-13", "", "march"] {
        assert!(text.parse::<Term>().is_err(), "{text}");
    }
}
