//! Exit codes, streams and files: how the command behaves among other commands.

use crate::site::{MAP, Site, answer};
use std::process::Stdio;

/// By hand: 2 cards × 3 h + 1 card × 1 h = 7 card-hours, the last row ends before it starts.
const JOBS: &str = "id,who,team,cards,model,start,end\n\
    1,ann,vision,2,h200,2026-03-01T00:00:00Z,2026-03-01T03:00:00Z\n\
    2,ben,=speech,1,h200,2026-03-02T00:00:00Z,2026-03-02T01:00:00Z\n";
const BACKWARDS: &str = "3,ann,vision,1,h200,2026-03-03T02:00:00Z,2026-03-03T01:00:00Z\n";

fn imported() -> Site {
    let site = Site::new();
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", MAP));
    site.import(&format!("jobs {jobs} --map {map}"));
    site
}

#[test]
fn exit_codes_tell_done_from_no_from_wrongly_asked_from_failed_from_quarantined() {
    let site = Site::new();
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", MAP));
    let bad = site.file("bad.csv", format!("{JOBS}{BACKWARDS}"));
    assert_eq!(site.run("report bill").code, Some(2), "there is no ledger yet");
    let cut_off = site.file("cut.csv.gz", b"\x1f\x8b\x08\x00");
    for (words, code) in [
        (format!("import jobs {jobs} --map {map}"), 0),
        (format!("import jobs {cut_off} --map {map}"), 3),
        (format!("import jobs {bad} --map {map}"), 4),
        (format!("import jobs nowhere.csv --map {map}"), 2),
        // A folder can be opened and not read.
        (format!("import jobs / --map {map}"), 3),
        (format!("import jobs {map} --map {map}"), 2),
        ("report bill".to_owned(), 0),
        ("report waste".to_owned(), 2),
        ("report bill --from 2026-03-02 --to 2026-03-01".to_owned(), 2),
        ("report bill --from 2026-03-02T00:07".to_owned(), 2),
        ("sql nonsense".to_owned(), 2),
        ("trace project=nobody".to_owned(), 2),
        ("doctor".to_owned(), 0),
        ("--help".to_owned(), 0),
        ("--version".to_owned(), 0),
        ("completions bash".to_owned(), 0),
    ] {
        let answer = site.run(&words);
        assert_eq!(answer.code, Some(code), "cardhour {words}\n{}\n{}", answer.out, answer.err);
        if code == 2 || code == 3 {
            assert!(answer.out.is_empty() && !answer.err.is_empty(), "{words}: what went wrong goes to standard error");
            assert!(!answer.err.contains("panicked"), "{words}: {}", answer.err);
        }
    }
    let holes = site.file("holes.toml", "currency = \"CNY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"a100\"\nper_card_hour = \"1\"\n");
    let answer = site.run(&format!("report bill --prices {holes} --format csv"));
    assert_eq!(answer.code, Some(1), "h200 has no price: {}", answer.err);
    assert!(answer.out.contains("vision") && answer.err.contains("h200"), "{}\n{}", answer.out, answer.err);
}

#[test]
fn an_import_ends_with_one_line_of_counts_for_programs() {
    let site = Site::new();
    let (jobs, map) = (site.file("jobs.csv", format!("{JOBS}{BACKWARDS}")), site.file("map.toml", MAP));
    let words = format!("import jobs {jobs} --map {map} --output json");
    let first = site.run(&words);
    let line = |read: u64, booked: u64, unchanged: u64| {
        format!(
            "{{\"read\":{read},\"booked\":{booked},\"unchanged\":{unchanged},\"superseded\":0,\"quarantined\":1}}\n"
        )
    };
    assert_eq!((first.code, first.out), (Some(4), line(3, 2, 0)));
    assert_eq!(site.run(&words).out, line(3, 0, 2));
    assert!(first.err.contains("jobs.csv:4"), "the bad row is named: {}", first.err);
    assert_eq!(site.sql("select field, line from quarantine").0.len(), 1);
}

#[test]
fn standard_input_is_a_file_like_any_other() {
    let site = Site::new();
    let map = site.file("map.toml", MAP);
    let mut child = site
        .command()
        .args(["import", "jobs", "-", "--map", &map])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), JOBS.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(site.report("usage").only("card_hours"), "7.000000");
}

#[test]
fn parquet_is_booked_as_csv_is() {
    use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMillisecondArray};
    use std::sync::Arc;
    let hour_ms = 3_600_000;
    let march = 1_772_323_200_000; // 2026-03-01T00:00:00Z
    let at = |ms: [i64; 2]| Arc::new(TimestampMillisecondArray::from(ms.to_vec()).with_timezone("UTC")) as ArrayRef;
    let batch = arrow::record_batch::RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ("who", Arc::new(StringArray::from(vec!["ann", "ben"]))),
        ("team", Arc::new(StringArray::from(vec!["vision", "=speech"]))),
        ("cards", Arc::new(Int64Array::from(vec![2, 1]))),
        ("model", Arc::new(StringArray::from(vec!["h200", "h200"]))),
        ("start", at([march, march + 24 * hour_ms])),
        ("end", at([march + 3 * hour_ms, march + 25 * hour_ms])),
    ])
    .unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let site = Site::new();
    let (jobs, map) = (site.file("jobs.parquet", writer.into_inner().unwrap()), site.file("map.toml", MAP));
    site.import(&format!("jobs {jobs} --map {map} --format parquet"));
    let words = "report usage --by project,user,model,day --format csv";
    assert_eq!(site.ok(words), imported().ok(words));
}

