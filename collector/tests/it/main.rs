//! Tests of the collector from outside.

mod holders;
