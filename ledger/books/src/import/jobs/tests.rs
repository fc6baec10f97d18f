use super::*;
use crate::import::fields::JOB_FIELDS;
use crate::import::map::MapFile;
use crate::import::readers::{Format, ReaderOptions, read};
use cardhour_domain::{CardTime, JobState};
use std::fmt::Write;

mod real;

const NOW: &str = "2026-11-29T00:00:00Z";

/// `|` between fields, the first line names them.
fn import(format: Format, map: &str, text: &str) -> Imported {
    import_as_of(format, map, text, None)
}

fn import_as_of(format: Format, map: &str, text: &str, as_of: Option<&str>) -> Imported {
    let mut lines = text.trim().lines().map(str::trim);
    let columns = Columns(lines.next().unwrap().split('|').map(str::to_owned).collect());
    let records = lines.enumerate().map(|(i, line)| {
        let text = RecordText::Owned(line.to_owned());
        Ok(Record { line: i as u64 + 2, text, values: line.split('|').collect() })
    });
    let mapping = Mapping { format, map: MapFile::parse(map, JOB_FIELDS).unwrap() };
    let options = Options {
        as_of: as_of.map(|at| Timestamp::parse_rfc3339(at).unwrap()),
        covers: None,
        cluster: None,
        now: Timestamp::parse_rfc3339(NOW).unwrap(),
    };
    attempts(b"", &columns, records, &mapping, &options).unwrap()
}

/// Every attempt on a line, every rejected row on one.
fn shown(imported: &Imported) -> String {
    let mut out = String::new();
    let show = |at: Option<Timestamp>| at.map_or("-".to_owned(), |at| at.to_string());
    for a in &imported.attempts {
        let end = if a.is_final { show(a.ended_at) } else { format!("open as of {}", show(a.as_of)) };
        let cards = a.cards.cards().normalize();
        writeln!(out, "{} {} {} cards {} to {end}", a.key, a.state.name(), cards, show(a.started_at)).unwrap();
    }
    for r in &imported.rejected {
        writeln!(out, "line {}: {}: {}", r.line, r.field, r.reason).unwrap();
    }
    if imported.steps > 0 {
        writeln!(out, "{} steps", imported.steps).unwrap();
    }
    out
}

#[track_caller]
fn check(format: Format, map: &str, text: &str, expected: &str) {
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(shown(&import(format, map, text)).trim().lines().collect::<Vec<_>>(), expected);
}

fn card_hours(imported: &Imported) -> String {
    let held = imported.attempts.iter().filter_map(|a| {
        let end = if a.is_final { a.ended_at } else { a.as_of };
        Some(CardTime::of(a.cards, Interval::new(a.started_at?, end?)?))
    });
    held.sum::<CardTime>().card_hours().round_dp(4).to_string()
}

const SACCT: &str = "JobID|JobIDRaw|Cluster|State|Submit|Start|End|ElapsedRaw|AllocTRES";

