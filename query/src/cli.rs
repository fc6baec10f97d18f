//! What can be typed: every command, its options and an example of each.
//!
//! Times are dates, local times or RFC 3339 ([`crate::request::Moment`]); card-hours are cards held × hours.

mod budgets;
mod closing;
mod deliver;
mod export;
mod import;
mod isolation_test;
mod plan;
mod price;
mod quote;
mod reclaim;
mod replay;
mod report;
mod upkeep;

pub use budgets::BudgetsArgs;
pub use closing::{CloseArgs, StatementArgs};
pub use deliver::DeliverArgs;
pub use export::{ExportCommand, FileFormat, FocusArgs, StatementFilesArgs};
pub use import::{ImportCommand, JobsArgs, MetricsArgs, MetricsFormat, OutputKind, SiteArgs, TableSource};
pub use isolation_test::IsolationTestArgs;
pub use plan::PlanArgs;
pub use price::{PriceCommand, PriceTryArgs};
pub use quote::QuoteArgs;
pub use reclaim::{DecisionsArgs, DecisionsCommand, ModeArgs, ReclaimArgs};
pub use replay::{PlacementArgs, PolicyArgs, QueueArgs, ReplayCommand, TeamsBy};
pub use report::{MeArgs, Output, ReconcileArgs, ReportArgs, SqlArgs, TraceArgs};
pub use upkeep::{MaintainArgs, TokenArgs, VerifyArgs};

