//! NVML's C interface, driven by a scenario file: what a test or a demo gives a program in place of the driver's `libnvidia-ml.so.1`.
//!
//! Every value is a function of the scenario and the time since its start, and has a closed form: [`Scenario`] gives the same numbers to a test
//! as an oracle that the library gives through C. How a scenario is written: README.md beside this crate.
//!
//! ```text
//! FAKE_NVML_SCENARIO ─► scenario ─ curves ─┐
//! FAKE_NVML_CLOCK / _T0 ─► clock ──────────┴─► library (handles, sets, counts) ─► exports: the C functions
//! ```
//!
//! What it does not do: no threads, no thread-local with a destructor (so that `dlclose` unmaps it), no state that outlives the last
//! `nvmlShutdown` but the counts of calls.

pub mod clock;
pub mod curve;
mod exports;
mod handle;
mod library;
mod place;
mod preset;
pub mod scenario;
mod stage;
mod text;

pub use clock::ManualClock;
pub use curve::Curve;
pub use scenario::{Scenario, ScenarioError};
pub use stage::{NOT_IN_470, NOT_IN_510, Stage, StageError};

/// Where the built library is, for a test that runs from the same target folder. Panics where it wasn't built.
pub fn library_path() -> std::path::PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let deps = test.parent().expect("a test lies in a folder");
    let beside = [deps.join("libfake_nvml.so"), deps.join("deps/libfake_nvml.so"), deps.join("../libfake_nvml.so")];
    let found = beside.into_iter().find(|path| path.exists());
    found.expect("libfake_nvml.so beside the test: build cardhour-fake-nvml as a dev-dependency")
}

/// A scenario that comes with this crate, by the name of its file: `eight-h100-mig7`. Panics where there is none.
pub fn scenario_path(name: &str) -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(format!("{name}.toml"));
    assert!(path.exists(), "no scenario {}", path.display());
    path
}
