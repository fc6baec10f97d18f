use super::*;

/// The named values of each record, `-` where absent; a rejected row by its reason.
#[track_caller]
fn values(input: &[u8], names: &[&str]) -> Vec<String> {
    let reading = read(Format::SacctJson, input, &ReaderOptions::default()).unwrap();
    let columns = reading.columns;
    let row = |row: Result<Record, Rejected>| match row {
        Ok(record) => {
            names.iter().map(|name| value(&record, &columns, name).unwrap_or("-")).collect::<Vec<_>>().join(" ")
        }
        Err(row) => row.reason,
    };
    reading.records.map(row).collect()
}

const NAMES: [&str; 8] = ["JobID", "State", "Start", "End", "AllocTRES", "NodeList", "ExitCode", "User"];

#[test]
fn jobs_of_the_accounting_database_are_read_in_the_new_shape() {
    let Some(input) = shared_data("slurm-json/fromage_1706227200.json") else { return };
    let (records, columns, steps) = records(Format::SacctJson, &input, &ReaderOptions::default());
    // Nine jobs, eight of them with two steps (job 6 waits).
    assert_eq!((records.len(), steps), (9, 16));
    // 1706206430 is 2024-01-25T18:13:50Z, and 1,092 s later 18:32:02 (`date -u -d @…`).
    let all = values(&input, &NAMES);
    assert_eq!(
        all[1],
        "2 COMPLETED 2024-01-25T18:13:50Z 2024-01-25T18:32:02Z \
         cpu=1,mem=4096M,node=1,billing=1,gres/gpu:v100=1 fg-v001 0:0 bratai"
            .replace("fg-v001", value(&records[1], &columns, "NodeList").unwrap())
    );
    assert!(all[5].starts_with("6 PENDING - - - "), "{}", all[5]);
    assert!(all[6].contains(" 1:0 "), "job 7 failed with 1: {}", all[6]);
    // 1706194461 is 2024-01-25T14:54:21Z; its end is 0.
    assert!(all[7].starts_with("8 RUNNING 2024-01-25T14:54:21Z - "), "{}", all[7]);
    assert_eq!(value(&records[7], &columns, "ElapsedRaw"), Some("32739"));
    assert_eq!(value(&records[7], &columns, "ReqMem"), Some("4096Mn"));
}

#[test]
fn a_job_on_many_lines_is_named_by_its_first() {
    let Some(input) = shared_data("slurm-json/raisin_base_job.json") else { return };
    let (records, columns, _) = records(Format::SacctJson, &input, &ReaderOptions::default());
    assert_eq!(records[0].line, 3);
    assert!(records[0].text.resolve(&input).starts_with("{\n      \"account\": \"raisin\""));
    assert_eq!(value(&records[0], &columns, "Priority"), Some("46003"));
}

#[test]
fn the_controllers_foretold_ends_are_not_taken() {
    let Some(input) = shared_data("slurm-rest/jobs.json") else { return };
    // Two run, with an end in the future in the file; 1723457333 and 1723463525 are 2024-08-12T10:08:53Z and 11:52:05Z.
    assert_eq!(
        values(&input, &NAMES),
        [
            "20464 RUNNING 2024-08-07T00:17:31Z - cpu=2,mem=4000M,node=1,billing=2 naboo222 - atl001",
            "20468 RUNNING 2024-08-07T00:32:52Z - cpu=2,mem=4000M,node=1,billing=2 naboo222 - atl001",
            "23772 COMPLETED 2024-08-12T10:08:53Z 2024-08-12T11:52:05Z cpu=8,mem=16000M,node=1,billing=8 naboo147 0:0 atl001",
        ]
    );
}

#[test]
fn one_controller_job_by_itself_is_read() {
    let Some(input) = shared_data("slurm-rest/2_node_job.json") else { return };
    // 1749564035 is 2025-06-10T14:00:35Z.
    assert_eq!(
        values(&input, &NAMES),
        [
            "349 COMPLETED 2025-06-10T14:00:35Z 2025-06-10T14:00:41Z cpu=4,mem=382712M,node=2,billing=4 worker-[1,0] 0:0 root"
        ]
    );
}

#[test]
fn sonars_step_keeps_its_step_in_the_id() {
    let Some(input) = shared_data("slurm-fox/newfmt_slurmjobs.json") else { return };
    assert_eq!(
        values(&input, &["JobID", "Cluster", "State", "End", "Suspended", "Reservation", "NodeList", "ElapsedRaw"]),
        ["1.0 fox.educloud.no COMPLETED 2025-03-10T01:35:24+01:00 00:00:37 big-cheese c1-[10-20],bigmem-1 113062"]
    );
}