/// Parquet has rows and no lines: the second row is row 2, also where a text of the first has a line break.
#[test]
fn a_row_of_parquet_that_cannot_be_booked_is_named_by_its_number() {
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use std::sync::Arc;
    let texts = |texts: [&str; 2]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let batch = arrow::record_batch::RecordBatch::try_from_iter([
        ("job_id", texts(["a", "b"])),
        ("image", texts(["one\ntwo", "three"])),
        ("cards", Arc::new(Int64Array::from(vec![1, 1])) as ArrayRef),
        ("started_at", texts(["2026-03-01T00:00:00Z", "2026-03-01T02:00:00Z"])),
        ("ended_at", texts(["2026-03-01T01:00:00Z", "2026-03-01T01:00:00Z"])),
    ])
    .unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let site = Site::new();
    let jobs = site.file("jobs.parquet", writer.into_inner().unwrap());
    assert_eq!(site.run(&format!("import jobs {jobs}")).code, Some(4));
    let found = site.sql("select line, field from quarantine");
    assert_eq!((found.only("line"), found.only("field")), ("2", "ended_at"));
}

#[test]
fn doctor_holds_a_map_against_the_first_rows_of_a_file() {
    let site = imported();
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", MAP));
    let well = site.ok(&format!("doctor --map {map} --file {jobs} --format csv"));
    assert!(well.contains("map,ok,\"jobs.csv: of the first 2 rows 2 are attempts"), "{well}");
    let other = site.file("other.csv", "who,what\nann,x\n");
    let ill = site.run(&format!("doctor --map {map} --file {other}"));
    assert_eq!(ill.code, Some(1));
    assert!(ill.out.contains("fail") && ill.out.contains("cards"), "{}", ill.out);
}

#[test]
fn a_reader_that_leaves_early_is_no_fault() {
    let site = imported();
    let mut child = site
        .command()
        .args(["report", "usage", "--by", "user"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn each_format_has_the_same_figures() {
    let site = imported();
    let of = |format: &str| site.ok(&format!("report usage --by project --format {format}"));
    for format in ["table", "csv", "json", "html", "md"] {
        let out = of(format);
        for part in ["vision", "speech", "6.0000", "1.0000"] {
            assert!(out.contains(part), "{part} in {format}:\n{out}");
        }
        assert!(!out.contains('\u{1b}'), "no colours where nobody looks: {format}");
    }
    let rows: serde_json::Value = serde_json::from_str(&of("json")).unwrap();
    assert_eq!((rows[1]["card_hours"].as_str(), rows[1]["jobs"].as_u64()), (Some("6.000000"), Some(1)));
    assert_eq!(rows[1]["efficiency"], serde_json::Value::Null, "absent, not zero (LED-3)");
}

#[test]
fn a_report_goes_whole_into_a_file_whose_name_says_the_format() {
    let site = imported();
    for (name, begins) in [("a.csv", "project,"), ("a.json", "["), ("a.html", "<!doctype html>"), ("a.parquet", "PAR1")]
    {
        let path = site.file(name, "");
        assert_eq!(site.ok(&format!("report usage --by project --output-file {path}")), "");
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.starts_with(begins.as_bytes()), "{name}");
    }
}

#[test]
fn sql_reads_and_never_writes_or_looks_elsewhere() {
    let site = imported();
    assert_eq!(site.sql("select count(*) as n from jobs").only("n"), "2");
    assert_eq!(site.sql("select count(*) as n from charges where cost is null").only("n"), "2");
    for query in [
        "drop table jobs",
        "delete from jobs",
        "insert into jobs select * from jobs",
        "create external table t stored as csv location '/etc/passwd'",
        "copy (select 1) to '/tmp/cardhour-sql.csv'",
        "set datafusion.execution.batch_size = 1",
        "select * from '/etc/passwd'",
    ] {
        let answer = answer(site.command().args(["sql", query]));
        assert_eq!(answer.code, Some(2), "{query}: {}{}", answer.out, answer.err);
    }
    assert!(!std::path::Path::new("/tmp/cardhour-sql.csv").exists());
}

#[test]
fn me_is_what_one_user_held() {
    let site = imported();
    let mine = site.ok("me --user ann --format csv");
    assert!(mine.contains("vision") && !mine.contains("speech"), "{mine}");
    assert!(mine.contains("6.000000"), "{mine}");
}

#[test]
fn init_makes_what_is_missing_and_leaves_what_is_there() {
    let site = Site::new();
    let first = site.ok("init --zone Asia/Shanghai");
    assert_eq!(first.lines().filter(|line| line.starts_with("made ")).count(), 3, "{first}");
    let prices = site.ledger().join("prices.toml");
    std::fs::write(&prices, "# mine\n").unwrap();
    let again = site.ok("init");
    assert_eq!(again.lines().filter(|line| line.starts_with("was there")).count(), 3, "{again}");
    assert_eq!(std::fs::read_to_string(&prices).unwrap(), "# mine\n");
    assert_eq!(site.run("init --zone Europe/Berlin").code, Some(2), "a ledger's zone is fixed (LED-9)");
    let config = site.ok("config");
    assert!(config.contains("zone = \"Asia/Shanghai\""), "{config}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(site.ledger()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn a_faulty_config_names_every_fault() {
    let site = imported();
    let config = site.file("config.toml", "colour = 1\n[sql]\ntimeout = \"soon\"\n");
    let answer = site.run(&format!("report bill --config {config}"));
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("colour: ") && answer.err.contains("sql.timeout: "), "{}", answer.err);
}

#[test]
fn a_demo_never_goes_into_the_ledger_of_a_site() {
    let site = imported();
    let before = site.ok("report usage --format csv");
    assert_eq!(site.run("demo --no-serve").code, Some(2));
    assert_eq!(site.ok("report usage --format csv"), before);
}