#[test]
fn in_sacct_the_state_says_whether_a_job_is_over() {
    check(
        Format::Sacct,
        "",
        &format!(
            "{SACCT}
            1|1|c|COMPLETED|2020-01-01T00:00:00|2020-01-01T01:00:00|2020-01-01T02:00:00|3600|gres/gpu=2
            2|2|c|RUNNING|2020-01-01T00:00:00|2020-01-01T01:00:00|Unknown|1800|gres/gpu=1
            3|3|c|RUNNING|2020-01-01T00:00:00|2020-01-01T01:00:00|2020-01-01T01:00:00||gres/gpu=1
            4|4|c|PENDING|2020-01-01T00:10:00|Unknown|2020-01-01T09:00:00|0|
            5|5|c|CANCELLED by 7|2020-01-01T00:10:00|Unknown|2020-01-01T00:20:00|0|
            6|6|c|FOO|2020-01-01T00:10:00|2020-01-01T01:00:00|2020-01-01T01:30:00|1800|gres/gpu=1
            7|7|c|FAILED|2020-01-01T00:10:00|2020-01-01T01:00:00|Unknown||gres/gpu=1"
        ),
        "c/1/s1577836800b1577840400 completed 2 cards 2020-01-01T01:00:00Z to 2020-01-01T02:00:00Z
        c/2/s1577836800b1577840400 running 1 cards 2020-01-01T01:00:00Z to open as of 2020-01-01T01:30:00Z
        c/3/s1577836800b1577840400 running 1 cards 2020-01-01T01:00:00Z to open as of 2020-01-01T02:00:00Z
        c/4/s1577837400 pending 0 cards - to open as of 2020-01-01T02:00:00Z
        c/5/s1577837400 cancelled 0 cards - to 2020-01-01T00:20:00Z
        c/6/s1577837400b1577840400 unknown 1 cards 2020-01-01T01:00:00Z to 2020-01-01T01:30:00Z
        line 8: ended_at: is absent, yet the job is over (failed)",
    );
}

#[test]
fn what_whoever_imports_says_goes_before_the_map_and_that_before_the_row() {
    let text = "job_id|started_at|cards|duration_s|ended_at
        a|2020-01-01T00:00:00Z|1|60|";
    let as_of = |map: &str, said| import_as_of(Format::Csv, map, text, said).attempts[0].as_of.unwrap().to_string();
    assert_eq!(as_of("", None), "2020-01-01T00:01:00Z");
    assert_eq!(as_of("as_of = \"2020-01-01T00:05:00Z\"", None), "2020-01-01T00:05:00Z");
    assert_eq!(as_of("as_of = \"2020-01-01T00:05:00Z\"", Some("2020-01-01T00:10:00Z")), "2020-01-01T00:10:00Z");
}

#[test]
fn s24_every_requeue_is_an_attempt_of_its_own() {
    check(
        Format::Sacct,
        "",
        "JobID|DBIndex|State|Submit|Start|End|AllocTRES
        9|70|REQUEUED|2020-01-01T00:00:00|2020-01-01T01:00:00|2020-01-01T02:00:00|gres/gpu=1
        9|71|PREEMPTED|2020-01-01T02:00:00|2020-01-01T03:00:00|2020-01-01T04:00:00|gres/gpu=1
        9|0|NODE_FAIL|2020-01-01T04:00:00|2020-01-01T05:00:00|2020-01-01T06:00:00|gres/gpu=1",
        "/9/db70 requeued 1 cards 2020-01-01T01:00:00Z to 2020-01-01T02:00:00Z
        /9/db71 preempted 1 cards 2020-01-01T03:00:00Z to 2020-01-01T04:00:00Z
        /9/s1577851200b1577854800 node_fail 1 cards 2020-01-01T05:00:00Z to 2020-01-01T06:00:00Z",
    );
}

#[test]
fn s09_s10_an_id_that_came_round_again_is_another_job() {
    let imported = import(
        Format::Sacct,
        "",
        &format!(
            "{SACCT}
            12728301|12728301|c|COMPLETED|2017-10-03T00:00:00|2017-10-03T01:00:00|2017-10-03T02:00:00|3600|gres/gpu=1
            12728301|12728301|c|RUNNING|2024-10-03T00:00:00|2024-10-03T01:00:00|Unknown|3600|gres/gpu=1"
        ),
    );
    assert_ne!(imported.attempts[0].key, imported.attempts[1].key);
    assert!(!imported.attempts[1].is_final);
}

#[test]
fn s22_a_job_seen_in_two_exports_has_one_key() {
    let row = |state: &str, end: &str| {
        let text = format!("{SACCT}\n5|5|c|{state}|2020-01-01T00:00:00|2020-01-01T23:00:00|{end}|7200|gres/gpu=1");
        import(Format::Sacct, "", &text).attempts.remove(0)
    };
    let (open, over) = (row("RUNNING", "Unknown"), row("COMPLETED", "2020-01-02T02:00:00"));
    assert_eq!(open.key, over.key);
    assert!(!open.is_final && over.is_final);
}

