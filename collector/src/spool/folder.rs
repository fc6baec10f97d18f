//! The spool's folder: what lies in it, and how files in it are made, moved and counted.
//!
//! ```text
//! SPOOL/                                      mode 0700
//!   lock                                      held by the collector that runs
//!   control                                   the socket of `crate::release`, while it runs
//!   sequence                                  the number that the next journal gets
//!   counted                                   where energy counters stood at the last tick
//!   BOOT-SEQUENCE.journal                     ticks that are not sealed
//!   BOOT-SEQUENCE.STREAM.parquet              sealed and undelivered
//!   *.tmp                                     being written; removed at start
//!   refused/                                  segments that the taker doesn't want, and journals that can't be read
//! ```
//!
//! A segment beside the journal of its number is not yet one: the journal is what counts, until it is removed.

use super::error::SpoolError;
use cardhour_domain::{SegmentName, Stream};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where segments lie that the taker refused.
pub(crate) const REFUSED: &str = "refused";
pub(crate) const TEMPORARY: &str = "tmp";
const SEQUENCE: &str = "sequence";
const LOCK: &str = "lock";

/// Which journal: its boot and number are those of the segments that are made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalName {
    pub(crate) sequence: u64,
    pub(crate) boot: u128,
}

impl JournalName {
    pub(crate) fn segment(self, stream: Stream) -> SegmentName {
        SegmentName::new(self.boot, self.sequence, stream)
    }

    /// Whose stem is a segment's.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".journal")?;
        let segment = SegmentName::parse(&format!("{stem}.{}.parquet", Stream::Samples.name())).ok()?;
        Some(Self { boot: segment.boot(), sequence: segment.sequence() })
    }
}

impl fmt::Display for JournalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{:012}.journal", self.boot, self.sequence)
    }
}

/// A sealed segment on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub(crate) name: SegmentName,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) sealed_at: SystemTime,
}

/// What lies in the folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// By number.
    pub(crate) journals: Vec<JournalName>,
    /// Undelivered, by number, then stream.
    pub(crate) segments: Vec<Sealed>,
    /// Refused, by number, then stream.
    pub(crate) refused: Vec<Sealed>,
    /// All of it. Unit: bytes.
    pub(crate) bytes: u64,
    temporary: Vec<PathBuf>,
    last_sequence: Option<u64>,
}

impl Listing {
    pub(crate) fn read(folder: &Path) -> Result<Self, SpoolError> {
        let mut listing = Self::default();
        let mut segments = listing.read_folder(folder)?;
        let unsealed: BTreeSet<_> = listing.journals.iter().map(|j| (j.boot, j.sequence)).collect();
        segments.retain(|s| !unsealed.contains(&(s.name.boot(), s.name.sequence())));
        listing.segments = segments;
        let refused = folder.join(REFUSED);
        if refused.exists() {
            let journals = std::mem::take(&mut listing.journals);
            listing.refused = listing.read_folder(&refused)?;
            listing.journals = journals;
        }
        listing.journals.sort();
        for sealed in [&mut listing.segments, &mut listing.refused] {
            sealed.sort_by_key(|s| (s.name.sequence(), s.name.stream(), s.name.boot()));
        }
        Ok(listing)
    }

    fn read_folder(&mut self, folder: &Path) -> Result<Vec<Sealed>, SpoolError> {
        let disk = |error| SpoolError::disk("list", folder)(error);
        let mut segments = Vec::new();
        for entry in fs::read_dir(folder).map_err(disk)? {
            let entry = entry.map_err(disk)?;
            let path = entry.path();
            let metadata = match entry.metadata() {
                Ok(metadata) if metadata.is_file() => metadata,
                Ok(_) => continue,
                // Delivered, and so removed, since the folder was opened.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SpoolError::disk("look at", &path)(error)),
            };
            self.bytes += metadata.len();
            let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if let Ok(name) = SegmentName::parse(file_name) {
                self.last_sequence = self.last_sequence.max(Some(name.sequence()));
                let sealed_at = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                segments.push(Sealed { name, bytes: metadata.len(), sealed_at, path });
            } else if let Some(name) = JournalName::parse(file_name) {
                self.last_sequence = self.last_sequence.max(Some(name.sequence));
                self.journals.push(name);
            } else if path.extension().is_some_and(|extension| extension == TEMPORARY) {
                self.temporary.push(path);
            }
        }
        Ok(segments)
    }

