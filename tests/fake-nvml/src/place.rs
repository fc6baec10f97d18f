//! Where the library's files are: where a variable says, or beside the library itself.

use std::path::{Path, PathBuf};

/// Names of the files beside the library.
pub(crate) const SCENARIO: &str = "fake-nvml.toml";
pub(crate) const CLOCK: &str = "fake-nvml.clock";
pub(crate) const COUNTS: &str = "fake-nvml.counts";

/// The file that a variable names; without it, one that lies beside the library, if there is one.
pub(crate) fn file(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Some(PathBuf::from(path));
    }
    let beside = own_folder()?.join(name);
    beside.exists().then_some(beside)
}

/// The folder that this library was loaded from.
fn own_folder() -> Option<PathBuf> {
    let here = own_folder as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let edge = |text: &str| usize::from_str_radix(text, 16).ok();
        (edge(from)?..edge(to)?).contains(&here).then(|| rest.find('/').map(|at| &rest[at..]))?
    })?;
    Path::new(path).parent().map(Path::to_owned)
}
