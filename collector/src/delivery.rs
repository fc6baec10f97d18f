//! Segments to the ledger, at least once.