    /// Removes what was being written when an earlier life ended. How many.
    pub(crate) fn remove_temporary(&mut self) -> Result<u64, SpoolError> {
        let temporary = std::mem::take(&mut self.temporary);
        for path in &temporary {
            remove(path)?;
        }
        Ok(temporary.len() as u64)
    }

    /// The number of the next journal: as noted, but above all that lie here. A spool without either begins at `unix_s`, so that one that was
    /// wiped doesn't give its first names again.
    pub(crate) fn next_sequence(&self, folder: &Path, unix_s: u64) -> Result<u64, SpoolError> {
        let path = folder.join(SEQUENCE);
        let noted = match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().ok(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // Not text any more.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(SpoolError::disk("read", &path)(error)),
        };
        let above = self.last_sequence.map(|last| last + 1);
        let noted: Option<u64> = noted.filter(|noted| *noted <= SegmentName::LAST_SEQUENCE);
        let next = if noted.is_some() { noted.max(above) } else { Some(unix_s).max(above) };
        Ok(next.unwrap_or(unix_s).min(SegmentName::LAST_SEQUENCE))
    }
}

/// Makes the folder, for nobody but us, and takes it for this process as long as the file is open.
pub(crate) fn take(folder: &Path) -> Result<File, SpoolError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(SpoolError::disk("make the folder", folder))?;
    let private = fs::Permissions::from_mode(0o700);
    fs::set_permissions(folder, private).map_err(SpoolError::disk("keep others out of", folder))?;
    let path = folder.join(LOCK);
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let lock = lock.map_err(SpoolError::disk("open", &path))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(SpoolError::Taken { path: folder.to_owned() }),
        Err(fs::TryLockError::Error(error)) => Err(SpoolError::disk("lock", &path)(error)),
    }
}

/// Notes the number that the next journal gets.
pub(crate) fn note_sequence(folder: &Path, next: u64) -> Result<(), SpoolError> {
    let path = folder.join(SEQUENCE);
    let temporary = folder.join(format!("{SEQUENCE}.{TEMPORARY}"));
    let write = || {
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
        writeln!(file, "{next}")?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    };
    write().map_err(|error| {
        // What there is of it on a full disk isn't worth its room; one that stays is removed at the next start.
        let _ = fs::remove_file(&temporary);
        SpoolError::disk("write", &path)(error)
    })?;
    sync(folder)
}

/// Makes sure that what was made, moved and removed in the folder stays so after a power cut.
pub(crate) fn sync(folder: &Path) -> Result<(), SpoolError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(SpoolError::disk("force out", folder))
}

/// Removes a file; one that is gone already is as good.
pub(crate) fn remove(path: &Path) -> Result<(), SpoolError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(SpoolError::disk("remove", path)),
    }
}

/// Moves a file of the spool aside, into `refused/`. Where it lies then.
pub(crate) fn set_aside(folder: &Path, path: &Path) -> Result<PathBuf, SpoolError> {
    let refused = folder.join(REFUSED);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&refused);
    made.map_err(SpoolError::disk("make the folder", &refused))?;
    let to = refused.join(path.file_name().expect("a file has a name"));
    fs::rename(path, &to).map_err(SpoolError::disk("set aside", path))?;
    sync(&refused)?;
    sync(folder)?;
    Ok(to)
}

/// What can be delivered, who held what first, each the oldest first.
pub(crate) fn pending(folder: &Path) -> Result<Vec<Sealed>, SpoolError> {
    let mut segments = Listing::read(folder)?.segments;
    segments.sort_by_key(|s| (s.name.stream().is_telemetry(), s.name.sequence(), s.name.stream(), s.name.boot()));
    Ok(segments)
}

/// A node's name is a folder's, and a part of a URL.
pub(crate) fn check_node(node: &str) -> Result<(), SpoolError> {
    let is_odd = node.is_empty()
        || node.len() > 255
        || node.starts_with('.')
        || node.contains(|c: char| c == '/' || c.is_control());
    if is_odd { Err(SpoolError::Node { node: node.to_owned() }) } else { Ok(()) }
}
