use super::*;

#[test]
fn objects_are_flattened_and_numbers_stay_as_written() {
    check(
        Format::Jsonl,
        r#"{"id": 9007199254740993, "cost": 0.10, "big": 123456789012345678901234567890, "on": true}
{"owner": {"team": "a", "cost": {"centre": 7}}, "nodes": ["n1", "n2", 3], "id": null, "list": [{"x": 1}]}
"#,
        &ReaderOptions::default(),
        r#"id|cost|big|on|owner.team|owner.cost.centre|nodes|list
         1: 9007199254740993|0.10|123456789012345678901234567890|true||||
         2: ||||a|7|n1,n2,3|[{"x": 1}]"#,
    );
}

#[test]
fn a_bad_line_is_rejected_with_what_the_parser_says() {
    check(
        Format::Jsonl,
        b"{\"a\": \"caf\xe9\"}\n[1]\n\n{\"a\": \"\\u00e9\\n\"}\r\n{\"a\": 1} x\n{\"a\": 1",
        &ReaderOptions::default(),
        "a
         1! byte 11 is not UTF-8 «{\"a\": \"caf\u{fffd}\"}»
         2! not a JSON object «[1]»
         4: é\\n
         5! not JSON: trailing characters at line 1 column 10 «{\"a\": 1} x»
         6! not JSON: EOF while parsing an object at line 1 column 7 «{\"a\": 1»",
    );
}

#[test]
fn objects_nested_without_end_are_rejected() {
    let deep = format!("{}1{}\n{{\"b\": 1}}\n", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let reading = read(Format::Jsonl, deep.as_bytes(), &ReaderOptions::default()).unwrap();
    let rows: Vec<_> = reading.records.collect();
    assert_eq!(rows[0].as_ref().unwrap_err().reason, "objects stand more than 32 deep");
    assert!(rows[1].is_ok());
    let list = format!("{{\"a\": {}{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    assert!(read(Format::Jsonl, list.as_bytes(), &ReaderOptions::default()).unwrap().records.next().unwrap().is_ok());
}

#[test]
fn names_without_end_are_cut_at_the_most_columns_that_are_read() {
    let lines: String = (0..5000).map(|n| format!("{{\"k{n}\": 1}}\n")).collect();
    let reading = read(Format::Jsonl, lines.as_bytes(), &ReaderOptions::default()).unwrap();
    assert_eq!(reading.columns.0.len(), 4096);
    assert_eq!(reading.records.filter(Result::is_err).count(), 5000 - 4096);
}
