//! A report or an answer to SQL in the format that was asked for.
//!
//! Machines get every column and every digit (`csv`, `json`, `parquet`); people get what fits an eye (`table`, `html`,
//! `md`): columns of which nothing is known are left out and named below, hours have four decimals, ratios are percents.
//!
//! Start at [`report`] and [`answer`].

pub mod bars;
mod checkpoint;
mod csv;
pub mod curve;
mod grid;
mod html;
mod json;
mod markdown;
pub mod parquet;
mod people;
mod table;

pub use checkpoint::checkpoint;
pub use grid::{Cell, Grid};
pub use html::styles;
pub use people::{grid as for_people, grouped, hours, percent, quoted, shown, trace_hint};

use crate::error::Error;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use cardhour_books::table::Table;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people: columns, thousands separators, the sum below.
    Table,
    /// RFC 4180 with a header, lines end in LF. Texts stand as they are, also those a spreadsheet would take for a formula.
    Csv,
    /// An array of objects; decimals are strings, counts numbers, absent is null.
    Json,
    /// Apache Parquet; decimals are decimal(38, 6), counts 64-bit integers.
    Parquet,
    /// A page of its own that prints well.
    Html,
    /// A table for a wiki or a ticket.
    Md,
}

impl Format {
    /// The format of that name, as on the command line.
    pub fn from_name(name: &str) -> Option<Self> {
        <Self as clap::ValueEnum>::from_str(name, false).ok()
    }

    /// The one that a file's name ends with, a table for a name without an end; none for any other end.
    pub fn of_file(path: &std::path::Path) -> Option<Self> {
        let Some(end) = path.extension() else { return Some(Self::Table) };
        match end.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Csv),
            "json" => Some(Self::Json),
            "parquet" => Some(Self::Parquet),
            "html" | "htm" => Some(Self::Html),
            "md" => Some(Self::Md),
            "txt" => Some(Self::Table),
            _ => None,
        }
    }

    /// Its type over HTTP.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Table => "text/plain; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Json => "application/json",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Html => "text/html; charset=utf-8",
            Self::Md => "text/markdown; charset=utf-8",
        }
    }

    /// Whether people read it. Then title and notes are in it; for the rest they are told beside it.
    pub const fn is_for_people(self) -> bool {
        matches!(self, Self::Table | Self::Html | Self::Md)
    }
}

/// What a table for people may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Bold and dim, for a terminal.
    pub color: bool,
    /// Columns of the terminal; none: as wide as it gets.
    pub width: Option<u16>,
}

/// A report in `format`. Errors: Parquet that can't be written.
pub fn report(table: &Table, format: Format, style: Style) -> Result<Vec<u8>, Error> {
    Ok(match format {
        Format::Table => table::write(&people::grid(table), style).into_bytes(),
        Format::Html => html::write(&people::grid(table)).into_bytes(),
        Format::Md => markdown::write(&people::grid(table)).into_bytes(),
        Format::Csv => csv::write(&Grid::of_table(table)),
        Format::Json => json::write(&Grid::of_table(table)).into_bytes(),
        Format::Parquet => {
            let batch = parquet::batch(table)?;
            parquet::write(&batch.schema(), &[batch])?
        }
    })
}

/// A report as csv for somebody who opens it in a spreadsheet: no text of it begins a formula. A program that needs the texts as they are asks for [`report`].
pub fn spreadsheet(table: &Table) -> Vec<u8> {
    csv::write(&Grid::of_table(table).without_formulas())
}

/// An answer to SQL in `format`. Errors: a column type that has no text, Parquet that can't be written.
pub fn answer(schema: &SchemaRef, batches: &[RecordBatch], format: Format, style: Style) -> Result<Vec<u8>, Error> {
    if format == Format::Parquet {
        return parquet::write(schema, batches);
    }
    let grid = Grid::of_batches(schema, batches)?;
    Ok(match format {
        Format::Table => table::write(&grid, style).into_bytes(),
        Format::Html => html::write(&grid).into_bytes(),
        Format::Md => markdown::write(&grid).into_bytes(),
        Format::Csv => csv::write(&grid),
        Format::Json | Format::Parquet => json::write(&grid).into_bytes(),
    })
}

#[cfg(test)]
mod tests;
