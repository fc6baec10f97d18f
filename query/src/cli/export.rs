//! Options of `export`: a month for other programs.

mod focus;

pub use focus::{FileFormat, FocusArgs};

use clap::Subcommand;

/// What a month is exported as.
#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// FOCUS, the format that cost tools read: a row for each job and line of the bill
    #[command(after_help = "Examples:\n  cardhour export focus --month 2026-03 --output-dir focus\n  \
                            cardhour export focus --month 2026-03 --focus-version 1.4 --format parquet --output-dir focus\n\n\
                            The rows add up to the statements of the month, to the cent. A delivery is whole once its metadata file is there. Exit code 1 when \
                            held time has no price, and so no row.")]
    Focus(FocusArgs),
}
