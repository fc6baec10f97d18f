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
        ("report money".to_owned(), 2),
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
            "{{\"read\":{read},\"steps\":0,\"booked\":{booked},\"unchanged\":{unchanged},\"superseded\":0,\"quarantined\":1}}\n"
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
    assert_eq!(first.lines().filter(|line| line.starts_with("made ")).count(), 4, "{first}");
    let prices = site.ledger().join("prices.toml");
    std::fs::write(&prices, "# mine\n").unwrap();
    let again = site.ok("init");
    assert_eq!(again.lines().filter(|line| line.starts_with("was there")).count(), 4, "{again}");
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

/// What `me` prints can be traced to what it printed. By hand: ann held 2 cards for 3 h, cy 1 card for 1 h, of one project; at 10.00 that is
/// 60.00 and 10.00.
#[test]
fn a_line_of_ones_own_leads_to_ones_own_jobs() {
    let site = Site::new();
    let jobs = format!("{JOBS}3,cy,vision,1,h200,2026-03-04T00:00:00Z,2026-03-04T01:00:00Z\n");
    let (jobs, map) = (site.file("jobs.csv", jobs), site.file("map.toml", MAP));
    site.import(&format!("jobs {jobs} --map {map}"));
    let prices = "currency = \"CNY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"h200\"\nper_card_hour = \"10\"\n";
    std::fs::write(site.ledger().join("prices.toml"), prices).unwrap();
    let mine = crate::site::Rows::parse(&site.ok("me --user ann --format csv"));
    assert_eq!((mine.only("card_hours"), mine.only("cost")), ("6.000000", "60.00"));
    let traced = site.ok(&format!("trace {} --format json", mine.only("line")));
    let traced: serde_json::Value = serde_json::from_str(&traced).unwrap();
    assert!(traced.to_string().contains("60.00") && !traced.to_string().contains("70.00"), "{traced}");
    // A hole is the answer no, also of one's own bill.
    let holes = prices.replace("h200", "a100");
    std::fs::write(site.ledger().join("prices.toml"), holes).unwrap();
    assert_eq!(site.run("me --user ann").code, Some(1));
}

/// Two nodes of one pool, and a job over both, so that cards are counted over the whole cluster. By hand: 16 cards for 24 h are 384
/// card-hours, of which 4 × 10 + 2 × 10 = 60 are held.
#[test]
fn capacity_stands_in_its_pool_also_where_nodes_cannot_be_told_apart() {
    let site = Site::new();
    let nodes = site.file("nodes.csv", "cluster,node,model,cards,pool\nlab,a1,H200,8,main\nlab,b1,H200,8,main\n");
    let jobs = site.file(
        "jobs.csv",
        "cluster,job_id,cards,nodes,started_at,ended_at\n\
         lab,1,4,\"a1,b1\",2026-03-01T00:00:00Z,2026-03-01T10:00:00Z\n\
         lab,2,2,a1,2026-03-01T00:00:00Z,2026-03-01T10:00:00Z\n",
    );
    site.import(&format!("nodes {nodes}"));
    site.import(&format!("jobs {jobs} --covers 2026-03-01..2026-03-02 --as-of 2026-03-02"));
    let by_pool = crate::site::Rows::parse(&site.ok("report capacity --by pool,model --format csv"));
    assert_eq!(by_pool.only("pool"), "main");
    let told = ["card_hours", "capacity_card_hours", "free_card_hours"].map(|column| by_pool.only(column));
    assert_eq!(told, ["60.000000", "384.000000", "324.000000"]);
}

