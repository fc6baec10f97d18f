//! Real files that nobody here wrote, kept outside of the repository.

use std::io::Write as _;
use std::path::PathBuf;

/// A file of the shared data folder: of `CARDHOUR_SHARED`, else `../shared/data` beside the workspace.
///
/// None where the folder is missing: then the test says so and passes, but not with `CARDHOUR_REQUIRE_ALL=1`.
#[track_caller]
pub(crate) fn shared_data(name: &str) -> Option<Vec<u8>> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = std::env::var_os("CARDHOUR_SHARED").map_or_else(|| workspace.join("../shared/data"), PathBuf::from);
    if folder.is_dir() {
        let path = folder.join(name);
        return Some(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
    }
    assert!(std::env::var_os("CARDHOUR_REQUIRE_ALL").is_none_or(|all| all != "1"), "{name}: no shared data folder");
    // Not by println!, which is captured of a test that passes.
    let _ = writeln!(std::io::stderr(), "skipped: {name} needs the shared data folder");
    None
}