#[test]
fn s12_array_tasks_and_parts_of_het_jobs_keep_both_ids() {
    let imported = import(
        Format::Sacct,
        "",
        &format!(
            "{SACCT}
            16_2|9999999999|c|COMPLETED|2020-01-01|2020-01-01|2020-01-02|3600|gres/gpu=1
            19+1|20|c|COMPLETED|2020-01-01|2020-01-01|2020-01-02|3600|gres/gpu=1
            16_[3-9%2]|16|c|PENDING|2020-01-01|Unknown|Unknown|0|"
        ),
    );
    let ids: Vec<_> = imported.attempts.iter().map(|a| format!("{} {}", a.job_id, a.key.job())).collect();
    assert_eq!(ids, ["16_2 c/9999999999_2", "19+1 c/20", "16_[3-9%2] c/16"]);
}

#[test]
fn a_step_is_counted_and_neither_booked_nor_quarantined() {
    check(
        Format::Sacct,
        "",
        "JobID|State|Submit|Start|End|AllocTRES
        7|COMPLETED|2020-01-01T00:00:00|2020-01-01T01:00:00|2020-01-01T02:00:00|gres/gpu=1
        7.batch|COMPLETED|2020-01-01T01:00:00|2020-01-01T01:00:00|2020-01-01T02:00:00|gres/gpu=1
        7.0|COMPLETED|2020-01-01T01:00:00|garbage|2020-01-01T02:00:00|gres/gpu=1
        8_4.extern|RUNNING|2020-01-01T01:00:00|2020-01-01T01:00:00|Unknown|gres/gpu=1",
        "/7/s1577836800b1577840400 completed 1 cards 2020-01-01T01:00:00Z to 2020-01-01T02:00:00Z
        3 steps",
    );
}

#[test]
fn s26_k15_a_row_that_cannot_be_booked_is_quarantined_with_its_field_and_reason() {
    check(
        Format::Sacct,
        "",
        "JobID|State|Submit|Start|End|AllocTRES
        1|COMPLETED|2020-01-01|2020-01-01|2020-01-02|gres/gpu=x
        2|COMPLETED|2020-01-01|2020-01-03|2020-01-02|gres/gpu=1
        3|COMPLETED|2020-01-01|2020-01-01|2106-02-07T06:28:14|gres/gpu=1
        4|COMPLETED|2020-01-01|2020-01-01|2020-01-02|gres/gpu=1000000000
        |COMPLETED|2020-01-01|2020-01-01|2020-01-02|gres/gpu=1
        x|COMPLETED|2020-01-01|2020-01-01|2020-01-02|gres/gpu=1
        7|COMPLETED|Unknown|Unknown|Unknown|gres/gpu=1
        8_[1-3,...]|COMPLETED|2020-01-01|2020-01-01|2020-01-02|gres/gpu=1
        9|COMPLETED|2020-01-01|yesterday|2020-01-02|gres/gpu=1",
        "line 2: cards: \"gres/gpu=x\" in \"gres/gpu=x\" is not a resource and its count, such as gres/gpu=2
        line 3: ended_at: 2020-01-02T00:00:00Z is before the start, 2020-01-03T00:00:00Z
        line 4: ended_at: 2106-02-07T06:28:14Z is in the future
        line 5: cards: \"gres/gpu=1000000000\": 1000000000 cards is more than 10000000 in one holding
        line 6: job_id: is absent, so a later export could not be told from this one
        line 7: job_id: \"x\" is not a Slurm job id such as 123, 123_4, 123_[1-3] or 19+1
        line 8: started_at: is absent, and so are submit and end: nothing says when the job was
        line 9: job_id: the set of tasks \"1-3,...\" is cut off or unreadable
        line 10: started_at: \"yesterday\" is not a time such as 2026-03-01T00:00:00Z, 2026-03-01 00:00:00 or a count of seconds",
    );
}

