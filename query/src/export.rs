//! Months for other programs.
//!
//! Each export is made whole in memory, by pure functions of a month as it is billed, and then put in place file by file. Start at
//! [`focus::delivery`].

pub mod focus;
