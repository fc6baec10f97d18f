//! Why the ledger could not do what it was asked.

use cardhour_books::slots::SlotsError;
use cardhour_books::versions::ContentHash;
use std::io;
use std::path::PathBuf;

/// Why the ledger could not do what it was asked: one variant for each thing a caller could do differently.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no ledger at the place that was named.
    #[error("there is no ledger at {place}: make one with `cardhour init` or by importing into it")]
    NoLedger {
        /// The folder or URL.
        place: String,
    },
    /// The ledger was written by a newer cardhour.
    #[error("the ledger at {place} has schema {found} of {table}, this cardhour knows up to {known}: use a newer one")]
    TooNew {
        /// The folder or URL.
        place: String,
        /// The table.
        table: String,
        /// Its schema version.
        found: u32,
        /// The newest this binary knows.
        known: u32,
    },
    /// The place is no folder or URL that can hold a ledger.
    #[error("{place} can't hold a ledger: {reason}")]
    Place {
        /// The folder or URL.
        place: String,
        /// Why not.
        reason: String,
    },
    /// The ledger's billing zone is another.
    #[error(
        "the billing zone of this ledger is {ledger}, fixed when it was made; {asked} was asked for. For another zone make another ledger, \
         or delete this one's folder, and import again"
    )]
    ZoneFixed {
        /// The zone it has.
        ledger: String,
        /// The zone that was asked for.
        asked: String,
    },
    /// Others committed first, again and again.
    #[error("other writers changed {table} {tries} times in a row: try again")]
    LostRace {
        /// The table.
        table: &'static str,
        /// How often it was tried.
        tries: u32,
    },
    /// A table holds what this crate never writes.
    #[error("{table} holds what was never booked: {what}")]
    Damaged {
        /// The table.
        table: String,
        /// What.
        what: String,
    },
    /// Time can't be cut by the ledger's zone or the price book.
    #[error("the time of the books can't be cut")]
    Cut {
        /// Why not.
        source: SlotsError,
    },
    /// Files would be deleted that a reader or writer may still be at.
    #[error(
        "files that left a table are kept for {least} hours at least, {asked} was asked for: add --force-retention if nobody reads or writes meanwhile"
    )]
    RetentionTooShort {
        /// Hours asked for.
        asked: u32,
        /// Hours at least.
        least: u32,
    },
    /// What a node delivered is no segment of that node and stream.
    #[error("segment {segment} of node {node} {reason}")]
    BadSegment {
        /// Its name.
        segment: String,
        /// Whose it was said to be.
        node: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A segment of that name was taken before, with other content.
    #[error("segment {segment} was taken before with other content: one name never has two")]
    SegmentDiffers {
        /// Node and name.
        segment: String,
    },
    /// Segments that were to be taken together with one that failed.
    #[error("not taken into {table}: {reason}")]
    NotTaken {
        /// The table.
        table: &'static str,
        /// What failed.
        reason: String,
    },
    /// A file can't be read or written.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The store under a table failed.
    #[error("cannot {doing} table {table}")]
    Table {
        /// What was being done.
        doing: &'static str,
        /// To which table.
        table: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Who can mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nobody has to: the same again may work.
    Retry,
    /// Who asked.
    Caller,
    /// Who runs the ledger.
    Operator,
}

impl Error {
    /// Who can mend it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::LostRace { .. } | Self::NotTaken { .. } => Remedy::Retry,
            Self::NoLedger { .. }
            | Self::ZoneFixed { .. }
            | Self::Place { .. }
            | Self::Cut { .. }
            | Self::BadSegment { .. }
            | Self::SegmentDiffers { .. }
            | Self::RetentionTooShort { .. } => Remedy::Caller,
            Self::TooNew { .. } | Self::Damaged { .. } | Self::File { .. } | Self::Table { .. } => Remedy::Operator,
        }
    }

    pub(crate) fn table(
        doing: &'static str,
        table: &str,
    ) -> impl FnOnce(Box<dyn std::error::Error + Send + Sync>) -> Self {
        let table = table.to_owned();
        move |source| Self::Table { doing, table, source }
    }

    pub(crate) fn damaged(table: &str, what: impl Into<String>) -> Self {
        Self::Damaged { table: table.to_owned(), what: what.into() }
    }

    pub(crate) fn bad_hash(table: &str, hash: &str) -> Self {
        Self::damaged(table, format!("{hash:?} is no content hash"))
    }
}

/// Reads a stored hash.
pub(crate) fn stored_hash(table: &str, hex: &str) -> Result<ContentHash, Error> {
    ContentHash::from_hex(hex).ok_or_else(|| Error::bad_hash(table, hex))
}
