//! Options of `plan` and `quotas`.

use super::report::Output;
use crate::request::Moment;
use clap::Args;

/// Options of `plan` and `quotas`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// For the pool as it stood at this moment [default: the last that the books speak of]
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}