#[test]
fn suspended_time_stays_held_and_lengthens_what_an_open_row_vouches_for() {
    let imported = import(
        Format::Sacct,
        "",
        "JobID|State|Submit|Start|End|ElapsedRaw|Suspended|AllocTRES
        1|COMPLETED|2020-01-01|2020-01-01T00:00:00|2020-01-01T00:01:20|76|00:00:04|gres/gpu=3
        2|SUSPENDED|2020-01-01|2020-01-01T00:00:00|Unknown|76|00:00:04|gres/gpu=3",
    );
    let [over, open] = &imported.attempts[..] else { panic!("two attempts") };
    assert_eq!((over.suspended_ms, open.suspended_ms), (4_000, 4_000));
    assert_eq!(open.as_of.unwrap().to_string(), "2020-01-01T00:01:20Z");
}

#[test]
fn rows_without_ids_are_told_apart_by_content_and_count() {
    let imported = import(
        Format::Csv,
        "key = \"row\"\n[columns]\nstarted_at = \"t\"\nduration_s = \"d\"\ncards = \"n\"",
        "t|d|n
        2020-01-01 00:00:00|60.0|1
        2020-01-01 00:00:00|60.0|1
        2020-01-01 00:00:00||1
        2020-01-01 00:00:00|61.0|1",
    );
    let [first, again, other] = &imported.attempts[..] else { panic!("three attempts") };
    assert!(first.key.as_str().ends_with("-0") && again.key.as_str().ends_with("-1"));
    assert_ne!(first.key.job(), again.key.job());
    assert_ne!(first.key.job(), other.key.job());
    assert_eq!(imported.rejected[0].reason, "open_without_key");
    assert!(imported.notes[0].contains("key = \"row\""));
}

#[test]
fn a_value_that_the_map_does_not_name_is_unknown_or_absent_and_never_quarantined() {
    let imported = import(
        Format::Csv,
        r#"
        [columns]
        job_id = "id"
        started_at = "s"
        ended_at = "e"
        cards = { column = "milli", scale = "0.001", times = "n" }
        class = { column = "qos", map = { LS = "inference" } }
        state = { column = "phase", map = { Good = "completed" } }
        model = { column = "spec", default = "V100" }
        "#,
        "id|s|e|milli|n|qos|phase|spec
        a|2020-01-01|2020-01-02|460|1|LS|Good|T4
        b|2020-01-01|2020-01-02|500|3|XX|Odd|
        c|2020-01-01|2020-01-02||1|LS|Good|T4
        d|2020-01-01|2020-01-02|-1|1|LS|Good|T4
        e|||||LS|Good|T4
        f|2020-01-01||0|0|LS|Good|T4",
    );
    let cards: Vec<_> = imported.attempts.iter().map(|a| a.cards.cards().normalize().to_string()).collect();
    assert_eq!(cards, ["0.46", "1.5", "0"]);
    assert_eq!((imported.attempts[1].state, imported.attempts[1].class.as_deref()), (JobState::Unknown, None));
    assert_eq!(imported.attempts[1].model.as_deref(), Some("V100"));
    let rejected: Vec<_> = imported.rejected.iter().map(|r| format!("{}: {}", r.field, r.reason)).collect();
    assert_eq!(
        rejected,
        [
            "cards: is absent, and no cards can't be told from unknown ones",
            "cards: -0.001 cards is below zero",
            "started_at: is absent, and so are submit and end: nothing says when the job was",
        ]
    );
    assert!(imported.notes.iter().any(|note| note.ends_with("booked as unknown: Odd")), "{:?}", imported.notes);
}

