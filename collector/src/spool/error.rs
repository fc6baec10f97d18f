//! Why the spool could not do what it was asked.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// Why the spool could not do what it was asked. Each names the file or folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpoolError {
    /// The disk said no: it is full, gone, or not ours.
    #[error("cannot {doing} {}", path.display())]
    Disk {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another collector has the folder.
    #[error("{} is the spool of a collector that runs: two would give their segments the same names", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// Rows could not be written as a segment.
    #[error("cannot write the segment {}", path.display())]
    Segment {
        /// The segment, by the name it has while it is written.
        path: PathBuf,
        /// Why not.
        source: ParquetError,
    },
    /// A journal isn't one that this collector can read.
    #[error("{} is no journal that this collector can read: {reason}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A name that can't be a folder's, so nothing could be delivered under it.
    #[error(
        "{node:?} can't be a node's name: it has a slash or a control character, starts with a full stop, is empty or longer than 255 bytes"
    )]
    Node {
        /// What was asked for.
        node: String,
    },
}

impl SpoolError {
    pub(crate) fn disk(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Disk { doing, path: path.to_owned(), source }
    }

    /// Whether there is no room: nothing is wrong with the disk, and waiting helps.
    pub fn is_full(&self) -> bool {
        let Self::Disk { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
    }
}
