//! What a report is asked for: the same words on the command line and over HTTP.

use crate::advised::{AdvisedReport, AdvisedRequest};
use crate::checkpoint::{CheckpointRequest, CheckpointSpan};
use cardhour_books::checkpoint::{Week, WeekError};
use cardhour_books::reconcile::ReconcileQuery;
use cardhour_books::report::{Dimension, DimensionError, ReportKind};
use cardhour_domain::{Interval, Month, Timestamp, Zone};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use rust_decimal::Decimal;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A name that `report` takes, on the command line and over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportName {
    /// One table, grouped by what was asked.
    Books(ReportKind),
    /// The checkpoint of a week.
    Weekly,
    /// The checkpoint of a month.
    Monthly,
    /// What a unit of output cost.
    Output,
    /// What the pool needs, or what was decided.
    Advised(AdvisedReport),
    /// What breaks the rule of who may share a card.
    Isolation,
}

impl ReportName {
    /// All of them: the tables first.
    pub fn all() -> impl Iterator<Item = Self> {
        let tables = ReportKind::ALL.into_iter().map(Self::Books);
        tables
            .chain([Self::Weekly, Self::Monthly, Self::Output])
            .chain(AdvisedReport::ALL.into_iter().map(Self::Advised))
            .chain([Self::Isolation])
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Books(kind) => kind.name(),
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Output => "output",
            Self::Advised(report) => report.name(),
            Self::Isolation => "isolation",
        }
    }

    /// The report of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|report| report.name() == name)
    }
}

/// What `report` was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// One table.
    Books(ReportRequest),
    /// The checkpoint of a week or a month.
    Checkpoint(CheckpointRequest),
    /// What a unit of output cost.
    Output(OutputRequest),
    /// What the pool needs, or what was decided.
    Advised(AdvisedRequest),
    /// What breaks the rule of who may share a card.
    Isolation(IsolationRequest),
}

/// How cards were shared, over some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsolationRequest {
    /// Of what time.
    pub span: Span,
    /// The zone that the span is said in; none: the ledger's.
    pub zone: Option<Zone>,
}

/// What a unit of output cost, over some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRequest {
    /// Of what time.
    pub span: Span,
    /// The zone that the span is said in; none: the ledger's.
    pub zone: Option<Zone>,
    /// Another price book than the ledger's.
    pub prices: Option<PathBuf>,
}

/// What may say the time of a report, and what doesn't go with every one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// One month.
    pub month: Option<Month>,
    /// One week, of the weekly checkpoint alone.
    pub week: Option<Week>,
    /// From a moment.
    pub from: Option<Moment>,
    /// Up to a moment.
    pub to: Option<Moment>,
    /// Groups.
    pub by: Option<Vec<Dimension>>,
    /// Zone of the view.
    pub zone: Option<Zone>,
    /// Another price book.
    pub prices: Option<PathBuf>,
    /// Only what this user held.
    pub user: Option<String>,
}

impl Options {
    /// As a question to the books. Errors: an option that doesn't go with the report, a span that holds nothing.
    pub fn ask(self, report: ReportName) -> Result<Asked, RequestError> {
        let Self { month, week, from, to, by, zone, prices, user } = self;
        let others = from.is_some() || to.is_some() || by.is_some() || zone.is_some() || user.is_some();
        let takes = |takes| RequestError::Takes { report: report.name(), takes };
        let of = match report {
            ReportName::Books(_) if week.is_some() => return Err(takes("no week: only the report weekly does")),
            ReportName::Books(report) => {
                let span = Span::from_options(month, from, to)?;
                let by = by.unwrap_or_else(|| default_by(report));
                return Ok(Asked::Books(ReportRequest { report, span, by, zone, prices, user }));
            }
            ReportName::Output if week.is_some() || by.is_some() || user.is_some() => {
                return Err(takes("a time, and has its own groups: org, project, model and unit"));
            }
            ReportName::Isolation if week.is_some() || by.is_some() || user.is_some() || prices.is_some() => {
                return Err(takes("a time, and nothing else: a row is one violation"));
            }
            ReportName::Isolation => {
                let span = Span::from_options(month, from, to)?;
                return Ok(Asked::Isolation(IsolationRequest { span, zone }));
            }
            ReportName::Output => {
                let span = Span::from_options(month, from, to)?;
                return Ok(Asked::Output(OutputRequest { span, zone, prices }));
            }
            ReportName::Advised(_) if week.is_some() || by.is_some() || user.is_some() || prices.is_some() => {
                return Err(takes("a time, and has its own groups and no prices"));
            }
            ReportName::Advised(report) => {
                let span = Span::from_options(month, from, to)?;
                return Ok(Asked::Advised(AdvisedRequest { report, span, zone }));
            }
            ReportName::Weekly if others || month.is_some() => {
                return Err(takes("a week, and nothing else of time or groups"));
            }
            ReportName::Monthly if others || week.is_some() => {
                return Err(takes("a month, and nothing else of time or groups"));
            }
            ReportName::Weekly => CheckpointSpan::Week(week),
            ReportName::Monthly => CheckpointSpan::Month(month),
        };
        Ok(Asked::Checkpoint(CheckpointRequest { of, prices }))
    }
}

