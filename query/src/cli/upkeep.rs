//! Options of what looks after the books: `verify`, `maintain` and `token`.

use super::Output;
use clap::Args;
use std::path::PathBuf;

/// Options of `maintain`.
#[derive(Debug, Args)]
pub struct MaintainArgs {
    /// Hours for which files that are no longer part of a table are kept
    #[arg(long, value_name = "N", default_value_t = cardhour_ledger::RETAIN_HOURS)]
    pub retain_hours: u32,
    /// Keep files for less than a week: nobody may be reading or importing meanwhile
    #[arg(long)]
    pub force_retention: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

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

/// Options of `token`.
#[derive(Debug, Args)]
pub struct TokenArgs {
    /// The node, as its collector names it; none: list the nodes that have a token
    #[arg(value_name = "NODE")]
    pub node: Option<String>,
    /// Take back every token of the node
    #[arg(long, requires = "node")]
    pub revoke: bool,
}
