//! Options of what looks after the books: `verify` and `maintain`.

use super::Output;
use clap::Args;
use std::path::PathBuf;

/// Options of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Hold a bill that was exported with `report bill --format csv` against the books as well
    #[arg(long, value_name = "FILE")]
    pub bill: Option<PathBuf>,
    /// Another price book than the ledger's prices.toml
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}
