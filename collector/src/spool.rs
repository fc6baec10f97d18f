//! Rows on disk, until the ledger has them.
//!
//! A tick is appended to a journal ([`Spool::append`]); every quarter hour the journal becomes Parquet segments, one a stream, with one number
//! ([`Spool::seal_if_due`]); what lies there as a segment is undelivered ([`crate::delivery`]).
//!
//! # What is lost when
//!
//! | what happens | what is lost |
//! |---|---|
//! | the collector is killed, at any instant | the tick in progress |
//! | the power goes | the tick in progress and up to four before it |
//! | the disk is full, or fails | telemetry of those ticks, counted. Holdings wait in memory, stretches joined, and go first when the disk takes something again; a kill loses those that wait |
//! | the spool has as many bytes as it may | the oldest sealed telemetry, counted; then new telemetry, counted. Observations, watches, devices and events never |
//!
//! What is counted is also told to the ledger, as an event `dropped` with the number of rows.
//!
//! # Why nothing is there twice
//!
//! The journal's name is the boot and the number of its segments. Sealing writes each segment under another name, forces it out, and gives it its
//! own; when all are there, the journal is removed. A kill between leaves the journal, and sealing it again makes those that are missing. As long as
//! a journal lies there, its segments aren't delivered. Numbers only grow, and don't depend on the clock after the spool's first start.

mod counted;
mod counters;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod folder;
mod journal;
mod record;
mod room;
mod seal;
mod segment;
mod stretches;
#[cfg(test)]
mod tests;
mod waiting;

pub use counters::{ByStream, DropReason, SpoolCounters};
pub use error::SpoolError;

use crate::sampler::CounterMark;
use cardhour_domain::columns::Rows;
use cardhour_domain::{EventKind, Name, NodeEvent, SegmentName, Stream, Timestamp};
use folder::{JournalName, Listing};
use journal::{Journal, NotWritten};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use waiting::Waiting;

/// Where a spool is, and how large it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpoolConfig {
    /// Its folder; made with mode 0700.
    pub folder: PathBuf,
    /// The node's name, for the events that tell of what was dropped.
    pub node: Name,
    /// All that may lie in it. Unit: bytes.
    pub spool_bytes: u64,
    /// How old a journal may be before it is sealed. Unit: milliseconds.
    pub seal_after_ms: i64,
    /// How large a journal may be before it is sealed, which bounds the memory that sealing takes. Unit: bytes.
    pub seal_bytes: u64,
}

impl SpoolConfig {
    /// With what fits a node: a gibibyte lasts a node of 64 devices for months; a quarter hour is how far the books lag at most.
    pub fn new(folder: impl Into<PathBuf>, node: Name) -> Self {
        Self {
            folder: folder.into(),
            node,
            spool_bytes: 1 << 30,
            seal_after_ms: cardhour_domain::BUCKET_MS,
            seal_bytes: 1 << 20,
        }
    }

    /// A journal is a small part of the spool.
    fn seal_bytes(&self) -> u64 {
        self.seal_bytes.min(self.spool_bytes / 8)
    }
}

/// What an earlier life left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Journals that were sealed now.
    pub journals: u64,
    /// Journals that could not be sealed: they are tried again.
    pub unsealed: u64,
    /// Ends of journals that a kill or a power cut left incomplete. Unit: bytes.
    pub torn_bytes: u64,
    /// Journals with a frame that isn't what was written, set aside in `refused/` after what could be read was sealed.
    pub damaged: u64,
    /// Files that were being written, removed.
    pub temporary_files: u64,
}

/// How much lies in a spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// All of it. Unit: bytes.
    pub bytes: u64,
    /// Undelivered segments.
    pub segments: u64,
    /// Segments that were refused.
    pub refused: u64,
    /// How long ago the oldest undelivered segment was sealed; none when there is none. Unit: milliseconds.
    pub oldest_age_ms: Option<i64>,
    /// Rows of holdings that wait in memory for the disk.
    pub waiting_rows: u64,
}

