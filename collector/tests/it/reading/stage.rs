//! The stand-in for the driver's library, set up for one scenario at a time.

use fake_nvml::{Scenario, library_path};
use nvml_wrapper::Nvml;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// One scenario, alone in this process while it lives: the library takes its files from the environment, of which there is one.
pub struct Stage {
    scenario: Scenario,
    library: PathBuf,
    /// Keeps the library mapped, so that its counts go on when the probe loads it anew; none while the scenario has no driver.
    keeper: Option<Nvml>,
    _alone: MutexGuard<'static, ()>,
}

/// Where the files of all scenarios of this process lie, one after the other.
fn files() -> &'static Path {
    static FILES: OnceLock<tempfile::TempDir> = OnceLock::new();
    let at = FILES.get_or_init(|| {
        let files = tempfile::tempdir().unwrap();
        for (variable, file) in
            [("FAKE_NVML_SCENARIO", "scenario.toml"), ("FAKE_NVML_CLOCK", "clock"), ("FAKE_NVML_COUNTS", "counts")]
        {
            #[allow(unsafe_code, reason = "the stand-in is told by its environment where its files are")]
            // SAFETY: done once, before any scenario is played, under the lock of all of them; others of this process use Rust's own
            // environment, which has a lock too.
            unsafe {
                std::env::set_var(variable, files.path().join(file));
            }
        }
        files
    });
    at.path()
}

impl Stage {
    /// Panics where the scenario can't be.
    pub fn new(text: &str) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        // A test that failed leaves nothing behind that the next doesn't set anew.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let files = files();
        let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        std::fs::write(files.join("scenario.toml"), text).unwrap();
        std::fs::write(files.join("clock"), 0u64.to_le_bytes()).unwrap();
        drop(std::fs::remove_file(files.join("counts")));
        let library = library_path();
        let keeper = Nvml::builder().lib_path(library.as_os_str()).init().ok();
        Self { scenario, library, keeper, _alone: alone }
    }

    pub fn library(&self) -> &Path {
        &self.library
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Turns the scenario's clock. Unit: microseconds since its start.
    pub fn set_us(&self, us: i64) {
        let ns = u64::try_from(us).unwrap() * 1000;
        // In place: the library has the file open.
        let clock = std::fs::OpenOptions::new().write(true).open(files().join("clock")).unwrap();
        clock.write_all_at(&ns.to_le_bytes(), 0).unwrap();
    }

    /// How often each function was called, up to the last time that the library was let go.
    pub fn all_calls(&self) -> Vec<(String, u64)> {
        let text = std::fs::read_to_string(files().join("counts")).unwrap_or_default();
        let count = |line: &str| line.split_once(' ').map(|(name, count)| (name.to_owned(), count.parse().unwrap()));
        text.lines().filter_map(count).collect()
    }

    /// How often a function was called.
    pub fn calls(&self, name: &str) -> u64 {
        self.all_calls().into_iter().find(|(call, _)| call == name).map_or(0, |(_, count)| count)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.keeper.take());
    }
}
