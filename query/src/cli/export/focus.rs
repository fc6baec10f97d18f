//! Options of `export focus`.

use crate::cli::parse_month;
use cardhour_books::focus::Version;
use cardhour_domain::Month;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of `export focus`.
#[derive(Debug, Args)]
pub struct FocusArgs {
    /// Which month
    #[arg(long, value_name = "YYYY-MM", value_parser = parse_month)]
    pub month: Month,
    /// Version of FOCUS: 1.2, or 1.4, which has Billing Period and Invoice Detail too
    #[arg(long, value_name = "VERSION", default_value = "1.4", value_parser = parse_version)]
    pub focus_version: Version,
    /// How the files are written
    #[arg(long, value_enum, default_value_t)]
    pub format: FileFormat,
    /// Folder for the files, made where it isn't there; files of the same month and version are replaced
    #[arg(long, value_name = "DIR")]
    pub output_dir: PathBuf,
    /// Another price book than the ledger's prices.toml, for a month that is open
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
}

/// How a file of rows is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// RFC 4180 with a header, lines end in LF. Texts that a spreadsheet would run as a formula stand behind an apostrophe.
    #[default]
    Csv,
    /// Apache Parquet: decimals with 38 digits, instants of UTC, texts as they are.
    Parquet,
}

impl FileFormat {
    /// Its name, and what its files end with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

fn parse_version(text: &str) -> Result<Version, String> {
    Version::from_name(text).ok_or_else(|| "not a version of FOCUS that is written here: 1.2 or 1.4".to_owned())
}
