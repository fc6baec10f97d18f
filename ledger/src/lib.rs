//! The books on Delta Lake.