#[test]
fn a_sacct_file_that_stops_inside_its_last_field_is_told() {
    let whole = "JobIDRaw|State|Start|End|AllocTRES\n7|COMPLETED|2024-01-01T00:00:00|2024-01-01T01:00:00|gres/gpu=16\n";
    let told = |text: &str| {
        let reading = read(Format::Sacct, text.as_bytes(), &ReaderOptions::default()).unwrap();
        let mapping = Mapping { format: Format::Sacct, map: MapFile::default() };
        let now = Timestamp::parse_rfc3339(NOW).unwrap();
        let options = Options { as_of: None, covers: None, cluster: None, now };
        let imported = attempts(text.as_bytes(), &reading.columns, reading.records, &mapping, &options).unwrap();
        imported.notes.iter().any(|note| note.contains("cut off"))
    };
    assert!(!told(whole));
    // Cut behind `gres/gpu=1`: a row that looks whole, with a card instead of sixteen.
    assert!(told(&whole[..whole.len() - 2]));
}

#[test]
fn a_share_is_declared_and_a_card_named_alone_is_not() {
    let declared = |columns: &str, row: &str| {
        let text = format!("job_id|started_at|ended_at|{columns}\na|2020-01-01|2020-01-02|{row}");
        let attempt = import(Format::Csv, "", &text).attempts.remove(0);
        (attempt.cards.cards().normalize().to_string(), attempt.share_declared)
    };
    assert_eq!(declared("card_uuid", "GPU-1"), ("1".to_owned(), false));
    assert_eq!(declared("card_uuid|share", "GPU-1|0.25"), ("0.25".to_owned(), true));
    assert_eq!(declared("cards|share", "2|0.5"), ("1".to_owned(), true));
    assert_eq!(declared("cards", "8"), ("8".to_owned(), true));
}

#[test]
fn an_open_row_that_only_the_file_vouches_for_is_refused_after_ten_years() {
    check(
        Format::Csv,
        "",
        "job_id|started_at|ended_at|cards
        old|2001-01-01T00:00:00Z||1
        new|2020-01-01T00:00:00Z|2020-01-02T00:00:00Z|1",
        "/new/b1577836800 unknown 1 cards 2020-01-01T00:00:00Z to 2020-01-02T00:00:00Z
        line 2: ended_at: 2020-01-02T00:00:00Z is more than ten years after the start, 2001-01-01T00:00:00Z",
    );
}

#[test]
fn a_file_covers_each_cluster_from_its_first_submit_to_the_files_as_of() {
    let imported = import(
        Format::Csv,
        "",
        "job_id|cluster|submitted_at|started_at|ended_at|cards
        a|x|2020-01-01T00:00:00Z|2020-01-02T00:00:00Z|2020-01-03T00:00:00Z|1
        b|y||2020-01-02T00:00:00Z|2020-01-05T00:00:00Z|1",
    );
    let covers: Vec<_> =
        imported.coverage.iter().map(|c| format!("{} {} {}", c.cluster, c.covers.start(), c.covers.end())).collect();
    assert_eq!(covers, ["x 2020-01-01T00:00:00Z 2020-01-05T00:00:00Z", "y 2020-01-02T00:00:00Z 2020-01-05T00:00:00Z"]);
}

#[test]
fn slurms_type_names_give_model_and_profile_where_the_map_gives_none() {
    let imported = import(
        Format::Sacct,
        "",
        "JobID|State|Start|End|AllocTRES|ReqTRES|ReqMem|NNodes|NodeList|Reason
        1|COMPLETED|2020-01-01|2020-01-02|gres/gpu=2,gres/gpu:a100=2|gres/gpu=4|1000Mn|2|gpu[1-2]|None
        2|FAILED|2020-01-01|2020-01-02|gres/gpu:1g.10gb=1||?|1|None assigned|NonZeroExitCode",
    );
    let [whole, slice] = &imported.attempts[..] else { panic!("two attempts") };
    assert_eq!((whole.model.as_deref(), whole.mig_profile.as_deref()), (Some("a100"), None));
    assert_eq!(whole.cards_requested.unwrap().cards().normalize().to_string(), "4");
    assert_eq!(whole.memory_requested_mib, Some(2000));
    assert_eq!(whole.nodes.iter().map(|n| &**n).collect::<Vec<_>>(), ["gpu1", "gpu2"]);
    assert_eq!((slice.model.as_deref(), slice.mig_profile.as_deref()), (None, Some("1g.10gb")));
    assert_eq!((whole.failure_reason.as_deref(), slice.failure_reason.as_deref()), (None, Some("NonZeroExitCode")));
}

