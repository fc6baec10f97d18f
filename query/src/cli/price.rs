//! Options of `price`.

use super::report::{Groups, Output, SpanArgs, parse_groups};
use crate::request::{ReportRequest, RequestError};
use cardhour_books::report::{Dimension, ReportKind};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with prices.
#[derive(Debug, Subcommand)]
pub enum PriceCommand {
    /// Price past usage by another price list, beside what holds today; changes nothing
    #[command(after_help = "Example:\n  cardhour price try next-year.toml --month 2026-03 --by org,project\n\n\
                      Exit code 1 where either list has no price for some of that time.")]
    Try(PriceTryArgs),
}

/// Options of `price try`.
#[derive(Debug, Args)]
pub struct PriceTryArgs {
    /// The other price list
    #[arg(value_name = "FILE")]
    pub prices: PathBuf,
    /// Of what time.
    #[command(flatten)]
    pub span: SpanArgs,
    /// Groups, separated by commas, as of `report bill`
    #[arg(long, value_name = "A,B,…", value_parser = parse_groups, default_value = "org,project")]
    pub by: Groups,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

impl PriceTryArgs {
    /// As a question to the books, of the bill. Errors: a span that holds nothing.
    pub fn request(&self) -> Result<ReportRequest, RequestError> {
        let by: &[Dimension] = &self.by.0;
        Ok(ReportRequest { span: self.span.span()?, ..ReportRequest::new(ReportKind::Bill).grouped_by(by) })
    }
}
