//! A stage for a test: a folder with a library of its own, a scenario, a clock and the counts of calls.

use crate::clock::ManualClock;
use crate::place::{CLOCK, COUNTS, SCENARIO};
use crate::scenario::Scenario;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What drivers before 525 don't know: the performance monitor and later readings.
pub const NOT_IN_510: &[&str] = &[
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetJpgUtilization",
    "nvmlDeviceGetOfaUtilization",
    "nvmlDeviceGetProcessesUtilizationInfo",
    "nvmlDeviceGetRunningProcessDetailList",
    "nvmlDeviceGetTemperatureV",
    "nvmlGpmMetricsGet",
    "nvmlGpmMigSampleGet",
    "nvmlGpmQueryDeviceSupport",
    "nvmlGpmSampleAlloc",
    "nvmlGpmSampleFree",
    "nvmlGpmSampleGet",
];

/// What drivers before 510 don't know besides [`NOT_IN_510`]: the second version of memory, the third of process lists.
pub const NOT_IN_470: &[&str] = &[
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetMemoryInfo_v2",
];

/// The name that a program looks for.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Why there is no stage.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A scenario that can't be played.
    #[error("scenario: {0}")]
    Scenario(String),
    /// A file can't be made or read.
    #[error("stage can't be set")]
    Io(#[from] io::Error),
    /// A function to hide that the library doesn't have.
    #[error("library has no function {0}")]
    NoFunction(String),
}

/// A folder of its own with a copy of the library; what lies beside the copy is its scenario, clock and counts. Stages know nothing of each
/// other, so that tests need no environment variables and may run side by side. Gone when dropped.
#[derive(Debug)]
pub struct Stage {
    folder: TempDir,
    scenario: Scenario,
    clock: ManualClock,
}

impl Stage {
    /// With the text of a scenario, on a clock at 0 that the test moves.
    pub fn new(text: &str) -> Result<Self, StageError> {
        let scenario = Scenario::parse(text).map_err(StageError::Scenario)?;
        let folder = TempDir::with_prefix("fake-nvml-")?;
        std::fs::copy(crate::library_path(), folder.path().join(LIBRARY))?;
        std::fs::write(folder.path().join(SCENARIO), text)?;
        std::fs::write(folder.path().join(COUNTS), "")?;
        let clock = ManualClock::new(&folder.path().join(CLOCK))?;
        Ok(Self { folder, scenario, clock })
    }

    /// With a scenario that comes with this crate, by the name of its file.
    pub fn ready(name: &str) -> Result<Self, StageError> {
        Self::new(&std::fs::read_to_string(crate::scenario_path(name))?)
    }

    /// Hides functions from who looks for them, as an older driver has it. Before the library is loaded.
    pub fn without(self, functions: &[&str]) -> Result<Self, StageError> {
        let mut bytes = std::fs::read(self.library())?;
        for function in functions {
            let name = [b"\0", function.as_bytes(), b"\0"].concat();
            let places: Vec<usize> =
                bytes.windows(name.len()).enumerate().filter(|(_, window)| *window == name).map(|(at, _)| at).collect();
            if places.is_empty() {
                return Err(StageError::NoFunction((*function).to_owned()));
            }
            // The loader looks a name up by its hash, which stays, and then compares the name, which is another now.
            for place in places {
                bytes[place + 1] = b'x';
            }
        }
        std::fs::write(self.library(), bytes)?;
        Ok(self)
    }

    /// The library, under the name that programs look for.
    pub fn library(&self) -> PathBuf {
        self.folder.path().join(LIBRARY)
    }

    /// The folder, for `LD_LIBRARY_PATH`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What is played: the oracle.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The hands of the clock.
    pub fn clock(&mut self) -> &mut ManualClock {
        &mut self.clock
    }

    /// How often a function was called, up to the last `nvmlShutdown`, or the last 512 calls.
    pub fn calls(&self, function: &str) -> u64 {
        let text = std::fs::read_to_string(self.folder.path().join(COUNTS)).unwrap_or_default();
        let counts = text.lines().filter_map(|line| line.split_once(' '));
        counts.filter(|(name, _)| *name == function).find_map(|(_, count)| count.parse().ok()).unwrap_or(0)
    }
}