/// One question to the books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// Which report.
    pub report: ReportKind,
    /// Of what time.
    pub span: Span,
    /// Grouped by what, in this order; nothing: one row for all.
    pub by: Vec<Dimension>,
    /// The zone that cuts days and months in this view; none: the ledger's.
    pub zone: Option<Zone>,
    /// Another price book than the ledger's.
    pub prices: Option<PathBuf>,
    /// Only what this user held.
    pub user: Option<String>,
}

impl ReportRequest {
    /// A report of all time, grouped as [`default_by`] says.
    pub fn new(report: ReportKind) -> Self {
        Self { report, span: Span::All, by: default_by(report), zone: None, prices: None, user: None }
    }

    /// The same of one month.
    #[must_use]
    pub fn of_month(mut self, month: Month) -> Self {
        self.span = Span::Month(month);
        self
    }

    /// The same, grouped otherwise.
    #[must_use]
    pub fn grouped_by(mut self, by: &[Dimension]) -> Self {
        self.by = by.to_vec();
        self
    }
}

/// Records to be held against what nodes saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileRequest {
    /// Of what time.
    pub span: Span,
    /// The zone that the span is said in; none: the ledger's.
    pub zone: Option<Zone>,
    /// How the answer is grouped.
    pub query: ReconcileQuery,
}

/// How a report is grouped when nobody says: by who pays; idle time and owners by every level; cards by where they are; the rest in one row.
pub fn default_by(report: ReportKind) -> Vec<Dimension> {
    match report {
        ReportKind::Bill | ReportKind::Efficiency | ReportKind::Waste => vec![Dimension::Org, Dimension::Project],
        ReportKind::Idle | ReportKind::Owners => vec![Dimension::Org, Dimension::Project, Dimension::User],
        ReportKind::Inventory => vec![Dimension::Cluster, Dimension::Node, Dimension::Model],
        ReportKind::Usage | ReportKind::Coverage | ReportKind::Capacity => Vec::new(),
    }
}

/// The time a report is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// All that the books hold.
    All,
    /// One month in the zone of the view.
    Month(Month),
    /// From a moment, up to and without another; none: open on that side.
    Between {
        /// The first moment inside.
        from: Option<Moment>,
        /// The first moment after.
        to: Option<Moment>,
    },
}

impl Span {
    /// From the three options of a report. Errors: a month beside a from or to; a from that isn't before its to, as far as
    /// that can be said without a zone.
    pub fn from_options(month: Option<Month>, from: Option<Moment>, to: Option<Moment>) -> Result<Self, RequestError> {
        match (month, from, to) {
            (Some(month), None, None) => Ok(Self::Month(month)),
            (Some(_), ..) => Err(RequestError::MonthAndSpan),
            (None, None, None) => Ok(Self::All),
            (None, from, to) => {
                if let (Some(from), Some(to)) = (from, to)
                    && Interval::new(from.instant(Zone::UTC), to.instant(Zone::UTC)).is_none()
                    && from.same_kind(to)
                {
                    return Err(RequestError::Empty { from, to });
                }
                Ok(Self::Between { from, to })
            }
        }
    }

