//! The command `cardhour`.

use anyhow::Context;
use cardhour_query::cli::{Cli, Command};
use cardhour_query::error::chain;
use cardhour_query::run::{error_code, run};
use cardhour_query::terminal::{log_to_stderr, tell};
use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<ExitCode> {
    let cli = match Cli::try_parse() {
        Ok(cli) => Cli { global: cli.global.or_environment(|name| std::env::var_os(name)), ..cli },
        Err(error) => {
            // Whoever asked for help and left is none of our worries.
            let _ = error.print();
            return Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)));
        }
    };
    let usual = if matches!(cli.command, Command::Serve(_)) { "warn,cardhour_query=info" } else { "warn" };
    log_to_stderr(cli.global.verbose, usual);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let code = match runtime.block_on(run(cli)) {
        Ok(exit) => exit.code(),
        Err(error) => {
            tell(&format!("cardhour: {}", chain(&error)));
            error_code(&error)
        }
    };
    // All is written by now. Threads that still take apart what an import had in memory need not come to an end.
    std::process::exit(i32::from(code))
}
