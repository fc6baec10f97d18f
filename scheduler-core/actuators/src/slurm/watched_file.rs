//! A file that a job writes when its checkpoint is done.

use crate::world::Trouble;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// What tells one writing of it from another: when it was changed, its number and size. None where it isn't there. Nothing is compared with a clock: the
/// file's may be another's. Errors: it can't be looked at, or a file system hangs.
pub(super) fn look(path: &Path, timeout: Duration) -> Result<Option<String>, Trouble> {
    if !path.is_absolute() {
        return Err(Trouble::NotHere(format!("{} isn't a whole path", path.display())));
    }
    let (send, answer) = mpsc::channel();
    let asked = path.to_owned();
    // A thread that a dead file server holds stays behind; whoever asked goes on.
    std::thread::spawn(move || {
        let _ = send.send(std::fs::metadata(asked));
    });
    match answer.recv_timeout(timeout) {
        Ok(Ok(file)) => Ok(Some(format!("{}.{:09} {} {}", file.mtime(), file.mtime_nsec(), file.ino(), file.size()))),
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(Err(error)) => Err(Trouble::Unseen(format!("cannot look at {}: {error}", path.display()))),
        Err(_) => Err(Trouble::Unseen(format!("{} gave no answer", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_made_or_written_again_looks_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("done");
        let see = || look(&path, Duration::from_secs(10)).unwrap();
        assert_eq!(see(), None);
        std::fs::write(&path, "1").unwrap();
        let first = see();
        assert!(first.is_some() && first == see());
        std::fs::write(&path, "12").unwrap();
        assert_ne!(see(), first);
        assert!(look(Path::new("done"), Duration::from_secs(10)).is_err());
    }
}
