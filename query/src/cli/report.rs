//! Options of what prints: `report`, `me`, `sql`, `trace`.

use super::{parse_month, parse_zone};
use crate::advised::AdvisedReport;
use crate::reconciled_with::{With, WithRequest};
use crate::render::Format;
use crate::request::{Asked, Moment, Options, ReconcileRequest, ReportName, ReportRequest, RequestError, Span};
use cardhour_books::checkpoint::Week;
use cardhour_books::reconcile::ReconcileQuery;
use cardhour_books::reconcile::outside::billing::Weights;
use cardhour_books::report::{Dimension, ReportKind};
use cardhour_domain::{Month, Zone};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;

/// How and where to print.
#[derive(Clone, Debug, Default, Args)]
pub struct Output {
    /// table, html and md are for people; csv, json and parquet have every column and digit [default: by the name of
    /// --output-file, else table]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
}

impl Output {
    /// The format asked for, else the file's, else a table. Errors: a file whose name ends with none of them.
    pub fn format(&self) -> Result<Format, RequestError> {
        match (self.format, &self.output_file) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(Format::Table),
            (None, Some(file)) => Format::of_file(file).ok_or_else(|| RequestError::FileFormat(file.clone())),
        }
    }
}

/// Of what time.
#[derive(Clone, Copy, Debug, Args)]
pub struct SpanArgs {
    /// One month in the zone [default: all time]
    #[arg(long, value_name = "YYYY-MM", value_parser = parse_month, conflicts_with_all = ["from", "to"])]
    pub month: Option<Month>,
    /// First moment inside
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// First moment after
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
}

impl SpanArgs {
    pub(super) fn span(self) -> Result<Span, RequestError> {
        Span::from_options(self.month, self.from, self.to)
    }
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Which report
    #[arg(value_parser = report_name(), value_name = "REPORT")]
    pub report: ReportName,
    /// One week, of the report weekly [default: the last one that is over]
    #[arg(long, value_name = "YYYY-Www", conflicts_with_all = ["month", "from", "to"])]
    pub week: Option<Week>,
    /// Of what time.
    #[command(flatten)]
    pub span: SpanArgs,
    /// Groups, separated by commas: org, project, user, queue, class, model, node, cluster, pool, state, label.NAME, day, month,
    /// price, window; weekly, monthly, output, queue, quota, decisions, advice and isolation have their own [default: bill, efficiency, waste by org,project; idle, owners by org,project,user; inventory by
    /// cluster,node,model; the others in one row]
    #[arg(long, value_name = "A,B,…", value_parser = parse_groups)]
    pub by: Option<Groups>,
    /// Zone that cuts days and months in this view; what is billed keeps the ledger's [default: the ledger's]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub zone: Option<Zone>,
    /// Another price book than the ledger's prices.toml
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

impl ReportArgs {
    /// As a question to the books. Errors: an option that doesn't go with the report, a span that holds nothing.
    pub fn request(&self) -> Result<Asked, RequestError> {
        let SpanArgs { month, from, to } = self.span;
        let by = self.by.as_ref().map(|groups| groups.0.clone());
        let (week, zone, prices) = (self.week, self.zone, self.prices.clone());
        Options { month, week, from, to, by, zone, prices, user: None }.ask(self.report)
    }
}

/// Options of `me`.
#[derive(Debug, Args)]
pub struct MeArgs {
    /// Whose [default: you, as $USER says]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Of what time.
    #[command(flatten)]
    pub span: SpanArgs,
    /// Groups, separated by commas
    #[arg(long, value_name = "A,B,…", value_parser = parse_groups, default_value = "month,project")]
    pub by: Groups,
    /// Zone that cuts days and months in this view [default: the ledger's]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub zone: Option<Zone>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

impl MeArgs {
    /// As a question to the books, of `user` where no other is named. Errors: nobody is; a span that holds nothing.
    pub fn request(&self, user: Option<String>) -> Result<ReportRequest, RequestError> {
        let is_named = |name: &String| !name.is_empty();
        let user = self.user.clone().or(user).filter(is_named).ok_or(RequestError::Nobody)?;
        Ok(ReportRequest {
            span: self.span.span()?,
            by: self.by.0.clone(),
            zone: self.zone,
            user: Some(user),
            ..ReportRequest::new(ReportKind::Bill)
        })
    }
}

/// Options of `reconcile`.
#[derive(Debug, Args)]
pub struct ReconcileArgs {
    /// Of what time.
    #[command(flatten)]
    pub span: SpanArgs,
    /// Another tool's report of the same hours: sreport, sacct or opencost and a file, or rate and a price a card-hour [default: what nodes
    /// saw]
    #[arg(long, num_args = 2, value_names = ["TOOL", "FILE"])]
    pub with: Option<Vec<String>>,
    /// Groups before the reason, separated by commas: org, project, user, queue, class, state, node, cluster, label.NAME; with another tool
    /// cluster, project, user; with a rate org, project, user, model, price, window, month [default: none; with another tool as it has them]
    #[arg(long, value_name = "A,B,…", value_parser = parse_groups)]
    pub by: Option<Groups>,
    /// A row for each attempt and reason; with another tool for each job or pod
    #[arg(long)]
    pub attempts: bool,
    /// Zone of --month, --from and --to [default: the ledger's]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub zone: Option<Zone>,
    /// Zone of the other tool's clock [default: that of --zone]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone, requires = "with")]
    pub with_zone: Option<Zone>,
    /// TRESBillingWeights as slurm.conf has them, to see what Slurm's whole numbers cut off: CPU=1.0,GRES/gpu=4.5
    #[arg(long, value_name = "NAME=W,…", value_parser = Weights::parse, requires = "with")]
    pub billing_weights: Option<Weights>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

impl ReconcileArgs {
    /// As a question to the books. Errors: a span that holds nothing.
    pub fn request(&self) -> Result<ReconcileRequest, RequestError> {
        let by = self.by.as_ref().map(|groups| groups.0.clone()).unwrap_or_default();
        let query = ReconcileQuery { by, by_attempt: self.attempts };
        Ok(ReconcileRequest { span: self.span.span()?, zone: self.zone, query })
    }