    /// Its instants in a zone: from and to, none where it is open. Errors: nothing lies between them.
    pub fn bounds(self, zone: Zone) -> Result<(Option<Timestamp>, Option<Timestamp>), RequestError> {
        match self {
            Self::All => Ok((None, None)),
            Self::Month(month) => {
                let month = month.interval(zone);
                Ok((Some(month.start()), Some(month.end())))
            }
            Self::Between { from, to } => {
                let (start, end) = (from.map(|m| m.instant(zone)), to.map(|m| m.instant(zone)));
                match (from, to, start, end) {
                    (Some(from), Some(to), Some(start), Some(end)) if start >= end => {
                        Err(RequestError::Empty { from, to })
                    }
                    _ => Ok((start, end)),
                }
            }
        }
    }
}

/// A moment as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// With an offset: the same everywhere.
    Instant(Timestamp),
    /// Without: a local time, in a zone that is known later. A date is its first instant.
    Local(NaiveDateTime),
}

impl Moment {
    /// The instant it is in `zone`.
    pub fn instant(self, zone: Zone) -> Timestamp {
        match self {
            Self::Instant(at) => at,
            Self::Local(local) => zone.instant(local),
        }
    }

    fn same_kind(self, other: Self) -> bool {
        matches!((self, other), (Self::Instant(_), Self::Instant(_)) | (Self::Local(_), Self::Local(_)))
    }
}

impl FromStr for Moment {
    type Err = RequestError;

    /// Reads `2026-03-01`, `2026-03-01T06:00`, `2026-03-01T06:00:00` or RFC 3339 with an offset.
    fn from_str(text: &str) -> Result<Self, RequestError> {
        if let Ok(at) = Timestamp::parse_rfc3339(text) {
            return Ok(Self::Instant(at));
        }
        if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return Ok(Self::Local(date.and_time(NaiveTime::MIN)));
        }
        let text_with_t = text.replacen(' ', "T", 1);
        ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]
            .into_iter()
            .find_map(|format| NaiveDateTime::parse_from_str(&text_with_t, format).ok())
            .map(Self::Local)
            .ok_or_else(|| RequestError::Moment(text.to_owned()))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instant(at) => write!(f, "{at}"),
            Self::Local(local) if local.time() == NaiveTime::MIN => write!(f, "{}", local.date()),
            Self::Local(local) => write!(f, "{}", local.format("%Y-%m-%dT%H:%M:%S")),
        }
    }
}

/// What time an export speaks for, as `--covers` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covers {
    /// The first moment inside.
    pub from: Moment,
    /// The first moment after.
    pub to: Moment,
}

impl Covers {
    /// The stretch it is in `zone`. Errors: nothing lies between its ends.
    pub fn interval(self, zone: Zone) -> Result<Interval, RequestError> {
        Interval::new(self.from.instant(zone), self.to.instant(zone))
            .ok_or(RequestError::Empty { from: self.from, to: self.to })
    }
}

impl FromStr for Covers {
    type Err = RequestError;

    /// Reads `2026-03-01..2026-04-01`.
    fn from_str(text: &str) -> Result<Self, RequestError> {
        let (from, to) = text.split_once("..").ok_or_else(|| RequestError::Covers(text.to_owned()))?;
        let covers = Self { from: from.trim().parse()?, to: to.trim().parse()? };
        if covers.from.same_kind(covers.to) {
            covers.interval(Zone::UTC)?;
        }
        Ok(covers)
    }
}

