use super::*;

#[test]
fn a_header_is_known_by_its_names_in_any_case_and_with_any_delimiter() {
    for delimiter in ["|", "|#", ";", "\t", "^"] {
        let input = "jobid|STATE|JobName\n1|RUNNING|a\n".replace('|', delimiter);
        check(Format::Sacct, input, &ReaderOptions::default(), "jobid|STATE|JobName\n2: 1|RUNNING|a");
    }
    check(
        Format::Sacct,
        "JobID@@State\n1@@RUNNING\n",
        &super::delimiter("@@"),
        "JobID|State
         2: 1|RUNNING",
    );
    let error = outcome(Format::Sacct, "1|RUNNING|a\n", &ReaderOptions::default());
    assert!(error.starts_with("line 1 does not name sacct's fields"), "{error}");
}

#[test]
fn a_delimiter_at_the_end_of_each_line_adds_no_column() {
    check(Format::Sacct, "JobID|State|\n1|RUNNING|\n", &ReaderOptions::default(), "JobID|State\n2: 1|RUNNING");
    check(
        Format::Sacct,
        "1|RUNNING|\n2|FAILED|\n",
        &fields(&["jobid", "state"]),
        "jobid|state\n1: 1|RUNNING\n2: 2|FAILED",
    );
}

#[test]
fn line_ends_inside_a_value_are_kept() {
    check(
        Format::Sacct,
        "JobID|SubmitLine|State\n1|sbatch a \\\n\n --b|RUNNING\n\n2|x|FAILED\n",
        &ReaderOptions::default(),
        "JobID|SubmitLine|State
         2: 1|sbatch a \\\\n\\n --b|RUNNING
         6: 2|x|FAILED",
    );
}

#[test]
fn a_text_in_the_last_column_goes_on_over_lines_without_a_delimiter() {
    check(
        Format::Sacct,
        "JobID|State|JobName\n1|RUNNING|two\nlines\n2|FAILED|x\n345\n",
        &ReaderOptions::default(),
        "JobID|State|JobName
         2: 1|RUNNING|two\\nlines
         4: 2|FAILED|x
         5! 1 fields where 3 are expected; the input ends here and may be cut off «345»",
    );
}

#[test]
fn a_short_line_costs_itself_and_not_the_record_after_it() {
    check(
        Format::Sacct,
        "JobID|State|Start|JobName\n1|RUNNING|2026-01-01T00:00:00|a\n2|FAIL\n3|FAILED|2026-01-01T00:00:00|c\n4|COMPL",
        &ReaderOptions::default(),
        "JobID|State|Start|JobName
         2: 1|RUNNING|2026-01-01T00:00:00|a
         3! 2 fields where 4 are expected «2|FAIL»
         4: 3|FAILED|2026-01-01T00:00:00|c
         5! 2 fields where 4 are expected; the input ends here and may be cut off «4|COMPL»",
    );
}

#[test]
fn pieces_of_different_records_are_never_joined_into_one() {
    // 2 + 3 - 1 fields are the four that are expected.
    check(
        Format::Sacct,
        "JobID|State|Start|JobName\n1|RUNNING\n2|2026-01-01T00:00:00|b\n3|FAILED|2026-01-01T00:00:00|c\n",
        &ReaderOptions::default(),
        "JobID|State|Start|JobName
         2! 2 fields where 4 are expected «1|RUNNING»
         3! 3 fields where 4 are expected «2|2026-01-01T00:00:00|b»
         4: 3|FAILED|2026-01-01T00:00:00|c",
    );
}

#[test]
fn lines_are_joined_inside_of_texts_only() {
    check(
        Format::Sacct,
        "State|JobID|User|JobName\nRUNNING|1\nann|a\nFAILED|2|bob|b\nFAILED|3|bob|c\nd|e\n",
        &ReaderOptions::default(),
        "State|JobID|User|JobName
         2! 3 fields where 4 are expected «RUNNING|1\\nann|a»
         4: FAILED|2|bob|b
         5: FAILED|3|bob|c
         6! 2 fields where 4 are expected; the input ends here and may be cut off «d|e»",
    );
}

#[test]
fn delimiters_inside_the_one_text_are_part_of_it() {
    check(
        Format::Sacct,
        "JobID|JobName|State|Start\n1|a|b||c|RUNNING|2026-01-01T00:00:00\n",
        &ReaderOptions::default(),
        "JobID|JobName|State|Start
         2: 1|a|b||c|RUNNING|2026-01-01T00:00:00",
    );
    let input = "JobID|JobName|State|WorkDir\n1|a|b|RUNNING|/w\n2|a|FAILED|/w|x\n";
    let (records, columns, _) = records(Format::Sacct, input.as_bytes(), &ReaderOptions::default());
    assert_eq!(value(&records[0], &columns, "JobName"), Some("a|b"));
    assert_eq!(value(&records[1], &columns, "WorkDir"), Some("/w|x"));
}

#[test]
fn a_delimiter_that_could_belong_to_either_of_two_texts_rejects_its_row() {
    check(
        Format::Sacct,
        "JobID|JobName|Comment|State\n1|a|b|c|RUNNING\n2|a|b|RUNNING\n",
        &ReaderOptions::default(),
        "JobID|JobName|Comment|State
         2! 5 fields where 4 are expected: the delimiter stands inside a value; export with another one, such as \
         --delimiter='|#' «1|a|b|c|RUNNING»
         3: 2|a|b|RUNNING",
    );
}

#[test]
fn a_header_in_the_middle_is_passed_over_and_another_one_stops_reading() {
    check(
        Format::Sacct,
        "JobID|State\n1|RUNNING\nJOBID|State\n2|FAILED\nJobID|User\n3|ann\nJobID|State\n4|FAILED\n",
        &ReaderOptions::default(),
        "JobID|State
         2: 1|RUNNING
         4: 2|FAILED
         6! stands below line 5, which names other columns than the first: import that part as a file of its own «3|ann»
         8: 4|FAILED",
    );
    check(
        Format::Sacct,
        "JobID|JobIDRaw|State\n1|1|RUNNING\n",
        &fields(&["jobid", "-", "state"]),
        "jobid||state
         2: 1|1|RUNNING",
    );
}

#[test]
fn bytes_that_are_no_utf_8_reject_their_record_and_name_the_column() {
    check(
        Format::Sacct,
        b"JobID|JobName|State\n1|caf\xe9|RUNNING\n2|b|FAILED\n",
        &ReaderOptions::default(),
        "JobID|JobName|State
         2! [JobName] field 2 is not UTF-8: convert the file, for example with iconv «1|caf\u{fffd}|RUNNING»
         3: 2|b|FAILED",
    );
}

#[test]
fn a_wrong_list_of_fields_rejects_line_by_line() {
    check(
        Format::Sacct,
        "1|RUNNING|a\n2|FAILED|b\n",
        &fields(&["jobid", "state", "user", "jobname"]),
        "jobid|state|user|jobname
         1! 3 fields where 4 are expected «1|RUNNING|a»
         2! 3 fields where 4 are expected; the input ends here and may be cut off «2|FAILED|b»",
    );
}

#[test]
fn megabytes_without_a_delimiter_are_given_up_piece_by_piece() {
    let input = format!("JobID|State\n{}1|RUNNING\n", format!("{}\n", "x".repeat(99)).repeat(30_000));
    let rows: Vec<_> = read(Format::Sacct, input.as_bytes(), &ReaderOptions::default()).unwrap().records.collect();
    assert!(rows.len() <= 4 && rows.last().unwrap().is_ok(), "{}", rows.len());
}
