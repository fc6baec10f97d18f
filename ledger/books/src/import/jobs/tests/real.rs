//! Real exports through the maps that the product ships; what is right was computed elsewhere and published with the files.

use super::*;
use crate::import::readers::{read, shared_data::shared_data};
use crate::import::site::nodes::NODE_FIELDS;
use std::collections::HashSet;
use std::path::PathBuf;

/// A map of `deploy/maps`.
fn shipped(name: &str) -> MapFile {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/maps").join(name);
    MapFile::parse(&std::fs::read_to_string(path).unwrap(), JOB_FIELDS)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn import_bytes(input: &[u8], map: MapFile) -> Imported {
    let format = map.format.expect("a shipped map names its format");
    let reading = read(format, input, &map.reader_options()).unwrap();
    let options = Options { as_of: None, covers: None, cluster: None, now: Timestamp::parse_rfc3339(NOW).unwrap() };
    attempts(input, &reading.columns, reading.records, &Mapping { format, map }, &options).unwrap()
}

fn import_file(path: &str, map: MapFile) -> Option<Imported> {
    shared_data(path).map(|input| import_bytes(&input, map))
}

/// The card-hours between two instants.
fn card_hours_in(imported: &Imported, from: &str, to: &str) -> String {
    let at = |text| Timestamp::parse_rfc3339(text).unwrap();
    let span = Interval::new(at(from), at(to)).unwrap();
    let held = imported.attempts.iter().filter_map(|a| {
        let held = Interval::new(a.started_at?, a.ended_at?)?.overlap(span)?;
        Some(CardTime::of(a.cards, held))
    });
    held.sum::<CardTime>().card_hours().round_dp(4).to_string()
}

#[track_caller]
fn check_keys_differ(imported: &Imported) {
    let keys: HashSet<_> = imported.attempts.iter().map(|a| a.key.as_str()).collect();
    assert_eq!(keys.len(), imported.attempts.len());
}

#[test]
fn every_shipped_map_is_read() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/maps");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<_> = names.filter(|name| name.ends_with(".toml")).collect();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        // The example in its head comment says what a map is for.
        let fields = if text.contains("cardhour import nodes") { NODE_FIELDS } else { JOB_FIELDS };
        let map = MapFile::parse(&text, fields).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(map.format.is_some(), "{name}");
    }
}

#[test]
fn philly_holds_what_its_trace_says_month_by_month() {
    let Some(imported) = import_file("philly/philly.csv", shipped("philly.toml")) else { return };
    assert_eq!((imported.attempts.len(), imported.rejected.len()), (82_247, 0));
    assert_eq!(card_hours(&imported), "978078.4728");
    for (from, to, expected) in [
        ("2017-09-01T00:00:00Z", "2017-10-01T00:00:00Z", "135584.8014"),
        ("2017-10-01T00:00:00Z", "2017-11-01T00:00:00Z", "442067.6128"),
        ("2017-11-01T00:00:00Z", "2017-12-01T00:00:00Z", "295879.6731"),
        ("2017-12-01T00:00:00Z", "2018-01-01T00:00:00Z", "104546.3856"),
    ] {
        assert_eq!(card_hours_in(&imported, from, to), expected, "{from}");
    }
    check_keys_differ(&imported);
    let jobs: HashSet<_> = imported.attempts.iter().map(|a| a.key.job()).collect();
    assert_eq!(jobs.len(), 82_247, "rows that repeat others are jobs of their own");
}

#[test]
fn openb_holds_by_share_or_by_whole_cards() {
    let Some(imported) = import_file("openb-2023/openb_pod_list_default.csv", shipped("openb-2023.toml")) else {
        return;
    };
    assert_eq!((imported.attempts.len(), imported.rejected.len()), (8_152, 0));
    assert_eq!(card_hours(&imported), "51470.6742");
    let never_started = imported.attempts.iter().filter(|a| a.started_at.is_none());
    assert_eq!(never_started.clone().count(), 897);
    assert!(never_started.clone().all(|a| a.is_final && a.state == JobState::Cancelled));
    let whole = shipped("openb-2023-whole-cards.toml");
    assert_eq!(card_hours(&import_file("openb-2023/openb_pod_list_default.csv", whole).unwrap()), "59612.2106");
    check_keys_differ(&imported);
}