/// What is wrong with a question.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RequestError {
    /// Nothing to group by.
    #[error(transparent)]
    By(#[from] DimensionError),
    /// Not a time.
    #[error("{0:?} is not a time such as 2026-03-01, 2026-03-01T06:00 or 2026-03-01T06:00:00+08:00")]
    Moment(String),
    /// Nobody can vouch for that time.
    #[error("an as-of of {0} is before 1970 or in the future, up to which nobody can vouch for anything")]
    AsOf(Timestamp),
    /// Telemetry that can't be asked for like that.
    #[error("{0}")]
    Metrics(String),
    /// Not a stretch.
    #[error("{0:?} is not a stretch of time such as 2026-03-01..2026-04-01")]
    Covers(String),
    /// Nothing lies between.
    #[error("{from} is not before {to}: the first is inside, the second is the first moment after")]
    Empty {
        /// The one.
        from: Moment,
        /// The other.
        to: Moment,
    },
    /// Not a zone or a month.
    #[error(transparent)]
    Zone(#[from] cardhour_domain::ZoneError),
    /// Not a week.
    #[error(transparent)]
    Week(#[from] WeekError),
    /// An option that doesn't go with the report.
    #[error("report {report} takes {takes}")]
    Takes {
        /// The report.
        report: &'static str,
        /// What it takes.
        takes: &'static str,
    },
    /// No such format.
    #[error("no format {0:?}: take table, csv, json, parquet, html or md")]
    Format(String),
    /// A file whose name doesn't say what goes into it.
    #[error("cannot tell from the name of {} what goes into it: give --format, or a name that ends with txt, csv, json, parquet, html or md", .0.display())]
    FileFormat(PathBuf),
    /// No time that can be quoted.
    #[error("{0} hours can't be quoted: more than none, and a year at most")]
    Hours(Decimal),
    /// No model, where prices go by it.
    #[error("of which model? --model NAME says it; a card-hour costs, in {currency}: {models}")]
    WhichModel {
        /// Those of the price book, each with what it costs.
        models: String,
        /// Of what.
        currency: String,
    },
    /// Nobody to report of.
    #[error("whose? --user NAME says it; $USER is not set")]
    Nobody,
    /// An address with options that can't be read.
    #[error("{0}")]
    Address(String),
    /// A name that what was asked for can't be grouped by.
    #[error("{what} can't be grouped by {by}: use {can}")]
    NotBy {
        /// What was asked for.
        what: &'static str,
        /// The name.
        by: Dimension,
        /// What it can be grouped by.
        can: &'static str,
    },
    /// Nothing that the books can be held against.
    #[error("{0}")]
    With(String),
    /// Both ways to say when.
    #[error("give a month, or from and to, not both")]
    MonthAndSpan,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asia/Shanghai is UTC+8 without daylight saving, so its first of March starts at 16:00 UTC the day before.
    #[test]
    fn a_date_is_the_first_instant_of_its_day_in_the_zone() {
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        for (text, expected) in [
            ("2026-03-01", "2026-02-28T16:00:00Z"),
            ("2026-03-01T06:30", "2026-02-28T22:30:00Z"),
            ("2026-03-01 06:30:15", "2026-02-28T22:30:15Z"),
            ("2026-03-01T00:00:00+00:00", "2026-03-01T00:00:00Z"),
        ] {
            assert_eq!(text.parse::<Moment>().unwrap().instant(zone).to_string(), expected, "{text}");
        }
        for text in ["", "march", "2026-13-01", "2026-03", "1700000000"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_checkpoint_takes_its_own_time_and_no_groups() {
        let week = Options { week: Some("2026-W20".parse().unwrap()), ..Options::default() };
        let month = Options { month: Some(Month::parse("2026-05").unwrap()), ..Options::default() };
        let of = |asked: Result<Asked, RequestError>| match asked {
            Ok(Asked::Checkpoint(request)) => Ok(request.of),
            Ok(Asked::Books(_) | Asked::Output(_) | Asked::Advised(_) | Asked::Isolation(_)) => panic!("a checkpoint"),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(of(week.clone().ask(ReportName::Weekly)), Ok(CheckpointSpan::Week(week.week)));
        assert_eq!(of(month.clone().ask(ReportName::Monthly)), Ok(CheckpointSpan::Month(month.month)));
        assert_eq!(of(Options::default().ask(ReportName::Weekly)), Ok(CheckpointSpan::Week(None)));
        let by = Options { by: Some(Vec::new()), ..Options::default() };
        assert!(of(by.ask(ReportName::Weekly)).is_err() && of(month.ask(ReportName::Weekly)).is_err());
        assert!(of(week.clone().ask(ReportName::Monthly)).is_err());
        assert!(week.ask(ReportName::Books(ReportKind::Bill)).is_err());
    }

    #[test]
    fn a_span_that_holds_nothing_is_refused() {
        let date = |text: &str| Some(text.parse::<Moment>().unwrap());
        assert!(Span::from_options(None, date("2026-03-01"), date("2026-03-01")).is_err());
        assert!("2026-03-02..2026-03-01".parse::<Covers>().is_err());
        assert!("2026-03-02".parse::<Covers>().is_err());
        let month = Month::parse("2026-03").unwrap();
        assert_eq!(Span::from_options(Some(month), date("2026-03-01"), None), Err(RequestError::MonthAndSpan));
        let mixed = Span::from_options(None, date("2026-03-01T00:00:00Z"), date("2026-03-01")).unwrap();
        assert!(mixed.bounds(Zone::UTC).is_err());
        assert!(mixed.bounds(Zone::parse("America/New_York").unwrap()).is_ok());
    }
}
