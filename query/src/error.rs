//! Why the command or the service couldn't do what it was asked.
//!
//! Two texts an error: for the caller a stable [`code`](Error::code) and a sentence; for the log the whole chain. Who can
//! mend it is said by [`remedy`](Error::remedy), from which the exit code and the HTTP status follow.

use crate::bucket_client::BucketError;
use crate::config::ConfigError;
use crate::import::prometheus::PrometheusError;
use crate::incoming::IncomingError;
use crate::request::RequestError;
use cardhour_books::document::Faults;
use cardhour_books::import::map::MapError;
use cardhour_books::import::metrics::MetricsError;
use cardhour_books::import::metrics::cards::CardsError;
use cardhour_books::import::readers::ReadError;
use cardhour_books::import::readers::compression::ExpandError;
use cardhour_books::import::site::ListError;
use cardhour_books::line::LineError;
use cardhour_books::prices::{OtherCurrency, PriceFaults};
use cardhour_books::reconcile::outside::OutsideError;
use cardhour_books::slots::SlotsError;
use cardhour_books::trace::TraceError;
use cardhour_domain::Timestamp;
use datafusion::error::DataFusionError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why something wasn't done: one variant for each thing a caller could do differently.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A question that has no answer as it stands.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The config is faulty.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The collector of this machine can't run.
    #[error(transparent)]
    Collect(#[from] cardhour_collector::run::RunError),
    /// Its config is faulty.
    #[error(transparent)]
    CollectorConfig(#[from] cardhour_collector::config::ConfigError),
    /// A demo of live cards without what stands in for the driver.
    #[error("no {} to stand in for the driver: cargo build -p cardhour-fake-nvml makes it, --nvml-lib FILE names it", .0.display())]
    NoStandIn(PathBuf),
    /// A name that no node has.
    #[error("{0:?} is no node's name: letters, digits, `-`, `_` and `.`, as in a host name")]
    NoNode(String),
    /// The ledger's own.
    #[error(transparent)]
    Ledger(#[from] cardhour_ledger::Error),
    /// A trace that can't be replayed.
    #[error(transparent)]
    Replay(#[from] cardhour_scheduler_core::replay::placement::TraceError),
    /// The time that was asked for can't be cut.
    #[error(transparent)]
    Slots(#[from] SlotsError),
    /// A file that is no exported bill.
    #[error(transparent)]
    Bill(#[from] cardhour_ledger::ExportedBillError),
    /// A price book with faults.
    #[error("price book {}:\n{faults}", path.display())]
    Prices {
        /// Which.
        path: PathBuf,
        /// Every one.
        faults: PriceFaults,
    },
    /// A settings file in another encoding.
    #[error("{}, line {line}: is not UTF-8: save it in that encoding", path.display())]
    NotUtf8 {
        /// Which.
        path: PathBuf,
        /// The first line that isn't.
        line: usize,
    },
    /// A billing policy with faults.
    #[error("billing policy {}:\n{faults}", path.display())]
    Billing {
        /// Which.
        path: PathBuf,
        /// Every one.
        faults: Faults,
    },
    /// A price book of another zone than the ledger's.
    #[error("price book {} is of zone {book}, this ledger bills in {ledger}, fixed when it was made", path.display())]
    PriceZone {
        /// Which.
        path: PathBuf,
        /// Its zone.
        book: String,
        /// The ledger's.
        ledger: String,
    },
    /// Price books that can't be put together.
    #[error(transparent)]
    Currencies(#[from] OtherCurrency),
    /// No such entry.
    #[error(
        "no entry {0:?} in closed months, nor in the open one: `cardhour statement --month MONTH --entries` shows those there are"
    )]
    NoEntry(String),
    /// A statement that doesn't fit a workbook.
    #[error("the statement can't be written as a workbook")]
    Workbook(#[from] rust_xlsxwriter::XlsxError),
    /// Nobody approves.
    #[error("who closes it? --by NAME says it; $USER is not set")]
    NobodyApproves,
    /// Something to be priced without prices.
    #[error("no price book: prices.toml in the ledger's folder says what a card-hour costs")]
    NoPrices,
    /// Budgets with faults.
    #[error("budgets {}:\n{faults}", path.display())]
    Budgets {
        /// Which file.
        path: PathBuf,
        /// Every one.
        faults: Faults,
    },
    /// Quotas with faults.
    #[error("quotas {}:\n{faults}", path.display())]
    Quotas {
        /// Which file.
        path: PathBuf,
        /// Every one.
        faults: Faults,
    },
    /// A trial that can't be held as it was asked for.
    #[error("{0}")]
    Trial(String),
    /// A policy of idle reclaim with faults.
    #[error("policy {}:\n{faults}", path.display())]
    ReclaimPolicy {
        /// Which file.
        path: PathBuf,
        /// Every one.
        faults: Faults,
    },
    /// No decision ended a job.
    #[error(
        "no decision to end job {job:?} was carried out in the mode act: cardhour decisions --job lists what was decided about it"
    )]
    NothingTaken {
        /// What was asked for.
        job: String,
    },
    /// A job that idle reclaim doesn't watch.
    #[error("no running job {job:?} is watched: cardhour reclaim --status lists those that are")]
    NoLease {
        /// What was asked for.
        job: String,
    },
    /// A time of which no node told anything.
    #[error("no node told anything after {since}, or up to then: there is nothing to play")]
    NothingTold {
        /// From when on.
        since: Timestamp,
    },
    /// Neither an option nor the system says who asks.
    #[error("who asks? say it with --by USER")]
    NobodyAsks,
    /// More jobs than one.
    #[error("{job:?} are several jobs: {found}")]
    ManyLeases {
        /// What was asked for.
        job: String,
        /// Those that it may mean.
        found: String,
    },
    /// Budgets of another currency than the prices.
    #[error(
        "budgets.toml has a budget in {budgets}, in which nothing has a price; the price book is in {prices}: a budget counts what the bill counts"
    )]
    BudgetCurrency {
        /// The budgets'.
        budgets: String,
        /// The price book's.
        prices: String,
    },
    /// A map that is faulty or doesn't fit its file.
    #[error("{file}")]
    Map {
        /// The file, or the map.
        file: String,
        /// What is wrong.
        source: Box<MapError>,
    },
    /// A file in which no rows can be found.
    #[error("{file}")]
    Input {
        /// Which.
        file: String,
        /// Why.
        source: Box<ReadError>,
    },
    /// A list of nodes, reservations or outages that can't be read.
    #[error("{file}")]
    List {
        /// Which.
        file: String,
        /// Why.
        source: Box<ListError>,
    },
    /// Telemetry that can't be read.
    #[error("{file}")]
    Metrics {
        /// The file, or who was asked.
        file: String,
        /// Why.
        source: Box<MetricsError>,
    },
    /// A list of cards that can't be read.
    #[error("{file}")]
    Cards {
        /// Which.
        file: String,
        /// Why.
        source: Box<CardsError>,
    },
    /// Another tool's report that can't be compared.
    #[error("{file}")]
    Outside {
        /// The file.
        file: String,
        /// Why.
        source: Box<OutsideError>,
    },
    /// A Prometheus that doesn't answer.
    #[error(transparent)]
    Prometheus(#[from] PrometheusError),
    /// The bucket into which nodes put segments.
    #[error(transparent)]
    Incoming(#[from] IncomingError),
    /// A bucket that files are put into.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// Nothing that could be delivered.
    #[error("{0}")]
    NoDelivery(String),
    /// A file that can't be unpacked.
    #[error("{file}")]
    Expand {
        /// Which.
        file: String,
        /// Why.
        source: Box<ExpandError>,
    },
    /// A Parquet file that can't be read.
    #[error("{file} is no Parquet file that can be read")]
    ParquetInput {
        /// Which.
        file: String,
        /// Why.
        source: Box<parquet::errors::ParquetError>,
    },
    /// Nothing says how a file is written.
    #[error("nothing says how {0} is written: add --format sacct, sacct-json, sacct-kv, csv, jsonl or parquet")]
    NoFormat(String),
    /// A query that isn't one.
    #[error("the query can't be answered")]
    Sql {
        /// Why.
        source: Box<DataFusionError>,
    },
    /// A query that would change something.
    #[error("SQL here is read-only: SELECT, EXPLAIN and SHOW are answered")]
    SqlWrites,
    /// A query that takes too long.
    #[error("the query took longer than {after}: ask for less, or raise sql.timeout in the config")]
    SqlTimeout {
        /// The limit.
        after: String,
    },
    /// A query that needs too much memory.
    #[error("the query needs more memory than sql.memory_mib in the config allows: ask for less")]
    SqlMemory {
        /// What asked for it.
        source: Box<DataFusionError>,
    },
    /// A query that gives too many rows.
    #[error("the query gives more than {most} rows: add a LIMIT, or raise sql.max_rows in the config")]
    SqlRows {
        /// The limit.
        most: u64,
    },
    /// The engine under a query failed.
    #[error("the tables can't be read")]
    Engine {
        /// Why.
        source: Box<DataFusionError>,
    },
    /// A demo was to be put into a site's ledger.
    #[error("the ledger at {0} is a site's: a demo needs one of its own, name an empty folder with --ledger")]
    NotDemo(String),
    /// No ledger was named and there is no default place.
    #[error("no home folder to keep a ledger in: name one with --ledger DIR or CARDHOUR_LEDGER")]
    NoPlace,
    /// Parquet to a terminal.
    #[error("parquet is no text: name a file with --output-file, or pipe it on")]
    BinaryToTerminal,
    /// A file couldn't be read or written.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// `read`, `write`, `make`.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Standard output or input failed.
    #[error("cannot {doing}")]
    Stream {
        /// `write to standard output`.
        doing: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A table couldn't be written as Parquet.
    #[error("cannot write parquet")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A table couldn't be laid out as columns.
    #[error("cannot lay the table out as columns")]
    Columns(#[from] arrow::error::ArrowError),
    /// No such report over HTTP.
    #[error(
        "no report {0:?}: take bill, usage, efficiency, idle, waste, capacity, coverage, owners, inventory, weekly, monthly, output, queue, quota, decisions, advice or isolation"
    )]
    NoReport(String),
    /// No such line or entry.
    #[error("no line {0:?} in these books: `report bill` shows the lines there are")]
    NoLine(String),
    /// Not a line.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Nothing under a line.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The service was told to listen beyond this machine.
    #[error(
        "{0} is not a loopback address: listening beyond this machine needs TLS; give certificate_file and key_file in the section [http] \
         of the config, or take 127.0.0.1 and a proxy in front"
    )]
    NotLoopback(SocketAddr),
    /// A certificate or its key that can't be used.
    #[error("{} can't be used for TLS: {reason}", path.display())]
    Certificate {
        /// Which file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Nobody to tell.
    #[error("nobody to tell: alertmanager, webhook or smtp in the section [alerts] of the config names somebody")]
    NoChannel,
    /// Somebody wasn't told.
    #[error("not all that is due was delivered; asked again, it is tried again")]
    NotDelivered,
    /// An address of mail that is none.
    #[error("{text:?} in the section [alerts] of the config is no mail address: {reason}")]
    MailAddress {
        /// As it was written.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// The address can't be listened on.
    #[error("cannot listen on {address}; --address 127.0.0.1:PORT takes another")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// A token file that others can read, or that isn't a token.
    #[error("token file {} {fault}", path.display())]
    Token {
        /// Which.
        path: PathBuf,
        /// What is wrong and what to do.
        fault: &'static str,
    },
    /// The system gave no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(getrandom::Error),
}

/// Who can mend an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Whoever asked, by asking otherwise.
    Caller,
    /// Whoever asked, who named something that isn't there.
    CallerNotFound,
    /// Whoever asked, by asking again.
    Retry,
    /// Whoever runs this.
    Operator,
}

impl Error {
    /// Who can mend it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Ledger(error) => match error.remedy() {
                cardhour_ledger::Remedy::Retry => Remedy::Retry,
                cardhour_ledger::Remedy::Caller => Remedy::Caller,
                cardhour_ledger::Remedy::Operator => Remedy::Operator,
            },
            Self::NoReport(_)
            | Self::NoLine(_)
            | Self::NoLease { .. }
            | Self::NothingTaken { .. }
            | Self::NoEntry(_)
            | Self::Trace(_) => Remedy::CallerNotFound,
            Self::Request(_)
            | Self::Replay(_)
            | Self::Config(_)
            | Self::Slots(_)
            | Self::Bill(_)
            | Self::Prices { .. }
            | Self::Billing { .. }
            | Self::NotUtf8 { .. }
            | Self::PriceZone { .. }
            | Self::Currencies(_)
            | Self::NobodyApproves
            | Self::NoPrices
            | Self::Budgets { .. }
            | Self::Quotas { .. }
            | Self::ReclaimPolicy { .. }
            | Self::ManyLeases { .. }
            | Self::NobodyAsks
            | Self::NothingTold { .. }
            | Self::BudgetCurrency { .. }
            | Self::Map { .. }
            | Self::NoFormat(_)
            | Self::Line(_)
            | Self::Sql { .. }
            | Self::SqlWrites
            | Self::SqlTimeout { .. }
            | Self::SqlMemory { .. }
            | Self::SqlRows { .. }
            | Self::NotDemo(_)
            | Self::NoNode(_)
            | Self::NoPlace
            | Self::BinaryToTerminal
            | Self::Certificate { .. }
            | Self::MailAddress { .. }
            | Self::NoChannel
            | Self::NoDelivery(_)
            | Self::CollectorConfig(_)
            | Self::NoStandIn(_)
            | Self::Trial(_)
            | Self::NotLoopback(_) => Remedy::Caller,
            Self::Cards { .. } | Self::Outside { .. } => Remedy::Caller,
            Self::Prometheus(error) if error.is_callers() => Remedy::Caller,
            Self::NotDelivered => Remedy::Retry,
            // It may have more time later.
            Self::Prometheus(_) => Remedy::Retry,
            // Where what was said is wrong, or something has to be said yet; the rest is a file or an answer that can't be read.
            Self::Metrics { source, .. } => match &**source {
                MetricsError::Missing { .. }
                | MetricsError::Map(_)
                | MetricsError::NoNode
                | MetricsError::NoTime { .. } => Remedy::Caller,
                // VictoriaMetrics gives its status for a kind.
                MetricsError::Refused { kind, .. } if matches!(&**kind, "bad_data" | "400" | "422") => Remedy::Caller,
                _ => Remedy::Operator,
            },
            // A file that was named and isn't there is a slip of whoever named it.
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Remedy::Caller,
            // A list's map is the caller's words; the rest of it is a file that can't be read.
            Self::List { source, .. } => match **source {
                ListError::Map(_) | ListError::Missing { .. } => Remedy::Caller,
                _ => Remedy::Operator,
            },
            Self::Input { .. }
            | Self::Expand { .. }
            | Self::ParquetInput { .. }
            | Self::Engine { .. }
            | Self::File { .. }
            | Self::Stream { .. }
            | Self::Collect(_)
            | Self::Incoming(_)
            | Self::Bucket(_)
            | Self::Parquet(_)
            | Self::Workbook(_)
            | Self::Columns(_)
            | Self::Listen { .. }
            | Self::Token { .. }
            | Self::Random(_) => Remedy::Operator,
        }
    }

    /// Its stable name for programs: in the bodies of the HTTP service.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Request(_) | Self::Replay(_) | Self::Slots(_) | Self::Bill(_) => "bad-request",
            Self::Line(_) => "bad-line",
            Self::NoNode(_) => "bad-node",
            Self::NoReport(_) => "no-report",
            Self::NoLine(_) | Self::NoEntry(_) | Self::Trace(_) => "no-line",
            Self::Sql { .. } => "sql",
            Self::SqlWrites => "sql-read-only",
            Self::SqlTimeout { .. } => "sql-timeout",
            Self::SqlMemory { .. } => "sql-memory",
            Self::SqlRows { .. } => "sql-rows",
            Self::NoPrices | Self::Prices { .. } | Self::PriceZone { .. } | Self::Currencies(_) => "prices",
            Self::Billing { .. } => "billing",
            Self::NotUtf8 { .. } => "encoding",
            Self::Budgets { .. } | Self::BudgetCurrency { .. } => "budgets",
            Self::Quotas { .. } => "quotas",
            Self::Trial(_) => "trial",
            Self::ReclaimPolicy { .. } => "policy",
            Self::NoLease { .. } | Self::NothingTaken { .. } | Self::ManyLeases { .. } => "job",
            Self::NobodyAsks => "by",
            Self::NothingTold { .. } => "bad-request",
            Self::Ledger(_) | Self::Engine { .. } => "ledger",
            Self::Map { .. }
            | Self::Input { .. }
            | Self::List { .. }
            | Self::Expand { .. }
            | Self::ParquetInput { .. }
            | Self::Metrics { .. }
            | Self::Cards { .. }
            | Self::Outside { .. }
            | Self::Prometheus(_)
            | Self::NoFormat(_) => "import",
            Self::BinaryToTerminal => "binary-to-terminal",
            Self::Config(_)
            | Self::NoPlace
            | Self::NotLoopback(_)
            | Self::CollectorConfig(_)
            | Self::NoStandIn(_)
            | Self::Certificate { .. }
            | Self::NobodyApproves
            | Self::Incoming(_)
            | Self::MailAddress { .. }
            | Self::NoChannel
            | Self::NoDelivery(_)
            | Self::NotDemo(_) => "bad-config",
            Self::File { .. } | Self::Stream { .. } | Self::Collect(_) => "io",
            Self::Parquet(_) | Self::Columns(_) | Self::Workbook(_) => "render",
            Self::NotDelivered | Self::Bucket(_) => "not-delivered",
            Self::Listen { .. } => "listen",
            Self::Token { .. } | Self::Random(_) => "token",
        }
    }
}

/// The error and its causes in one line, for the log.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
