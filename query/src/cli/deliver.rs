//! Options of `deliver`.

use super::Output;
use clap::Args;

/// Options of `deliver`.
#[derive(Debug, Args)]
pub struct DeliverArgs {
    /// Only the delivery of this name [default: all of the config]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Deliver what is due now, and remember it
    #[arg(long)]
    pub due: bool,
    /// Show what would be delivered, and deliver nothing
    #[arg(long, requires = "due")]
    pub dry_run: bool,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}