#[test]
fn phillips_holds_by_month_and_day() {
    let Some(imported) = import_file("slurm-xdmod/phillips.log", shipped("xdmod-sacct.toml")) else { return };
    assert_eq!((imported.attempts.len(), imported.rejected.len()), (4_285, 0));
    for (from, to, expected) in [
        ("2016-12-01T00:00:00Z", "2017-01-01T00:00:00Z", "465.4928"),
        ("2017-01-01T00:00:00Z", "2017-02-01T00:00:00Z", "41.4200"),
        ("2016-12-22T00:00:00Z", "2016-12-23T00:00:00Z", "33.4928"),
        ("2016-12-23T00:00:00Z", "2016-12-24T00:00:00Z", "48.0000"),
        ("2017-01-01T00:00:00Z", "2017-01-02T00:00:00Z", "41.4200"),
    ] {
        assert_eq!(card_hours_in(&imported, from, to), expected, "{from}");
    }
    check_keys_differ(&imported);
    let by_cpu = MapFile { cards_from: "cpu".to_owned(), ..shipped("xdmod-sacct.toml") };
    let imported = import_file("slurm-xdmod/phillips.log", by_cpu).unwrap();
    assert_eq!(card_hours_in(&imported, "2016-12-01T00:00:00Z", "2017-01-01T00:00:00Z"), "9994.7011");
    assert_eq!(card_hours_in(&imported, "2017-01-01T00:00:00Z", "2017-02-01T00:00:00Z"), "1773.2872");
}

#[test]
fn eagle_holds_cards_or_nodes() {
    let Some(imported) = import_file("slurm-eagle/sample_eagle_data.csv", shipped("eagle.toml")) else { return };
    assert_eq!((imported.attempts.len(), imported.rejected.len()), (1_000, 0));
    assert_eq!(card_hours(&imported), "10.1350");
    check_keys_differ(&imported);
    let nodes = import_file("slurm-eagle/sample_eagle_data.csv", shipped("eagle-nodes.toml")).unwrap();
    assert_eq!(card_hours(&nodes), "23158.1433");
}

#[test]
fn uio_counts_a_card_once_and_no_step() {
    let Some(imported) = import_file("slurm-uio/slurm-sacct.csv", shipped("sonar-sacct-kv.toml")) else { return };
    assert_eq!((imported.attempts.len(), imported.rejected.len()), (294, 0));
    assert_eq!(imported.attempts.iter().filter(|a| !a.cards.is_zero()).count(), 84);
    assert_eq!(card_hours(&imported), "38.9997");
    assert!(imported.attempts.iter().any(|a| a.model.as_deref() == Some("a100")));
    check_keys_differ(&imported);
}

#[test]
fn gcm_reads_records_that_are_broken_over_lines() {
    let file = "slurm-gcm/sample-sacct-one-multiline.txt";
    let Some(imported) = import_file(file, shipped("gcm-sacct.toml")) else { return };
    assert_eq!((imported.rows_read, imported.steps, imported.rejected.len()), (4, 2, 0));
    let hours = |job: &str| {
        let attempts = imported.attempts.iter().filter(|a| &*a.job_id == job).cloned().collect();
        card_hours(&Imported { attempts, ..Imported::default() })
    };
    assert_eq!((hours("201729"), hours("201844")), ("22583.7511".to_owned(), "6211.9822".to_owned()));
    assert_eq!(imported.attempts[1].state, JobState::Requeued);
    let running = import_file("slurm-gcm/sample-sacct-running-output.txt", shipped("gcm-sacct.toml")).unwrap();
    assert_eq!((running.attempts.len(), running.rejected.len()), (0, 0));
    assert_eq!(running.steps, running.rows_read);
}

