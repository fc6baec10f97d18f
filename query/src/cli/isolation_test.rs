//! Options of `isolation-test`.

use super::report::Output;
use cardhour_scheduler_core::sharing::trial::Trial;
use clap::Args;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use std::path::PathBuf;

/// Options of `isolation-test`.
#[derive(Debug, Args)]
pub struct IsolationTestArgs {
    /// The command that is to be left alone; it prints a line for each request, `latency_ms N` or a number of milliseconds
    #[arg(long, value_name = "COMMAND")]
    pub victim: String,
    /// The command that disturbs it; $CARDHOUR_TRIAL tells it how: memory, compute or crash
    #[arg(long, value_name = "COMMAND")]
    pub aggressor: String,
    /// The card or MIG instance that both are on [default: the only one]
    #[arg(long, value_name = "UUID")]
    pub card: Option<String>,
    /// The aggressor's part of the card's memory, such as 1/2 or 0.25
    #[arg(long, value_name = "PART", default_value = "1/2", value_parser = parse_share)]
    pub share: Share,
    /// The memory that is the aggressor's, in MiB [default: its share of the card's]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub allowed_mib: Option<u64>,
    /// How far the victim's latency may spread, and by how much its median may rise beside the aggressor, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = parse_limit)]
    pub limit: Limit,
    /// How long each part of a trial takes, in seconds
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub part_s: u64,
    /// Which trials, separated by commas
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', default_value = "memory,compute,crash", value_parser = parse_trial)]
    pub trials: Vec<Trial>,
    /// The driver's library, instead of the one that the loader finds
    #[arg(long, value_name = "FILE")]
    pub nvml_lib: Option<PathBuf>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// A part of a card's memory. Unit: millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// That part of some memory, rounded down. Unit: as it is given.
    pub const fn of(self, memory_mib: u64) -> u64 {
        memory_mib.saturating_mul(self.0) / MILLION
    }
}

/// How far is too far. Unit: thousandths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub u64);

const MILLION: u64 = 1_000_000;

fn parse_share(text: &str) -> Result<Share, String> {
    let fault = || "not a part of a card, such as 1/2 or 0.25".to_owned();
    let millionths = match text.split_once('/') {
        Some((part, whole)) => {
            let (part, whole): (u32, u32) = (part.parse().map_err(|_| fault())?, whole.parse().map_err(|_| fault())?);
            (u64::from(part) * MILLION).checked_div(whole.into()).ok_or_else(fault)?
        }
        None => text
            .parse::<Decimal>()
            .ok()
            .and_then(|part| part.checked_mul(MILLION.into())?.to_u64())
            .ok_or_else(fault)?,
    };
    Some(Share(millionths)).filter(|_| (1..MILLION).contains(&millionths)).ok_or_else(fault)
}

fn parse_limit(text: &str) -> Result<Limit, String> {
    let percent: Option<Decimal> = text.parse().ok().filter(|percent| *percent <= Decimal::ONE_THOUSAND);
    let thousandths =
        percent.and_then(|percent| percent.checked_mul(Decimal::ONE_THOUSAND)?.to_u64()).filter(|limit| *limit > 0);
    thousandths.map(Limit).ok_or_else(|| "not a number of percent above 0, such as 5".to_owned())
}

fn parse_trial(text: &str) -> Result<Trial, String> {
    Trial::from_name(text.trim()).ok_or_else(|| "not one of memory, compute, crash".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 81,559 MiB (an H100's) a quarter is 20,389.75.
    #[test]
    fn a_part_is_a_fraction_or_a_decimal_of_less_than_a_card() {
        assert_eq!(parse_share("1/4").unwrap().of(81_559), 20_389);
        assert_eq!(parse_share("0.25"), parse_share("1/4"));
        for wrong in ["", "1", "0", "2/1", "1/0", "-1/2", "half"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_limit("5"), Ok(Limit(5_000)));
        assert!(parse_limit("0").is_err() && parse_limit("x").is_err());
    }
}
