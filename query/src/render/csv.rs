//! Comma-separated values for programs (RFC 4180, lines end in LF).

use super::Grid;

/// Header and rows. Texts stand as they are: a program that reads them back gets what the site wrote, and a spreadsheet
/// that would take `=…` for a formula is served by `html`.
pub fn write(grid: &Grid) -> Vec<u8> {
    let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::Any(b'\n')).from_writer(Vec::new());
    let written = out
        .write_record(&grid.header)
        .and_then(|()| grid.rows.iter().try_for_each(|row| out.write_record(row.iter().map(super::Cell::text))));
    written.expect("rows as long as the header, into memory");
    out.into_inner().expect("into memory")
}
