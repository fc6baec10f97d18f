//! Options of `statement` and `close`.

use super::{Output, parse_month};
use cardhour_domain::Month;
use clap::Args;

/// Options of `statement`.
#[derive(Debug, Args)]
pub struct StatementArgs {
    /// Of which month [default: the list of closed months]
    #[arg(long, value_name = "YYYY-MM", value_parser = parse_month)]
    pub month: Option<Month>,
    /// Of one organisation, entry by entry; `platform` is that of what nobody is billed for
    #[arg(long, value_name = "ORG", requires = "month")]
    pub org: Option<String>,
    /// Entry by entry
    #[arg(long, requires = "month")]
    pub entries: bool,
    /// The text whose SHA-256 is signed when the month is closed: every entry of every statement, as RFC 4180
    #[arg(long, requires = "month", conflicts_with_all = ["org", "entries", "format"])]
    pub canonical: bool,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `close`.
#[derive(Debug, Args)]
pub struct CloseArgs {
    /// Which month
    #[arg(long, value_name = "YYYY-MM", value_parser = parse_month)]
    pub month: Month,
    /// Who approves it [default: you, as $USER says]
    #[arg(long, value_name = "NAME", value_parser = said)]
    pub by: Option<String>,
    /// What there is to say of it
    #[arg(long, value_name = "TEXT", value_parser = said)]
    pub comment: Option<String>,
    /// Close it although too little is proven or a source is late, for this reason
    #[arg(long, value_name = "REASON", value_parser = said)]
    pub sign_off: Option<String>,
    /// Show what would be signed, and close nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// A text that says something. Errors: nothing but white space.
fn said(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("says nothing".to_owned()),
        text => Ok(text.to_owned()),
    }
}
