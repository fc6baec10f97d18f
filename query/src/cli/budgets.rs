//! Options of `budgets`.

use super::parse_month;
use super::report::Output;
use crate::request::Moment;
use cardhour_domain::{Month, Timestamp, Zone};
use clap::Args;

/// Options of `budgets`.
#[derive(Debug, Args)]
pub struct BudgetsArgs {
    /// As they stood at the end of this month, or as far as the books are in it [default: now]
    #[arg(long, value_name = "YYYY-MM", value_parser = parse_month, conflicts_with = "as_of")]
    pub month: Option<Month>,
    /// As they stood at this moment
    #[arg(long, value_name = "TIME")]
    pub as_of: Option<Moment>,
    /// What could be saved of what they paid for: off-peak, idle, checkpointing, cheaper models, larger batches, merged experiments, dedicated cards
    #[arg(long, conflicts_with = "notify")]
    pub advice: bool,
    /// Tell those in the config's section `alerts` which thresholds were reached since they were told last, once; the service does it each minute
    #[arg(long, conflicts_with_all = ["month", "as_of"])]
    pub notify: bool,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

impl BudgetsArgs {
    /// The moment that is asked about, in the ledger's zone.
    pub fn asked(&self, now: Timestamp, zone: Zone) -> Timestamp {
        match (self.month, self.as_of) {
            (Some(month), _) => month.interval(zone).end(),
            (None, Some(moment)) => moment.instant(zone),
            (None, None) => now,
        }
    }
}
