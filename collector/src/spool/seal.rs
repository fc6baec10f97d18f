//! From journals to segments.

use super::error::SpoolError;
use super::folder::{self, JournalName, Listing};
use super::journal::{self, Tail};
use super::stretches::Gathered;
use super::{Spool, segment};
use cardhour_domain::{Stream, Timestamp};

/// How long after a sealing that failed the next is tried. Unit: milliseconds.
const SEAL_AGAIN_AFTER_MS: i64 = 60_000;

impl Spool {
    /// Makes segments of every journal that isn't written to. Errors: the first; the others were tried all the same.
    pub(super) fn seal_journals(&mut self, now: Timestamp) -> Result<(), SpoolError> {
        self.seal_again_at = None;
        let mut first_error = None;
        for name in Listing::read(&self.config.folder)?.journals {
            if let Err(error) = self.seal_journal(name) {
                self.counters.failed_seals += 1;
                self.seal_again_at = now.checked_add_ms(SEAL_AGAIN_AFTER_MS);
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn seal_journal(&mut self, name: JournalName) -> Result<(), SpoolError> {
        let path = self.config.folder.join(name.to_string());
        let mut tail = Tail::Whole;
        for stream in Stream::ALL {
            let segment = name.segment(stream);
            let segment_path = self.config.folder.join(segment.to_string());
            if segment_path.exists() {
                // Made before a kill, whole, since it has its name.
                continue;
            }
            // A stream at a time, so that the rows of one are in memory.
            let mut gathered = Gathered::new(stream);
            let read = journal::read(&path, stream, |tick| {
                tick.into_iter().for_each(|rows| gathered.add(rows));
            });
            tail = match read {
                Ok(this_tail) => tail.worse(this_tail),
                Err(SpoolError::Journal { reason, .. }) => {
                    let aside = folder::set_aside(&self.config.folder, &path)?;
                    tracing::warn!(path = %aside.display(), reason, "a journal that can't be read is set aside");
                    self.counters.damaged_journals += 1;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            if gathered.len() > 0 {
                let rows = gathered.into_rows();
                segment::write(&segment_path, &rows)?;
                self.counters.sealed_segments.add(stream, 1);
                self.counters.sealed_rows.add(stream, rows.len() as u64);
            }
        }
        folder::sync(&self.config.folder)?;
        match tail {
            Tail::Whole => {}
            Tail::Torn { bytes } => {
                tracing::warn!(journal = %path.display(), bytes, "the end of a journal was never whole, and is cut");
                self.counters.torn_bytes += bytes;
            }
            Tail::Damaged { bytes } => {
                self.counters.damaged_journals += 1;
                let aside = folder::set_aside(&self.config.folder, &path)?;
                tracing::warn!(path = %aside.display(), bytes, "a journal isn't what was written; what can't be read is set aside");
                return Ok(());
            }
        }
        folder::remove(&path)?;
        folder::sync(&self.config.folder)
    }
}

impl Tail {
    /// The one of two readings that lost more.
    fn worse(self, other: Self) -> Self {
        let lost = |tail: Self| match tail {
            Self::Whole => (0, 0),
            Self::Torn { bytes } => (1, bytes),
            Self::Damaged { bytes } => (2, bytes),
        };
        if lost(other) > lost(self) { other } else { self }
    }
}
