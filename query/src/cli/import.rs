//! Options of `import`.

use crate::request::{Covers, Moment};
use cardhour_books::import::readers::Format;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What can be booked.
#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Jobs: an accounting export of Slurm, or any table with a map
    #[command(after_help = "Examples:\n  \
        sacct -a -D -X --parsable2 -o ALL -S 2026-03-01 -E 2026-04-01 | cardhour import jobs - --format sacct\n  \
        cardhour import jobs march.csv.gz --map site.toml --as-of 2026-04-01 --covers 2026-03-01..2026-04-01\n  \
        cardhour import jobs *.parquet --map site.toml --output json\n\n\
        gzip and zstd are read as they are. Importing a file again changes nothing; a later export closes what was open. Rows that can't be \
        booked go to the table `quarantine` with line, field and reason, and the exit code is 4.")]
    Jobs(JobsArgs),
    /// Nodes: what the pool has, so that what nobody held is known
    #[command(
        after_help = "Examples:\n  cardhour import nodes nodes.csv\n  scontrol show node | cardhour import nodes - --cluster gpu1\n\n\
        CSV, JSON lines, TOML ([[node]]) or the text of scontrol; the file itself tells which. Columns: cluster, node, model, cards, memory (of one \
        card, in bytes), pool, in_service_at, retired_at, labels.NAME; a map says otherwise."
    )]
    Nodes(SiteArgs),
    /// Reservations: cards set aside for an owner, from when to when
    #[command(after_help = "Example:\n  cardhour import reservations reservations.csv\n\n\
        CSV, JSON lines, TOML ([[reservation]]) or the text of scontrol; the file itself tells which. Columns: cluster, name, started_at, ended_at, \
        nodes, cards, model, org, project, user; a map says otherwise.")]
    Reservations(SiteArgs),
    /// Outages: cards out of service, from when to when
    #[command(after_help = "Example:\n  cardhour import outages outages.csv\n\n\
        CSV, JSON lines, TOML ([[outage]]) or the text of scontrol; the file itself tells which. Columns: cluster, started_at, ended_at, nodes, cards \
        (of each node), reason; a map says otherwise.")]
    Outages(SiteArgs),
}

/// Options of `import jobs`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Files to book, in any order; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How they are written: sacct, sacct-json, sacct-kv, csv, jsonl or parquet [default: the map's, else by the file's name]
    #[arg(long, value_name = "FORMAT", value_parser = parse_job_format)]
    pub format: Option<Format>,
    /// Which column is what (TOML)
    #[arg(long, value_name = "MAP")]
    pub map: Option<PathBuf>,
    /// Last moment the files vouch for: open jobs are held until then [default: the map's, else what the rows tell]
    #[arg(long, value_name = "TIME")]
    pub as_of: Option<Moment>,
    /// What time the files speak for: inside it, what nobody held is free [default: first submit to as-of]
    #[arg(long, value_name = "FROM..TO")]
    pub covers: Option<Covers>,
    /// Cluster of rows that name none
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// How to tell what was done
    #[arg(long, value_enum, default_value_t = OutputKind::Text)]
    pub output: OutputKind,
}

/// Options of `import nodes`, `reservations` and `outages`.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// Files to book; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Which column is what (TOML)
    #[arg(long, value_name = "MAP")]
    pub map: Option<PathBuf>,
    /// Cluster of rows that name none
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// How to tell what was done
    #[arg(long, value_enum, default_value_t = OutputKind::Text)]
    pub output: OutputKind,
}

/// How an import tells what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputKind {
    /// Sentences.
    Text,
    /// One line with counts: read, booked, unchanged, superseded, quarantined.
    Json,
}

pub(crate) fn parse_job_format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("take one of {}", names.join(", "))
    })
}
