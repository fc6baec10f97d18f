//! What the spool has done since it was opened: for metrics.

use cardhour_domain::Stream;
use std::collections::BTreeMap;

/// What the spool has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolCounters {
    /// Rows that are on disk, by stream.
    pub appended_rows: ByStream,
    /// Ticks that could not be written: their holdings wait in memory, their telemetry is dropped.
    pub failed_appends: u64,
    /// Times that a journal could not be forced onto the medium: a power cut might have taken more than the last few ticks.
    pub failed_syncs: u64,
    /// Segments made, by stream.
    pub sealed_segments: ByStream,
    /// Rows in them, by stream: fewer than were appended, since stretches that touch are one.
    pub sealed_rows: ByStream,
    /// Journals that could not be sealed when they should have been. They are tried again.
    pub failed_seals: u64,
    /// Rows that nobody will get, by stream and reason.
    pub dropped_rows: BTreeMap<(Stream, DropReason), u64>,
    /// Segments that nobody will get, by stream: their rows are among the dropped where they could be counted.
    pub dropped_segments: ByStream,
    /// Ends of journals that a kill or a power cut left incomplete. Unit: bytes.
    pub torn_bytes: u64,
    /// Journals with a frame that isn't what was written, set aside.
    pub damaged_journals: u64,
}

/// Why rows were dropped. Each is a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The spool has as many bytes as it may.
    SpoolFull,
    /// The disk took no tick: it is full, or broken.
    DiskFailed,
    /// So many holdings wait in memory for a disk that the oldest had to go.
    MemoryFull,
}

impl DropReason {
    /// Its name in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpoolFull => "spool_full",
            Self::DiskFailed => "disk_failed",
            Self::MemoryFull => "memory_full",
        }
    }

    /// In words, for the event that tells the ledger.
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::SpoolFull => "the spool is full",
            Self::DiskFailed => "the spool's disk took nothing",
            Self::MemoryFull => "the spool's disk took nothing for long",
        }
    }
}

/// A count of each stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByStream([u64; Stream::ALL.len()]);

impl ByStream {
    /// Of one stream.
    pub fn get(&self, stream: Stream) -> u64 {
        self.0[Self::place(stream)]
    }

    /// Of all of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn add(&mut self, stream: Stream, count: u64) {
        self.0[Self::place(stream)] += count;
    }

    fn place(stream: Stream) -> usize {
        Stream::ALL.into_iter().position(|other| other == stream).expect("one of all")
    }
}