#[test]
fn older_slurm_without_alloc_tres_counts_by_gres() {
    let cards = |columns: &str, row: &str| {
        let text = format!("JobID|State|Start|End|{columns}\n1|COMPLETED|2020-01-01|2020-01-02|{row}");
        import(Format::Sacct, "", &text).attempts[0].cards.cards().normalize().to_string()
    };
    assert_eq!(cards("AllocGRES|NNodes", "gpu:tesla:8|2"), "8");
    assert_eq!(cards("AllocTRES|AllocGRES", "cpu=4,node=1|gpu:2"), "2");
    assert_eq!(cards("ReqGRES|NNodes", "gpu:4|2"), "8");
    assert_eq!(cards("AllocTRES|ReqGRES|NNodes", "cpu=4,node=2|gpu:4|2"), "0");
}

/// Design §4.1: after its as-of an open job's cards are unaccounted, so nothing may speak for that time.
#[test]
fn a_file_covers_nothing_after_the_moment_it_is_said_to_speak_up_to() {
    let text = "job_id,cards,started_at,ended_at\n1,1,1970-01-01T00:00:00Z,\n";
    let reading = crate::import::readers::read(Format::Csv, text.as_bytes(), &Default::default()).unwrap();
    let at = Timestamp::from_unix_s;
    let options = Options { as_of: Some(at(60)), covers: Interval::new(at(0), at(90)), cluster: None, now: at(100) };
    let mapping = Mapping::without_map(Format::Csv);
    let imported = attempts(text.as_bytes(), &reading.columns, reading.records, &mapping, &options).unwrap();
    let covers: Vec<_> = imported.coverage.iter().map(|c| Some(c.covers)).collect();
    assert_eq!(covers, [Interval::new(at(0), at(60))]);
    assert_eq!(imported.attempts[0].as_of, Some(at(60)));
}

#[test]
fn an_export_in_which_nobody_ran_covers_its_time() {
    let mapping = Mapping { format: Format::Sacct, map: MapFile::parse("cluster = \"c\"", JOB_FIELDS).unwrap() };
    let columns = Columns(SACCT.split('|').map(str::to_owned).collect());
    let now = Timestamp::parse_rfc3339(NOW).unwrap();
    let covers = Interval::new(Timestamp::from_unix_s(0), Timestamp::from_unix_s(60));
    let options = Options { as_of: None, covers, cluster: None, now };
    let imported = attempts(b"", &columns, [].into_iter(), &mapping, &options).unwrap();
    assert_eq!(imported.coverage, [Coverage { cluster: "c".into(), covers: covers.unwrap() }]);
}

/// Nobody can say today that cards will be free tomorrow.
#[test]
fn a_file_covers_nothing_that_is_to_come() {
    let text = "job_id,cluster,cards,started_at,ended_at\n1,c,1,1970-01-01T00:00:00Z,1970-01-01T00:00:30Z\n";
    let at = Timestamp::from_unix_s;
    let options = Options { as_of: None, covers: Interval::new(at(0), at(90)), cluster: Some("c".into()), now: at(80) };
    let mapping = Mapping::without_map(Format::Csv);
    let until_now = [Coverage { cluster: "c".into(), covers: Interval::new(at(0), at(80)).unwrap() }];
    for text in [text, text.lines().next().unwrap()] {
        let reading = crate::import::readers::read(Format::Csv, text.as_bytes(), &Default::default()).unwrap();
        let imported = attempts(text.as_bytes(), &reading.columns, reading.records, &mapping, &options).unwrap();
        assert_eq!(imported.coverage, until_now, "{text}");
        assert!(
            imported.notes.iter().any(|note| note.contains("ends at the moment of the import")),
            "{:?}",
            imported.notes
        );
    }
    // Clocks may differ by a day; what is to come is to come all the same.
    let ahead = Options { as_of: Some(at(85)), ..options };
    let reading = crate::import::readers::read(Format::Csv, text.as_bytes(), &Default::default()).unwrap();
    let imported = attempts(text.as_bytes(), &reading.columns, reading.records, &mapping, &ahead).unwrap();
    assert_eq!(imported.coverage, until_now);
}

