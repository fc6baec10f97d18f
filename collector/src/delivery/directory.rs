//! Segments into a folder.

use super::{Answer, Trouble};
use cardhour_domain::SegmentName;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// `FOLDER/incoming/NODE`.
pub(super) struct Directory {
    incoming: PathBuf,
    of_node: PathBuf,
}

impl Directory {
    /// `node` has passed [`crate::spool::folder::check_node`].
    pub(super) fn new(folder: PathBuf, node: &str) -> Self {
        let incoming = folder.join("incoming");
        Self { of_node: incoming.join(node), incoming }
    }

    /// Puts a segment there, whole or not at all.
    pub(super) fn take(&self, name: &SegmentName, bytes: &[u8]) -> Result<Answer, Trouble> {
        fs::metadata(&self.incoming).map_err(trouble("find", &self.incoming))?;
        match fs::create_dir(&self.of_node) {
            Ok(()) => sync(&self.incoming)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(trouble("make the folder", &self.of_node)(error)),
        }
        let path = self.of_node.join(name.to_string());
        match is_same(&path, bytes) {
            Ok(true) => return Ok(Answer::Known),
            Ok(false) => {
                return Ok(Answer::Refused(format!("{} is there with other content", path.display())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(trouble("read", &path)(error)),
        }
        // No segment's name: a ledger that takes in this folder passes it by.
        let temporary = self.of_node.join(format!(".{name}.tmp"));
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        let written = write().map_err(trouble("write", &path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written?;
        sync(&self.of_node)?;
        Ok(Answer::Taken)
    }
}

/// Whether a file has this content, and nothing else.
fn is_same(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let file = File::open(path)?;
    if file.metadata()?.len() != bytes.len() as u64 {
        return Ok(false);
    }
    let mut found = Vec::with_capacity(bytes.len());
    file.take(bytes.len() as u64).read_to_end(&mut found)?;
    Ok(found == bytes)
}

fn sync(folder: &Path) -> Result<(), Trouble> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(trouble("force out", folder))
}

fn trouble(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Trouble {
    move |source| Trouble::Folder { doing, path: path.to_owned(), source }
}
