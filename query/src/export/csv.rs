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
        .and_then(|()| grid.rows.iter().try_for_each(|row| out.write_record(row.iter().map(Cell::without_formula))));
    written.expect("rows as long as the header, into memory");
    out.into_inner().expect("into memory")
}