/// A node's rows on disk. One process has it at a time.
pub struct Spool {
    config: SpoolConfig,
    boot: u128,
    /// Held as long as the spool is open.
    _lock: File,
    next_sequence: u64,
    journal: Option<Journal>,
    waiting: Waiting,
    /// Dropped rows that no event has told of yet.
    untold: BTreeMap<(Stream, DropReason), u64>,
    /// There is no sealed telemetry left to drop, and still too much: new telemetry isn't written.
    is_full: bool,
    /// The last append failed: so that a full disk is one line in the log and not one a tick.
    is_failing: bool,
    /// When journals that could not be sealed are tried again.
    seal_again_at: Option<Timestamp>,
    /// Where energy counters stood when an earlier life ended.
    counted: Vec<CounterMark>,
    /// Where they stood at the last tick.
    noted: Vec<CounterMark>,
    /// The last note of that failed: said once.
    is_note_failing: bool,
    counters: SpoolCounters,
}

impl Spool {
    /// Opens the spool, and seals what an earlier life left. `boot` is the kernel's boot id.
    ///
    /// Errors: another process has it; the folder can't be made, read or written to. A disk without room is no error where the folder was made
    /// before: ticks wait as [`append`](Self::append) has it, and journals that can't be sealed are counted in [`Recovered::unsealed`].
    pub fn open(config: SpoolConfig, boot: u128, now: Timestamp) -> Result<(Self, Recovered), SpoolError> {
        folder::check_node(&config.node)?;
        let lock = folder::take(&config.folder)?;
        let mut listing = Listing::read(&config.folder)?;
        let temporary_files = listing.remove_temporary()?;
        let unix_s = u64::try_from(now.unix_ms() / 1000).unwrap_or(0);
        let next_sequence = listing.next_sequence(&config.folder, unix_s)?;
        let counted = counted::read(&config.folder, &listing, boot, next_sequence);
        if counted.is_empty() {
            // Once its journal is sealed nothing would tell any more that it was refused.
            counted::forget(&config.folder);
        }
        let mut spool = Self {
            config,
            boot,
            _lock: lock,
            next_sequence,
            journal: None,
            waiting: Waiting::new(),
            untold: BTreeMap::new(),
            is_full: false,
            is_failing: false,
            seal_again_at: None,
            noted: counted.clone(),
            counted,
            is_note_failing: false,
            counters: SpoolCounters::default(),
        };
        // Noted at once, so that the clock has no say after the first start. Without room it is noted before the first journal is made, and until then
        // no file has a number that could come again.
        if let Err(error) = folder::note_sequence(&spool.config.folder, next_sequence) {
            if !error.is_full() {
                return Err(error);
            }
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the spool's disk has no room: holdings wait in memory, telemetry is dropped"
            );
            spool.is_failing = true;
        }
        let journals = listing.journals.len() as u64;
        let unsealed = match spool.seal(now) {
            Ok(()) => 0,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "what an earlier life left can't be sealed yet"
                );
                spool.counters.failed_seals
            }
        };
        let recovered = Recovered {
            journals: journals - unsealed.min(journals),
            unsealed,
            torn_bytes: spool.counters.torn_bytes,
            damaged: spool.counters.damaged_journals,
            temporary_files,
        };
        if recovered != Recovered::default() {
            tracing::info!(?recovered, "the spool has what an earlier life left");
        }
        Ok((spool, recovered))
    }

    /// Puts a tick on disk, in whole or not at all. When it returns, no kill of the process loses the tick.
    ///
    /// Errors: the disk doesn't take it. Then its telemetry is dropped and counted, and its holdings wait in memory, to go first with the next.
    pub fn append(&mut self, tick: &[Rows], now: Timestamp) -> Result<(), SpoolError> {
        if self.is_full {
            self.make_room(now);
        }
        let is_full = self.is_full;
        for rows in tick.iter().filter(|rows| is_full && rows.stream().is_telemetry()) {
            self.drop_rows(rows.stream(), DropReason::SpoolFull, rows.len() as u64);
        }
        let tick: Vec<&Rows> = tick.iter().filter(|rows| !(is_full && rows.stream().is_telemetry())).collect();
        let told = self.events_of_drops(now);
        let waiting = std::mem::replace(&mut self.waiting, Waiting::new());
        let record: Vec<&Rows> = waiting.rows().chain([&told]).chain(tick.iter().copied()).collect();
        let written = self.write(&record, now);
        match &written {
            Ok(()) => {
                self.untold.clear();
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!(rows = waiting.len(), "the spool's disk takes ticks again; what waited is written");
                }
            }
            Err(error) => {
                self.counters.failed_appends += 1;
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(
                        error = error as &dyn std::error::Error,
                        "a tick isn't on disk: holdings wait in memory, telemetry is dropped"
                    );
                }
                self.waiting = waiting;
                self.keep_in_memory(&tick, now);
            }
        }
        written
    }

    /// Notes where energy counters stand after the tick that was appended last, for the next life. What can't be noted is only missing then.
    pub fn note_counted(&mut self, marks: &[CounterMark]) {
        self.noted = marks.to_vec();
        let Some(journal) = &self.journal else { return };
        let name = JournalName { boot: self.boot, sequence: self.next_sequence - 1 };
        match counted::note(&self.config.folder, name, journal.bytes, marks) {
            Ok(()) => self.is_note_failing = false,
            Err(error) => {
                // The one before is of an earlier tick.
                counted::forget(&self.config.folder);
                if !std::mem::replace(&mut self.is_note_failing, true) {
                    tracing::warn!(%error, "where energy counters stand can't be noted");
                }
            }
        }
    }

    /// Puts what happened between two ticks on disk, where counters stand as they did at the last. Errors: as [`append`](Self::append).
    pub fn append_between(&mut self, rows: &[Rows], now: Timestamp) -> Result<(), SpoolError> {
        self.append(rows, now)?;
        self.note_counted(&self.noted.clone());
        Ok(())
    }

    /// Where energy counters stood when an earlier life of this boot ended.
    pub fn counted(&self) -> Vec<CounterMark> {
        self.counted.clone()
    }

    /// Seals the journal when it is old or large enough. To be called after each tick.
    ///
    /// Errors: the disk's. The journal stays, and is tried again a minute later.
    pub fn seal_if_due(&mut self, now: Timestamp) -> Result<(), SpoolError> {
        let seal_bytes = self.config.seal_bytes();
        let is_due = self.journal.as_mut().is_some_and(|journal| {
            let age_ms = now.ms_since(journal.opened_at);
            if age_ms < 0 {
                // The clock was set back: its age counts from here.
                journal.opened_at = now;
            }
            age_ms >= self.config.seal_after_ms || journal.bytes >= seal_bytes
        });
        if is_due || self.seal_again_at.is_some_and(|at| now >= at) { self.seal(now) } else { Ok(()) }
    }

    /// Seals the journal now: before the collector stops.
    ///
    /// Errors: the disk's. The journal stays, and is sealed at the next start.
    pub fn seal(&mut self, now: Timestamp) -> Result<(), SpoolError> {
        self.journal = None;
        let sealed = self.seal_journals(now);
        self.make_room(now);
        sealed
    }

    /// What waits to be delivered, in the order in which it should be: who held what first, each the oldest first.
    pub fn pending(&self) -> Result<Vec<SegmentName>, SpoolError> {
        Ok(folder::pending(&self.config.folder)?.into_iter().map(|sealed| sealed.name).collect())
    }

    /// How much lies in the spool.
    pub fn stock(&self, now: Timestamp) -> Result<Stock, SpoolError> {
        let listing = Listing::read(&self.config.folder)?;
        let oldest = listing.segments.iter().map(|sealed| sealed.sealed_at).min();
        let age_ms = |sealed_at: std::time::SystemTime| {
            let sealed_ms = sealed_at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
            (now.unix_ms() - sealed_ms).max(0)
        };
        Ok(Stock {
            bytes: listing.bytes,
            segments: listing.segments.len() as u64,
            refused: listing.refused.len() as u64,
            oldest_age_ms: oldest.map(age_ms),
            waiting_rows: self.waiting.len() as u64,
        })
    }

    /// What it has done.
    pub const fn counters(&self) -> &SpoolCounters {
        &self.counters
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.config.folder
    }

    /// Appends a record to the journal, which is made where there is none.
    fn write(&mut self, record: &[&Rows], now: Timestamp) -> Result<(), SpoolError> {
        if record.iter().all(|rows| rows.is_empty()) {
            return Ok(());
        }
        let mut journal = match self.journal.take() {
            Some(journal) => journal,
            None => self.new_journal(now)?,
        };
        match journal.append(record.iter().copied()) {
            Ok(()) => {}
            Err(NotWritten::AsBefore(error)) => {
                self.journal = Some(journal);
                return Err(error);
            }
            // It is sealed as it is; the next tick begins another.
            Err(NotWritten::TornTail(error)) => {
                self.seal_again_at = Some(now);
                return Err(error);
            }
        }
        for rows in record {
            self.counters.appended_rows.add(rows.stream(), rows.len() as u64);
        }
        match journal.sync_if_due() {
            Ok(()) => self.journal = Some(journal),
            Err(error) => {
                // The kernel may have let go of what it could not write, and would call the next try a success: another file is begun.
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a power cut now may take ticks of this journal"
                );
                self.counters.failed_syncs += 1;
                self.seal_again_at = Some(now);
            }
        }
        Ok(())
    }

    fn new_journal(&mut self, now: Timestamp) -> Result<Journal, SpoolError> {
        let name = JournalName { boot: self.boot, sequence: self.next_sequence };
        // First the number, then the file: one that was noted and not used is a gap, the other way round would be two contents.
        folder::note_sequence(&self.config.folder, name.sequence + 1)?;
        self.next_sequence += 1;
        Journal::create(&self.config.folder, name, now)
    }

    /// Keeps the holdings of a tick that the disk didn't take; its telemetry is dropped.
    fn keep_in_memory(&mut self, tick: &[&Rows], now: Timestamp) {
        for rows in tick {
            if rows.stream().is_telemetry() {
                self.drop_rows(rows.stream(), DropReason::DiskFailed, rows.len() as u64);
            } else {
                self.waiting.add(rows);
            }
        }
        if self.waiting.is_filling() {
            // Who held what is worth more than telemetry that is already there.
            self.drop_oldest_telemetry(now);
        }
        for (stream, dropped) in self.waiting.bound() {
            self.drop_rows(stream, DropReason::MemoryFull, dropped);
        }
    }

    fn drop_rows(&mut self, stream: Stream, reason: DropReason, count: u64) {
        if count > 0 {
            *self.counters.dropped_rows.entry((stream, reason)).or_default() += count;
            *self.untold.entry((stream, reason)).or_default() += count;
        }
    }

    /// An event for each stream and reason of which rows were dropped since it was last told.
    fn events_of_drops(&self, now: Timestamp) -> Rows {
        let event = |(&(stream, reason), &count): (&(Stream, DropReason), &u64)| {
            self.dropped(now, Some(count), &format!("{}: {}", stream.name(), reason.in_words()))
        };
        Rows::Events(self.untold.iter().map(event).collect())
    }

    fn dropped(&self, now: Timestamp, rows: Option<u64>, detail: &str) -> NodeEvent {
        NodeEvent {
            at: now,
            node: self.config.node.clone(),
            card_uuid: None,
            device_uuid: None,
            kind: EventKind::Dropped,
            number: rows.and_then(|rows| i64::try_from(rows).ok()),
            detail: Some(detail.into()),
        }
    }
}
