//! `cardhour-collector`: what each card of this node did, and who held it, spooled for the ledger.

use cardhour_collector::chain::chain;
use cardhour_collector::config::{Config, host_name, metrics_address};
use cardhour_collector::metrics::DcgmNames;
use cardhour_collector::probe::SystemClock;
use cardhour_collector::release::{Done, LONGEST_S, Request, USUAL_S, ask};
use cardhour_collector::run::{WhenHung, pass_signals_on, run};
use clap::{Parser, Subcommand};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Reads the cards of this node and who holds them, and delivers both to the ledger.
///
/// It needs no root: what a missing right costs is said in the log.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  cardhour-collector --config /etc/cardhour/collector.toml\n  cardhour-collector release && nvidia-smi --gpu-reset -i 3 && cardhour-collector take-back\n  RUST_LOG=debug cardhour-collector --config collector.toml"
)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Its config file
    #[arg(long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
    /// The driver's library, instead of the config's or the one the loader finds
    #[arg(long, value_name = "FILE")]
    nvml_lib: Option<PathBuf>,
    /// Where /metrics is served, instead of the config's `metrics`: an address and port, or off
    #[arg(long, value_name = "ADDRESS", value_parser = metrics_address)]
    metrics: Option<Metrics>,
    /// Serve the names of DCGM's exporter beside our own, as `dcgm_names = true` does
    #[arg(long)]
    dcgm_names: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Has the collector of this node let go of the cards, so that one can be reset or the driver changed
    ///
    /// It ends when no handle of the driver is open any more; the collector then records holders alone, and takes the cards back by itself. SIGUSR1
    /// does the same for five minutes, and nobody learns when.
    Release {
        /// For how long
        #[arg(long = "for", value_name = "SECONDS", default_value_t = USUAL_S, value_parser = clap::value_parser!(u32).range(1..=i64::from(LONGEST_S)))]
        seconds: u32,
        #[command(flatten)]
        at: At,
    },
    /// Has it take the cards back before that time is over
    TakeBack {
        #[command(flatten)]
        at: At,
    },
}

/// Which collector.
#[derive(Debug, clap::Args)]
struct At {
    /// Its config file, which says where its spool is
    #[arg(long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
    /// Its spool, instead of what the config says: of `cardhour up` the folder spool in its ledger
    #[arg(long, value_name = "FOLDER")]
    spool: Option<PathBuf>,
}

/// Where the config lies on a node.
const CONFIG: &str = "/etc/cardhour/collector.toml";

/// Where /metrics is served; none: nowhere.
type Metrics = Option<SocketAddr>;

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let options = Options::parse();
    match options.command {
        Some(Command::Release { seconds, at }) => return request(&at, Request::Release(seconds)),
        Some(Command::TakeBack { at }) => return request(&at, Request::TakeBack),
        None => {}
    }
    let mut config = match load(&options.config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    config.nvml_library = options.nvml_lib.or(config.nvml_library);
    if let Some(metrics) = options.metrics {
        config.metrics = metrics;
    }
    if options.dcgm_names && config.dcgm_names.is_none() {
        config.dcgm_names = Some(DcgmNames::default());
    }
    match run(&config, &SystemClock::start(), WhenHung::End, pass_signals_on) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cardhour-collector: {}", chain(&error));
            ExitCode::from(3)
        }
    }
}

/// The config. Errors: how to end, what is wrong with it having been said.
fn load(path: &Path) -> Result<Config, ExitCode> {
    let host = host_name(|variable| std::env::var(variable).ok());
    Config::load(path, &host).map_err(|error| {
        eprintln!("cardhour-collector: {}", chain(&error));
        ExitCode::from(2)
    })
}

/// Asks the collector that runs here.
fn request(at: &At, request: Request) -> ExitCode {
    let spool = match at.spool.clone().map_or_else(|| load(&at.config).map(|config| config.spool), Ok) {
        Ok(spool) => spool,
        Err(code) => return code,
    };
    match ask(&spool, request) {
        Ok(Done::Released(until)) => println!("released until {until}"),
        Ok(Done::TakenBack) => println!("taken back"),
        Err(error) => {
            eprintln!("cardhour-collector: {}", chain(&error));
            return ExitCode::from(3);
        }
    }
    ExitCode::SUCCESS
}
