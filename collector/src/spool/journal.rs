//! The journal: ticks as they come, appended and never changed.
//!
//! ```text
//! journal := "CHSPOOL" version frame*
//! frame   := length checksum record           length: of the record, 4 bytes, little endian, above zero;
//!                                             checksum: the first 8 bytes of the record's BLAKE3
//! ```
//!
//! A frame whose end is missing, or that isn't what its checksum says, ends the journal: a kill or a power cut came between. What was before it
//! counts, what comes after is cut and counted. Stability: version 1; the record's form is pinned in [`super::record`], the frame's by the
//! test `a_journal_is_written_as_before`. A later version reads this one.

#[cfg(test)]
mod tests;

use super::error::SpoolError;
use super::folder::JournalName;
use super::record::{self, Decoder, Words};
use cardhour_domain::columns::Rows;
use cardhour_domain::{Stream, Timestamp};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 7] = b"CHSPOOL";
const VERSION: u8 = 1;
const HEADER_BYTES: u64 = 8;
const FRAME_HEAD_BYTES: usize = 12;

/// After so many ticks they are forced onto the medium: what a power cut can take, besides the tick in progress. Every tick would cost a
/// busy disk an interruption each 15 seconds, and the collector a wait for it.
const TICKS_A_SYNC: u32 = 4;

/// A journal that is being written.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    words: Words,
    /// Its length, of whole frames.
    pub(crate) bytes: u64,
    pub(crate) opened_at: Timestamp,
    unsynced_ticks: u32,
}

/// Why a tick isn't in the journal.
pub(crate) enum NotWritten {
    /// The journal is as it was before: another tick can be tried.
    AsBefore(SpoolError),
    /// The journal may end in a part of a frame: nothing may be appended to it again.
    TornTail(SpoolError),
}

impl Journal {
    /// Makes an empty one, and makes sure that it will be found after a power cut.
    pub(crate) fn create(folder: &Path, name: JournalName, now: Timestamp) -> Result<Self, SpoolError> {
        let path = folder.join(name.to_string());
        let make = || {
            let mut file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path)?;
            file.write_all(MAGIC)?;
            file.write_all(&[VERSION])?;
            file.sync_all()?;
            File::open(folder)?.sync_all()?;
            Ok(file)
        };
        let made = make().map_err(SpoolError::disk("make the journal", &path));
        if made.is_err() {
            // A header without ticks isn't worth its room on a full disk; one that stays is removed at the next sealing.
            let _ = std::fs::remove_file(&path);
        }
        Ok(Self { file: made?, path, words: Words::default(), bytes: HEADER_BYTES, opened_at: now, unsynced_ticks: 0 })
    }

    /// Appends a tick. When it returns, no kill of the process loses it.
    pub(crate) fn append<'a>(&mut self, tick: impl IntoIterator<Item = &'a Rows>) -> Result<(), NotWritten> {
        let known = self.words.len();
        let frame = frame(&record::encode(&mut self.words, tick));
        let Err(error) = self.file.write_all(&frame) else {
            self.bytes += frame.len() as u64;
            self.unsynced_ticks += 1;
            return Ok(());
        };
        self.words.truncate(known);
        let error = SpoolError::disk("append to the journal", &self.path)(error);
        match self.file.set_len(self.bytes) {
            Ok(()) => Err(NotWritten::AsBefore(error)),
            Err(_) => Err(NotWritten::TornTail(error)),
        }
    }

    /// Forces the ticks onto the medium, when there are enough that aren't.
    pub(crate) fn sync_if_due(&mut self) -> Result<(), SpoolError> {
        if self.unsynced_ticks < TICKS_A_SYNC {
            return Ok(());
        }
        self.unsynced_ticks = 0;
        self.file.sync_data().map_err(SpoolError::disk("force out the journal", &self.path))
    }
}

fn frame(record: &[u8]) -> Vec<u8> {
    let length = u32::try_from(record.len()).expect("a tick is smaller than 4 GiB");
    let mut frame = Vec::with_capacity(FRAME_HEAD_BYTES + record.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&checksum(record));
    frame.extend_from_slice(record);
    frame
}

pub(crate) fn checksum(record: &[u8]) -> [u8; 8] {
    let hash = blake3::hash(record);
    *hash.as_bytes().first_chunk().expect("a hash of 32 bytes")
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// With a whole frame.
    Whole,
    /// With a part of a frame, cut off: nothing whole follows.
    Torn {
        /// How much is cut.
        bytes: u64,
    },
    /// A frame in the middle is not what was written: what follows can't be read.
    Damaged {
        /// How much can't be read.
        bytes: u64,
    },
}

/// Gives each tick's rows of `wanted` to `each`, in the order in which they were appended. Holds one tick at a time.
pub(crate) fn read(path: &Path, wanted: Stream, mut each: impl FnMut(Vec<Rows>)) -> Result<Tail, SpoolError> {
    let disk = |error| SpoolError::disk("read the journal", path)(error);
    let file = File::open(path).map_err(disk)?;
    let length = file.metadata().map_err(disk)?.len();
    let mut file = BufReader::new(file);
    if length < HEADER_BYTES {
        return Ok(Tail::Torn { bytes: length });
    }
    let mut header = [0; HEADER_BYTES as usize];
    file.read_exact(&mut header).map_err(disk)?;
    if header == [0; HEADER_BYTES as usize] {
        // The file system kept its length and lost its content: a power cut before the first sync was over.
        return Ok(Tail::Torn { bytes: length });
    }
    let journal = |reason: String| SpoolError::Journal { path: path.to_owned(), reason };
    if &header[..MAGIC.len()] != MAGIC {
        return Err(journal("it doesn't begin as one".to_owned()));
    }
    if header[MAGIC.len()] != VERSION {
        return Err(journal(format!("it is of version {}, known is {VERSION}", header[MAGIC.len()])));
    }
    let mut decoder = Decoder::default();
    let mut at = HEADER_BYTES;
    while at < length {
        let rest = length - at;
        let torn = Ok(Tail::Torn { bytes: rest });
        if rest < FRAME_HEAD_BYTES as u64 {
            return torn;
        }
        let mut head = [0; FRAME_HEAD_BYTES];
        file.read_exact(&mut head).map_err(disk)?;
        let (frame_length, sum) = head.split_at(4);
        let frame_length = u32::from_le_bytes(frame_length.try_into().expect("4 bytes"));
        let after = rest - FRAME_HEAD_BYTES as u64;
        if frame_length == 0 || u64::from(frame_length) > after {
            return torn;
        }
        let mut record = vec![0; frame_length as usize];
        file.read_exact(&mut record).map_err(disk)?;
        let is_whole = checksum(&record) == *sum;
        if !is_whole && u64::from(frame_length) == after {
            return torn;
        }
        if !is_whole {
            return Ok(Tail::Damaged { bytes: rest });
        }
        // A record with the right checksum that can't be read was written by a collector with a fault, or with names that are newer.
        let Ok(tick) = decoder.decode(&record, wanted) else { return Ok(Tail::Damaged { bytes: rest }) };
        each(tick);
        at += (FRAME_HEAD_BYTES + record.len()) as u64;
    }
    Ok(Tail::Whole)
}
