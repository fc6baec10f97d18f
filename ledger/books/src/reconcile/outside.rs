//! Our books beside what another tool says of the same hours: line by line, each difference with its reason.
//!
//! Readers ([`sreport`], [`sacct`], [`opencost`]) make [`Theirs`] of a report; [`explain()`] holds the attempts of the books against it and cuts
//! the difference of each line into [`Cause`]s that add up to it exactly; [`table()`] shows that. [`rate`] is the same for money: a bill beside one
//! price an hour by hand. What no cause can be named for stays [`Cause::Unexplained`].
//!
//! Start at [`explain()`]. Does not: change what is booked, decide which of the two is right, or fit a cause to a figure: a part under a cause is
//! worked out from the books and the report, and only what is then within half a unit of the report is called rounding.

pub mod billing;
mod explain;
pub mod opencost;
pub mod rate;
pub mod sacct;
mod show;
pub mod sreport;
#[cfg(test)]
mod tests;

pub use explain::{Billed, Frame, explain};
pub use show::{refused, table};

use billing::Billing;
use cardhour_domain::{AttemptKey, CardShare, CardTime, Interval, Name, Timestamp, Zone};
use chrono::NaiveDateTime;

/// A tool whose figures can be held against ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Slurm's report of usage by account and user.
    Sreport,
    /// Slurm's list of jobs.
    Sacct,
    /// OpenCost's answer of `/allocation`.
    OpenCost,
}

impl Tool {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sreport => "sreport",
            Self::Sacct => "sacct",
            Self::OpenCost => "opencost",
        }
    }
}

/// Why our figure of a line isn't theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// What is billed isn't what the record claims: an outage, or what was left of a card that several claim.
    BilledOtherwise,
    /// The hours are of a closed month, which keeps what it was closed with: what was told later is a correction in an open one.
    CorrectedLater,
    /// The hours that were asked for aren't those of the report, or it begins after or ends before an earlier or later run of the same job.
    Window,
    /// The report's hours are those of another time zone.
    TimeZone,
    /// The job began earlier or ended later than the report has it.
    Lifetime,
    /// Time in which the job was suspended: held here, left out there.
    Suspended,
    /// A part of a card: exact here, a whole card there.
    Shares,
    /// Unused time of a reservation, which Slurm charges to those that may use it: at most what the books have of it.
    ReservedUnused,
    /// The report has the same line several times over.
    CountedTwice,
    /// The job was still running when one of the two looked.
    StillOpen,
    /// Nothing of it in the report.
    NotInTheirs,
    /// Nothing of it in the books.
    NotInOurs,
    /// Time that nobody held, shared out or listed there.
    Idle,
    /// No more than half a unit of the report.
    Rounding,
    /// The rest.
    Unexplained,
}

impl Cause {
    /// All of them, in the order of the columns.
    pub const ALL: [Self; 15] = [
        Self::BilledOtherwise,
        Self::CorrectedLater,
        Self::Window,
        Self::TimeZone,
        Self::Lifetime,
        Self::Suspended,
        Self::Shares,
        Self::ReservedUnused,
        Self::CountedTwice,
        Self::StillOpen,
        Self::NotInTheirs,
        Self::NotInOurs,
        Self::Idle,
        Self::Rounding,
        Self::Unexplained,
    ];

    /// Its name in columns.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BilledOtherwise => "billed_otherwise",
            Self::CorrectedLater => "corrected_later",
            Self::Window => "window",
            Self::TimeZone => "time_zone",
            Self::Lifetime => "lifetime",
            Self::Suspended => "suspended",
            Self::Shares => "shares",
            Self::ReservedUnused => "reserved_unused",
            Self::CountedTwice => "counted_twice",
            Self::StillOpen => "still_open",
            Self::NotInTheirs => "not_in_theirs",
            Self::NotInOurs => "not_in_ours",
            Self::Idle => "idle",
            Self::Rounding => "rounding",
            Self::Unexplained => "unexplained",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// A difference, cut by cause. Shape: the parts of a line add up to its difference, ours less theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([CardTime; Cause::ALL.len()]);

impl Parts {
    /// The part of one cause; below zero where they have more.
    pub fn of(&self, cause: Cause) -> CardTime {
        self.0[cause.index()]
    }

    /// All of them together.
    pub fn sum(&self) -> CardTime {
        self.0.into_iter().sum()
    }

    fn add(&mut self, cause: Cause, time: CardTime) {
        self.0[cause.index()] += time;
    }

