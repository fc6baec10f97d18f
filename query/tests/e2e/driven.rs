//! The real daemon on a clock that the test moves: hours of a node in seconds, and every instant known.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The clock of a node and of its cards, as files that the daemon, the stand-in for the driver and the test have in common.
pub struct DrivenClock {
    folder: PathBuf,
    clock: File,
    waiting: File,
    starts_at_unix_ms: i64,
}

impl DrivenClock {
    /// At its start, which the wall clock shows as `starts_at_unix_ms`.
    pub fn new(folder: &Path, starts_at_unix_ms: i64) -> Self {
        let file = |name: &str, bytes: usize| {
            let path = folder.join(name);
            fs::write(&path, vec![0; bytes]).unwrap();
            fs::OpenOptions::new().read(true).write(true).open(path).unwrap()
        };
        let clock = Self {
            folder: folder.to_owned(),
            clock: file("clock", 16),
            waiting: file("waiting", 8),
            starts_at_unix_ms,
        };
        clock.show(0, 0);
        clock
    }

    /// Moves to `now_ms` since the start; the wall clock is `ahead_ms` before what it should show.
    pub fn show(&self, now_ms: i64, ahead_ms: i64) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&(now_ms as u64 * 1_000_000).to_le_bytes());
        bytes[8..].copy_from_slice(&(self.starts_at_unix_ms + ahead_ms).to_le_bytes());
        self.clock.write_all_at(&bytes, 0).unwrap();
    }

    /// What the collector waits for, and 0 until it waits for the first time. Unit: milliseconds since the start, rounded up.
    pub fn wakes_ms(&self) -> i64 {
        let mut bytes = [0; 8];
        self.waiting.read_exact_at(&mut bytes, 0).unwrap();
        u64::from_le_bytes(bytes).div_ceil(1_000_000) as i64
    }

    /// A daemon on this clock, to be started: `cardhour-collector` in all but its clock. A test of the whole workspace builds it as an example of its crate.
    pub fn daemon(&self, config: &Path, scene: &Path) -> Command {
        self.waiting.write_all_at(&[0; 8], 0).unwrap();
        let driven = Path::new(env!("CARGO_BIN_EXE_cardhour")).with_file_name("examples").join("driven");
        assert!(driven.exists(), "no {}: build the whole workspace", driven.display());
        let clock = self.folder.join("clock");
        let mut command = Command::new(driven);
        command.arg(config).arg(fake_nvml::library_path()).arg(&clock).arg(self.folder.join("waiting"));
        command.env("FAKE_NVML_SCENARIO", scene).env("FAKE_NVML_CLOCK", clock);
        command
    }
}
