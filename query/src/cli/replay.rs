//! Options of `replay`.

use super::report::{Output, SpanArgs};
use crate::played::{PlayRequest, Teams};
use crate::request::{Moment, RequestError};
use cardhour_scheduler_core::placement::Policy;
use cardhour_scheduler_core::replay::placement::MOST_LOAD_PERCENT;
use cardhour_scheduler_core::replay::queue::Order;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

/// What to replay.
#[derive(Debug, Subcommand)]
pub enum ReplayCommand {
    /// How much of a pool's cards each placement policy gets into use, as requests arrive that never leave
    #[command(after_help = "Examples:\n  cardhour replay placement --nodes nodes.csv --pods pods.csv\n  \
                      cardhour replay placement --nodes nodes.csv --pods pods.csv --policy cardhour --seeds 20 --format csv\n\n\
                      Nodes have the columns cpu_milli, memory_mib, gpu, model; pods cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec (models, A|B). \
                      The allocation is in percent of the cards, the mean of the seeds. docs/replay.md says how it is measured.")]
    Placement(PlacementArgs),
    /// How long jobs wait in their tenants' pools, first come first served or shortest first
    #[command(after_help = "Examples:\n  cardhour replay queue --jobs jobs.csv --pools pools.csv --order fifo\n  \
                      cardhour replay queue --jobs jobs.csv --pools pools.csv --order sjf --from 2017-10-01 --to 2017-12-01 --format csv\n\n\
                      Jobs have the columns timestamp (UTC), duration (seconds), num_gpus, cluster (the tenant); pools vc (the tenant) and node num (its hosts). \
                      docs/replay.md says how it is measured.")]
    Queue(QueueArgs),
    /// What would have happened in a time of the books under today's quotas, and under proposed ones: waits, who gave way, what was lost, what it cost
    #[command(
        after_help = "Examples:\n  cardhour replay policy --month 2026-10\n  cardhour replay policy --month 2026-10 --quotas new.toml --output-file october.html\n  \
                      cardhour replay policy --from 2026-10-05 --to 2026-10-12 --quotas new.toml --by project --format csv\n\n\
                      Jobs arrive as they were submitted and run as long as they did; the scheduler core decides who starts, waits and gives way. Nothing is carried out. Exit code 1 when the \
                      auditor finds fault with a plan, or some card-time has no price. docs/replay.md says how it is played and measured."
    )]
    Policy(PolicyArgs),
}

/// Options of `replay policy`.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// Of what time.
    #[command(flatten)]
    pub span: SpanArgs,
    /// The proposed quotas, written as quotas.toml in the ledger's folder is [default: only today's are played]
    #[arg(long, value_name = "FILE")]
    pub quotas: Option<PathBuf>,
    /// Another price book than the ledger's prices.toml
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Whose figures are shown [default: organisations where only those have quotas, else projects]
    #[arg(long, value_enum, value_name = "TEAMS")]
    pub by: Option<TeamsBy>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

impl PolicyArgs {
    /// As a question to the books. Errors: a span that holds nothing.
    pub fn request(&self) -> Result<PlayRequest, RequestError> {
        let teams = self.by.map(|by| match by {
            TeamsBy::Org => Teams::Orgs,
            TeamsBy::Project => Teams::Projects,
        });
        Ok(PlayRequest { span: self.span.span()?, quotas: self.quotas.clone(), prices: self.prices.clone(), teams })
    }
}

/// Who counts as a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TeamsBy {
    /// Organisations
    Org,
    /// Their projects
    Project,
}

/// Options of `replay placement`.
#[derive(Debug, Args)]
pub struct PlacementArgs {
    /// The hosts, as csv
    #[arg(long, value_name = "FILE")]
    pub nodes: PathBuf,
    /// What is asked of them, as csv
    #[arg(long, value_name = "FILE")]
    pub pods: PathBuf,
    /// By which policy, or by all
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = policies())]
    pub policy: Policies,
    /// How often, with another order each time: seeds 1 to N
    #[arg(long, value_name = "N", default_value = "10")]
    pub seeds: NonZeroU32,
    /// At which loads, percent of the cards asked for, separated by commas, or all
    #[arg(long, value_name = "A,B,…", default_value = "95,100,130", value_parser = parse_loads)]
    pub load: Loads,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `replay queue`.
#[derive(Debug, Args)]
pub struct QueueArgs {
    /// The jobs, as csv
    #[arg(long, value_name = "FILE")]
    pub jobs: PathBuf,
    /// The tenants' hosts, as csv
    #[arg(long, value_name = "FILE")]
    pub pools: PathBuf,
    /// Who is first
    #[arg(long, value_enum, value_name = "ORDER")]
    pub order: QueueOrder,
    /// Jobs submitted from this moment on, UTC [default: the first whole month of the file, else its beginning]
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// Jobs submitted before this moment, UTC [default: the end of the last whole month, else the file's]
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
    /// Cards of each host
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_cards)]
    pub cards_per_host: NonZeroU64,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// One policy or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies(pub Vec<Policy>);

/// Loads in percent; none: every one at which something arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loads(pub Option<Vec<u64>>);

/// In what order a queue is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QueueOrder {
    /// First come, first served
    Fifo,
    /// The shortest job first
    Sjf,
}

impl QueueOrder {
    /// As the replay has it.
    pub const fn order(self) -> Order {
        match self {
            Self::Fifo => Order::Fifo,
            Self::Sjf => Order::Sjf,
        }
    }
}

fn policies() -> impl TypedValueParser<Value = Policies> {
    let names = Policy::ALL.map(Policy::name).into_iter().chain(["all"]).map(PossibleValue::new);
    PossibleValuesParser::new(names)
        .map(|name| Policies(Policy::named(&name).map_or_else(|| Policy::ALL.to_vec(), |policy| vec![policy])))
}

fn parse_loads(text: &str) -> Result<Loads, String> {
    if text == "all" {
        return Ok(Loads(None));
    }
    let load = |text: &str| {
        let load: Option<u64> = text.trim().parse().ok().filter(|&load| load <= MOST_LOAD_PERCENT);
        load.ok_or_else(|| format!("{text:?} is no whole percentage from 0 to {MOST_LOAD_PERCENT}"))
    };
    Ok(Loads(Some(text.split(',').map(load).collect::<Result<_, _>>()?)))
}

fn parse_cards(text: &str) -> Result<NonZeroU64, String> {
    let cards = text.parse().ok().filter(|cards: &NonZeroU64| cards.get() <= 1024);
    cards.ok_or_else(|| "not a whole number of cards from 1 to 1024".to_owned())
}
