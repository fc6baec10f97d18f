//! Options of `export`.

mod focus;

pub use focus::{FileFormat, FocusArgs};

use super::parse_month;
use cardhour_domain::Month;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to export.
#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Statements as workbooks: a sheet for people, one with every entry
    #[command(after_help = "Example:\n  cardhour export xlsx --month 2026-03 --output-dir statements")]
    Xlsx(StatementFilesArgs),
    /// The entries of statements as comma-separated values; texts that would begin a formula stand behind an apostrophe
    #[command(after_help = "Example:\n  cardhour export csv --month 2026-03 --org acme --output-dir statements")]
    Csv(StatementFilesArgs),
    /// Statements as pages made to be printed: one file each, no script
    #[command(after_help = "Example:\n  cardhour export html --month 2026-03 --output-dir statements\n  \
                      chromium --headless --no-pdf-header-footer --print-to-pdf=march.pdf statements/statement-2026-03-acme.html")]
    Html(StatementFilesArgs),
    /// The entries of statements as Parquet: texts as the site wrote them, amounts as decimals
    #[command(after_help = "Example:\n  cardhour export parquet --month 2026-03 --output-dir statements")]
    Parquet(StatementFilesArgs),
    /// FOCUS, the format that cost tools read: a row for each job and line of the bill
    #[command(after_help = "Examples:\n  cardhour export focus --month 2026-03 --output-dir focus\n  \
                            cardhour export focus --month 2026-03 --focus-version 1.4 --format parquet --output-dir focus\n\n\
                            The rows add up to the statements of the month, to the cent. A delivery is whole once its metadata file is there. Exit code 1 when \
                            held time has no price, and so no row.")]
    Focus(FocusArgs),
}

/// Options of each export of statements.
#[derive(Debug, Args)]
pub struct StatementFilesArgs {
    /// Of which month
    #[arg(long, value_name = "YYYY-MM", value_parser = parse_month)]
    pub month: Month,
    /// Only the statement of one organisation; `platform` is that of what nobody is billed for
    #[arg(long, value_name = "ORG")]
    pub org: Option<String>,
    /// Folder for the files, one a statement; made where there is none
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub output_dir: PathBuf,
    /// Another price book than the ledger's prices.toml, for a month that is open
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
}
