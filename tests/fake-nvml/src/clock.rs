//! The time of a scenario: milliseconds since its start.

use crate::place;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that names the file of a manual clock: eight bytes, nanoseconds since the start of the scenario, little-endian.
pub const CLOCK_VARIABLE: &str = "FAKE_NVML_CLOCK";
/// The variable that says when a scenario on the real clock started: nanoseconds since 1970. Without it, it starts with the process, so that it
/// goes on when the library is unloaded and loaded anew.
pub const START_VARIABLE: &str = "FAKE_NVML_T0";

/// Where the library takes the time from.
pub(crate) enum Clock {
    Manual(File),
    /// Started at this many nanoseconds since 1970, and runs so many times as fast as the world.
    Running {
        start_ns: u128,
        factor: f64,
    },
}

impl Clock {
    /// Of the surroundings; `factor` is the scenario's.
    pub(crate) fn of_process(factor: f64) -> io::Result<Self> {
        if let Some(path) = place::file(CLOCK_VARIABLE, place::CLOCK) {
            return File::open(path).map(Self::Manual);
        }
        let told = std::env::var(START_VARIABLE).ok().and_then(|text| text.parse().ok());
        let start_ns = told.or_else(process_start_ns).unwrap_or_else(unix_ns);
        Ok(Self::Running { start_ns, factor })
    }

    /// Unit: milliseconds since the start of the scenario.
    pub(crate) fn now_ms(&self) -> i64 {
        match self {
            Self::Manual(file) => {
                let mut bytes = [0; 8];
                file.read_exact_at(&mut bytes, 0).map_or(0, |()| (u64::from_le_bytes(bytes) / 1_000_000) as i64)
            }
            Self::Running { start_ns, factor } => {
                (unix_ns().saturating_sub(*start_ns) as f64 * factor / 1_000_000.0) as i64
            }
        }
    }
}

/// When this process started, to a second: the same each time that it is asked. Unit: nanoseconds since 1970.
fn process_start_ns() -> Option<u128> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The 22nd field, counted behind the name, which may have spaces in it: hundredths of a second since the boot.
    let ticks: u128 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let machine = std::fs::read_to_string("/proc/stat").ok()?;
    let boot_s: u128 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(boot_s * 1_000_000_000 + ticks * 10_000_000)
}

fn unix_ns() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// A clock that a test moves by hand, for the library in this or another process.
#[derive(Debug)]
pub struct ManualClock {
    file: File,
    path: PathBuf,
    now_ms: u64,
}

impl ManualClock {
    /// A clock at 0, in a file that is made.
    pub fn new(path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(&0u64.to_le_bytes())?;
        Ok(Self { file, path: path.to_owned(), now_ms: 0 })
    }

    /// What [`CLOCK_VARIABLE`] has to say.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unit: milliseconds since the start of the scenario.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Moves it, forth or back.
    pub fn set_ms(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let ns = now_ms * 1_000_000;
        self.file.write_all_at(&ns.to_le_bytes(), 0).expect("the clock's file can be written");
    }

    /// Moves it forth.
    pub fn advance_ms(&mut self, ms: u64) {
        self.set_ms(self.now_ms + ms);
    }
}
