//! Entries as comma-separated values for spreadsheets (RFC 4180, lines end in LF).

use crate::render::{Cell, Grid};
use cardhour_books::statement::{Statement, export_table};

/// Header and rows. A text that would begin a formula stands behind an apostrophe, as spreadsheets write it: a program that needs the texts exactly as the
/// site wrote them reads the Parquet, or the canonical text of a closed month.
pub fn write(statement: &Statement) -> Vec<u8> {
    let grid = Grid::of_table(&export_table(std::slice::from_ref(statement)));
    let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    let written = out
        .write_record(&grid.header)
        .and_then(|()| grid.rows.iter().try_for_each(|row| out.write_record(row.iter().map(harmless))));
    written.expect("rows as long as the header, into memory");
    out.into_inner().expect("into memory")
}

/// A cell that begins no formula. A whole number below zero, such as the card-time of a correction, is none.
fn harmless(cell: &Cell) -> String {
    let digits = cell.text().strip_prefix('-').unwrap_or_default();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { cell.text().to_owned() } else { cell.without_formula() }
}
