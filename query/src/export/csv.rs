//! Entries as comma-separated values for spreadsheets (RFC 4180, lines end in LF).

use crate::render;
use cardhour_books::statement::{Statement, export_table};

/// Header and rows. A text that would begin a formula stands behind an apostrophe, as spreadsheets write it: a program that needs the texts exactly as the
/// site wrote them reads the Parquet, or the canonical text of a closed month.
pub fn write(statement: &Statement) -> Vec<u8> {
    render::spreadsheet(&export_table(std::slice::from_ref(statement)))
}