    fn add_all(&mut self, other: &Self) {
        for cause in Cause::ALL {
            self.add(cause, other.of(cause));
        }
    }
}

/// Whose a line is; absent where the report doesn't tell, so that the line is of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    /// Cluster.
    pub cluster: Option<Name>,
    /// Account, or namespace.
    pub project: Option<Name>,
    /// User.
    pub user: Option<Name>,
    /// Job or pod, as the middle part of an [`AttemptKey`] has it.
    pub job: Option<Name>,
}

/// What time a report is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hours {
    /// Whole jobs, whenever they ran.
    #[default]
    WholeJobs,
    /// A clock on the wall, of a zone that the report doesn't name: from, up to and without.
    Local(NaiveDateTime, NaiveDateTime),
    /// These stretches, which don't overlap.
    Instants(Vec<Interval>),
}

/// One line of another tool's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TheirLine {
    /// Whose it is.
    pub who: Who,
    /// When its job began, to tell one run of it from another.
    pub started_at: Option<Timestamp>,
    /// When it ended, where it has.
    pub ended_at: Option<Timestamp>,
    /// Its card-time.
    pub time: CardTime,
    /// Of how many rounded figures of the report it is the sum.
    pub figures: u32,
    /// From when to when they have it; none where they don't tell.
    pub lifetime: Vec<Interval>,
    /// Cards, where the line is of one job: whole ones.
    pub cards: Option<CardShare>,
    /// What of its job's time they leave out since it was suspended.
    pub suspended: CardTime,
    /// Whether it is time that nobody held.
    pub is_idle: bool,
    /// Whether its job still ran.
    pub is_open: bool,
    /// What Slurm bills it by.
    pub billing: Option<Billing>,
}

impl TheirLine {
    /// A line of whom and how much; nothing else is known of it.
    pub fn new(who: Who, time: CardTime) -> Self {
        Self {
            who,
            started_at: None,
            ended_at: None,
            time,
            figures: 1,
            lifetime: Vec::new(),
            cards: None,
            suspended: CardTime::ZERO,
            is_idle: false,
            is_open: false,
            billing: None,
        }
    }
}

/// What another tool says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theirs {
    /// Which tool.
    pub tool: Tool,
    /// Of what time.
    pub hours: Hours,
    /// Its lines.
    pub lines: Vec<TheirLine>,
    /// What one step of its figures is: what it rounds to.
    pub unit: CardTime,
    /// What was passed over, and why, for people.
    pub notes: Vec<String>,
}

/// One line of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Whose it is: theirs, or where they have none, ours.
    pub who: Who,
    /// Its attempts in the books.
    pub attempts: Vec<AttemptKey>,
    /// Our card-time in the hours that were asked for: what is billed, where that is known.
    pub ours: CardTime,
    /// Theirs.
    pub theirs: CardTime,
    /// Ours less theirs, by cause.
    pub parts: Parts,
    /// What Slurm bills it by, exactly and as it has it.
    pub billing: Option<Billing>,
}

impl Explained {
    /// Whether somebody has to look.
    pub fn is_unexplained(&self) -> bool {
        let is_billed_otherwise = self.billing.as_ref().is_some_and(|billing| !billing.unexplained.is_zero());
        !self.parts.of(Cause::Unexplained).is_zero() || is_billed_otherwise
    }
}

/// A report that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutsideError {
    /// A line that is at fault.
    #[error("line {line}, {field}: {reason}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// The column, or what should stand there.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// A part that is missing.
    #[error("{0}")]
    Missing(String),
    /// Not JSON, or other JSON.
    #[error("{path}: {reason}")]
    Json {
        /// Where: `data[0].team-a.gpuHours`.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

fn fault(line: usize, field: impl Into<String>, reason: impl Into<String>) -> OutsideError {
    OutsideError::Line { line, field: field.into(), reason: reason.into() }
}

/// Card-seconds as card-time. None where there are too many.
fn card_seconds(seconds: i128) -> Option<CardTime> {
    seconds.checked_mul(1000 * i128::from(CardShare::PARTS_PER_CARD)).map(CardTime::from_part_ms)
}

/// A stretch of a wall clock in a zone; none where nothing is between its ends.
fn stretch(zone: Zone, from: NaiveDateTime, to: NaiveDateTime) -> Option<Interval> {
    Interval::new(zone.instant(from), zone.instant(to))
}