/// A job without cards is of the month of its submit, and its line leads to it.
#[test]
fn jobs_that_hold_nothing_are_in_their_month_and_can_be_traced() {
    let site = Site::new();
    let sacct = "JobID|Account|User|State|Submit|Start|End|AllocTRES\n\
        1|cpu|u|COMPLETED|2026-03-01T00:00:00|2026-03-01T01:00:00|2026-03-01T02:00:00|cpu=4\n\
        2|gpu|u|COMPLETED|2026-04-01T00:00:00|2026-04-01T01:00:00|2026-04-01T02:00:00|gres/gpu=1\n\
        3|gpu|u|PENDING|2026-04-02T00:00:00|Unknown|Unknown|\n";
    let jobs = site.file("sacct.txt", sacct);
    site.import(&format!("jobs {jobs} --format sacct"));
    let by_month = crate::site::Rows::parse(&site.ok("report bill --by month --format csv"));
    assert_eq!(
        by_month.by("month", "jobs"),
        [("2026-03", "1"), ("2026-04", "2")].map(|(a, b)| (a.into(), b.into())).into()
    );
    let (line, hours) = (by_month.0[0]["line"].clone(), by_month.0[0]["card_hours"].clone());
    assert_eq!((line.as_str(), hours.as_str()), ("month=2026-03", "0.000000"));
    let traced = site.ok("trace month=2026-03");
    assert!(traced.contains("completed"), "{traced}");
    assert_eq!(site.run("trace month=2026-05").code, Some(2));
}

/// An open job would be held up to then, and a finished one could never be corrected.
#[test]
fn an_as_of_in_the_future_is_refused_with_the_command() {
    let site = Site::new();
    let jobs = site.file("jobs.csv", "job_id,cards,started_at,ended_at\n1,1,2026-03-01T00:00:00Z,\n");
    let map = site.file("map.toml", "as_of = \"2099-01-01T00:00:00Z\"\n");
    for words in [format!("import jobs {jobs} --as-of 2099-01-01"), format!("import jobs {jobs} --map {map}")] {
        let answer = site.run(&words);
        assert_eq!(answer.code, Some(2), "{words}: {}", answer.out);
        assert!(answer.err.contains("2099-01-01"), "{}", answer.err);
    }
}

#[test]
fn steps_without_their_jobs_are_told() {
    let site = Site::new();
    let sacct = "JobID|State|Start|End|AllocTRES\n7.0|RUNNING|2026-03-01T01:00:00|Unknown|gres/gpu=1\n7.extern|RUNNING|2026-03-01T01:00:00|Unknown|gres/gpu=1\n";
    let answer = site.run(&format!("import jobs {} --format sacct", site.file("steps.txt", sacct)));
    assert_eq!(answer.code, Some(0));
    assert!(answer.out.contains("2 rows read, 2 of them steps: 0 booked"), "{}", answer.out);
    assert!(answer.err.contains("only steps"), "{}", answer.err);
}

/// Part of the folder came back from an older copy: no writer is to blame, and no other try will help.
#[test]
fn a_ledger_of_which_a_part_is_missing_says_so() {
    let site = imported();
    std::fs::remove_dir_all(site.ledger().join("jobs")).unwrap();
    let answer = site.run("report bill");
    assert_eq!(answer.code, Some(3));
    assert!(answer.err.contains("jobs") && answer.err.contains("folder is missing"), "{}", answer.err);
}

#[test]
fn an_absent_value_is_null_in_json_whatever_its_type() {
    let query = ["sql", "select null as a, cast(null as text) as b", "--format", "json"];
    let rows: serde_json::Value = serde_json::from_str(&answer(imported().command().args(query)).out).unwrap();
    assert_eq!(rows, serde_json::json!([{"a": null, "b": null}]));
}

/// Accounting is corrected after the fact: what the later export says stands, whichever is imported first, and the bill follows.
#[test]
fn a_correction_of_finished_jobs_stands_when_its_export_is_later() {
    let export = |account: &str| {
        let row = |i: u32| {
            format!(
                "{i}|{i}|c|{account}|u|COMPLETED|2026-03-0{i}T00:00:00|2026-03-0{i}T00:00:00|2026-03-0{i}T02:00:00|gres/gpu=1\n"
            )
        };
        let header = "JobID|DBIndex|Cluster|Account|User|State|Submit|Start|End|AllocTRES\n";
        header.to_owned() + &(1..=8).map(row).collect::<String>()
    };
    let books = |order: [(&str, &str); 3]| {
        let site = Site::new();
        for (account, as_of) in order {
            let file = site.file("sacct.txt", export(account));
            site.import(&format!("jobs {file} --format sacct --as-of {as_of} --covers 2026-03-01..2026-04-01"));
            site.ok("verify");
        }
        site.report("usage --by project").by("project", "card_hours")
    };
    let (wrong, right) = (("old", "2026-04-01"), ("corrected", "2026-05-01"));
    // By hand: eight jobs of one card and two hours.
    let expected = [("corrected".to_owned(), "16.000000".to_owned())].into();
    assert_eq!(books([wrong, right, wrong]), expected);
    assert_eq!(books([right, wrong, right]), expected);

    let site = Site::new();
    let file = site.file("sacct.txt", export("team"));
    site.import(&format!("jobs {file} --format sacct --as-of 2026-04-01"));
    let again = site.ok(&format!("import jobs {file} --format sacct --as-of 2026-05-01"));
    assert!(again.contains("0 booked, 8 unchanged, 0 superseded"), "{again}");
    assert_eq!(site.sql("select count(*) as n from jobs_history").only("n"), "0");
}

