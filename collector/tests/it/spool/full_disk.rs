//! A disk without room: a small file system of its own, in a mount namespace of its own.

use super::rows::{BOOT, DEVICES, NODE, NOW, arguments_of, numbers, open, segments_in, tick};
use cardhour_collector::spool::{Spool, SpoolConfig};
use cardhour_domain::Stream;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "CARDHOUR_TEST_FULL_DISK_IN";

/// Runs a test of this file in a process of its own, in a folder on a file system of 256 KiB. What it said; none where nobody may mount.
fn said_on_a_small_disk(test: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let in_namespace = |script: &str, arguments: &[String]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-ec"]);
        command.arg(format!("mount -t tmpfs -o size=256k tmpfs \"${FOLDER}\"\n{script}")).args(arguments);
        command.env(FOLDER, folder.path());
        command
    };
    if !in_namespace("true", &[]).output().is_ok_and(|output| output.status.success()) {
        let skipped = "skipped: a full disk needs the right to mount (unshare --map-root-user --mount)";
        assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none(), "{skipped}");
        println!("{skipped}");
        return None;
    }
    let arguments = arguments_of(&format!("spool::full_disk::{test}"));
    let output = in_namespace("exec \"$0\" \"$@\"", &arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

#[test]
fn a_full_disk_costs_telemetry_that_is_counted_and_no_holding_and_mends_itself() {
    let Some(said) = said_on_a_small_disk("the_collector_on_a_full_disk") else { return };
    assert!(said.contains("it mended itself"), "{said}");
}

#[test]
fn a_start_on_a_full_disk_runs_and_holdings_wait_until_there_is_room() {
    let Some(said) = said_on_a_small_disk("the_collector_that_starts_on_a_full_disk") else { return };
    assert!(said.contains("it started"), "{said}");
}

/// Takes all the room that there is.
fn fill(folder: &Path) {
    let mut file = File::create(folder.join("filler")).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}

/// Not a test by itself: the process that [`a_full_disk_costs_telemetry_that_is_counted_and_no_holding_and_mends_itself`] runs.
#[test]
fn the_collector_on_a_full_disk() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let spool_folder = folder.join("spool");
    let mut spool = open(&spool_folder, 1 << 20);
    for number in 0..3 {
        spool.append(&tick(number), NOW).unwrap();
    }
    let mut failed = Vec::new();
    // Twice, so that the journal goes on after ticks that it took in part and gave back.
    for from in [3, 104] {
        fill(folder);
        // A few go into the rest of the journal's last page, then no more.
        for number in from..from + 100 {
            if let Err(error) = spool.append(&tick(number), NOW) {
                assert!(error.is_full(), "{error:?}");
                assert!(error.to_string().contains(".journal"), "{error}");
                failed.push(number);
            }
        }
        assert!(failed.last() == Some(&(from + 99)), "the disk isn't full: {failed:?}");
        fs::remove_file(folder.join("filler")).unwrap();
        spool.append(&tick(from + 100), NOW).unwrap();
    }
    fill(folder);
    let error = spool.seal(NOW).unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert!(error.to_string().contains(".parquet"), "{error}");
    assert_eq!(spool.pending().unwrap(), []);
    // Without a journal that is open, one can't even be made.
    spool.append(&tick(205), NOW).unwrap_err();
    failed.push(205);

    fs::remove_file(folder.join("filler")).unwrap();
    spool.append(&tick(206), NOW).unwrap();
    spool.seal(NOW).unwrap();
    let of = |stream| sealed_of(&spool_folder, stream);
    assert_eq!(of(Stream::Observations), (0..207).collect::<Vec<u64>>(), "every holding, once");
    let written = (0..207).filter(|number| !failed.contains(number));
    let expected: Vec<u64> = written.flat_map(|number| [number; DEVICES as usize]).collect();
    assert_eq!(of(Stream::Samples), expected);
    let dropped: u64 = spool.counters().dropped_rows.values().sum();
    assert_eq!(dropped, failed.len() as u64 * DEVICES);
    assert_eq!(spool.counters().failed_appends, failed.len() as u64);
    assert_eq!(unfinished(&spool_folder), [""; 0]);
    println!("it mended itself");
}

/// Not a test by itself: the process that [`a_start_on_a_full_disk_runs_and_holdings_wait_until_there_is_room`] runs.
#[test]
fn the_collector_that_starts_on_a_full_disk() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let spool_folder = folder.join("spool");
    let mut spool = open(&spool_folder, 1 << 20);
    for number in 0..3 {
        spool.append(&tick(number), NOW).unwrap();
    }
    drop(spool);
    fill(folder);
    // The journal of before is there and can't be sealed; nor is there room for a note or a new journal.
    let config = SpoolConfig::new(&spool_folder, NODE.into());
    let (mut spool, recovered) = Spool::open(config, BOOT, NOW).unwrap();
    assert_eq!((recovered.journals, recovered.unsealed), (0, 1));
    assert_eq!(fs::read_dir(&spool_folder).unwrap().count(), 3, "lock, sequence, journal");
    for number in 3..20 {
        let error = spool.append(&tick(number), NOW).unwrap_err();
        assert!(error.is_full(), "{error:?}");
    }
    fs::remove_file(folder.join("filler")).unwrap();
    spool.append(&tick(20), NOW).unwrap();
    spool.seal(NOW).unwrap();
    assert_eq!(sealed_of(&spool_folder, Stream::Observations), (0..21).collect::<Vec<u64>>(), "every holding, once");
    let expected: Vec<u64> = [0, 1, 2, 20].into_iter().flat_map(|number| [number; DEVICES as usize]).collect();
    assert_eq!(sealed_of(&spool_folder, Stream::Samples), expected);
    assert_eq!(spool.counters().dropped_rows.values().sum::<u64>(), 17 * DEVICES);
    assert_eq!(unfinished(&spool_folder), [""; 0]);
    println!("it started");
}

/// The numbers of the ticks of which sealed segments have rows of a stream.
fn sealed_of(spool_folder: &Path, stream: Stream) -> Vec<u64> {
    let segments = segments_in(spool_folder).into_iter().filter(|(name, _)| name.stream() == stream);
    let mut found: Vec<u64> = segments.flat_map(|(_, path)| numbers(&path, stream)).collect();
    found.sort_unstable();
    found
}

/// Files that a sealing should have removed.
fn unfinished(spool_folder: &Path) -> Vec<String> {
    let names = fs::read_dir(spool_folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".tmp") || name.ends_with(".journal")).collect()
}