#[test]
fn fox_reads_the_same_jobs_as_text_and_as_key_value() {
    let Some(text) = import_file("slurm-fox/sacct-output.txt", shipped("fox-sacct.toml")) else { return };
    let kv = MapFile { cluster: Some("fox".to_owned()), ..shipped("sonar-sacct-kv.toml") };
    let kv = import_file("slurm-fox/sacctd-output.txt", kv).unwrap();
    assert_eq!((text.rejected.len(), kv.rejected.len()), (0, 0));
    // One is the local print of what the other has with its offset: the jobs of both are the same, key by key.
    let told = |imported: &Imported| {
        let jobs = imported.attempts.iter();
        jobs.map(|a| (a.key.clone(), a.cards, a.started_at, a.ended_at, a.state)).collect::<HashSet<_>>()
    };
    let (text, kv) = (told(&text), told(&kv));
    let common = text.intersection(&kv).count();
    assert!(common > 0 && common == text.len().min(kv.len()), "{common} of {} and {}", text.len(), kv.len());
}

#[test]
fn slurms_json_of_old_and_new_shape_and_sonars_are_booked() {
    for (file, map) in [
        ("slurm-json/fromage_1706227200.json", Format::SacctJson),
        ("slurm-json/raisin_1714003200.json", Format::SacctJson),
        ("slurm-rest/jobs.json", Format::SacctJson),
        ("slurm-rest/2_node_job.json", Format::SacctJson),
        ("slurm-fox/newfmt_slurmjobs.json", Format::SacctJson),
    ] {
        let Some(imported) = import_file(file, MapFile { format: Some(map), ..MapFile::default() }) else { return };
        assert!(!imported.attempts.is_empty() || imported.steps > 0, "{file}: {imported:?}");
        assert_eq!(imported.rejected, [], "{file}");
    }
}

#[test]
fn alloc_tres_texts_count_the_cards_that_xdmod_counts() {
    let Some(input) = shared_data("slurm-xdmod/alloc-tres-gpu-count.json") else { return };
    let cases: Vec<(String, i64)> = serde_json::from_slice(&input).unwrap();
    assert_eq!(cases.len(), 9);
    for (text, cards) in cases {
        let read = crate::import::tres::cards_in_tres(&text, "gres/gpu").unwrap();
        assert_eq!(read.share.parts(), cards * cardhour_domain::CardShare::PARTS_PER_CARD, "{text}");
    }
}

/// Each line of an XDMoD input, imported on its own.
fn line_by_line(name: &str) -> Option<Vec<Imported>> {
    let input = shared_data(&format!("slurm-xdmod/shredder_input_{name}.log"))?;
    let lines = input.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    Some(lines.map(|line| import_bytes(line, shipped("xdmod-sacct.toml"))).collect())
}

#[test]
fn a_range_that_started_is_one_job_an_index() {
    let Some(lines) = line_by_line("accounting-logs-with-job-arrays") else { return };
    let expected = shared_data("slurm-xdmod/shredder_output_accounting-logs-with-job-arrays.json").unwrap();
    let expected: Vec<Vec<u64>> = serde_json::from_slice(&expected).unwrap();
    let told: Vec<Vec<String>> =
        lines.iter().map(|line| line.attempts.iter().map(|a| a.job_id.to_string()).collect()).collect();
    let expected: Vec<Vec<String>> =
        expected.iter().map(|tasks| tasks.iter().map(|task| format!("4103947_{task}")).collect()).collect();
    assert_eq!(told, expected);
    assert!(lines.iter().all(|line| line.rejected.is_empty() && line.rows_read == 1));
}