    /// As a comparison with another tool; none where nodes are asked. Errors: a span that holds nothing, no such tool.
    pub fn with_request(&self) -> Result<Option<WithRequest>, RequestError> {
        let [tool, file] = match self.with.as_deref() {
            None => return Ok(None),
            Some([tool, file]) => [tool, file],
            Some(_) => return Err(RequestError::With("give --with once: a tool and its file".to_owned())),
        };
        Ok(Some(WithRequest {
            with: With::parse(tool, file)?,
            span: self.span.span()?,
            zone: self.zone,
            their_zone: self.with_zone,
            weights: self.billing_weights.clone(),
            by: self.by.as_ref().map(|groups| groups.0.clone()),
            by_job: self.attempts,
        }))
    }
}

/// Options of `sql`.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// The query; `-` is standard input
    #[arg(required_unless_present = "file")]
    pub query: Option<String>,
    /// Take the query from a file
    #[arg(long, short = 'f', value_name = "FILE", conflicts_with = "query")]
    pub file: Option<PathBuf>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The line, as the column `line` of the bill has it
    pub line: String,
    /// Another price book than the ledger's prices.toml
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// How and where to print.
    #[command(flatten)]
    pub output: Output,
}

/// What a report is grouped by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups(pub Vec<Dimension>);

pub(super) fn parse_groups(text: &str) -> Result<Groups, String> {
    Dimension::parse_list(text).map(Groups).map_err(|error| error.to_string())
}

/// The names of the reports, each with what it tells.
fn report_name() -> impl TypedValueParser<Value = ReportName> {
    let told = |name: ReportName| match name {
        ReportName::Books(ReportKind::Usage) => "who held how many card-hours, and what came of them",
        ReportName::Books(ReportKind::Bill) => "what the held card-hours cost",
        ReportName::Books(ReportKind::Efficiency) => "how much of what was seen was busy",
        ReportName::Books(ReportKind::Idle) => "what was held and idle, and what that cost",
        ReportName::Books(ReportKind::Waste) => "where held time went that did no work",
        ReportName::Books(ReportKind::Coverage) => "how much of the time is proven",
        ReportName::Books(ReportKind::Capacity) => "what the pool had: held, down, reserved, free, unaccounted",
        ReportName::Books(ReportKind::Owners) => "who the books name as owners",
        ReportName::Books(ReportKind::Inventory) => {
            "what cards there are, by the list of nodes and as collectors found them"
        }
        ReportName::Weekly => "the checkpoint of a week: queue, use, preemption, failures, fragments, cost",
        ReportName::Monthly => "the checkpoint of a month: was more wanted than there is, or only in one place",
        ReportName::Output => "cost and card-hours for a unit of output, by team and model",
        ReportName::Advised(AdvisedReport::Queue) => "how long jobs waited, and whether for cards or for their places",
        ReportName::Advised(AdvisedReport::Quota) => "how quotas were used, and how large each team's should be",
        ReportName::Advised(AdvisedReport::Decisions) => "what was decided, and the card-hours it recovered",
        ReportName::Advised(AdvisedReport::Advice) => "buy or don't, and what a pool of this size needs",
        ReportName::Isolation => "who shared a card who may not, took more than his share, or fell with others",
    };
    let value = |name: ReportName| PossibleValue::new(name.name()).help(told(name));
    PossibleValuesParser::new(ReportName::all().map(value))
        .map(|name| ReportName::from_name(&name).expect("one of the possible values"))
}
