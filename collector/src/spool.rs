//! Rows on disk, until the ledger has them.
