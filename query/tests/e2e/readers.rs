//! Other readers of the ledger's Delta tables get the same figures.

use crate::demo;
use crate::site::{MAP, Site, micros, python};
use std::collections::BTreeMap;

/// Card-time by project and UTC month, from the tables' snapshots and nothing else. The first reader is DuckDB's delta extension, the
/// second Python's deltalake; both must agree with each other before anything is printed.
const SCRIPT: &str = r#"
import collections, datetime, pathlib, sys
import deltalake, duckdb, duckdb_ext

ledger = pathlib.Path(sys.argv[1])
table = lambda name: str(next(p.parent for p in sorted(ledger.rglob("_delta_log")) if p.parent.name == name))
extension = next(pathlib.Path(list(duckdb_ext.__path__)[0]).rglob("delta.duckdb_extension"))
con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
con.execute(f"LOAD '{extension}'")
rows = con.execute(f"""
    select j.project, epoch_ms(u.bucket_start) // 86400000 as day, sum(u.card_time) as card_time
    from delta_scan('{table("usage")}') u
    join (select distinct attempt_key, project from delta_scan('{table("jobs")}')) j using (attempt_key)
    where u.state = 'held' group by all
""").fetchall()
sums = collections.Counter()
for project, day, card_time in rows:
    month = (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).strftime("%Y-%m")
    sums[project, month] += int(card_time)

usage = deltalake.DeltaTable(table("usage")).to_pyarrow_table(columns=["state", "card_time"])
held = sum(int(t) for s, t in zip(usage["state"].to_pylist(), usage["card_time"].to_pylist()) if s == "held")
assert held == sum(sums.values()), (held, sum(sums.values()))
for (project, month), card_time in sorted(sums.items()):
    print(f"{project},{month},{card_time}")
"#;

#[test]
fn duckdb_and_python_get_the_same_card_hours_by_project_and_month() {
    let site = Site::new();
    // First a part, then all of it: rows of files that a later commit replaced must not be counted.
    demo::import(&site, Some(2000));
    demo::import(&site, None);
    let Some(printed) = python(SCRIPT, &site.ledger()) else { return };
    let told: BTreeMap<(String, String), i128> = printed
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            // Parts × ms in millionths of a card-hour, half up; LED-10 has 18,018,000 parts to the card.
            let part_ms: i128 = cells[2].parse().unwrap();
            let unit = 18_018_000 * 3_600_000 / 1_000_000;
            ((cells[0].to_owned(), cells[1].to_owned()), (part_ms + unit / 2) / unit)
        })
        .collect();
    let ours: BTreeMap<(String, String), i128> = site
        .report("usage --by project,month --zone UTC")
        .0
        .iter()
        .map(|row| ((row["project"].clone(), row["month"].clone()), micros(&row["card_hours"])))
        .filter(|(_, hours)| *hours > 0)
        .collect();
    assert_eq!(ours.keys().collect::<Vec<_>>(), told.keys().collect::<Vec<_>>());
    for (key, hours) in &ours {
        // Half to even here, half up there: the last digit may differ where the rest is exactly a half.
        assert!((hours - told[key]).abs() <= 1, "{key:?}: {hours} here, {} there", told[key]);
    }
}

/// Python's DELETE rewrites the file of a row with a hint for Arrow's text views. The rest stays readable, and the gap is seen.
#[test]
fn a_row_that_python_deleted_is_missed_and_the_rest_is_read() {
    let site = Site::new();
    let map = site.file("map.toml", MAP);
    let rows = "id,who,team,cards,model,start,end\n\
        1,ann,vision,2,h200,2026-03-01T00:00:00Z,2026-03-01T03:00:00Z\n\
        2,ben,speech,1,h200,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z\n\
        3,ben,speech,1,h200,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z\n";
    let jobs = site.file("jobs.csv", rows);
    site.import(&format!("jobs {jobs} --map {map}"));
    site.ok("verify");
    // The job that took no time: nothing refers to it.
    let script = r#"
import pathlib, sys
import deltalake
table = deltalake.DeltaTable(str(pathlib.Path(sys.argv[1]) / "jobs"))
print(table.delete("job_id = '3'")["num_deleted_rows"])
"#;
    let Some(deleted) = python(script, &site.ledger()) else { return };
    assert_eq!(deleted.trim(), "1");
    let verdict = site.run("verify");
    assert_eq!(verdict.code, Some(1), "{}\n{}", verdict.out, verdict.err);
    assert!(verdict.out.contains("3 rows") && verdict.out.contains("2 rows"), "{}", verdict.out);
    assert_eq!(site.report("usage").only("card_hours"), "7.000000");
    site.import(&format!("jobs {jobs} --map {map}"));
}
