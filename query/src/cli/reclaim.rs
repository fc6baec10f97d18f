//! Options of `reclaim`, `decisions` and `mode`.

use super::report::Output;
use crate::request::Moment;
use cardhour_decisions::decision::Mode;
use clap::{Args, Subcommand};

/// Options of `reclaim`.
#[derive(Debug, Args)]
pub struct ReclaimArgs {
    /// Show how far it is, and look at nothing
    #[arg(long)]
    pub status: bool,
    /// Play it over past telemetry from this moment on: what would have been taken back. Nothing is written, told or done
    #[arg(long, value_name = "TIME", conflicts_with = "status")]
    pub since: Option<Moment>,
    /// With --since: up to this moment [default: the last that nodes told of]
    #[arg(long, value_name = "TIME", requires = "since")]
    pub until: Option<Moment>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `decisions`.
#[derive(Debug, Args)]
pub struct DecisionsArgs {
    /// What to do; nothing: list them
    #[command(subcommand)]
    pub command: Option<DecisionsCommand>,
    /// Only from this moment on
    #[arg(long, value_name = "TIME")]
    pub since: Option<Moment>,
    /// Only of this job: its id, or CLUSTER/JOB
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// What can be asked about a job.
#[derive(Debug, Subcommand)]
pub enum DecisionsCommand {
    /// Ask for more time for a job that was warned: its owner may
    #[command(after_help = "Example:\n  cardhour decisions extend lab/4711 --for 4h")]
    Extend {
        /// The job: its id, or CLUSTER/JOB
        #[arg(value_name = "JOB")]
        job: String,
        /// How much more: minutes, hours or days
        #[arg(long = "for", value_name = "TIME", value_parser = parse_duration_ms)]
        for_ms: i64,
        /// Who asks [default: who runs this]
        #[arg(long, value_name = "USER")]
        by: Option<String>,
    },
    /// Say that a job's cards were wrongly taken: the billing policy's refund of it names the decision
    #[command(after_help = "Example:\n  cardhour decisions wrongful lab/4711 --why \"ticket 7\"")]
    Wrongful {
        /// The job: its id, or CLUSTER/JOB
        #[arg(value_name = "JOB")]
        job: String,
        /// Why, in words
        #[arg(long, value_name = "TEXT")]
        why: Option<String>,
        /// Who says so [default: who runs this]
        #[arg(long, value_name = "USER")]
        by: Option<String>,
    },
    /// Call off what was begun against a job; it is judged anew
    #[command(after_help = "Example:\n  cardhour decisions cancel lab/4711")]
    Cancel {
        /// The job: its id, or CLUSTER/JOB
        #[arg(value_name = "JOB")]
        job: String,
        /// Who asks [default: who runs this]
        #[arg(long, value_name = "USER")]
        by: Option<String>,
    },
}

/// Options of `mode`.
#[derive(Debug, Args)]
pub struct ModeArgs {
    /// The mode from now on [default: show the one in force]
    #[arg(value_name = "MODE", value_parser = parse_mode)]
    pub mode: Option<Mode>,
    /// Who sets it [default: who runs this]
    #[arg(long, value_name = "USER", requires = "mode")]
    pub by: Option<String>,
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    Mode::from_name(text).ok_or_else(|| {
        let all: Vec<&str> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        format!("not one of {}", all.join(", "))
    })
}

/// `90m`, `4h`, `2d`.
fn parse_duration_ms(text: &str) -> Result<i64, String> {
    let fault = || "not a whole number of minutes, hours or days, such as 90m, 4h or 2d".to_owned();
    let unit = text.chars().next_back().ok_or_else(fault)?;
    let minutes = match unit {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        _ => return Err(fault()),
    };
    let number: i64 = text[..text.len() - 1].parse().map_err(|_| fault())?;
    let ms = number.checked_mul(minutes * 60_000).filter(|ms| *ms > 0);
    ms.ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        assert_eq!(parse_duration_ms("90m"), Ok(5_400_000));
        assert_eq!(parse_duration_ms("4h"), Ok(14_400_000));
        assert_eq!(parse_duration_ms("2d"), Ok(172_800_000));
        for wrong in ["", "h", "-1h", "0h", "1.5h", "4", "4ü", "999999999999999d"] {
            assert!(parse_duration_ms(wrong).is_err(), "{wrong}");
        }
    }
}
