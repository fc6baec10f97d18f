//! The rules of efficiency as views in SQL: another engine's answer beside that of the reports.

use crate::site::{Site, micros};

/// Two columns that are the same to a hundred-thousandth: a view cuts each attempt's hours at eight decimals, a report rounds their sum.
#[track_caller]
fn assert_near(view: &str, report: &str, what: &str) {
    let of = |text: &str| if text.is_empty() { 0 } else { micros(text) };
    assert!((of(view) - of(report)).abs() <= 10, "{what}: {view} by the view, {report} by the report");
}

#[test]
fn views_say_of_the_demo_what_its_reports_say() {
    let site = Site::new();
    site.ok("demo --no-serve --seed 7 --month 2025-10");
    let hours = ["", "effective_", "underused_", "idle_", "lost_", "unseen_"].map(|part| format!("{part}card_hours"));
    let sums: Vec<String> = hours.iter().map(|name| format!("cast(sum({name}) as decimal(38, 6)) as {name}")).collect();
    let by_project = site.sql(&format!(
        "select project, {}, cast(sum(energy_kwh) as decimal(38, 6)) as energy_kwh from efficiency group by project",
        sums.join(", ")
    ));
    let failed = site
        .sql("select project, cast(sum(failed_card_hours) as decimal(38, 6)) as failed from failures group by project");
    let report = site.report("usage --by project");
    assert_eq!(by_project.0.len(), report.0.len());
    assert_eq!(report.0.len(), 9);
    for row in &report.0 {
        let project = &row["project"];
        let view = by_project.0.iter().find(|view| view["project"] == *project).unwrap();
        for name in hours.iter().map(String::as_str).chain(["energy_kwh"]) {
            assert_near(&view[name], &row[name], &format!("{name} of {project}"));
        }
        let failed = failed.by("project", "failed");
        assert_near(&failed[project], &row["failed_card_hours"], &format!("failed hours of {project}"));
    }
    // Those that waste most, by the view, are who the list of the weeks would begin with: idle and underused add up to the report's.
    let wasted = site.sql("select cast(sum(wasted_card_hours) as decimal(38, 6)) as wasted from low_use");
    let told = report.sum_micros("idle_card_hours") + report.sum_micros("underused_card_hours");
    assert!((micros(wasted.only("wasted")) - told).abs() <= 100, "{wasted:?} {told}");
    let notebook =
        site.sql("select reason from low_use where attempt_key like '%/nb-%' order by wasted_card_hours desc limit 1");
    assert!(notebook.only("reason").contains(" seen card-hours"), "{notebook:?}");
    // Nobody took more memory than there was, and what was had alone is in the devices' own.
    let memory = site.sql(
        "select count(*) as n, max(most_used_of_device) <= 1 as is_within, bool_and(mean_used_gib <= most_used_gib) as is_mean from card_memory",
    );
    assert_eq!([&memory.0[0]["is_within"], &memory.0[0]["is_mean"]], ["true", "true"]);
    assert_ne!(memory.only("n"), "0");
}

/// By hand: run 1 of job 1 failed with 2 cards in 5 hours, its run 2 took 1 hour; job 2 did at once. Nobody saw any of it.
#[test]
fn failed_and_repeated_runs_are_in_a_view_without_any_telemetry() {
    let site = Site::new();
    let rows = "job_id,project,user,cards,submitted_at,started_at,ended_at,state\n\
        1,vision,ann,2,2026-03-01T00:00:00Z,2026-03-01T00:00:00Z,2026-03-01T05:00:00Z,failed\n\
        1,vision,ann,2,2026-03-01T06:00:00Z,2026-03-01T06:00:00Z,2026-03-01T07:00:00Z,completed\n\
        2,vision,ann,1,2026-03-01T06:00:00Z,2026-03-01T06:00:00Z,2026-03-01T07:00:00Z,completed\n";
    let file = site.file("jobs.csv", rows);
    site.import(&format!("jobs {file} --format csv"));
    let failures = site.sql_text(
        "select job_id, run, state, cast(failed_card_hours as decimal(38, 2)) as failed, cast(retried_card_hours as decimal(38, 2)) as retried \
         from failures order by run",
    );
    assert_eq!(failures, "job_id,run,state,failed,retried\n1,1,failed,10.00,0.00\n1,2,completed,0.00,2.00\n");
    // What nobody saw has no efficiency, and wastes nothing.
    let unseen =
        site.sql("select efficiency, use_basis, cast(use_coverage as decimal(38, 2)) as seen from efficiency limit 1");
    assert_eq!([&unseen.0[0]["efficiency"], &unseen.0[0]["use_basis"], &unseen.0[0]["seen"]], ["", "", "0.00"]);
    assert!(site.sql("select * from low_use").0.is_empty());
    // They can be read: the text of each is in the catalogue. Without telemetry there is nothing to say of memory.
    let texts = site.sql(
        "select table_name, definition from information_schema.views where definition is not null order by table_name",
    );
    let names: Vec<&str> = texts.0.iter().map(|row| row["table_name"].as_str()).collect();
    assert_eq!(names, ["attempts", "efficiency", "failures", "low_use"]);
    assert!(texts.by("table_name", "definition")["failures"].contains("failed_card_hours"));
}
