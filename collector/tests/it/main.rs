//! Tests of the collector from outside: what needs a process of its own.

mod spool;
