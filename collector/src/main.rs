//! `cardhour-collector`: what each card of this node did, and who held it, spooled for the ledger.

use cardhour_collector::chain::chain;
use cardhour_collector::config::{Config, metrics_address};
use cardhour_collector::metrics::DcgmNames;
use cardhour_collector::probe::SystemClock;
use cardhour_collector::run::{pass_signals_on, run};
use clap::Parser;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Reads the cards of this node and who holds them, and delivers both to the ledger.
///
/// It needs no root: what a missing right costs is said in the log. SIGUSR1 lets go of the cards for five minutes, so that one can be reset.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Example:\n  cardhour-collector --config /etc/cardhour/collector.toml\n  RUST_LOG=debug cardhour-collector --config collector.toml"
)]
struct Options {
    /// Its config file
    #[arg(long, value_name = "FILE", default_value = "/etc/cardhour/collector.toml")]
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
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut config = match Config::load(&options.config, host.trim()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("cardhour-collector: {}", chain(&error));
            return ExitCode::from(2);
        }
    };
    config.nvml_library = options.nvml_lib.or(config.nvml_library);
    if let Some(metrics) = options.metrics {
        config.metrics = metrics;
    }
    if options.dcgm_names && config.dcgm_names.is_none() {
        config.dcgm_names = Some(DcgmNames::default());
    }
    match run(&config, &SystemClock::start(), pass_signals_on) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cardhour-collector: {}", chain(&error));
            ExitCode::from(3)
        }
    }
}
