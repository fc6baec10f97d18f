//! From one life of the collector to the next.

use crate::hung::Told;
use crate::metrics::node::{LONG, command};
use cardhour_domain::{Gap, Interval, Millijoules, Reading, Sample};
use fake_nvml::Stage;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A collector on a scenario that began at a time of its own, and so goes on from life to life.
fn started(folder: &Path, stage: &Stage, began_ns: u128) -> Child {
    let mut command = command(folder, "metrics = \"off\"", "");
    command.arg("--nvml-lib").arg(stage.library()).env("FAKE_NVML_T0", began_ns.to_string());
    command.stderr(std::process::Stdio::null()).spawn().unwrap()
}

/// Killed, away for eight seconds, and started again. By hand: a card of 60 W uses 60 mJ a millisecond, whoever looks; what it did meanwhile nobody knows.
#[test]
fn energy_of_the_time_between_two_lives_is_told_and_nothing_else_of_it() {
    let stage = Stage::new("[[card]]\npreset = \"h100\"\n").unwrap();
    std::fs::remove_file(stage.folder().join("fake-nvml.clock")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let began_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let mut first = started(folder.path(), &stage, began_ns);
    let counted = folder.path().join("spool/counted");
    let since = Instant::now();
    let noted = || std::fs::read_to_string(&counted).is_ok_and(|text| text.contains("GPU-"));
    while !noted() {
        assert!(since.elapsed() < LONG, "a tick is noted");
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_millis(4_500));
    first.kill().unwrap();
    first.wait().unwrap();
    std::thread::sleep(Duration::from_secs(8));
    let mut second = started(folder.path(), &stage, began_ns);
    std::thread::sleep(Duration::from_secs(6));
    assert!(Command::new("kill").args(["-TERM", &second.id().to_string()]).status().unwrap().success());
    assert!(second.wait().unwrap().success());

    let told = Told::in_folder(&folder.path().join("ledger/incoming/n1")).samples;
    let is_between = |row: &&Sample| row.power_mw == Reading::Missing(Gap::CollectorDown);
    let between: Vec<&Sample> = told.iter().filter(is_between).collect();
    let away_ms: i64 = between.iter().map(|row| row.during.length_ms()).sum();
    assert!((7_000..14_000).contains(&away_ms), "{away_ms}");
    let nothing_else = |row: &&Sample| {
        row.sm_active_pct.seen().is_none() && row.temperature_c.seen().is_none() && row.mem_used_bytes.seen().is_none()
    };
    assert!(between.iter().all(|row| nothing_else(row) && row.attempt_key.is_none()));
    let whole = Interval::union(told.iter().map(|row| row.during).collect::<Vec<_>>());
    assert_eq!(whole.len(), 1, "neighbours meet: {whole:?}");
    let sum_mj = |rows: &[&Sample]| -> i64 {
        rows.iter().filter_map(|row| row.energy_mj.seen()).map(|Millijoules(mj)| mj).sum()
    };
    let all: Vec<&Sample> = told.iter().collect();
    // Counters are read up to some milliseconds beside their ticks.
    for (mj, ms) in [(sum_mj(&between), away_ms), (sum_mj(&all), whole[0].length_ms())] {
        assert!((mj - 60 * ms).abs() <= 60 * 500, "{mj} mJ in {ms} ms");
    }
}
