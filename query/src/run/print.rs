//! What a command prints, in the format and the place that its options say.

use super::place_output;
use crate::cli::Output;
use crate::error::Error;
use crate::render::{self, Format};
use crate::terminal::{style, tell};
use cardhour_books::checkpoint::Checkpoint;
use cardhour_books::table::Table;

/// A table. Notes that the format has no place for go to standard error. Errors: it can't be rendered or written.
pub fn table(table: &Table, output: &Output) -> Result<(), Error> {
    let format = output.format()?;
    if !format.is_for_people() {
        for note in &table.notes {
            tell(&format!("note: {note}"));
        }
    }
    to(output, |format| {
        // A file is read without a terminal's colours and width.
        let style = if output.output_file.is_some() { render::Style::default() } else { style() };
        render::report(table, format, style)
    })
}

/// A checkpoint. Its sentences go to standard error where the format has no place for them. Errors: it can't be rendered or written.
pub fn checkpoint(checkpoint: &Checkpoint, output: &Output) -> Result<(), Error> {
    if matches!(output.format()?, Format::Csv | Format::Parquet) {
        for note in checkpoint.summary.iter().chain(&checkpoint.notes) {
            tell(&format!("note: {note}"));
        }
    }
    to(output, |format| {
        let style = if output.output_file.is_some() { render::Style::default() } else { style() };
        render::checkpoint(checkpoint, format, style)
    })
}

/// Whatever `rendered` gives for the format. Errors: its own; it can't be written.
pub fn to(output: &Output, rendered: impl FnOnce(Format) -> Result<Vec<u8>, Error>) -> Result<(), Error> {
    place_output(&rendered(output.format()?)?, output)
}
