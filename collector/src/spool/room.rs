//! Keeping the spool within its bytes.

use super::folder::{self, Listing, Sealed};
use super::{DropReason, Spool, segment};
use cardhour_domain::columns::Rows;
use cardhour_domain::{Stream, Timestamp};

impl Spool {
    /// Drops sealed telemetry, the oldest first, until what is there leaves room for a journal and the segments that it becomes.
    pub(super) fn make_room(&mut self, now: Timestamp) {
        let Some(listing) = self.list() else { return };
        let most = self.config.spool_bytes - 2 * self.config.seal_bytes();
        let mut bytes = listing.bytes;
        let mut dropped = Vec::new();
        for sealed in telemetry(listing) {
            if bytes <= most {
                break;
            }
            bytes -= sealed.bytes.min(bytes);
            dropped.push(sealed);
        }
        let was_full = std::mem::replace(&mut self.is_full, bytes > most);
        if self.is_full && !was_full {
            tracing::warn!(
                bytes,
                most,
                "the spool is full of holdings: new telemetry is dropped until they are delivered"
            );
        }
        self.drop_segments(dropped, DropReason::SpoolFull, now);
    }

    /// Drops the oldest sealed telemetry, one segment.
    pub(super) fn drop_oldest_telemetry(&mut self, now: Timestamp) {
        let oldest = self.list().and_then(|listing| telemetry(listing).into_iter().next());
        self.drop_segments(oldest.into_iter().collect(), DropReason::DiskFailed, now);
    }

    fn list(&self) -> Option<Listing> {
        match Listing::read(&self.config.folder) {
            Ok(listing) => Some(listing),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the spool's size isn't known");
                None
            }
        }
    }

    /// Tells the ledger first, then removes: a kill between tells of a segment that is delivered or dropped later, and none goes untold.
    fn drop_segments(&mut self, segments: Vec<Sealed>, reason: DropReason, now: Timestamp) {
        if segments.is_empty() {
            return;
        }
        let counts: Vec<Option<u64>> = segments.iter().map(|sealed| segment::row_count(&sealed.path)).collect();
        let events = segments.iter().zip(&counts).map(|(sealed, rows)| {
            let detail = format!("{}: {}, segment {}", sealed.name.stream().name(), reason.in_words(), sealed.name);
            self.dropped(now, *rows, &detail)
        });
        let events = Rows::Events(events.collect());
        if let Err(error) = self.write(&[&events], now) {
            tracing::warn!(error = &error as &dyn std::error::Error, "what is dropped is told later");
            self.waiting.add(&events);
        }
        for (sealed, rows) in segments.iter().zip(counts) {
            if let Err(error) = folder::remove(&sealed.path) {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "telemetry that should be dropped is still there"
                );
                continue;
            }
            let stream: Stream = sealed.name.stream();
            self.counters.dropped_segments.add(stream, 1);
            *self.counters.dropped_rows.entry((stream, reason)).or_default() += rows.unwrap_or(0);
        }
        tracing::warn!(segments = segments.len(), reason = reason.name(), "telemetry was dropped");
    }
}

/// Sealed telemetry, refused or not, the oldest first. Numbers grow with time, whatever the clock did.
fn telemetry(listing: Listing) -> Vec<Sealed> {
    let mut telemetry: Vec<Sealed> = listing.refused.into_iter().chain(listing.segments).collect();
    telemetry.retain(|sealed| sealed.name.stream().is_telemetry());
    telemetry.sort_by_key(|sealed| (sealed.name.sequence(), sealed.name.stream(), sealed.name.boot()));
    telemetry
}