use cardhour_domain::{Month, Zone};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The books of a shared GPU pool: who held which card, for how long, at what price.
///
/// Every card-second is accounted for once, every statement adds up to the cent, and each line can be traced to the records and
/// the price it came from.
#[derive(Debug, Parser)]
#[command(
    name = "cardhour",
    version = crate::VERSION,
    max_term_width = 110,
    after_help = "Begin:\n  cardhour demo                                    see it on a simulated pool\n  \
                  cardhour init --zone Asia/Shanghai               make a ledger, a config and a price book\n  \
                  cardhour import jobs sacct.txt --format sacct    book a site's records\n  \
                  cardhour report bill --month 2026-03             print the bill\n\n\
                  Exit codes: 0 done · 1 the answer is no (verify, holes in the price book) · 2 usage · 3 failed · \
                  4 done, but some rows went to quarantine\n"
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Folder of the ledger [default: CARDHOUR_LEDGER, else the config's, else $XDG_DATA_HOME/cardhour or
    /// ~/.local/share/cardhour, as root /var/lib/cardhour]
    #[arg(long, global = true, value_name = "DIR", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub ledger: Option<String>,
    /// Config file [default: CARDHOUR_CONFIG, else $XDG_CONFIG_HOME/cardhour/config.toml or ~/.config/cardhour/config.toml,
    /// else /etc/cardhour/config.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Whether `--ledger` was typed, and not taken from a variable.
    #[arg(skip)]
    pub names_ledger: bool,
    /// Tell what is being done, on standard error; twice for more
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl Global {
    /// What the command line leaves open, from `CARDHOUR_LEDGER` and `CARDHOUR_CONFIG`. An empty variable is one that isn't set.
    pub fn or_environment(mut self, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let told = |name| variable(name).filter(|value| !value.is_empty());
        self.names_ledger = self.ledger.is_some();
        self.ledger = self.ledger.or_else(|| told("CARDHOUR_LEDGER").map(|place| place.to_string_lossy().into_owned()));
        self.config = self.config.or_else(|| told("CARDHOUR_CONFIG").map(PathBuf::from));
        self
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a ledger, with a commented config and a commented price book
    #[command(after_help = "Example:\n  cardhour init --zone Asia/Shanghai")]
    Init(InitArgs),
    /// See it work on a simulated pool: 64 cards, three organisations, two months
    #[command(
        after_help = "Examples:\n  cardhour demo                  make it, print the bill, serve the page until Ctrl-C\n  \
                            cardhour demo --no-serve       make it and print the bill\n  \
                            cardhour demo --live           four made-up cards, metered as you watch\n\n\
                            Everything in it is simulated, and says so wherever it shows."
    )]
    Demo(DemoArgs),
    /// Serve reports, SQL, metrics and a page on this machine
    #[command(
        after_help = "Examples:\n  cardhour serve\n  curl -H \"Authorization: Bearer $(cat ~/.local/share/cardhour/token)\" \\\n      \
                            'http://127.0.0.1:7780/api/v1/report/bill?month=2026-03&format=csv'\n\n\
                            Without a certificate in the config's section [http] it listens on a loopback address only. The token is made at first start (file `token` in the ledger, mode 0600)."
    )]
    Serve(ServeArgs),
    /// Collect and serve on one machine: meter its cards, see who holds them, keep the books, show them
    #[command(
        after_help = "Examples:\n  cardhour up\n  cardhour up --cluster lab --collector-config /etc/cardhour/collector.toml\n\n\
                            The collector, the ledger and the service in one process. Without a driver it says so and records holders alone."
    )]
    Up(UpArgs),
    /// Book what a site has on record: jobs, nodes, reservations, outages
    #[command(subcommand)]
    Import(ImportCommand),
    /// Print a report: bill, usage, efficiency, idle, waste, capacity, coverage, owners, inventory, weekly, monthly, output, queue, quota, decisions, advice, isolation
    #[command(after_help = "Examples:\n  cardhour report bill --month 2026-03 --by project,user\n  \
                            cardhour report usage --by month,model --zone UTC --format csv\n  \
                            cardhour report capacity --from 2026-03-01 --to 2026-03-08 --by day\n  \
                            cardhour report bill --month 2026-03 --output-file march.html\n  \
                            cardhour report weekly --week 2026-W20 --output-file week.html\n  \
                            cardhour report advice\n\n\
                            Card-hours are cards held × hours, six decimals in csv, json and parquet. With holes in the price book the priced lines are \
                            printed, the holes listed, and the exit code is 1.")]
    Report(ReportArgs),
    /// What some cards for some hours will cost, when they cost less, and what that leaves of the budgets
    #[command(
        after_help = "Examples:\n  cardhour quote --cards 8 --model \"NVIDIA H200\" --hours 72 --project vision\n  \
                            cardhour quote --cards 1 --model h100 --hours 12 --from 2026-04-01T22:00\n\n\
                            Priced by the ledger's book as the bill would be. Exit code 1 when some of it has no price."
    )]
    Quote(QuoteArgs),
    /// What you held yourself, by month and project
    #[command(after_help = "Examples:\n  cardhour me\n  cardhour me --user ann --month 2026-03")]
    Me(MeArgs),
    /// How the budgets stand: what was spent, what is left, where the period will end
    #[command(after_help = "Examples:\n  cardhour budgets\n  cardhour budgets --month 2026-03 --format csv\n\n\
                            Budgets are in budgets.toml in the ledger's folder; docs/budgets.md says how they are written. \
                            Exit code 1 when of some budget more was spent than there is.")]
    Budgets(BudgetsArgs),
    /// How quotas stand: what each owner is guaranteed, holds and waits for, and what is left of its month
    #[command(after_help = "Examples:\n  cardhour quotas\n  cardhour quotas --at 2026-03-05T09:00 --format csv\n\n\
                            Quotas are in quotas.toml in the ledger's folder; docs/plan.md says how they are written, docs/quotas.md what a month's card-hours change.")]
    Quotas(PlanArgs),
    /// What should start, wait or give way, by quotas and priorities: worked out and audited, never carried out
    #[command(after_help = "Examples:\n  cardhour plan\n  cardhour plan --at 2026-03-05T09:00 --format csv\n\n\
                            Quotas are in quotas.toml in the ledger's folder; docs/plan.md says how they are written and what a plan rests on.")]
    Plan(PlanArgs),
    /// Look for jobs that hold cards and do nothing: warn their owners, ask for checkpoints, take the cards back, as far as the mode goes
    #[command(
        after_help = "Examples:\n  cardhour reclaim                        one look, as the services serve and up do each minute\n  \
                            cardhour reclaim --status\n  cardhour reclaim --since 2026-03-01     what would have been taken back\n\n\
                            The rule is in policy.toml in the ledger's folder; docs/reclaim.md says how it is written. Without one the mode is shadow: what would \
                            be done is written down, and nobody is told. Exit code 1 when something couldn't be told or carried out."
    )]
    Reclaim(ReclaimArgs),
    /// List what was decided about idle jobs and limits, and why; ask for more time; call something off
    #[command(
        after_help = "Examples:\n  cardhour decisions --since 2026-03-05\n  cardhour decisions --job lab/4711 --format csv\n  \
                            cardhour decisions extend lab/4711 --for 4h\n  cardhour decisions cancel lab/4711"
    )]
    Decisions(DecisionsArgs),
    /// Show or set how far idle reclaim goes: off, shadow, notify or act
    #[command(
        after_help = "Examples:\n  cardhour mode\n  cardhour mode notify\n  cardhour mode off      stops everything, also what was begun"
    )]
    Mode(ModeArgs),
    /// Try whether a card keeps two apart: a victim beside an aggressor that asks for too much memory, works hard, and crashes
    #[command(
        after_help = "Example:\n  cardhour isolation-test --victim './serve.py --print-latency' --aggressor ./burn.sh --card GPU-3f2a… --share 1/2\n\n\
                            docs/isolation.md says what the two print. What they start is ended with them, also by Ctrl-C. Exit code 1 when a trial fails, or \
                            nothing could be shown by it. How cards were shared in fact: cardhour report isolation."
    )]
    IsolationTest(IsolationTestArgs),
    /// Ask the tables in SQL, read-only
    #[command(
        after_help = "Examples:\n  cardhour sql \"select project, count(*) as attempts from jobs group by project\"\n  \
                            cardhour sql -f waits.sql --format csv\n\n\
                            Bounded in time, memory and rows by the section [sql] of the config."
    )]
    Sql(SqlArgs),
    /// Show where a line of the bill, or an entry of a statement, comes from: charges, attempts, price
    #[command(
        after_help = "Examples:\n  cardhour trace 'month=2026-03,org=lab,project=vision'\n  cardhour trace 7d0c0a4c0e2f4f6a9c1b1b5e2d3a4f50\n\n\
                            A line is the column `line` of `cardhour report bill --format csv`, an entry the column `entry_id` of `cardhour statement`."
    )]
    Trace(TraceArgs),
    /// Show the statements of a month: closed as they were signed, open as they stand
    #[command(
        after_help = "Examples:\n  cardhour statement                                      the closed months\n  \
                            cardhour statement --month 2026-03\n  cardhour statement --month 2026-03 --org acme --format csv\n  \
                            cardhour statement --month 2026-03 --canonical | sha256sum\n\n\
                            The entries of a statement add up to it. Those of an open month are worked out as asked; corrections of closed months are among \
                            those of the first open one. `cardhour trace ENTRY_ID` says where an entry comes from."
    )]
    Statement(StatementArgs),
    /// Close a month for ever: freeze its statements and all that they were worked out from
    #[command(
        after_help = "Examples:\n  cardhour close --month 2026-03 --dry-run\n  cardhour close --month 2026-03 --by \"Ann Lee\" --comment \"approved in the meeting of 3 April\"\n\n\
                            Refused (exit code 1) while the month isn't over, with holes in the price book, out of turn; and unless --sign-off gives a reason, where \
                            too little is proven or a source doesn't speak for all of it. Nothing opens a closed month again: what later facts change is a correction \
                            in an open one."
    )]
    Close(CloseArgs),
    /// Write a month to files: statements as a workbook, a page to print, csv or Parquet; FOCUS for cost tools
    #[command(subcommand)]
    Export(ExportCommand),
    /// Show what is owed by the schedules of the config, or deliver it: statements, FOCUS, reports into folders and buckets
    #[command(after_help = "Examples:\n  cardhour deliver                    what is owed, and what comes next\n  \
                            cardhour deliver --due              deliver what is due, for cron\n  cardhour deliver --due --dry-run\n\n\
                            Deliveries are in the config, as [[delivery]]; docs/delivery.md says how they are written. The services serve and up deliver by \
                            themselves. Each week and month is delivered once, whoever delivers it. Exit code 3 when something could not be delivered.")]
    Deliver(DeliverArgs),
    /// Try another price list on past usage
    #[command(subcommand)]
    Price(PriceCommand),
    /// Play what happened again: the books' own jobs under other quotas; public traces of placement and of queues
    #[command(subcommand)]
    Replay(ReplayCommand),
    /// Hold the records against what nodes saw, or against another tool's report: where they differ, by how much, and why
    #[command(
        after_help = "Examples:\n  cardhour reconcile --month 2026-03\n  cardhour reconcile --by node --attempts --format csv\n  \
                            cardhour reconcile --with sreport march.txt --month 2026-03\n  \
                            cardhour reconcile --with sacct jobs.txt --billing-weights GRES/gpu=4.5\n  \
                            cardhour reconcile --with opencost allocation.json\n  cardhour reconcile --with rate 18.50 --month 2026-03\n\n\
                            Every card-hour that one side has and the other hasn't is under one reason, and with what both have they add up to each \
                            side's total. Exit code 1 when some contradict (before_start, more_cards, no_record), or something is left unexplained."
    )]
    Reconcile(ReconcileArgs),
    /// Prove that the books balance, by another road than the one that made them
    #[command(after_help = "Examples:\n  cardhour verify\n  cardhour verify --bill march.csv --format json\n\n\
                            Exit code 0 when all that can be proven is, 1 when something is wrong. Clusters without nodes are named as not provable.")]
    Verify(VerifyArgs),
    /// Make a node's token, with which it delivers what it spooled; take one back; list who has one
    #[command(
        after_help = "Examples:\n  cardhour token gpu01 > gpu01.token\n  cardhour token gpu01 --revoke\n  cardhour token\n\n\
                            A token is printed once and kept nowhere: the ledger's folder has its hash."
    )]
    Token(TokenArgs),
    /// Keep the tables quick to read: merge small files, delete what left the tables long ago, write checkpoints
    #[command(after_help = "Examples:\n  cardhour maintain --dry-run\n  cardhour maintain --retain-hours 720\n\n\
                            No row and no figure changes. Safe beside imports, reports and itself.")]
    Maintain(MaintainArgs),
    /// Look whether all is well: store, zone, prices, map, capacity
    #[command(after_help = "Examples:\n  cardhour doctor\n  cardhour doctor --map site.toml --file sacct-march.txt.gz")]
    Doctor(DoctorArgs),
    /// Print the config that is in force, with defaults
    #[command(after_help = "Example:\n  cardhour --ledger /srv/books config")]
    Config,
    /// Print completions for a shell
    #[command(after_help = "Example:\n  cardhour completions bash > /etc/bash_completion.d/cardhour")]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// Options of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Billing zone, an IANA name; it cuts months and is fixed once made [default: the config's, else UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub zone: Option<Zone>,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The same seed makes the same pool
    #[arg(long, default_value_t = 7, value_name = "N")]
    pub seed: u64,
    /// Last of its two months [default: the last whole month]
    #[arg(long, value_name = "YYYY-MM", value_parser = parse_month)]
    pub month: Option<Month>,
    /// Play made-up cards live instead, through the real collector, until Ctrl-C
    #[arg(long, conflicts_with_all = ["month", "no_serve"])]
    pub live: bool,
    /// With --live: the stand-in for the driver's library [default: libfake_nvml.so beside this program]
    #[arg(long, value_name = "FILE", requires = "live")]
    pub nvml_lib: Option<PathBuf>,
    /// Print the bill and stop, serve nothing
    #[arg(long)]
    pub no_serve: bool,
    /// Address to serve on
    #[arg(long, value_name = "IP:PORT")]
    pub address: Option<SocketAddr>,
}