#[test]
fn jobs_of_the_accounting_database_are_read_in_the_old_shape() {
    let input = br#"{"meta": {}, "jobs": [
      {"job_id": 12, "cluster": "c", "user": "ann", "state": {"current": "CANCELLED", "reason": "None"},
       "array": {"job_id": 10, "task_id": 2, "task": ""}, "het": {"job_id": 0, "job_offset": null},
       "time": {"submission": 1700000000, "start": 1700000100, "end": 1700003700, "elapsed": 3600, "suspended": 90061},
       "exit_code": {"status": "SIGNALED", "return_code": 0, "signal": {"signal_id": 9, "name": "KILL"}},
       "required": {"CPUs": 1, "memory": 9223372036854777808}, "nodes": "n[1-2]",
       "tres": {"allocated": [{"type": "gres", "name": "gpu", "id": 1001, "count": 4}]}, "steps": [{}, {}]},
      {"job_id": 20, "state": {"current": "PENDING"}, "time": {"start": 0, "end": 4294967294},
       "array": {"job_id": 20, "task_id": null, "task": "2-9%2"}, "tres": {}},
      {"job_id": 31, "state": {"current": "RUNNING"}, "time": {}, "het": {"job_id": 30, "job_offset": 1}},
      {"job_id": 40, "state": {"current": ["PENDING", "REQUEUED"]}, "time": {"start": 1700000100, "end": 1700003700}}
    ], "errors": []}"#;
    // 1700000100 is 2023-11-14T22:15:00Z.
    assert_eq!(
        values(input, &["JobID", "JobIDRaw", "State", "Start", "End", "AllocTRES", "ExitCode", "Suspended", "ReqMem"]),
        [
            "10_2 12 CANCELLED 2023-11-14T22:15:00Z 2023-11-14T23:15:00Z gres/gpu=4 0:9 1-01:01:01 2000Mc",
            "20_[2-9%2] 20 PENDING - - - - - -",
            "30+1 31 RUNNING - - - - - -",
            "40 40 REQUEUED 2023-11-14T22:15:00Z 2023-11-14T23:15:00Z - - - -",
        ]
    );
    assert_eq!(read(Format::SacctJson, input, &ReaderOptions::default()).unwrap().steps, 2);
}

#[test]
fn a_waiting_job_of_the_controller_has_neither_start_nor_end() {
    let input = br#"{"jobs": [
      {"job_id": 5, "job_state": ["PENDING", "REQUEUED"], "start_time": {"set": true, "infinite": false, "number": 1900000000},
       "end_time": {"set": true, "infinite": false, "number": 1900003600}, "array_job_id": {"set": true, "number": 0},
       "array_task_id": {"set": false, "number": 0}, "exit_code": {"return_code": {"set": true, "number": 0}}},
      {"job_id": 6, "job_state": "COMPLETING", "start_time": 1700000100, "end_time": 1900003600, "exit_code": 256},
      {"job_id": 7, "job_state": "FAILED", "start_time": 1700000100, "end_time": 1700003700, "exit_code": 256}
    ]}"#;
    assert_eq!(
        values(input, &["JobID", "State", "Start", "End", "ExitCode"]),
        [
            "5 PENDING - - -",
            "6 RUNNING 2023-11-14T22:15:00Z - -",
            "7 FAILED 2023-11-14T22:15:00Z 2023-11-14T23:15:00Z 1:0",
        ]
    );
}

#[test]
fn jobs_before_a_break_are_kept_and_the_break_is_named() {
    let job = r#"{"job_id": 1, "job_state": "RUNNING"}"#;
    assert_eq!(
        values(format!("{{\"jobs\": [\n{job},\n{job},\n{{\"job_id\": 3, \"job_").as_bytes(), &["JobID"]),
        ["1", "1", "line 4, column 19: EOF while parsing a string; the 2 jobs before it are read"]
    );
    assert_eq!(
        values(format!("[{job}, \"\u{e9}\", {{}}]").as_bytes(), &["JobID"])[1],
        "not a job: neither `time` and `state` (sacct) nor `job_state` (squeue) is in it"
    );
    let mut not_utf8 = format!("{{\"jobs\": [{job},\n{{\"name\": \"caf").into_bytes();
    not_utf8.extend(b"\xe9\"}]}");
    assert_eq!(
        values(&not_utf8, &["JobID"]),
        ["1", "line 2, column 14: a byte that is not UTF-8; the 1 jobs before it are read"]
    );
}

#[test]
fn json_of_another_kind_says_what_was_expected() {
    let none = ReaderOptions::default();
    let error = outcome(Format::SacctJson, "{\"nodes\": [], \"meta\": {}}", &none);
    assert!(error.ends_with("found `nodes`, `meta`"), "{error}");
    let error = outcome(Format::SacctJson, "JobID|State\n", &none);
    assert!(error.starts_with("line 1, column 1: expected value; no job was read"), "{error}");
    assert!(outcome(Format::SacctJson, "{\"jobs\": []}", &none).starts_with("JobID|"));
}