#[test]
fn xdmods_jobs_are_booked_as_xdmod_has_them() {
    let Some(lines) = line_by_line("accounting-logs") else { return };
    let expected = shared_data("slurm-xdmod/shredder_output_accounting-logs.json").unwrap();
    let expected: Vec<serde_json::Value> = serde_json::from_slice(&expected).unwrap();
    assert_eq!(lines.len(), expected.len());
    for (line, expected) in lines.iter().zip(&expected) {
        let [attempt] = &line.attempts[..] else { panic!("{line:?}") };
        let time = |name: &str| expected[name].as_i64().map(Timestamp::from_unix_s);
        let text = |name: &str| expected[name].as_str().filter(|text| !text.is_empty());
        assert_eq!(text("job_id"), Some(&*attempt.job_id));
        assert_eq!((attempt.submitted_at, attempt.started_at), (time("submit_time"), time("start_time")));
        assert_eq!(attempt.ended_at, time("end_time"));
        assert_eq!(attempt.project.as_deref(), text("account_name"));
        assert_eq!(attempt.user.as_deref(), text("user_name"));
        assert_eq!(attempt.queue.as_deref(), text("partition_name"));
        assert_eq!(attempt.exit_code.as_deref(), text("exit_code"));
        assert_eq!(attempt.labels.get("name").map(|name| &**name), text("job_name"));
        assert_eq!(attempt.cards.cards().normalize().to_string(), expected["ngpus"].to_string());
        assert_eq!(attempt.state, crate::import::slurm::state_of(text("state").unwrap()));
    }
    assert_eq!(lines[0].attempts[0].nodes.len(), 32, "as many names as NNodes says");
}

#[test]
fn what_xdmod_skips_is_open_or_unknown_here() {
    let Some(open) = line_by_line("non-ended-job-state") else { return };
    let shown: Vec<_> = open.iter().map(|line| (line.attempts[0].state, line.attempts[0].is_final)).collect();
    assert_eq!(shown, [(JobState::Running, false), (JobState::Pending, false)]);
    // Start + elapsed: 19:24:08 + 22:32:22.
    assert_eq!(open[0].attempts[0].as_of.unwrap().to_string(), "2020-07-01T17:56:30Z");
    let unknown = line_by_line("unknown-job-state").unwrap();
    let shown: Vec<_> = unknown.iter().map(|line| (line.attempts[0].state, line.attempts[0].is_final)).collect();
    assert_eq!(shown, [(JobState::Unknown, true), (JobState::Unknown, true)]);
    let utf8 = line_by_line("utf8-multibyte-chars").unwrap();
    assert_eq!(&*utf8[0].attempts[0].labels["name"], "aàb");
}

#[test]
fn hostile_bytes_have_an_answer_each() {
    let map = || MapFile::parse("format = \"csv\"", JOB_FIELDS).unwrap();
    let mut file = b"\xef\xbb\xbfjob_id,started_at,ended_at,cards,user\n".to_vec();
    file.extend(b"a,2020-01-01,2020-01-02,1,\xff\xfe\n");
    file.extend(b"b,2020-01-01,2020-01-02,1,nul\0byte\n");
    file.extend(b"c,2020-01-01,2020-01-02,1,");
    file.extend(vec![b'x'; 10_000_000]);
    file.extend(b"\nd,2020-01-01,2020-");
    let imported = import_bytes(&file, map());
    assert_eq!(imported.rows_read, 4);
    assert_eq!(imported.attempts.len() + imported.rejected.len(), 4);
    assert!(imported.rejected.iter().all(|rejected| rejected.row.len() <= 64 * 1024));
    let user = |id: &str| imported.attempts.iter().find(|a| &*a.job_id == id).and_then(|a| a.user.clone());
    assert_eq!(user("b").as_deref(), Some("nul\u{fffd}byte"));
    assert!(user("c").is_none_or(|user| user.len() <= 1024));
}