/// Options of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to listen on; without a certificate in the config a loopback one [default: the config's, else 127.0.0.1:7780]
    #[arg(long, value_name = "IP:PORT")]
    pub address: Option<SocketAddr>,
}

/// Options of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Address to listen on [default: the config's, else 127.0.0.1:7780]
    #[arg(long, value_name = "IP:PORT")]
    pub address: Option<SocketAddr>,
    /// The collector's config; where it delivers to is left out [default: /etc/cardhour/collector.toml where there is one]
    #[arg(long, value_name = "FILE")]
    pub collector_config: Option<PathBuf>,
    /// The cluster this machine belongs to [default: the collector's config, else local]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// The driver's library, instead of the one that the loader finds
    #[arg(long, value_name = "FILE")]
    pub nvml_lib: Option<PathBuf>,
    /// Seconds between two looks at the cards [default: the collector's config, else 15]
    #[arg(long, value_name = "S", value_parser = parse_step)]
    pub step_s: Option<u32>,
    /// Where the collector's /metrics is served: an address and port, or off [default: 127.0.0.1:9401]
    #[arg(long, value_name = "ADDRESS", value_parser = cardhour_collector::config::metrics_address)]
    pub metrics: Option<MetricsAddress>,
}

/// Where metrics are served; none: nowhere.
pub type MetricsAddress = Option<SocketAddr>;

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// A map to hold against the first rows of --file
    #[arg(long, value_name = "MAP", requires = "file")]
    pub map: Option<PathBuf>,
    /// A file that is going to be imported
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// How the file is written [default: the map's, else by the file's name]
    #[arg(long, value_name = "FORMAT", value_parser = import::parse_job_format)]
    pub file_format: Option<cardhour_books::import::readers::Format>,
    /// Another price book than the ledger's prices.toml
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

pub(crate) fn parse_zone(text: &str) -> Result<Zone, String> {
    Zone::parse(text).map_err(|error| error.to_string())
}

fn parse_step(text: &str) -> Result<u32, String> {
    let seconds: u32 = text.parse().map_err(|_| "not a whole number of seconds".to_owned())?;
    cardhour_collector::config::check_step(seconds).map(|()| seconds)
}

pub(crate) fn parse_month(text: &str) -> Result<Month, String> {
    Month::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