#[test]
fn the_first_import_says_where_it_made_a_ledger_and_in_which_zone() {
    let site = Site::new();
    let (jobs, map) = (site.file("jobs.csv", JOBS), site.file("map.toml", MAP));
    let config = site.file("config.toml", "zone = \"Asia/Shanghai\"\n");
    let words = format!("import jobs {jobs} --map {map} --config {config}");
    let first = site.run(&words);
    let place = site.ledger().display().to_string();
    assert!(first.err.contains(&place) && first.err.contains("bills in Asia/Shanghai"), "{}", first.err);
    assert!(!site.run(&words).err.contains("made a ledger"), "once");
    // A config that changes its mind changes no ledger, and an import goes on.
    let other = site.file("other.toml", "zone = \"Asia/Tokyo\"\n");
    assert_eq!(site.run(&format!("import jobs {jobs} --map {map} --config {other}")).code, Some(0));
    let by_url = site.run(&format!("--ledger file://{place} import jobs {jobs} --map {map} --config {other}"));
    assert_eq!(by_url.code, Some(0), "{}", by_url.err);
    assert!(!by_url.err.contains("made a ledger"), "{}", by_url.err);
    let refused = site.run("init --zone Asia/Tokyo");
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("import again"), "{}", refused.err);
}

#[test]
fn the_hint_to_trace_has_the_options_that_the_bill_was_asked_with() {
    let site = imported();
    let book = "currency = \"CNY\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nper_card_hour = \"1\"\n";
    let (prices, place) = (site.file("next year.toml", book), site.ledger().display().to_string());
    let hint = |words: &[&str]| {
        let printed = answer(site.command().args(words)).out;
        let line = printed.lines().find(|line| line.starts_with("where a line comes from: ")).unwrap().to_owned();
        line.trim_start_matches("where a line comes from: ").to_owned()
    };
    assert!(hint(&["report", "bill", "--by", "project"]).starts_with("cardhour trace 'project="));
    let asked = hint(&["--ledger", &place, "report", "bill", "--by", "project", "--prices", &prices]);
    assert!(asked.starts_with(&format!("cardhour trace --ledger '{place}' --prices '{prices}' 'project=")), "{asked}");
    // As a shell takes it.
    let binary = env!("CARGO_BIN_EXE_cardhour");
    let traced = std::process::Command::new("sh")
        .args(["-c", &asked.replacen("cardhour", binary, 1)])
        .env_clear()
        .output()
        .unwrap();
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
}

#[test]
fn a_file_of_an_unknown_end_is_refused_and_me_without_a_name_asks_for_one() {
    let site = imported();
    let refused = site.run("report usage -o out.xlsx");
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("out.xlsx") && refused.err.contains("--format"), "{}", refused.err);
    for user in [None, Some("")] {
        let mut command = site.command();
        match user {
            None => command.env_remove("USER"),
            Some(user) => command.env("USER", user),
        };
        let nobody = answer(command.arg("me"));
        assert_eq!(nobody.code, Some(2));
        assert!(nobody.err.contains("--user NAME"), "{}", nobody.err);
    }
    let ann = answer(site.command().env("USER", "ann").args(["me", "--format", "csv"]));
    assert!(ann.out.contains("6.000000"), "2 cards × 3 h: {}", ann.out);
}