/// LED-4: the order of the rows, and with ids and one as-of any cut of them, change nothing that is booked.
#[test]
fn the_order_of_rows_and_a_cut_of_the_file_change_nothing() {
    let rows = [
        "1|1|c|COMPLETED|2020-01-01T00:00:00|2020-01-01T01:00:00|2020-01-01T02:00:00|3600|gres/gpu=2",
        "2|2|c|RUNNING|2020-01-01T00:00:00|2020-01-01T01:00:00|Unknown||gres/gpu=1",
        "3_[1-2]|3|c|FAILED|2020-01-01T00:00:00|2020-01-01T01:00:00|2020-01-01T03:00:00|7200|gres/gpu=1",
        "4|4|c|PENDING|2020-01-01T00:00:00|Unknown|Unknown||",
        "5|5|c|COMPLETED|2020-01-01T00:00:00|2020-01-01T01:00:00|2019-01-01T02:00:00|3600|gres/gpu=2",
    ];
    let booked = |rows: &[&str]| {
        let text = format!("{SACCT}\n{}", rows.join("\n"));
        let mut imported = import_as_of(Format::Sacct, "", &text, Some("2020-01-02T00:00:00Z"));
        imported.attempts.sort_by(|a, b| a.key.cmp(&b.key));
        (imported.attempts, imported.rejected.len())
    };
    let (whole, rejected) = booked(&rows);
    assert_eq!((whole.len(), rejected), (5, 1));
    let mut backwards = rows;
    backwards.reverse();
    assert_eq!(booked(&backwards), (whole.clone(), rejected));
    for cut in 1..rows.len() {
        let (mut first, second) = (booked(&rows[cut..]).0, booked(&rows[..cut]).0);
        first.extend(second);
        first.sort_by(|a, b| a.key.cmp(&b.key));
        assert_eq!(first, whole, "cut at {cut}");
    }
}

proptest::proptest! {
    /// Whatever stands in the cells, there is an answer for every row: booked, refused or a step.
    #[test]
    fn no_row_makes_the_import_panic(
        id in "[0-9_+.\\[\\],\\-%a-cé]{0,12}", state in "[A-Z ]{0,10}", start in "[0-9T: \\-.Z+]{0,24}",
        end in "[0-9T: \\-.Z+]{0,24}", elapsed in "[0-9:\\-.]{0,12}", tres in "[gres/pu:=,0-9]{0,24}",
    ) {
        let columns = Columns("JobID State Start End Elapsed AllocTRES".split(' ').map(str::to_owned).collect());
        let values = csv::StringRecord::from(vec![id, state, start, end, elapsed, tres]);
        let record = Record { line: 1, text: RecordText::Owned(String::new()), values };
        let now = Timestamp::parse_rfc3339(NOW).unwrap();
        let options = Options { as_of: None, covers: None, cluster: None, now };
        let mapping = Mapping::without_map(Format::Sacct);
        let imported = attempts(b"", &columns, [Ok(record)].into_iter(), &mapping, &options).unwrap();
        let answers = imported.attempts.len() + imported.rejected.len() + usize::try_from(imported.steps).unwrap();
        proptest::prop_assert!(answers >= 1);
    }
}
