use super::*;

#[test]
fn quotes_hold_delimiters_line_ends_and_quotes() {
    check(
        Format::Csv,
        "id,name\n1,\"a, b\"\n2,\"two\nlines\"\n3,\"say \"\"hi\"\"\"\n4,plain \"quotes\" inside\n",
        &ReaderOptions::default(),
        "id|name
         2: 1|a, b
         3: 2|two\\nlines
         5: 3|say \"hi\"
         6: 4|plain \"quotes\" inside",
    );
}

#[test]
fn a_byte_order_mark_carriage_returns_and_blank_lines_change_nothing() {
    check(
        Format::Csv,
        b"\xef\xbb\xbfid, name \r\n1,a\r\n\r\n\r\n2,b\r\n3,c",
        &ReaderOptions::default(),
        "id|name
         2: 1|a
         5: 2|b
         6: 3|c",
    );
}

#[test]
fn ragged_rows_are_rejected_and_the_rest_goes_on() {
    check(
        Format::Csv,
        "a;b;c\n1;2\n1;2;3;4\n1;2;3\n1;2",
        &delimiter(";"),
        "a|b|c
         2! 2 fields where 3 are expected «1;2»
         3! 4 fields where 3 are expected «1;2;3;4»
         4: 1|2|3
         5! 2 fields where 3 are expected; the input ends here and may be cut off «1;2»",
    );
}

#[test]
fn a_quote_that_never_closes_costs_its_own_line_only() {
    check(
        Format::Csv,
        "a,b\n1,x\n2,\"never\n3,y\n4,z\n",
        &ReaderOptions::default(),
        "a|b
         2: 1|x
         3! a quote that opens on this line is never closed «2,\"never»
         4: 3|y
         5: 4|z",
    );
    check(
        Format::Csv,
        "a,b\n1,x\n2,\"cut o",
        &ReaderOptions::default(),
        "a|b
         2: 1|x
         3! the input ends inside a quoted value: it may be cut off «2,\"cut o»",
    );
}

#[test]
fn bytes_that_are_no_utf_8_reject_their_row_and_name_the_column() {
    check(
        Format::Csv,
        b"id,name\n1,caf\xe9\n2,tea\n",
        &ReaderOptions::default(),
        "id|name
         2! [name] field 2 is not UTF-8: convert the file, for example with iconv «1,caf\u{fffd}»
         3: 2|tea",
    );
    let error = outcome(Format::Csv, b"id,caf\xe9\n1,2\n", &ReaderOptions::default());
    assert!(error.starts_with("line 1, which should name the columns, is not UTF-8"), "{error}");
}

#[test]
fn nul_bytes_are_part_of_their_value() {
    check(Format::Csv, b"a,b\n1\0,2\n", &ReaderOptions::default(), "a|b\n2: 1\0|2");
}

#[test]
fn columns_can_be_given_and_a_header_in_the_middle_is_passed_over() {
    check(
        Format::Csv,
        "1,x,2\nid,junk,when\n3,y,4\n",
        &fields(&["id", "-", "when"]),
        "id||when
         1: 1|x|2
         3: 3|y|4",
    );
    check(Format::Csv, "a,b\n1,2\nA,B\n3,4\n", &ReaderOptions::default(), "a|b\n2: 1|2\n4: 3|4");
}

#[test]
fn of_two_columns_with_one_name_the_first_counts() {
    check(Format::Csv, "a,b,a\n1,2,3\n", &ReaderOptions::default(), "a|b|\n2: 1|2|3");
}

#[test]
fn a_line_of_names_alone_has_no_records() {
    check(Format::Csv, "a\tb\n", &delimiter("\\t"), "a|b");
}

#[test]
fn ten_megabytes_on_a_line_are_a_value_and_of_a_bad_row_64_kib_are_kept() {
    let long = "é".repeat(5_000_000);
    let good = format!("a,b\n1,{long}\n");
    let (records, ..) = records(Format::Csv, good.as_bytes(), &ReaderOptions::default());
    assert_eq!(records[0].values[1].len(), 10_000_000);

    let bad = format!("a,b\n{long}\n1,2\n");
    let rows: Vec<_> = read(Format::Csv, bad.as_bytes(), &ReaderOptions::default()).unwrap().records.collect();
    let rejected = rows[0].as_ref().unwrap_err();
    assert_eq!(rejected.row.len(), 64 * 1024);
    assert!(rows[1].is_ok());
}
