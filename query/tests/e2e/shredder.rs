//! Open XDMoD's own test inputs: awkward sacct lines, and what its shredder makes of each.

use crate::site::{Rows, Site, map, micros, shared};
use serde_json::Value;

/// Imports each line of an input on its own, and hands the jobs that came of it to `check` with what Open XDMoD has for that line.
fn each_line(name: &str, check: impl Fn(&Rows, &Value)) {
    let Some(input) = shared(&format!("slurm-xdmod/shredder_input_{name}.log")) else { return };
    let Some(output) = shared(&format!("slurm-xdmod/shredder_output_{name}.json")) else { return };
    let input = std::fs::read_to_string(input).unwrap();
    let output: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(output).unwrap()).unwrap();
    assert_eq!(input.lines().count(), output.len());
    for (line, expected) in input.lines().zip(&output) {
        let site = Site::new();
        let file = site.file("line.log", line);
        site.import(&format!("jobs {file} --map {}", map("xdmod-sacct")));
        assert_eq!(site.sql("select count(*) as n from quarantine").only("n"), "0", "{line}");
        let jobs = site.sql(
            "select job_id, project, \"user\", queue, state, cards, \
             cast(date_part('epoch', submitted_at) as bigint) as submitted, \
             cast(date_part('epoch', started_at) as bigint) as started, \
             cast(date_part('epoch', ended_at) as bigint) as ended from jobs order by job_id",
        );
        check(&jobs, expected);
    }
}

#[test]
fn ended_jobs_are_what_open_xdmod_makes_of_them() {
    each_line("accounting-logs", |jobs, expected| {
        let text = |field: &str| expected[field].as_str().unwrap().to_owned();
        let number = |field: &str| expected[field].as_i64().unwrap().to_string();
        assert_eq!(jobs.only("job_id"), text("job_id"));
        assert_eq!(jobs.only("project"), text("account_name"));
        assert_eq!(jobs.only("user"), text("user_name"));
        assert_eq!(jobs.only("queue"), text("partition_name"));
        assert_eq!(jobs.only("submitted"), number("submit_time"));
        assert_eq!(jobs.only("started"), number("start_time"));
        assert_eq!(jobs.only("ended"), number("end_time"));
        assert_eq!(micros(jobs.only("cards")), i128::from(expected["ngpus"].as_i64().unwrap()) * 1_000_000);
        let state = text("state");
        assert_eq!(jobs.only("state"), state.split(' ').next().unwrap().to_lowercase());
    });
}

#[test]
fn a_range_of_array_tasks_is_one_job_an_index() {
    each_line("accounting-logs-with-job-arrays", |jobs, expected| {
        let mut told: Vec<i64> =
            jobs.0.iter().map(|job| job["job_id"].strip_prefix("4103947_").unwrap().parse().unwrap()).collect();
        told.sort_unstable();
        let indices: Vec<i64> = expected.as_array().unwrap().iter().map(|index| index.as_i64().unwrap()).collect();
        assert_eq!(told, indices);
    });
}

/// Open XDMoD skips them until they end; here they are open jobs, held as far as their source vouches.
#[test]
fn jobs_that_have_not_ended_are_open() {
    each_line("non-ended-job-state", |jobs, _| {
        assert!(["running", "pending"].contains(&jobs.only("state")));
        let started = jobs.only("state") == "running";
        assert_eq!(!jobs.only("started").is_empty(), started, "{jobs:?}");
    });
}

#[test]
fn words_that_are_no_state_become_unknown() {
    each_line("unknown-job-state", |jobs, _| assert_eq!(jobs.only("state"), "unknown"));
}

#[test]
fn a_name_of_several_bytes_a_letter_is_kept() {
    let Some(input) = shared("slurm-xdmod/shredder_input_utf8-multibyte-chars.log") else { return };
    let site = Site::new();
    site.import(&format!("jobs {} --map {}", input.display(), map("xdmod-sacct")));
    assert_eq!(site.sql("select count(*) as n from jobs").only("n"), "1");
    assert!(site.sql_text("select * from jobs").contains("aàb"), "the map keeps the job's name as a label");
}

/// Each text of the list as the allocation of a job of one hour, so that its card-hours are its count.
#[test]
fn every_allocation_of_the_list_counts_its_gpus_once() {
    let Some(list) = shared("slurm-xdmod/alloc-tres-gpu-count.json") else { return };
    let list: Vec<(String, i128)> = serde_json::from_str(&std::fs::read_to_string(list).unwrap()).unwrap();
    let mut text = String::from("JobID|JobIDRaw|Cluster|Account|User|Submit|Start|End|State|AllocTRES\n");
    for (i, (tres, _)) in list.iter().enumerate() {
        text.push_str(&format!(
            "{i}|{i}|c|account-{i}|u|2025-03-01T00:00:00|2025-03-01T01:00:00|2025-03-01T02:00:00|COMPLETED|{tres}\n"
        ));
    }
    let site = Site::new();
    let file = site.file("jobs.sacct", text);
    let map = site.file("map.toml", "format = \"sacct\"\ndelimiter = \"|\"\ntime_zone = \"UTC\"\n");
    site.import(&format!("jobs {file} --map {map}"));
    let hours = site.report("usage --by project").by("project", "card_hours");
    for (i, (tres, gpus)) in list.iter().enumerate() {
        let held = hours.get(&format!("account-{i}")).map_or(0, |hours| micros(hours));
        assert_eq!(held, gpus * 1_000_000, "{tres:?}");
    }
}
