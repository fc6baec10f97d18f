//! The journal as a file: a line of JSON an entry, on disk before anything is touched.

use super::{Entry, Journal, JournalError, Pasts};
use crate::action::{Action, DecisionId};
use crate::past::Past;
use cardhour_domain::Timestamp;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A journal in a file, which one program at a time keeps.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
    file: File,
    pasts: Pasts,
}

impl FileJournal {
    /// Opens it, or makes it. A last line that was cut off in being written is taken away: nothing was touched after it. Errors: it can't be read, or
    /// another program has it.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path).map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::Locked { path: path.to_owned() },
            TryLockError::Error(source) => failed(source),
        })?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut bytes)).map_err(failed)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut pasts = Pasts::default();
        for (index, line) in bytes[..whole].split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let unreadable = |reason: String| JournalError::Line { path: path.to_owned(), line: index + 1, reason };
            let entry: Entry = serde_json::from_slice(line).map_err(|error| unreadable(error.to_string()))?;
            pasts.fold(entry).map_err(|error| unreadable(error.to_string()))?;
        }
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        file.sync_all().map_err(failed)?;
        // The name itself has to be on disk too.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, pasts })
    }

    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        if written.is_err() {
            // On a full disk half a line may be there: what follows must begin a line.
            self.file.set_len(length)?;
        }
        written
    }
}

impl Journal for FileJournal {
    fn record(&mut self, entry: Entry) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(&entry).map_err(|error| JournalError::Other(error.into()))?;
        line.push(b'\n');
        self.pasts.check(&entry)?;
        self.write(&line).map_err(|source| JournalError::File { path: self.path.clone(), source })?;
        self.pasts.fold(entry)
    }

    fn past(&self, decision: &DecisionId) -> Option<&Past> {
        self.pasts.past(decision)
    }

    fn begun_since(&self, since: Timestamp, tenant: Option<&str>) -> usize {
        self.pasts.begun_since(since, tenant)
    }

    fn open(&self) -> Vec<Action> {
        self.pasts.open()
    }
}

#[cfg(test)]
mod tests;
