//! Options of `import`.

use crate::request::{Covers, Moment};
use cardhour_books::import::readers::Format;
use cardhour_domain::Zone;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

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
    /// Costs: what a month cost the platform, and what single owners are charged beside their cards
    #[command(after_help = "Example:\n  cardhour import costs march-costs.csv\n\n\
        CSV, JSON lines or TOML ([[cost]]); the file itself tells which. Columns: month, name, org, project, user, cluster, pool, model, quantity, \
        unit, unit_price, tariff_per_kwh, amount, currency, reason; a map says otherwise. A row without an owner is the platform's own. Its amount is \
        said, or is quantity × unit_price, or the measured energy of the month × tariff_per_kwh. A later row of the same month, name, owner and \
        cards replaces the one before.")]
    Costs(SiteArgs),
    /// Output: what jobs brought forth, for its cost by unit
    #[command(after_help = "Example:\n  cardhour import output tokens.csv\n\n\
        CSV, JSON lines or TOML ([[output]]); the file itself tells which. Columns: job_id and cluster, or attempt_key; unit (tokens, samples, \
        experiments, or a word of your own), amount (a whole number), at (when it was counted; absent: when the job was over); a map says otherwise. \
        A later row of the same job or run, unit and time replaces the one before. `cardhour report output` divides cost and card-hours by it.")]
    Output(SiteArgs),
    /// Metrics: what cards did, from logs, exporters' text, a running Prometheus, or any table with a map
    #[command(after_help = "Examples:\n  \
        cardhour import metrics gpu07.csv gpu07.csv.1 --format nvidia-smi-csv --node gpu07 --zone Asia/Shanghai\n  \
        cardhour import metrics --format prometheus --url http://127.0.0.1:9090 --from 2026-03-01 --to 2026-04-01 --cluster gpu1\n  \
        cardhour import metrics busy.csv --map site.toml --output json\n\n\
        What was read at an instant stands for the time since the instant before: give the files of one log together. Importing again changes \
        nothing, and imports may overlap. Time without telemetry is unseen, and without known holders unaccounted, never free. Rows that can't \
        be booked go to the table `quarantine` with line, field and reason, and the exit code is 4.")]
    Metrics(Box<MetricsArgs>),
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

/// Options of `import metrics`.
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Files of one import, in any order; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "url")]
    pub files: Vec<PathBuf>,
    /// How they are written [default: prometheus with --url, csv with --map, else by the file's name]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<MetricsFormat>,
    /// Which column is what, of csv and jsonl (TOML)
    #[arg(long, value_name = "MAP")]
    pub map: Option<PathBuf>,
    /// Zone of times that carry none, an IANA name [default: the map's, else the ledger's]
    #[arg(long, value_name = "ZONE", value_parser = super::parse_zone)]
    pub zone: Option<Zone>,
    /// Node of rows that name none
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Cluster of rows that name none: the one that records of jobs have
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Which card an index is, where nothing names cards by UUID: what `nvidia-smi -L` prints, or a table with node, index and uuid
    #[arg(long, value_name = "FILE")]
    pub cards: Vec<PathBuf>,
    /// The names of the fields of a log without a line of names, as --query-gpu had them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub fields: Option<Vec<String>>,
    /// From one instant to the next, such as 15s or 1m [default: what the rows tell; of Prometheus 1m]
    #[arg(long, value_name = "LENGTH")]
    pub step: Option<Step>,
    /// When a text without timestamps was scraped
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
    /// Whose figures a table has: what other source they give way to
    #[arg(long, value_enum, default_value_t = TableSource::NvidiaSmi)]
    pub source: TableSource,
    /// Address of a Prometheus or VictoriaMetrics, up to and without /api
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The first moment to ask for
    #[arg(long, value_name = "TIME", requires = "url")]
    pub from: Option<Moment>,
    /// The first moment after [default: now]
    #[arg(long, value_name = "TIME", requires = "url")]
    pub to: Option<Moment>,
    /// Only series with these labels, such as 'cluster="a"'
    #[arg(long, value_name = "MATCHERS", requires = "url")]
    pub matchers: Option<String>,
    /// A label of pods to keep, as the pod has it; may be repeated
    #[arg(long = "pod-label", value_name = "LABEL", requires = "url")]
    pub pod_labels: Vec<String>,
    /// File with a bearer token
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "user")]
    pub token_file: Option<PathBuf>,
    /// User of basic authentication
    #[arg(long, value_name = "NAME", requires = "url", requires = "password_file")]
    pub user: Option<String>,
    /// File with that user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
    /// Certificates to trust instead of the system's (PEM)
    #[arg(long, value_name = "FILE", requires = "url")]
    pub ca_file: Option<PathBuf>,
    /// How to tell what was done
    #[arg(long, value_enum, default_value_t = OutputKind::Text)]
    pub output: OutputKind,
}

/// How telemetry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetricsFormat {
    /// nvidia-smi --query-gpu=… --format=csv
    NvidiaSmiCsv,
    /// nvidia-smi -q -x
    NvidiaSmiXml,
    /// /metrics of dcgm-exporter or nvidia_gpu_exporter
    DcgmText,
    /// a running Prometheus or VictoriaMetrics
    Prometheus,
    /// a table, by a map
    Csv,
    /// JSON lines, by a map
    Jsonl,
}

/// Whose figures a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableSource {
    /// DCGM's: they count before nvidia-smi's.
    Dcgm,
    /// nvidia-smi's, or anybody's.
    NvidiaSmi,
}

/// From one instant to the next. Unit: seconds, from one to a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step(pub u32);

impl FromStr for Step {
    type Err = String;

    /// Reads `60`, `15s`, `1m`, `1h`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, unit_s) = match text.strip_suffix(['s', 'm', 'h']) {
            Some(digits) if text.ends_with('h') => (digits, 3_600),
            Some(digits) if text.ends_with('m') => (digits, 60),
            Some(digits) => (digits, 1),
            None => (text, 1),
        };
        let step_s = digits.parse::<u32>().ok().and_then(|number| number.checked_mul(unit_s));
        step_s
            .filter(|step_s| (1..=86_400).contains(step_s))
            .map(Self)
            .ok_or_else(|| "take a length from 1s to 24h, such as 15s or 1m".to_owned())
    }
}

/// Options of `import nodes`, `reservations`, `outages`, `costs` and `output`.
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
