//! Whether somebody sits at a terminal.

use super::proc_entry::Terminal;
use cardhour_domain::Timestamp;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// When somebody last typed at a terminal of the `/dev` at `dev_root`: when what was typed was last read. None where it can't be seen.
///
/// Its time of access and not of change: a program that writes its progress changes it, and nobody need be there. Source: the kernel moves it
/// at most every eight seconds (`tty_update_time`).
pub fn typed_at(dev_root: &Path, terminal: Terminal) -> Option<Timestamp> {
    let file = match (terminal.pts(), terminal) {
        (Some(n), _) => dev_root.join(format!("pts/{n}")),
        (None, Terminal { major: 4, minor }) if minor < 64 => dev_root.join(format!("tty{minor}")),
        (None, Terminal { major: 4, minor }) => dev_root.join(format!("ttyS{}", minor - 64)),
        _ => return None,
    };
    let metadata = std::fs::metadata(file).ok()?;
    Timestamp::from_unix_s(metadata.atime()).checked_add_ms(metadata.atime_nsec() / 1_000_000)
}
